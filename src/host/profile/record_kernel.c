/* SPDX-License-Identifier: MIT */
#include "host/profile/record_kernel.h"

#include <string.h>

#include "fathom/symbolize.h"
#include "host/space/target.h"
#include "host/symbolize/answers.h"

/* Markers between the addresses of a call chain are above this (PERF_CONTEXT_MAX). */
#define FIRST_MARKER ((uint64_t)PERF_CONTEXT_MAX)

static void open_kernel(struct fathom_record_kernel *k)
{
	k->is_tried = true;
	if (fathom_target_open_kernel(k->session, NULL, &k->target, NULL)) {
		k->target = NULL;
		return;
	}
	if (fathom_view_begin(k->target, FATHOM_VIEW_PLACES, &k->view, NULL))
		k->view = NULL;
}

/* Finds the symbol of the code at @pc; FATHOM_TABLE_NONE: it has none. */
static fathom_err find_symbol(struct fathom_record_kernel *k, const struct fathom_pc *pc,
			      struct fathom_stack_table *table, uint32_t *ret)
{
	const struct fathom_batch_options o = { .flags = FATHOM_NAMES_ONLY, .kinds = &pc->kind };
	struct fathom_answers *answers;
	const struct fathom_answer *a;
	fathom_err err;

	*ret = FATHOM_TABLE_NONE;
	if (!k->is_tried)
		open_kernel(k);
	if (!k->view)
		return FATHOM_OK;
	err = fathom_view_answer(k->view, &o, &pc->address, 1, &answers, NULL);
	if (err)
		return err == FATHOM_E_MEMORY ? err : FATHOM_OK;
	a = fathom_answers_get(answers, 0);
	if (a->symbol) {
		const struct fathom_profile_symbol symbol = {
			.name = { a->symbol, a->symbol_size },
			.linkage_name = { a->linkage_name, a->linkage_size },
			.source = a->source,
		};

		*ret = fathom_table_symbol(table, &symbol);
		err = *ret == FATHOM_TABLE_NONE ? FATHOM_E_MEMORY : FATHOM_OK;
	}
	fathom_answers_free(answers);
	return err;
}

static fathom_err location_of(struct fathom_record_kernel *k, const struct fathom_pc *pc,
			      struct fathom_stack_table *table, uint32_t *ret)
{
	const struct fathom_profile_module m = { .path = "[kernel]",
						 .kind = FATHOM_PROFILE_MODULE_KERNEL };
	/* Bit 62 of an address in the kernel is set. */
	const uint64_t key = pc->address ^ (uint64_t)pc->kind << 62;
	struct fathom_profile_location l = { .pc = *pc };
	uint32_t *number = fathom_key_map_at(&k->places, key);
	uint32_t symbol;

	if (!number)
		return FATHOM_E_MEMORY;
	if (*number == FATHOM_KEY_NEW) {
		FATHOM_TRY(find_symbol(k, pc, table, &symbol));
		l.module = fathom_table_module(table, &m);
		l.trust = pc->kind == FATHOM_PC_RETURN ? FATHOM_TRUST_CFI : FATHOM_TRUST_REGISTERS;
		*number = l.module == FATHOM_TABLE_NONE ? FATHOM_KEY_NEW
							: fathom_table_location(table, &l, symbol);
	}
	*ret = *number;
	return *number == FATHOM_KEY_NEW ? FATHOM_E_MEMORY : FATHOM_OK;
}

fathom_err fathom_record_kernel_walk(struct fathom_record_kernel *k,
				     const struct fathom_perf_record *r,
				     struct fathom_stack_table *table, uint32_t caller,
				     uint32_t *ret)
{
	*ret = caller;
	for (uint64_t i = r->sample.n_kernel; i-- > 0;) {
		struct fathom_pc pc = { .kind = FATHOM_PC_EXACT };
		uint32_t location;

		memcpy(&pc.address, r->sample.kernel + 8 * i, sizeof pc.address);
		if (pc.address >= FIRST_MARKER)
			continue;
		/* The marker is the first, then the instruction that was interrupted. */
		if (i > 1)
			pc.kind = FATHOM_PC_RETURN;
		FATHOM_TRY(location_of(k, &pc, table, &location));
		*ret = fathom_table_node(table, *ret, location);
		if (!*ret)
			return FATHOM_E_MEMORY;
	}
	return FATHOM_OK;
}

void fathom_record_kernel_deinit(struct fathom_record_kernel *k)
{
	fathom_view_end(k->view);
	fathom_target_release(k->target);
	fathom_key_map_deinit(&k->places);
}
