/* SPDX-License-Identifier: MIT */
#include "host/trace/stub_pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "host/base/page.h"
#include "host/file/maps.h"
#include "host/trace/arm_branch.h"
#include "host/trace/text_write.h"
#include "trace/linked.h"

/* Instructions of a pool's beginning and of stubs. */
enum {
	LOAD_X16 = 0x58000050, /* ldr x16, .+8 */
	BRANCH_X16 = 0xd61f0200,
	PUSH = 0xa9bd7bf0, /* stp x16, x30, [sp, #-48]! */
	POP = 0xa8c37bf0   /* ldp x16, x30, [sp], #48 */
};
_Static_assert(FATHOM_TRACE_STUB_FRAME == 48, "PUSH and POP have it");

/* Bytes of a pool's beginning, and of a stub. */
enum { START_SIZE = 16, STUB_SIZE = 16 };

/* DWARF numbers of registers. */
enum { X16 = 16, X30 = 30 };

/* How often another place is looked for. */
#define TRIES 4

static const struct fathom_stub_site *find(const struct fathom_stub_pool *pool, uint64_t site)
{
	const size_t i = FATHOM_BISECT(pool->n, k, pool->items[k].site < site);

	return i < pool->n && pool->items[i].site == site ? &pool->items[i] : NULL;
}

/* Returns the stub of @s, for the hook at @hook; 0: it has none yet. */
static uint64_t find_stub(const struct fathom_stub_pools *pools, const struct fathom_stub_site *s,
			  uint64_t hook)
{
	for (size_t i = pools->n; i-- > 0;) {
		const struct fathom_stub_pool *pool = &pools->items[i];
		const struct fathom_stub_site *found =
			pool->hook == hook ? find(pool, s->site) : NULL;

		if (found && found->behind == s->behind)
			return found->stub;
	}
	return 0;
}

/* Returns whether numbers of sites in @size bytes at @avma rise, and are no others' (linked.h). */
static bool has_own_numbers(const struct fathom_stub_pools *pools, uint64_t avma, uint64_t size)
{
	if ((uint32_t)avma > (uint32_t)(avma + size))
		return false;
	for (size_t i = 0; i < pools->n; i++) {
		const uint32_t low = (uint32_t)pools->items[i].avma;
		const uint32_t high = low + (uint32_t)pools->items[i].size;

		if ((uint32_t)avma < high && (uint32_t)(avma + size) > low)
			return false;
	}
	return true;
}

/* Returns where @size bytes have room below @site; 0: nowhere. */
static uint64_t find_room(const struct fathom_stub_pools *pools, uint64_t site, uint64_t size)
{
	struct fathom_maps maps;
	uint64_t room = 0;

	if (fathom_maps_read("/proc/self/maps", &maps, NULL))
		return 0;
	for (unsigned i = 1; i <= TRIES; i++) {
		room = fathom_maps_room_below(&maps, site, i * size);
		if (room && has_own_numbers(pools, room, size))
			break;
		room = 0;
	}
	fathom_maps_deinit(&maps);
	return room;
}

/* Writes the stub of @s, which is to be at @avma, to @to; false: something is too far. */
static bool write_stub(const struct fathom_stub_site *s, uint64_t avma, uint64_t pool, uint32_t *to)
{
	uint32_t unused;

	to[0] = PUSH;
	to[2] = POP;
	return fathom_arm_call(avma + 4, pool, &to[1]) &&
	       fathom_arm_jump(avma + 12, s->behind, &to[3]) &&
	       fathom_arm_jump(s->site, avma, &unused);
}

/* Writes all of @pool to @to, where it is to run; sites that are too far keep no stub. */
static void write_pool(struct fathom_stub_pool *pool, uint32_t *to)
{
	uint64_t avma = pool->avma + START_SIZE;

	to[0] = LOAD_X16;
	to[1] = BRANCH_X16;
	memcpy(&to[2], &pool->hook, sizeof pool->hook);
	to += START_SIZE / sizeof *to;
	for (size_t i = 0; i < pool->n; i++, avma += STUB_SIZE, to += STUB_SIZE / sizeof *to)
		if (write_stub(&pool->items[i], avma, pool->avma, to))
			pool->items[i].stub = avma;
}

/* What the four instructions of each stub do to the stack. */
static void describe_stub(uint32_t off, struct fathom_jit_event *to)
{
	to[0] = (struct fathom_jit_event){ .offset = off + 4,
					   .kind = FATHOM_JIT_SUB,
					   .value = FATHOM_TRACE_STUB_FRAME };
	to[1] = (struct fathom_jit_event){
		.offset = off + 4, .kind = FATHOM_JIT_SAVE, .reg = X16, .value = 0
	};
	to[2] = (struct fathom_jit_event){
		.offset = off + 4, .kind = FATHOM_JIT_SAVE, .reg = X30, .value = 8
	};
	to[3] = (struct fathom_jit_event){ .offset = off + 12,
					   .kind = FATHOM_JIT_RESTORE,
					   .reg = X16 };
	to[4] = (struct fathom_jit_event){ .offset = off + 12,
					   .kind = FATHOM_JIT_RESTORE,
					   .reg = X30 };
	to[5] = (struct fathom_jit_event){ .offset = off + 12,
					   .kind = FATHOM_JIT_ADD,
					   .value = FATHOM_TRACE_STUB_FRAME };
}

/* Tells unwinders how stacks go through stubs. They can go without. */
static void publish(const struct fathom_stub_pool *pool)
{
	enum { EVENTS = 6 };
	struct fathom_jit_event *events = calloc(pool->n, EVENTS * sizeof *events);
	const struct fathom_jit_unwind rule = { .size = sizeof rule,
						.kind = FATHOM_JIT_EVENTS,
						.events = events,
						.n_events = EVENTS * pool->n };
	const struct fathom_jit_arena_options o = { .size = sizeof o };
	const struct fathom_jit_function all = {
		.size = sizeof all,
		.code = (const void *)(uintptr_t)pool->avma,
		.code_size = START_SIZE + pool->n * STUB_SIZE,
		.name = "[hook]",
		.unwind = &rule,
	};
	struct fathom_jit_arena *arena;

	for (size_t i = 0; events && i < pool->n; i++)
		describe_stub((uint32_t)(START_SIZE + i * STUB_SIZE), events + i * EVENTS);
	if (events && !fathom_jit_arena_create(all.code, pool->size, &o, &arena, NULL))
		(void)fathom_jit_add(arena, &all, NULL);
	free(events);
}

/* Maps and writes @pool; avma stays 0 if there is no room for it. FATHOM_E_OS. */
static fathom_err make(const struct fathom_stub_pools *pools, struct fathom_stub_pool *pool,
		       struct fathom_errinfo *reterr)
{
	const uint64_t page = fathom_page_size();
	const uint64_t size = (START_SIZE + pool->n * STUB_SIZE + page - 1) / page * page;
	const uint64_t room = find_room(pools, pool->items[0].site, size);
	char *memory = MAP_FAILED;

	if (room)
		memory = mmap((void *)(uintptr_t)room, size, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (memory == MAP_FAILED)
		return FATHOM_OK;
	pool->avma = (uintptr_t)memory;
	pool->size = size;
	write_pool(pool, (uint32_t *)(void *)memory);
	if (mprotect(memory, size, PROT_READ | PROT_EXEC)) {
		const int number = errno;

		(void)munmap(memory, size);
		return fathom_text_fail(reterr, number, "no code can be made");
	}
	__builtin___clear_cache(memory, memory + size);
	publish(pool);
	return FATHOM_OK;
}

fathom_err fathom_stub_pools_get(struct fathom_stub_pools *pools, struct fathom_stub_pool *module,
				 struct fathom_errinfo *reterr)
{
	struct fathom_stub_pool fresh = { .hook = module->hook };
	fathom_err err = FATHOM_OK;

	for (size_t i = 0; i < module->n; i++) {
		struct fathom_stub_site *s = &module->items[i];

		s->stub = find_stub(pools, s, module->hook);
		if (!s->stub && !fathom_array_push(&fresh, *s))
			err = FATHOM_E_MEMORY;
	}
	if (!err && fresh.n && !fathom_array_room(pools, 1))
		err = FATHOM_E_MEMORY;
	if (err)
		(void)fathom_fail_memory(reterr);
	else if (fresh.n)
		err = make(pools, &fresh, reterr);
	if (err || !fresh.avma) {
		fathom_array_free(&fresh);
		return err;
	}
	(void)fathom_array_push(pools, fresh);
	for (size_t i = 0; i < module->n; i++)
		if (!module->items[i].stub)
			module->items[i].stub = find_stub(pools, &module->items[i], module->hook);
	return FATHOM_OK;
}
