/* SPDX-License-Identifier: MIT */
/*
 * Reads the lists of threads without stopping the program: those of _rtld_global, as glibc
 * describes them (glibc.h), or those of a static program of glibc 2.34 and later on x86.
 *
 * A static program has no description, but these facts hold: the control block starts with its own
 * address, the dtv and its own address again ("ELF Handling For Thread-Local Storage", 3.4.6,
 * variant II). It begins struct pthread (glibc, nptl/descr.h), where the thread's number and the
 * robust futex list, with a constant in it, follow the link of the thread lists. Threads that do
 * not fit all of this are skipped.
 */
#include "host/runtime/threads.h"

#include "host/base/array.h"
#include "host/runtime/glibc.h"
#include "host/runtime/link_map.h"

/* Most threads of one process: the kernel's own limit. */
#define MAX_TASKS 4194304
/* Maximum distance from control block to link in static programs; it is 704 bytes on x86-64. */
#define HEAD_SIZE 1024
/* The smallest page size. */
#define PAGE 4096

/* The lists of one program. */
struct lists {
	struct fathom_runtime *r;
	const struct fathom_image *image;
	const struct fathom_glibc *glibc; /* NULL: a static program */
	uint64_t head[2];                 /* avma; 0: no such list */
	bool (*fn)(const struct fathom_libc_thread *t, void *data);
	void *data;
};

/* Returns the number of distinct items of @at, which ends in a cycle of @length. */
static size_t count_once(const uint64_t *at, size_t n, size_t length)
{
	size_t i = 0;

	while (i + length < n && at[i] != at[i + length])
		i++;
	return i + length < n ? i + length : n;
}

/*
 * Reads the avmas of the links after @head into @ret, each once: a list that is changing or
 * damaged may have a cycle without @head. Unreadable memory ends the list. Returns false without
 * memory.
 */
static bool read_links(const struct lists *l, uint64_t head, struct fathom_u64_array *ret)
{
	const uint64_t next = l->glibc ? l->glibc->next.off : 0;
	size_t landmark = 0; /* Brent's cycle detection */
	uint64_t at = head;

	while (fathom_runtime_word(l->r, l->image, at + next, &at) && at && at != head &&
	       ret->n < MAX_TASKS) {
		uint64_t *to;

		if (!fathom_budget_room(l->r->budget, ret, 1))
			return false;
		to = ret->items;
		if (ret->n && at == to[landmark]) {
			ret->n = count_once(to, ret->n, ret->n - landmark);
			break;
		}
		if (ret->n >= 2 * landmark)
			landmark = ret->n;
		to[ret->n++] = at;
	}
	return true;
}

/* Returns the control block whose link is at @link; 0: none. */
static uint64_t find_head(const struct lists *l, uint64_t link)
{
	const uint8_t word = fathom_image_address_size(l->image);
	uint8_t bytes[HEAD_SIZE];
	uint64_t low = link - HEAD_SIZE;
	size_t size = HEAD_SIZE;

	if (link % word)
		return 0;
	/* The page before may be unmapped; the link's own is not. */
	if (!fathom_reader_read(l->r->reader, low, bytes, size)) {
		size = link % PAGE;
		low = link - size;
		if (size > sizeof bytes || !fathom_reader_read(l->r->reader, low, bytes, size))
			return 0;
	}
	for (size_t off = size; off >= 3u * word; off -= word) {
		const uint64_t at = low + off - 3u * word;

		if (fathom_runtime_load(l->image, bytes + off - 3u * word, 0) == at &&
		    fathom_runtime_load(l->image, bytes + off - word, 0) == at)
			return at;
	}
	return 0;
}

/* Returns the number of the thread whose link is at @link; 0: not a thread's link. */
static int32_t read_tid(const struct lists *l, uint64_t link)
{
	const uint8_t word = fathom_image_address_size(l->image);
	/*
	 * After the link's words and the number: with 64 bit the last futex, the first; the
	 * constant.
	 */
	const uint64_t futex = word == 8 ? 40 : 16;
	/* From a mutex's link to its lock, struct __pthread_mutex_s of pthread.h. */
	const int32_t distance = word == 8 ? -32 : -20;
	uint64_t tid;
	uint64_t there;

	if (!fathom_runtime_u32(l->r, l->image, link + 2u * word, &tid) ||
	    !fathom_runtime_u32(l->r, l->image, link + futex, &there) ||
	    (int32_t)there != distance || (int32_t)tid < 0)
		return 0;
	return (int32_t)tid;
}

enum reading {
	READ,
	LEFT_OUT, /* not a thread */
	UNREADABLE,
};

/* Reads the thread whose link is at @link. */
static enum reading read_thread(const struct lists *l, uint64_t link,
				struct fathom_libc_thread *ret)
{
	uint64_t tid;

	if (!l->glibc) {
		*ret = (struct fathom_libc_thread){ find_head(l, link), read_tid(l, link) };
		return ret->at && ret->tid ? READ : LEFT_OUT;
	}
	ret->at = link - l->glibc->list.off;
	if (!fathom_runtime_u32(l->r, l->image, ret->at + l->glibc->tid.off, &tid))
		return UNREADABLE;
	ret->tid = (int32_t)tid;
	return ret->tid > 0 ? READ : LEFT_OUT;
}

/* Calls the function for the threads of the list at @head; clears *@ret_more if it stops. */
static fathom_err walk_list(const struct lists *l, uint64_t head, bool *ret_more)
{
	struct fathom_u64_array links = { 0 };
	const bool done = read_links(l, head, &links);
	struct fathom_libc_thread thread;
	enum reading reading = READ;

	for (size_t i = 0; done && i < links.n && *ret_more && reading != UNREADABLE; i++) {
		reading = read_thread(l, links.items[i], &thread);
		if (reading == READ)
			*ret_more = l->fn(&thread, l->data);
	}
	fathom_budget_free(l->r->budget, &links);
	return done ? FATHOM_OK : FATHOM_E_MEMORY;
}

/* Returns the address of glibc's list @name in a static program; 0: none. */
static uint64_t find_list(const struct fathom_runtime_module *m, const char *name)
{
	const uint64_t size = 2u * fathom_image_address_size(&m->module->main->image);
	uint64_t svma;

	return fathom_symbols_find_variable(&m->module->symbols, name, size, size, &svma)
		       ? svma + m->bias
		       : 0;
}

/* Finds the heads of the lists; returns false if there are none. */
static bool find_lists(struct lists *l, const struct fathom_runtime_module *m)
{
	if (l->glibc) {
		l->image = l->glibc->image;
		l->head[0] = l->glibc->global + l->glibc->stack_user.off;
		l->head[1] = l->glibc->global + l->glibc->stack_used.off;
		return true;
	}
	l->image = &m->module->main->image;
	if (l->image->machine != EM_X86_64 && l->image->machine != EM_386)
		return false;
	l->head[0] = find_list(m, "_dl_stack_user");
	l->head[1] = l->head[0] ? find_list(m, "_dl_stack_used") : 0;
	return l->head[0];
}

fathom_err fathom_threads_walk(struct fathom_runtime *r, uint32_t module,
			       bool (*fn)(const struct fathom_libc_thread *t, void *data),
			       void *data)
{
	struct lists l = { .r = r, .fn = fn, .data = data };
	bool more = true;

	/* A static PIE relocates itself and has no description. */
	if (module >= r->n_modules)
		return FATHOM_E_UNSUPPORTED;
	if (fathom_link_of(r, module))
		FATHOM_TRY(fathom_glibc_read(r, &l.glibc));
	if (!find_lists(&l, &r->modules[module]))
		return FATHOM_E_UNSUPPORTED;
	for (int i = 0; i < 2 && more; i++)
		if (l.head[i])
			FATHOM_TRY(walk_list(&l, l.head[i], &more));
	return FATHOM_OK;
}
