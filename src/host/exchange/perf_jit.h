/* SPDX-License-Identifier: MIT */
/*
 * Names of JIT code in files of perf record: the jitdumps whose mappings the file has, read up to
 * the time of each sample (host/jit/jitdump.h).
 */
#ifndef FATHOM_EXCHANGE_PERF_JIT_H
#define FATHOM_EXCHANGE_PERF_JIT_H

#include "host/base/array.h"
#include "host/base/memory.h"
#include "host/profile/record_space.h"

struct fathom_perf_dump;

struct fathom_perf_jit {
	struct fathom_memory *memory;
	bool has_times; /* samples have the time of jitdumps, else a jitdump is read to its end */
	uint64_t now;   /* time of the sample that is located */
	struct {
		FATHOM_ARRAY_OF(struct fathom_perf_dump *);
	} dumps;
};

/*
 * Names the JIT code of @space by the file that @r, of its process, maps, if that is a jitdump of
 * the process. A file that cannot be read is passed over. FATHOM_E_MEMORY.
 */
fathom_err fathom_perf_jit_map(struct fathom_perf_jit *j, const struct fathom_perf_record *r,
			       struct fathom_record_space *space);

/* Returns whether @path is called as jitdumps are: jit-PID.dump; *@ret_pid is that PID. */
bool fathom_perf_jit_is_dump(const char *path, uint32_t *ret_pid);

/* Closes all files; spaces that find code in them are not used any more. */
void fathom_perf_jit_deinit(struct fathom_perf_jit *j);

#endif
