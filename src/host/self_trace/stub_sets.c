/* SPDX-License-Identifier: MIT */
#include "host/self_trace/stub_sets.h"

#include <sys/mman.h>

#include "host/base/page.h"
#include "host/code/native.h"
#include "host/file/maps.h"

static const struct fathom_stub_site *find_site(const struct fathom_stub_set *set, uint64_t site)
{
	const size_t i = FATHOM_BISECT(set->n, k, set->items[k].site < site);

	return i < set->n && set->items[i].site == site ? &set->items[i] : NULL;
}

/* Returns the stub of @s, for the hook at @hook; 0: it has none yet. */
static uint64_t find_stub(const struct fathom_stub_sets *sets, const struct fathom_stub_site *s,
			  uint64_t hook)
{
	for (size_t i = sets->n; i-- > 0;) {
		const struct fathom_stub_set *set = &sets->items[i];
		const struct fathom_stub_site *found =
			set->hook == hook ? find_site(set, s->site) : NULL;

		if (found && found->back == s->back)
			return found->stub;
	}
	return 0;
}

/* A pool that is to be made beside others. */
struct placing {
	const struct fathom_stub_sets *sets;
	uint64_t size;
};

/* Returns whether numbers of sites in a pool at @avma rise, and are no others' (linked.h). */
static bool has_own_numbers(const void *data, uint64_t avma)
{
	const struct placing *placing = data;
	const struct fathom_stub_sets *sets = placing->sets;
	const uint64_t size = placing->size;

	if ((uint32_t)avma > (uint32_t)(avma + size))
		return false;
	for (size_t i = 0; i < sets->n; i++) {
		const uint32_t low = (uint32_t)sets->items[i].code.avma;
		const uint32_t high = low + (uint32_t)sets->items[i].code.size;

		if ((uint32_t)avma < high && (uint32_t)(avma + size) > low)
			return false;
	}
	return true;
}

/* Returns the bytes of the jumps to hooks. */
static uint64_t start_size(const struct fathom_stub_set *set)
{
	return FATHOM_NATIVE_FAR_SIZE * (set->second ? 2 : 1);
}

/* Sets where stubs are: one after the other, or, of a form, @distance from their jumps. */
static void place_stubs(struct fathom_stub_set *set, int64_t distance)
{
	uint64_t at = set->code.avma + start_size(set);

	for (size_t i = 0; i < set->n; i++) {
		struct fathom_stub_site *s = &set->items[i];

		s->stub = s->form ? s->from + (uint64_t)distance : at;
		at = s->stub + fathom_stub_size(set);
	}
}

/* Writes all of @set; sites that are too far keep no stub. */
static void write_set(struct fathom_stub_set *set)
{
	uint8_t *memory = (uint8_t *)(uintptr_t)set->code.avma;

	fathom_native_put_far_jump(set->hook, memory);
	if (set->second)
		fathom_native_put_far_jump(set->second, memory + FATHOM_NATIVE_FAR_SIZE);
	for (size_t i = 0; i < set->n; i++) {
		struct fathom_stub_site *s = &set->items[i];

		if (!fathom_stub_write(set, s, s->stub, memory + (s->stub - set->code.avma)))
			s->stub = 0;
	}
}

/*
 * Tells unwinders how stacks go through @set. The caller of the stub of a system call is the
 * function that has the instruction, which goes on after that with all registers. Where calls push
 * their return addresses, that of a site's function is on top of the stack in all of the pool.
 */
static void publish(const struct fathom_stub_set *set)
{
	static const struct fathom_jit_unwind pushed = { .size = sizeof pushed,
							 .kind = FATHOM_JIT_PUSHED };
	const struct fathom_stub_registers *r = &fathom_native_registers;
	const uint64_t size = start_size(set) + set->n * fathom_stub_size(set);
	struct fathom_jit_unwind rule;
	struct fathom_stub_cfi cfi;

	if (!set->second && !r->link) {
		(void)fathom_trampoline_pool_publish(&set->code, 0, set->code.size, &pushed, true);
		return;
	}
	fathom_stub_cfi_init(&cfi, r, set->second ? r->pc : r->link, set->n);
	fathom_stub_cfi_called(&cfi);
	fathom_stub_cfi_advance(&cfi, start_size(set));
	fathom_stub_cfi_frame(&cfi, 0);
	for (size_t i = 0; i < set->n; i++)
		fathom_stub_describe(set, &set->items[i], &cfi);
	rule = fathom_stub_cfi_end(&cfi, set->code.avma, size);
	(void)fathom_trampoline_pool_publish(&set->code, 0, size, &rule, false);
	fathom_stub_cfi_deinit(&cfi);
}

/*
 * Tells unwinders how stacks go through jumps in front of functions: compilers' call frame
 * information begins after them. It stays, as the pool does.
 */
static void publish_prefixes(struct fathom_stub_set *set)
{
	static const struct fathom_jit_unwind pushed = { .size = sizeof pushed,
							 .kind = FATHOM_JIT_PUSHED };
	struct fathom_code_functions f = { 0 };

	for (size_t i = 0; i < set->n; i++) {
		const struct fathom_stub_site *s = &set->items[i];

		if (s->prefix && !fathom_code_functions_add(&f, s->prefix, s->from - s->prefix,
							    FATHOM_TRAMPOLINE_NAME, &pushed))
			break;
	}
	/* They are of one module: no pool lies between them. */
	fathom_trampoline_cfi_publish(&set->rows, &f, UINT64_MAX, FATHOM_JIT_WITHIN_FILE);
	fathom_array_free(&f);
}

static struct fathom_trampoline_pool map_anywhere(const struct fathom_stub_sets *sets,
						  const struct fathom_stub_set *set)
{
	const uint64_t page = fathom_page_size();
	const uint64_t size = start_size(set) + set->n * fathom_stub_size(set);
	const struct placing placing = { sets, (size + page - 1) / page * page };
	const struct fathom_trampoline_request want = {
		.low = set->items[0].site,
		.high = set->items[0].site,
		.reach = fathom_native_reach,
		.size = placing.size,
		.may_be_at = has_own_numbers,
		.data = &placing,
	};

	return fathom_trampoline_pool_map_own(&want, PROT_READ | PROT_WRITE);
}

/* Maps the pool of a form at the first distance that is free; sets *@ret_distance. */
static struct fathom_trampoline_pool map_at_distance(const struct fathom_stub_sets *sets,
						     const struct fathom_stub_set *set,
						     int64_t *ret_distance)
{
	const uint64_t page = fathom_page_size();
	const uint64_t low = set->items[0].from - start_size(set);
	const uint64_t high = set->items[set->n - 1].from + fathom_stub_size(set);
	struct fathom_trampoline_pool p = { 0 };
	struct fathom_maps maps;

	if (fathom_maps_read("/proc/self/maps", &maps, NULL))
		return p;
	for (uint32_t i = 0; !p.avma && fathom_stub_distance(set->items[0].form, i, ret_distance);
	     i++) {
		const uint64_t begin = (low + (uint64_t)*ret_distance) & ~(page - 1);
		const uint64_t end = high + (uint64_t)*ret_distance + page - 1;
		const struct placing placing = { sets, (end & ~(page - 1)) - begin };

		/* It may not lead beyond the end of all addresses. */
		if ((begin < low) == (*ret_distance < 0) && has_own_numbers(&placing, begin))
			p = fathom_trampoline_pool_map_at(&maps, begin, placing.size,
							  PROT_READ | PROT_WRITE);
	}
	fathom_maps_deinit(&maps);
	return p;
}

/* Maps and writes @set; it has no code if there is no room for it. FATHOM_E_OS. */
static fathom_err make(const struct fathom_stub_sets *sets, struct fathom_stub_set *set,
		       struct fathom_errinfo *reterr)
{
	int64_t distance = 0;

	set->code = set->items[0].form ? map_at_distance(sets, set, &distance)
				       : map_anywhere(sets, set);
	if (!set->code.avma)
		return FATHOM_OK;
	place_stubs(set, distance);
	write_set(set);
	FATHOM_TRY(fathom_trampoline_pool_seal(&set->code, reterr));
	publish(set);
	publish_prefixes(set);
	return FATHOM_OK;
}

/*
 * Moves the sites of @left that can share a pool with the first one to @set: jumps of one form,
 * whose stubs do not overlap.
 */
static bool take_form(struct fathom_stub_set *left, struct fathom_stub_set *set)
{
	const uint64_t form = left->items[0].form;
	uint64_t end = 0;
	size_t n = 0;

	for (size_t i = 0; i < left->n; i++) {
		const struct fathom_stub_site s = left->items[i];

		if (s.form != form || (form && s.from < end)) {
			left->items[n++] = s;
			continue;
		}
		if (!fathom_array_push(set, s))
			return false;
		end = s.from + fathom_stub_size(set);
	}
	left->n = n;
	return true;
}

/* Makes pools for all sites of @left, which has none then. */
static fathom_err make_all(struct fathom_stub_sets *sets, struct fathom_stub_set *left,
			   struct fathom_errinfo *reterr)
{
	fathom_err err = FATHOM_OK;

	while (left->n && !err) {
		struct fathom_stub_set set = { .hook = left->hook, .second = left->second };

		if (!fathom_array_room(sets, 1) || !take_form(left, &set))
			err = fathom_fail_memory(reterr);
		else
			err = make(sets, &set, reterr);
		if (err || !set.code.avma)
			fathom_array_free(&set);
		else
			(void)fathom_array_push(sets, set);
	}
	return err;
}

fathom_err fathom_stub_sets_get(struct fathom_stub_sets *sets, struct fathom_stub_set *module,
				struct fathom_errinfo *reterr)
{
	struct fathom_stub_set left = { .hook = module->hook, .second = module->second };
	fathom_err err = FATHOM_OK;

	for (size_t i = 0; i < module->n && !err; i++) {
		struct fathom_stub_site *s = &module->items[i];

		s->stub = find_stub(sets, s, module->hook);
		if (!s->stub && !fathom_array_push(&left, *s))
			err = fathom_fail_memory(reterr);
	}
	if (!err)
		err = make_all(sets, &left, reterr);
	fathom_array_free(&left);
	for (size_t i = 0; i < module->n && !err; i++)
		if (!module->items[i].stub)
			module->items[i].stub = find_stub(sets, &module->items[i], module->hook);
	return err;
}
