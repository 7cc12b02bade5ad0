/* SPDX-License-Identifier: MIT */
/*
 * Frames of AddressSanitizer, ThreadSanitizer and their kin without a symbolizer, as the default of
 * their option stack_trace_format has them (SanitizerCommonFlags):
 *
 *	    #1 0x7fe3ebd927db  (libfoo.so+0x27db) (BuildId: 17ed...)
 *	    #1 0x7fe3ebd927db in foo (/usr/lib/libfoo.so+0x27db)
 *	    #2 foo(int) <null> (libfoo.so+0x27db)
 *
 * The number after the module is the stated address. It has been lowered already, but that of the
 * first frame of a report about a signal, which is exact: its header has "(pc 0x...". A line that
 * begins with "SUMMARY:" has the place of the first frame again.
 */
#include "host/filter/formats.h"

/* Goes to after the head of a frame of ThreadSanitizer's: "#2 NAME <null>". */
static bool take_unnamed(struct fathom_log_line *l, uint32_t *ret_number)
{
	while (fathom_line_find(l, "#")) {
		l->at++;
		if (!fathom_line_take_decimal(l, ret_number))
			continue;
		/* Without one after this number, there is none after a later one. */
		if (!fathom_line_find(l, " <null> ("))
			return false;
		l->at += strlen(" <null> ") - 1;
		return true;
	}
	return false;
}

/*
 * Reads what follows the tool's name in the header of a report: "(pc 0x..." of a signal is exact,
 * "at pc 0x..." of other errors is the return address of the call that reports them.
 */
static bool read_header(struct fathom_log_scan *s, struct fathom_log_line line)
{
	struct fathom_log_number n = { .base = FATHOM_LOG_LIVE, .is_any = true };
	struct fathom_log_line pc = line;

	if (fathom_line_find(&pc, "(pc 0x"))
		s->is_of_signal = n.is_counter = true;
	else if (pc = line, fathom_line_find(&pc, " at pc 0x"))
		n.kind = FATHOM_LOG_RETURN;
	else
		return false;
	(void)fathom_line_find(&pc, "0x");
	n.at = pc.at;
	if (fathom_line_take_0x(&pc, &n.value)) {
		(void)fathom_log_read_number(s, (struct fathom_log_line){ line.at, n.at });
		n.size = (size_t)(pc.at - n.at);
		fathom_log_add(s, &n);
		(void)fathom_log_read_number(s, pc);
	}
	return true;
}

bool fathom_log_read_sanitizer(struct fathom_log_scan *s, struct fathom_log_line line)
{
	struct fathom_log_number n = { .kind = FATHOM_LOG_LOWERED, .base = FATHOM_LOG_STATED };
	struct fathom_log_line header = line;
	struct fathom_log_frame frame;

	if (fathom_line_find(&header, "ERROR: ") && fathom_line_find(&header, "Sanitizer: ") &&
	    read_header(s, header))
		return true;
	header = line;
	if (fathom_line_find(&header, "SUMMARY: ")) {
		n.kind = FATHOM_LOG_EXACT;
		if (!fathom_log_take_place(&header, "+0x", &n))
			return false;
		fathom_log_take_build_id(header, &n);
		fathom_log_add(s, &n);
		return true;
	}
	header = line;
	if (fathom_log_take_frame(&line, &frame)) {
		if (!fathom_line_take(&line, " in ") && !fathom_line_take(&line, "  "))
			return false;
	} else if (take_unnamed(&header, &frame.number)) {
		frame.pc = 0;
		line = header;
	} else {
		return false;
	}
	if (!fathom_log_take_place(&line, "+0x", &n))
		return false;
	n.live = frame.pc;
	n.frame = frame.pc ? frame.number + 1 : 0;
	if (!frame.number && s->is_of_signal)
		n.kind = FATHOM_LOG_EXACT;
	s->is_of_signal = false;
	fathom_log_take_build_id(line, &n);
	fathom_log_add(s, &n);
	return true;
}
