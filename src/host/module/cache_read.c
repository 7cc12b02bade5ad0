/* SPDX-License-Identifier: MIT */
#include "host/module/cache_read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "host/base/array.h"
#include "host/base/context.h"
#include "host/module/cache_key.h"

#define SUFFIX ".fidx"

/* Composes "BUILDID-SOURCES.fidx". SOURCES tells indexes of different files apart. */
static bool index_name(const struct fathom_module *m, char *buf, size_t cap)
{
	struct fathom_index_source source[FATHOM_INDEX_SOURCES];
	const uint32_t n = fathom_cache_sources(m, source);
	const struct fathom_bytes id = m->main->build_id;
	size_t at = 0;

	memset(buf, 0, cap);
	for (uint64_t i = 0; i < id.size && at + 3 < cap; i++)
		at += (size_t)snprintf(buf + at, cap - at, "%02x", id.data[i]);
	return snprintf(buf + at, cap - at, "-%016llx" SUFFIX,
			(unsigned long long)fathom_index_check(source, n * sizeof *source)) <
	       (int)(cap - at);
}

char *fathom_cache_path(const struct fathom_module *m)
{
	struct fathom_errinfo info;
	char name[256];
	char *path = NULL;

	/* A file put together from memory will not be met again. */
	if (!m->main->file->id.inode || !m->session->cache_dir ||
	    !index_name(m, name, sizeof name) ||
	    asprintf(&path, "%s/%s", m->session->cache_dir, name) < 0)
		return NULL;
	if (!fathom_file_reach(&m->session->memory, path, &info))
		return path;
	fathom_errinfo_set_file(&info, m->session->cache_dir);
	fathom_notes_add(m->notes, &info);
	free(path);
	return NULL;
}

/* Returns whether only this user and root can have written the file. */
static bool is_ours(const struct stat *st)
{
	return S_ISREG(st->st_mode) && (st->st_uid == geteuid() || st->st_uid == 0) &&
	       !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* Marks the file as used, once a day: the oldest are removed first. */
static void touch(int fd, const struct stat *st)
{
	const time_t day = 24 * 60 * 60;

	if (time(NULL) - st->st_mtime > day)
		(void)futimens(fd, NULL);
}

static bool map_file(const char *path, struct fathom_bytes *ret, struct stat *ret_st)
{
	const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	void *map = MAP_FAILED;

	if (fd < 0)
		return false;
	if (!fstat(fd, ret_st) && is_ours(ret_st) && ret_st->st_size > 0 &&
	    (uint64_t)ret_st->st_size <= SIZE_MAX) {
		map = mmap(NULL, (size_t)ret_st->st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		touch(fd, ret_st);
	}
	close(fd);
	if (map == MAP_FAILED)
		return false;
	*ret = (struct fathom_bytes){ map, (uint64_t)ret_st->st_size };
	return true;
}

static bool fits_module(const struct fathom_module *m, const struct fathom_index_header *h)
{
	struct fathom_index_source source[FATHOM_INDEX_SOURCES];
	const struct fathom_bytes id = m->main->build_id;
	const uint32_t n = fathom_cache_sources(m, source);

	return h->n_sources == n && memcmp(h->source, source, n * sizeof *source) == 0 &&
	       h->build_id_size == id.size &&
	       (!id.size || memcmp(h->build_id, id.data, (size_t)id.size) == 0);
}

/*
 * Notes in the index at @path that files with the identity @seen have its content. If that fails,
 * the content is compared each time.
 */
static void note_seen(const char *path, const struct stat *was, uint64_t seen, uint64_t place)
{
	const int fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return;
	/* Another index may have replaced it. */
	if (!fstat(fd, &st) && st.st_ino == was->st_ino && st.st_dev == was->st_dev)
		(void)!pwrite(fd, &seen, sizeof seen, (off_t)place);
	close(fd);
}

/* Returns whether @c was made from the content of @m's files. */
static bool has_content(const struct fathom_module *m, const struct fathom_cache_file *c,
			const char *path, const struct stat *st)
{
	const uint64_t seen = fathom_cache_identity(m);
	uint64_t place;

	if (fathom_index_has_seen(&c->index, seen, &place))
		return true;
	if (fathom_cache_content(m) != c->index.header->content)
		return false;
	note_seen(path, st, seen, place);
	return true;
}

/* Removes @c from the session's table of mappings: @c may outlive the session. */
static void leave_table(struct fathom_cache_file *c)
{
	if (c->mapped)
		fathom_mapping_remove(c->table, c->mapped);
	c->mapped = NULL;
}

void fathom_cache_file_close(struct fathom_cache_file *c)
{
	if (!c)
		return;
	leave_table(c);
	if (c->pages)
		c->pages->free(c->pages);
	else if (c->allocated)
		free((void *)(uintptr_t)c->map.data);
	else if (c->map.data)
		(void)munmap((void *)(uintptr_t)c->map.data, (size_t)c->map.size);
	free((void *)c->index.checked);
	free(c);
}

void fathom_cache_open(struct fathom_module *m)
{
	char *path = fathom_cache_path(m);
	struct fathom_cache_file *c = path ? calloc(1, sizeof *c) : NULL;
	_Atomic uint64_t *checked;
	struct stat st;

	if (c && map_file(path, &c->map, &st)) {
		c->table = &m->session->memory.mapped;
		c->mapped = fathom_mapping_add(c->table, c->map.data, (size_t)c->map.size);
		checked = calloc((size_t)fathom_index_checked_words(c->map.size), sizeof *checked);
		if (c->mapped && checked && fathom_index_init(&c->index, c->map, checked) &&
		    fits_module(m, c->index.header) && has_content(m, c, path, &st))
			m->cache = c;
		else if (!c->index.checked)
			free((void *)checked);
	}
	if (!m->cache)
		fathom_cache_file_close(c);
	free(path);
}

void fathom_cache_close(struct fathom_module *m)
{
	fathom_cache_file_close(m->cache);
}

/* Takes over the index of @m if it is complete and sound. */
static struct fathom_cache_file *take_index(struct fathom_module *m)
{
	struct fathom_cache_file *c = m->cache;
	const struct fathom_index_header *h = c ? c->index.header : NULL;

	/* Asking for all bytes verifies each page. */
	if (!h || c->pages || !(h->flags & FATHOM_INDEX_COMPLETE) ||
	    !fathom_index_bytes(&c->index, FATHOM_INDEX_PAGE, h->checks.off - FATHOM_INDEX_PAGE))
		return NULL;
	m->cache = NULL;
	leave_table(c);
	return c;
}

/* Makes the index of @m in memory. */
static fathom_err make(struct fathom_module *m)
{
	struct fathom_cache_file *c = calloc(1, sizeof *c);
	_Atomic uint64_t *checked = NULL;
	fathom_err err = c ? fathom_cache_make(m, &c->map) : FATHOM_E_MEMORY;

	if (!err) {
		c->allocated = true;
		checked = calloc((size_t)fathom_index_checked_words(c->map.size), sizeof *checked);
		err = checked ? FATHOM_OK : FATHOM_E_MEMORY;
	}
	if (!err && !fathom_index_init(&c->index, c->map, checked))
		err = FATHOM_E_CORRUPT;
	if (err) {
		if (c && !c->index.checked)
			free((void *)checked);
		fathom_cache_file_close(c);
		return err;
	}
	fathom_cache_close(m);
	m->cache = c;
	return FATHOM_OK;
}

fathom_err fathom_cache_take_all(struct fathom_module *m, struct fathom_cache_file **ret)
{
	*ret = take_index(m);
	if (*ret)
		return FATHOM_OK;
	if (!fathom_cache_store_module(m, true, 0, NULL, NULL)) {
		fathom_cache_close(m);
		m->cache = NULL;
		fathom_cache_open(m);
		*ret = take_index(m);
	}
	if (!*ret) {
		FATHOM_TRY(make(m));
		*ret = m->cache;
		m->cache = NULL;
		(void)fathom_index_bytes(&(*ret)->index, FATHOM_INDEX_PAGE,
					 (*ret)->index.header->checks.off - FATHOM_INDEX_PAGE);
	}
	return FATHOM_OK;
}

const struct fathom_index *fathom_cache_index(const struct fathom_module *m)
{
	struct fathom_cache_file *c = m->cache;

	return c && !fathom_index_is_damaged(&c->index) && !fathom_mapped_is_cut(c->mapped)
		       ? &c->index
		       : NULL;
}

fathom_err fathom_cache_failure(const struct fathom_module *m)
{
	fathom_err err;

	if (!m->cache || !m->cache->pages || fathom_cache_index(m))
		return FATHOM_OK;
	err = m->cache->pages->failure(m->cache->pages);
	return err ? err : FATHOM_E_CORRUPT;
}

const char *fathom_cache_dir(const struct fathom *session)
{
	return session->cache_dir;
}

/* One file of the directory. */
struct cached {
	char *name;
	uint64_t size;
	int64_t used;
};

static int compare_used(const void *a, const void *b)
{
	const struct cached *x = a;
	const struct cached *y = b;

	return x->used < y->used ? -1 : x->used > y->used;
}

/* Returns whether @name is an index or a temporary file of a writer (*@ret_temporary). */
static bool is_index_name(const char *name, bool *ret_temporary)
{
	const char *suffix = strstr(name, SUFFIX);

	*ret_temporary = suffix && suffix[strlen(SUFFIX)] == '.';
	return suffix && (!suffix[strlen(SUFFIX)] || *ret_temporary);
}

/* Seconds. A writer whose temporary file is older has died. */
#define TEMPORARY_AGE 3600

struct candidates {
	FATHOM_ARRAY_OF(struct cached);
};

/* Lists the indexes of the open directory @dir; removes abandoned temporary files. */
static void list_indexes(DIR *dir, struct candidates *list)
{
	struct dirent *entry;
	struct stat st;
	bool temporary;

	while ((entry = readdir(dir)) != NULL) {
		struct cached c = { 0 };

		if (!is_index_name(entry->d_name, &temporary) ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode))
			continue;
		if (temporary) {
			if (time(NULL) - st.st_mtime > TEMPORARY_AGE)
				(void)unlinkat(dirfd(dir), entry->d_name, 0);
			continue;
		}
		c.name = strdup(entry->d_name);
		/* Parts of a store's index, which has holes. */
		c.size = (uint64_t)st.st_blocks * 512 < (uint64_t)st.st_size
				 ? (uint64_t)st.st_blocks * 512
				 : (uint64_t)st.st_size;
		c.used = st.st_mtime;
		if (!c.name || !fathom_array_room(list, 1)) {
			free(c.name);
			continue;
		}
		list->items[list->n++] = c;
	}
}

/*
 * Removes the oldest indexes until the rest takes at most @limit. Returns the number removed; errno
 * says why there are not more, or is 0.
 */
static uint64_t remove_oldest(DIR *dir, uint64_t limit)
{
	struct candidates list = { 0 };
	int number = 0;
	struct cached *c;
	uint64_t total = 0;
	uint64_t removed = 0;

	list_indexes(dir, &list);
	c = list.items;
	if (list.n)
		qsort(c, list.n, sizeof *c, compare_used);
	for (size_t i = 0; i < list.n; i++)
		total += c[i].size;
	for (size_t i = 0; i < list.n; i++) {
		if (total > limit && unlinkat(dirfd(dir), c[i].name, 0) == 0) {
			total -= c[i].size;
			removed++;
		} else if (total > limit && errno != ENOENT && !number) {
			number = errno;
		}
		free(c[i].name);
	}
	fathom_array_free(&list);
	/* An index that another process has removed meanwhile is gone, too. */
	errno = number;
	return removed;
}

void fathom_cache_trim(const struct fathom *session)
{
	DIR *dir = opendir(session->cache_dir);

	if (dir) {
		(void)remove_oldest(dir, session->cache_limit);
		(void)closedir(dir);
	}
}

fathom_err fathom_cache_clear(struct fathom *session, uint64_t *ret_removed,
			      struct fathom_errinfo *reterr)
{
	uint64_t removed = 0;
	DIR *dir = NULL;

	if (session->cache_dir) {
		FATHOM_TRY(fathom_file_reach(&session->memory, session->cache_dir, reterr));
		dir = opendir(session->cache_dir);
	}
	if (dir) {
		int number;

		removed = remove_oldest(dir, 0);
		number = errno;
		(void)closedir(dir);
		errno = number;
		if (number)
			return fathom_fail_write(reterr, session->cache_dir);
	} else if (session->cache_dir && errno != ENOENT) {
		return fathom_fail_os(reterr, session->cache_dir);
	}
	if (ret_removed)
		*ret_removed = removed;
	return FATHOM_OK;
}
