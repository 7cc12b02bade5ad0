/* SPDX-License-Identifier: MIT */
/*
 * Code that the reader puts into a process that traces itself. The reader lists it in memory that
 * both share, and the process tells its own unwinders (libgcc and others) how stacks go through it.
 */
#ifndef FATHOM_TRACE_TOLD_CODE_H
#define FATHOM_TRACE_TOLD_CODE_H

#include <stdatomic.h>

#include "host/trace/code_rows.h"

/* Kinds of code. */
enum fathom_told_kind {
	FATHOM_TOLD_IMAGE = 1,  /* the runtime */
	FATHOM_TOLD_HOOK = 2,   /* a copy of the hook; of its clock so many more */
	FATHOM_TOLD_LOADED = 5, /* a copy of the dynamic linker's stub */
	FATHOM_TOLD_STUB = 6,   /* stubs: the return address is on top of the stack */
};

/* A range of code. */
struct fathom_told {
	uint64_t avma;
	uint32_t size; /* bytes */
	uint32_t kind; /* enum fathom_told_kind */
};

/* Ranges there is room for; what is beyond is not told. Memory is taken as it is written. */
#define FATHOM_MOST_TOLD (1u << 20)

struct fathom_told_code {
	_Atomic uint32_t n;
	struct fathom_told items[FATHOM_MOST_TOLD];
};

/* Shared by a process that traces itself and its reader. */
struct fathom_insider {
	struct fathom_told_code *told; /* NULL: nobody is to be told */
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
struct fathom_told_code *fathom_told_code_create(void);
void fathom_told_code_destroy(struct fathom_told_code *t);

/* Adds a range; does nothing where nobody is to be told: @t is NULL. */
void fathom_told_code_add(struct fathom_told_code *t, uint64_t avma, uint64_t size, uint32_t kind);

/* Tells the unwinders of the calling process, in which the code is. What fails is left out. */
void fathom_told_code_publish(const struct fathom_told_code *t, struct fathom_code_rows *rows);

#endif
