/* SPDX-License-Identifier: MIT */
/*
 * Each thread's copy of a TLS symbol in static programs of glibc 2.34 and later, x86 ones.
 *
 * There is no dynamic linker to ask and no description of glibc's structures. What holds there: the
 * program is TLS module 1, and its block ends, rounded up, where the thread's control block begins
 * ("ELF Handling For Thread-Local Storage", 3.4.6, variant II); that starts with its own address,
 * the vector of blocks (dtv) and its own address again. It is the head of struct pthread (glibc,
 * nptl/descr.h), whose link in the lists of threads is followed by the thread's number and its list
 * of robust futexes, with a constant in it. A thread whose memory does not say all of this is left
 * out.
 */
#include "host/runtime/scope.h"

/* The link is so far behind the start of struct pthread, at most: 704 bytes on x86-64. */
#define HEAD_SIZE 1024
/* The smallest there are. */
#define PAGE 4096

struct tls {
	struct fathom_find *f;
	const struct fathom_object *o;
	uint64_t block; /* bytes from its start to the control block */
	uint64_t off;   /* of the symbol in it */
	uint8_t word;
	bool (*fn)(int32_t tid, uint64_t avma, void *data);
	void *data;
};

static uint64_t load_word(const struct tls *t, const uint8_t *p)
{
	return t->word == 8 ? load_u64(p, t->o->image.swap) : load_u32(p, t->o->image.swap);
}

/* The control block whose link stands at @link; 0: there is none. */
static uint64_t find_head(const struct tls *t, uint64_t link)
{
	const uint8_t word = t->word;
	uint8_t bytes[HEAD_SIZE];
	uint64_t low = link - HEAD_SIZE;
	size_t size = HEAD_SIZE;

	/* The page before may not be there: that of the link is. */
	if (fathom_space_batch_read(&t->f->batch, low, bytes, size) != size) {
		size = link % PAGE;
		low = link - size;
		if (size > sizeof bytes ||
		    fathom_space_batch_read(&t->f->batch, low, bytes, size) != size)
			return 0;
	}
	for (size_t off = size; off >= 3u * word; off -= word) {
		const uint64_t at = low + off - 3u * word;

		if (load_word(t, bytes + off - 3u * word) == at &&
		    load_word(t, bytes + off - word) == at)
			return at;
	}
	return 0;
}

/* The number of the thread whose link stands at @link; 0: that is no link of a thread. */
static int32_t read_tid(const struct tls *t, uint64_t link)
{
	const uint8_t word = t->word;
	/* Behind the link's words and the number: with 64 bit the last futex, the first; the
	 * constant. */
	const uint64_t futex = word == 8 ? 40 : 16;
	/* From a mutex's link to its lock, struct __pthread_mutex_s of pthread.h. */
	const int32_t distance = word == 8 ? -32 : -20;
	uint64_t tid;
	uint64_t there;

	if (!fathom_scope_read(t->f, t->o, link + 2u * word, 4, &tid) ||
	    !fathom_scope_read(t->f, t->o, link + futex, 4, &there) || (int32_t)there != distance ||
	    (int32_t)tid < 0)
		return 0;
	return (int32_t)tid;
}

/* Where the thread with the link at @link has the symbol; false when it has not. */
static bool find_copy(const struct tls *t, uint64_t link, int32_t *ret_tid, uint64_t *ret)
{
	const uint64_t head = link % t->word ? 0 : find_head(t, link);
	const uint8_t word = t->word;
	uint64_t dtv;
	uint64_t block;

	*ret_tid = read_tid(t, link);
	/* Of each module two words; before the first are those of the generation. */
	if (!head || !*ret_tid || !fathom_scope_read(t->f, t->o, head + word, word, &dtv) ||
	    !fathom_scope_read(t->f, t->o, dtv + 2u * word, word, &block) ||
	    block != head - t->block)
		return false;
	*ret = block + t->off;
	return true;
}

/* Calls the function for the threads of the list at @head; false when that is enough. */
static bool walk_list(const struct tls *t, uint64_t head)
{
	struct fathom_array threads = { 0 };
	bool more = true;

	if (head)
		fathom_scope_read_threads(t->f, t->o, head, 0, &threads);
	for (size_t i = 0; i < threads.n && more; i++) {
		uint64_t avma;
		int32_t tid;

		if (find_copy(t, ((const uint64_t *)threads.data)[i], &tid, &avma))
			more = t->fn(tid, avma, t->data);
	}
	fathom_find_release(t->f, &threads, sizeof(uint64_t));
	return more;
}

/* The size of the block of @image, rounded up to how it is aligned; 0: there is none. */
static uint64_t block_size(const struct fathom_image *image)
{
	struct fathom_segment s;

	for (uint32_t i = 0; i < image->phnum; i++) {
		uint64_t align;

		if (!fathom_image_segment(image, i, &s) || s.type != PT_TLS)
			continue;
		align = s.align ? s.align : 1;
		return s.memsz > UINT64_MAX / 2 || align > UINT64_MAX / 4
			       ? 0
			       : (s.memsz + align - 1) / align * align;
	}
	return 0;
}

/* The address of glibc's list @name; 0: the program has none. */
static uint64_t find_list(const struct tls *t, const struct fathom_find_module *m, const char *name)
{
	uint64_t svma;

	return fathom_symbols_find_variable(&m->module->symbols, name, 2u * t->word, 2u * t->word,
					    &svma)
		       ? svma + m->bias
		       : 0;
}

bool fathom_tls_walk_static(struct fathom_find *f, const struct fathom_candidate_symbol *c,
			    bool (*fn)(int32_t tid, uint64_t avma, void *data), void *data)
{
	const struct fathom_find_module *m = &f->modules[c->module];
	const struct fathom_image *image = &m->module->main->image;
	struct tls t = { .f = f, .o = m->module->main, .fn = fn, .data = data };
	uint64_t user;

	t.off = c->symbol.value;
	t.word = fathom_image_address_size(image);
	t.block = block_size(image);
	if ((image->machine != EM_X86_64 && image->machine != EM_386) || !t.block)
		return false;
	user = find_list(&t, m, "_dl_stack_user");
	return user && walk_list(&t, user) && walk_list(&t, find_list(&t, m, "_dl_stack_used"));
}
