/* SPDX-License-Identifier: MIT */
/*
 * Frames of valgrind (coregrind/m_debuginfo/debuginfo.c: describe_IP()), with names or
 * without:
 *
 *	==31000==    at 0x4853231: ??? (in /usr/lib/libfoo.so)
 *	==31000==    by 0x4853264: foo_run+8 (in /usr/lib/libfoo.so)
 *
 * The numbers are live, in the memory of the process that valgrind is. The first one of a stack is
 * exact, the others have been lowered already.
 */
#include "host/filter/formats.h"

bool fathom_log_read_valgrind(struct fathom_log_scan *s, struct fathom_log_line line)
{
	struct fathom_log_number n = { .base = FATHOM_LOG_LIVE, .is_frame = true };
	struct fathom_log_line l = line;

	if (!fathom_line_find(&l, "== ") || !fathom_line_take(&l, "== "))
		return false;
	fathom_line_skip_blanks(&l);
	n.kind = FATHOM_LOG_LOWERED;
	if (fathom_line_take(&l, "at "))
		n = (struct fathom_log_number){ .kind = FATHOM_LOG_EXACT,
						.base = FATHOM_LOG_LIVE,
						.is_frame = true,
						.is_first = true };
	else if (!fathom_line_take(&l, "by "))
		return false;
	n.at = l.at;
	if (!fathom_line_take_0x(&l, &n.value))
		return false;
	n.size = (size_t)(l.at - n.at);
	if (!fathom_line_take(&l, ": ") || !fathom_line_find_last(&l, " (in ") || l.end[-1] != ')')
		return false;
	n.module = fathom_log_text(l.at + strlen(" (in "), l.end - 1);
	if (n.module.size)
		fathom_log_add(s, &n);
	return true;
}
