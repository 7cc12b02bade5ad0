/* SPDX-License-Identifier: MIT */
#include "host/trampoline/trampoline.h"

#include <errno.h>
#include <sys/mman.h>

#include "host/base/page.h"
#include "host/patch/own_text.h"

/* The lowest address that Linux lets anybody map (vm.mmap_min_addr). */
#define LOWEST_AVMA UINT64_C(0x10000)

/* Places in a gap that are looked at, at most. */
#define TRIES 4

bool fathom_trampoline_pool_reaches(const struct fathom_trampoline_pool *p, uint64_t low,
				    uint64_t high, uint64_t reach)
{
	const uint64_t first = p->avma < low ? p->avma : low;
	const uint64_t end = p->avma + p->size;

	return (end > high ? end : high) - first < reach;
}

/* Returns the avma of memory in the gap from @low to @high, with @spare bytes above it; or 0. */
static uint64_t place_in(const struct fathom_trampoline_request *want, uint64_t low, uint64_t high,
			 uint64_t spare)
{
	struct fathom_trampoline_pool p = { .avma = high - spare, .size = want->size };

	if (high < low || high - low < spare)
		return 0;
	for (int i = 0; i < TRIES && p.avma - low >= want->size; i++) {
		p.avma -= want->size;
		if (!fathom_trampoline_pool_reaches(&p, want->low, want->high, want->reach))
			return 0;
		if (!want->may_be_at || want->may_be_at(want->data, p.avma))
			return p.avma;
	}
	return 0;
}

static uint64_t place_below(const struct fathom_maps *maps,
			    const struct fathom_trampoline_request *want, uint64_t spare)
{
	uint64_t place = 0;

	for (size_t i = fathom_maps_at(maps, want->low); i < maps->n && !place; i--)
		place = place_in(want, i ? maps->items[i - 1].end : LOWEST_AVMA,
				 maps->items[i].start, spare);
	return place;
}

uint64_t fathom_trampoline_gap(const struct fathom_maps *maps,
			       const struct fathom_trampoline_request *want)
{
	const uint64_t place = place_below(maps, want, want->spare);

	return place || !want->spare ? place : place_below(maps, want, 0);
}

struct fathom_trampoline_pool fathom_trampoline_pool_map(
	const struct fathom_maps *maps, const struct fathom_trampoline_request *want,
	int protection, fathom_map_memory_fn *map, void *data)
{
	struct fathom_trampoline_pool p = { fathom_trampoline_gap(maps, want), want->size, 0 };

	if (p.avma && !map(data, p.avma, p.size, protection))
		p.avma = 0;
	return p;
}

/* Maps memory of the calling process (fathom_map_memory_fn). */
static bool map_own(void *data, uint64_t avma, uint64_t size, int protection)
{
	void *const at = (void *)(uintptr_t)avma;
	void *const got = mmap(at, size, protection,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	(void)data;
	/* Kernels before 4.17 take the address for a hint. */
	if (got != at && got != MAP_FAILED)
		(void)munmap(got, size);
	return got == at;
}

struct fathom_trampoline_pool fathom_trampoline_pool_map_own(
	const struct fathom_trampoline_request *want, int protection)
{
	struct fathom_trampoline_pool p = { 0 };
	struct fathom_maps maps;

	if (fathom_maps_read("/proc/self/maps", &maps, NULL))
		return p;
	p = fathom_trampoline_pool_map(&maps, want, protection, map_own, NULL);
	fathom_maps_deinit(&maps);
	return p;
}

struct fathom_trampoline_pool fathom_trampoline_pool_map_at(const struct fathom_maps *maps,
							    uint64_t avma, uint64_t size,
							    int protection)
{
	const struct fathom_trampoline_pool none = { 0 };
	const struct fathom_trampoline_pool p = { .avma = avma, .size = size };
	const size_t i = FATHOM_BISECT(maps->n, k, maps->items[k].end <= avma);

	if (avma < LOWEST_AVMA || avma + size < avma ||
	    (i < maps->n && maps->items[i].start < avma + size))
		return none;
	return map_own(NULL, avma, size, protection) ? p : none;
}

uint64_t fathom_trampoline_pool_take(struct fathom_trampoline_pool *p, uint64_t size)
{
	if (!p->avma || size > p->size - p->used)
		return 0;
	p->used += size;
	return p->avma + p->used - size;
}

fathom_err fathom_trampoline_pool_seal(const struct fathom_trampoline_pool *p,
				       struct fathom_errinfo *reterr)
{
	char *memory = (char *)(uintptr_t)p->avma;

	if (mprotect(memory, p->size, PROT_READ | PROT_EXEC)) {
		const int number = errno;

		(void)munmap(memory, p->size);
		return fathom_text_fail(reterr, number, "no code can be made");
	}
	__builtin___clear_cache(memory, memory + p->size);
	return FATHOM_OK;
}

struct fathom_jit_arena *fathom_trampoline_pool_publish(const struct fathom_trampoline_pool *p,
							uint64_t off, uint64_t size,
							const struct fathom_jit_unwind *rule,
							bool is_whole)
{
	const struct fathom_jit_arena_options o = { .size = sizeof o,
						    .unwind = is_whole ? rule : NULL };
	const struct fathom_jit_function code = {
		.size = sizeof code,
		.code = (const void *)(uintptr_t)(p->avma + off),
		.code_size = size,
		.name = FATHOM_TRAMPOLINE_NAME,
		.unwind = is_whole ? NULL : rule,
	};
	struct fathom_jit_arena *arena = NULL;

	if (!fathom_jit_arena_create((const void *)(uintptr_t)p->avma, p->size, &o, &arena, NULL))
		(void)fathom_jit_add(arena, &code, NULL);
	return arena;
}
