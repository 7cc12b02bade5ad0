/* SPDX-License-Identifier: MIT */
#include "host/file/debug_search.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "host/base/crc32.h"
#include "host/base/notes.h"
#include "host/base/path.h"
#include "host/base/progress.h"
#include "host/file/codec.h"
#include "host/file/debuginfod.h"
#include "safe/base/cursor.h"
#include "safe/base/hex.h"

/* Formats the directory of @path: "/usr/bin/" for "/usr/bin/true", "./" for "true". */
static bool directory_in(const char *path, struct fathom_path *ret)
{
	const char *slash = strrchr(path, '/');

	return slash ? fathom_path_format(ret, "%.*s", (int)(slash + 1 - path), path)
		     : fathom_path_format(ret, "./");
}

/* Formats the directory of @f with links followed, unless they would leave another root. */
static bool directory_of(const struct fathom_file *f, struct fathom_path *ret)
{
	char *real = f->root_size ? strdup(f->path) : realpath(f->path, NULL);
	const bool done = real && directory_in(real, ret);

	free(real);
	return done;
}

/* Roots of a file's absolute paths: that of the process that has mapped it, then ours. */
struct roots {
	struct fathom_path path[2];
	int n;
};

static void find_roots(const struct fathom_search_paths *paths, const struct fathom_file *f,
		       struct roots *ret)
{
	ret->n = 0;
	if (f->root_size && fathom_path_format(&ret->path[0], "%.*s", (int)f->root_size, f->path))
		ret->n++;
	ret->n += snprintf(ret->path[ret->n].text, sizeof ret->path->text, "%s", paths->sysroot) <
		  (int)sizeof ret->path->text;
}

struct fathom_object *fathom_debugfile_try(const struct fathom_search_paths *paths,
					   const char *path, struct fathom_notes *notes)
{
	struct fathom_object *o;
	struct fathom_errinfo info;

	if (!fathom_object_open(&paths->session->memory, path, &o, &info))
		return o;
	/* A call that was given up has learnt nothing about the file. */
	if (info.err != FATHOM_E_CANCELLED &&
	    (info.err != FATHOM_E_OS || (info.os_errno != ENOENT && info.os_errno != ENOTDIR)))
		fathom_notes_add(notes, &info);
	return NULL;
}

/* Opens @path as fathom_debugfile_try() does, below the root of @of if @path is below it. */
static struct fathom_object *try_for(const struct fathom_search_paths *paths, const char *path,
				     const struct fathom_object *of, struct fathom_notes *notes)
{
	struct fathom_object *o = fathom_debugfile_try(paths, path, notes);

	if (o && strncmp(path, of->file->path, of->file->root_size) == 0)
		o->file->root_size = of->file->root_size;
	return o;
}

/* Returns whether two build-ids or checksums are the same; an empty one is none. */
static bool same_id(struct fathom_bytes a, struct fathom_bytes b)
{
	return a.size && bytes_equal(a, b);
}

static void note_refused(struct fathom_notes *notes, const struct fathom_object *o,
			 const char *what)
{
	struct fathom_errinfo info;

	(void)fathom_fail_by(&info, FATHOM_E_MISMATCH, FATHOM_CAUSE_DEBUG_FILE, what);
	fathom_errinfo_set_file(&info, o->file->path);
	fathom_notes_add(notes, &info);
}

static bool is_same_file(const struct fathom_object *a, const struct fathom_object *b)
{
	return a->file->id.inode == b->file->id.inode && a->file->id.device == b->file->id.device &&
	       !a->file->allocated && !b->file->allocated;
}

/* Properties that a candidate must match. */
struct wanted {
	const struct fathom_object *main;
	struct fathom_bytes build_id; /* empty if there is none */
	uint32_t crc;                 /* of .gnu_debuglink */
	bool has_crc;
};

/* Opens a candidate. Closes and notes it if it belongs to another file. */
static struct fathom_object *try_candidate(const struct fathom_search_paths *paths,
					   const char *path, const struct wanted *wanted,
					   struct fathom_notes *notes, bool *ret_refused)
{
	struct fathom_object *o = try_for(paths, path, wanted->main, notes);
	const char *refused = NULL;

	if (!o)
		return NULL;
	if (is_same_file(o, wanted->main)) {
		fathom_object_close(o);
		return NULL;
	}
	if (wanted->build_id.size && o->build_id.size) {
		if (!same_id(wanted->build_id, o->build_id))
			refused = "debug file refused: its build-id is another";
	} else if (wanted->has_crc) {
		if (fathom_crc32(o->file->bytes) != wanted->crc)
			refused = "debug file refused: its CRC is not that of .gnu_debuglink";
	} else {
		refused = "debug file refused: it has no build-id";
	}
	if (!refused)
		return o;
	note_refused(notes, o, refused);
	*ret_refused = true;
	fathom_object_close(o);
	return NULL;
}

bool fathom_debugfile_id_path(const char *sysroot, const char *dir, struct fathom_bytes id,
			      const char *suffix, struct fathom_path *ret)
{
	char hex[2 * 64 + 1];

	if (id.size < 2 || id.size > 64)
		return false;
	fathom_hex_put(hex, id.data, id.size);
	return fathom_path_format(ret, "%s%s/.build-id/%.2s/%s%s", sysroot, dir, hex, hex + 2,
				  suffix);
}

static bool build_id_path(const char *sysroot, const char *dir, struct fathom_bytes id,
			  struct fathom_path *ret)
{
	return fathom_debugfile_id_path(sysroot, dir, id, ".debug", ret);
}

struct fathom_object *fathom_debugfile_try_id(const struct fathom_search_paths *paths,
					      const char *path, struct fathom_bytes build_id,
					      struct fathom_notes *notes, bool *ret_refused)
{
	struct fathom_object *o = fathom_debugfile_try(paths, path, notes);

	if (!o || same_id(o->build_id, build_id))
		return o;
	note_refused(notes, o, "refused: its build-id is another");
	*ret_refused = true;
	fathom_object_close(o);
	return NULL;
}

struct fathom_object *fathom_debugfile_by_id(const struct fathom_search_paths *paths,
					     const char *root, struct fathom_bytes build_id,
					     struct fathom_notes *notes, bool *ret_refused)
{
	struct fathom_object *found = NULL;
	struct fathom_path path;

	for (char **dir = paths->debug_dirs; *dir && !found; dir++)
		if (build_id_path(root, *dir, build_id, &path))
			found = fathom_debugfile_try_id(paths, path.text, build_id, notes,
							ret_refused);
	return found;
}

struct fathom_object *fathom_debugfile_program_by_id(const struct fathom_search_paths *paths,
						     struct fathom_bytes build_id,
						     struct fathom_notes *notes)
{
	struct fathom_object *found = NULL;
	struct fathom_path path;
	bool refused;

	/* Below a sysroot only: the files of this machine are of another. */
	for (char **dir = paths->debug_dirs; *dir && !found; dir++)
		if (fathom_debugfile_id_path(paths->sysroot, *dir, build_id, "", &path))
			found = fathom_debugfile_try_id(paths, path.text, build_id, notes,
							&refused);
	return found;
}

static struct fathom_object *find_by_build_id(const struct fathom_search_paths *paths,
					      const struct wanted *wanted,
					      struct fathom_notes *notes, bool *ret_refused)
{
	struct fathom_object *found = NULL;
	struct roots roots;
	struct fathom_path path;

	find_roots(paths, wanted->main->file, &roots);
	for (int r = 0; r < roots.n; r++)
		for (char **dir = paths->debug_dirs; *dir && !found; dir++)
			if (build_id_path(roots.path[r].text, *dir, wanted->build_id, &path))
				found = try_candidate(paths, path.text, wanted, notes, ret_refused);
	return found;
}

/* Reads .gnu_debuglink: a name, padding to four bytes, the CRC of the file. */
static bool read_debuglink(const struct fathom_object *main, struct fathom_str *ret_name,
			   uint32_t *ret_crc)
{
	const uint32_t i = fathom_object_find(main, ".gnu_debuglink");
	struct fathom_bytes bytes;
	struct fathom_cursor c;

	if (!i)
		return false;
	bytes = fathom_image_section_bytes(&main->image, &main->sections[i].header);
	c = cur_init(bytes, main->image.swap);
	*ret_name = cur_str(&c);
	cur_skip(&c, (0 - (uint64_t)(c.p - bytes.data)) & 3);
	*ret_crc = cur_u32(&c);
	return cur_ok(&c) && ret_name->size;
}

/* Looks for @name of @dir in the debug directories below @root. */
static struct fathom_object *find_below(const struct fathom_search_paths *paths, const char *root,
					const char *dir, struct fathom_str name,
					const struct wanted *wanted, struct fathom_notes *notes,
					bool *ret_refused)
{
	/* The debug file of /usr/lib/x may be packaged for /lib/x (merged /usr). */
	const char *merged = strncmp(dir, "/usr/", 5) == 0 ? dir + 4 : NULL;
	struct fathom_object *found = NULL;
	struct fathom_path path;

	for (char **d = paths->debug_dirs; *d && !found; d++) {
		if (fathom_path_format(&path, "%s%s%s%s", root, *d, dir, name.data))
			found = try_candidate(paths, path.text, wanted, notes, ret_refused);
		if (!found && merged &&
		    fathom_path_format(&path, "%s%s%s%s", root, *d, merged, name.data))
			found = try_candidate(paths, path.text, wanted, notes, ret_refused);
	}
	return found;
}

/* Looks for the debug file @name of a program in @dir: in @dir, and in the debug directories. */
static struct fathom_object *find_for_directory(const struct fathom_search_paths *paths,
						const char *dir, struct fathom_str name,
						const struct wanted *wanted,
						struct fathom_notes *notes, bool *ret_refused)
{
	const struct fathom_file *main = wanted->main->file;
	struct fathom_object *found = NULL;
	struct roots roots;
	struct fathom_path path;

	if (fathom_path_format(&path, "%s%s", dir, name.data))
		found = try_candidate(paths, path.text, wanted, notes, ret_refused);
	if (!found && fathom_path_format(&path, "%s.debug/%s", dir, name.data))
		found = try_candidate(paths, path.text, wanted, notes, ret_refused);
	find_roots(paths, main, &roots);
	/* The debug directories only mirror absolute paths. */
	for (int r = 0; r < roots.n && !found && dir[0] == '/'; r++)
		found = find_below(paths, roots.path[r].text, dir + main->root_size, name, wanted,
				   notes, ret_refused);
	return found;
}

/* Returns whether @f is a link to a file of another directory. *@ret is the link's directory. */
static bool is_linked_from(const struct fathom_file *f, const char *directory,
			   struct fathom_path *ret)
{
	char *real;
	size_t size;
	bool linked;

	if (f->root_size || !directory_in(f->path, ret))
		return false;
	real = realpath(ret->text, NULL);
	size = real && strcmp(real, "/") != 0 ? strlen(real) : 0;
	linked =
		real && (strncmp(real, directory, size) != 0 || strcmp(directory + size, "/") != 0);
	free(real);
	return linked;
}

/* The debug file may be beside a link to the program, else beside the program itself. */
static struct fathom_object *find_by_debuglink(const struct fathom_search_paths *paths,
					       struct wanted *wanted, struct fathom_notes *notes,
					       bool *ret_refused)
{
	const struct fathom_file *main = wanted->main->file;
	struct fathom_object *found = NULL;
	struct fathom_str name;
	struct fathom_path link;
	struct fathom_path dir;

	if (!read_debuglink(wanted->main, &name, &wanted->crc) || !directory_of(main, &dir))
		return NULL;
	wanted->has_crc = true;
	if (is_linked_from(main, dir.text, &link))
		found = find_for_directory(paths, link.text, name, wanted, notes, ret_refused);
	return found ? found
		     : find_for_directory(paths, dir.text, name, wanted, notes, ret_refused);
}

static struct fathom_object *find_by_debuginfod(const struct fathom_search_paths *paths,
						const struct wanted *wanted,
						struct fathom_notes *notes, bool *ret_refused,
						bool *ret_timeout)
{
	struct fathom_object *found;
	struct fathom_errinfo info;
	char *path;

	if (fathom_debuginfod_find(paths->session, wanted->build_id, &path, &info)) {
		if (fathom_is_cancelled(paths->session))
			return NULL;
		*ret_timeout = info.err == FATHOM_E_TIMEOUT || info.err == FATHOM_E_CANCELLED;
		fathom_errinfo_set_file(&info, wanted->main->file->path);
		fathom_notes_add(notes, &info);
		return NULL;
	}
	found = try_candidate(paths, path, wanted, notes, ret_refused);
	free(path);
	return found;
}

struct fathom_object *fathom_debugfile_find(const struct fathom_search_paths *paths,
					    const struct fathom_object *main,
					    struct fathom_notes *notes, bool *ret_refused,
					    bool *ret_timeout)
{
	struct wanted wanted = { .main = main, .build_id = main->build_id };
	struct fathom_object *found = NULL;

	if (wanted.build_id.size)
		found = find_by_build_id(paths, &wanted, notes, ret_refused);
	if (!found)
		found = find_by_debuglink(paths, &wanted, notes, ret_refused);
	if (!found && wanted.build_id.size && (paths->session->flags & FATHOM_DEBUGINFOD))
		found = find_by_debuginfod(paths, &wanted, notes, ret_refused, ret_timeout);
	return found;
}

/* Reads .gnu_debugaltlink: a path and a build-id. */
static bool read_altlink(const struct fathom_object *debug, struct fathom_str *ret_path,
			 struct fathom_bytes *ret_id)
{
	const uint32_t i = fathom_object_find(debug, ".gnu_debugaltlink");
	struct fathom_cursor c;

	if (!i)
		return false;
	c = cur_init(fathom_image_section_bytes(&debug->image, &debug->sections[i].header),
		     debug->image.swap);
	*ret_path = cur_str(&c);
	*ret_id = (struct fathom_bytes){ c.p, cur_left(&c) };
	return cur_ok(&c) && ret_path->size;
}

/* Reads .debug_sup (DWARF 5, 7.3.6): version, is it the supplementary file, path, checksum. */
static bool read_debug_sup(const struct fathom_object *o, bool *ret_is_sup,
			   struct fathom_str *ret_path, struct fathom_bytes *ret_id)
{
	const uint32_t i = fathom_object_find(o, ".debug_sup");
	struct fathom_cursor c;
	uint64_t size;

	if (!i)
		return false;
	c = cur_init(fathom_image_section_bytes(&o->image, &o->sections[i].header), o->image.swap);
	cur_skip(&c, 2);
	*ret_is_sup = cur_u8(&c) != 0;
	*ret_path = cur_str(&c);
	size = cur_uleb(&c);
	ret_id->data = cur_take(&c, size);
	ret_id->size = size;
	return cur_ok(&c);
}

/* Returns whether @id is the supplementary file @o: its build-id (dwz) or checksum (DWARF 5). */
static bool is_supplement(const struct fathom_object *o, struct fathom_bytes id)
{
	struct fathom_bytes own_id;
	struct fathom_str path;
	bool is_sup;

	if (same_id(o->build_id, id))
		return true;
	return read_debug_sup(o, &is_sup, &path, &own_id) && is_sup && same_id(own_id, id);
}

static struct fathom_object *try_sup(const struct fathom_search_paths *paths,
				     const struct fathom_object *debug, const char *path,
				     struct fathom_bytes id, struct fathom_notes *notes)
{
	struct fathom_object *o = try_for(paths, path, debug, notes);

	if (!o || is_supplement(o, id))
		return o;
	note_refused(notes, o, "supplementary debug file refused: its build-id is another");
	fathom_object_close(o);
	return NULL;
}

static struct fathom_object *find_sup_by_debuginfod(const struct fathom_search_paths *paths,
						    const struct fathom_object *debug,
						    struct fathom_bytes id,
						    struct fathom_notes *notes)
{
	struct fathom_object *found;
	struct fathom_errinfo info;
	char *path;

	if (fathom_debuginfod_find(paths->session, id, &path, &info)) {
		if (fathom_is_cancelled(paths->session))
			return NULL;
		fathom_errinfo_set_file(&info, debug->file->path);
		fathom_notes_add(notes, &info);
		return NULL;
	}
	found = try_sup(paths, debug, path, id, notes);
	free(path);
	return found;
}

/* Looks for the supplementary file of @debug below @root. */
static struct fathom_object *find_sup_below(const struct fathom_search_paths *paths,
					    const struct fathom_object *debug, const char *root,
					    struct fathom_str name, struct fathom_bytes id,
					    struct fathom_notes *notes)
{
	const char *slash = strrchr(name.data, '/');
	struct fathom_object *found = NULL;
	struct fathom_path path;

	if (name.data[0] == '/' && fathom_path_format(&path, "%s%s", root, name.data))
		found = try_sup(paths, debug, path.text, id, notes);
	for (char **d = paths->debug_dirs; *d && !found; d++) {
		if (fathom_path_format(&path, "%s%s/.dwz/%s", root, *d,
				       slash ? slash + 1 : name.data))
			found = try_sup(paths, debug, path.text, id, notes);
		if (!found && build_id_path(root, *d, id, &path))
			found = try_sup(paths, debug, path.text, id, notes);
	}
	return found;
}

struct fathom_object *fathom_debugfile_find_sup(const struct fathom_search_paths *paths,
						const struct fathom_object *debug,
						struct fathom_notes *notes, bool *ret_missing)
{
	struct fathom_object *found = NULL;
	struct fathom_errinfo info;
	struct fathom_bytes id;
	struct fathom_str name;
	struct roots roots;
	struct fathom_path path;
	struct fathom_path dir;
	bool is_sup = false;

	*ret_missing = false;
	if (!read_altlink(debug, &name, &id) &&
	    (!read_debug_sup(debug, &is_sup, &name, &id) || is_sup))
		return NULL;
	if (name.data[0] != '/' && directory_of(debug->file, &dir) &&
	    fathom_path_format(&path, "%s%s", dir.text, name.data))
		found = try_sup(paths, debug, path.text, id, notes);
	find_roots(paths, debug->file, &roots);
	for (int r = 0; r < roots.n && !found; r++)
		found = find_sup_below(paths, debug, roots.path[r].text, name, id, notes);
	if (!found && (paths->session->flags & FATHOM_DEBUGINFOD))
		found = find_sup_by_debuginfod(paths, debug, id, notes);
	*ret_missing = !found;
	if (!found && !fathom_is_cancelled(paths->session)) {
		(void)fathom_fail(&info, FATHOM_E_NOT_FOUND, ".gnu_debugaltlink", 0,
				  "the supplementary debug file it names was not found");
		fathom_errinfo_set_file(&info, debug->file->path);
		fathom_notes_add(notes, &info);
	}
	return found;
}

/* Notes that the MiniDebugInfo of @main cannot be read, and why. */
static void note_mini(struct fathom_notes *notes, const struct fathom_object *main,
		      const struct fathom_errinfo *why)
{
	struct fathom_errinfo info;

	(void)fathom_fail(&info, why->err, ".gnu_debugdata", 0, why->what);
	info.cause = why->cause;
	fathom_errinfo_set_file(&info, main->file->path);
	fathom_notes_add(notes, &info);
}

struct fathom_object *fathom_debugfile_mini(const struct fathom_search_paths *paths,
					    const struct fathom_object *main,
					    struct fathom_notes *notes)
{
	const uint32_t i = fathom_object_find(main, ".gnu_debugdata");
	struct fathom_sink sink = { .limit = fathom_memory_left(&paths->session->memory) };
	struct fathom_object *o = NULL;
	struct fathom_errinfo info;
	struct fathom_file *file;
	fathom_err err;

	if (!i)
		return NULL;
	err = fathom_codec_xz.open(&paths->session->memory, &info);
	if (err) {
		note_mini(notes, main, &info);
		return NULL;
	}
	err = fathom_codec_xz.stream(
		&paths->session->memory,
		fathom_image_section_bytes(&main->image, &main->sections[i].header), &sink);
	if (!err)
		err = fathom_file_wrap(&paths->session->memory, main->file->path, sink.data,
				       sink.size, sink.cap, &file);
	if (err)
		fathom_sink_deinit(&sink);
	else
		err = fathom_object_create(&paths->session->memory, file, &o, NULL);
	if (err) {
		(void)fathom_fail(&info, err, "", 0, "MiniDebugInfo is damaged");
		note_mini(notes, main, &info);
		return NULL;
	}
	return o;
}
