/* SPDX-License-Identifier: MIT */
/* Opens files as modules, for programs that list what their call frame information says. */
#ifndef FATHOM_TESTS_EACH_MODULE_H
#define FATHOM_TESTS_EACH_MODULE_H

#include <stdio.h>

#include "host/module/module.h"

/* Prints "file PATH ERROR" for each of the @n @paths, and calls @fn for each that can be opened. */
static inline int each_module(int n, char **paths, void (*fn)(struct fathom_module *m))
{
	const struct fathom_options options = { .size = sizeof options,
						.flags = FATHOM_NO_CACHE,
						.threads = 1 };
	struct fathom_search_paths *search;
	struct fathom *session;

	if (fathom_create(&options, &session, NULL) ||
	    fathom_search_paths_create(session, NULL, &search, NULL))
		return 1;
	for (int i = 0; i < n; i++) {
		struct fathom_notes notes = { .note = { NULL } };
		struct fathom_object *o;
		struct fathom_module *m = NULL;
		fathom_err err = fathom_object_open(&session->memory, paths[i], &o, NULL);

		if (!err)
			err = fathom_module_create_alone(search, o, &notes, &m);
		printf("file %s %d\n", paths[i], err);
		if (!err)
			fn(m);
		fathom_module_close(m);
		fathom_notes_deinit(&notes);
	}
	fathom_search_paths_release(search);
	fathom_destroy(session);
	return 0;
}

#endif
