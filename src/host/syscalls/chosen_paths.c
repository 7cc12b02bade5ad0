/* SPDX-License-Identifier: MIT */
#include "host/syscalls/chosen_paths.h"

#include <stdlib.h>
#include <string.h>

#include "host/syscalls/syscall_files.h"
#include "host/syscalls/decoder.h"

/* The end of a path in /proc whose file has none any more. */
#define DELETED " (deleted)"

struct search {
	const struct fathom_chosen_paths *paths;
	int32_t tid;
	bool is_found;
};

/* Adds @path, which it owns from now on. */
static fathom_err add(struct fathom_chosen_paths *p, char *path)
{
	char **items = path ? realloc(p->items, (p->n + 1) * sizeof *items) : NULL;

	if (!items) {
		free(path);
		return FATHOM_E_MEMORY;
	}
	p->items = items;
	items[p->n++] = path;
	return FATHOM_OK;
}

fathom_err fathom_chosen_paths_add(struct fathom_chosen_paths *p, const char *path)
{
	char *resolved = realpath(path, NULL);

	FATHOM_TRY(add(p, strdup(path)));
	return resolved ? add(p, resolved) : FATHOM_OK;
}

void fathom_chosen_paths_deinit(struct fathom_chosen_paths *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->items[i]);
	free(p->items);
	*p = (struct fathom_chosen_paths){ .n = 0 };
}

static void look_at(void *data, const char *path, size_t n)
{
	struct search *s = data;

	for (size_t i = 0; i < s->paths->n; i++)
		s->is_found |=
			strlen(s->paths->items[i]) == n && !memcmp(s->paths->items[i], path, n);
}

static bool look_at_fd(void *data, int32_t fd, bool after, struct fathom_fd_name *ret)
{
	const size_t behind = sizeof DELETED - 1;
	const struct search *s = data;
	const size_t n = fd < 0 ? 0 : fathom_syscall_file_link(s->tid, fd, ret->path);

	(void)after;
	if (n)
		look_at(data, ret->path, n);
	if (n > behind && !memcmp(ret->path + n - behind, DELETED, behind))
		look_at(data, ret->path, n - behind);
	return false;
}

bool fathom_syscall_refers(struct fathom_syscall_record *record, int32_t tid,
			   const struct fathom_chosen_paths *paths)
{
	struct search s = { .paths = paths, .tid = tid };
	/* All that is shown is looked at, so as much as can be is shown. */
	const struct fathom_syscall_options options = { .string_limit = UINT32_MAX,
							.is_verbose = true,
							.name_fd = look_at_fd,
							.see_path = look_at,
							.data = &s };
	struct fathom_text nowhere = text_init(NULL, 0);
	struct fathom_decoder d = { .options = &options, .record = record, .out = &nowhere };

	fathom_decode_begin(&d);
	fathom_decode_mentions(&d);
	return s.is_found;
}
