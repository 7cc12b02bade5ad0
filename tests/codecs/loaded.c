/* SPDX-License-Identifier: MIT */
/*
 * A library whose constructor asks for the line of SYMBOL in FILE (environment) on several threads:
 * it runs while the loader's lock is held.
 */
#include <stdio.h>
#include <stdlib.h>

#include <fathom/fathom.h>

__attribute__((constructor)) static void ask(void)
{
	const struct fathom_options options = { .size = sizeof options,
						.flags = FATHOM_NO_CACHE,
						.threads = 8 };
	struct fathom *session;
	struct fathom_target *target;
	const struct fathom_answer *a;
	struct fathom_pc pc;

	if (fathom_create(&options, &session, NULL) ||
	    fathom_target_open_file(session, getenv("FILE"), NULL, &target, NULL) ||
	    fathom_target_find_symbol(target, getenv("SYMBOL"), &pc.address) ||
	    fathom_lookup(target, pc, NULL, &a, NULL))
		abort();
	printf("constructor: line %u\n", a->frame ? a->frame->line : 0);
	fathom_answer_free(a);
	fathom_target_release(target);
	fathom_destroy(session);
}
