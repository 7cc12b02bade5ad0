/* SPDX-License-Identifier: MIT */
/*
 * The kernel's lines about programs that it ends by a signal (arch/x86/mm/fault.c:
 * show_signal_msg(), kernel/traps.c, print_vma_addr() of mm/memory.c), each in one line:
 *
 *	prog[30561]: segfault at 8 ip 00007fcf3d306171 sp 00007fff1bdd1380 error 6
 *		in libfoo.so[1171,7fcf3d306000+1000]
 *	traps: prog[3] trap invalid opcode ip:7f872a29223f sp:7ffc681dfaf0 error:0
 *		in libfoo.so[123f,7f872a292000+1000]
 *
 * The first number in brackets counts from the start of the file and is exact. Kernels before 6.7
 * have the mapping alone: the instruction counts from that, if it is the whole of the code.
 */
#include "host/filter/formats.h"

/* Takes the instruction pointer, after " ip " or " ip:". */
static bool take_ip(struct fathom_log_line *l, struct fathom_log_number *ret)
{
	while (fathom_line_find(l, " ip")) {
		l->at += strlen(" ip");
		if (!fathom_line_take(l, " ") && !fathom_line_take(l, ":"))
			continue;
		ret->at = l->at;
		if (!fathom_line_take_hex(l, &ret->value))
			continue;
		ret->size = (size_t)(l->at - ret->at);
		return true;
	}
	return false;
}

bool fathom_log_read_segfault(struct fathom_log_scan *s, struct fathom_log_line line)
{
	struct fathom_log_number n = { .kind = FATHOM_LOG_EXACT, .base = FATHOM_LOG_CODE_MAPPING };
	struct fathom_log_line l;
	const char *first_at;
	uint64_t first;
	uint64_t start;
	uint64_t size;

	if (!take_ip(&line, &n))
		return false;
	fathom_log_note_counter(s, NULL);
	if (!fathom_line_find(&line, " in "))
		return false;
	line.at += strlen(" in ");
	l = line;
	if (!fathom_line_find(&l, "["))
		return false;
	n.module = fathom_log_text(line.at, l.at);
	first_at = ++l.at;
	if (!fathom_line_take_hex(&l, &first))
		return false;
	start = first;
	if (fathom_line_take(&l, ",")) {
		n.live = n.value;
		n.value = first;
		n.at = first_at;
		n.size = (size_t)(l.at - 1 - first_at);
		n.base = FATHOM_LOG_FILE_OFFSET;
		if (!fathom_line_take_hex(&l, &start))
			return false;
	} else {
		if (n.value < start)
			return false;
		n.raised = 0 - start;
	}
	if (!fathom_line_take(&l, "+") || !fathom_line_take_hex(&l, &size) ||
	    !fathom_line_take(&l, "]") || !n.module.size)
		return false;
	n.mapping_size = size;
	fathom_log_add(s, &n);
	s->counter.number = n;
	s->counter.index = s->numbers.n - 1;
	s->counter.is_known = true;
	return true;
}
