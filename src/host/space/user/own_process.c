/* SPDX-License-Identifier: MIT */
/*
 * The calling process as a space: its map and files through /proc/self, its memory by
 * fathom_peek().
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "host/file/kernel_text.h"
#include "host/space/own_process.h"
#include "host/space/user/space.h"
#include "safe/base/peek.h"

struct own_process {
	struct fathom_space space;
	fathom_err (*make_map)(uint64_t page, struct fathom_maps *ret); /* NULL: none */
};

static fathom_err read_maps(const struct fathom_space *s, struct fathom_maps *ret,
			    struct fathom_errinfo *reterr)
{
	const struct own_process *p = (const struct own_process *)s;
	const fathom_err err = fathom_maps_read("/proc/self/maps", ret, reterr);

	if (!err || !p->make_map)
		return err;
	return p->make_map(s->page, ret) ? fathom_fail_memory(reterr) : FATHOM_OK;
}

static fathom_err query_maps(const struct fathom_space *s, const uint64_t *addresses, size_t n,
			     struct fathom_maps *ret)
{
	(void)s;
	return fathom_maps_query("/proc/self/maps", addresses, n, ret);
}

static size_t read_memory(const struct fathom_space *s, uint64_t avma, void *to, size_t size)
{
	(void)s;
	errno = 0;
	return fathom_peek(avma, to, size);
}

/* Formats a path to the very file: always for the program, for libraries only with privilege. */
static bool format_very_path(const struct fathom_space *s, const struct fathom_mapping *m,
			     char *path, size_t cap)
{
	const uint64_t headers = getauxval(AT_PHDR);
	const uint64_t entry = getauxval(AT_ENTRY);
	const char *form = "/proc/self/map_files/%llx-%llx";

	(void)s;
	if ((headers >= m->start && headers < m->end) || (entry >= m->start && entry < m->end))
		form = "/proc/self/exe";
	return snprintf(path, cap, form, (unsigned long long)m->start, (unsigned long long)m->end) <
	       (int)cap;
}

static bool format_proc_path(const struct fathom_space *s, const char *name, char *path, size_t cap)
{
	(void)s;
	return snprintf(path, cap, "/proc/self/%s", name) < (int)cap;
}

static void describe(const struct fathom_space *s, struct fathom_space_facts *ret)
{
	size_t length;

	(void)s;
	ret->entry = getauxval(AT_ENTRY);
	ret->pid = getpid();
	/* A line of at most 15 bytes; prctl() knows only the calling thread's. */
	length = fathom_text_read_short("/proc/self/comm", ret->command, sizeof ret->command);
	if (length)
		ret->command[length - 1] = '\0';
}

static void own_process_free(struct fathom_space *s)
{
	free(s);
}

static const struct fathom_space_ops space_ops = {
	.read_maps = read_maps,
	.query_maps = query_maps,
	.read = read_memory,
	.format_very_path = format_very_path,
	.format_proc_path = format_proc_path,
	.describe = describe,
	.free = own_process_free,
};

static void describe_target(const struct fathom_target *t, struct fathom_target_info *ret)
{
	(void)t;
	ret->path = "/proc/self/exe";
}

static const struct fathom_target_ops target_ops = { FATHOM_SPACE_TARGET_OPS,
						     .describe = describe_target };

fathom_err fathom_own_process_open(struct fathom_search_paths *paths,
				   fathom_err (*make_map)(uint64_t page, struct fathom_maps *ret),
				   struct fathom_target **ret, struct fathom_errinfo *reterr)
{
	struct own_process *p = calloc(1, sizeof *p);

	if (!p)
		return fathom_fail_memory(reterr);
	fathom_space_init(&p->space, &space_ops, &target_ops, paths, FATHOM_TARGET_SELF);
	p->space.target.is_live = true;
	p->space.target.pid = getpid();
	p->make_map = make_map;
	*ret = &p->space.target;
	return FATHOM_OK;
}

fathom_err fathom_target_open_self(struct fathom *session,
				   const struct fathom_target_options *options,
				   struct fathom_target **ret_target, struct fathom_errinfo *reterr)
{
	struct fathom_search_paths *paths;
	fathom_err err;

	FATHOM_TRY(fathom_search_paths_create(session, options, &paths, reterr));
	err = fathom_own_process_open(paths, NULL, ret_target, reterr);
	fathom_search_paths_release(paths);
	return err;
}
