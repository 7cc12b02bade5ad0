/* SPDX-License-Identifier: MIT */
#include "host/space/kernel/vmlinux.h"

#include <fts.h>
#include <stdlib.h>

#include "host/base/path.h"
#include "host/base/progress.h"
#include "host/file/debug_search.h"
#include "host/file/debuginfod.h"
#include "host/file/kernel_text.h"

/* The most that is read of notes, which have some hundred bytes. */
#define MAX_NOTES 16384

/* With all modules of a kernel, modules.dep has 700 KiB. */
#define MAX_MODULES_DEP ((size_t)64 << 20)

/* The most directory entries visited if there is no modules.dep. */
#define MAX_WALK 100000

/* A search for one file. */
struct search {
	const struct fathom_kernel_place *place;
	struct fathom_bytes build_id;
	struct fathom_kernel_miss *miss;
};

void fathom_kernel_read_build_id(const char *path, struct fathom_build_id *ret)
{
	uint8_t notes[MAX_NOTES];
	const size_t size = fathom_text_read_short(path, notes, sizeof notes);
	const struct fathom_bytes id =
		fathom_notes_build_id((struct fathom_bytes){ notes, size }, 4, false);

	ret->size = id.size <= sizeof ret->data ? (uint32_t)id.size : 0;
	if (ret->size)
		memcpy(ret->data, id.data, ret->size);
}

/* Makes look-ups of files that belong to @o try below the root first. */
static struct fathom_object *below_root(const struct search *s, struct fathom_object *o)
{
	if (o)
		o->file->root_size = strlen(s->place->root);
	return o;
}

/* Tries the file at ROOT DIR "/" NAME. */
static struct fathom_object *try_file(const struct search *s, const char *dir, const char *name)
{
	struct fathom_path path;

	if (!fathom_path_format(&path, "%s%s/%s", s->place->root, dir, name))
		return NULL;
	return below_root(s, fathom_debugfile_try_id(s->place->paths, path.text, s->build_id,
						     s->place->notes, &s->miss->refused));
}

static struct fathom_object *try_by_id(const struct search *s)
{
	return below_root(s, fathom_debugfile_by_id(s->place->paths, s->place->root, s->build_id,
						    s->place->notes, &s->miss->refused));
}

static struct fathom_object *try_debuginfod(const struct search *s)
{
	struct fathom_object *found;
	struct fathom_errinfo info;
	char *path;

	if (!(s->place->session->flags & FATHOM_DEBUGINFOD))
		return NULL;
	if (fathom_debuginfod_find(s->place->session, s->build_id, &path, &info)) {
		if (fathom_is_cancelled(s->place->session))
			return NULL;
		s->miss->timeout = info.err == FATHOM_E_TIMEOUT || info.err == FATHOM_E_CANCELLED;
		fathom_errinfo_set_file(&info, "debuginfod");
		fathom_notes_add(s->place->notes, &info);
		return NULL;
	}
	found = fathom_debugfile_try_id(s->place->paths, path, s->build_id, s->place->notes,
					&s->miss->refused);
	free(path);
	return found;
}

/* Tries @name in all directories of debug files, then, unless it is NULL, @own. */
static struct fathom_object *try_names(const struct search *s, const char *name, const char *own)
{
	struct fathom_object *found = NULL;

	for (char **dir = s->place->paths->debug_dirs; *dir && !found; dir++)
		found = try_file(s, *dir, name);
	return found || !own ? found : try_file(s, "", own);
}

struct fathom_object *fathom_kernel_find_image(const struct fathom_kernel_place *place,
					       struct fathom_bytes build_id,
					       struct fathom_kernel_miss *ret_miss)
{
	/* Where packages put it, below the debug directories and below the root. */
	static const struct {
		const char *debug;
		const char *own;
	} names[] = {
		{ "boot/vmlinux-%s", "boot/vmlinux-%s" },
		{ "lib/modules/%s/vmlinux", "lib/modules/%s/vmlinux" },
		{ "usr/lib/modules/%s/vmlinux", "usr/lib/modules/%s/vmlinux" },
		{ "lib/modules/%s/vmlinux.debug", "lib/modules/%s/vmlinux.debug" },
		{ "vmlinux-%s", "lib/modules/%s/build/vmlinux" },
	};
	const struct search s = { place, build_id, ret_miss };
	struct fathom_object *found = try_by_id(&s);

	for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++) {
		struct fathom_path debug;
		struct fathom_path own;

		found = fathom_path_format(&debug, names[i].debug, place->release) &&
					fathom_path_format(&own, names[i].own, place->release)
				? try_names(&s, debug.text, own.text)
				: NULL;
	}
	return found ? found : try_debuginfod(&s);
}

/* Returns whether @path is a file of the module @name, where '_' also stands for '-'. */
static bool is_module_file(const char *path, size_t size, struct fathom_str name)
{
	const char *slash = memrchr(path, '/', size);
	const char *base = slash ? slash + 1 : path;
	const size_t left = size - (size_t)(base - path);

	if (left < (size_t)name.size + 3 || memcmp(base + name.size, ".ko", 3) != 0)
		return false;
	for (uint32_t i = 0; i < name.size; i++)
		if (base[i] != name.data[i] && !(base[i] == '-' && name.data[i] == '_'))
			return false;
	return true;
}

/*
 * Tries a file such as "kernel/fs/ext4/ext4.ko.xz" below a directory of modules, and uncompressed
 * below the debug directories.
 */
static struct fathom_object *try_module(const struct search *s, const char *dir, const char *path,
					size_t size)
{
	const char *ko = memmem(path, size, ".ko", 3);
	const int plain = ko ? (int)(ko - path) : 0;
	struct fathom_object *found = NULL;
	struct fathom_path debug;
	struct fathom_path own;

	if (!ko || size > PATH_MAX)
		return NULL;
	if (fathom_path_format(&debug, "%s/%.*s.ko.debug", dir + 1, plain, path))
		found = try_names(s, debug.text, NULL);
	if (!found && fathom_path_format(&debug, "%s/%.*s.ko", dir + 1, plain, path))
		found = try_names(s, debug.text, NULL);
	if (!found && fathom_path_format(&own, "%s/%.*s", dir + 1, (int)size, path))
		found = try_file(s, "", own.text);
	return found;
}

/* Tries the files for @name in modules.dep of @dir, whose lines are "PATH: PATHS". */
static struct fathom_object *try_listed(const struct search *s, const char *dir,
					struct fathom_str name, bool *ret_has_list)
{
	struct fathom_object *found = NULL;
	struct fathom_path path;
	const char *stop;
	size_t size;
	char *text;

	if (!fathom_path_format(&path, "%s%s/modules.dep", s->place->root, dir) ||
	    fathom_text_read(path.text, MAX_MODULES_DEP, NULL, NULL, &text, &size, NULL))
		return NULL;
	*ret_has_list = true;
	for (const char *line = text; line < text + size && !found; line = stop + 1) {
		const size_t left = (size_t)(text + size - line);
		const char *colon;

		stop = memchr(line, '\n', left);
		stop = stop ? stop : text + size;
		colon = memchr(line, ':', (size_t)(stop - line));
		if (colon && is_module_file(line, (size_t)(colon - line), name))
			found = try_module(s, dir, line, (size_t)(colon - line));
	}
	free(text);
	return found;
}

/* Tries the files for @name below @dir without modules.dep, by a walk. */
static struct fathom_object *try_walk(const struct search *s, const char *dir,
				      struct fathom_str name)
{
	struct fathom_object *found = NULL;
	struct fathom_path path;
	char *paths[2] = { path.text, NULL };
	FTSENT *entry;
	FTS *walk;
	size_t skip;

	if (!fathom_path_format(&path, "%s%s", s->place->root, dir))
		return NULL;
	skip = strlen(path.text) + 1;
	walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	if (!walk)
		return NULL;
	for (size_t i = 0; i < MAX_WALK && !found && (entry = fts_read(walk)) != NULL; i++)
		if (entry->fts_info == FTS_F && entry->fts_pathlen > skip &&
		    is_module_file(entry->fts_path, entry->fts_pathlen, name))
			found = try_module(s, dir, entry->fts_path + skip,
					   entry->fts_pathlen - skip);
	(void)fts_close(walk);
	return found;
}

struct fathom_object *fathom_kernel_find_module(const struct fathom_kernel_place *place,
						struct fathom_str name,
						struct fathom_bytes build_id,
						struct fathom_kernel_miss *ret_miss)
{
	static const char *const formats[] = { "/lib/modules/%s", "/usr/lib/modules/%s" };
	const struct search s = { place, build_id, ret_miss };
	struct fathom_object *found = NULL;
	bool has_list = false;
	struct fathom_path dir;

	for (size_t i = 0; i < 2 && !found && !has_list; i++)
		if (fathom_path_format(&dir, formats[i], place->release))
			found = try_listed(&s, dir.text, name, &has_list);
	for (size_t i = 0; i < 2 && !found && !has_list; i++)
		if (fathom_path_format(&dir, formats[i], place->release))
			found = try_walk(&s, dir.text, name);
	if (!found)
		found = try_by_id(&s);
	return found ? found : try_debuginfod(&s);
}
