/* SPDX-License-Identifier: MIT */
/*
 * Demangling by libiberty. Mangled names come from files and may be built to explode, so limits
 * bound both the output and the memory that one name takes. libiberty cannot be told to stop:
 * longjmp() leaves it.
 *
 * The demanglers are linked to allocate by fathom_demangle_malloc() and the like (tools/iberty):
 * libiberty's own xmalloc() ends the process when there is no memory. What a stopped call has not
 * freed is freed here. An allocator is not told which call it serves, so the call is a
 * thread-specific value: the only state of the library that belongs to no object.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>

#include "host/base/demangle.h"

/* tools/iberty renames these: a program may have a libiberty of its own. */
#define ada_demangle               fathom_iberty_ada_demangle
#define cplus_demangle_v3_callback fathom_iberty_cplus_demangle_v3_callback
#define dlang_demangle             fathom_iberty_dlang_demangle
#define java_demangle_v3_callback  fathom_iberty_java_demangle_v3_callback
#define rust_demangle_callback     fathom_iberty_rust_demangle_callback
#include <libiberty/demangle.h>

#include "safe/base/limits.h"
#include "fathom/compat.h"

enum { STOP_LIMIT = 1, STOP_MEMORY };

/* A block that libiberty has allocated. */
struct block {
	struct block *next;
	struct block *before;
	size_t size;
	_Alignas(max_align_t) char bytes[];
};

/* A call of libiberty for one name. */
struct call {
	struct fathom_bytes_array *out;
	size_t start; /* of its text in out */
	struct block *blocks;
	size_t held; /* bytes of all blocks */
	jmp_buf stop;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t current_call;
static bool has_key;

static void make_key(void)
{
	has_key = !pthread_key_create(&current_call, NULL);
}

/* Deletes the key when the library is unloaded. */
__attribute__((destructor)) static void delete_key(void)
{
	if (has_key)
		(void)pthread_key_delete(current_call);
}

/* Allocates for this thread's call; NULL without memory. Stops a call that takes too much. */
static struct block *block_new(size_t size)
{
	struct call *c = pthread_getspecific(current_call);
	struct block *b;

	if (size > FATHOM_MAX_DEMANGLE_MEMORY - c->held)
		longjmp(c->stop, STOP_LIMIT);
	b = malloc(sizeof *b + size);
	if (!b)
		return NULL;
	b->size = size;
	b->before = NULL;
	b->next = c->blocks;
	if (b->next)
		b->next->before = b;
	c->blocks = b;
	c->held += size;
	return b;
}

static void block_free(struct call *c, struct block *b)
{
	if (b->next)
		b->next->before = b->before;
	if (b->before)
		b->before->next = b->next;
	else
		c->blocks = b->next;
	c->held -= b->size;
	free(b);
}

/* libiberty's allocator (tools/iberty). */
void *fathom_demangle_malloc(size_t size);
void *fathom_demangle_realloc(void *p, size_t size);
void *fathom_demangle_xmalloc(size_t size);
void *fathom_demangle_xrealloc(void *p, size_t size);
void fathom_demangle_free(void *p);

void *fathom_demangle_malloc(size_t size)
{
	struct block *b = block_new(size);

	return b ? b->bytes : NULL;
}

static struct block *block_of(void *p)
{
	return (struct block *)(void *)((char *)p - offsetof(struct block, bytes));
}

void fathom_demangle_free(void *p)
{
	if (p)
		block_free(pthread_getspecific(current_call), block_of(p));
}

void *fathom_demangle_realloc(void *p, size_t size)
{
	void *larger = fathom_demangle_malloc(size);

	if (p && larger) {
		const size_t old = block_of(p)->size;

		memcpy(larger, p, old < size ? old : size);
		fathom_demangle_free(p);
	}
	return larger;
}

/* For the two allocators that must not return NULL. */
static void *must(void *p)
{
	struct call *c = pthread_getspecific(current_call);

	if (!p)
		longjmp(c->stop, STOP_MEMORY);
	return p;
}

void *fathom_demangle_xmalloc(size_t size)
{
	return must(fathom_demangle_malloc(size));
}

void *fathom_demangle_xrealloc(void *p, size_t size)
{
	return must(fathom_demangle_realloc(p, size));
}

static void take_piece(const char *text, size_t size, void *opaque)
{
	struct call *c = opaque;

	if (!size)
		return;
	if (c->out->n - c->start + size > FATHOM_MAX_DEMANGLED)
		longjmp(c->stop, STOP_LIMIT);
	if (!fathom_array_room(c->out, size))
		longjmp(c->stop, STOP_MEMORY);
	memcpy(c->out->items + c->out->n, text, size);
	c->out->n += size;
}

#define OPTIONS (DMGL_PARAMS | DMGL_ANSI)

/* Takes a name of D or Ada: one allocated string, or NULL. */
static int take_whole(struct call *c, const char *text)
{
	if (!text || !*text)
		return 0;
	take_piece(text, strlen(text), c);
	return 1;
}

/* Returns 0 if @name is not mangled by @mangling. */
static int demangle_text(struct call *c, const char *name, uint32_t mangling, int options)
{
	switch (mangling) {
	case FATHOM_MANGLING_AUTO:
		/* First, because Rust's legacy scheme looks like C++. */
		if (rust_demangle_callback(name, options, take_piece, c))
			return 1;
		c->out->n = c->start;
		return cplus_demangle_v3_callback(name, options, take_piece, c);
	case FATHOM_MANGLING_CXX:
		return cplus_demangle_v3_callback(name, options, take_piece, c);
	case FATHOM_MANGLING_RUST:
		return rust_demangle_callback(name, options, take_piece, c);
	case FATHOM_MANGLING_D:
		return take_whole(c, dlang_demangle(name, options));
	case FATHOM_MANGLING_JAVA:
		return java_demangle_v3_callback(name, take_piece, c);
	case FATHOM_MANGLING_ADA:
		return take_whole(c, ada_demangle(name, options));
	default:
		return 0;
	}
}

static fathom_err run_call(struct call *c, const char *name, uint32_t mangling, int options)
{
	switch (setjmp(c->stop)) {
	case 0:
		return demangle_text(c, name, mangling, options) ? FATHOM_OK : FATHOM_END;
	case STOP_MEMORY:
		return FATHOM_E_MEMORY;
	default:
		return FATHOM_END;
	}
}

/* Demangles @name, and frees what libiberty has left. */
static fathom_err demangle(const char *name, uint32_t mangling, int options,
			   struct fathom_bytes_array *out)
{
	struct call c = { .out = out, .start = out->n };
	fathom_err err;

	if (pthread_once(&once, make_key) || !has_key || pthread_setspecific(current_call, &c))
		return FATHOM_E_MEMORY;
	err = run_call(&c, name, mangling, options);
	while (c.blocks)
		block_free(&c, c.blocks);
	(void)pthread_setspecific(current_call, NULL);
	if (err)
		out->n = c.start;
	return err;
}

fathom_err fathom_demangle_as(struct fathom_str name, uint32_t mangling, uint32_t flags,
			      struct fathom_bytes_array *out)
{
	const int deep = flags & FATHOM_DEMANGLE_DEEP ? DMGL_NO_RECURSE_LIMIT : 0;
	char buf[256];
	char *copy = buf;
	fathom_err err;

	if (!name.size || name.size > FATHOM_MAX_MANGLED)
		return FATHOM_END;
	if (name.size >= sizeof buf)
		copy = malloc((size_t)name.size + 1);
	if (!copy)
		return FATHOM_E_MEMORY;
	memcpy(copy, name.data, name.size);
	copy[name.size] = '\0';
	err = demangle(copy, mangling, OPTIONS | deep, out);
	if (copy != buf)
		free(copy);
	return err;
}

/* libiberty puts names that are not GNAT's into angle brackets. */
static fathom_err demangle_ada(struct fathom_str name, struct fathom_bytes_array *out)
{
	const size_t start = out->n;
	const fathom_err err = fathom_demangle_as(name, FATHOM_MANGLING_ADA, 0, out);

	if (err || out->items[start] != '<')
		return err;
	out->n = start;
	return FATHOM_END;
}

fathom_err fathom_demangle(struct fathom_str name, bool ada, struct fathom_bytes_array *out)
{
	const char kind = name.size > 2 && name.data[0] == '_' ? name.data[1] : '\0';

	if (name.size < 3)
		return FATHOM_END;
	if (kind == 'Z' || kind == 'R')
		return fathom_demangle_as(name, FATHOM_MANGLING_AUTO, 0, out);
	if (kind == 'D')
		return fathom_demangle_as(name, FATHOM_MANGLING_D, 0, out);
	return ada ? demangle_ada(name, out) : FATHOM_END;
}
