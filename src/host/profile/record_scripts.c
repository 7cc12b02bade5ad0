/* SPDX-License-Identifier: MIT */
#include "host/profile/record_scripts.h"

#include <stdio.h>

#include "host/profile/samples_format.h"
#include "host/stack/capture.h"
#include "host/stack/stacks.h"

fathom_err fathom_record_scripts_begin(struct fathom_record_scripts *s, struct fathom_view *view)
{
	return fathom_interpreters_create(view, &s->interpreters);
}

void fathom_record_scripts_end(struct fathom_record_scripts *s)
{
	fathom_interpreters_destroy(s->interpreters);
	fathom_array_free(&s->frames);
	fathom_array_free(&s->places);
	fathom_key_map_deinit(&s->runtimes);
	fathom_key_map_deinit(&s->locations);
	*s = (struct fathom_record_scripts){ .interpreters = NULL };
}

fathom_err fathom_record_scripts_note(struct fathom_record_scripts *s,
				      const struct fathom_place *place, uint64_t svma,
				      uint32_t module, uint32_t location)
{
	const char *why = NULL;
	uint32_t *is_of;
	uint32_t number;
	bool is_new;

	if (!s->interpreters)
		return FATHOM_OK;
	FATHOM_TRY(fathom_interpreters_look(s->interpreters, place, &is_new));
	s->is_new |= is_new;
	number = fathom_interpreters_at(s->interpreters, place, &why);
	if (number == FATHOM_NONE || why)
		return FATHOM_OK;
	s->runtime_modules[number] = module;
	if (!fathom_interpreters_may_execute(s->interpreters, number, svma))
		return FATHOM_OK;
	is_of = fathom_key_map_at(&s->runtimes, location);
	if (!is_of)
		return FATHOM_E_MEMORY;
	*is_of = number;
	return FATHOM_OK;
}

bool fathom_record_scripts_any(const struct fathom_record_scripts *s)
{
	return s->interpreters && fathom_interpreters_any(s->interpreters);
}

bool fathom_record_scripts_executes(const struct fathom_record_scripts *s, uint32_t location)
{
	return fathom_key_map_find(&s->runtimes, location) != FATHOM_KEY_NEW;
}

bool fathom_record_scripts_lock(const struct fathom_record_scripts *s, uint64_t avma,
				const char **ret_name, int32_t *ret_owner)
{
	return s->interpreters &&
	       fathom_interpreters_lock(s->interpreters, avma, ret_name, ret_owner);
}

void fathom_record_scripts_drop(struct fathom_record_scripts *s)
{
	s->frames.n = 0;
}

void fathom_record_scripts_read(void *scripts, const struct fathom_thread_copy *copy)
{
	struct fathom_record_scripts *s = scripts;

	s->frames.n = 0;
	s->is_new = false;
	if (fathom_record_scripts_any(s) &&
	    fathom_interpreters_read(s->interpreters, copy->tid, &copy->registers, &s->frames))
		s->frames.n = 0;
}

fathom_err fathom_record_scripts_place(struct fathom_record_scripts *s,
				       const struct fathom_walk_frames *native)
{
	const struct fathom_native_frames frames = fathom_stacks_native(native->items, native->n);

	if (s->frames.n)
		s->frames.n = fathom_script_keep_executed(s->interpreters, &frames, s->frames.items,
							  s->frames.n);
	if (!fathom_array_room(&s->places, s->frames.n))
		return FATHOM_E_MEMORY;
	(void)fathom_script_find_places(&frames, s->frames.items, s->frames.n, s->places.items);
	s->n_left = s->frames.n;
	return FATHOM_OK;
}

/* Finds the symbol of @f; FATHOM_TABLE_NONE: it has no name any more. */
static fathom_err find_symbol(struct fathom_record_scripts *s, const struct fathom_script_frame *f,
			      struct fathom_stack_table *table, uint32_t *ret)
{
	struct fathom_arena arena = { 0 };
	struct fathom_script_name name;
	fathom_err err = fathom_interpreters_name(s->interpreters, f, &arena, &name);

	*ret = FATHOM_TABLE_NONE;
	if (!err) {
		const struct fathom_profile_symbol symbol = {
			.name = name.function,
			.file = name.file,
			.line = name.line,
			.source = FATHOM_SOURCE_INTERPRETER,
		};

		*ret = fathom_table_symbol(table, &symbol);
		err = *ret == FATHOM_TABLE_NONE ? FATHOM_E_MEMORY : FATHOM_OK;
	}
	fathom_arena_deinit(&arena);
	return err == FATHOM_E_MEMORY ? err : FATHOM_OK;
}

/* Returns what the module of what runtime @number executes is called, or of its JIT code. */
static void name_module(const struct fathom_record_scripts *s, uint32_t number, const char *part,
			char to[32])
{
	(void)snprintf(to, 32, "[%s%s]", fathom_interpreters_title(s->interpreters, number), part);
}

/* Returns the JIT code of runtime @number, as a module of the profile; @path has its name. */
static struct fathom_profile_module code_module(const struct fathom_record_scripts *s,
						uint32_t number, char path[32])
{
	name_module(s, number, " code", path);
	return (struct fathom_profile_module){ .path = path, .kind = FATHOM_PROFILE_MODULE_JIT };
}

fathom_err fathom_record_scripts_locate(const struct fathom_record_scripts *s, size_t i,
					const struct fathom_walk_frame *f,
					struct fathom_stack_table *table, uint32_t *ret)
{
	struct fathom_profile_location l = { .pc = { .address = f->pc, .kind = f->kind },
					     .trust = f->trust };
	struct fathom_profile_module m;
	const struct fathom_script_frame *script;
	char path[32];

	*ret = FATHOM_TABLE_NONE;
	if (!s->n_left || s->places.items[s->n_left - 1] != i)
		return FATHOM_OK;
	script = &s->frames.items[s->n_left - 1];
	if (script->in_place != FATHOM_IN_PLACE_JIT)
		return FATHOM_OK;
	m = code_module(s, script->runtime, path);
	l.module = fathom_table_module(table, &m);
	if (l.module == FATHOM_TABLE_NONE)
		return FATHOM_E_MEMORY;
	*ret = fathom_table_location(table, &l, FATHOM_TABLE_NONE);
	return *ret == FATHOM_TABLE_NONE ? FATHOM_E_MEMORY : FATHOM_OK;
}

/* Finds the location of @f, from what is known if it was seen before. */
static fathom_err find_location(struct fathom_record_scripts *s,
				const struct fathom_script_frame *f, uint8_t trust,
				struct fathom_stack_table *table, uint32_t *ret)
{
	uint32_t *number =
		fathom_key_map_at(&s->locations, f->pc ^ f->mark ^ (uint64_t)trust << 61);
	struct fathom_profile_location l = { .pc = { .address = f->pc }, .trust = trust };
	struct fathom_profile_module m = { .kind = FATHOM_PROFILE_MODULE_SCRIPT,
					   .runtime = s->runtime_modules[f->runtime] };
	uint32_t symbol;
	char path[32];

	if (!number)
		return FATHOM_E_MEMORY;
	*ret = *number;
	if (*number != FATHOM_KEY_NEW)
		return FATHOM_OK;
	FATHOM_TRY(find_symbol(s, f, table, &symbol));
	/* A frame in place that has no name stays the native frame that it is. */
	*ret = FATHOM_TABLE_NONE;
	if (f->in_place && symbol == FATHOM_TABLE_NONE)
		return FATHOM_OK;
	if (f->in_place == FATHOM_IN_PLACE_JIT) {
		const struct fathom_profile_module code = code_module(s, f->runtime, path);

		m.runtime = fathom_table_module(table, &code);
		if (m.runtime == FATHOM_TABLE_NONE)
			return FATHOM_E_MEMORY;
	}
	name_module(s, f->runtime, "", path);
	m.path = path;
	l.module = fathom_table_module(table, &m);
	*ret = fathom_table_location(table, &l, symbol);
	/* Code that has gone may be there again the next time. */
	if (symbol != FATHOM_TABLE_NONE)
		*number = *ret;
	return l.module == FATHOM_TABLE_NONE || *ret == FATHOM_TABLE_NONE ? FATHOM_E_MEMORY
									  : FATHOM_OK;
}

fathom_err fathom_record_scripts_put(struct fathom_record_scripts *s, size_t i, uint8_t trust,
				     struct fathom_stack_table *table, uint32_t *node)
{
	/* Places are in the order of the frames, but for those that are nowhere. */
	while (s->n_left && (s->places.items[s->n_left - 1] == i ||
			     s->places.items[s->n_left - 1] == FATHOM_SCRIPT_NOWHERE)) {
		const size_t k = --s->n_left;
		uint32_t location;

		if (s->places.items[k] != i)
			continue;
		FATHOM_TRY(find_location(s, &s->frames.items[k], trust, table, &location));
		if (location == FATHOM_TABLE_NONE)
			continue;
		*node = fathom_table_node(table, *node, location);
		if (!*node)
			return FATHOM_E_MEMORY;
	}
	return FATHOM_OK;
}
