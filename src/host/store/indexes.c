/* SPDX-License-Identifier: MIT */
#include "host/store/indexes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/base/clock.h"
#include "host/base/option_struct.h"
#include "host/base/progress.h"
#include "host/file/file.h"
#include "host/module/module.h"
#include "host/space/target.h"

#define DEFAULT_TIMEOUT_MS 30000

void fathom_store_begin_call(struct fathom_store *s, uint32_t timeout_ms)
{
	const uint32_t ms = timeout_ms ? timeout_ms : s->timeout_ms;

	s->call_ms = ms;
	s->is_late = false;
	atomic_store_explicit(&s->deadline_ns, fathom_now_ns() + (int64_t)ms * 1000000,
			      memory_order_relaxed);
}

fathom_err fathom_store_fail(const struct fathom_store_backend *b, const char *key, fathom_err err,
			     const char *what, struct fathom_errinfo *reterr)
{
	char *name = NULL;

	(void)fathom_fail(reterr, err, "", 0, what);
	if (asprintf(&name, "%s/%s", b->place, key) >= 0)
		fathom_errinfo_set_file(reterr, name);
	free(name);
	return err;
}

fathom_err fathom_store_read_header(struct fathom_store_backend *b, const char *key,
				    int64_t deadline_ns, struct fathom_container_header *ret,
				    bool *ret_is_there, struct fathom_errinfo *reterr)
{
	struct fathom_container_header h;
	size_t size = 0;
	fathom_err err;

	err = b->ops->read(b, key, 0, &h, sizeof h, deadline_ns, &size, reterr);
	*ret_is_there = !err;
	if (err == FATHOM_E_NOT_FOUND)
		return FATHOM_OK;
	FATHOM_TRY(err);
	*ret_is_there =
		!fathom_container_read_header((struct fathom_bytes){ (const void *)&h, size },
					      (struct fathom_bytes){ NULL, 0 }, ret, NULL);
	return FATHOM_OK;
}

static fathom_err open_backend(struct fathom *session, const char *place,
			       struct fathom_store_backend **ret, struct fathom_errinfo *reterr)
{
	if (*place == '!')
		return fathom_store_command_open(session, place, ret, reterr);
	if (strncmp(place, "http://", 7) == 0 || strncmp(place, "https://", 8) == 0)
		return fathom_store_http_open(session, place, ret, reterr);
	return fathom_store_directory_open(session, place, ret, reterr);
}

fathom_err fathom_store_open(struct fathom *session, const char *place,
			     const struct fathom_store_options *options,
			     struct fathom_store **ret_store, struct fathom_errinfo *reterr)
{
	struct fathom_store_options o = { .size = sizeof o };
	struct fathom_store *s;
	fathom_err err;

	if ((options && !FATHOM_OPTIONS_READ(options, &o, 0)) || !*place)
		return fathom_fail_options(reterr);
	s = calloc(1, sizeof *s);
	if (!s)
		return fathom_fail_memory(reterr);
	s->timeout_ms = o.timeout_ms ? o.timeout_ms : DEFAULT_TIMEOUT_MS;
	err = open_backend(session, place, &s->backend, reterr);
	if (err) {
		free(s);
		return err;
	}
	s->session = fathom_acquire(session);
	fathom_store_begin_call(s, 0);
	*ret_store = s;
	return FATHOM_OK;
}

void fathom_store_close(struct fathom_store *store)
{
	if (!store)
		return;
	store->backend->ops->close(store->backend);
	fathom_destroy(store->session);
	free(store);
}

/* Putting. */

static fathom_err put(struct fathom_store *s, struct fathom_bytes bytes,
		      const struct fathom_container_header *h, bool *ret_stored,
		      struct fathom_errinfo *reterr)
{
	const struct fathom_bytes id = { h->build_id, h->build_id_size };
	char key[FATHOM_CONTAINER_KEY];
	fathom_err err;

	if (!fathom_container_key(id, key))
		return fathom_fail(reterr, FATHOM_E_CORRUPT, "", 0, "its build-id is none");
	fathom_store_begin_call(s, s->call_ms);
	err = s->backend->ops->put(s->backend, key, bytes, h,
				   atomic_load_explicit(&s->deadline_ns, memory_order_relaxed),
				   ret_stored, reterr);
	s->is_late = err == FATHOM_E_TIMEOUT;
	return err;
}

fathom_err fathom_store_add(struct fathom_store *s, struct fathom_target *target,
			    struct fathom_container_header *ret_header, bool *ret_stored,
			    struct fathom_errinfo *reterr)
{
	struct fathom_alone alone;
	struct fathom_bytes bytes;
	fathom_err err;

	if (s->is_late)
		return fathom_fail(reterr, FATHOM_E_TIMEOUT, "", 0,
				   "the store did not answer in time");
	FATHOM_TRY(fathom_alone_make(target->stated, &alone, reterr));
	err = fathom_container_make(s->session, &alone, &bytes, reterr);
	fathom_alone_deinit(&alone);
	FATHOM_TRY(err);
	err = fathom_container_read_header(bytes, (struct fathom_bytes){ NULL, 0 }, ret_header,
					   reterr);
	if (!err)
		err = put(s, bytes, ret_header, ret_stored, reterr);
	free((void *)(uintptr_t)bytes.data);
	return err;
}

fathom_err fathom_store_build(struct fathom_store *store, struct fathom_target *target,
			      struct fathom_store_entry *ret_entry, struct fathom_errinfo *reterr)
{
	struct fathom_container_header h;
	struct fathom_call call;
	bool is_stored = false;
	fathom_err err;

	if (!target->stated || target->kind != FATHOM_TARGET_FILE)
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
				   "indexes are made of files");
	fathom_store_begin_call(store, 0);
	fathom_call_begin(&call, store->session);
	err = fathom_store_add(store, target, &h, &is_stored, reterr);
	err = fathom_call_end(&call, err, reterr);
	if (err)
		return err;
	fathom_container_describe(&h, ret_entry);
	ret_entry->is_stored = is_stored;
	return FATHOM_OK;
}

fathom_err fathom_store_put(struct fathom_store *store, const char *path,
			    struct fathom_store_entry *ret_entry, struct fathom_errinfo *reterr)
{
	struct fathom_container_header h;
	struct fathom_file *file;
	struct fathom_call call;
	bool is_stored = false;
	fathom_err err;

	FATHOM_TRY(fathom_file_map(&store->session->memory, path, &file, reterr));
	fathom_store_begin_call(store, 0);
	fathom_call_begin(&call, store->session);
	err = fathom_container_verify(store->session, file->bytes, (struct fathom_bytes){ NULL, 0 },
				      &h, reterr);
	if (err == FATHOM_E_CORRUPT)
		err = fathom_fail(reterr, err, "", 0, "is no index of a store, or a damaged one");
	if (err)
		fathom_errinfo_set_file(reterr, path);
	else
		err = put(store, file->bytes, &h, &is_stored, reterr);
	if (fathom_file_is_cut(file))
		err = fathom_fail_cut(reterr, path);
	fathom_file_close(file);
	err = fathom_call_end(&call, err, reterr);
	if (err)
		return err;
	fathom_container_describe(&h, ret_entry);
	ret_entry->is_stored = is_stored;
	return FATHOM_OK;
}

/* Getting. */

/* Reads all of @key; *@ret is the caller's to free(). */
static fathom_err read_all(struct fathom_store *s, const char *key, struct fathom_bytes build_id,
			   struct fathom_bytes *ret, struct fathom_errinfo *reterr)
{
	struct fathom_store_backend *b = s->backend;
	const int64_t deadline = atomic_load_explicit(&s->deadline_ns, memory_order_relaxed);
	struct fathom_container_header h;
	uint8_t *data;
	size_t size;
	fathom_err err;

	FATHOM_TRY(b->ops->read(b, key, 0, &h, sizeof h, deadline, &size, reterr));
	err = fathom_container_read_header((struct fathom_bytes){ (const void *)&h, size },
					   build_id, &h, reterr);
	if (err)
		return err;
	/* One byte more, which is not to be there. */
	data = malloc((size_t)h.file_size + 1);
	if (!data)
		return fathom_fail_memory(reterr);
	err = b->ops->read(b, key, 0, data, (size_t)h.file_size + 1, deadline, &size, reterr);
	if (err) {
		free(data);
		return err;
	}
	*ret = (struct fathom_bytes){ data, size };
	return FATHOM_OK;
}

/* Replaces the file at @path by one with @bytes. */
static fathom_err write_file(const char *path, struct fathom_bytes bytes,
			     struct fathom_errinfo *reterr)
{
	char *temporary = NULL;
	fathom_err err = FATHOM_OK;
	bool done;
	int fd;

	if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
		return fathom_fail_memory(reterr);
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0) {
		free(temporary);
		return fathom_fail_write(reterr, path);
	}
	(void)fchmod(fd, 0644);
	done = fathom_file_write_at(fd, 0, bytes.data, (size_t)bytes.size);
	done = !close(fd) && done && !rename(temporary, path);
	if (!done) {
		err = fathom_fail_write(reterr, path);
		(void)unlink(temporary);
	}
	free(temporary);
	return err;
}

/* Reads all of @key, and checks it; writes it to @path, unless that is NULL. */
static fathom_err get(struct fathom_store *s, const char *key, struct fathom_bytes build_id,
		      const char *path, struct fathom_container_header *ret,
		      struct fathom_errinfo *reterr)
{
	struct fathom_bytes bytes;
	fathom_err err = read_all(s, key, build_id, &bytes, reterr);

	if (!err) {
		err = fathom_container_verify(s->session, bytes, build_id, ret, reterr);
		if (!err && path)
			err = write_file(path, bytes, reterr);
		free((void *)(uintptr_t)bytes.data);
	}
	if (err == FATHOM_E_CORRUPT && reterr)
		(void)fathom_store_fail(s->backend, key, err, reterr->what, reterr);
	return err;
}

fathom_err fathom_store_get(struct fathom_store *store, const uint8_t *build_id,
			    size_t build_id_size, const char *path,
			    struct fathom_store_entry *ret_entry, struct fathom_errinfo *reterr)
{
	const struct fathom_bytes id = { build_id, build_id_size };
	char key[FATHOM_CONTAINER_KEY];
	struct fathom_container_header h;
	struct fathom_call call;
	fathom_err err;

	if (!fathom_container_key(id, key))
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "a build-id has 2 to 64 bytes");
	fathom_store_begin_call(store, 0);
	fathom_call_begin(&call, store->session);
	err = get(store, key, id, path, &h, reterr);
	err = fathom_call_end(&call, err, reterr);
	if (!err)
		fathom_container_describe(&h, ret_entry);
	return err;
}

fathom_err fathom_store_each(struct fathom_store *store, fathom_build_id_fn fn, void *data,
			     struct fathom_errinfo *reterr)
{
	if (!store->backend->ops->each)
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
				   "only a directory can tell what it has: give build-ids");
	return store->backend->ops->each(store->backend, fn, data, reterr);
}
