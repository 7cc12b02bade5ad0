/* SPDX-License-Identifier: MIT */
/*
 * Frames of gdb (gdb/stack.c), whose numbers are live:
 *
 *	#1  0x00007ffff7fbc265 in foo_run () from /usr/lib/libfoo.so
 *	#2  <signal handler called>
 *	#3  0x0000555555555151 in ?? ()
 *
 * They are return addresses, but that of the first frame and what a signal has interrupted.
 */
#include "host/filter/formats.h"

/* gdb pads addresses to all digits of the machine. */
#define PADDED_64 18
#define PADDED_32 10

/* Returns the number of the frame at the start of the line; 0: none. */
static uint32_t number_of(struct fathom_log_line line)
{
	uint32_t number;

	while (fathom_line_find(&line, "#")) {
		line.at++;
		if (fathom_line_take_decimal(&line, &number))
			return number;
	}
	return 0;
}

bool fathom_log_read_gdb(struct fathom_log_scan *s, struct fathom_log_line line)
{
	struct fathom_log_number n = { .base = FATHOM_LOG_LIVE, .is_frame = true };
	struct fathom_log_line handler = line;
	struct fathom_log_line from;
	struct fathom_log_frame frame;

	if (fathom_line_find(&handler, "<signal handler called>")) {
		s->frame_after_handler =
			number_of((struct fathom_log_line){ line.at, handler.at }) + 1;
		return true;
	}
	if (!fathom_log_take_frame(&line, &frame))
		return false;
	n.size = (size_t)(line.at - frame.pc_at);
	if ((n.size != PADDED_64 && n.size != PADDED_32) || !fathom_line_take(&line, " in ") ||
	    !fathom_line_find(&line, " ("))
		return false;
	from = line;
	if (fathom_line_find_last(&from, ") from /"))
		n.from = fathom_log_text(from.at + strlen(") from "), line.end);
	n.kind = frame.number && frame.number != s->frame_after_handler ? FATHOM_LOG_RETURN
									: FATHOM_LOG_EXACT;
	s->frame_after_handler = 0;
	n.frame = frame.number + 1;
	n.is_first = !frame.number;
	n.value = frame.pc;
	n.at = frame.pc_at;
	fathom_log_add(s, &n);
	return true;
}
