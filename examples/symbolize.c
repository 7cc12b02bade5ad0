/* SPDX-License-Identifier: MIT */
/*
 * symbolize FILE ADDRESS...: what a crash reporter does with the library.
 *	cc -o symbolize symbolize.c $(pkg-config --cflags --libs fathom)
 */
#include <fathom/fathom.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void print_answer(const struct fathom_answer *a)
{
	printf("0x%" PRIx64 " %s+0x%" PRIx64 "\n", a->pc.address, a->symbol ? a->symbol : "??",
	       a->offset);
	for (const struct fathom_frame *f = a->frame; f; f = f->outer)
		printf("\t%s at %s:%" PRIu32 "%s\n", f->function ? f->function : "??",
		       f->file ? f->file : "??", f->line, f->outer ? ", inlined into" : "");
}

int main(int argc, char **argv)
{
	struct fathom *session;
	struct fathom_target *target;
	struct fathom_errinfo info = { .what = "Usage: symbolize FILE ADDRESS..." };
	char text[512];

	if (argc < 3 || fathom_create(NULL, &session, &info) ||
	    fathom_target_open_file(session, argv[1], NULL, &target, &info)) {
		fathom_errinfo_format(&info, text, sizeof text);
		return fprintf(stderr, "%s\n", text) > 0 ? 2 : 1;
	}
	for (int i = 2; i < argc; i++) {
		const struct fathom_pc pc = { .address = strtoull(argv[i], NULL, 16) };
		const struct fathom_answer *a;

		if (fathom_lookup(target, pc, NULL, &a, NULL) == FATHOM_OK) {
			print_answer(a);
			fathom_answer_free(a);
		}
	}
	fathom_target_release(target);
	fathom_destroy(session);
	return 0;
}
