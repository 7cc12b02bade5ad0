/* SPDX-License-Identifier: MIT */
#include "safe/self/registries.h"

#include "safe/base/limits.h"
#include "safe/base/peek.h"
#include "safe/self/memory_notes.h"
#include "safe/self/objects.h"

/* Finds the function in @h, which is there. */
static bool find_in(struct fathom_registry_head *h, uint64_t avma, fathom_code_fn *fn, void *data)
{
	struct fathom_registry_code code;
	uint32_t place;
	bool found;

	if (!fathom_registry_enter(h, avma, &place))
		return false;
	found = fathom_registry_find(h, avma, &code);
	if (found)
		fn(&code, data);
	fathom_registry_leave(h, place);
	return found;
}

/* Returns whether a head of this version is at @at. *@ret: a copy of it. */
static bool is_head(uintptr_t at, struct fathom_registry_head *ret)
{
	struct fathom_self_object o;

	return at % _Alignof(struct fathom_registry_head) == 0 &&
	       (!fathom_self_has_loader() || fathom_self_object_at(at, &o)) &&
	       fathom_peek(at, ret, sizeof *ret) == sizeof *ret &&
	       ret->magic == FATHOM_REGISTRY_MAGIC && ret->version == FATHOM_REGISTRY_VERSION &&
	       ret->head_size == sizeof *ret && ret->row_size == sizeof(struct fathom_registry_row);
}

bool fathom_self_find_code(const struct fathom_self *self, uint64_t avma, fathom_code_fn *fn,
			   void *data)
{
	struct fathom_registry_head copy;

	if (find_in(&fathom_registry_own, avma, fn, data))
		return true;
	for (size_t i = 0; i < FATHOM_MAX_REGISTRIES; i++) {
		const uintptr_t at =
			atomic_load_explicit(&self->registries[i], memory_order_relaxed);

		/* They are added in order. */
		if (!at)
			break;
		if (is_head(at, &copy) &&
		    avma >= atomic_load_explicit(&copy.low, memory_order_relaxed) &&
		    avma < atomic_load_explicit(&copy.high, memory_order_relaxed) &&
		    find_in((struct fathom_registry_head *)at, avma, fn, data))
			return true;
	}
	return false;
}

/* Adds the registry at @at, unless it is known or there is no room. */
static void add(const struct fathom_self *self, uintptr_t at)
{
	if (at == (uintptr_t)&fathom_registry_own)
		return;
	for (size_t i = 0; i < FATHOM_MAX_REGISTRIES; i++) {
		uintptr_t known = 0;

		if (atomic_compare_exchange_strong(&self->registries[i], &known, at) || known == at)
			return;
	}
}

/* Adds the registry that a note of the object loaded at @start leads to. */
static void add_of(const struct fathom_self *self, uintptr_t start, uintptr_t bias)
{
	struct fathom_registry_head copy;
	struct fathom_memory_note note;
	uint64_t distance;
	uintptr_t at;

	if (!fathom_memory_note_find(start, bias, FATHOM_REGISTRY_OWNER,
				     sizeof FATHOM_REGISTRY_OWNER, FATHOM_REGISTRY_NOTE, &note) ||
	    note.size != sizeof distance ||
	    fathom_peek(note.avma, &distance, sizeof distance) != sizeof distance)
		return;
	at = (uintptr_t)(note.avma + distance);
	if (is_head(at, &copy))
		add(self, at);
}

static void add_registry_of(const struct fathom_self_object *o, const struct fathom_link_map *link,
			    void *data)
{
	add_of(data, o->start, link->bias);
}

void fathom_self_add_registries(const struct fathom_self *self)
{
	fathom_self_each_object(add_registry_of, (void *)self);
}
