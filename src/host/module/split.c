/* SPDX-License-Identifier: MIT */
#include "host/module/split.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "host/base/progress.h"
#include "host/file/debug_search.h"
#include "host/module/module.h"
#include "host/module/unit_data.h"
#include "safe/base/cursor.h"

/* Section numbers in package indexes (DWARF 5, 7.3.5.3; version 2 is GNU's). */
struct package_column {
	uint8_t v2;
	uint8_t v5;
	uint8_t section;
};

static const struct package_column columns[] = {
	{ 1, 1, FATHOM_DEBUG_INFO },     { 3, 3, FATHOM_DEBUG_ABBREV },
	{ 4, 4, FATHOM_DEBUG_LINE },     { 6, 6, FATHOM_DEBUG_STR_OFFSETS },
	{ 0, 8, FATHOM_DEBUG_RNGLISTS },
};

/* Returns our section for column @id of an index of @version, or -1. */
static int section_of_column(uint16_t version, uint32_t id)
{
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
		if ((version == 2 ? columns[i].v2 : columns[i].v5) == id && id)
			return columns[i].section;
	return -1;
}

static _Atomic(struct fathom_split_file *) *bucket_of(struct fathom_debug *d, const char *path)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (const char *p = path; *p; p++)
		hash = (hash ^ (uint8_t)*p) * 16777619u;
	return &d->splits[hash % FATHOM_SPLIT_BUCKETS];
}

static struct fathom_split_file *find_file(struct fathom_split_file *head, const char *path)
{
	while (head && strcmp(head->path, path) != 0)
		head = head->next;
	return head;
}

static void free_file(struct fathom_split_file *f)
{
	fathom_object_close(f->object);
	free(f->path);
	free(f);
}

/* Publishes @fresh under its path; frees it if another thread was first. */
static struct fathom_split_file *publish(struct fathom_debug *d, struct fathom_split_file *fresh)
{
	_Atomic(struct fathom_split_file *) *bucket = bucket_of(d, fresh->path);
	struct fathom_split_file *head = atomic_load_explicit(bucket, memory_order_acquire);

	for (;;) {
		struct fathom_split_file *present = find_file(head, fresh->path);

		if (present) {
			free_file(fresh);
			return present;
		}
		fresh->next = head;
		if (atomic_compare_exchange_strong(bucket, &head, fresh))
			return fresh;
	}
}

static struct fathom_split_file *new_file(const char *path)
{
	struct fathom_split_file *f = calloc(1, sizeof *f);

	if (f)
		f->path = strdup(path);
	if (f && !f->path) {
		free(f);
		return NULL;
	}
	return f;
}

/*
 * Returns the file at @path with its sections loaded, opened once; NULL if out of memory, or if the
 * call was given up.
 */
static struct fathom_split_file *open_file(struct fathom_debug *d, const char *path)
{
	struct fathom_module *m = d->module;
	struct fathom_split_file *f =
		find_file(atomic_load_explicit(bucket_of(d, path), memory_order_acquire), path);

	if (f)
		return f;
	f = new_file(path);
	if (!f)
		return NULL;
	f->object = fathom_debugfile_try(m->paths, path, m->notes);
	if (f->object)
		(void)fathom_dwarf_load(m->session, f->object, ".dwo", m->notes, &f->view);
	/* Half of a file, or none because a download was given up, must not stay. */
	if (fathom_is_cancelled(m->session)) {
		free_file(f);
		return NULL;
	}
	return publish(d, f);
}

/* Finds the split unit with the id @id among the units of @f; a .dwo usually has only one. */
static bool find_unit(struct fathom_worker *w, const struct fathom_split_file *f, uint64_t id,
		      uint64_t *ret_off)
{
	const uint64_t size = f->view.section[FATHOM_DEBUG_INFO].size;
	struct fathom_unit_header header;

	for (uint64_t off = 0; off < size; off = header.end_off) {
		struct fathom_unit unit;
		struct fathom_die root;

		if (fathom_unit_header_read(&f->view, off, &header, NULL))
			return false;
		if (header.encoding.version < 5) {
			if (fathom_worker_open_unit(w, &f->view, off, &unit, &root, NULL))
				continue;
			fathom_worker_close_unit(w, &unit);
			header.id = unit.header.id;
		} else if (header.type != DW_UT_split_compile) {
			continue;
		}
		if (header.id == id) {
			*ret_off = off;
			return true;
		}
	}
	return false;
}

/* The parts of the index of a package file. */
struct package {
	struct fathom_bytes hashes;  /* n_slots of 8 bytes */
	struct fathom_bytes rows;    /* n_slots of 4 bytes: row from 1, or 0 if empty */
	struct fathom_bytes ids;     /* n_columns of 4 bytes */
	struct fathom_bytes offsets; /* n_units rows of n_columns */
	struct fathom_bytes sizes;
	uint32_t n_columns;
	uint32_t n_units;
	uint32_t n_slots;
	uint16_t version;
	bool swap;
};

static struct fathom_bytes take_table(struct fathom_cursor *c, uint64_t rows, uint64_t size)
{
	const uint8_t *p = cur_take(c, rows * size);

	return (struct fathom_bytes){ p, p ? rows * size : 0 };
}

static bool read_package(const struct fathom_dwarf *view, struct package *ret)
{
	struct fathom_cursor c = cur_init(view->section[FATHOM_DEBUG_CU_INDEX], view->swap);

	/* In version 2 the version has 4 bytes; in version 5 it has 2, and 2 of padding. */
	if (view->swap != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)) {
		const uint32_t word = cur_u32(&c);

		ret->version = word == 2 ? 2 : (uint16_t)(word >> 16);
	} else {
		ret->version = (uint16_t)cur_u32(&c);
	}
	ret->n_columns = cur_u32(&c);
	ret->n_units = cur_u32(&c);
	ret->n_slots = cur_u32(&c);
	ret->swap = view->swap;
	if (ret->n_columns > 16 || (ret->n_slots & (ret->n_slots - 1)))
		return false;
	ret->hashes = take_table(&c, ret->n_slots, 8);
	ret->rows = take_table(&c, ret->n_slots, 4);
	ret->ids = take_table(&c, ret->n_columns, 4);
	ret->offsets = take_table(&c, (uint64_t)ret->n_units * ret->n_columns, 4);
	ret->sizes = take_table(&c, (uint64_t)ret->n_units * ret->n_columns, 4);
	return cur_ok(&c) && ret->n_slots && (ret->version == 2 || ret->version == 5);
}

/* Finds the row, from 0, of the unit with the id @id. */
static bool find_row(const struct package *p, uint64_t id, uint32_t *ret)
{
	const uint64_t mask = p->n_slots - 1;
	const uint64_t step = ((id >> 32) & mask) | 1;
	uint64_t slot = id & mask;

	for (uint32_t tries = 0; tries < p->n_slots; tries++, slot = (slot + step) & mask) {
		const uint32_t row = load_u32(p->rows.data + 4 * slot, p->swap);

		if (!row)
			return false;
		if (load_u64(p->hashes.data + 8 * slot, p->swap) == id) {
			*ret = row - 1;
			return row <= p->n_units;
		}
	}
	return false;
}

/*
 * Returns the part of package @f that belongs to the unit with the id @id, as a split file of its
 * own: it then reads like a .dwo. Its path names the unit.
 */
static struct fathom_split_file *open_part(struct fathom_debug *d,
					   const struct fathom_split_file *f, uint64_t id)
{
	struct fathom_split_file *part;
	struct package p;
	char path[4096];
	uint32_t row;

	if (!read_package(&f->view, &p) || !find_row(&p, id, &row))
		return NULL;
	(void)snprintf(path, sizeof path, "%s(%016llx)", f->path, (unsigned long long)id);
	part = find_file(atomic_load_explicit(bucket_of(d, path), memory_order_acquire), path);
	if (part)
		return part;
	part = new_file(path);
	if (!part)
		return NULL;
	part->view = f->view;
	part->view.serial = atomic_fetch_add(&d->module->session->serials, 1) + 1;
	for (uint32_t i = 0; i < p.n_columns; i++) {
		const int section =
			section_of_column(p.version, load_u32(p.ids.data + 4 * i, p.swap));
		const uint64_t at = 4 * ((uint64_t)row * p.n_columns + i);

		if (section >= 0)
			part->view.section[section] = bytes_slice(
				f->view.section[section], load_u32(p.offsets.data + at, p.swap),
				load_u32(p.sizes.data + at, p.swap));
	}
	return publish(d, part);
}

/* Finds the unit with the id @id in the session's package, else in that of @module_path. */
static struct fathom_split_file *find_in_package(struct fathom_debug *d, const char *module_path,
						 uint64_t id)
{
	const char *named = d->module->session->dwp;
	const struct fathom_split_file *f;
	char path[4096];

	if (snprintf(path, sizeof path, "%s%s", named[0] ? named : module_path,
		     named[0] ? "" : ".dwp") >= (int)sizeof path)
		return NULL;
	f = open_file(d, path);
	return f && f->object ? open_part(d, f, id) : NULL;
}

/*
 * Composes the path of the .dwo that the skeleton names: without a compilation directory, below the
 * working directory.
 */
static bool dwo_path(const struct fathom_debug *d, const struct fathom_open_unit *u,
		     struct fathom_str name, char *ret, size_t cap)
{
	const struct fathom_file *f = d->module->main->file;
	const char *root = f->root_size ? f->path : d->module->paths->sysroot;
	const int size = (int)(f->root_size ? f->root_size : strlen(root));
	int length;

	if (!u->comp_dir.size && name.size && name.data[0] != '/')
		length = snprintf(ret, cap, "%.*s", (int)name.size, name.data);
	else if (name.size && name.data[0] == '/')
		length = snprintf(ret, cap, "%.*s%.*s", size, root, (int)name.size, name.data);
	else
		length = snprintf(ret, cap, "%.*s%.*s/%.*s", size, root, (int)u->comp_dir.size,
				  u->comp_dir.size ? u->comp_dir.data : "", (int)name.size,
				  name.size ? name.data : "");
	return name.size && length > 0 && (size_t)length < cap;
}

/* Finds the .dwo where it is named, or by its base name beside the module: builds get moved. */
static struct fathom_split_file *find_dwo(struct fathom_worker *w, struct fathom_debug *d,
					  const struct fathom_open_unit *u, struct fathom_str name,
					  uint64_t *ret_off, bool *ret_refused)
{
	const char *module_path = d->module->main->file->path;
	const char *slash = strrchr(module_path, '/');
	struct fathom_split_file *f;
	char path[4096];
	uint32_t base = name.size;

	if (!dwo_path(d, u, name, path, sizeof path))
		return NULL;
	f = open_file(d, path);
	if (f && f->object && find_unit(w, f, u->skeleton.header.id, ret_off))
		return f;
	*ret_refused = f && f->object;
	while (base && name.data[base - 1] != '/')
		base--;
	if (snprintf(path, sizeof path, "%.*s%.*s", slash ? (int)(slash - module_path) + 1 : 0,
		     module_path, (int)(name.size - base), name.data + base) >= (int)sizeof path)
		return NULL;
	f = open_file(d, path);
	if (f && f->object && find_unit(w, f, u->skeleton.header.id, ret_off))
		return f;
	*ret_refused |= f && f->object;
	return NULL;
}

static fathom_err note_missing(struct fathom_debug *d, const struct fathom_open_unit *u,
			       struct fathom_str name, bool refused)
{
	struct fathom_errinfo info;
	char path[4096];

	if (fathom_is_cancelled(d->module->session))
		return FATHOM_E_CANCELLED;
	if (refused)
		(void)fathom_fail_by(&info, FATHOM_E_MISMATCH, FATHOM_CAUSE_DEBUG_FILE,
				     "split debug file refused: it belongs to another build");
	else
		(void)fathom_fail(&info, FATHOM_E_NOT_FOUND, "", 0, "split debug file not found");
	fathom_errinfo_set_file(
		&info, dwo_path(d, u, name, path, sizeof path) ? path : d->object->file->path);
	fathom_notes_add(d->module->notes, &info);
	return info.err;
}

fathom_err fathom_split_find(struct fathom_worker *w, struct fathom_debug *d,
			     const struct fathom_open_unit *u,
			     const struct fathom_split_file **ret_file, uint64_t *ret_off)
{
	const struct fathom_str name =
		fathom_unit_string(&u->skeleton, fathom_die_attr(&u->root, FATHOM_AT_DWO_NAME));
	const uint64_t id = u->skeleton.header.id;
	const struct fathom_split_file *f = find_in_package(d, d->module->main->file->path, id);
	bool refused = false;

	if (!f && d->object != d->module->main)
		f = find_in_package(d, d->object->file->path, id);
	if (f && find_unit(w, f, id, ret_off)) {
		*ret_file = f;
		return FATHOM_OK;
	}
	f = find_dwo(w, d, u, name, ret_off, &refused);
	if (!f && fathom_is_cancelled(d->module->session))
		return FATHOM_E_CANCELLED;
	if (!f)
		return note_missing(d, u, name, refused);
	*ret_file = f;
	return FATHOM_OK;
}
