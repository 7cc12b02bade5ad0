/* SPDX-License-Identifier: MIT */
#include "trace/recorder.h"

#include <linux/futex.h>
#include <stdbool.h>
#include <sys/syscall.h>

#include "trace/machine.h"

/* How often a thread that waits looks whether the reader still lives. */
#define WAIT_NS 20000000

/* How long it waits for an answer, in waits for room. */
#define LONGEST_ASK 10

struct timespec_of_kernel {
	int64_t seconds;
	int64_t ns;
};

/* Takes ring @number for thread @tid, if nobody has it. */
static bool take_ring(const struct fathom_trace_process *p, uint32_t number, int32_t tid)
{
	struct fathom_trace_ring *ring = fathom_trace_ring_at(p->head, number);
	int32_t nobody = 0;

	if (atomic_load_explicit(&ring->tid, memory_order_relaxed) ||
	    !atomic_compare_exchange_strong(&ring->tid, &nobody, tid))
		return false;
	/* Its reader, who begins later, counts from here. */
	atomic_store(&ring->lost, 0);
	atomic_store(&ring->pid, (int32_t)fathom_trace_syscall_kernel(SYS_getpid, 0, 0, 0, 0));
	return true;
}

uint64_t fathom_trace_limit(const struct fathom_trace_process *p,
			    const struct fathom_trace_thread *t)
{
	struct fathom_trace_ring *ring = fathom_trace_ring_at(p->head, t->number);
	const uint64_t taken = atomic_load_explicit(&ring->taken, memory_order_acquire);

	if (atomic_load_explicit(&p->head->full, memory_order_relaxed) == FATHOM_TRACE_OVERWRITE)
		return FATHOM_TRACE_NO_LIMIT;
	return taken + FATHOM_TRACE_RECORDS - FATHOM_TRACE_SLACK;
}

/* Makes block @number, with @owner, that of thread @tid. The ring is empty. */
static void begin_block(const struct fathom_trace_process *p, uint32_t number, int32_t tid,
			uint64_t owner)
{
	struct fathom_trace_thread *t = &p->threads[number];

	t->cursor = atomic_load_explicit(&fathom_trace_ring_at(p->head, number)->taken,
					 memory_order_relaxed);
	t->records = fathom_trace_records(p->head, number);
	t->number = number;
	t->tid = tid;
	t->first = p->first;
	t->change = 0;
	t->limit = t->first > 0 ? fathom_trace_limit(p, t) : 0;
	t->call_limit = 0;
	t->self = t;
	t->block = t;
	t->owner = owner;
	if (p->calls) {
		p->calls[number].parent = NULL;
		p->calls[number].n = 0;
	}
}

/* Tells the reader, which looks at the rings itself, when the thread of ring @number has begun. */
static void tell_begin(const struct fathom_trace_process *p, uint32_t number)
{
	atomic_store_explicit(&fathom_trace_ring_at(p->head, number)->begin, fathom_trace_ticks(),
			      memory_order_release);
}

/*
 * Finds the calling thread a ring. A handler of a signal may do the same meanwhile: then its ring
 * is used on.
 */
static bool take_any(struct fathom_trace_thread *self, const struct fathom_trace_process *p,
		     uint64_t owner, int32_t tid)
{
	for (uint32_t i = 0; i < p->head->n_rings; i++) {
		if (!take_ring(p, i, tid))
			continue;
		begin_block(p, i, tid, owner);
		if (fathom_trace_self_block() == self) {
			fathom_trace_set_own_block(&p->threads[i]);
			tell_begin(p, i);
		} else {
			atomic_store(&fathom_trace_ring_at(p->head, i)->tid, 0);
		}
		return true;
	}
	atomic_fetch_add_explicit(&p->head->lost, 1, memory_order_relaxed);
	return false;
}

/* Returns whether what taking a ring calls may be forbidden: the program filters its calls. */
static bool is_forbidden(const struct fathom_trace_process *p)
{
	if (!atomic_load_explicit(&p->is_filtered, memory_order_relaxed))
		return false;
	atomic_fetch_add_explicit(&p->head->lost, 1, memory_order_relaxed);
	return true;
}

bool fathom_trace_take_ring(struct fathom_trace_thread *self, const struct fathom_trace_process *p,
			    uint64_t owner)
{
	if (is_forbidden(p))
		return 0;
	return take_any(self, p, owner,
			(int32_t)fathom_trace_syscall_kernel(SYS_gettid, 0, 0, 0, 0));
}

/* Returns whether the reader lives. */
static bool has_reader(const struct fathom_trace_head *head)
{
	const uint32_t value = atomic_load_explicit(&head->reader, memory_order_acquire);

	return value & FUTEX_TID_MASK && !(value & FUTEX_OWNER_DIED);
}

/* Sleeps while *@word is @value, for a short time at most. */
static void sleep_on(_Atomic uint32_t *word, uint32_t value)
{
	const struct timespec_of_kernel pause = { 0, WAIT_NS };

	(void)fathom_trace_syscall_kernel(SYS_futex, (long)word, FUTEX_WAIT, value, (long)&pause);
}

bool fathom_trace_wait_for_room(const struct fathom_trace_process *p, struct fathom_trace_thread *t,
				uint64_t n)
{
	struct fathom_trace_ring *ring = fathom_trace_ring_at(p->head, t->number);
	/* A thread that waits awake may not run, and its reader neither: no step is longer. */
	const uint64_t longest = p->head->wait_ticks >> 10;
	uint32_t n_given = atomic_load_explicit(&p->head->n_given, memory_order_relaxed);
	uint64_t now = fathom_trace_ticks();
	uint64_t waited = 0;
	bool is_asleep = false;

	while (1) {
		const uint32_t n_given_now =
			atomic_load_explicit(&p->head->n_given, memory_order_relaxed);
		const uint64_t before = now;

		now = fathom_trace_ticks();
		/* Another processor's counter may be behind. */
		if (now > before)
			waited += is_asleep || now - before < longest ? now - before : longest;
		is_asleep = false;
		/* It takes the records of other threads first, if they are older. */
		if (n_given_now != n_given) {
			n_given = n_given_now;
			waited = 0;
		}
		t->limit = fathom_trace_limit(p, t);
		if (t->cursor + n <= t->limit)
			return true;
		if (atomic_load_explicit(&p->head->full, memory_order_relaxed) ==
			    FATHOM_TRACE_LOSE ||
		    atomic_load(&p->head->is_late) || !has_reader(p->head))
			return false;
		if (waited > p->head->wait_ticks)
			break;
		switch (atomic_load(&ring->waits)) {
		case FATHOM_TRACE_WAITS_ASLEEP:
			is_asleep = true;
			sleep_on(&ring->waits, FATHOM_TRACE_WAITS_ASLEEP);
			break;
		case FATHOM_TRACE_WAITS_NOT:
			/*
			 * The reader may have made room between the look and this: one look more.
			 */
			atomic_store(&ring->waits, FATHOM_TRACE_WAITS_AWAKE);
			break;
		default:
			fathom_trace_relax();
		}
	}
	atomic_store(&p->head->is_late, 1);
	return false;
}

long fathom_trace_slow(struct fathom_trace_thread *self, uint64_t owner,
		       const struct fathom_trace_process *p)
{
	int32_t tid;

	if (atomic_load_explicit(&p->is_over, memory_order_relaxed))
		return 0;
	if (self && self->tid && self->owner == owner) {
		if (self->first + self->change <= 0) {
			self->limit = 0;
			return 0;
		}
		if (self->cursor < self->limit || fathom_trace_wait_for_room(p, self, 1))
			return 1;
		atomic_fetch_add_explicit(&fathom_trace_ring_at(p->head, self->number)->lost, 1,
					  memory_order_relaxed);
		return 0;
	}
	if (p->is_followed) {
		atomic_fetch_add_explicit(&p->head->lost, 1, memory_order_relaxed);
		return 0;
	}
	if (is_forbidden(p))
		return 0;
	tid = (int32_t)fathom_trace_syscall_kernel(SYS_gettid, 0, 0, 0, 0);
	if (self && self->tid == tid) {
		self->owner = owner;
		return 1;
	}
	return take_any(self, p, owner, tid);
}

/* Moves the question from state @from to @to; returns whether it was in @from. */
static bool move_mail(struct fathom_trace_head *head, uint32_t from, uint32_t to)
{
	return atomic_compare_exchange_strong(&head->mail, &from, to);
}

/* Asks the reader, if nobody else asks it; returns whether it does. */
static bool ask(const struct fathom_trace_process *p)
{
	const struct fathom_trace_thread *t = fathom_trace_self_block();
	struct fathom_trace_head *head = p->head;

	if (!move_mail(head, FATHOM_TRACE_MAIL_FREE, FATHOM_TRACE_MAIL_TAKEN))
		return false;
	atomic_store(&head->may_sleep, 0);
	atomic_store(&head->asker_tid, t ? t->tid : 0);
	atomic_store(&head->asker, p->number);
	atomic_store(&head->mail, FATHOM_TRACE_MAIL_ASKED);
	return true;
}

/*
 * A filter of the program may forbid futex(): the thread waits awake, until the reader, which looks
 * for questions all the time, has seen that there is none. Nobody sleeps for the question of
 * another thread.
 */
void fathom_trace_loaded(const struct fathom_trace_process *p)
{
	struct fathom_trace_head *head = p->head;
	const uint64_t begin = fathom_trace_ticks();
	bool has_asked = false;

	while (has_reader(head) && fathom_trace_ticks() - begin < LONGEST_ASK * head->wait_ticks) {
		const uint32_t mail = atomic_load(&head->mail);

		if (has_asked && mail == FATHOM_TRACE_MAIL_ANSWERED)
			break;
		if (!has_asked && ask(p))
			has_asked = true;
		else if (has_asked && mail == FATHOM_TRACE_MAIL_READ &&
			 atomic_load(&head->may_sleep))
			sleep_on(&head->mail, mail);
		else
			fathom_trace_relax();
	}
	/* Too late: the question is taken back, unless the reader is at it. */
	if (has_asked && !move_mail(head, FATHOM_TRACE_MAIL_ANSWERED, FATHOM_TRACE_MAIL_FREE))
		(void)move_mail(head, FATHOM_TRACE_MAIL_ASKED, FATHOM_TRACE_MAIL_FREE);
}
