/* SPDX-License-Identifier: MIT */
#include "host/sites/sites.h"

#include <stdlib.h>

#include "host/sites/site_work.h"

/*
 * How often each byte of a file may be looked at: real ones are decoded once or twice. Overlapping
 * functions, or records in no order, could ask for more than ends in time.
 */
#define MAX_LOOKS 16

/*
 * Orders sites by address; of one address, what a section records comes first, and of that what
 * takes the fewest NOPs, as padding may stand before them.
 */
static int compare(const void *pa, const void *pb)
{
	const struct fathom_raw_site *a = pa;
	const struct fathom_raw_site *b = pb;
	int order = u64_compare(a->svma, b->svma);

	if (!order)
		order = u64_compare(a->kind, b->kind);
	return order ? order : u64_compare(a->prefix, b->prefix);
}

/* Sorts the sites. Keeps one of each address; drops those that start in the slot before. */
static void finish(struct fathom_module_sites *to)
{
	size_t n = 0;

	qsort(to->items, to->n, sizeof *to->items, compare);
	for (size_t i = 0; i < to->n; i++) {
		const struct fathom_raw_site *s = &to->items[i];
		const struct fathom_raw_site *last = n ? &to->items[n - 1] : NULL;

		if (last && s->svma == last->svma)
			continue;
		if (last && s->svma - last->svma < last->size) {
			to->n_refused[FATHOM_REFUSED_OVERLAP]++;
			continue;
		}
		to->n_kind[s->kind]++;
		to->items[n++] = *s;
	}
	to->n = n;
}

static fathom_err find_all_kinds(struct fathom_site_work *w)
{
	w->fixups = fathom_fixups_create(w->object);
	if (!w->fixups || !fathom_array_room(w->to, 1))
		return FATHOM_E_MEMORY;
	FATHOM_TRY(fathom_functions_init(&w->functions, w->module));
	FATHOM_TRY(fathom_hooks_init(&w->hooks, w->module, w->fixups));
	FATHOM_TRY(fathom_site_find_patchable(w));
	FATHOM_TRY(fathom_site_find_locations(w));
	FATHOM_TRY(fathom_site_find_xray(w));
	FATHOM_TRY(fathom_site_find_entries(w));
	FATHOM_TRY(fathom_site_find_exits(w));
	w->to->n_functions = (uint32_t)w->functions.n;
	finish(w->to);
	return FATHOM_OK;
}

fathom_err fathom_module_sites_find(struct fathom_module *m, struct fathom_module_sites *ret)
{
	const uint16_t machine = m->main->image.machine;
	struct fathom_site_work w = { .module = m, .object = m->main, .to = ret };
	fathom_err err;

	*ret = (struct fathom_module_sites){ 0 };
	if ((machine != EM_X86_64 && machine != EM_AARCH64) || !m->main->image.is64)
		return FATHOM_OK;
	w.is_aarch64 = machine == EM_AARCH64;
	w.left = MAX_LOOKS * m->main->image.bytes.size;
	if (!w.is_aarch64 && fathom_x86_open(true, false, &w.decoder, NULL) == FATHOM_E_MEMORY)
		return FATHOM_E_MEMORY;
	err = find_all_kinds(&w);
	if (w.decoder)
		w.decoder->close(w.decoder);
	fathom_fixups_destroy(w.fixups);
	fathom_functions_deinit(&w.functions);
	fathom_hooks_deinit(&w.hooks);
	if (err)
		fathom_module_sites_deinit(ret);
	return err;
}

void fathom_module_sites_deinit(struct fathom_module_sites *s)
{
	fathom_array_free(s);
	fathom_raw_got_slots_deinit(&s->slots);
	free(s->rules);
}
