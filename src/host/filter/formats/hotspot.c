/* SPDX-License-Identifier: MIT */
/*
 * Frames of HotSpot's fatal error logs, hs_err_pid*.log (src/hotspot/share/utilities/vmError.cpp,
 * runtime/frame.cpp):
 *
 *	# C  [libfoo.so+0x1171]  foo+0x12
 *	Native frames: (J=compiled Java code, j=interpreted, Vv=VM code, C=native code)
 *	C  [libfoo.so+0x1171]  foo+0x12
 *	V  [libjvm.so+0xed2f94]  Unsafe_PutLong+0x124
 *
 * The number counts from the module's first mapping. It is exact in the problematic frame and in
 * the first one of the list; the others are return addresses.
 */
#include "host/filter/formats.h"

/* Goes to after the bracket of a frame; returns false if the line has none. */
static bool take_head(struct fathom_log_line *l, const char **ret_start)
{
	static const char *const heads[] = { "C  [", "V  [" };

	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		struct fathom_log_line rest = *l;

		if (!fathom_line_find(&rest, heads[i]) || !fathom_line_is_word(l->at, rest.at))
			continue;
		*ret_start = rest.at;
		rest.at += strlen(heads[i]);
		*l = rest;
		return true;
	}
	return false;
}

bool fathom_log_read_hotspot(struct fathom_log_scan *s, struct fathom_log_line line)
{
	struct fathom_log_number n = { .base = FATHOM_LOG_FIRST_MAPPING };
	const char *const before = line.at;
	struct fathom_log_line end = line;
	const char *head;

	if (fathom_line_find(&end, "Native frames:")) {
		s->hotspot_line = s->line + 2;
		return true;
	}
	if (!take_head(&line, &head))
		return false;
	end = line;
	if (!fathom_line_find(&end, "+0x"))
		return false;
	n.module = fathom_log_text(line.at, end.at);
	n.at = ++end.at;
	if (!fathom_line_take_0x(&end, &n.value) || !fathom_line_take(&end, "]") || !n.module.size)
		return false;
	n.size = (size_t)(end.at - 1 - n.at);
	/* In front of the problematic frame is "# ". */
	n.kind = s->line + 1 == s->hotspot_line ||
				 (head - before >= 2 && head[-2] == '#' && head[-1] == ' ')
			 ? FATHOM_LOG_EXACT
			 : FATHOM_LOG_RETURN;
	fathom_log_add(s, &n);
	return true;
}
