/* SPDX-License-Identifier: MIT */
#include "host/space/kernel/locate.h"

#include <stdlib.h>

#include "host/base/clock.h"
#include "host/base/path.h"
#include "host/file/kernel_text.h"
#include "host/module/module.h"
#include "host/symbolize/batch.h"
#include "safe/base/cursor.h"
#include "safe/base/sort.h"

/* The most modules tried whose ranges overlap at one address. */
#define MAX_OVERLAP 16

static struct fathom_kernel_view *kernel_view(struct fathom_view *v)
{
	return (struct fathom_kernel_view *)v;
}

static size_t read_memory(void *data, uint64_t avma, void *to, size_t size)
{
	const struct fathom_kernel_view *v = data;
	const struct fathom_kcore *memory;

	return fathom_kernel_memory(v->kernel, &memory, NULL)
		       ? 0
		       : fathom_kcore_read(memory, avma, to, size);
}

/* Returns the largest of @avmas if all are at or after the start of the image. */
static uint64_t last_of(const struct fathom_kernel *k, const uint64_t *avmas, size_t n)
{
	uint64_t last = 0;

	for (size_t i = 0; avmas && i < n; i++) {
		if (avmas[i] < k->start)
			return UINT64_MAX;
		last = avmas[i] > last ? avmas[i] : last;
	}
	return avmas ? last : UINT64_MAX;
}

static fathom_err begin_view(struct fathom_target *t, enum fathom_view_use use,
			     const uint64_t *avmas, size_t n, struct fathom_view **ret,
			     struct fathom_errinfo *reterr)
{
	struct fathom_kernel *k = (struct fathom_kernel *)t;
	const struct fathom_kcore *memory;
	struct fathom_kernel_view *v;

	if (use == FATHOM_VIEW_MEMORY)
		FATHOM_TRY(fathom_kernel_memory(k, &memory, reterr));
	v = calloc(1, sizeof *v);
	if (!v || fathom_kernel_owners_init(&v->owners, k)) {
		free(v);
		return fathom_fail_memory(reterr);
	}
	v->view = (struct fathom_view){ .target = t, .memory = { read_memory, NULL, v } };
	v->view.hidden = k->start ? FATHOM_REASON_NONE : FATHOM_REASON_NO_PERMISSION;
	v->kernel = k;
	v->began_ns = fathom_now_ns();
	v->until = last_of(k, avmas, n);
	v->wants_lines = use == FATHOM_VIEW_LINES;
	*ret = &v->view;
	return FATHOM_OK;
}

static void end(struct fathom_view *view)
{
	struct fathom_kernel_view *v = kernel_view(view);

	if (v->table)
		fathom_kernel_give_table(v->kernel, v->table);
	fathom_kernel_modules_deinit(&v->modules);
	fathom_kernel_owners_deinit(&v->owners);
	free(v);
}

const struct fathom_kernel_image *fathom_kernel_view_image(struct fathom_kernel_view *v)
{
	static const struct fathom_kernel_image nowhere = { .reason = FATHOM_REASON_NO_PERMISSION };

	if (!v->image)
		v->image = v->view.hidden ? &nowhere : fathom_kernel_image(v->kernel);
	return v->image;
}

/* Reads the list of modules, once. */
static fathom_err read_modules(struct fathom_kernel_view *v)
{
	struct fathom_path path;

	if (v->has_modules)
		return FATHOM_OK;
	if (fathom_path_format(&path, "%s/proc/modules", v->kernel->place.root))
		FATHOM_TRY(fathom_kernel_modules_read(path.text, &v->modules));
	v->has_modules = true;
	return FATHOM_OK;
}

/* Finds the section of owner @i that holds @avma; *@ret stays unchanged if there is none. */
static fathom_err find_section(struct fathom_kernel_view *v, uint32_t i, uint64_t avma,
			       struct fathom_place *ret)
{
	struct fathom_kernel_owner *owner;
	const struct fathom_object *o;
	uint32_t section;

	FATHOM_TRY(fathom_kernel_owners_open(&v->owners, i, &owner));
	if (!owner->holder.module || !owner->sections)
		return FATHOM_OK;
	o = owner->holder.module->main;
	section = fathom_kernel_section_at(o, owner->sections, avma);
	if (section)
		*ret = (struct fathom_place){ .holder = &owner->holder,
					      .bias = owner->sections[section] -
						      o->sections[section].base,
					      .key = (uint64_t)i << 32 | section };
	return FATHOM_OK;
}

/* Finds @avma in the files of listed modules; if that succeeds, kallsyms need not be read. */
static fathom_err find_listed(struct fathom_kernel_view *v, uint64_t avma, struct fathom_place *ret)
{
	uint32_t at[MAX_OVERLAP];
	const size_t n = fathom_kernel_modules_at(&v->modules, avma, at, MAX_OVERLAP);
	uint32_t owner;

	for (size_t i = 0; i < n && !ret->holder; i++) {
		FATHOM_TRY(
			fathom_kernel_owners_use(&v->owners, v->modules.items[at[i]].name, &owner));
		if (owner != FATHOM_NONE)
			FATHOM_TRY(find_section(v, owner, avma, ret));
	}
	return FATHOM_OK;
}

/*
 * Takes a table that is valid for @avma: any one inside the image, otherwise one read since the
 * view began.
 */
static fathom_err take_table(struct fathom_kernel_view *v, uint64_t avma)
{
	fathom_err err = FATHOM_OK;

	if (!v->table) {
		if (v->wants_lines && !v->image->module)
			fathom_kernel_note_no_image(v->kernel);
		err = fathom_kernel_take_table(v->kernel, 0, v->until, &v->table, &v->view.failed);
	}
	if (err || v->table->read_ns >= v->began_ns ||
	    fathom_kallsyms_in_image(&v->table->symbols, avma))
		return err;
	fathom_kernel_give_table(v->kernel, v->table);
	v->table = NULL;
	return fathom_kernel_take_table(v->kernel, v->began_ns, UINT64_MAX, &v->table,
					&v->view.failed);
}

/* Finds @avma in the file of the module that has it by kallsyms. */
static fathom_err find_owned(struct fathom_kernel_view *v, uint64_t avma, struct fathom_place *ret)
{
	struct fathom_str name;
	uint32_t owner;

	FATHOM_TRY(take_table(v, avma));
	name = fathom_kallsyms_owner(&v->table->symbols, avma);
	if (!name.size)
		return FATHOM_OK;
	FATHOM_TRY(fathom_kernel_owners_use(&v->owners, name, &owner));
	return owner == FATHOM_NONE ? FATHOM_OK : find_section(v, owner, avma, ret);
}

/* Finds @avma in the image's file, if it is there. */
static fathom_err find_in_image(struct fathom_kernel_view *v, uint64_t avma,
				struct fathom_place *ret)
{
	const struct fathom_kernel_image *image = fathom_kernel_view_image(v);
	struct fathom_kernel_owner *owner;

	if (!image)
		return FATHOM_E_MEMORY;
	if (!image->module || avma < image->low || avma >= image->high)
		return FATHOM_OK;
	FATHOM_TRY(fathom_kernel_owners_open(&v->owners, 0, &owner));
	*ret = (struct fathom_place){ .holder = &owner->holder, .bias = image->bias };
	return FATHOM_OK;
}

static fathom_err locate(struct fathom_view *view, uint64_t avma, struct fathom_place *ret)
{
	struct fathom_kernel_view *v = kernel_view(view);
	struct fathom_place place = { .reason = view->hidden };

	FATHOM_TRY(find_in_image(v, avma, &place));
	if (!place.holder && !view->hidden) {
		/* The kernel is in the upper half; below are processes, or offsets. */
		place.reason = avma >> 63 != v->kernel->start >> 63 ? FATHOM_REASON_UNMAPPED
								    : FATHOM_REASON_NO_SYMBOLS;
		place.is_code = true;
		FATHOM_TRY(read_modules(v));
		FATHOM_TRY(find_listed(v, avma, &place));
		if (!place.holder)
			FATHOM_TRY(find_owned(v, avma, &place));
	}
	*ret = place;
	return FATHOM_OK;
}

static fathom_err modules(struct fathom_view *view, fathom_module_fn fn, void *data)
{
	struct fathom_kernel_view *v = kernel_view(view);
	const struct fathom_kernel_image *image = fathom_kernel_view_image(v);
	struct fathom_kernel_owner *owner;
	uint32_t number;
	bool more = true;

	if (!image)
		return FATHOM_E_MEMORY;
	FATHOM_TRY(fathom_kernel_owners_open(&v->owners, 0, &owner));
	if (image->module)
		more = fn(&(struct fathom_module_at){ .module = image->module,
						      .name = owner->path,
						      .bias = image->bias,
						      .start = image->low },
			  data);
	FATHOM_TRY(read_modules(v));
	for (size_t i = 0; i < v->modules.n && more; i++) {
		FATHOM_TRY(fathom_kernel_owners_use(&v->owners, v->modules.items[i].name, &number));
		if (number == FATHOM_NONE)
			continue;
		FATHOM_TRY(fathom_kernel_owners_open(&v->owners, number, &owner));
		if (owner->holder.module)
			more = fn(&(struct fathom_module_at){ .module = owner->holder.module,
							      .name = owner->path,
							      .start = v->modules.items[i].start,
							      .sections = owner->sections },
				  data);
	}
	return FATHOM_OK;
}

/* State for naming a batch by kallsyms. */
struct naming {
	struct fathom_kernel_view *view;
	const struct fathom_unresolved *rest;
	uint32_t last_id; /* the function made last; FATHOM_NONE: none yet */
	uint64_t last;    /* avma of that function */
};

/* Returns the id of the function for @hit; addresses of one function are successive. */
static uint32_t function_of(struct naming *n, const struct fathom_kallsym_hit *hit)
{
	const struct fathom_symbol_hit symbol = { .start = hit->start,
						  .size = hit->size,
						  .name = hit->name,
						  .source = FATHOM_SOURCE_KALLSYMS };

	if (n->last_id == FATHOM_NONE || n->last != hit->start)
		n->last_id = fathom_part_symbol(&n->rest->answers->parts[0], &symbol);
	n->last = hit->start;
	return n->last_id;
}

/* Answers @a with @hit, which kallsyms has for it. */
static fathom_err name_one(struct naming *n, const struct fathom_kallsym_hit *hit,
			   struct fathom_answer *a)
{
	struct fathom_kernel_owners *owners = &n->view->owners;
	struct fathom_kernel_owner *owner;
	uint32_t number;

	FATHOM_TRY(fathom_kernel_owners_use(owners, hit->owner, &number));
	if (number == FATHOM_NONE) {
		a->reason = FATHOM_REASON_LIMIT;
		return FATHOM_OK;
	}
	FATHOM_TRY(fathom_kernel_owners_open(owners, number, &owner));
	FATHOM_TRY(fathom_answers_describe(n->rest->answers, &owner->holder));
	a->module = owner->holder.info;
	fathom_part_name_answer(&n->rest->answers->parts[0], n->rest->answers, a,
				function_of(n, hit));
	a->source = FATHOM_SOURCE_KALLSYMS;
	a->offset = a->pc.address - hit->start;
	a->size = hit->size;
	a->reason = (uint8_t)(n->rest->options->flags & FATHOM_NAMES_ONLY ? FATHOM_REASON_NONE
									  : owner->reason);
	return FATHOM_OK;
}

static fathom_err name_sorted(struct naming *n, const struct fathom_keyed *keyed)
{
	const struct fathom_unresolved *rest = n->rest;

	fathom_part_begin(&rest->answers->parts[0], 0, rest->options->flags, 0);
	for (size_t i = 0; i < rest->n; i++) {
		struct fathom_kallsym_hit hit;

		if (fathom_kallsyms_at(&n->view->table->symbols, keyed[i].key, &hit))
			FATHOM_TRY(name_one(n, &hit, &rest->answers->answers[keyed[i].value]));
	}
	return rest->answers->parts[0].err;
}

/* Names addresses outside files by kallsyms. */
static fathom_err name_unresolved(struct fathom_view *view, const struct fathom_unresolved *rest)
{
	struct naming n = { kernel_view(view), rest, FATHOM_NONE, 0 };
	struct fathom_keyed *keyed = malloc((2 * rest->n + 1) * sizeof *keyed);
	fathom_err err;

	if (!keyed)
		return FATHOM_E_MEMORY;
	for (size_t i = 0; i < rest->n; i++)
		keyed[i] = (struct fathom_keyed){ fathom_looked_up(rest->options, rest->addresses,
								   rest->places[i]),
						  rest->places[i] };
	fathom_sort_keyed(keyed, keyed + rest->n, rest->n);
	err = name_sorted(&n, keyed);
	free(keyed);
	return err;
}

static fathom_err names(struct fathom_view *view,
			bool (*fn)(struct fathom_str name, bool is_local, void *data), void *data)
{
	struct fathom_kernel_view *v = kernel_view(view);
	struct fathom_kernel_table *t;
	bool more = true;

	FATHOM_TRY(fathom_kernel_take_table(v->kernel, 0, UINT64_MAX, &t, &view->failed));
	for (size_t i = 0; i < t->symbols.n && more; i++) {
		struct fathom_kallsym_facts facts;

		fathom_kallsyms_describe(&t->symbols, i, &facts);
		more = fn(facts.name, facts.bind == STB_LOCAL, data);
	}
	fathom_kernel_give_table(v->kernel, t);
	return FATHOM_OK;
}

/* Finds the kernel's layout, whose words may be larger than ours. */
static fathom_err layout(struct fathom_view *view, struct fathom_layout *ret)
{
	struct fathom_kernel_view *v = kernel_view(view);
	const struct fathom_kernel_image *image;
	const struct fathom_kcore *memory;

	*ret = (struct fathom_layout){ fathom_own_machine(), sizeof(void *), false };
	if (!fathom_kernel_memory(v->kernel, &memory, NULL)) {
		*ret = fathom_kcore_layout(memory);
		return FATHOM_OK;
	}
	image = fathom_kernel_image(v->kernel);
	if (image && image->module)
		ret->machine = image->module->main->image.machine;
	return FATHOM_OK;
}

const struct fathom_target_ops fathom_kernel_ops = {
	.begin = begin_view,
	.end = end,
	.locate = locate,
	.modules = modules,
	.name_unresolved = name_unresolved,
	.names = names,
	.layout = layout,
	.read = fathom_kernel_read,
	.read_stated = fathom_kernel_read_stated,
	.each_open = fathom_kernel_each_open,
	.describe = fathom_kernel_describe,
	.free = fathom_kernel_free,
};
