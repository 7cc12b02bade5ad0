/* SPDX-License-Identifier: MIT */
#include "host/interpreters/interpreters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/base/key_map.h"
#include "host/interpreters/provider.h"
#include "host/symbol/dynsym.h"
#include "safe/base/hex.h"

static const struct fathom_interpreter_provider *const providers[] = {
	&fathom_python, &fathom_python_old, &fathom_ruby, &fathom_php, &fathom_lua, &fathom_v8
};

struct fathom_interpreters {
	struct fathom_view *view;
	struct fathom_runtime_found items[FATHOM_MAX_RUNTIMES];
	uint32_t n;
	struct fathom_key_map looked; /* modules that were looked at, by their addresses here */
};

fathom_err fathom_interpreters_create(struct fathom_view *view, struct fathom_interpreters **ret)
{
	*ret = calloc(1, sizeof **ret);
	if (!*ret)
		return FATHOM_E_MEMORY;
	(*ret)->view = view;
	return FATHOM_OK;
}

void fathom_interpreters_destroy(struct fathom_interpreters *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->n; i++)
		fathom_runtime_release(&s->items[i]);
	fathom_key_map_deinit(&s->looked);
	free(s);
}

bool fathom_interpreters_any(const struct fathom_interpreters *s)
{
	return s->n != 0;
}

bool fathom_runtime_range(const struct fathom_runtime_found *f, const char *name, uint64_t *ret,
			  uint64_t *ret_size)
{
	const struct fathom_dynsym *d = fathom_module_dynsym(f->module);
	const struct fathom_str text = { name, (uint32_t)strlen(name) };
	struct fathom_symbol symbol;

	if (!d || !fathom_dynsym_find(d, text, &symbol))
		return false;
	*ret = symbol.value + f->bias;
	*ret_size = symbol.size;
	return true;
}

bool fathom_runtime_symbol(const struct fathom_runtime_found *f, const char *name, uint64_t *ret)
{
	uint64_t size;

	return fathom_runtime_range(f, name, ret, &size);
}

bool fathom_runtime_constant(const struct fathom_runtime_found *f, uint64_t avma, void *to,
			     size_t size)
{
	return fathom_reader_read(f->memory, avma, to, size) ||
	       (f->module && fathom_object_read(f->module->main, avma - f->bias, to, size) == size);
}

const uint8_t *fathom_runtime_part(const struct fathom_runtime_found *f,
				   struct fathom_runtime_page *page, uint64_t avma, size_t size)
{
	const uint64_t off = avma % sizeof page->bytes;
	const bool is_within = off + size <= sizeof page->bytes;

	if (avma < page->avma || avma - page->avma > page->size ||
	    page->size - (avma - page->avma) < size) {
		page->avma = is_within ? avma - off : avma;
		page->size = f->memory->read(f->memory->data, page->avma, page->bytes,
					     is_within ? sizeof page->bytes : size);
	}
	if (page->size < avma - page->avma || page->size - (avma - page->avma) < size) {
		/* Of a page a snapshot may have a part. */
		page->avma = avma;
		page->size = f->memory->read(f->memory->data, avma, page->bytes, size);
		if (page->size < size)
			return NULL;
	}
	return page->bytes + (avma - page->avma);
}

bool fathom_runtime_paged(const struct fathom_runtime_found *f, struct fathom_runtime_page *pages,
			  uint64_t avma, uint8_t size, uint64_t *ret)
{
	struct fathom_runtime_page *page =
		&pages[avma / sizeof pages->bytes % FATHOM_RUNTIME_PAGES];
	const uint8_t *bytes = fathom_runtime_part(f, page, avma, size);

	if (!bytes)
		return false;
	*ret = size == 8 ? load_u64(bytes, f->swap) : load_u32(bytes, f->swap);
	return true;
}

void fathom_runtime_forget(struct fathom_runtime_page *pages)
{
	for (size_t i = 0; i < FATHOM_RUNTIME_PAGES; i++)
		pages[i].size = 0;
}

/* Returns whether the module was looked at before; notes that it is now. FATHOM_E_MEMORY. */
static fathom_err was_looked_at(struct fathom_interpreters *s, const struct fathom_module *module,
				bool *ret)
{
	uint32_t *number = fathom_key_map_at(&s->looked, (uint64_t)(uintptr_t)module);

	if (!number)
		return FATHOM_E_MEMORY;
	*ret = *number != FATHOM_KEY_NEW;
	*number = 0;
	return FATHOM_OK;
}

fathom_err fathom_interpreters_look(struct fathom_interpreters *s, const struct fathom_place *place,
				    bool *ret_new)
{
	struct fathom_runtime_found f = { .memory = &s->view->memory, .bias = place->bias };
	bool is_old = true;

	*ret_new = false;
	if (!place->holder || place->source || !place->holder->module->main)
		return FATHOM_OK;
	f.module = place->holder->module;
	f.swap = f.module->main->image.swap;
	FATHOM_TRY(was_looked_at(s, f.module, &is_old));
	if (is_old || s->n == FATHOM_MAX_RUNTIMES || !f.module->main->image.is64)
		return FATHOM_OK;
	for (size_t i = 0; i < sizeof providers / sizeof *providers && !*ret_new; i++) {
		f.provider = providers[i];
		FATHOM_TRY(f.provider->detect(&f, ret_new));
	}
	if (*ret_new)
		s->items[s->n++] = f;
	return FATHOM_OK;
}

fathom_err fathom_interpreters_read(struct fathom_interpreters *s, int32_t tid,
				    const struct fathom_registers *registers,
				    struct fathom_script_frames *ret)
{
	const struct fathom_script_stack stack = { registers->sp,
						   fathom_view_mapping_end(s->view, registers->sp),
						   registers };

	for (uint32_t i = 0; i < s->n; i++) {
		const size_t first = ret->n;

		if (s->items[i].why)
			continue;
		FATHOM_TRY(s->items[i].provider->read(&s->items[i], tid, stack, ret));
		for (size_t k = first; k < ret->n; k++)
			ret->items[k].runtime = i;
	}
	return FATHOM_OK;
}

bool fathom_interpreters_executes(struct fathom_interpreters *s, uint64_t pc,
				  struct fathom_script_frame *frame, bool *has_called)
{
	const struct fathom_runtime_found *f = &s->items[frame->runtime];
	struct fathom_place place;

	return f->provider->executes && !fathom_view_locate_code(s->view, pc, &place) &&
	       f->provider->executes(f, &place, pc, frame, has_called);
}

bool fathom_interpreters_may_execute(const struct fathom_interpreters *s, uint32_t number,
				     uint64_t svma)
{
	const struct fathom_runtime_found *f = &s->items[number];

	return !f->provider->may_execute || f->provider->may_execute(f, svma);
}

fathom_err fathom_interpreters_name(struct fathom_interpreters *s,
				    const struct fathom_script_frame *frame,
				    struct fathom_arena *arena, struct fathom_script_name *ret)
{
	struct fathom_runtime_found *f = &s->items[frame->runtime];

	*ret = (struct fathom_script_name){ 0 };
	return f->provider->name(f, frame, arena, ret);
}

bool fathom_interpreters_lock(struct fathom_interpreters *s, uint64_t avma, const char **ret_name,
			      int32_t *ret_owner)
{
	bool is = false;

	for (uint32_t i = 0; i < s->n && !is; i++)
		is = !s->items[i].why && s->items[i].provider->lock &&
		     s->items[i].provider->lock(&s->items[i], avma, ret_name, ret_owner);
	return is;
}

void fathom_interpreters_lock_text(const char *name, int32_t owner, char to[FATHOM_SCRIPT_LOCK])
{
	(void)snprintf(to, FATHOM_SCRIPT_LOCK, owner ? "%s owned by %d" : "%s", name, (int)owner);
}

const char *fathom_interpreters_title(const struct fathom_interpreters *s, uint32_t number)
{
	return s->items[number].title;
}

void fathom_interpreters_refusal(const struct fathom_interpreters *s, uint32_t number,
				 char to[FATHOM_SCRIPT_REFUSAL])
{
	const struct fathom_runtime_found *f = &s->items[number];
	const struct fathom_bytes id = f->module->main->build_id;
	char digits[2 * 64 + 1] = "none";

	if (id.size && id.size <= 64)
		(void)fathom_hex_put(digits, id.data, id.size);
	(void)snprintf(to, FATHOM_SCRIPT_REFUSAL, "%s (%s, build-id %s)", f->why, f->title, digits);
}

uint32_t fathom_interpreters_at(const struct fathom_interpreters *s,
				const struct fathom_place *place, const char **ret_why)
{
	for (uint32_t i = 0; i < s->n && place->holder; i++) {
		if (s->items[i].module != place->holder->module)
			continue;
		*ret_why = s->items[i].why;
		return i;
	}
	return FATHOM_NONE;
}
