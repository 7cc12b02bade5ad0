/* SPDX-License-Identifier: MIT */
/*
 * Trampoline pools: memory for stubs, near the code that leads to them, in the calling process or
 * in a traced one. No page of them is ever writable and executable.
 */
#ifndef FATHOM_TRAMPOLINE_TRAMPOLINE_H
#define FATHOM_TRAMPOLINE_TRAMPOLINE_H

#include "fathom/jit.h"
#include "host/file/maps.h"
#include "safe/base/error.h"

/* Memory that is wanted near code. */
struct fathom_trampoline_request {
	uint64_t low; /* branches in code from here */
	uint64_t high;
	uint64_t reach; /* lead so many bytes either way */
	uint64_t size;  /* bytes */
	uint64_t spare; /* bytes above it that stay free where there is room for them, too */
	/* Returns whether the memory may be at @avma; NULL: anywhere. */
	bool (*may_be_at)(const void *data, uint64_t avma);
	const void *data;
};

/* Maps @size bytes at @avma, which are free, in some process; returns whether they are there. */
typedef bool fathom_map_memory_fn(void *data, uint64_t avma, uint64_t size, int protection);

/* A pool. All zero, there is none. */
struct fathom_trampoline_pool {
	uint64_t avma; /* 0: there is none */
	uint64_t size; /* bytes */
	uint64_t used; /* bytes, from its beginning on */
};

/* Returns whether branches that lead @reach bytes lead from all of @low to @high to all of @p. */
bool fathom_trampoline_pool_reaches(const struct fathom_trampoline_pool *p, uint64_t low,
				    uint64_t high, uint64_t reach);

/*
 * Returns the avma of the memory that @want asks for in a free gap of @maps; 0: there is none. It
 * lies below the code: what is above a program is its heap's.
 */
uint64_t fathom_trampoline_gap(const struct fathom_maps *maps,
			       const struct fathom_trampoline_request *want);

/*
 * Maps a pool where @want says, with @protection, by @map, in the process that has @maps; returns
 * the pool, whose avma is 0 if there is no room.
 */
struct fathom_trampoline_pool fathom_trampoline_pool_map(
	const struct fathom_maps *maps, const struct fathom_trampoline_request *want,
	int protection, fathom_map_memory_fn *map, void *data);
/* Maps one in the calling process. */
struct fathom_trampoline_pool fathom_trampoline_pool_map_own(
	const struct fathom_trampoline_request *want, int protection);

/*
 * Maps one of @size bytes at @avma in the calling process, which has @maps; its avma is 0 if that
 * is not free.
 */
struct fathom_trampoline_pool fathom_trampoline_pool_map_at(const struct fathom_maps *maps,
							    uint64_t avma, uint64_t size,
							    int protection);

/* Takes @size bytes of @p; returns their avma, 0 if so many are not left. */
uint64_t fathom_trampoline_pool_take(struct fathom_trampoline_pool *p, uint64_t size);

/*
 * Makes @p, of the calling process, which is writable, executable instead. FATHOM_E_OS: it is
 * unmapped.
 */
fathom_err fathom_trampoline_pool_seal(const struct fathom_trampoline_pool *p,
				       struct fathom_errinfo *reterr);

/* Name of stubs, for debuggers. */
#define FATHOM_TRAMPOLINE_NAME "[hook]"

/*
 * Tells unwinders of the calling process how stacks go through the @size bytes of @p from @off on:
 * by @rule, or, if it @is_whole, that is the rule of all of @p. Returns the arena by which more can
 * be told; NULL: they know nothing, and can go without.
 */
struct fathom_jit_arena *fathom_trampoline_pool_publish(const struct fathom_trampoline_pool *p,
							uint64_t off, uint64_t size,
							const struct fathom_jit_unwind *rule,
							bool is_whole);

#endif
