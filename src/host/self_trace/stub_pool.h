/* SPDX-License-Identifier: MIT */
/*
 * Stubs by which the calling process calls hooks of its own, in pools near the modules: at sites
 * (aarch64; src/trace/linked.h), and before and behind system calls (src/trace/syscall_linked.h). A
 * pool is written once, then executable, and never unmapped: a thread may be in it. A site has the
 * same stub each time that the process is traced with the same hook.
 *
 *	pool	 a jump to the hook; where there are two, a jump to the second
 *	stubs	 each as large as any
 */
#ifndef FATHOM_SELF_TRACE_STUB_POOL_H
#define FATHOM_SELF_TRACE_STUB_POOL_H

#include "fathom/trace.h"
#include "host/base/array.h"
#include "host/code/stub_cfi.h"
#include "host/sites/syscall_insns.h"
#include "host/trampoline/trampoline.h"
#include "safe/base/error.h"

/* A site that has a stub, or is to get one. */
struct fathom_stub_site {
	uint64_t site;   /* avma of the instruction that leads to the stub */
	uint64_t behind; /* avma at which the function goes on */
	uint64_t stub;   /* avma; 0: none within reach */
	/* The system call, of x86-64: known while the stub is made. */
	const struct fathom_syscall_insn *call;
};

/* A pool, or the sites of one to come; sorted by address. */
struct fathom_stub_pool {
	uint64_t hook;   /* avma */
	uint64_t second; /* avma of the hook behind a system call; 0: the sites are no such calls */
	struct fathom_trampoline_pool code;
	FATHOM_ARRAY_OF(struct fathom_stub_site);
};

/* All zero, there are none. */
struct fathom_stub_pools {
	FATHOM_ARRAY_OF(struct fathom_stub_pool);
};

/*
 * Finds the stubs of all sites in @module, sorted, for its hook, or makes them, in a pool within
 * reach. FATHOM_E_MEMORY, FATHOM_E_OS.
 */
fathom_err fathom_stub_pools_get(struct fathom_stub_pools *pools, struct fathom_stub_pool *module,
				 struct fathom_errinfo *reterr);

/* Each processor has these of its own (stub_x86_64.c and so on). */

/* Returns the bytes of a stub of @pool. */
uint32_t fathom_stub_size(const struct fathom_stub_pool *pool);
/* Writes the stub of @s, which is to be at @avma, to @to; returns false if something is too far. */
bool fathom_stub_write(const struct fathom_stub_pool *pool, const struct fathom_stub_site *s,
		       uint64_t avma, uint8_t *to);
/* Appends its rules. */
void fathom_stub_describe(const struct fathom_stub_pool *pool, const struct fathom_stub_site *s,
			  struct fathom_stub_cfi *cfi);

#endif
