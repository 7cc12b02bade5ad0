/* SPDX-License-Identifier: MIT */
#include "host/source/text_search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/base/path.h"
#include "host/file/debuginfod.h"
#include "host/file/file.h"

static fathom_err fail(struct fathom_errinfo *reterr, fathom_err err, const char *path,
		       const char *what)
{
	(void)fathom_fail(reterr, err, "", 0, what);
	fathom_errinfo_set_file(reterr, path);
	return err;
}

/* Copies the mapped file @f, which an editor may truncate at any time. */
static fathom_err copy(const struct fathom_file *f, struct fathom_found_text *ret,
		       struct fathom_errinfo *reterr)
{
	const size_t size = (size_t)f->bytes.size;

	if (f->bytes.size > FATHOM_MAX_SOURCE)
		return fail(reterr, FATHOM_E_LIMIT, f->path, "is larger than 64 MiB");
	ret->text = malloc(size);
	ret->path = strdup(f->path);
	if (!ret->text || !ret->path)
		return fathom_fail_memory(reterr);
	fathom_file_will_read(f, f->bytes);
	memcpy(ret->text, f->bytes.data, size);
	ret->size = size;
	ret->mtime_ns = f->id.mtime_ns;
	return fathom_file_is_cut(f) ? fathom_fail_cut(reterr, f->path) : FATHOM_OK;
}

fathom_err fathom_source_read(struct fathom *session, const char *path,
			      struct fathom_found_text *ret, struct fathom_errinfo *reterr)
{
	struct fathom_found_text found = { .origin = FATHOM_TEXT_FILE };
	struct fathom_file *f;
	fathom_err err;

	FATHOM_TRY(fathom_file_reach(&session->memory, path, reterr));
	FATHOM_TRY(fathom_file_map(&session->memory, path, &f, reterr));
	err = copy(f, &found, reterr);
	fathom_file_close(f);
	if (err) {
		free(found.path);
		free(found.text);
		return err;
	}
	*ret = found;
	return FATHOM_OK;
}

/* Checks that @f may be what was compiled. */
static fathom_err prove(const struct fathom_source_query *q, struct fathom_found_text *f,
			struct fathom_errinfo *reterr)
{
	uint8_t md5[FATHOM_MD5_SIZE];

	if (memchr(f->text, '\0', f->size))
		return fail(reterr, FATHOM_E_FORMAT, f->path, "is not a text");
	if (!q->has_md5)
		return FATHOM_OK;
	fathom_md5((struct fathom_bytes){ (const uint8_t *)f->text, f->size }, md5);
	f->is_proven = memcmp(md5, q->md5, sizeof md5) == 0;
	return f->is_proven ? FATHOM_OK
			    : fail(reterr, FATHOM_E_MISMATCH, f->path,
				   "not the file that was compiled: its MD5 differs");
}

/* A search: its query, and the error that says most so far. */
struct search {
	const struct fathom_source_query *q;
	struct fathom_found_text found;
	struct fathom_errinfo why;
};

/* Returns whether @info says only that a place does not have the file. */
static bool is_absent(const struct fathom_errinfo *info)
{
	return info->err == FATHOM_E_NOT_FOUND ||
	       (info->err == FATHOM_E_OS &&
		(info->os_errno == ENOENT || info->os_errno == ENOTDIR));
}

/* Keeps @info if it says more than what is known. */
static void note(struct search *s, const struct fathom_errinfo *info)
{
	if (!s->why.err || (is_absent(&s->why) && !is_absent(info)))
		s->why = *info;
}

/* Tries the file at @path. FATHOM_END: it is not there, or not the right one. */
static fathom_err try_file(struct search *s, const char *path, enum fathom_text_origin origin,
			   struct fathom_errinfo *reterr)
{
	fathom_err err = fathom_source_read(s->q->session, path, &s->found, reterr);

	if (!err) {
		s->found.origin = origin;
		err = prove(s->q, &s->found, reterr);
		if (err) {
			free(s->found.path);
			free(s->found.text);
		}
	}
	return !err || err == FATHOM_E_MEMORY ? err : FATHOM_END;
}

/* Paths with more parts are not looked for in directories. */
#define MAX_PARTS 256

/* Writes @path without "." and "..", which it takes back, to @ret; false if it is too long. */
static bool plain_path(const char *path, struct fathom_path *ret)
{
	size_t starts[MAX_PARTS];
	size_t n_parts = 0;
	size_t n = 0;

	while (*path) {
		const size_t size = strcspn(path, "/");

		if (size == 2 && memcmp(path, "..", 2) == 0) {
			n = n_parts ? starts[--n_parts] : 0;
		} else if (size && !(size == 1 && *path == '.')) {
			if (n_parts == MAX_PARTS || n + size + 2 > sizeof ret->text)
				return false;
			starts[n_parts++] = n;
			ret->text[n++] = '/';
			memcpy(ret->text + n, path, size);
			n += size;
		}
		path += size + (path[size] == '/');
	}
	ret->text[n] = '\0';
	return n != 0;
}

/* Tries @dir followed by @path, which starts with a slash, and by ever shorter ends of it. */
static fathom_err try_dir(struct search *s, const char *dir, const char *path)
{
	struct fathom_errinfo info;
	struct fathom_path joined;
	fathom_err err = FATHOM_END;

	for (; path && err == FATHOM_END; path = strchr(path + 1, '/')) {
		if (!fathom_path_format(&joined, "%s%s", dir, path))
			continue;
		err = try_file(s, joined.text, FATHOM_TEXT_DIRECTORY, &info);
		if (err && !is_absent(&info))
			note(s, &info);
	}
	return err;
}

static fathom_err try_dirs(struct search *s)
{
	struct fathom_path plain;
	fathom_err err = FATHOM_END;

	if (!plain_path(s->q->path, &plain))
		return FATHOM_END;
	for (char *const *dir = s->q->dirs; *dir && err == FATHOM_END; dir++)
		err = try_dir(s, *dir, plain.text);
	return err;
}

/*
 * Tries the path as it is. A relative one counts from a directory that is not known: what lies
 * there in ours may be another file.
 */
static fathom_err try_path(struct search *s)
{
	struct fathom_errinfo info;
	fathom_err err = FATHOM_END;

	if (*s->q->path == '/')
		err = try_file(s, s->q->path, FATHOM_TEXT_FILE, &info);
	else
		(void)fail(&info, FATHOM_E_NOT_FOUND, s->q->path, "is a relative path");
	if (err)
		note(s, &info);
	return err;
}

static fathom_err try_servers(struct search *s)
{
	const struct fathom_source_query *q = s->q;
	const struct fathom_bytes build_id = { q->build_id, q->build_id_size };
	struct fathom_errinfo info;
	char *path;
	fathom_err err;

	if (!build_id.size || *q->path != '/')
		return FATHOM_END;
	err = fathom_debuginfod_find_source(q->session, build_id, q->path, &path, &info);
	if (!err) {
		err = try_file(s, path, FATHOM_TEXT_DEBUGINFOD, &info);
		free(path);
	} else {
		fathom_errinfo_set_file(&info, q->path);
	}
	if (err)
		note(s, &info);
	return !err || err == FATHOM_E_MEMORY || err == FATHOM_E_CANCELLED ? err : FATHOM_END;
}

fathom_err fathom_source_search(const struct fathom_source_query *q, struct fathom_found_text *ret,
				struct fathom_errinfo *reterr)
{
	struct search s = { .q = q };
	fathom_err err = try_dirs(&s);

	if (err == FATHOM_END)
		err = try_path(&s);
	if (err == FATHOM_END)
		err = try_servers(&s);
	if (!err) {
		*ret = s.found;
		return FATHOM_OK;
	}
	if (err == FATHOM_E_MEMORY)
		return fathom_fail_memory(reterr);
	if (err == FATHOM_E_CANCELLED)
		return fathom_fail(reterr, err, "", 0, "debuginfod: cancelled");
	if (reterr)
		*reterr = s.why;
	return s.why.err;
}
