/* SPDX-License-Identifier: MIT */
/* The modules of a target, and why addresses in them have no lines. */
#include <stdlib.h>
#include <string.h>

#include "fathom/limits.h"
#include "host/base/array.h"
#include "host/base/progress.h"
#include "host/module/module.h"
#include "host/space/target.h"

/* One module. Its texts and its build-id follow the struct. */
struct listed {
	struct fathom_module_state state;
	struct fathom_module_info info;
	char bytes[];
};

struct fathom_modules {
	FATHOM_ARRAY_OF(struct listed *);
};

/* A walk over the modules. */
struct walk {
	struct fathom *session;
	struct fathom_modules *modules;
	bool no_memory;
};

/* Copies @size bytes to *@at, which it moves behind them. */
static void *put(char **at, const void *from, size_t size)
{
	char *to = memcpy(*at, from, size);

	*at += size;
	return to;
}

static struct listed *create(const struct fathom_module_at *m)
{
	const struct fathom_bytes id = m->module->main->build_id;
	const char *debug = m->module->debug ? m->module->debug->file->path : NULL;
	const size_t name_size = strlen(m->name) + 1;
	const size_t debug_size = debug ? strlen(debug) + 1 : 0;
	struct listed *l = calloc(1, sizeof *l + name_size + debug_size + (size_t)id.size);
	char *at;

	if (!l)
		return NULL;
	at = l->bytes;
	l->info.path = put(&at, m->name, name_size);
	l->info.is_unverified = m->module->is_unverified;
	l->state.module = &l->info;
	l->state.start = m->start;
	l->state.is_deleted = m->is_deleted;
	if (debug)
		l->state.debug_path = put(&at, debug, debug_size);
	if (id.size) {
		l->info.build_id = put(&at, id.data, (size_t)id.size);
		l->info.build_id_size = (uint32_t)id.size;
	}
	return l;
}

static bool add(const struct fathom_module_at *m, void *data)
{
	struct walk *w = data;
	struct listed *l = create(m);
	enum fathom_reason reason = FATHOM_REASON_NONE;

	if (!l || !fathom_array_push(w->modules, l)) {
		free(l);
		w->no_memory = true;
		return false;
	}
	if (!fathom_module_debug(m->module, &reason))
		l->state.reason = (uint8_t)(m->no_file ? m->no_file : reason);
	return !fathom_is_cancelled(w->session);
}

/* Walks over the modules of a view of all of @target. */
static fathom_err walk(struct fathom_target *target, struct walk *w, struct fathom_errinfo *reterr)
{
	struct fathom_view *view;
	fathom_err err;

	FATHOM_TRY(fathom_view_begin(target, FATHOM_VIEW_LINES, &view, reterr));
	err = fathom_view_modules(view, add, w);
	if (err)
		err = fathom_view_fail(view, err, reterr);
	else if (w->no_memory)
		err = fathom_fail_memory(reterr);
	fathom_view_end(view);
	return err;
}

fathom_err fathom_modules_read(struct fathom_target *target, struct fathom_modules **ret_modules,
			       struct fathom_errinfo *reterr)
{
	struct fathom_modules *modules = calloc(1, sizeof *modules);
	struct walk w = { .session = target->session, .modules = modules };
	struct fathom_call call;
	fathom_err err;

	if (!modules)
		return fathom_fail_memory(reterr);
	fathom_call_begin(&call, target->session);
	err = walk(target, &w, reterr);
	err = fathom_call_end(&call, fathom_target_end_call(target, err, reterr), reterr);
	if (err)
		fathom_modules_free(modules);
	else
		*ret_modules = modules;
	return err;
}

void fathom_modules_free(struct fathom_modules *modules)
{
	if (!modules)
		return;
	for (size_t i = 0; i < modules->n; i++)
		free(modules->items[i]);
	fathom_array_free(modules);
	free(modules);
}

size_t fathom_modules_count(const struct fathom_modules *modules)
{
	return modules->n;
}

const struct fathom_module_state *fathom_modules_get(const struct fathom_modules *modules, size_t i)
{
	return &modules->items[i]->state;
}
