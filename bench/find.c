/* SPDX-License-Identifier: MIT */
/*
 * find TARGET NAME [LIMIT]: asks the library for an exact name, in a process for digits, else in a
 * file, for LIMIT matches at most, and prints the nanoseconds of the first call and the median of
 * 101 that follow.
 */
#include <fathom/fathom.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CALLS 101

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a;
	const uint64_t y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Nanoseconds of one call; exits when it fails. */
static uint64_t call(struct fathom_target *target, const char *const *queries, uint32_t limit)
{
	const struct fathom_find_options options = { .size = sizeof options, .limit = limit };
	const uint64_t start = now_ns();
	struct fathom_matches *matches;
	uint64_t took;

	if (fathom_find(target, &options, queries, 1, &matches, NULL) ||
	    fathom_matches_get(matches, 0)->rank) {
		fprintf(stderr, "%s: not found\n", queries[0]);
		exit(1);
	}
	took = now_ns() - start;
	fathom_matches_free(matches);
	return took;
}

int main(int argc, char **argv)
{
	const struct fathom_options options = { .size = sizeof options, .flags = FATHOM_NO_CACHE };
	const char *const queries[] = { argc > 2 ? argv[2] : "" };
	struct fathom_target *target;
	struct fathom *session;
	uint64_t took[CALLS];
	uint64_t first;
	int pid;

	if (argc != 3 && argc != 4)
		return 2;
	pid = strspn(argv[1], "0123456789") == strlen(argv[1]) ? atoi(argv[1]) : 0;
	if (fathom_create(&options, &session, NULL) ||
	    (pid ? fathom_target_open_process(session, pid, NULL, &target, NULL)
		 : fathom_target_open_file(session, argv[1], NULL, &target, NULL)))
		return 1;
	first = call(target, queries, argc == 4 ? (uint32_t)atoi(argv[3]) : 0);
	for (int i = 0; i < CALLS; i++)
		took[i] = call(target, queries, argc == 4 ? (uint32_t)atoi(argv[3]) : 0);
	qsort(took, CALLS, sizeof *took, compare);
	printf("%llu %llu\n", (unsigned long long)first, (unsigned long long)took[CALLS / 2]);
	fathom_target_release(target);
	fathom_destroy(session);
	return 0;
}
