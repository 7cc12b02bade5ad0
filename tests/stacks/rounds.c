/* SPDX-License-Identifier: MIT */
/*
 * rounds PID ROUNDS: reads the stacks of a running programs/threads.c so often, which makes threads
 * all the time (churn). The first thread, which makes them, has to have its whole stack with main()
 * in it; no other one may have its frames. Prints how many stacks of each kind were read, how many
 * of the first were not read, and how often all kept changing.
 */
#include <fathom/fathom.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST, OTHERS, MISSED, CHANGED, KINDS };

static unsigned long counts[KINDS];

static int has_frame(const struct fathom_thread *t, const char *name)
{
	for (size_t i = 0; i < t->n_frames; i++)
		if (t->frames[i].answer->symbol && !strcmp(t->frames[i].answer->symbol, name))
			return 1;
	return 0;
}

/* Returns whether what was read of @t can be true. */
static int check(const struct fathom_thread *t, int first)
{
	const int is_main = has_frame(t, "main");

	if (t->tid != first) {
		counts[OTHERS]++;
		return !is_main && !has_frame(t, "_start") && !has_frame(t, "churn");
	}
	/* It had no processor in time to stop. */
	if (!t->n_frames) {
		counts[MISSED]++;
		return 1;
	}
	counts[FIRST]++;
	return is_main && t->stop == FATHOM_STOP_ENTRY;
}

static void print(const struct fathom_thread *t)
{
	printf("thread %d, stop %s\n", t->tid, fathom_stop_name(t->stop));
	for (size_t i = 0; i < t->n_frames; i++)
		printf(" %s %s\n", fathom_trust_name(t->frames[i].trust),
		       t->frames[i].answer->symbol ? t->frames[i].answer->symbol : "-");
}

int main(int argc, char **argv)
{
	const struct fathom_stack_options o = { .size = sizeof o,
						.flags = FATHOM_STACK_NAMES_ONLY };
	const int first = argc == 3 ? atoi(argv[1]) : 0;
	const long rounds = argc == 3 ? atol(argv[2]) : 0;
	struct fathom_target *t;
	struct fathom_stacks *stacks;
	struct fathom *session;

	if (fathom_create(NULL, &session, NULL) ||
	    fathom_target_open_process(session, first, NULL, &t, NULL))
		return 2;
	for (long i = 0; i < rounds; i++) {
		const fathom_err err = fathom_stacks_capture(t, &o, &stacks, NULL);

		if (err && err != FATHOM_E_CHANGED)
			return 2;
		counts[CHANGED] += err != 0;
		for (size_t k = 0; !err && k < fathom_stacks_count(stacks); k++) {
			if (check(fathom_stacks_get(stacks, k), first))
				continue;
			print(fathom_stacks_get(stacks, k));
			return 1;
		}
		if (!err)
			fathom_stacks_free(stacks);
	}
	fathom_target_release(t);
	fathom_destroy(session);
	printf("first %lu others %lu missed %lu changed %lu\n", counts[FIRST], counts[OTHERS],
	       counts[MISSED], counts[CHANGED]);
	return 0;
}
