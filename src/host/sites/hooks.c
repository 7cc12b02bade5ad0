/* SPDX-License-Identifier: MIT */
#include "host/sites/hooks.h"

#include <stdlib.h>

#include "host/code/x86_64/x86_instructions.h"
#include "host/symbol/plt.h"
#include "host/sites/site_work.h"

static const struct {
	const char *name;
	uint8_t hook;
} names[] = {
	{ "mcount", FATHOM_HOOK_MCOUNT },
	{ "_mcount", FATHOM_HOOK_MCOUNT },
	{ "__mcount", FATHOM_HOOK_MCOUNT },
	{ "__fentry__", FATHOM_HOOK_MCOUNT },
	{ "__cyg_profile_func_enter", FATHOM_HOOK_ENTER },
	{ "__cyg_profile_func_enter_bare", FATHOM_HOOK_BARE },
	{ "__cyg_profile_func_exit", FATHOM_HOOK_EXIT },
	{ "__return__", FATHOM_HOOK_RETURN },
	{ "_mcleanup", FATHOM_HOOK_PROFILE },
	{ "__monstartup", FATHOM_HOOK_PROFILE },
};

enum fathom_hook_kind fathom_hook_named(struct fathom_str name)
{
	if (!name.data || name.size < 6 || (name.data[0] != '_' && name.data[0] != 'm'))
		return FATHOM_HOOK_OTHER;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (str_is(name, names[i].name))
			return names[i].hook;
	return FATHOM_HOOK_OTHER;
}

/* Returns the hook of symbol @s. Undefined and untyped ones count, too. */
static enum fathom_hook_kind hook_of_symbol(const struct fathom_symtab *t,
					    const struct fathom_symbol *s)
{
	struct fathom_str version;

	if (s->type != STT_FUNC && s->type != STT_NOTYPE)
		return FATHOM_HOOK_OTHER;
	return fathom_hook_named(fathom_symbol_base_name(fathom_symtab_name(t, s), &version));
}

static bool add_symbol(struct fathom_instrument_hooks *h, const struct fathom_symbol_table *t,
		       const struct fathom_symbol *s)
{
	const enum fathom_hook_kind hook = hook_of_symbol(&t->view, s);
	struct fathom_symbol_region region;
	uint64_t svma;

	if (hook == FATHOM_HOOK_OTHER)
		return true;
	h->is_library |= hook == FATHOM_HOOK_PROFILE && s->section != SHN_UNDEF &&
			 t->view.source == FATHOM_SOURCE_DYNSYM;
	h->has_calls |= hook != FATHOM_HOOK_PROFILE;
	h->has_exits |= hook == FATHOM_HOOK_EXIT;
	h->is_profiled |= hook == FATHOM_HOOK_PROFILE || hook == FATHOM_HOOK_MCOUNT;
	if (hook == FATHOM_HOOK_PROFILE || s->section == SHN_UNDEF ||
	    !fathom_symbol_place(t, s, &svma, &region))
		return true;
	return fathom_array_push(&h->functions, (struct fathom_keyed){ svma, hook });
}

static bool add_symbols(struct fathom_instrument_hooks *h, const struct fathom_symbol_set *set)
{
	for (uint32_t i = 0; i < set->n_tables; i++) {
		const struct fathom_symbol_table *t = &set->table[i];

		for (uint32_t k = 0; k < t->view.count; k++) {
			struct fathom_symbol s;

			fathom_symtab_get(&t->view, k, &s);
			if (!add_symbol(h, t, &s))
				return false;
		}
	}
	return true;
}

/* Returns what is listed for @svma, or FATHOM_HOOK_NONE. */
static enum fathom_hook_kind listed(const struct fathom_keyed_array *a, uint64_t svma)
{
	const size_t i = FATHOM_BISECT(a->n, k, a->items[k].key < svma);

	return i < a->n && a->items[i].key == svma ? (enum fathom_hook_kind)a->items[i].value
						   : FATHOM_HOOK_NONE;
}

/* Returns which hook's address the loader stores by @f. */
static enum fathom_hook_kind hook_of_fixup(const struct fathom_instrument_hooks *h,
					   const struct fathom_fixup *f)
{
	enum fathom_hook_kind hook;

	if (f->name.data)
		return fathom_hook_named(f->name);
	if (f->kind != FATHOM_FIXUP_BASE)
		return FATHOM_HOOK_OTHER;
	hook = listed(&h->functions, f->addend);
	return hook == FATHOM_HOOK_NONE ? FATHOM_HOOK_OTHER : hook;
}

static bool add_slots(struct fathom_instrument_hooks *h, const struct fathom_fixups *fixups)
{
	struct fathom_fixup f;

	for (size_t i = 0; fathom_fixups_find(fixups, 0, UINT64_MAX, &i, &f); i++) {
		const enum fathom_hook_kind hook = hook_of_fixup(h, &f);

		if (hook != FATHOM_HOOK_OTHER &&
		    !fathom_array_push(&h->slots, (struct fathom_keyed){ f.svma, hook }))
			return false;
	}
	return true;
}

static int compare(const void *a, const void *b)
{
	return u64_compare(((const struct fathom_keyed *)a)->key,
			   ((const struct fathom_keyed *)b)->key);
}

/* Keeps one entry of each address in @a, which is sorted. */
static void merge(struct fathom_keyed_array *a)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n; i++) {
		struct fathom_keyed *last = n ? &a->items[n - 1] : NULL;
		const uint64_t hook = a->items[i].value;

		if (!last || last->key != a->items[i].key)
			a->items[n++] = a->items[i];
		else if ((hook == FATHOM_HOOK_ENTER && last->value == FATHOM_HOOK_EXIT) ||
			 (hook == FATHOM_HOOK_EXIT && last->value == FATHOM_HOOK_ENTER))
			last->value = FATHOM_HOOK_EITHER;
	}
	a->n = n;
}

fathom_err fathom_hooks_init(struct fathom_instrument_hooks *h, struct fathom_module *m,
			     const struct fathom_fixups *fixups)
{
	*h = (struct fathom_instrument_hooks){ 0 };
	if (!fathom_array_room(&h->functions, 1) || !fathom_array_room(&h->slots, 1) ||
	    !add_symbols(h, &m->symbols))
		return FATHOM_E_MEMORY;
	qsort(h->functions.items, h->functions.n, sizeof *h->functions.items, compare);
	merge(&h->functions);
	if (h->is_library)
		h->has_calls = h->has_exits = h->is_profiled = false;
	if (h->has_calls && m->main->image.type != ET_REL && !add_slots(h, fixups))
		return FATHOM_E_MEMORY;
	qsort(h->slots.items, h->slots.n, sizeof *h->slots.items, compare);
	return FATHOM_OK;
}

void fathom_hooks_deinit(struct fathom_instrument_hooks *h)
{
	fathom_array_free(&h->functions);
	fathom_array_free(&h->slots);
}

/* Returns the hook in the slot at @svma: of a static program, by the bytes of the slot. */
static enum fathom_hook_kind hook_of_slot(const struct fathom_site_work *w, uint64_t svma)
{
	const struct fathom_image *image = &w->object->image;
	enum fathom_hook_kind hook = listed(&w->hooks.slots, svma);
	const struct fathom_bytes word = fathom_image_loaded_bytes(image, svma, 8);

	if (hook == FATHOM_HOOK_NONE && word.size)
		hook = listed(&w->hooks.functions, load_u64(word.data, image->swap));
	return hook == FATHOM_HOOK_NONE ? FATHOM_HOOK_OTHER : hook;
}

/* Returns the hook at @svma: itself, or a stub that leads to it. */
static enum fathom_hook_kind hook_at(const struct fathom_site_work *w, uint64_t svma)
{
	const enum fathom_hook_kind hook = listed(&w->hooks.functions, svma);
	const struct fathom_function *f;
	uint64_t slot;

	if (hook != FATHOM_HOOK_NONE)
		return hook;
	if (fathom_plt_slot(w->object, svma, &slot))
		return hook_of_slot(w, slot);
	f = fathom_functions_at(&w->functions, svma);
	return f && f->is_symbol ? FATHOM_HOOK_OTHER : FATHOM_HOOK_UNNAMED;
}

/* Returns the hook that a relocation in [@low, @high) of a relocatable file names. */
static enum fathom_hook_kind hook_of_relocation(const struct fathom_site_work *w, uint64_t low,
						uint64_t high)
{
	struct fathom_fixup f;
	size_t i = 0;

	return fathom_fixups_find(w->fixups, low, high, &i, &f) && f.name.data
		       ? fathom_hook_named(f.name)
		       : FATHOM_HOOK_OTHER;
}

static enum fathom_hook_kind called_on_arm(struct fathom_site_work *w, uint64_t svma,
					   struct fathom_bytes code, uint8_t *ret_size)
{
	struct fathom_stack_code c;

	if (code.size < 4 || !fathom_site_decode(w, svma, &c) || c.flow != FATHOM_FLOW_CALL)
		return FATHOM_HOOK_NONE;
	*ret_size = 4;
	if (!c.is_direct)
		return FATHOM_HOOK_OTHER;
	if (w->object->image.type == ET_REL)
		return hook_of_relocation(w, svma, svma + 4);
	return hook_at(w, c.target);
}

/* Returns the hook that the instruction @p of @size bytes at @svma leads to by its last four. */
static enum fathom_hook_kind hook_by_operand(const struct fathom_site_work *w, uint64_t svma,
					     uint8_t size, const uint8_t *p)
{
	uint64_t target;

	if (w->object->image.type == ET_REL)
		return hook_of_relocation(w, svma + size - 4, svma + size);
	target = svma + size + (uint64_t)(int32_t)load_u32(p + size - 4, w->object->image.swap);
	return p[0] == FATHOM_X86_BY_WORD ? hook_of_slot(w, target) : hook_at(w, target);
}

/* Calls of `e8 rel32`, `67 e8 rel32` (which linkers make of the next) and `ff 15 rel32`. */
static enum fathom_hook_kind called_on_x86(struct fathom_site_work *w, uint64_t svma,
					   struct fathom_bytes code, uint8_t *ret_size)
{
	const uint8_t *p = code.data;
	uint8_t size = FATHOM_X86_BY_WORD_SIZE;

	if (code.size < size)
		return FATHOM_HOOK_NONE;
	if (p[0] == FATHOM_X86_CALL)
		size = FATHOM_X86_BRANCH_SIZE;
	else if ((p[0] != FATHOM_X86_ADDRESS_SIZE || p[1] != FATHOM_X86_CALL) &&
		 !fathom_x86_is_call_by_word(p))
		return FATHOM_HOOK_NONE;
	*ret_size = size;
	return hook_by_operand(w, svma, size, p);
}

enum fathom_hook_kind fathom_hook_called(struct fathom_site_work *w, uint64_t svma,
					 uint8_t *ret_size)
{
	const struct fathom_bytes code = fathom_site_code(w, svma);

	return w->is_aarch64 ? called_on_arm(w, svma, code, ret_size)
			     : called_on_x86(w, svma, code, ret_size);
}

/* Jumps of `e9 rel32` and `ff 25 rel32`, and the calls. */
enum fathom_hook_kind fathom_hook_left(struct fathom_site_work *w, uint64_t svma,
				       uint16_t *ret_size, bool *ret_is_jump)
{
	const struct fathom_bytes code = fathom_site_code(w, svma);
	const uint8_t *p = code.data;
	enum fathom_hook_kind hook;
	uint8_t size = 0;

	*ret_is_jump = code.size >= FATHOM_X86_BY_WORD_SIZE &&
		       (p[0] == FATHOM_X86_JUMP || fathom_x86_is_jump_by_word(p));
	if (*ret_is_jump) {
		size = p[0] == FATHOM_X86_JUMP ? FATHOM_X86_BRANCH_SIZE : FATHOM_X86_BY_WORD_SIZE;
		hook = hook_by_operand(w, svma, size, p);
	} else {
		hook = fathom_hook_called(w, svma, &size);
	}
	*ret_size = size;
	return hook;
}
