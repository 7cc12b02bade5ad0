/* SPDX-License-Identifier: MIT */
/*
 * The bytes of code around a program counter, which the kernel prints some lines after it, of its
 * own (formats/oops.c) and of programs (formats/segfault.c):
 *
 *	Code: 48 89 e5 31 c0 <0f> 0b 5d c3
 *	Code: d2800300 f9000c00 d65f03c0 d503201f (d4210000)
 *
 * The byte, or the word of arm64, at the program counter is marked. Says what stands there in
 * memory, and is no address itself.
 */
#include "host/filter/formats.h"

/* Lines from the program counter to its code: x86 prints it next, arm64 after the call trace. */
#define MAX_LINES     8
#define MAX_ARM_LINES 256

/* Returns the greatest distance of the program counter of code @l. */
static uint64_t greatest_distance(struct fathom_log_line l)
{
	return fathom_line_find(&l, "(") ? MAX_ARM_LINES : MAX_LINES;
}

/* Returns whether no word of the line is before @at, but for what logs put before it. */
static bool is_start(const char *start, const char *at)
{
	while (at > start && at[-1] == ' ')
		at--;
	return at == start || at[-1] == ']' || at[-1] == ':' || at[-1] == '>';
}

/* Returns whether the line goes on with a byte, or a word, in hexadecimal. */
static bool is_code(struct fathom_log_line l)
{
	const char *start;
	uint64_t value;

	if (!fathom_line_take(&l, "<"))
		(void)fathom_line_take(&l, "(");
	start = l.at;
	return fathom_line_take_hex(&l, &value) && (l.at - start == 2 || l.at - start == 8) &&
	       (l.at == l.end || *l.at == ' ' || *l.at == '>' || *l.at == ')');
}

/* Returns whether the line says that there are no bytes. */
static bool is_nothing(struct fathom_log_line l)
{
	return fathom_line_take(&l, "Unable to access") || fathom_line_take(&l, "Bad ") ||
	       fathom_line_take(&l, "bad ");
}

bool fathom_log_read_code(struct fathom_log_scan *s, struct fathom_log_line line)
{
	struct fathom_log_counter *c = &s->counter;
	struct fathom_log_number n;

	if (!fathom_line_find(&line, "Code: ") || !is_start(s->line_start, line.at))
		return false;
	line.at += strlen("Code: ");
	if (!is_code(line) && !is_nothing(line))
		return false;
	if (c->n_open)
		c->n_open--;
	else
		c->is_known = false;
	if (!is_code(line))
		return false;
	if (!c->is_known || c->is_mixed || s->line - c->line > greatest_distance(line))
		return true;
	n = c->number;
	n.at = line.at;
	n.size = fathom_line_left(&line);
	n.code = fathom_log_text(line.at, line.end);
	n.counter = c->index;
	n.live = 0;
	fathom_log_add(s, &n);
	return true;
}
