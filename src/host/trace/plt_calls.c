/* SPDX-License-Identifier: MIT */
#include "host/trace/plt_calls.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "host/trace/got_slots.h"

/* A slot that is hooked, and whose it is. */
struct chosen {
	const struct fathom_call_slot *slot;
	struct fathom_hooked_got_slot at;
};

/* One module whose slots are hooked. */
struct work {
	struct fathom_loader *loader;
	struct fathom_traced *process;
	const char *path; /* in the span's arena */
	struct fathom_site_range *span;
	FATHOM_ARRAY_OF(struct chosen);
	struct fathom_hooked *hooked;
};

/*
 * Returns whether @slot of @m is one of those by which the dynamic linker works, whose bias is
 * @linker: its own, and those of functions that the C library has for itself.
 */
static bool is_of_linker(const struct fathom_site_module *m, const struct fathom_call_slot *slot,
			 uint64_t linker)
{
	return slot->flags & FATHOM_SLOT_PRIVATE || (linker && linker == m->bias);
}

/* Takes the slots of wanted functions among those of @m. */
static bool choose(struct work *w, const struct fathom_sites *sites,
		   const struct fathom_site_module *m)
{
	const struct fathom_self_trace_link *insider = &w->loader->insider;
	const bool wants_all = w->loader->options->flags & FATHOM_TRACE_CALLS;
	const uint64_t linker = fathom_program_auxiliary(w->process->tracee.pid, AT_BASE);
	struct fathom_tracee_text relocations, slots;

	fathom_tracee_text_init(&relocations, &w->process->tracee);
	fathom_tracee_text_init(&slots, &w->process->tracee);

	for (size_t i = m->first_slot; i < m->first_slot + m->slots; i++) {
		struct chosen c = { .slot = fathom_sites_slot_get(sites, i) };
		uint8_t selection;

		if (c.slot->address - insider->low < insider->high - insider->low ||
		    (!wants_all && is_of_linker(m, c.slot, linker)))
			continue;
		if (fathom_got_slots_take(w->process, &relocations.memory, &slots.memory, c.slot,
					  m->bias, &c.at) &&
		    fathom_named_choices_want(&w->loader->named, c.slot->linkage_name, w->path,
					      &selection) &&
		    !fathom_array_push(w, c))
			return false;
	}
	return true;
}

static const char *copy(struct work *w, const char *text)
{
	return fathom_arena_strdup(&w->span->arena,
				   (struct fathom_str){ text, (uint32_t)strlen(text) });
}

/* Adds the function that is called by @c, whose number is @number, to the span. */
static bool add(struct work *w, const struct chosen *c, uint32_t number)
{
	struct fathom_loader *l = w->loader;
	const struct fathom_trace_function f = { .name = copy(w, c->slot->symbol),
						 .linkage_name = copy(w, c->slot->linkage_name),
						 .module = w->path,
						 .number = l->n_functions++,
						 .name_size = (uint32_t)strlen(c->slot->symbol) };
	struct fathom_site_range_site site = { .back = c->at.stub + FATHOM_SLOT_RETURN,
					       .number = number,
					       .function = (uint32_t)w->span->functions.n,
					       .place = FATHOM_SITE_ENTRY,
					       .is_slot = true };

	(void)fathom_named_choices_want(&l->named, c->slot->linkage_name, w->path, &site.selection);
	return f.name && f.linkage_name && fathom_array_push(&w->span->functions, f) &&
	       fathom_array_push(w->span, site) && fathom_array_push(w->hooked, c->at);
}

/*
 * Makes the slots lead to their stubs, which call @hook. Stubs and words are there before: if we
 * are killed in between, each slot leads to what is there. False without memory.
 */
static bool hook_chosen(struct work *w, uint64_t hook)
{
	struct fathom_text_plan stubs = { 0 }, slots = { 0 };
	struct fathom_tracee_text text;
	bool has_memory = true;
	size_t n = 0;

	for (size_t i = 0; has_memory && i < w->n; i++) {
		bool fits;

		has_memory = fathom_got_slots_plan(&w->items[i].at, hook, &stubs, &slots, &fits);
		n += fits;
	}
	fathom_tracee_text_init(&text, &w->process->tracee);
	fathom_text_plan_sort(&stubs);
	fathom_text_plan_sort(&slots);
	if (has_memory && fathom_text_plan_put(&stubs, 0, true, &text.memory) &&
	    fathom_tracee_text_flush(&text) &&
	    fathom_text_plan_put(&slots, 0, true, &text.memory) && fathom_tracee_text_flush(&text))
		w->loader->n_calls += n;
	fathom_text_plan_clear(&stubs);
	fathom_text_plan_clear(&slots);
	return has_memory;
}

/* Hooks all slots that were chosen, by a copy of the hook whose numbers are their own. */
static bool hook(struct work *w)
{
	struct fathom_loader *l = w->loader;
	const size_t size = w->n * FATHOM_STUB_SIZE;
	uint64_t stub;
	uint64_t word;
	struct fathom_hooks hooks;

	if (!fathom_program_stubs(w->process, w->n, &stub, &word) ||
	    !fathom_hooks_make(l, w->process, stub, stub + size, &hooks)) {
		l->n_refused[FATHOM_TRACE_NO_ROOM] += w->n;
		return true;
	}
	fathom_injected_code_add(l->insider.told, stub, size, FATHOM_INJECTED_STUB);
	for (size_t i = 0; i < w->n; i++) {
		struct fathom_hooked_got_slot *slot = &w->items[i].at;

		slot->stub = stub + i * FATHOM_STUB_SIZE;
		slot->word = word + i * sizeof(uint64_t);
		if (!add(w, &w->items[i], (uint32_t)(slot->stub + FATHOM_SLOT_RETURN - hooks.base)))
			return false;
	}
	w->process->has_slots = true;
	return hook_chosen(w, hooks.at[FATHOM_HOOK_AT_ENTRY]);
}

static void discard(struct work *w)
{
	fathom_hooked_release(w->hooked);
	fathom_site_range_destroy(w->span);
	fathom_array_free(w);
}

fathom_err fathom_plt_calls_hook(struct fathom_loader *l, struct fathom_traced *p,
				 const struct fathom_sites *sites,
				 const struct fathom_site_module *m)
{
	struct fathom_loaded_module *known = fathom_find_loaded(p, m->bias, m->path);
	struct work w = { .loader = l, .process = p };
	const uint64_t n_before = l->n_calls;
	bool is_fine;

	w.span = fathom_site_range_create();
	w.hooked = calloc(1, sizeof *w.hooked);
	if (w.hooked)
		w.hooked->references = 1;
	if (w.span)
		w.path = copy(&w, m->path);
	is_fine = w.path && w.hooked && choose(&w, sites, m);
	if (is_fine && w.n)
		is_fine = hook(&w);
	if (known)
		known->n_places += l->n_calls - n_before;
	if (known && !known->hooked) {
		known->hooked = w.hooked;
		w.hooked = NULL;
	}
	if (w.span)
		fathom_site_range_finish(w.span);
	if (w.span && w.span->n) {
		l->loaded(l->data, w.span);
		w.span = NULL;
	}
	discard(&w);
	return is_fine ? FATHOM_OK : FATHOM_E_MEMORY;
}
