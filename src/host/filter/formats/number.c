/* SPDX-License-Identifier: MIT */
/*
 * Any number with 0x, as an exact address of the target, or in memory: the last resort of lines
 * whose format nobody knows. It means nothing if neither is known.
 */
#include "host/filter/formats.h"

#include <strings.h>

/* Fewer digits are seldom an address. */
#define LEAST_DIGITS 3

/* Returns whether the word before @at, of the line from @start, names the program counter. */
static bool is_counter(const char *start, const char *at)
{
	static const char *const names[] = { "pc", "ip", "rip", "eip" };
	const char *end = at;
	size_t n;

	while (end > start && strchr(" =:", end[-1]))
		end--;
	for (at = end; at > start && ((at[-1] | 0x20) >= 'a' && (at[-1] | 0x20) <= 'z'); at--)
		;
	n = (size_t)(end - at);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strlen(names[i]) == n && !strncasecmp(names[i], at, n))
			return true;
	return false;
}

bool fathom_log_read_number(struct fathom_log_scan *s, struct fathom_log_line line)
{
	while (fathom_line_find(&line, "0x")) {
		struct fathom_log_number n = { .kind = FATHOM_LOG_EXACT,
					       .base = FATHOM_LOG_LIVE,
					       .is_any = true };
		const bool is_word =
			line.at == s->line_start || fathom_hex_digit(line.at[-1]) == 16;

		n.at = line.at;
		if (!is_word || !fathom_line_take_0x(&line, &n.value)) {
			line.at += 2;
			continue;
		}
		n.size = (size_t)(line.at - n.at);
		n.is_counter = is_counter(s->line_start, n.at);
		if (n.size >= LEAST_DIGITS + 2)
			fathom_log_add(s, &n);
	}
	return true;
}
