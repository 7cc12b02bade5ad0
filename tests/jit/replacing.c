/* SPDX-License-Identifier: MIT */
/*
 * replacing PID CODE ROUNDS: reads the stack of a running programs/replaced.c so many times. Where
 * it is in its code, a name must be that of the number in %rbx at that moment. Prints how many
 * stacks were named, were in code without a name, were elsewhere, kept changing, or were named with
 * %rbx unknown: of a thread that the kernel is about to wake, it shows pc and sp only. Fails at a
 * wrong name.
 */
#include <fathom/fathom.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* DWARF's number of %rbx, and bytes of code. */
enum { RBX = 3, CODE = 128 };

static unsigned long counts[5];
enum { NAMED, NAMELESS, ELSEWHERE, CHANGED, UNKNOWN };

/* Counts the stack of @t; returns false if its name is wrong. */
static int check(const struct fathom_thread *t, uint64_t code)
{
	const struct fathom_stack_frame *f = t->frames;
	char name[16];

	/* Behind its first instructions, and before its last. */
	if (!t->n_frames || f->pc.address - code >= CODE || f->pc.address % 64 < 6 ||
	    f->pc.address % 64 > 12) {
		counts[ELSEWHERE]++;
		return 1;
	}
	if (!f->answer->symbol) {
		counts[NAMELESS]++;
		return 1;
	}
	if (!(t->registers.known >> RBX & 1)) {
		counts[UNKNOWN]++;
		return 1;
	}
	(void)snprintf(name, sizeof name, "f%07" PRIu64, t->registers.value[RBX]);
	counts[NAMED]++;
	if (!strcmp(name, f->answer->symbol))
		return 1;
	printf("%s is called %s\n", name, f->answer->symbol);
	return 0;
}

int main(int argc, char **argv)
{
	const uint64_t code = argc == 4 ? strtoull(argv[2], NULL, 16) : 0;
	const long rounds = argc == 4 ? atol(argv[3]) : 0;
	struct fathom_stack_options options = { .size = sizeof options };
	struct fathom_target *target;
	struct fathom_stacks *stacks;
	struct fathom *session;
	int good = 1;

	if (fathom_create(NULL, &session, NULL) ||
	    fathom_target_open_process(session, atoi(argv[1]), NULL, &target, NULL))
		return 2;
	for (long i = 0; i < rounds && good; i++) {
		const fathom_err err = fathom_stacks_capture(target, &options, &stacks, NULL);

		if (err == FATHOM_E_CHANGED) {
			counts[CHANGED]++;
			continue;
		}
		if (err)
			return 2;
		good = fathom_stacks_count(stacks) == 1 &&
		       check(fathom_stacks_get(stacks, 0), code);
		fathom_stacks_free(stacks);
	}
	fathom_target_release(target);
	fathom_destroy(session);
	printf("%lu %lu %lu %lu %lu\n", counts[NAMED], counts[NAMELESS], counts[ELSEWHERE],
	       counts[CHANGED], counts[UNKNOWN]);
	return !good;
}
