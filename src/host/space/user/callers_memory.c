/* SPDX-License-Identifier: MIT */
/* An address space read through the caller's function: a minidump, an emulator, another machine. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "host/space/user/dump.h"
#include "host/base/option_struct.h"
#include "host/space/user/space.h"
#include "safe/base/limits.h"

struct reader {
	struct fathom_space space;
	struct fathom_address_space given; /* without the mappings */
	struct fathom_maps maps;
	struct fathom_bytes *build_ids; /* of each mapping */
	struct fathom_arena arena;      /* paths and build-ids */
};

static const struct reader *reader_of(const struct fathom_space *s)
{
	return (const struct reader *)s;
}

static fathom_err read_maps(const struct fathom_space *s, struct fathom_maps *ret,
			    struct fathom_errinfo *reterr)
{
	return fathom_maps_copy(&reader_of(s)->maps, ret) ? fathom_fail_memory(reterr) : FATHOM_OK;
}

/* Reads through the caller's function, which may set errno; a count above @size becomes @size. */
static size_t read_memory(const struct fathom_space *s, uint64_t avma, void *to, size_t size)
{
	const struct fathom_address_space *given = &reader_of(s)->given;
	const size_t got = given->read(given->data, avma, to, size);

	errno = 0;
	return got < size ? got : size;
}

static bool format_exe(const struct fathom_space *s, const struct fathom_mapping *m, char *path,
		       size_t cap)
{
	const struct reader *r = reader_of(s);

	return fathom_space_format_exe(s, &r->maps, r->given.entry, m, path, cap);
}

/* Returns false: without inodes, stat() proves nothing. */
static bool is_file(const struct fathom_space *s, const struct fathom_mapping *m,
		    const struct fathom_file_id *id)
{
	(void)s;
	(void)m;
	(void)id;
	return false;
}

static struct fathom_bytes build_id(const struct fathom_space *s, const struct fathom_mapping *m)
{
	const struct reader *r = reader_of(s);
	const size_t i = fathom_maps_at(&r->maps, m->start);

	return i < r->maps.n ? r->build_ids[i] : (struct fathom_bytes){ NULL, 0 };
}

static void describe(const struct fathom_space *s, struct fathom_space_facts *ret)
{
	ret->entry = reader_of(s)->given.entry;
	ret->pid = reader_of(s)->given.pid;
}

static void reader_free(struct fathom_space *s)
{
	struct reader *r = (struct reader *)s;

	fathom_maps_deinit(&r->maps);
	fathom_arena_deinit(&r->arena);
	free(r->build_ids);
	free(r);
}

static const struct fathom_space_ops space_ops = {
	.read_maps = read_maps,
	.read = read_memory,
	.format_very_path = format_exe,
	.is_file = is_file,
	.build_id = build_id,
	.describe = describe,
	.free = reader_free,
};

static void describe_target(const struct fathom_target *t, struct fathom_target_info *ret)
{
	(void)t;
	ret->path = "[reader]";
}

static const struct fathom_target_ops target_ops = { FATHOM_SPACE_TARGET_OPS,
						     .describe = describe_target };

/* Copies mapping @i; returns false if out of memory. Path and build-id identify the file. */
static bool copy_mapping(struct reader *r, size_t i, const struct fathom_mapping_info *from)
{
	const struct fathom_str path = { from->path,
					 from->path ? (uint32_t)strlen(from->path) : 0 };
	const struct fathom_str id = { (const char *)from->build_id,
				       from->build_id ? from->build_id_size : 0 };
	struct fathom_mapping *m = &r->maps.items[i];

	*m = (struct fathom_mapping){ .start = from->start,
				      .end = from->end,
				      .off = from->offset,
				      .readable = from->rights & PF_R,
				      .writable = from->rights & PF_W,
				      .executable = from->rights & PF_X };
	r->build_ids[i] = (struct fathom_bytes){ NULL, 0 };
	if (!path.size)
		return true;
	m->name = (struct fathom_str){ fathom_arena_strdup(&r->arena, path), path.size };
	if (id.size)
		r->build_ids[i] =
			(struct fathom_bytes){ (const uint8_t *)fathom_arena_strdup(&r->arena, id),
					       id.size };
	if (path.data[0] != '[') {
		m->device = FATHOM_DUMP_DEVICE;
		m->inode = fathom_dump_inode(path) ^ (id.size ? fathom_dump_inode(id) : 0);
		m->inode += !m->inode;
	}
	return m->name.data && (!id.size || r->build_ids[i].data);
}

static fathom_err copy_mappings(struct reader *r, const struct fathom_mapping_info *from, size_t n)
{
	r->maps.items = malloc((n + 1) * sizeof *r->maps.items);
	r->build_ids = malloc((n + 1) * sizeof *r->build_ids);
	if (!r->maps.items || !r->build_ids)
		return FATHOM_E_MEMORY;
	for (size_t i = 0; i < n; i++) {
		if (!copy_mapping(r, i, &from[i]))
			return FATHOM_E_MEMORY;
		r->maps.n++;
	}
	return fathom_maps_link(&r->maps);
}

/* Copies @space, whose size is that of the caller's header, to @ret. */
static fathom_err read_space(const struct fathom_address_space *space,
			     struct fathom_address_space *ret, struct fathom_errinfo *reterr)
{
	if (!FATHOM_OPTIONS_READ(space, ret, 0))
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "fields that this version does not know");
	if (!ret->read || !ret->mappings || !ret->n_mappings)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "an address space without memory or mappings");
	if (ret->n_mappings > FATHOM_MAX_DUMP_MAPPINGS)
		return fathom_fail(reterr, FATHOM_E_LIMIT, "", 0,
				   "more mappings than fathom reads");
	ret->page_size = ret->page_size ? ret->page_size : fathom_dump_page(0);
	if (fathom_dump_page(ret->page_size) != ret->page_size)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "a page size that no system has");
	for (size_t i = 0; i < ret->n_mappings; i++)
		if (ret->mappings[i].start >= ret->mappings[i].end ||
		    (i && ret->mappings[i].start < ret->mappings[i - 1].end))
			return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", ret->mappings[i].start,
					   "mappings have to be sorted by address, none over "
					   "another");
	return FATHOM_OK;
}

/* Opens the address space @given; copies its mappings. */
static fathom_err open_reader(struct fathom_search_paths *paths, struct fathom_address_space given,
			      struct fathom_target **ret, struct fathom_errinfo *reterr)
{
	struct reader *r = calloc(1, sizeof *r);
	fathom_err err;

	if (!r)
		return fathom_fail_memory(reterr);
	fathom_space_init(&r->space, &space_ops, &target_ops, paths, FATHOM_TARGET_READER);
	r->space.target.pid = given.pid;
	r->space.page = given.page_size;
	r->given = given;
	r->given.mappings = NULL;
	err = copy_mappings(r, given.mappings, given.n_mappings);
	if (err) {
		fathom_target_release(&r->space.target);
		return fathom_fail(reterr, err, "", 0, fathom_err_name(err));
	}
	*ret = &r->space.target;
	return FATHOM_OK;
}

fathom_err fathom_target_open_reader(struct fathom *session,
				     const struct fathom_address_space *space,
				     const struct fathom_target_options *options,
				     struct fathom_target **ret_target,
				     struct fathom_errinfo *reterr)
{
	struct fathom_address_space given = { 0 };
	struct fathom_search_paths *paths;
	fathom_err err;

	FATHOM_TRY(read_space(space, &given, reterr));
	FATHOM_TRY(fathom_search_paths_create(session, options, &paths, reterr));
	err = open_reader(paths, given, ret_target, reterr);
	fathom_search_paths_release(paths);
	return err;
}
