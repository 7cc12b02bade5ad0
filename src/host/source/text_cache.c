/* SPDX-License-Identifier: MIT */
/*
 * Source files that were read, kept for the next question. Texts are few and long, so a question
 * looks through all of them.
 */
#include <stdlib.h>
#include <string.h>

#include "host/base/array.h"
#include "host/base/option_struct.h"
#include "host/base/progress.h"
#include "host/base/search_paths.h"
#include "host/module/source.h"
#include "host/source/text_search.h"
#include "host/space/target.h"

/* Bounds of what is kept, beside the session's budget. */
#define MAX_TEXTS      1024
#define MAX_KEPT_BYTES FATHOM_MAX_SOURCE

/* A question that was answered. */
struct kept {
	struct fathom_source_query query; /* owns its path, which is NULL for an embedded text */
	bool is_read;                     /* by fathom_source_files_read() */
	struct fathom_found_text found;
	struct fathom_source_text text;
	struct fathom_errinfo why; /* of a text that was not found */
};

struct fathom_source_files {
	struct fathom *session;
	char **dirs;
	uint64_t bytes; /* of the texts */
	FATHOM_ARRAY_OF(struct kept *);
};

fathom_err fathom_source_files_create(struct fathom *session,
				      const struct fathom_source_options *options,
				      struct fathom_source_files **ret_files,
				      struct fathom_errinfo *reterr)
{
	static const char *const none[] = { NULL };
	struct fathom_source_options o = { 0 };
	struct fathom_source_files *files;

	if (options && (!FATHOM_OPTIONS_READ(options, &o, 0) || o.reserved1))
		return fathom_fail_options(reterr);
	files = calloc(1, sizeof *files);
	if (files)
		files->dirs = fathom_dirs_copy(o.dirs ? o.dirs : none);
	if (!files || !files->dirs) {
		free(files);
		return fathom_fail_memory(reterr);
	}
	files->session = fathom_acquire(session);
	*ret_files = files;
	return FATHOM_OK;
}

static void kept_free(struct fathom_source_files *files, struct kept *k)
{
	files->bytes -= k->found.size;
	fathom_memory_uncount(&files->session->memory, k->found.size);
	free((void *)(uintptr_t)k->query.path);
	free(k->found.path);
	free(k->found.text);
	free(k);
}

void fathom_source_files_free(struct fathom_source_files *files)
{
	if (!files)
		return;
	for (size_t i = 0; i < files->n; i++)
		kept_free(files, files->items[i]);
	fathom_array_free(files);
	fathom_dirs_free(files->dirs);
	fathom_destroy(files->session);
	free(files);
}

/* Drops the oldest texts until one of @size more bytes fits. */
static void make_room(struct fathom_source_files *files, uint64_t size)
{
	size_t n = 0;

	while (n < files->n && (files->n - n >= MAX_TEXTS || files->bytes + size > MAX_KEPT_BYTES ||
				!fathom_memory_fits(&files->session->memory, size)))
		kept_free(files, files->items[n++]);
	files->n -= n;
	if (n)
		memmove(files->items, files->items + n, files->n * sizeof *files->items);
}

/* Keeps @k, which is taken over, with its text if that fits the budget; NULL without memory. */
static struct kept *keep(struct fathom_source_files *files, struct kept *k)
{
	struct fathom_memory *memory = &files->session->memory;

	make_room(files, k->found.size);
	fathom_memory_count(memory, k->found.size);
	files->bytes += k->found.size;
	if ((k->query.path && !(k->query.path = strdup(k->query.path))) ||
	    !fathom_array_push(files, k)) {
		kept_free(files, k);
		return NULL;
	}
	k->text = (struct fathom_source_text){ .path = k->found.path,
					       .text = k->found.text,
					       .size = k->found.size,
					       .origin = (uint8_t)k->found.origin,
					       .is_proven = k->found.is_proven };
	return k;
}

/* Returns whether the answer to @k is also that to @q. */
static bool is_same(const struct kept *k, const struct fathom_source_query *q, bool is_read)
{
	const struct fathom_source_query *other = &k->query;

	return other->path && strcmp(other->path, q->path) == 0 && k->is_read == is_read &&
	       other->has_md5 == q->has_md5 && memcmp(other->md5, q->md5, sizeof q->md5) == 0 &&
	       other->build_id_size == q->build_id_size &&
	       memcmp(other->build_id, q->build_id, q->build_id_size) == 0;
}

/* Returns what was kept for @q; NULL if it was not asked yet. */
static struct kept *find_kept(const struct fathom_source_files *files,
			      const struct fathom_source_query *q, bool is_read)
{
	for (size_t i = 0; i < files->n; i++)
		if (is_same(files->items[i], q, is_read))
			return files->items[i];
	return NULL;
}

/*
 * Answers @q by what was kept, else by reading its path or, unless @is_read, by a search. An answer
 * that another call may not give is not kept.
 */
static fathom_err answer(struct fathom_source_files *files, const struct fathom_source_query *q,
			 bool is_read, struct kept **ret, struct fathom_errinfo *reterr)
{
	struct kept *k = find_kept(files, q, is_read);
	fathom_err err;

	if (!k) {
		k = calloc(1, sizeof *k);
		if (!k)
			return fathom_fail_memory(reterr);
		k->query = *q;
		k->is_read = is_read;
		err = is_read ? fathom_source_read(files->session, q->path, &k->found, &k->why)
			      : fathom_source_search(q, &k->found, &k->why);
		if (err == FATHOM_E_MEMORY || err == FATHOM_E_CANCELLED) {
			free(k);
			return fathom_fail(reterr, err, "", 0, fathom_err_name(err));
		}
		k = keep(files, k);
	}
	*ret = k;
	return k ? FATHOM_OK : fathom_fail_memory(reterr);
}

/* Keeps @text, which is embedded in the debug information, beyond the view of its module. */
static struct kept *keep_embedded(struct fathom_source_files *files, struct fathom_str text)
{
	struct kept *k;

	for (size_t i = 0; i < files->n; i++) {
		k = files->items[i];
		if (!k->query.path && k->found.size == text.size &&
		    memcmp(k->found.text, text.data, text.size) == 0)
			return k;
	}
	k = calloc(1, sizeof *k);
	if (k)
		k->found = (struct fathom_found_text){ .text = malloc(text.size),
						       .size = text.size,
						       .origin = FATHOM_TEXT_EMBEDDED,
						       .is_proven = true };
	if (!k || !k->found.text) {
		free(k);
		return NULL;
	}
	memcpy(k->found.text, text.data, text.size);
	return keep(files, k);
}

/* A file of an answer, and what is known of it. */
struct asked {
	struct fathom_source_files *files;
	struct fathom_source_query query;
	struct kept *embedded;
	int64_t mtime_ns; /* of the module; 0: unknown */
};

/* Takes what the module at @p, which holds @avma, knows of the text. */
static fathom_err ask_module(struct asked *a, const struct fathom_place *p, uint64_t avma)
{
	struct fathom_module *m = p->holder->module;
	const struct fathom_bytes id = p->holder->build_id;
	struct fathom_source_query *q = &a->query;
	struct fathom_line_text text = { .md5 = NULL };
	const size_t size = strlen(q->path);
	fathom_err err = FATHOM_E_NOT_FOUND;

	if (size <= UINT32_MAX)
		err = fathom_source_find(m, avma - p->bias,
					 (struct fathom_str){ q->path, (uint32_t)size }, &text);
	if (err && err != FATHOM_E_NOT_FOUND)
		return err;
	if (text.embedded.size) {
		a->embedded = keep_embedded(a->files, text.embedded);
		return a->embedded ? FATHOM_OK : FATHOM_E_MEMORY;
	}
	q->has_md5 = text.md5 != NULL;
	if (text.md5)
		memcpy(q->md5, text.md5, sizeof q->md5);
	if (a->files->session->flags & FATHOM_DEBUGINFOD) {
		q->build_id_size =
			id.size < sizeof q->build_id ? (size_t)id.size : sizeof q->build_id;
		memcpy(q->build_id, id.data, q->build_id_size);
	}
	a->mtime_ns = m->main->file ? m->main->file->id.mtime_ns : 0;
	return FATHOM_OK;
}

/* Asks the module that holds @avma in a view of that address only, or if not @few of all. */
static fathom_err ask_view(struct asked *a, struct fathom_target *target, uint64_t avma, bool few,
			   struct fathom_errinfo *reterr)
{
	struct fathom_place place;
	struct fathom_view *view;
	fathom_err err;

	FATHOM_TRY(target->ops->begin(target, FATHOM_VIEW_PLACES, few ? &avma : NULL, few, &view,
				      reterr));
	err = fathom_view_locate_code(view, avma, &place);
	if (!err && place.holder && place.holder->module)
		err = ask_module(a, &place, avma);
	if (err)
		err = fathom_view_fail(view, err, reterr);
	fathom_view_end(view);
	return err;
}

/* Asks what the debug information at @pc of @target states of the text of @a. */
static fathom_err ask_target(struct asked *a, struct fathom_target *target, struct fathom_pc pc,
			     struct fathom_errinfo *reterr)
{
	const uint64_t avma = fathom_pc_lookup(pc);
	struct fathom_call call;
	fathom_err err;

	fathom_call_begin(&call, target->session);
	err = ask_view(a, target, avma, true, reterr);
	if (err == FATHOM_E_UNSUPPORTED)
		err = ask_view(a, target, avma, false, reterr);
	return fathom_call_end(&call, fathom_target_end_call(target, err, reterr), reterr);
}

/* Returns the text of @k, or why there is none. */
static fathom_err finish(struct kept *k, int64_t mtime_ns,
			 const struct fathom_source_text **ret_text, struct fathom_errinfo *reterr)
{
	struct fathom_source_text *text = &k->text;
	const bool is_local =
		text->origin == FATHOM_TEXT_FILE || text->origin == FATHOM_TEXT_DIRECTORY;

	if (k->why.err) {
		if (reterr)
			*reterr = k->why;
		return k->why.err;
	}
	text->is_newer = is_local && !text->is_proven && mtime_ns && k->found.mtime_ns > mtime_ns;
	*ret_text = text;
	return FATHOM_OK;
}

fathom_err fathom_source_files_find(struct fathom_source_files *files, struct fathom_target *target,
				    struct fathom_pc pc, const char *path,
				    const struct fathom_source_text **ret_text,
				    struct fathom_errinfo *reterr)
{
	struct asked a = {
		.files = files,
		.query = { .session = files->session, .dirs = files->dirs, .path = path },
	};
	struct kept *k;

	if (target)
		FATHOM_TRY(ask_target(&a, target, pc, reterr));
	k = a.embedded;
	if (!k)
		FATHOM_TRY(answer(files, &a.query, false, &k, reterr));
	return finish(k, a.mtime_ns, ret_text, reterr);
}

fathom_err fathom_source_files_read(struct fathom_source_files *files, const char *path,
				    const struct fathom_source_text **ret_text,
				    struct fathom_errinfo *reterr)
{
	const struct fathom_source_query query = { .session = files->session, .path = path };
	struct kept *k;

	FATHOM_TRY(answer(files, &query, true, &k, reterr));
	return finish(k, 0, ret_text, reterr);
}

const char *fathom_text_origin_name(enum fathom_text_origin origin)
{
	static const char *const names[] = { "", "embedded", "source-dir", "file", "debuginfod" };

	return (size_t)origin < sizeof names / sizeof *names ? names[origin] : "";
}
