/* SPDX-License-Identifier: MIT */
/* Attaches to processes that run, and leaves them as they were. */
#ifndef FATHOM_TRACE_ATTACH_H
#define FATHOM_TRACE_ATTACH_H

#include "host/trace/tasks.h"

/* The code segment of programs of 64 bits. */
#define FATHOM_CODE_64 0x33

/*
 * Attaches to the @n processes @pids, records their calls, and follows them until all have ended or
 * are left; the calling thread traces. If one cannot be attached to, all are as they were.
 * FATHOM_E_NOT_FOUND, FATHOM_E_OS, FATHOM_E_UNSUPPORTED, FATHOM_E_MEMORY.
 */
fathom_err fathom_follow_attach(struct fathom_follow *f, const int32_t *pids, size_t n,
				struct fathom_errinfo *reterr);

/* Leaves all processes: their text is what it was, and no thread is in the runtime. */
void fathom_leave(struct fathom_follow *f);

/* Disables the sites that exceed the rate limit, with their threads stopped. */
void fathom_remove_flooding(struct fathom_follow *f);

/* Notes that threads were stopped since @begin. */
void fathom_note_stop(struct fathom_follow *f, int64_t begin);

#endif
