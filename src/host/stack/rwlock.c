/* SPDX-License-Identifier: MIT */
/*
 * glibc's pthread_rwlock_t from 2.25 on (sysdeps/nptl/bits/struct_rwlock.h, and the long comment in
 * nptl/pthread_rwlock_common.c): the word __readers has a count and three flags; a waiter waits for
 * __wrphase_futex to end the phase of the others, or for __writers_futex after another writer. It
 * has the TID of a writer, and of readers their number only. All of this must fit before a lock is
 * named.
 */
#include "host/stack/rwlock.h"

/* Flags of __readers, above which readers are counted (nptl/pthreadP.h). */
#define WRITE_PHASE  1u
#define WRITE_LOCKED 2u
#define READER_SHIFT 3
/* A futex that is 1 and that somebody waits for; one that is 0 and that somebody waits for. */
#define ONE_AWAITED  3
#define ZERO_AWAITED 2

/* Offsets, the same on all machines; after them, of 64-bit and 32-bit programs. */
enum { READERS = 0, PHASE_FUTEX = 8, WRITERS_FUTEX = 12, PADDING = 16 };
enum { CUR_WRITER_64 = 24, SHARED_64 = 28, SHARED_32 = 25, CUR_WRITER_32 = 28, SIZE = 32 };

struct rwlock {
	uint64_t avma;
	uint32_t readers;
	uint32_t cur_writer;
};

static bool read_lock(const struct fathom_waiter *w, uint64_t avma, bool shared, struct rwlock *ret)
{
	const bool wide = w->word == 8;
	uint8_t b[SIZE];

	if (avma % 4 || !fathom_reader_read(w->from->memory, avma, b, sizeof b) ||
	    load_u32(b + PADDING, false) || load_u32(b + PADDING + 4, false))
		return false;
	*ret = (struct rwlock){ .avma = avma,
				.readers = load_u32(b + READERS, false),
				.cur_writer = load_u32(b + (wide ? CUR_WRITER_64 : CUR_WRITER_32),
						       false) };
	return (wide ? load_u32(b + SHARED_64, false) : b[SHARED_32]) == shared;
}

/* Returns the thread that has @l to write; 0 if none has. */
static int32_t writer_of(const struct fathom_waiter *w, const struct rwlock *l)
{
	const uint32_t both = WRITE_PHASE | WRITE_LOCKED;

	return (l->readers & both) == both ? fathom_task_find(w, l->cur_writer) : 0;
}

/* Returns how many threads have @l to read; 0 if that is not so for sure. */
static uint32_t readers_of(const struct rwlock *l)
{
	return l->readers & WRITE_PHASE || l->cur_writer ? 0 : l->readers >> READER_SHIFT;
}

static void put(struct fathom_waiter *w, const struct rwlock *l, const char *what)
{
	fathom_text_cstr(&w->text, "rwlock ");
	fathom_text_hex(&w->text, l->avma);
	fathom_text_cstr(&w->text, what);
}

static bool put_owner(struct fathom_waiter *w, const struct rwlock *l, const char *what)
{
	const int32_t writer = writer_of(w, l);

	if (!writer)
		return false;
	w->ret->kind = FATHOM_WAIT_MUTEX;
	w->ret->owner = writer;
	put(w, l, what);
	fathom_text_cstr(&w->text, " owned by writer ");
	fathom_text_dec(&w->text, (uint64_t)writer);
	return true;
}

/* Describes a lock that others have to read; glibc does not keep who. */
static bool put_readers(struct fathom_waiter *w, const struct rwlock *l)
{
	const uint32_t n = readers_of(l);

	if (!n || !(l->readers & WRITE_LOCKED))
		return false;
	w->ret->kind = FATHOM_WAIT_FUTEX;
	put(w, l, " to write, held by ");
	fathom_text_dec(&w->text, n);
	fathom_text_cstr(&w->text, n == 1 ? " reader, of which glibc keeps no name"
					  : " readers, of which glibc keeps no names");
	return true;
}

bool fathom_rwlock_describe(struct fathom_waiter *w, uint64_t avma, uint32_t expected, bool shared)
{
	struct rwlock l;
	uint64_t word;

	if (!fathom_reader_uint(w->from->memory, avma, 4, false, &word) || word != expected)
		return false;
	/* A writer that waits for readers to end their phase. */
	if (expected == ZERO_AWAITED)
		return read_lock(w, avma - PHASE_FUTEX, shared, &l) && put_readers(w, &l);
	if (expected != ONE_AWAITED)
		return false;
	/* A writer after another one; a reader in a writer's phase. */
	if (read_lock(w, avma - WRITERS_FUTEX, shared, &l) &&
	    (put_owner(w, &l, " to write,") || put_readers(w, &l)))
		return true;
	return read_lock(w, avma - PHASE_FUTEX, shared, &l) && put_owner(w, &l, " to read,");
}
