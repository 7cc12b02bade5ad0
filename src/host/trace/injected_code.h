/* SPDX-License-Identifier: MIT */
/*
 * Code that the reader puts into a process that traces itself. The reader lists it in memory that
 * both share, and the process tells its own unwinders (libgcc and others) how stacks go through it.
 */
#ifndef FATHOM_TRACE_INJECTED_CODE_H
#define FATHOM_TRACE_INJECTED_CODE_H

#include <stdatomic.h>

#include "host/trace/trampoline_cfi.h"

/* Kinds of code. */
enum fathom_injected_kind {
	FATHOM_INJECTED_IMAGE = 1,  /* the runtime */
	FATHOM_INJECTED_HOOK = 2,   /* a copy of the hook; of its clock so many more */
	FATHOM_INJECTED_LOADED = 5, /* a copy of the dynamic linker's stub */
	FATHOM_INJECTED_STUB = 6,   /* stubs: the return address is on top of the stack */
};

/* A range of code. */
struct fathom_injected_range {
	uint64_t avma;
	uint32_t size; /* bytes */
	uint32_t kind; /* enum fathom_injected_kind */
};

/* Ranges there is room for; what is beyond is not told. Memory is taken as it is written. */
#define FATHOM_MOST_INJECTED (1u << 20)

struct fathom_injected_code {
	_Atomic uint32_t n;
	struct fathom_injected_range items[FATHOM_MOST_INJECTED];
};

/* Shared by a process that traces itself and its reader. */
struct fathom_self_trace_link {
	struct fathom_injected_code *told; /* NULL: nobody is to be told */
	/*
	 * Where this library is, whose own calls of libraries are not the program's; 0: nowhere
	 * beside the program.
	 */
	uint64_t low;
	uint64_t high;
	/* The thread of the process whose system calls are ours; NULL: there is none. */
	const _Atomic int32_t *busy;
};

/* Maps one that is empty, shared with children; NULL without memory. */
struct fathom_injected_code *fathom_injected_code_create(void);
void fathom_injected_code_destroy(struct fathom_injected_code *t);

/* Adds a range; does nothing where nobody is to be told: @t is NULL. */
void fathom_injected_code_add(struct fathom_injected_code *t, uint64_t avma, uint64_t size,
			      uint32_t kind);

/* Tells the unwinders of the calling process, in which the code is. What fails is left out. */
void fathom_injected_code_publish(const struct fathom_injected_code *t,
				  struct fathom_trampoline_cfi *rows);

#endif
