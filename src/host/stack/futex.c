/* SPDX-License-Identifier: MIT */
/*
 * glibc's mutexes and threads, by their layout (sysdeps/nptl/bits/struct_mutex.h, nptl/descr.h). A
 * futex alone does not tell what it belongs to: everything that is known of the layout must hold
 * before an owner is named.
 */
#include "host/stack/futex.h"

#include <linux/futex.h>
#include <time.h>

#include "host/stack/rwlock.h"
#include "host/stack/wait_time.h"

/* FUTEX_LOCK_PI2 of Linux 5.14; older headers lack it. */
#define LOCK_PI2 13

/* glibc's type of a mutex, in the low bits of its kind, and flags (nptl/pthreadP.h) */
#define KIND_TYPE      3
#define KIND_RECURSIVE 1
#define KIND_ROBUST    16
#define KIND_SHARED    128
#define KIND_KNOWN     (KIND_TYPE | 256 | 512 | KIND_SHARED) /* and those of elision */

/* The lock word of a mutex that threads wait for */
#define LOCKED_CONTENDED 2

/* glibc's pthread_mutex_t. Words at the same place on all machines: lock, count, owner. */
struct mutex {
	uint32_t lock;
	uint32_t count; /* of recursive ones */
	uint32_t owner; /* TID in the process's namespace */
	uint32_t users;
	uint32_t kind;
	uint64_t list[2]; /* links of a list that only robust mutexes are in */
};

static bool read_mutex(const struct fathom_waiter *w, uint64_t avma, struct mutex *ret)
{
	const bool wide = w->word == 8;
	uint8_t bytes[40];

	if (!fathom_reader_read(w->from->memory, avma, bytes, wide ? 40 : 24))
		return false;
	*ret = (struct mutex){ .lock = load_u32(bytes, false),
			       .count = load_u32(bytes + 4, false),
			       .owner = load_u32(bytes + 8, false),
			       .users = load_u32(bytes + (wide ? 12 : 16), false),
			       .kind = load_u32(bytes + (wide ? 16 : 12), false) };
	ret->list[0] = wide ? load_u64(bytes + 24, false) : 0;
	ret->list[1] = wide ? load_u64(bytes + 32, false) : load_u32(bytes + 20, false);
	return true;
}

/* Returns whether @m can be a locked mutex, neither robust nor with priorities. */
static bool is_plain_mutex(const struct mutex *m, bool shared)
{
	const bool recursive = (m->kind & KIND_TYPE) == KIND_RECURSIVE;

	return (m->lock == 1 || m->lock == LOCKED_CONTENDED) && m->users &&
	       !(m->kind & ~(uint32_t)KIND_KNOWN) && (m->count != 0) == recursive &&
	       ((m->kind & KIND_SHARED) != 0) == shared && !m->list[0] && !m->list[1];
}

/* Returns whether @m can be a locked robust mutex. */
static bool is_robust_mutex(const struct mutex *m)
{
	return (m->lock & FUTEX_TID_MASK) == m->owner && m->users && (m->kind & KIND_ROBUST) &&
	       !(m->kind & ~(uint32_t)(KIND_KNOWN | KIND_ROBUST));
}

static void put_owned(struct fathom_waiter *w, uint64_t avma, int32_t owner)
{
	w->ret->kind = FATHOM_WAIT_MUTEX;
	w->ret->owner = owner;
	fathom_text_cstr(&w->text, "mutex ");
	fathom_text_hex(&w->text, avma);
	fathom_text_cstr(&w->text, " owned by ");
	fathom_text_dec(&w->text, (uint64_t)owner);
}

/* Describes a mutex of glibc; returns false if it is none, or is owned by no thread known. */
static bool describe_mutex(struct fathom_waiter *w, uint64_t avma, uint32_t expected, bool shared)
{
	struct mutex m;
	int32_t owner;

	if (!read_mutex(w, avma, &m))
		return false;
	if (expected == LOCKED_CONTENDED ? !is_plain_mutex(&m, shared)
					 : !(expected & FUTEX_WAITERS) || !is_robust_mutex(&m))
		return false;
	owner = fathom_task_find(w, m.owner);
	if (owner)
		put_owned(w, avma, owner);
	return owner != 0;
}

/* Describes a lock whose owner the kernel knows: its TID is in the word. */
static bool describe_pi(struct fathom_waiter *w, uint64_t avma)
{
	uint64_t word = 0;
	int32_t owner;

	if (!fathom_reader_uint(w->from->memory, avma, 4, false, &word))
		return false;
	owner = fathom_task_find(w, (uint32_t)word & FUTEX_TID_MASK);
	if (owner)
		put_owned(w, avma, owner);
	return owner != 0;
}

/* Returns whether the word of the program at @avma is the number -@distance. */
static bool is_distance(const struct fathom_waiter *w, uint64_t avma, uint32_t distance)
{
	const uint64_t wanted = 0 - (uint64_t)distance;
	uint64_t value;

	return fathom_reader_uint(w->from->memory, avma, w->word, false, &value) &&
	       value == (w->word == 8 ? wanted : (uint32_t)wanted);
}

/*
 * Returns whether the word @avma is the TID of a struct pthread: the head of the thread's list of
 * robust mutexes follows, whose second word is the distance from a mutex's link to its lock. In
 * 64-bit programs a pointer stands between, in 32-bit programs by older glibcs a word.
 */
static bool is_tid_word(const struct fathom_waiter *w, uint64_t avma)
{
	return w->word == 8 ? is_distance(w, avma + 24, 32)
			    : is_distance(w, avma + 8, 20) || is_distance(w, avma + 12, 20);
}

/* Describes pthread_join(): the kernel clears the TID at the thread's end, and wakes. */
static bool describe_join(struct fathom_waiter *w, uint64_t avma, uint32_t expected)
{
	uint64_t word;
	int32_t tid;

	if (!fathom_reader_uint(w->from->memory, avma, 4, false, &word) || word != expected ||
	    !is_tid_word(w, avma))
		return false;
	tid = fathom_task_find(w, expected);
	if (!tid)
		return false;
	w->ret->kind = FATHOM_WAIT_THREAD;
	w->ret->owner = tid;
	fathom_text_cstr(&w->text, "thread ");
	fathom_text_dec(&w->text, (uint64_t)tid);
	fathom_text_cstr(&w->text, " to end");
	return true;
}

/* Describes what waits for the futex by operation @op. */
static void describe(struct fathom_waiter *w, uint32_t op, bool shared)
{
	const uint64_t *arguments = fathom_waiter_arguments(w);
	const uint64_t avma = arguments[0];
	const uint32_t expected = (uint32_t)arguments[2];
	/* glibc waits by FUTEX_WAIT_BITSET where it has a time limit, or could have one. */
	const bool waits = op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET;

	if ((op == FUTEX_LOCK_PI || op == LOCK_PI2) && describe_pi(w, avma))
		return;
	if (waits && describe_mutex(w, avma, expected, shared))
		return;
	if (op == FUTEX_WAIT_BITSET && fathom_rwlock_describe(w, avma, expected, shared))
		return;
	/* glibc before 2.31 joins by FUTEX_WAIT. */
	if (waits && shared && describe_join(w, avma, expected))
		return;
	w->ret->kind = FATHOM_WAIT_FUTEX;
	fathom_text_cstr(&w->text, "futex ");
	fathom_text_hex(&w->text, avma);
}

void fathom_futex_describe(struct fathom_waiter *w)
{
	const uint64_t *arguments = fathom_waiter_arguments(w);
	const uint32_t op = (uint32_t)arguments[1] & (uint32_t)FUTEX_CMD_MASK;
	const bool is_real = op == FUTEX_LOCK_PI || (arguments[1] & FUTEX_CLOCK_REALTIME);

	describe(w, op, !(arguments[1] & FUTEX_PRIVATE_FLAG));
	/* FUTEX_WAIT has a span of time, which began at a moment that nobody knows. */
	if (op == FUTEX_WAIT_BITSET || op == FUTEX_LOCK_PI || op == LOCK_PI2)
		(void)fathom_wait_put_left(w, ", ", arguments[3],
					   is_real ? CLOCK_REALTIME : CLOCK_MONOTONIC);
}
