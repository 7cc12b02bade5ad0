/* SPDX-License-Identifier: MIT */
/*
 * Frames of node's own crashes (src/debug_utils.cc, DumpNativeBacktrace()):
 *
 *	 1: 0xb7a940 node::Abort() [node]
 *	 4: 0x10fb205  [/usr/bin/node]
 *
 * Programs at fixed addresses: the number is live and stated. Of others it is live alone. They are
 * return addresses.
 */
#include "host/filter/formats.h"

/* Goes to the number of a frame, after "N: "; returns false if there is none. */
static bool take_head(struct fathom_log_line *l)
{
	const char *const start = l->at;

	while (fathom_line_find(l, ": 0x")) {
		const char *digit = l->at;

		l->at += 2;
		while (digit > start && digit[-1] >= '0' && digit[-1] <= '9')
			digit--;
		if (digit < l->at - 2 && fathom_line_is_word(start, digit))
			return true;
	}
	return false;
}

bool fathom_log_read_node(struct fathom_log_scan *s, struct fathom_log_line line)
{
	struct fathom_log_number n = { .kind = FATHOM_LOG_RETURN, .base = FATHOM_LOG_LIVE };
	const char *open;

	if (!take_head(&line))
		return false;
	n.at = line.at;
	if (!fathom_line_take_0x(&line, &n.value))
		return false;
	n.size = (size_t)(line.at - n.at);
	if (line.at == line.end || line.end[-1] != ']' || !fathom_line_take(&line, " "))
		return false;
	open = memrchr(line.at, '[', fathom_line_left(&line));
	if (!open || (open > line.at && open[-1] != ' '))
		return false;
	n.module = fathom_log_text(open + 1, line.end - 1);
	if (!n.module.size)
		return false;
	fathom_log_add(s, &n);
	return true;
}
