/* SPDX-License-Identifier: MIT */
/*
 * Frames of eu-stack -m -b (elfutils, src/stack.c), of two lines:
 *
 *	#1  0x00007f6955d88e53 __nanosleep - /usr/lib/x86_64-linux-gnu/libc.so.6
 *	    [93ac61ec5a8eb1396f9fbd350e3169a558528a40]@0x7f6955cb5000+0xd3e52
 *
 * The number at the end counts from where the module was mapped and has been lowered already, but
 * for the first frame.
 */
#include "host/filter/formats.h"

/* Reads "[BUILD-ID]@0xSTART+0xOFFSET" into @ret. */
static bool read_place(struct fathom_log_line line, struct fathom_log_number *ret)
{
	const char *id;
	uint64_t start;

	if (!fathom_line_find(&line, "["))
		return false;
	id = ++line.at;
	while (line.at < line.end && fathom_hex_digit(*line.at) < 16)
		line.at++;
	ret->build_id = fathom_log_text(id, line.at);
	if (line.at == id || !fathom_line_take(&line, "]@") ||
	    !fathom_line_take_0x(&line, &start) || !fathom_line_take(&line, "+"))
		return false;
	ret->at = line.at;
	if (!fathom_line_take_0x(&line, &ret->value))
		return false;
	ret->size = (size_t)(line.at - ret->at);
	ret->live = start + ret->value;
	return true;
}

bool fathom_log_read_eu_stack(struct fathom_log_scan *s, struct fathom_log_line line)
{
	struct fathom_log_number n = { .kind = FATHOM_LOG_LOWERED,
				       .base = FATHOM_LOG_FIRST_MAPPING };
	struct fathom_log_frame frame;

	if (read_place(line, &n)) {
		n.module = s->path;
		fathom_log_add(s, &n);
		return true;
	}
	if (!fathom_log_take_frame(&line, &frame) || !fathom_line_find_last(&line, " - /"))
		return false;
	line.at += strlen(" - ");
	s->path = fathom_log_text(line.at, line.end);
	return true;
}
