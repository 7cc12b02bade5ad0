/* SPDX-License-Identifier: MIT */
/*
 * The fault whose handler a thread runs. Above the handler's stack frame lies the kernel's signal
 * frame, with the registers of the instruction that faulted and the siginfo_t (sigaction(2)).
 *
 * The kernel writes the siginfo_t only if the handler has SA_SIGINFO, and nothing in memory says
 * so: without it, these bytes are what the stack held before, perhaps that of an earlier signal.
 * So a fault is believed only if the interrupted instruction explains it: it is at the address of
 * the siginfo_t, or accesses it.
 *
 * Not handled: handlers without SA_SIGINFO; accesses of instructions of other machines than x86-64.
 */
#include <signal.h>

#include "host/death/access.h"
#include "host/space/user/prstatus.h"
#include "safe/unwind/step.h"

/* Bytes of a siginfo_t up to the end of si_addr. */
#define SIGINFO_SIZE(word) ((word) == 8 ? 24 : 16)

/* Returns the index of the first signal trampoline from frame @from on; n_frames: none. */
static size_t find_trampoline(const struct fathom_thread *t, size_t from)
{
	size_t i = from;

	while (i < t->n_frames && !t->frames[i].is_signal_return)
		i++;
	return i;
}

bool fathom_death_has_handler(const struct fathom_thread *t)
{
	return find_trampoline(t, 0) < t->n_frames;
}

/* Returns whether the frames up to @end are one after the other, and none is a guess. */
static bool is_certain(const struct fathom_thread *t, size_t end)
{
	if (end >= t->n_frames || (t->n_left_out && t->left_out_at <= end))
		return false;
	for (size_t i = 0; i <= end; i++)
		if (t->frames[i].trust > FATHOM_TRUST_SIGNAL)
			return false;
	return true;
}

/*
 * Reads the signal frame to which trampoline @i of @t leads: @r becomes the registers that were
 * interrupted. Returns false if it is not there, or not the one that led to the next frame.
 */
static bool read_frame(const struct fathom_death_work *w, const struct fathom_thread *t, size_t i,
		       struct fathom_registers *r, struct fathom_thread_signal *ret)
{
	const struct fathom_unwind_arch *arch = fathom_unwind_arch(w->layout.machine);
	const struct fathom_step_memory m = { &w->view->memory, &w->view->memory, w->layout.swap };
	const struct fathom_stack_frame *f = &t->frames[i];
	uint8_t bytes[SIGINFO_SIZE(8)];
	uint64_t at;
	bool is;

	if (!arch || f->sp == FATHOM_NO_ADDRESS)
		return false;
	*r = (struct fathom_registers){ .machine = w->layout.machine,
					.pc = f->pc.address,
					.sp = f->sp };
	fathom_register_set(r, arch->pc, f->pc.address);
	fathom_register_set(r, arch->sp, f->sp);
	if (!fathom_step_siginfo(arch, &m, r, &at) ||
	    !fathom_reader_read(&w->view->memory, at, bytes, SIGINFO_SIZE(w->layout.word)) ||
	    fathom_step_signal(arch, &m, r, &is) != FATHOM_STOP_NONE)
		return false;
	*ret = fathom_siginfo_read(w->layout.word, w->layout.swap,
				   (struct fathom_bytes){ bytes, SIGINFO_SIZE(w->layout.word) });
	return r->pc == f[1].pc.address && r->sp == f[1].sp;
}

/* Returns whether the instruction of @t at @p raises @s. */
static bool is_explained(const struct fathom_death_work *w, const struct fathom_thread *t,
			 const struct fathom_death_point *p, const struct fathom_thread_signal *s)
{
	const uint64_t pc = t->frames[p->frame].pc.address;
	enum fathom_access access;
	uint64_t unused;

	if (s->code <= 0)
		return false;
	if (s->number == SIGSEGV && s->code == SI_KERNEL)
		return fathom_access_find_wild(w, t, p, &unused, &access);
	if (s->number == SIGFPE || s->number == SIGILL)
		return s->address == pc;
	return (s->number == SIGSEGV || s->number == SIGBUS) && s->address != FATHOM_NO_ADDRESS &&
	       (s->address == pc || fathom_access_find(w, t, p, s->address, &access));
}

bool fathom_death_find_handled(const struct fathom_death_work *w, struct fathom_thread *t,
			       struct fathom_registers *r, struct fathom_death_point *ret)
{
	const struct fathom_unwind_arch *arch = fathom_unwind_arch(w->layout.machine);
	struct fathom_thread_signal s;

	for (size_t i = find_trampoline(t, 0); arch && is_certain(t, i + 1);
	     i = find_trampoline(t, i + 1)) {
		struct fathom_death_point p = { .frame = i + 1 };

		if (!read_frame(w, t, i, r, &s))
			return false;
		p.registers =
			(struct fathom_thread_registers){ r->value, r->known, arch->n, r->machine };
		if (!is_explained(w, t, &p, &s))
			continue;
		t->signal = s.number;
		t->signal_code = s.code;
		t->fault_address = s.address;
		*ret = p;
		return true;
	}
	return false;
}
