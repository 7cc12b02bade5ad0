/* SPDX-License-Identifier: MIT */
#include "host/hook/near_code.h"

#include <stdint.h>
#include <sys/mman.h>

#include "host/file/maps.h"
#include "host/hook/dispatch.h"
#include "host/rewrite/text_write.h"

#define POOL_SIZE FATHOM_NEAR_POOL_SIZE

/* Returns where near @site there is room for a pool; 0: nowhere. */
static uint64_t room_near(const struct fathom_site *site)
{
	struct fathom_maps maps;
	uint64_t room;

	if (fathom_maps_read("/proc/self/maps", &maps, NULL))
		return 0;
	room = fathom_maps_room_below(&maps, site->address, POOL_SIZE);
	fathom_maps_deinit(&maps);
	return room;
}

/* Writes the beginning of a pool, in which nobody runs yet. */
static fathom_err begin(uint64_t pool)
{
	const uint64_t dispatch = (uintptr_t)fathom_hook_entry;
	struct fathom_text_writes writes = { 0 };
	uint8_t start[FATHOM_NEAR_START];
	const size_t size = fathom_near_start(dispatch, start);
	fathom_err err = FATHOM_E_MEMORY;

	if (fathom_text_writes_add(&writes, pool, start, size, 0))
		err = fathom_text_write_unused(&writes, NULL);
	fathom_array_free(&writes);
	return err;
}

/* Maps a pool near @site; avma is 0 if there is no room. */
static fathom_err make_pool(const struct fathom_site *site, struct fathom_near_pool *ret)
{
	const uint64_t room = room_near(site);
	void *memory = MAP_FAILED;
	fathom_err err;

	*ret = (struct fathom_near_pool){
		.used = FATHOM_NEAR_START,
		.is_behind_prologue = (site->flags & FATHOM_SITE_BEHIND_PROLOGUE) != 0,
	};
	if (room)
		memory = mmap((void *)(uintptr_t)room, POOL_SIZE, PROT_READ | PROT_EXEC,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (memory == MAP_FAILED)
		return FATHOM_OK;
	err = begin((uintptr_t)memory);
	if (err) {
		(void)munmap(memory, POOL_SIZE);
		return err;
	}
	ret->avma = (uintptr_t)memory;
	fathom_near_publish(ret);
	return FATHOM_OK;
}

/* Returns whether all stubs of @pool are within reach of @site. */
static bool is_near(const struct fathom_near_pool *pool, const struct fathom_site *site)
{
	const uint64_t distance = pool->avma > site->address ? pool->avma - site->address
							     : site->address - pool->avma;

	return distance < fathom_near_reach - 2 * POOL_SIZE;
}

/* Takes a stub of @pool for @site; avma is 0 if none is within reach. */
static struct fathom_near_stub take(struct fathom_near_pool *pool, const struct fathom_site *site)
{
	struct fathom_near_stub ret = { .dispatch = pool->avma, .arena = pool->arena };

	if (pool->is_behind_prologue != ((site->flags & FATHOM_SITE_BEHIND_PROLOGUE) != 0) ||
	    !is_near(pool, site))
		return ret;
	/* One whose lowest byte cannot switch it is left out; the next one can. */
	for (int i = 0; i < 2 && pool->used + FATHOM_HOOK_STUB_SIZE <= POOL_SIZE && !ret.avma;
	     i++) {
		if (fathom_hooked_site_reaches(site, pool->avma + pool->used))
			ret.avma = pool->avma + pool->used;
		pool->used += FATHOM_HOOK_STUB_SIZE;
	}
	return ret;
}

fathom_err fathom_near_stub(struct fathom_near_code *code, const struct fathom_site *site,
			    struct fathom_near_stub *ret)
{
	struct fathom_near_pool pool;

	ret->avma = 0;
	for (size_t i = code->n; !ret->avma && i-- > 0;)
		*ret = take(&code->items[i], site);
	if (ret->avma)
		return FATHOM_OK;
	if (!fathom_array_room(code, 1))
		return FATHOM_E_MEMORY;
	FATHOM_TRY(make_pool(site, &pool));
	if (!pool.avma)
		return FATHOM_OK;
	*ret = take(&pool, site);
	(void)fathom_array_push(code, pool);
	return FATHOM_OK;
}
