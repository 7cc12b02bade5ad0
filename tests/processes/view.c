/* SPDX-License-Identifier: MIT */
/*
 * view threads|modules TARGET: prints what a view of the target says. TARGET is the number of a
 * process, kernel:ROOT, or a file. A line of a thread is its number, and each register as
 * DWARF-NUMBER=VALUE, in decimal; of a module its name, bias, start and, of the kernel's, sections
 * as NAME=ADDRESS, in hexadecimal. Else it is why there is none.
 */
#include <ctype.h>
#include <fathom/fathom.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/module/module.h"
#include "host/space/target.h"

static bool print_thread(int32_t tid, void *data)
{
	struct fathom_registers r;
	struct fathom_errinfo info;

	printf("%d", tid);
	if (fathom_view_registers(data, tid, &r, &info))
		printf(" %s", info.what);
	else
		for (int i = 0; i < FATHOM_REGISTERS; i++)
			if (r.known >> i & 1)
				printf(" %d=%" PRIu64, i, r.value[i]);
	printf("\n");
	return true;
}

static bool print_module(const struct fathom_module_at *m, void *data)
{
	const struct fathom_object *o = m->module->main;

	(void)data;
	printf("%s %" PRIx64 " %" PRIx64, m->name, m->bias, m->start);
	for (uint32_t i = 0; m->sections && i < o->n_sections; i++)
		if (m->sections[i])
			printf(" %.*s=%" PRIx64, (int)o->sections[i].header.name.size,
			       o->sections[i].header.name.data, m->sections[i]);
	printf("\n");
	return true;
}

static fathom_err open_target(struct fathom *session, const char *name, struct fathom_target **ret,
			      struct fathom_errinfo *reterr)
{
	const struct fathom_target_options kernel = { .size = sizeof kernel, .root = name + 7 };

	if (strncmp(name, "kernel:", 7) == 0)
		return fathom_target_open_kernel(session, &kernel, ret, reterr);
	return isdigit((unsigned char)*name)
		       ? fathom_target_open_process(session, atoi(name), NULL, ret, reterr)
		       : fathom_target_open_file(session, name, NULL, ret, reterr);
}

int main(int argc, char **argv)
{
	const bool threads = argc == 3 && strcmp(argv[1], "threads") == 0;
	struct fathom_errinfo info = { .err = FATHOM_OK };
	struct fathom_target *t;
	struct fathom_view *v;
	struct fathom *session;
	fathom_err err;

	if (argc != 3 || fathom_create(NULL, &session, &info))
		return 2;
	err = open_target(session, argv[2], &t, &info);
	if (!err) {
		err = fathom_view_begin(t, FATHOM_VIEW_PLACES, &v, &info);
		if (!err) {
			err = threads ? fathom_view_threads(v, print_thread, v, &info)
				      : fathom_view_modules(v, print_module, NULL);
			fathom_view_end(v);
		}
		fathom_target_release(t);
	}
	fathom_destroy(session);
	if (err)
		printf("%s\n", info.what);
	return err != FATHOM_OK;
}
