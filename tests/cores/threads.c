/* SPDX-License-Identifier: MIT */
/*
 * threads TARGET: prints a line for each thread of a core or, for digits, of a process: its number,
 * and each register as DWARF-NUMBER=VALUE, in decimal; or why there are none.
 */
#include <ctype.h>
#include <fathom/fathom.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "host/target/target.h"

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

int main(int argc, char **argv)
{
	struct fathom_errinfo info = { .err = FATHOM_OK };
	struct fathom_target *t;
	struct fathom_view *v;
	struct fathom *session;
	fathom_err err;

	if (argc != 2 || fathom_create(NULL, &session, &info))
		return 2;
	err = isdigit((unsigned char)*argv[1])
		      ? fathom_target_open_process(session, atoi(argv[1]), NULL, &t, &info)
		      : fathom_target_open_file(session, argv[1], NULL, &t, &info);
	if (!err) {
		err = fathom_view_begin(t, FATHOM_VIEW_PLACES, &v, &info);
		if (!err) {
			err = fathom_view_threads(v, print_thread, v, &info);
			fathom_view_end(v);
		}
		fathom_target_release(t);
	}
	fathom_destroy(session);
	if (err)
		printf("%s\n", info.what);
	return err != FATHOM_OK;
}
