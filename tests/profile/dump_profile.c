/* SPDX-License-Identifier: MIT */
/*
 * Prints the samples of a profile, of whichever format: its ns, the thread and its name, the
 * weight, the part, why its stack ends, and the addresses of its frames, the innermost first.
 */
#include <inttypes.h>
#include <stdio.h>

#include "fathom/profile.h"

static int print_sample(void *data, const struct fathom_profile_sample *s)
{
	const struct fathom_profile *p = data;
	size_t n;
	const struct fathom_profile_thread *t = &fathom_profile_threads(p, &n)[s->thread];
	const struct fathom_profile_node *nodes = fathom_profile_nodes(p, &n);
	const struct fathom_profile_location *locations = fathom_profile_locations(p, &n);

	printf("%" PRIu64 "\t%d\t%d\t%s\t%" PRIu64 "\t%u\t%u\t", s->ns, (int)t->pid, (int)t->tid,
	       t->name, s->weight, s->part, s->stop);
	for (uint32_t i = s->node; i; i = nodes[i].caller)
		printf("%" PRIx64 " ", locations[nodes[i].location].pc.address);
	printf("\n");
	return 0;
}

int main(int argc, char **argv)
{
	struct fathom_errinfo why;
	struct fathom_profile *p;
	struct fathom *session;
	char text[512];

	if (argc != 2 || fathom_create(NULL, &session, NULL))
		return 2;
	if (fathom_profile_open(session, argv[1], &p, &why)) {
		(void)fathom_errinfo_format(&why, text, sizeof text);
		fprintf(stderr, "%s\n", text);
		return 1;
	}
	(void)fathom_profile_each_sample(p, print_sample, p, NULL);
	fathom_profile_free(p);
	fathom_destroy(session);
	return 0;
}
