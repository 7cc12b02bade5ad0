/* SPDX-License-Identifier: MIT */
/*
 * Finds each thread's copy of a TLS symbol in programs of glibc 2.34 and later, without stopping
 * them.
 *
 * A thread has a vector of TLS blocks (dtv), indexed by module number ("ELF Handling For
 * Thread-Local Storage", 3). glibc describes its location (glibc.h). A block counts only if the
 * vector is as new as the module's number, because numbers are reused.
 *
 * A static program is TLS module 1. Its block, rounded up, ends where the thread's control block
 * begins (3.4.6, variant II: x86, the only machine of which threads.c reads such lists); threads
 * whose vector disagrees are skipped.
 */
#include "host/runtime/tls.h"

#include "host/runtime/glibc.h"
#include "host/runtime/link_map.h"
#include "host/runtime/threads.h"

/* Most entries of the list of slots; each has 64 or more modules. */
#define MAX_SLOT_LISTS 1024

/* A symbol in all threads. */
struct tls {
	struct fathom_runtime *r;
	const struct fathom_image *image;
	const struct fathom_glibc *glibc; /* NULL: a static program */
	uint64_t modid;                   /* module number */
	uint64_t generation;              /* generation that assigned the number */
	uint64_t block; /* static program: bytes from the block to the control block */
	uint64_t off;   /* of the symbol in the block */
	bool (*fn)(int32_t tid, uint64_t avma, void *data);
	void *data;
};

static bool read_word(const struct tls *t, uint64_t at, uint64_t *ret)
{
	return fathom_runtime_word(t->r, t->image, at, ret);
}

/* Reads the generation that gave the module at @link its number; returns false if it has none. */
static bool read_generation(struct tls *t, uint64_t link)
{
	const struct fathom_glibc *g = t->glibc;
	uint64_t list;
	uint64_t first = 0;

	if (!read_word(t, g->global + g->slots.off, &list))
		return false;
	for (int i = 0; i < MAX_SLOT_LISTS && list; i++) {
		uint64_t n;
		uint64_t map;
		uint64_t slot;

		if (!read_word(t, list + g->slot_len.off, &n))
			return false;
		if (t->modid - first < n) {
			slot = list + g->slot_info.off + (t->modid - first) * g->slot_size;
			return read_word(t, slot + g->slot_map.off, &map) && map == link &&
			       read_word(t, slot + g->slot_gen.off, &t->generation);
		}
		first += n;
		if (!read_word(t, list + g->slot_next.off, &list))
			return false;
	}
	return false;
}

/* Finds the block of a thread; returns false if it has none. */
static bool find_block(const struct tls *t, uint64_t thread, uint64_t *ret)
{
	const struct fathom_glibc *g = t->glibc;
	uint64_t dtv;
	uint64_t n;
	uint64_t generation;

	/* The number of entries precedes the first entry, which holds the generation. */
	if (!read_word(t, thread + g->dtvp.off, &dtv) || !dtv ||
	    !read_word(t, dtv + g->dtv.off - g->dtv.size + g->counter.off, &n) || t->modid > n ||
	    !read_word(t, dtv + g->dtv.off + g->counter.off, &generation) ||
	    generation < t->generation ||
	    !read_word(t, dtv + g->dtv.off + t->modid * g->dtv.size + g->value.off, ret))
		return false;
	/* All ones: the thread has not used the block yet. */
	return *ret && !(*ret & 1);
}

/* Finds the block of a static program's thread; returns false if its vector has another. */
static bool find_static_block(const struct tls *t, uint64_t thread, uint64_t *ret)
{
	const uint8_t word = fathom_image_address_size(t->image);
	uint64_t dtv;

	/* Each module has two words, after the two of the generation. */
	return read_word(t, thread + word, &dtv) && read_word(t, dtv + 2u * word, ret) &&
	       *ret == thread - t->block;
}

bool fathom_tls_block(const struct fathom_image *image, uint64_t *ret_size, uint64_t *ret_rounded)
{
	struct fathom_segment s;

	for (uint32_t i = 0; i < image->phnum; i++) {
		uint64_t align;

		if (!fathom_image_segment(image, i, &s) || s.type != PT_TLS)
			continue;
		align = s.align ? s.align : 1;
		*ret_size = s.memsz;
		*ret_rounded = (s.memsz + align - 1) / align * align;
		return s.memsz <= UINT32_MAX && align <= UINT32_MAX;
	}
	return false;
}

static bool take_thread(const struct fathom_libc_thread *thread, void *data)
{
	const struct tls *t = data;
	uint64_t block;

	if (t->glibc ? !find_block(t, thread->at, &block)
		     : !find_static_block(t, thread->at, &block))
		return true;
	return t->fn(thread->tid, block + t->off, t->data);
}

fathom_err fathom_tls_walk(struct fathom_runtime *r, uint32_t module, uint64_t off,
			   bool (*fn)(int32_t tid, uint64_t avma, void *data), void *data)
{
	const struct fathom_link *link = fathom_link_of(r, module);
	struct tls t = { .r = r, .off = off, .fn = fn, .data = data };
	uint64_t size;
	bool known;

	if (module >= r->n_modules)
		return FATHOM_E_UNSUPPORTED;
	if (link)
		FATHOM_TRY(fathom_glibc_read(r, &t.glibc));
	t.image = t.glibc ? t.glibc->image : &r->modules[module].module->main->image;
	if (t.glibc) {
		known = read_word(&t, link->at + t.glibc->modid.off, &t.modid) && t.modid &&
			read_generation(&t, link->at);
	} else {
		known = fathom_tls_block(t.image, &size, &t.block) && size;
	}
	return known ? fathom_threads_walk(r, module, take_thread, &t) : FATHOM_E_UNSUPPORTED;
}
