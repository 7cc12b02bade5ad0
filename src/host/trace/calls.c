/* SPDX-License-Identifier: MIT */
#include "host/trace/calls.h"

#include <stdlib.h>
#include <string.h>

#include "host/base/demangle.h"
#include "host/trace/slots.h"

/* One module whose slots are hooked. */
struct work {
	struct fathom_loader *loader;
	struct fathom_traced *process;
	const char *path; /* in the span's arena */
	struct fathom_span *span;
	struct fathom_call_slots slots;
	struct fathom_hooked *hooked;
};

/* Leaves the slots of wanted functions. */
static void choose(struct work *w)
{
	size_t n = 0;

	for (size_t i = 0; i < w->slots.n; i++) {
		uint8_t wishes;

		if (fathom_named_choices_want(&w->loader->named, w->slots.items[i].name, w->path,
					      &wishes))
			w->slots.items[n++] = w->slots.items[i];
	}
	w->slots.n = n;
}

/* Returns the demangled form of @name, or itself. */
static const char *demangled(struct work *w, const char *name)
{
	const struct fathom_str linked = { name, (uint32_t)strlen(name) };
	struct fathom_bytes_array text = { .n = 0 };
	const char *copy = NULL;

	if (!fathom_demangle(linked, false, &text))
		copy = fathom_arena_strdup(&w->span->arena,
					   (struct fathom_str){ text.items, (uint32_t)text.n });
	fathom_array_free(&text);
	return copy ? copy : name;
}

/* Adds the function that is called by @slot, whose number is @number, to the span. */
static bool add(struct work *w, const struct fathom_call_slot *slot, uint32_t number)
{
	struct fathom_loader *l = w->loader;
	const char *name = demangled(w, slot->name);
	const struct fathom_trace_function f = { .name = name,
						 .linkage_name = slot->name,
						 .module = w->path,
						 .number = l->n_functions++,
						 .name_size = (uint32_t)strlen(name) };
	struct fathom_span_site site = { .back = slot->stub + FATHOM_SLOT_RETURN,
					 .number = number,
					 .function = (uint32_t)w->span->functions.n,
					 .place = FATHOM_SITE_ENTRY };

	(void)fathom_named_choices_want(&l->named, slot->name, w->path, &site.wishes);
	return fathom_array_push(&w->span->functions, f) && fathom_array_push(w->span, site) &&
	       fathom_array_push(&w->hooked->slots, *slot);
}

/* Hooks all slots that are left, by a copy of the hook whose numbers are their own. */
static bool hook(struct work *w)
{
	struct fathom_loader *l = w->loader;
	const size_t size = w->slots.n * FATHOM_STUB_SIZE;
	uint64_t stub;
	uint64_t word;
	struct fathom_hooks hooks;

	if (!fathom_program_stubs(w->process, w->slots.n, &stub, &word) ||
	    !fathom_hooks_make(l, w->process, stub, stub + size, &hooks)) {
		l->n_refused[FATHOM_TRACE_NO_ROOM] += w->slots.n;
		return true;
	}
	for (size_t i = 0; i < w->slots.n; i++) {
		struct fathom_call_slot *slot = &w->slots.items[i];

		slot->stub = stub + i * FATHOM_STUB_SIZE;
		slot->word = word + i * sizeof(uint64_t);
		if (!add(w, slot, (uint32_t)(slot->stub + FATHOM_SLOT_RETURN - hooks.base)))
			return false;
		if (fathom_slots_hook(w->process, slot, hooks.entry))
			l->n_calls++;
	}
	w->process->has_slots = true;
	return true;
}

static void discard(struct work *w)
{
	fathom_hooked_release(w->hooked);
	fathom_span_destroy(w->span);
	fathom_array_free(&w->slots);
}

fathom_err fathom_calls_hook(struct fathom_loader *l, struct fathom_traced *p, const char *path,
			     uint64_t bias)
{
	struct fathom_loaded_module *known = fathom_find_loaded(p, bias, path);
	struct work w = { .loader = l, .process = p };
	bool is_fine;

	w.span = fathom_span_create();
	w.hooked = calloc(1, sizeof *w.hooked);
	if (w.hooked)
		w.hooked->references = 1;
	if (w.span)
		w.path = fathom_arena_strdup(&w.span->arena,
					     (struct fathom_str){ path, (uint32_t)strlen(path) });
	is_fine = w.path && w.hooked;
	if (!is_fine || !fathom_slots_find(p, path, bias, &w.span->arena, &w.slots)) {
		discard(&w);
		return is_fine ? FATHOM_OK : FATHOM_E_MEMORY;
	}
	choose(&w);
	is_fine = !w.slots.n || hook(&w);
	if (known && !known->hooked) {
		known->hooked = w.hooked;
		w.hooked = NULL;
	}
	fathom_span_finish(w.span);
	if (w.span->n) {
		l->loaded(l->data, w.span);
		w.span = NULL;
	}
	discard(&w);
	return is_fine ? FATHOM_OK : FATHOM_E_MEMORY;
}
