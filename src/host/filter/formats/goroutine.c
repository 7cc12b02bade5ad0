/* SPDX-License-Identifier: MIT */
/*
 * Go's runtime about a program that dies (runtime/traceback.go, signal_unix.go), with
 * GOTRACEBACK=system or crash also where each frame is, and frames of C, which it cannot name:
 *
 *	[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x481220]
 *	PC=0x45ef21 m=0 sigcode=0
 *		/src/x.go:18 +0x59 fp=0xc00006af08 sp=0xc00006aef0 pc=0x481299
 *	non-Go function at pc=0x4f1c20
 *	non-Go function
 *		pc=0x4f1c20
 *
 * The numbers are live. That of the signal is exact, also where its frame has it again; the others
 * are return addresses. Those of C come from a library of the program's, which may have lowered
 * them. Lines without a pc have names already.
 */
#include "host/filter/formats.h"

/* Adds @n, the number at the start of @line. */
static bool add(struct fathom_log_scan *s, struct fathom_log_line line, struct fathom_log_number *n)
{
	n->base = FATHOM_LOG_LIVE;
	n->at = line.at;
	if (!fathom_line_take_0x(&line, &n->value))
		return false;
	n->size = (size_t)(line.at - n->at);
	fathom_log_add(s, n);
	return true;
}

/* Reads where a signal was. */
static bool read_signal(struct fathom_log_scan *s, struct fathom_log_line line)
{
	struct fathom_log_number n = { .kind = FATHOM_LOG_EXACT, .is_counter = true };
	struct fathom_log_line pc = line;
	struct fathom_log_line after;

	if (!fathom_line_find(&pc, "[signal SIG") || !fathom_line_find(&pc, " pc=0x")) {
		pc = line;
		if (!fathom_line_find(&pc, "PC=0x"))
			return false;
		after = pc;
		if (!fathom_line_find(&after, " m=") || !fathom_line_find(&after, " sigcode="))
			return false;
	}
	(void)fathom_line_find(&pc, "0x");
	if (!add(s, pc, &n))
		return false;
	s->go_signal_pc = n.value;
	return true;
}

/* Finds the number of a frame; sets @ret_is_c if it is of C. */
static bool find_frame(struct fathom_log_line *l, bool *ret_is_c)
{
	static const char *const words[] = { "non-Go function at pc=", "\tpc=" };
	struct fathom_log_line frame = *l;
	uint64_t value;

	*ret_is_c = false;
	if (fathom_line_find(&frame, " fp=0x") && fathom_line_find(&frame, " sp=0x") &&
	    fathom_line_find(&frame, " pc=0x")) {
		l->at = frame.at + strlen(" pc=");
		return true;
	}
	*ret_is_c = true;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		frame = *l;
		if (!fathom_line_find(&frame, words[i]))
			continue;
		frame.at += strlen(words[i]);
		l->at = frame.at;
		return fathom_line_take_0x(&frame, &value) && frame.at == frame.end;
	}
	return false;
}

bool fathom_log_read_go(struct fathom_log_scan *s, struct fathom_log_line line)
{
	struct fathom_log_number n = { .kind = FATHOM_LOG_RETURN };
	struct fathom_log_line pc = line;
	struct fathom_log_line rest;

	if (read_signal(s, line))
		return true;
	if (!find_frame(&pc, &n.is_doubtful))
		return false;
	rest = pc;
	if (fathom_line_take_0x(&rest, &n.value) && n.value == s->go_signal_pc)
		n.kind = FATHOM_LOG_EXACT;
	return add(s, pc, &n);
}
