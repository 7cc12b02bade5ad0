/* SPDX-License-Identifier: MIT */
/*
 * Finds a thread's value of a key of pthread_key_create(), as glibc 2.34 and later describe it for
 * debuggers (glibc.h; glibc, nptl_db/td_thr_tsd.c): struct pthread has a table of pointers to
 * blocks of the same number of values. A value counts only if its sequence number is odd: the key
 * is in use.
 */
#include "host/runtime/specific.h"

#include "host/runtime/glibc.h"
#include "host/runtime/threads.h"

/* Values of one block, and blocks: PTHREAD_KEY_2NDLEVEL_SIZE of glibc; as many of each. */
#define BLOCK 32

struct specific {
	struct fathom_runtime *r;
	const struct fathom_glibc *glibc;
	int32_t tid;
	uint64_t thread; /* avma of its struct pthread; 0: not found */
};

static bool take_thread(const struct fathom_libc_thread *t, void *data)
{
	struct specific *s = data;

	if (t->tid == s->tid)
		s->thread = t->at;
	return !s->thread;
}

/* Reads the value of @key, 0 if it has none; returns false if memory is not there. */
static bool read_value(const struct specific *s, uint32_t key, uint64_t *ret)
{
	const struct fathom_glibc *g = s->glibc;
	const uint8_t word = fathom_image_address_size(g->image);
	uint64_t block;
	uint64_t seq;
	uint64_t at;

	if (!fathom_runtime_word(s->r, g->image,
				 s->thread + g->specific.off + (uint64_t)(key / BLOCK) * word,
				 &block))
		return false;
	*ret = 0;
	if (!block)
		return true;
	at = block + g->level2_data.off + (uint64_t)(key % BLOCK) * g->key_data_size;
	if (!fathom_runtime_word(s->r, g->image, at + g->key_seq.off, &seq))
		return false;
	return seq % 2 == 0 || fathom_runtime_word(s->r, g->image, at + g->key_value.off, ret);
}

fathom_err fathom_specific_read(struct fathom_runtime *r, uint32_t key, int32_t tid, uint64_t *ret)
{
	struct specific s = { .r = r, .tid = tid };

	FATHOM_TRY(fathom_glibc_read(r, &s.glibc));
	if (!s.glibc || !s.glibc->key_data_size || key >= BLOCK * BLOCK)
		return FATHOM_E_UNSUPPORTED;
	FATHOM_TRY(fathom_threads_walk(r, r->main_program, take_thread, &s));
	return s.thread && read_value(&s, key, ret) ? FATHOM_OK : FATHOM_E_NOT_FOUND;
}
