/* SPDX-License-Identifier: MIT */
#include "host/space/user/opened_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

#include "host/file/debug_search.h"
#include "host/space/user/core_link.h"
#include "host/space/user/memory_image.h"

/* Returns whether @name is that of System V shared memory: "/SYSV" and its key (shmget(2)). */
static bool is_shared_memory(struct fathom_str name)
{
	uint32_t i = 5;

	if (name.size != 13 || !str_starts(name, "/SYSV"))
		return false;
	while (i < name.size && strchr("0123456789abcdef", name.data[i]))
		i++;
	return i == name.size;
}

/*
 * Returns whether @m has a kernel's name for memory without a file: "anon_inode:[io_uring]",
 * "socket:[123]", shared memory with and without a key, rings of asynchronous I/O. Those without a
 * colon are marked deleted.
 */
static bool is_memory(const struct fathom_mapping *m)
{
	static const char *const kinds[] = { "anon_inode:", "socket:[", "pipe:[" };

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (str_starts(m->name, kinds[i]))
			return true;
	return m->deleted && (str_is(m->name, "/dev/zero") || str_is(m->name, "/[aio]") ||
			      is_shared_memory(m->name));
}

bool fathom_space_may_be_file(const struct fathom_space *s, const struct fathom_mapping *m)
{
	if (!m->inode)
		return str_is(m->name, "[vdso]");
	/* A stored map may have relative names, from the program's working directory. */
	return !is_memory(m) && (!s->target.is_live || str_starts(m->name, "/"));
}

/* Where to look for the file of a mapping, in this order. */
enum step { STEP_VERY, STEP_SYSROOT, STEP_PATH, STEP_IMAGE, N_STEPS };

/* One attempt to open the file of a mapping. */
struct attempt {
	const struct fathom_space *space;
	const struct fathom_maps *maps;
	size_t i;
	struct fathom_space_file *file;
	struct fathom_object *object;          /* the file found */
	bool is_unverified;                    /* nothing proves that it is the one */
	bool is_bare;                          /* it is an image without symbols */
	struct fathom_errinfo failed[N_STEPS]; /* err is 0 for a step not taken */
};

static void fail_step(struct attempt *t, enum step step, fathom_err err, const char *why)
{
	(void)fathom_fail_by(&t->failed[step], err, FATHOM_CAUSE_MAPPED_FILE, why);
	fathom_errinfo_set_file(&t->failed[step], t->file->name);
}

static bool format_very_path(const struct fathom_space *s, const struct fathom_mapping *m,
			     char *path, size_t cap)
{
	return s->ops->format_very_path && s->ops->format_very_path(s, m, path, cap);
}

static bool format_path(const char *root, const char *name, char *path, size_t cap)
{
	return snprintf(path, cap, "%s%s", root, name) < (int)cap;
}

bool fathom_mapping_is_inode(const struct fathom_mapping *m, const struct fathom_file_id *id)
{
	return id->inode == m->inode &&
	       id->device == makedev((unsigned)(m->device >> 32), (unsigned)m->device);
}

bool fathom_space_is_file(const struct fathom_space *s, const struct fathom_mapping *m,
			  const struct fathom_file_id *id)
{
	return s->ops->is_file ? s->ops->is_file(s, m, id) : fathom_mapping_is_inode(m, id);
}

/*
 * Notes what would prove that the opened file is the one that was mapped, and is not stored.
 * Returns whether the file is to be used all the same.
 */
static bool take_unverified(struct attempt *t, enum step step)
{
	const bool takes = t->space->target.paths->takes_unverified;
	const bool has_id = t->object->build_id.size != 0;

	fail_step(t, step, FATHOM_E_NOT_FOUND,
		  takes    ? "is taken although nothing that was stored proves that it was mapped"
		  : has_id ? "may not be the file that was mapped: its build-id was not stored"
			   : "may not be the file that was mapped: it has no build-id, and its "
			     "code was not stored");
	t->failed[step].cause = takes ? FATHOM_CAUSE_NONE : FATHOM_CAUSE_UNVERIFIED;
	if (takes)
		fathom_notes_add(t->space->notes, &t->failed[step]);
	t->is_unverified = takes;
	return takes;
}

/*
 * Returns whether the opened file is the mapped one. Even one opened through map_files may be
 * another: its address range may have been reused since the map was read.
 */
static bool is_mapped_file(struct attempt *t, enum step step)
{
	int number;

	t->file->is_file =
		fathom_space_is_file(t->space, &t->maps->items[t->i], &t->object->file->id);
	if (t->file->is_file)
		return true;
	switch (fathom_space_compare(t->space, t->maps, t->i, t->object)) {
	case FATHOM_SAME:
		return true;
	case FATHOM_DIFFERENT:
		fail_step(t, step, FATHOM_E_MISMATCH, "is not the file that was mapped");
		return false;
	default:
		number = errno;
		/* Nothing contradicts the user, who stated it: stored memory has no very file. */
		if (step == STEP_VERY && !t->space->target.is_live) {
			fail_step(
				t, step, FATHOM_E_MISMATCH,
				"is taken to be of what --exe names: what was stored cannot tell");
			fathom_notes_add(t->space->notes, &t->failed[step]);
			t->is_unverified = true;
			return true;
		}
		if (!t->space->target.is_live)
			return take_unverified(t, step);
		fail_step(t, step, number ? FATHOM_E_OS : FATHOM_E_MISMATCH,
			  "may not be the file that was mapped");
		t->failed[step].os_errno = number;
		return false;
	}
}

/* Opens the file at @path without decompression: a compressed file is no program when mapped. */
static bool open_file(struct attempt *t, enum step step, const char *path)
{
	struct fathom_memory *m = &t->space->target.session->memory;
	/* A live process's very file is known to be reachable. */
	const bool known = step == STEP_VERY && t->space->target.is_live;
	struct fathom_file *file;

	if ((!known && fathom_file_reach(m, path, &t->failed[step])) ||
	    fathom_file_map(m, path, &file, &t->failed[step]) ||
	    fathom_object_create(m, file, &t->object, &t->failed[step])) {
		if (t->failed[step].os_errno == ENOENT)
			t->failed[step].cause = FATHOM_CAUSE_MAPPED_FILE;
		fathom_errinfo_set_file(&t->failed[step], t->file->name);
		return false;
	}
	if (is_mapped_file(t, step))
		return true;
	fathom_object_close(t->object);
	t->object = NULL;
	return false;
}

static bool open_very_file(struct attempt *t)
{
	char path[PATH_MAX];

	return format_very_path(t->space, &t->maps->items[t->i], path, sizeof path) &&
	       open_file(t, STEP_VERY, path);
}

static bool open_below(struct attempt *t, enum step step, const char *root)
{
	char path[PATH_MAX];

	if (t->file->name[0] != '/') {
		fail_step(t, step, FATHOM_E_NOT_FOUND, "has no path that leads to it");
		/* Libraries are in the dynamic linker's list; the program has no name there. */
		t->failed[step].cause = strcmp(t->file->name, FATHOM_CORE_UNNAMED) == 0
						? FATHOM_CAUSE_UNNAMED
						: FATHOM_CAUSE_NONE;
		return false;
	}
	/* A name from memfd_create() is no path, though it begins like one. */
	if (strncmp(t->file->name, "/memfd:", 7) == 0)
		return false;
	if (!format_path(root, t->file->name, path, sizeof path)) {
		fail_step(t, step, FATHOM_E_NOT_FOUND, "has a path too long to be opened");
		return false;
	}
	return open_file(t, step, path);
}

static bool open_path(struct attempt *t)
{
	const char *sysroot = t->space->target.paths->sysroot;

	/* A core or snapshot may come from another machine, whose files are below the sysroot. */
	if (!t->space->target.is_live && sysroot[0] && open_below(t, STEP_SYSROOT, sysroot))
		return true;
	/* For a core or snapshot, the same file may be back. */
	if (t->space->target.is_live && t->maps->items[t->i].deleted) {
		fail_step(t, STEP_PATH, FATHOM_E_NOT_FOUND, "has been deleted or replaced");
		return false;
	}
	return open_below(t, STEP_PATH, t->space->root);
}

static bool open_image(struct attempt *t)
{
	t->file->is_image = !fathom_space_image(t->space, t->maps, t->i, &t->object, &t->is_bare,
						&t->failed[STEP_IMAGE]);
	fathom_errinfo_set_file(&t->failed[STEP_IMAGE], t->file->name);
	return t->file->is_image;
}

/*
 * Replaces the image of a core, which mostly lacks the code, by the very file, which is found in
 * the debug directories by the image's build-id.
 */
static void open_by_build_id(struct attempt *t)
{
	struct fathom_object *found;

	if (t->space->target.is_live || !t->object->build_id.size)
		return;
	found = fathom_debugfile_program_by_id(t->space->target.paths, t->object->build_id,
					       t->space->notes);
	if (found && fathom_space_compare(t->space, t->maps, t->i, found) == FATHOM_SAME) {
		fathom_object_close(t->object);
		t->object = found;
		t->file->is_image = false;
		t->is_bare = false;
	} else {
		fathom_object_close(found);
	}
}

static bool is_denied(const struct fathom_errinfo *info)
{
	return info->err == FATHOM_E_OS && (info->os_errno == EPERM || info->os_errno == EACCES);
}

static bool any_failed(const struct attempt *t, fathom_err err)
{
	for (int step = 0; step < N_STEPS; step++)
		if (t->failed[step].err == err)
			return true;
	return false;
}

static enum fathom_reason reason_of(const struct attempt *t)
{
	const bool is_elf = t->object != NULL; /* the mapped file is an ELF file */

	if (any_failed(t, FATHOM_E_CHANGED))
		return FATHOM_REASON_CHANGED;
	if (any_failed(t, FATHOM_E_TIMEOUT))
		return FATHOM_REASON_TIMEOUT;
	/* Either the mapped file is no program, or it was one and has been replaced by none. */
	if (any_failed(t, FATHOM_E_FORMAT))
		return is_elf ? FATHOM_REASON_BUILD_ID_MISMATCH : FATHOM_REASON_NO_SYMBOLS;
	if (any_failed(t, FATHOM_E_LIMIT))
		return FATHOM_REASON_LIMIT;
	if (t->failed[STEP_SYSROOT].err == FATHOM_E_MISMATCH ||
	    t->failed[STEP_PATH].err == FATHOM_E_MISMATCH ||
	    (t->failed[STEP_VERY].err == FATHOM_E_MISMATCH && !t->space->target.is_live))
		return FATHOM_REASON_BUILD_ID_MISMATCH;
	/* Most users may not open the very file: that means nothing. */
	for (int step = STEP_SYSROOT; step < N_STEPS; step++)
		if (is_denied(&t->failed[step]))
			return FATHOM_REASON_NO_PERMISSION;
	return FATHOM_REASON_NO_FILE;
}

/* Notes why the file was not found, if only its image or nothing was. */
static void note_failures(const struct attempt *t)
{
	if (!t->file->is_image && t->object)
		return;
	for (int step = 0; step < N_STEPS; step++)
		/* Most users may not open the very file: the other steps say more. */
		if (t->failed[step].err && !(step == STEP_VERY && is_denied(&t->failed[step])))
			fathom_notes_add(t->space->notes, &t->failed[step]);
}

static bool lacks_memory(const struct attempt *t)
{
	return !t->object && any_failed(t, FATHOM_E_MEMORY);
}

/* Opens the file by the steps in order; if it is truncated meanwhile, does not try other paths. */
static bool open_mapped_file(struct attempt *t)
{
	return open_very_file(t) || (t->failed[STEP_VERY].err != FATHOM_E_CHANGED && open_path(t));
}

static fathom_err open_module(struct attempt *t)
{
	const bool named = t->file->inode != 0;

	if (named && !fathom_space_is_reachable(t->space, &t->maps->items[t->i])) {
		(void)fathom_fail_reach(&t->failed[STEP_VERY], t->file->name);
		t->file->reason = FATHOM_REASON_TIMEOUT;
		note_failures(t);
		return FATHOM_OK;
	}
	if (!(named && open_mapped_file(t))) {
		if (named && t->maps->is_part)
			return FATHOM_E_UNSUPPORTED;
		if (!open_image(t))
			t->file->reason = reason_of(t);
		else if (named)
			open_by_build_id(t);
		if (named && t->file->is_image)
			t->file->no_file = reason_of(t);
	}
	if (lacks_memory(t))
		return FATHOM_E_MEMORY;
	if (t->file->reason != FATHOM_REASON_NO_SYMBOLS)
		note_failures(t);
	if (!t->object)
		return FATHOM_OK;
	/* Debug files are looked for beside it; a core's file is where it was found. */
	if ((t->space->target.is_live || t->file->is_image) &&
	    fathom_file_rename(t->object->file, t->space->root, t->file->name)) {
		fathom_object_close(t->object);
		return FATHOM_E_MEMORY;
	}
	FATHOM_TRY(fathom_module_create(t->space->target.paths, t->object, t->space->notes,
					&t->file->module));
	t->file->module->is_unverified = t->is_unverified;
	if (t->is_bare && !t->file->module->debug) {
		/* Only its address is known. */
		fathom_module_close(t->file->module);
		t->file->module = NULL;
		t->file->reason = reason_of(t);
	} else if (!named) {
		fathom_symbol_set_source(&t->file->module->symbols, FATHOM_SOURCE_VDSO);
	}
	return FATHOM_OK;
}

fathom_err fathom_space_file_open(const struct fathom_space *s, const struct fathom_maps *maps,
				  size_t i, struct fathom_space_file **ret)
{
	const struct fathom_mapping *m = &maps->items[i];
	struct fathom_space_file *f = calloc(1, sizeof *f);
	struct attempt t = { .space = s, .maps = maps, .i = i, .file = f };
	fathom_err err = FATHOM_E_MEMORY;

	if (!f)
		return FATHOM_E_MEMORY;
	f->hash = fathom_mapping_hash_file(m);
	f->device = m->device;
	f->inode = m->inode;
	f->name = strndup(m->name.data ? m->name.data : "", m->name.size);
	if (f->name)
		err = open_module(&t);
	if (err)
		fathom_space_files_close(f);
	else
		*ret = f;
	return err;
}

void fathom_space_files_close(struct fathom_space_file *files)
{
	while (files) {
		struct fathom_space_file *next = files->next;

		fathom_module_close(files->module);
		free(files->name);
		free(files);
		files = next;
	}
}

bool fathom_space_file_fits(const struct fathom_space_file *f, const struct fathom_mapping *m)
{
	return f->device == m->device && f->inode == m->inode && strlen(f->name) == m->name.size &&
	       memcmp(f->name, m->name.data, m->name.size) == 0;
}

/* Calls stat() on the file. */
static bool identify(const struct fathom_space *s, const struct fathom_mapping *m,
		     const struct fathom_space_file *f, struct fathom_file_id *ret)
{
	char path[PATH_MAX];

	return (format_very_path(s, m, path, sizeof path) && fathom_file_identify(path, ret)) ||
	       (format_path(s->root, f->name, path, sizeof path) &&
		!fathom_file_reach(&s->target.session->memory, path, NULL) &&
		fathom_file_identify(path, ret));
}

bool fathom_space_file_is_current(const struct fathom_space *s, const struct fathom_maps *maps,
				  size_t i, const struct fathom_space_file *f)
{
	const struct fathom_file_id *was = &f->module->main->file->id;
	struct fathom_file_id is;

	if (fathom_module_check(f->module, NULL))
		return false;
	if (!s->target.is_live)
		return true;
	if (f->inode && !fathom_space_is_reachable(s, &maps->items[i]))
		return false;
	/* The same inode may have new content: libraries are sometimes overwritten in place. */
	if (f->is_file && identify(s, &maps->items[i], f, &is))
		return is.inode == was->inode && is.device == was->device && is.size == was->size &&
		       is.ctime_ns == was->ctime_ns;
	return fathom_space_compare(s, maps, i, f->module->main) == FATHOM_SAME;
}
