/* SPDX-License-Identifier: MIT */
/* The interface between the set of runtimes and those who know one kind of runtime. */
#ifndef FATHOM_INTERPRETERS_PROVIDER_H
#define FATHOM_INTERPRETERS_PROVIDER_H

#include <stdlib.h>

#include "host/interpreters/interpreters.h"
#include "host/module/module.h"

/* One runtime in the target. */
struct fathom_runtime_found {
	const struct fathom_interpreter_provider *provider;
	const struct fathom_reader *memory;
	struct fathom_module *module;
	uint64_t bias;
	bool swap;       /* its byte order is the other one */
	char title[24];  /* such as "python 3.11" */
	const char *why; /* why its frames cannot be read; NULL: they can. Static */
	void *own;       /* of the provider; from malloc() */
};

/*
 * The operations of one kind of runtime. Frames of most are a chain beside the native stack, which
 * read() follows. Of runtimes that execute each function in a native frame of its own, such as V8,
 * frames are in place: read() finds on the stack what may be the records of such frames, and
 * executes() says of those that are, once the native frames are known, which function has which.
 */
struct fathom_interpreter_provider {
	/*
	 * Looks whether @f->module has the runtime: if so, fills title, why and own, and sets
	 * *@ret. FATHOM_E_MEMORY.
	 */
	fathom_err (*detect)(struct fathom_runtime_found *f, bool *ret);
	/* Frees what own has, which the set frees; NULL: it has nothing. */
	void (*forget)(struct fathom_runtime_found *f);
	/* As fathom_interpreters_read(), with numbers of runtimes left 0. */
	fathom_err (*read)(struct fathom_runtime_found *f, int32_t tid,
			   struct fathom_script_stack stack, struct fathom_script_frames *ret);
	/* As fathom_interpreters_name(). */
	fathom_err (*name)(struct fathom_runtime_found *f, const struct fathom_script_frame *frame,
			   struct fathom_arena *arena, struct fathom_script_name *ret);
	/* As fathom_interpreters_lock(); NULL: it has none that is known. */
	bool (*lock)(struct fathom_runtime_found *f, uint64_t avma, const char **ret_name,
		     int32_t *ret_owner);
	/*
	 * Returns whether stacks through the code at @svma, of the module, execute scripts. NULL:
	 * all of its code may.
	 */
	bool (*may_execute)(const struct fathom_runtime_found *f, uint64_t svma);
	/*
	 * Returns whether @frame, which is in place, is what the native code at @pc executes, which
	 * is at @place; sets its pc and in_place. It is called for one frame after the other of a
	 * thread, the innermost first: *@has_called is false at first, and what it sets is passed
	 * on. NULL: no frames are in place.
	 */
	bool (*executes)(const struct fathom_runtime_found *f, const struct fathom_place *place,
			 uint64_t pc, struct fathom_script_frame *frame, bool *has_called);
};

extern const struct fathom_interpreter_provider fathom_python;
extern const struct fathom_interpreter_provider fathom_python_old;
extern const struct fathom_interpreter_provider fathom_ruby;
extern const struct fathom_interpreter_provider fathom_php;
extern const struct fathom_interpreter_provider fathom_lua;
extern const struct fathom_interpreter_provider fathom_v8;

/* Finds symbol @name in .dynsym, else .symtab, of the module; false if it has none. */
bool fathom_runtime_symbol(const struct fathom_runtime_found *f, const char *name, uint64_t *ret);

/* As above, with the size that the symbol says; 0: it says none. */
bool fathom_runtime_range(const struct fathom_runtime_found *f, const char *name, uint64_t *ret,
			  uint64_t *ret_size);

/*
 * Reads @size bytes at @avma, of the module: of memory, else of the file, as cores lack what is
 * never written. False if neither has all of them.
 */
bool fathom_runtime_constant(const struct fathom_runtime_found *f, uint64_t avma, void *to,
			     size_t size);

/* Bytes of memory that were read last: stacks of interpreters are dense. All zeros at first. */
struct fathom_runtime_page {
	uint64_t avma;
	size_t size;
	uint8_t bytes[4096];
};

/*
 * Returns the @size bytes at @avma, at most a page, which are in @page until the next call; NULL:
 * unreadable.
 */
const uint8_t *fathom_runtime_part(const struct fathom_runtime_found *f,
				   struct fathom_runtime_page *page, uint64_t avma, size_t size);

/* Pages that are kept during a call, of what is read in many places. */
enum { FATHOM_RUNTIME_PAGES = 16 };

/* Reads an unsigned number of @size bytes, 4 or 8, by @pages, so many. */
bool fathom_runtime_paged(const struct fathom_runtime_found *f, struct fathom_runtime_page *pages,
			  uint64_t avma, uint8_t size, uint64_t *ret);

/* Forgets the @pages: what follows is of another moment. */
void fathom_runtime_forget(struct fathom_runtime_page *pages);

/* Reads an unsigned number of @size bytes, 4 or 8. */
static inline bool fathom_runtime_number(const struct fathom_runtime_found *f, uint64_t avma,
					 uint8_t size, uint64_t *ret)
{
	return fathom_reader_uint(f->memory, avma, size, f->swap, ret);
}

/* Reads one of 8 bytes. */
static inline bool fathom_runtime_u64(const struct fathom_runtime_found *f, uint64_t avma,
				      uint64_t *ret)
{
	return fathom_runtime_number(f, avma, 8, ret);
}

/* Frees what the provider has of @f. */
static inline void fathom_runtime_release(struct fathom_runtime_found *f)
{
	if (f->own && f->provider->forget)
		f->provider->forget(f);
	free(f->own);
	f->own = NULL;
}

#endif
