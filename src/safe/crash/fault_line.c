/* SPDX-License-Identifier: MIT */
/*
 * The place of the address of a fault. The rules are those of host/death/fault_place.c, for one
 * thread in its own handler: the kernel says why it refused (sigaction(2), si_code), and the memory
 * map of now has to agree. On x86-64 the error code of the page fault says how the memory was
 * accessed. Of other threads the stack pointers are known if they sleep.
 */
#define _GNU_SOURCE
#include "safe/crash/fault_line.h"

#include <string.h>

#include "fathom/death.h"
#include "safe/base/own_thread.h"
#include "safe/crash/cause.h"
#include "safe/crash/own_maps.h"
#include "safe/self/own_context.h"

/* Addresses below are not mapped for any program: mmap_min_addr, as distributions set it. */
#define NULL_END 65536
/* Bytes below the stack pointer that functions reach at most before they move it. */
#define REACH 65536

/* A fault being looked at. */
struct fault {
	uint64_t address;
	uint64_t sp; /* of the thread */
	enum fathom_access access;
	enum fathom_fault_place place;
	int32_t stack_tid;
	struct fathom_own_mapping holder; /* of the address; end 0: none */
	struct fathom_own_mapping above;  /* the next one */
};

/* Returns whether the thread has used all of the stack in the mapping above the address. */
static bool is_overflow(const struct fault *f)
{
	/* Nothing but the main thread's stack has this name, and it has no guard of its own. */
	const bool is_main = memcmp(f->above.path, "[stack]", sizeof "[stack]") == 0;
	uint64_t least = f->above.start;

	/* The stack pointer may be below the stack already. */
	if (f->holder.end)
		least = f->holder.start;
	else if (is_main)
		least = f->above.start - REACH;
	return f->above.writable && f->sp >= least && f->sp < f->above.start + REACH &&
	       f->address + REACH >= f->sp;
}

static void set_overflow(struct fault *f)
{
	f->place = FATHOM_FAULT_STACK_OVERFLOW;
	f->stack_tid = fathom_own_tid();
}

/* Sets whose stack the guard that holds the address is below, if it is one. */
static bool set_guard(struct fault *f)
{
	const struct fathom_own_mapping *above = &f->above;
	const bool is_own = f->sp >= above->start && f->sp < above->end;
	int32_t other;

	if (!above->writable || above->start != f->holder.end)
		return false;
	other = fathom_own_thread_in(above->start, above->end, fathom_own_tid());
	if (is_overflow(f) && !other) {
		set_overflow(f);
		return true;
	}
	if (is_own == (other != 0))
		return false;
	f->place = FATHOM_FAULT_STACK_GUARD;
	f->stack_tid = is_own ? fathom_own_tid() : other;
	return true;
}

/* Sets why the mapping that holds the address does not permit the access. */
static void set_refused(struct fault *f)
{
	const struct fathom_own_mapping *m = &f->holder;

	if (!m->readable && !m->writable && !m->executable) {
		if (!set_guard(f))
			f->place = FATHOM_FAULT_NO_ACCESS;
	} else if (f->access == FATHOM_ACCESS_EXECUTE && !m->executable) {
		f->place = FATHOM_FAULT_NOT_EXECUTABLE;
	} else if ((f->access == FATHOM_ACCESS_UNKNOWN || f->access == FATHOM_ACCESS_WRITE) &&
		   m->readable && !m->writable) {
		f->place = FATHOM_FAULT_NOT_WRITABLE;
		f->access = FATHOM_ACCESS_WRITE;
	}
}

static void set_place(struct fault *f, int number, int code)
{
	if (number == SIGSEGV && code == SEGV_MAPERR && !f->holder.end) {
		if (f->address < NULL_END)
			f->place = FATHOM_FAULT_NULL;
		else if (is_overflow(f))
			set_overflow(f);
		else
			f->place = FATHOM_FAULT_UNMAPPED;
	}
	if (number == SIGSEGV && code == SEGV_ACCERR && f->holder.end)
		set_refused(f);
	if (number == SIGBUS && code == BUS_ADRERR && f->holder.end && f->holder.inode)
		f->place = FATHOM_FAULT_PAST_END;
}

static const char *access_words(enum fathom_access access)
{
	static const char *const words[] = { "access to", "read of", "write to", "jump to" };

	return words[access];
}

/* The words of the places; those of stacks take a thread. */
static const char *const places[] = {
	[FATHOM_FAULT_NULL] = "null",
	[FATHOM_FAULT_UNMAPPED] = "not mapped",
	[FATHOM_FAULT_STACK_OVERFLOW] = "stack overflow of thread %d",
	[FATHOM_FAULT_STACK_GUARD] = "below the stack of thread %d",
	[FATHOM_FAULT_NO_ACCESS] = "no access permitted",
	[FATHOM_FAULT_NOT_WRITABLE] = "no write permission",
	[FATHOM_FAULT_NOT_EXECUTABLE] = "no execute permission",
	[FATHOM_FAULT_PAST_END] = "no data there: the file was cut, or could not be read",
};

static void add_line(struct fathom_report_sink *s, const struct fault *f)
{
	const bool is_stack =
		f->place == FATHOM_FAULT_STACK_OVERFLOW || f->place == FATHOM_FAULT_STACK_GUARD;

	fathom_sink_add(s, "    fault: %s 0x%llx (", access_words(f->access),
			(unsigned long long)f->address);
	if (is_stack)
		fathom_sink_add(s, places[f->place], f->stack_tid);
	else
		fathom_sink_add(s, "%s", places[f->place]);
	if (f->place == FATHOM_FAULT_NULL && f->address)
		fathom_sink_add(s, " + 0x%llx", (unsigned long long)f->address);
	if (!is_stack && f->holder.end && f->holder.inode && f->holder.path[0])
		fathom_sink_add(
			s, ": %s + 0x%llx", f->holder.path,
			(unsigned long long)(f->holder.off + (f->address - f->holder.start)));
	fathom_sink_add(s, ")\n");
}

void fathom_crash_add_fault(struct fathom_report_sink *s, const struct fathom_crash_event *e,
			    const struct fathom_registers *r)
{
	struct fault f;

	if ((e->number != SIGSEGV && e->number != SIGBUS) ||
	    !fathom_cause_is_fault(e->number, e->info->si_code))
		return;
	f.address = (uintptr_t)e->info->si_addr;
	f.sp = r->sp;
	f.access = fathom_own_context_access(e->context);
	f.place = FATHOM_FAULT_NONE;
	f.stack_tid = 0;
	if (fathom_own_maps_find(f.address, &f.holder, &f.above))
		set_place(&f, e->number, e->info->si_code);
	if (f.place != FATHOM_FAULT_NONE)
		add_line(s, &f);
}
