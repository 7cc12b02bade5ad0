/* SPDX-License-Identifier: MIT */
/*
 * A traced program, from exec() on, and its processes: exec() starts a program, fork() and its like
 * add processes to it, which share its rings and have the same things at the same addresses.
 */
#ifndef FATHOM_TRACE_PROGRAM_H
#define FATHOM_TRACE_PROGRAM_H

#include <sys/ptrace.h>

#include "host/base/array.h"
#include "host/file/maps.h"
#include "host/trace/runtime_maps.h"
#include "host/patch/tracee_text.h"
#include "host/trace/program_memory.h"
#include "host/tracer/tracee.h"
#include "host/trampoline/trampoline.h"
#include "safe/trace/syscall_ring.h"

/* How this process is told of threads: if it ends, the program runs on. */
#define FATHOM_TRACED_OPTIONS                                                                     \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | \
	 PTRACE_O_TRACEEXEC)

/* Of these, how it is told of processes that they make. */
#define FATHOM_CHILD_OPTIONS (PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK)

/* Copies of hooks that have room in one reserve. */
#define FATHOM_TRAMPOLINE_SLOTS 512

/* Stubs that have room in one reserve, their bytes, and how many of them, the first, have words. */
#define FATHOM_TRAMPOLINE_STUBS 65536
#define FATHOM_STUB_SIZE        16
#define FATHOM_TRAMPOLINE_WORDS 16384

/*
 * Memory within reach of modules: code, which is copies of the hook and stubs, then stubs' words.
 */
struct fathom_reserve {
	struct fathom_trampoline_pool code;       /* without the words */
	uint8_t is_used[FATHOM_TRAMPOLINE_SLOTS]; /* by a module that is loaded */
};

/* A module that was looked at. */
struct fathom_loaded_module {
	uint64_t bias;
	uint64_t name;                 /* hash */
	uint64_t slot;                 /* avma of its copy of the hook; 0: none */
	uint64_t own_slot;             /* of that for calls of its own */
	bool is_seen;                  /* at the last look */
	struct fathom_text_plan *plan; /* of its text; NULL: none */
	struct fathom_hooked *hooked;  /* its slots that lead to stubs; NULL: none */
	uint64_t n_places;             /* of it, that lead to the runtime */
};

struct fathom_traced {
	long options; /* how its threads are traced; 0: FATHOM_TRACED_OPTIONS */
	pid_t shares; /* the process whose memory it uses (vfork()); 0: its own */
	struct fathom_program *program;
	struct fathom_tracee tracee; /* its pid and memory */
	uint32_t number;
	uint32_t n_ended;               /* programs that it has run before */
	struct fathom_text_plan *watch; /* by which the dynamic linker reports what it loads */
	bool is_silent;                 /* nothing of it is told */
	bool is_filtered;               /* it has filters of its own (seccomp(2)) */
	bool has_looked;                /* at what is loaded */
	bool wants_calls;               /* of libraries: its program has no sites */
	bool has_slots;                 /* that lead to stubs */
	bool is_attached;               /* while it ran */
	bool goes_by_thread;            /* tracee.pid is a thread: the first one has ended */
	bool was_traced;   /* by someone who was killed, and has left its text changed */
	uint64_t n_healed; /* places that led to the runtime of one who was killed */
	struct fathom_runtime_maps mapped;     /* what was mapped for the runtime */
	struct fathom_runtime_lists others;    /* what tracers have left that were killed */
	struct fathom_stopped_process *stacks; /* what reading stacks has found out; or NULL */
	struct fathom_reserve reserves[2];
	struct {
		FATHOM_ARRAY_OF(struct fathom_loaded_module);
	} modules;
};

/*
 * Puts the runtime into @p, whose thread @tid is stopped where exec() has returned: its first
 * instruction was not run yet. @plans: of the system calls that it records; NULL: none. Registers
 * and text are as before. FATHOM_E_OS says which call the program could not make.
 */
fathom_err fathom_program_begin(struct fathom_traced *p, pid_t tid, uint32_t number,
				const struct fathom_trace_plans *plans,
				struct fathom_liveness *liveness, struct fathom_errinfo *reterr);

/*
 * Puts the runtime into @p, which has @maps, whose threads are all stopped; @tid makes the system
 * calls for that, and goes on where it was. Also FATHOM_E_UNSUPPORTED where no code calls the
 * kernel.
 */
fathom_err fathom_program_attach(struct fathom_traced *p, pid_t tid, uint32_t number,
				 const struct fathom_maps *maps, struct fathom_liveness *liveness,
				 struct fathom_errinfo *reterr);

/* Returns whether a process with @maps still has a runtime whose reader was killed. */
bool fathom_program_was_traced(const struct fathom_maps *maps);

/* Returns whether the dynamic linker reports what it loads. */
static inline bool fathom_program_is_watched(const struct fathom_traced *p)
{
	return p->watch && p->watch->n;
}

/* Returns whether @avma is in code of the runtime, or a copy of a hook, also of others. */
bool fathom_program_is_inside(const struct fathom_traced *p, uint64_t avma);
/*
 * Takes their blocks from the @n threads @tids of @p, which are stopped outside of the runtime, but
 * for those that a handler of a signal interrupts inside: they go on by their blocks. The first of
 * @tids, which it sorts, is best to make calls.
 */
void fathom_program_take_blocks(const struct fathom_traced *p, pid_t *tids, size_t n,
				const struct fathom_maps *maps);
/*
 * Unmaps the runtime of @p, which has only the @n threads @tids; none of them comes back to it,
 * unless to words of it, which stay with @keeps_words.
 */
void fathom_program_unmap(struct fathom_traced *p, const pid_t *tids, size_t n,
			  const struct fathom_maps *maps, bool keeps_words);
/* Tells the runtime that nobody reads any more, and that nothing leads to it from now on. */
void fathom_program_leave(struct fathom_traced *p);
/* Writes down in @p how many of its places lead to the runtime. */
void fathom_program_note_places(struct fathom_traced *p);

/*
 * Makes @ret a process that @from has forked; @pid is stopped. @shares: it uses @from's memory
 * (vfork()). FATHOM_E_MEMORY, FATHOM_E_OS.
 */
fathom_err fathom_program_fork(const struct fathom_traced *from, pid_t pid, uint32_t number,
			       bool shares, struct fathom_traced *ret);

/* Ends the use of @p's program. */
void fathom_program_end(struct fathom_traced *p);

/* No ring is free. */
#define FATHOM_NO_RING UINT32_MAX

/*
 * Gives thread @tid of @p, which is stopped before its first instruction, a ring; returns its
 * number, or FATHOM_NO_RING.
 */
uint32_t fathom_program_give_ring(struct fathom_traced *p, pid_t tid);

/*
 * Gives thread @tid of @p, which has ring @number or FATHOM_NO_RING, its block again if the runtime
 * has faulted because the program has set the gs base to 0; returns whether it has.
 */
bool fathom_program_give_again(const struct fathom_traced *p, pid_t tid, uint32_t number);

/* Returns how many records thread @number has written. The thread is stopped, or has ended. */
uint64_t fathom_program_cursor(const struct fathom_traced *p, uint32_t number);

/* Bytes of the instruction that asks for the clock (rdtsc). */
#define FATHOM_CLOCK_SIZE 2

/* Returns whether the runtime has the instruction that asks for the clock at @avma. */
bool fathom_program_asks_clock(const struct fathom_traced *p, uint64_t avma);
/* Returns the value of @type in the auxiliary vector of process @pid; 0: it has none. */
uint64_t fathom_program_auxiliary(pid_t pid, uint64_t type);

/*
 * Stops the copy of the hook that reads the clock at @avma from reading it: no time is recorded
 * then. Returns false if it is no hook.
 */
bool fathom_program_stop_clock(const struct fathom_traced *p, uint64_t avma);

/*
 * Returns the avma of room for a copy of a hook that code from @low to @high can call; 0 if there
 * is none.
 */
uint64_t fathom_program_slot(struct fathom_traced *p, uint64_t low, uint64_t high);

/*
 * Gives @n stubs and their words: the avma of the first of each, which the others follow; false if
 * there is no room.
 */
bool fathom_program_stubs(struct fathom_traced *p, size_t n, uint64_t *ret_stub,
			  uint64_t *ret_word);
/*
 * Gives @n stubs in a row, without words, to which jumps from @low to @high reach; returns the avma
 * of the first, 0: there is no room.
 */
uint64_t fathom_program_stubs_near(struct fathom_traced *p, size_t n, uint64_t low, uint64_t high);
/* Returns the avma after the stack that the hook of system calls has for thread @number. */
uint64_t fathom_program_hook_stack(const struct fathom_program *pr, uint32_t number);
/* Makes the runtime in @p leave all system calls to the tracer from now on. */
void fathom_program_record_no_calls(const struct fathom_traced *p);
void fathom_program_free_slot(struct fathom_traced *p, uint64_t slot);

#endif
