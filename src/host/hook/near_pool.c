/* SPDX-License-Identifier: MIT */
#include "host/hook/near_pool.h"

#include <sys/mman.h>

#include "host/code/native.h"
#include "host/hook/dispatch.h"
#include "host/patch/own_text.h"

/* Writes the beginning of a pool, in which nobody runs yet. */
static fathom_err begin_pool(uint64_t pool)
{
	struct fathom_text_plan plan = { 0 };
	uint8_t start[FATHOM_NATIVE_FAR_SIZE] = { 0 };
	fathom_err err = FATHOM_E_MEMORY;

	fathom_native_put_far_jump((uintptr_t)fathom_hook_entry, start);
	if (fathom_text_plan_add(&plan, pool, NULL, start, sizeof start, 0))
		err = fathom_text_put_unused(&plan, true, NULL);
	fathom_text_plan_clear(&plan);
	return err;
}

/*
 * Maps a pool near @site; it has no code if there is no room. Stubs are added while others run, so
 * it is executable from the beginning.
 */
static fathom_err make_pool(const struct fathom_site *site, struct fathom_near_pool *ret)
{
	const struct fathom_trampoline_request want = {
		.low = site->address,
		.high = site->address,
		.reach = fathom_native_reach,
		.size = FATHOM_NEAR_POOL_SIZE,
	};
	fathom_err err;

	*ret = (struct fathom_near_pool){
		.code = fathom_trampoline_pool_map_own(&want, PROT_READ | PROT_EXEC),
		.is_behind_prologue = (site->flags & FATHOM_SITE_BEHIND_PROLOGUE) != 0,
	};
	if (!ret->code.avma)
		return FATHOM_OK;
	err = begin_pool(fathom_trampoline_pool_take(&ret->code, FATHOM_NATIVE_FAR_SIZE));
	if (err) {
		(void)munmap((void *)(uintptr_t)ret->code.avma, ret->code.size);
		return err;
	}
	fathom_near_publish(ret);
	return FATHOM_OK;
}

/* Takes a stub of @pool for @site; avma is 0 if none is within reach. */
static struct fathom_near_stub take_stub(struct fathom_near_pool *pool,
					 const struct fathom_site *site)
{
	struct fathom_near_stub ret = { .dispatch = pool->code.avma, .arena = pool->arena };

	if (pool->is_behind_prologue != ((site->flags & FATHOM_SITE_BEHIND_PROLOGUE) != 0) ||
	    !fathom_trampoline_pool_reaches(&pool->code, site->address, site->address,
					    fathom_native_reach))
		return ret;
	/* One whose lowest byte cannot switch it is left out; the next one can. */
	for (int i = 0; i < 2 && !ret.avma; i++) {
		const uint64_t avma =
			fathom_trampoline_pool_take(&pool->code, FATHOM_HOOK_STUB_SIZE);

		if (avma && fathom_hooked_site_reaches(site, avma))
			ret.avma = avma;
	}
	return ret;
}

fathom_err fathom_near_stub(struct fathom_near_pools *code, const struct fathom_site *site,
			    struct fathom_near_stub *ret)
{
	struct fathom_near_pool pool;

	ret->avma = 0;
	for (size_t i = code->n; !ret->avma && i-- > 0;)
		*ret = take_stub(&code->items[i], site);
	if (ret->avma)
		return FATHOM_OK;
	if (!fathom_array_room(code, 1))
		return FATHOM_E_MEMORY;
	FATHOM_TRY(make_pool(site, &pool));
	if (!pool.code.avma)
		return FATHOM_OK;
	*ret = take_stub(&pool, site);
	(void)fathom_array_push(code, pool);
	return FATHOM_OK;
}
