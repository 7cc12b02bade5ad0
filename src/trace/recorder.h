/* SPDX-License-Identifier: MIT */
/*
 * The runtime that records function entries inside a traced program. On x86-64 it imports nothing,
 * has no relocations and no state of its own: it is mapped anywhere, in any program, at any time.
 * In programs that trace themselves it is linked in (linked.h): on aarch64 always, on x86-64 where
 * they do without ptrace(2).
 *
 * A site calls the hook (hook_x86_64.S, hook_aarch64.S), which finds its thread's block by the gs
 * base, which no program for Linux uses otherwise, or by a thread-local variable, and appends a
 * record to the thread's ring. Where that is not possible it calls fathom_trace_slow().
 */
#ifndef FATHOM_TRACE_RECORDER_H
#define FATHOM_TRACE_RECORDER_H

#include <stdbool.h>

#include "safe/trace/ring.h"

/*
 * The hook's data of its thread. The blocks lie in private memory that fork() empties
 * (MADV_WIPEONFORK): the child's first event finds limit 0 and makes it a block of its own.
 */
struct fathom_trace_thread {
	/*
	 * By it the hook knows the block. Linked in: base of the thread that it is of (fs,
	 * tpidr_el0), as another one may find it, too. In an image: FATHOM_TRACE_FOLLOWED.
	 */
	uint64_t owner;
	uint64_t cursor; /* number of the next record */
	uint64_t limit;  /* fathom_trace_slow() is called from this number on */
	struct fathom_trace_record *records;
	int32_t tid; /* 0: it is nobody's */
	uint32_t number;
	struct fathom_trace_thread *self; /* by it fathom_trace_thread() knows a block */
	int32_t change;                   /* sum of those of fathom_trace_thread() */
	int32_t first;                    /* the thread is recorded if first + change is above 0 */
	uint64_t stack; /* where the stack of the hook of system calls begins; 0: there is none */
	uint64_t call_limit; /* that hook asks for the limit from this number on */
	uint64_t scratch;    /* of that hook */
	/* This block: an image's hook, which cannot ask for its address, passes it on. */
	struct fathom_trace_thread *block;
};

/* fathom_trace_thread() for the calling thread, whose block is @t. */
static inline int fathom_trace_change(struct fathom_trace_thread *t, int change)
{
	const int before = t->first + t->change;

	t->change += change;
	/* The hook asks next. */
	if (change)
		t->limit = 0;
	return before;
}

/* A call that a thread is in: it was recorded, and the kernel has not returned from it. */
struct fathom_trace_pending_call {
	uint64_t begin; /* number of the first record of the event before it */
	uint64_t sp;    /* of the program */
	uint64_t stub;  /* where the stub goes on after the call of the hook */
	uint64_t first; /* its first argument, in whose register the result will be */
	uint64_t flags; /* those of clone() */
	uint32_t number;
	uint32_t found; /* of the filter that it installs: enum fathom_filter_finding */
	uint32_t is_recorded;
	uint32_t was_filtered; /* fathom_trace_process.is_filtered before a call that filters */
};

/* So many handlers, each of which interrupts a call of another, are told apart. */
#define FATHOM_TRACE_PENDING_CALLS 8

/*
 * Data of a thread for the hook of system calls that is linked into a program (syscall_linked.c). A
 * handler of a signal may use it at any instruction of another use.
 */
struct fathom_trace_syscall_state {
	struct fathom_trace_thread *parent; /* whose memory a child of vfork() uses, or NULL */
	uint32_t n;
	struct fathom_trace_pending_call items[FATHOM_TRACE_PENDING_CALLS];
};

struct fathom_trace_extra;

/* Whether the program filters its calls (seccomp(2)) in a way that counts for the runtime. */
enum fathom_trace_filtered {
	FATHOM_TRACE_UNFILTERED = 0,
	FATHOM_TRACE_FILTERED = 1, /* the runtime makes no calls of its own */
	FATHOM_TRACE_MAY_PROBE = 2 /* but rt_sigprocmask() */
};

/* Data of a process: filled in when the runtime is mapped, and only read then. */
struct fathom_trace_process {
	uint64_t size; /* of this */
	struct fathom_trace_head *head;
	struct fathom_trace_thread *threads; /* one for each ring */
	struct fathom_trace_extra *extras; /* likewise (linked.h); NULL where a tracer maps this */
	struct fathom_trace_thread nobody; /* the block of threads that have none yet */
	uint32_t number;                   /* given by the reader */
	/*
	 * 1: a tracer gives each thread its block before that runs; the runtime calls the kernel
	 * for none.
	 */
	uint32_t is_followed;
	int32_t first; /* of blocks that the runtime makes itself */
	/* enum fathom_trace_filtered: what the runtime may call beside what the program does */
	_Atomic uint32_t is_filtered;
	/* 1: new threads may not be armed (user_dispatch.h) under a filter of the program */
	_Atomic uint32_t is_unarmed;
	/* 1: nor may one thread alone be disarmed */
	_Atomic uint32_t is_bound;
	_Atomic uint32_t is_over; /* 1: nothing is recorded any more, though sites call the hook */
	/* One for each ring; NULL: the hook of system calls is not linked into the program. */
	struct fathom_trace_syscall_state *calls;
	/* The block of threads that are not to be recorded: children that nobody follows. */
	struct fathom_trace_thread silent;
};

/* A limit that no thread reaches. The hook of aarch64 looks at the sign of what is left. */
#define FATHOM_TRACE_NO_LIMIT (UINT64_MAX / 2)

/* The owner of nobody's block: no address at all. */
#define FATHOM_TRACE_NO_OWNER UINT64_C(0x8000000000000000)

/*
 * The owner of all blocks that the hook of an image uses: each thread has its own, as a tracer
 * gives it. Any number that is no address, and that nothing else has at the gs base.
 */
#define FATHOM_TRACE_FOLLOWED UINT64_C(0xb6d1f00d5eed7ace)

/* Returns the records of ring @number. */
static inline struct fathom_trace_record *fathom_trace_records(struct fathom_trace_head *head,
							       uint32_t number)
{
	return (struct fathom_trace_record *)(void *)((char *)head + head->rings_off +
						      number * FATHOM_TRACE_RECORDS *
							      sizeof(struct fathom_trace_record));
}

/* Returns the head of ring @number. */
static inline struct fathom_trace_ring *fathom_trace_ring_at(struct fathom_trace_head *head,
							     uint32_t number)
{
	return (struct fathom_trace_ring *)(void *)(head + 1) + number;
}

/* Returns the number from which on thread @t has to look again. */
uint64_t fathom_trace_limit(const struct fathom_trace_process *p,
			    const struct fathom_trace_thread *t);

/* Gives the calling thread a ring in place of @self, and a block of @owner; false: none is free. */
bool fathom_trace_take_ring(struct fathom_trace_thread *self, const struct fathom_trace_process *p,
			    uint64_t owner);

/*
 * Makes room in the ring of the calling thread, whose block has @owner, or a ring for it. @self is
 * its block (fathom_trace_self_block()), empty in the child of a fork(), or NULL. Returns 1 if the
 * event is to be recorded, 0 if it is lost.
 *
 * Safety: as-safe; may run before the C library is there
 */
long fathom_trace_slow(struct fathom_trace_thread *self, uint64_t owner,
		       const struct fathom_trace_process *p);

/*
 * Waits until the ring of @t has room for @n records; false when there is nothing to wait for.
 * Whether the thread may sleep only the reader can know: a filter (seccomp(2)) may forbid it.
 *
 * Safety: as-safe; may run before the C library is there
 */
bool fathom_trace_wait_for_room(const struct fathom_trace_process *p, struct fathom_trace_thread *t,
				uint64_t n);

/*
 * Asks the reader to look at what was loaded, and waits until it has; not without a living reader,
 * and LONGEST_ASK seconds at most.
 *
 * Safety: as-safe; may run before the C library is there
 */
void fathom_trace_loaded(const struct fathom_trace_process *p);

#endif
