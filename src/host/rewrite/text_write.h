/* SPDX-License-Identifier: MIT */
/*
 * Writes to the text of the calling process, through /proc/self/mem: whatever its protection, and
 * no page of it becomes writable.
 */
#ifndef FATHOM_REWRITE_TEXT_WRITE_H
#define FATHOM_REWRITE_TEXT_WRITE_H

#include "host/base/array.h"
#include "safe/base/error.h"

/* Bytes of one write that are kept with it. */
#define FATHOM_TEXT_WRITE_SIZE 24

struct fathom_text_write {
	uint64_t avma;
	uint64_t resume; /* a thread that stands in its bytes, not at the first, may go on there; 0:
			    nowhere */
	const uint8_t *from; /* NULL: bytes */
	uint32_t size;
	uint8_t bytes[FATHOM_TEXT_WRITE_SIZE];
};

struct fathom_text_writes {
	FATHOM_ARRAY_OF(struct fathom_text_write);
};

/* Adds one of @size bytes, which are copied; false without memory. */
bool fathom_text_writes_add(struct fathom_text_writes *w, uint64_t avma, const void *bytes,
			    size_t size, uint64_t resume);

/* Fails with FATHOM_E_OS. */
fathom_err fathom_text_fail(struct fathom_errinfo *reterr, int number, const char *what);

/* Returns whether the process has one thread only. */
bool fathom_text_is_alone(void);

/* Opens the memory of the calling process; -1 with errno. */
int fathom_text_open(void);

/*
 * Writes them all; false: what was written is as it was before, if @was, room for all their bytes,
 * is there. Calls nothing but the kernel.
 */
bool fathom_text_write_all(const struct fathom_text_writes *w, int memory, uint8_t *was);

/* Writes them all to where nobody runs. FATHOM_E_OS: some may be written. */
fathom_err fathom_text_write_unused(const struct fathom_text_writes *w,
				    struct fathom_errinfo *reterr);

/* Makes the processors of other threads, which run, fetch the written instructions anew. */
fathom_err fathom_text_synchronize(struct fathom_errinfo *reterr);

#endif
