/* SPDX-License-Identifier: MIT */
/*
 * The place of the address of a fault: siginfo_t's si_addr (sigaction(2)) beside the memory map.
 * The kernel says why it refused: there is no mapping (SEGV_MAPERR), the mapping does not permit it
 * (SEGV_ACCERR), or the mapped file has nothing there (BUS_ADRERR). Where the map says otherwise it
 * is another than it was then, and nothing is said.
 */
#include <signal.h>

#include "host/death/access.h"
#include "host/file/maps.h"
#include "host/space/user/space.h"

/* Addresses below are not mapped for any program: mmap_min_addr, as distributions set it. */
#define NULL_END 65536
/* Bytes below the stack pointer that functions reach at most before they move it. */
#define REACH 65536

/* A fault being looked at. */
struct fault {
	const struct fathom_death_work *w;
	const struct fathom_thread *t;
	const struct fathom_death_point *point;
	const struct fathom_maps *maps;
	struct fathom_death *d;
	uint64_t address;
};

/* Returns whether a stack frame of @t that is no guess lies in [@start, @end). */
static bool has_frame(const struct fathom_thread *t, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < t->n_frames && t->frames[i].trust <= FATHOM_TRUST_SIGNAL; i++)
		if (t->frames[i].sp >= start && t->frames[i].sp < end)
			return true;
	return false;
}

/* Returns the only thread with frames in mapping @m; NULL: none, or several. */
static const struct fathom_thread *find_owner(const struct fault *f, const struct fathom_mapping *m)
{
	const struct fathom_thread *owner = NULL;

	for (size_t i = 0; i < f->w->n; i++) {
		if (!has_frame(&f->w->threads[i], m->start, m->end))
			continue;
		if (owner)
			return NULL;
		owner = &f->w->threads[i];
	}
	return owner;
}

/*
 * Returns whether the address is below the stack in mapping @m because the thread has used all of
 * it: its stack pointer has come to the end, and the address is not far from it.
 */
static bool is_overflow(const struct fault *f, const struct fathom_mapping *m)
{
	const size_t i = f->point->frame;
	const uint64_t sp = i < f->t->n_frames ? f->t->frames[i].sp : FATHOM_NO_ADDRESS;

	return sp != FATHOM_NO_ADDRESS && f->address < m->start && sp < m->start + REACH &&
	       f->address + REACH >= sp && has_frame(f->t, m->start, m->end);
}

/* Sets that the address is below the stack in mapping @m, if it is. */
static bool set_stack(const struct fault *f, const struct fathom_mapping *m)
{
	const struct fathom_thread *owner = find_owner(f, m);

	if (!owner)
		return false;
	f->d->stack_tid = owner->tid;
	f->d->fault_place = owner == f->t && is_overflow(f, m) ? FATHOM_FAULT_STACK_OVERFLOW
							       : FATHOM_FAULT_STACK_GUARD;
	return true;
}

/* Sets the place of an address that no mapping holds. */
static void set_unmapped(const struct fault *f)
{
	const struct fathom_maps *maps = f->maps;
	const size_t above = FATHOM_BISECT(maps->n, i, maps->items[i].start <= f->address);

	if (f->address < NULL_END)
		f->d->fault_place = FATHOM_FAULT_NULL;
	else if (above < maps->n && is_overflow(f, &maps->items[above]) &&
		 set_stack(f, &maps->items[above]))
		return;
	else
		f->d->fault_place = FATHOM_FAULT_UNMAPPED;
}

/* Sets the file of mapping @m; FATHOM_E_MEMORY. */
static fathom_err set_file(const struct fault *f, const struct fathom_mapping *m)
{
	if (!m->inode || !m->name.size)
		return FATHOM_OK;
	f->d->file = fathom_arena_strdup(f->w->arena, m->name);
	f->d->file_offset = m->off + (f->address - m->start);
	return f->d->file ? FATHOM_OK : FATHOM_E_MEMORY;
}

/* Sets why mapping number @i does not permit the access. */
static fathom_err set_refused(const struct fault *f, size_t i)
{
	const struct fathom_mapping *m = &f->maps->items[i];
	const struct fathom_mapping *next = i + 1 < f->maps->n ? m + 1 : NULL;

	if (!fathom_mapping_is_usable(m)) {
		if (next && next->start == m->end && next->writable && set_stack(f, next))
			return FATHOM_OK;
		f->d->fault_place = FATHOM_FAULT_NO_ACCESS;
	} else if (f->d->fault_access == FATHOM_ACCESS_EXECUTE && !m->executable) {
		f->d->fault_place = FATHOM_FAULT_NOT_EXECUTABLE;
	} else if ((f->d->fault_access == FATHOM_ACCESS_UNKNOWN ||
		    f->d->fault_access == FATHOM_ACCESS_WRITE) &&
		   m->readable && !m->writable) {
		f->d->fault_place = FATHOM_FAULT_NOT_WRITABLE;
		f->d->fault_access = FATHOM_ACCESS_WRITE;
	}
	return f->d->fault_place ? set_file(f, m) : FATHOM_OK;
}

/* Sets the place of the address, which mapping number @i holds, or none if that is their number. */
static fathom_err set_place(const struct fault *f, size_t i)
{
	const bool is_mapped = i < f->maps->n;

	if (f->t->signal == SIGSEGV && f->t->signal_code == SEGV_MAPERR && !is_mapped)
		set_unmapped(f);
	if (f->t->signal == SIGSEGV && f->t->signal_code == SEGV_ACCERR && is_mapped)
		return set_refused(f, i);
	if (f->t->signal == SIGBUS && f->t->signal_code == BUS_ADRERR && is_mapped &&
	    f->maps->items[i].inode) {
		f->d->fault_place = FATHOM_FAULT_PAST_END;
		return set_file(f, &f->maps->items[i]);
	}
	return FATHOM_OK;
}

/* Sets the address of a general protection fault if the instruction tells it. */
static void set_general(const struct fault *f)
{
	enum fathom_access access;

	f->d->fault_place = FATHOM_FAULT_NO_ADDRESS;
	if (!fathom_access_find_wild(f->w, f->t, f->point, &f->d->fault_address, &access))
		return;
	f->d->fault_place = FATHOM_FAULT_NOT_CANONICAL;
	f->d->fault_access = (uint8_t)access;
}

fathom_err fathom_death_fault(struct fathom_death_work *w, const struct fathom_thread *t,
			      const struct fathom_death_point *p, struct fathom_death *d)
{
	struct fault f = { .w = w, .t = t, .point = p, .d = d, .address = t->fault_address };
	enum fathom_access access;
	const bool is_x86 = w->layout.machine == EM_X86_64 || w->layout.machine == EM_386;

	d->fault_address = FATHOM_NO_ADDRESS;
	if (t->signal == SIGSEGV && t->signal_code == SI_KERNEL && is_x86)
		set_general(&f);
	if ((t->signal != SIGSEGV && t->signal != SIGBUS) || f.address == FATHOM_NO_ADDRESS)
		return FATHOM_OK;
	d->fault_address = f.address;
	/* An instruction that cannot be fetched: the pc is the address. */
	if (p->frame < t->n_frames && t->frames[p->frame].pc.address == f.address)
		d->fault_access = FATHOM_ACCESS_EXECUTE;
	else if (fathom_access_find(w, t, p, f.address, &access))
		d->fault_access = (uint8_t)access;
	f.maps = fathom_space_maps(w->view);
	return f.maps ? set_place(&f, fathom_maps_at(f.maps, f.address)) : FATHOM_OK;
}
