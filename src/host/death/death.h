/* SPDX-License-Identifier: MIT */
/*
 * Why threads died, as memory says beside their stacks (fathom/death.h). The parts:
 *
 *	library_frames.c   the functions of the C and C++ libraries that a stack goes through
 *	abort_message.c    the text that glibc wrote before it called abort()
 *	eh_globals.c       the place where the C++ library keeps a thread's exceptions
 *	exception.c        the exception of a thread: its type, and its text (safe/cxx)
 *	fault_place.c      the mapping at the address of a fault
 *	access.c           whether the instruction reads or writes it
 *	handled_fault.c    the fault whose handler a thread runs
 *
 * A core may hold any bytes: each pointer is checked before it is believed, and what is not proven
 * stays absent.
 */
#ifndef FATHOM_DEATH_DEATH_H
#define FATHOM_DEATH_DEATH_H

#include "fathom/death.h"
#include "fathom/stack.h"
#include "host/base/memory.h"
#include "host/runtime/runtime.h"
#include "host/space/target.h"

/* The stacks of a target whose dying threads are looked at. */
struct fathom_death_work {
	struct fathom_view *view;
	struct fathom_arena *arena; /* of what is found */
	struct fathom_thread *threads;
	size_t n;
	bool is_all; /* these are all threads of the process */
	bool no_demangle;
	/* set by fathom_death_read() */
	struct fathom_layout layout;
	struct fathom_budget budget;
	struct fathom_runtime runtime; /* if has_runtime */
	bool has_runtime;
	bool is_complete; /* all modules are in runtime */
};

/* The instruction at which a thread faulted. */
struct fathom_death_point {
	struct fathom_thread_registers registers;
	size_t frame; /* index */
};

/*
 * Sets `died` of the threads of @w that die, whose frames are named. FATHOM_E_MEMORY; what does not
 * fit the memory budget is absent.
 */
fathom_err fathom_death_read(struct fathom_death_work *w);

/* Reads the modules and what the dynamic linker knows of them, once. FATHOM_E_MEMORY. */
fathom_err fathom_death_runtime(struct fathom_death_work *w);

/* Sets the abort message of @t, whose answer is @d. FATHOM_E_MEMORY. */
fathom_err fathom_death_abort_message(struct fathom_death_work *w, const struct fathom_thread *t,
				      struct fathom_death *d);

/* Sets the exception of @t. FATHOM_E_MEMORY. */
fathom_err fathom_death_exception(struct fathom_death_work *w, const struct fathom_thread *t,
				  struct fathom_death *d);

/* Sets the fault of @t, which was at @p. FATHOM_E_MEMORY. */
fathom_err fathom_death_fault(struct fathom_death_work *w, const struct fathom_thread *t,
			      const struct fathom_death_point *p, struct fathom_death *d);

/* Returns whether the stack of @t leads through a signal trampoline. */
bool fathom_death_has_handler(const struct fathom_thread *t);

/*
 * Finds the fault whose handler @t runs, the innermost one: sets the signal of @t, *@ret, and @r,
 * which *@ret points to. Returns false if there is none, or it is not proven.
 */
bool fathom_death_find_handled(const struct fathom_death_work *w, struct fathom_thread *t,
			       struct fathom_registers *r, struct fathom_death_point *ret);

static inline bool fathom_death_word(const struct fathom_death_work *w, uint64_t avma,
				     uint64_t *ret)
{
	return fathom_reader_uint(&w->view->memory, avma, w->layout.word, w->layout.swap, ret);
}

/*
 * Reads the text at @avma, at most @most bytes, into the arena. Returns NULL if it cannot be read
 * to its end or to @most bytes, which sets *@ret_cut; *@ret_err is set without memory.
 */
char *fathom_death_text(const struct fathom_death_work *w, uint64_t avma, size_t most,
			bool *ret_cut, fathom_err *ret_err);

#endif
