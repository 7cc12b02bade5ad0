/* SPDX-License-Identifier: MIT */
/*
 * Frames of Rust with RUST_BACKTRACE=full (library/std/src/backtrace.rs), behind blanks. Their
 * numbers are live:
 *
 *	4:     0x55f75b06f19a - <unknown>
 *
 * They are return addresses.
 */
#include "host/filter/formats.h"

bool fathom_log_read_rust(struct fathom_log_scan *s, struct fathom_log_line line)
{
	struct fathom_log_number n = { .kind = FATHOM_LOG_RETURN,
				       .base = FATHOM_LOG_LIVE,
				       .is_frame = true };
	const char *const start = line.at;
	uint32_t number;

	while (fathom_line_find(&line, ":")) {
		const char *digit = line.at++;
		struct fathom_log_line l = line;

		while (digit > start && digit[-1] >= '0' && digit[-1] <= '9')
			digit--;
		fathom_line_skip_blanks(&l);
		n.at = l.at;
		if (!fathom_line_is_word(start, digit) || l.at == line.at ||
		    !fathom_line_take_0x(&l, &n.value))
			continue;
		n.size = (size_t)(l.at - n.at);
		l = (struct fathom_log_line){ digit, l.end };
		if (!fathom_line_take_decimal(&l, &number))
			continue;
		l.at = n.at + n.size;
		if (!fathom_line_take(&l, " - "))
			continue;
		n.frame = number + 1;
		n.is_first = !number;
		fathom_log_add(s, &n);
		return true;
	}
	return false;
}
