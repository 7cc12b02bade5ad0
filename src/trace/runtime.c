/* SPDX-License-Identifier: MIT */
#include "trace/runtime.h"

#include <linux/futex.h>
#include <stdbool.h>
#include <sys/syscall.h>

/* How long a thread waits for room, and how often it looks whether the reader still lives. */
#define LONGEST_WAIT_NS 1000000000
#define WAIT_NS         20000000

struct timespec_of_kernel {
	int64_t seconds;
	int64_t ns;
};

/* The only system calls of the runtime. */
static long call_kernel(long number, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return result;
}

static void set_gs(struct fathom_trace_thread *t)
{
	__asm__ volatile("wrgsbase %0" : : "r"(t) : "memory");
}

static struct fathom_trace_thread *gs_base(void)
{
	struct fathom_trace_thread *t;

	__asm__ volatile("rdgsbase %0" : "=r"(t));
	return t;
}

/* Takes ring @number for thread @tid, if nobody has it. */
static bool take_ring(const struct fathom_trace_process *p, uint32_t number, int32_t tid)
{
	struct fathom_trace_ring *ring = fathom_trace_ring_at(p->head, number);
	int32_t nobody = 0;

	if (atomic_load_explicit(&ring->tid, memory_order_relaxed) ||
	    !atomic_compare_exchange_strong(&ring->tid, &nobody, tid))
		return false;
	atomic_store(&ring->pid, (int32_t)call_kernel(SYS_getpid, 0, 0, 0, 0));
	return true;
}

/* Returns the number from which on thread @t has to look again. */
static uint64_t limit_of(const struct fathom_trace_process *p, const struct fathom_trace_thread *t)
{
	struct fathom_trace_ring *ring = fathom_trace_ring_at(p->head, t->number);
	const uint64_t taken = atomic_load_explicit(&ring->taken, memory_order_acquire);

	if (atomic_load_explicit(&p->head->full, memory_order_relaxed) == FATHOM_TRACE_OVERWRITE)
		return UINT64_MAX;
	return taken + FATHOM_TRACE_RECORDS - FATHOM_TRACE_SLACK;
}

/* Makes block @number that of thread @tid with the base @fs. The ring is empty. */
static void begin(const struct fathom_trace_process *p, uint32_t number, int32_t tid, uint64_t fs)
{
	struct fathom_trace_thread *t = &p->threads[number];

	t->cursor = atomic_load_explicit(&fathom_trace_ring_at(p->head, number)->taken,
					 memory_order_relaxed);
	t->records = fathom_trace_records(p->head, number);
	t->number = number;
	t->tid = tid;
	t->limit = limit_of(p, t);
	t->fs = fs;
}

/*
 * Finds the calling thread a ring. A handler of a signal may do the same meanwhile: then its ring
 * is used on.
 */
static long take_any(struct fathom_trace_thread *self, const struct fathom_trace_process *p,
		     uint64_t fs, int32_t tid)
{
	for (uint32_t i = 0; i < p->head->n_rings; i++) {
		if (!take_ring(p, i, tid))
			continue;
		begin(p, i, tid, fs);
		if (gs_base() == self)
			set_gs(&p->threads[i]);
		else
			atomic_store(&fathom_trace_ring_at(p->head, i)->tid, 0);
		return 1;
	}
	atomic_fetch_add_explicit(&p->head->lost, 1, memory_order_relaxed);
	return 0;
}

/* Waits until the reader has taken something; returns false when there is nothing to wait for. */
static bool wait_for_room(const struct fathom_trace_process *p, struct fathom_trace_thread *t)
{
	const struct timespec_of_kernel pause = { 0, WAIT_NS };
	struct fathom_trace_ring *ring = fathom_trace_ring_at(p->head, t->number);

	for (int64_t waited = 0; waited < LONGEST_WAIT_NS; waited += WAIT_NS) {
		const uint32_t full = atomic_load_explicit(&p->head->full, memory_order_relaxed);

		t->limit = limit_of(p, t);
		if (t->cursor < t->limit)
			return true;
		if (full == FATHOM_TRACE_LOSE || !atomic_load(&p->head->reader_pid))
			return false;
		atomic_store(&ring->waits, 1);
		/* Between the look and the wait it may have been woken: the wait is short. */
		(void)call_kernel(SYS_futex, (long)&ring->waits, FUTEX_WAIT, 1, (long)&pause);
	}
	/* A reader that takes nothing for so long is as good as dead. */
	atomic_store(&p->head->reader_pid, 0);
	return false;
}

long fathom_trace_slow(struct fathom_trace_thread *self, uint64_t fs,
		       const struct fathom_trace_process *p)
{
	int32_t tid;

	if (self->tid && self->fs == fs) {
		if (wait_for_room(p, self))
			return 1;
		atomic_fetch_add_explicit(&fathom_trace_ring_at(p->head, self->number)->lost, 1,
					  memory_order_relaxed);
		return 0;
	}
	tid = (int32_t)call_kernel(SYS_gettid, 0, 0, 0, 0);
	if (self->tid == tid) {
		/* Its C library has given it a block of its own since. */
		self->fs = fs;
		return 1;
	}
	return take_any(self, p, fs, tid);
}
