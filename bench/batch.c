/* SPDX-License-Identifier: MIT */
/*
 * batch FILE ADDRESSES names|lines: asks FILE for the addresses in the file ADDRESSES, as the
 * machine has them in memory, and again. Prints the nanoseconds of the first call, of the median of
 * five that follow, and of one with the columns that python_batch.py makes.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <fathom/fathom.h>

#define RUNS 5

static long long now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	const long long x = *(const long long *)a;
	const long long y = *(const long long *)b;

	return x < y ? -1 : x > y;
}

/* Makes the columns of symbols, files and lines. */
static void make_columns(const struct fathom_answers *answers, size_t n, int with_lines)
{
	uint32_t *codes = malloc(n * sizeof *codes);
	uint32_t *first = malloc(n * sizeof *first);
	uint32_t *lines = malloc(n * sizeof *lines);
	uint32_t *columns = malloc(n * sizeof *columns);
	size_t values;

	if (!codes || !first || !lines || !columns ||
	    fathom_answers_encode(answers, FATHOM_COLUMN_SYMBOL, codes, first, &values, NULL) ||
	    (with_lines &&
	     fathom_answers_encode(answers, FATHOM_COLUMN_FILE, codes, first, &values, NULL)))
		abort();
	if (with_lines)
		fathom_answers_lines(answers, lines, columns);
	free(codes);
	free(first);
	free(lines);
	free(columns);
}

int main(int argc, char **argv)
{
	struct fathom_options options = { .size = sizeof options, .flags = FATHOM_NO_CACHE };
	struct fathom_symbolize_options o = { .size = sizeof o };
	long long took[RUNS + 1];
	struct fathom *session;
	struct fathom_target *target;
	struct fathom_answers *answers;
	struct stat st;
	const uint64_t *addresses;
	int fd;

	if (argc != 4 || (fd = open(argv[2], O_RDONLY)) < 0 || fstat(fd, &st) ||
	    (addresses = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd,
			      0)) == MAP_FAILED ||
	    fathom_create(&options, &session, NULL) ||
	    fathom_target_open_file(session, argv[1], NULL, &target, NULL))
		return 2;
	o.flags = strcmp(argv[3], "names") == 0 ? FATHOM_NAMES_ONLY : 0;
	for (int i = 0; i <= RUNS; i++) {
		const long long begin = now();

		if (fathom_symbolize(target, &o, addresses, NULL, (size_t)st.st_size / 8, &answers,
				     NULL))
			return 2;
		took[i] = now() - begin;
		if (i < RUNS)
			fathom_answers_free(answers);
	}
	printf("%lld ", took[0]);
	qsort(took + 1, RUNS, sizeof *took, compare);
	took[0] = now();
	make_columns(answers, (size_t)st.st_size / 8, !o.flags);
	printf("%lld %lld\n", took[1 + RUNS / 2], took[1 + RUNS / 2] + now() - took[0]);
	fathom_answers_free(answers);
	fathom_target_release(target);
	fathom_destroy(session);
	return 0;
}
