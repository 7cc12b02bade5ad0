/* SPDX-License-Identifier: MIT */
#include "host/base/search_paths.h"

#include <stdlib.h>

#include "host/base/option_struct.h"

char **fathom_dirs_copy(const char *const *dirs)
{
	size_t n = 0;
	char **copy;

	while (dirs[n])
		n++;
	copy = calloc(n + 1, sizeof *copy);
	for (size_t i = 0; copy && i < n; i++) {
		copy[i] = strdup(dirs[i]);
		if (!copy[i]) {
			fathom_dirs_free(copy);
			return NULL;
		}
	}
	return copy;
}

void fathom_dirs_free(char **dirs)
{
	for (char **dir = dirs; dir && *dir; dir++)
		free(*dir);
	free(dirs);
}

const char *const *fathom_debug_dirs(const char *const *dirs)
{
	static const char *const usual[] = { "/usr/lib/debug", NULL };

	return dirs ? dirs : usual;
}

static char *copy_text(const char *text)
{
	return strdup(text ? text : "");
}

fathom_err fathom_search_paths_create(struct fathom *session,
				      const struct fathom_target_options *options,
				      struct fathom_search_paths **ret,
				      struct fathom_errinfo *reterr)
{
	struct fathom_target_options o = { .size = sizeof o };
	struct fathom_search_paths *p;

	if (options &&
	    (!FATHOM_OPTIONS_READ(options, &o, FATHOM_TARGET_UNVERIFIED_FILES) || o.reserved1))
		return fathom_fail_options(reterr);
	p = calloc(1, sizeof *p);
	if (!p)
		return fathom_fail_memory(reterr);
	atomic_init(&p->references, 1);
	p->session = fathom_acquire(session);
	p->takes_unverified = o.flags & FATHOM_TARGET_UNVERIFIED_FILES;
	p->debug_dirs = fathom_dirs_copy(fathom_debug_dirs(o.debug_dirs));
	p->sysroot = copy_text(o.sysroot);
	p->exe = copy_text(o.exe);
	p->root = copy_text(o.root);
	if (!p->debug_dirs || !p->sysroot || !p->exe || !p->root) {
		fathom_search_paths_release(p);
		return fathom_fail_memory(reterr);
	}
	*ret = p;
	return FATHOM_OK;
}

struct fathom_search_paths *fathom_search_paths_acquire(struct fathom_search_paths *p)
{
	atomic_fetch_add_explicit(&p->references, 1, memory_order_relaxed);
	return p;
}

void fathom_search_paths_release(struct fathom_search_paths *p)
{
	if (!p || atomic_fetch_sub_explicit(&p->references, 1, memory_order_acq_rel) != 1)
		return;
	fathom_dirs_free(p->debug_dirs);
	free(p->sysroot);
	free(p->exe);
	free(p->root);
	fathom_destroy(p->session);
	free(p);
}
