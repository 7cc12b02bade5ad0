/* SPDX-License-Identifier: MIT */
/*
 * walked TARGET: the stacks of all threads of a process, by its number, or of a core. A line for
 * each thread is "thread TID STOP REASON-OR-EMPTY PAUSE-NS", followed by one for each frame: "PC SP
 * TRUST NAME".
 */
#include <ctype.h>
#include <fathom/fathom.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void print(const struct fathom_thread *t)
{
	printf("thread %d %s %s %" PRIu64 "\n", t->tid, fathom_stop_name(t->stop),
	       t->failed ? t->failed : "-", t->pause_ns);
	for (size_t i = 0; i < t->n_frames; i++) {
		const struct fathom_stack_frame *f = &t->frames[i];

		printf("%" PRIx64 " %" PRIx64 " %s %s\n", f->pc.address, f->sp,
		       fathom_trust_name(f->trust), f->answer->symbol ? f->answer->symbol : "-");
	}
}

int main(int argc, char **argv)
{
	const struct fathom_stack_options o = {
		.size = sizeof o, .flags = FATHOM_STACK_NAMES_ONLY | FATHOM_STACK_NATIVE
	};
	struct fathom_errinfo info = { .err = FATHOM_OK };
	struct fathom_stacks *stacks;
	struct fathom_target *t;
	struct fathom *session;
	fathom_err err;

	if (argc != 2 || fathom_create(NULL, &session, &info))
		return 2;
	err = isdigit((unsigned char)argv[1][0])
		      ? fathom_target_open_process(session, atoi(argv[1]), NULL, &t, &info)
		      : fathom_target_open_file(session, argv[1], NULL, &t, &info);
	if (!err) {
		err = fathom_stacks_capture(t, &o, &stacks, &info);
		for (size_t i = 0; !err && i < fathom_stacks_count(stacks); i++)
			print(fathom_stacks_get(stacks, i));
		if (!err)
			fathom_stacks_free(stacks);
		fathom_target_release(t);
	}
	fathom_destroy(session);
	if (err)
		fprintf(stderr, "walked: %s\n", info.what);
	return err != FATHOM_OK;
}
