/* SPDX-License-Identifier: MIT */
/*
 * Stubs by which the calling process calls hooks of its own, in pools near the modules: at sites
 * (src/trace/linked.h), and before and after system calls (src/trace/syscall_linked.h). A pool is
 * written once, then executable, and never unmapped: a thread may be in it. A site has the same
 * stub each time that the process is traced with the same hook.
 *
 *	pool	 a jump to the hook; where there are two, a jump to the second
 *	stubs	 each as large as any; or, where jumps have a form, each as far from its jump
 */
#ifndef FATHOM_SELF_TRACE_STUB_SETS_H
#define FATHOM_SELF_TRACE_STUB_SETS_H

#include "fathom/trace.h"
#include "host/base/array.h"
#include "host/code/stub_cfi.h"
#include "host/sites/syscall_insns.h"
#include "host/trace/trampoline_cfi.h"
#include "host/trampoline/trampoline.h"
#include "safe/base/error.h"

/* A site that has a stub, or is to get one. */
struct fathom_stub_site {
	uint64_t site; /* avma of the instruction that leads to the stub */
	uint64_t back; /* avma at which the function goes on; 0: it returns */
	uint64_t stub; /* avma; 0: none within reach */
	uint64_t from; /* avma from which the jump to the stub counts */
	/* avma of that jump if it stands in front of the function, to which the site leads; 0 */
	uint64_t prefix;
	/* How far that may lead, as the processor's file knows; 0: anywhere within reach. */
	uint64_t form;
	/* The system call, of x86-64: known while the stub is made. */
	const struct fathom_syscall_insn *call;
};

/* Sites that share a trampoline pool, with or without stubs as yet; sorted by address. */
struct fathom_stub_set {
	uint64_t hook;   /* avma */
	uint64_t second; /* avma of the hook after a system call; 0: the sites are no such calls */
	struct fathom_trampoline_pool code;
	struct fathom_trampoline_cfi rows; /* of jumps in front of functions */
	FATHOM_ARRAY_OF(struct fathom_stub_site);
};

/* All zero, there are none. */
struct fathom_stub_sets {
	FATHOM_ARRAY_OF(struct fathom_stub_set);
};

/*
 * Finds the stubs of all sites in @module, sorted, for its hook, or makes them, in a pool within
 * reach. FATHOM_E_MEMORY, FATHOM_E_OS.
 */
fathom_err fathom_stub_sets_get(struct fathom_stub_sets *sets, struct fathom_stub_set *module,
				struct fathom_errinfo *reterr);

/* Each processor has these of its own (stub_x86_64.c and so on). */

/* Returns the bytes of a stub of @set. */
uint32_t fathom_stub_size(const struct fathom_stub_set *set);
/* Writes the stub of @s, which is to be at @avma, to @to; returns false if something is too far. */
bool fathom_stub_write(const struct fathom_stub_set *set, const struct fathom_stub_site *s,
		       uint64_t avma, uint8_t *to);
/*
 * Sets *@ret to the @i-th distance that jumps of @form may lead, the best one first; returns false
 * if there is none.
 */
bool fathom_stub_distance(uint64_t form, uint32_t i, int64_t *ret);
/* Appends its rules. */
void fathom_stub_describe(const struct fathom_stub_set *set, const struct fathom_stub_site *s,
			  struct fathom_stub_cfi *cfi);

#endif
