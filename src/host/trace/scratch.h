/* SPDX-License-Identifier: MIT */
/*
 * Memory of a process on which one of its stopped threads makes system calls for us. It is mapped
 * for that and unmapped afterwards: what lies below a thread's stack pointer may be somebody
 * else's, as in goroutines and other fibres, whose stacks lie next to each other.
 */
#ifndef FATHOM_TRACE_SCRATCH_H
#define FATHOM_TRACE_SCRATCH_H

#include "host/file/maps.h"
#include "host/trace/program.h"
#include "host/tracer/recovery_frame.h"

/* Bytes at its beginning that are free for arguments of calls. */
#define FATHOM_SCRATCH_FREE 4096

struct fathom_scratch {
	struct fathom_traced *process;
	pid_t tid;
	uint64_t avma;
	uint64_t call; /* avma of `syscall` */
	uint64_t low;  /* free memory below the thread's stack pointer, up to high; both 0: none */
	uint64_t high;
	struct fathom_recovery_code way;
};

/*
 * Maps @ret in @p, which has @maps, by calls of stopped thread @tid; calls of @p's tracee are made
 * on it then. FATHOM_E_UNSUPPORTED where no code calls the kernel; FATHOM_E_OS.
 */
fathom_err fathom_scratch_map(struct fathom_traced *p, pid_t tid, const struct fathom_maps *maps,
			      struct fathom_scratch *ret, struct fathom_errinfo *reterr);
/* Writes it down on the list of @p, if that is there. */
void fathom_scratch_note(const struct fathom_scratch *s);
void fathom_scratch_unmap(struct fathom_scratch *s);

/* Returns how well stopped thread @tid is fit to make calls; more is better. */
int fathom_scratch_fitness(pid_t tid, const struct fathom_maps *maps);

#endif
