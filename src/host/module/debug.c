/* SPDX-License-Identifier: MIT */
#include "host/module/debug.h"

#include <stdio.h>
#include <stdlib.h>

#include "host/base/progress.h"
#include "host/file/debug_search.h"
#include "host/golang/golang.h"
#include "host/module/module.h"
#include "host/module/unit_data.h"
#include "host/module/variables.h"

/* The loading of one object's sections. */
struct loading {
	struct fathom_object *object;
	uint32_t section[FATHOM_DWARF_SECTIONS]; /* index in the object; 0: absent */
	fathom_err err[FATHOM_DWARF_SECTIONS];
	struct fathom_errinfo info[FATHOM_DWARF_SECTIONS];
	struct fathom_dwarf *ret;
};

static void load_section(void *data, size_t task, unsigned thread)
{
	struct loading *l = data;

	(void)thread;
	/* The last task starts when all sections are being loaded. */
	if (task == FATHOM_DWARF_SECTIONS)
		fathom_object_clear_ahead(l->object);
	else if (l->section[task])
		l->err[task] = fathom_object_load_asking(l->object, l->section[task],
							 &l->ret->section[task], &l->info[task]);
}

static uint32_t find_section(const struct fathom_object *o, enum fathom_dwarf_section id,
			     const char *suffix)
{
	const char *name = fathom_dwarf_section_name(id);
	char full[64];
	uint32_t i;

	if (id == FATHOM_DEBUG_CU_INDEX)
		suffix = ""; /* the index of a package has a plain name */
	(void)snprintf(full, sizeof full, ".%s%s", name, suffix);
	i = fathom_object_find(o, full);
	if (!i) {
		(void)snprintf(full, sizeof full, ".z%s%s", name, suffix);
		i = fathom_object_find(o, full);
	}
	return i;
}

/*
 * Returns whether the other sections are of use without section @id, which could not be loaded. A
 * damaged one only costs strings or ranges. But if it did not fit the budget, answers would depend
 * on the budget: frames without names, files without directories.
 */
static bool can_do_without(int id, fathom_err err)
{
	const bool finds_units =
		id == FATHOM_DEBUG_ARANGES || id == FATHOM_GDB_INDEX || id == FATHOM_DEBUG_NAMES;

	if (id == FATHOM_DEBUG_INFO || id == FATHOM_DEBUG_ABBREV || err == FATHOM_E_MEMORY)
		return false;
	return err != FATHOM_E_LIMIT || finds_units;
}

fathom_err fathom_dwarf_load(struct fathom *session, struct fathom_object *o, const char *suffix,
			     struct fathom_notes *notes, struct fathom_dwarf *ret)
{
	struct loading l = { .object = o, .ret = ret };
	unsigned compressed = 0;
	fathom_err err = FATHOM_OK;

	memset(ret, 0, sizeof *ret);
	ret->swap = o->image.swap;
	ret->serial = atomic_fetch_add(&session->serials, 1) + 1;
	for (int i = 0; i < FATHOM_DWARF_SECTIONS; i++) {
		l.section[i] = find_section(o, (enum fathom_dwarf_section)i, suffix);
		if (!l.section[i] || !fathom_object_is_compressed(o, l.section[i]))
			continue;
		compressed++;
		/* On this thread, which the others need not wait for then. */
		fathom_object_open_codec(o, l.section[i]);
	}
	/* The name index helps only if no other index leads from addresses to units. */
	if (l.section[FATHOM_DEBUG_ARANGES] || l.section[FATHOM_GDB_INDEX])
		l.section[FATHOM_DEBUG_NAMES] = 0;
	if (compressed)
		fathom_run_asking(session, FATHOM_PHASE_OPEN, session->threads,
				  FATHOM_DWARF_SECTIONS + 1, load_section, &l);
	else
		fathom_pool_run(1, FATHOM_DWARF_SECTIONS + 1, load_section, &l);
	if (fathom_is_cancelled(session))
		return FATHOM_E_CANCELLED;
	for (int i = 0; i < FATHOM_DWARF_SECTIONS; i++) {
		if (!l.err[i])
			continue;
		fathom_notes_add(notes, &l.info[i]);
		if (!err && !can_do_without(i, l.err[i]))
			err = l.err[i];
	}
	return err;
}

static void free_unit_data(struct fathom_unit_data *data, void *arg)
{
	fathom_unit_data_free(data, arg);
}

/* Finds the file with the debug information of the module, or makes it. */
static fathom_err open_object(struct fathom_debug *d)
{
	if (!d->module->debug)
		FATHOM_TRY(fathom_go_debug(d->module->session, d->module->main, &d->made));
	d->object = d->made ? d->made : d->module->debug;
	return FATHOM_OK;
}

fathom_err fathom_debug_create(struct fathom_module *module, struct fathom_debug **ret)
{
	struct fathom *session = module->session;
	struct fathom_debug *d = calloc(1, sizeof *d);
	fathom_err err;

	if (!d)
		return FATHOM_E_MEMORY;
	d->module = module;
	err = open_object(d);
	if (!err)
		err = fathom_dwarf_load(session, d->object, "", module->notes, &d->view);
	if (!err) {
		d->view.bias = d->object->bias;
		d->sup = fathom_debugfile_find_sup(module->paths, d->object, module->notes,
						   &d->lacks_sup);
		if (d->sup && !fathom_dwarf_load(session, d->sup, "", module->notes, &d->sup_view))
			d->view.sup = &d->sup_view;
		d->lacks_sup |= d->sup && !d->view.sup;
		err = fathom_units_init(&d->units, &d->view, module->main, &session->memory,
					module->notes, d->object->file);
		/* Without the supplementary file it must not stay. */
		if (fathom_is_cancelled(session))
			err = FATHOM_E_CANCELLED;
	}
	if (!err && d->sup)
		err = fathom_units_init(&d->sup_units, &d->sup_view, module->main, &session->memory,
					module->notes, d->sup->file);
	/* A file that was not found or loaded then may be there. */
	if (fathom_is_cancelled(session))
		err = FATHOM_E_CANCELLED;
	if (err) {
		fathom_debug_destroy(d);
		return err;
	}
	*ret = d;
	return FATHOM_OK;
}

const struct fathom_file *fathom_debug_cut_file(const struct fathom_debug *d)
{
	if (d->sup && fathom_file_is_cut(d->sup->file))
		return d->sup->file;
	for (size_t i = 0; i < FATHOM_SPLIT_BUCKETS; i++) {
		const struct fathom_split_file *f =
			atomic_load_explicit(&d->splits[i], memory_order_acquire);

		for (; f; f = f->next)
			if (f->object && fathom_file_is_cut(f->object->file))
				return f->object->file;
	}
	return NULL;
}

static void free_splits(struct fathom_split_file *f)
{
	while (f) {
		struct fathom_split_file *next = f->next;

		fathom_object_close(f->object);
		free(f->path);
		free(f);
		f = next;
	}
}

void fathom_debug_destroy(struct fathom_debug *d)
{
	if (!d)
		return;
	fathom_units_deinit(&d->units, free_unit_data, &d->module->session->memory);
	fathom_units_deinit(&d->sup_units, free_unit_data, &d->module->session->memory);
	for (size_t i = 0; i < FATHOM_SPLIT_BUCKETS; i++)
		free_splits(atomic_load(&d->splits[i]));
	fathom_variables_free(atomic_load(&d->variables), &d->module->session->memory);
	fathom_object_close(d->sup);
	fathom_object_close(d->made);
	free(d);
}
