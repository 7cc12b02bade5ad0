/* SPDX-License-Identifier: MIT */
/* A stored index answers for each byte of code, padding included, as debug information does. */
#include "unit.h"

#include <fcntl.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fathom/fathom.h"

/*
 * A unit with code in several sections claims each function by itself, but its line table covers
 * the padding between them, too.
 */
#define PADDED __attribute__((noinline, used, aligned(64), section(".text.padded")))

PADDED static int padded_first(int x)
{
	return x + 1;
}

PADDED static int padded_second(int x)
{
	return x * 3;
}

PADDED static int padded_third(int x)
{
	return x - 7;
}

/* Enough of the program for many units and all of the padding. */
#define N_ADDRESSES (UINT64_C(256) << 10)

struct asked {
	uint64_t first; /* svma */
	char dir[32];
	struct fathom *session;
	struct fathom_target *target;
	struct fathom_answers *answers;
};

static int take_bias(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	*(uint64_t *)data = info->dlpi_addr;
	return 1;
}

static void open_self(struct asked *a, const char *dir)
{
	const struct fathom_options options = { .size = sizeof options,
						.flags = dir ? 0 : FATHOM_NO_CACHE,
						.cache_dir = dir };

	assert_int_equal(fathom_create(&options, &a->session, NULL), 0);
	assert_int_equal(
		fathom_target_open_file(a->session, "/proc/self/exe", NULL, &a->target, NULL), 0);
}

/* Asks for each @step-th address from number @from on. */
static void ask(struct asked *a, size_t from, size_t step)
{
	uint64_t *addresses = malloc((size_t)N_ADDRESSES * sizeof *addresses);
	size_t n = 0;

	assert_non_null(addresses);
	for (size_t i = from; i < N_ADDRESSES; i += step)
		addresses[n++] = a->first + i;
	assert_int_equal(fathom_symbolize(a->target, NULL, addresses, NULL, n, &a->answers, NULL),
			 0);
	free(addresses);
}

static void close_self(struct asked *a)
{
	fathom_answers_free(a->answers);
	fathom_target_release(a->target);
	fathom_destroy(a->session);
}

static const char *file_of(const struct fathom_frame *f)
{
	return f->file ? f->file : "";
}

static void assert_same_frames(const struct asked *a, const struct asked *b, size_t i)
{
	const struct fathom_answer *x = fathom_answers_get(a->answers, i);
	const struct fathom_answer *y = fathom_answers_get(b->answers, i);
	const struct fathom_frame *f = x->frame;
	const struct fathom_frame *g = y->frame;

	for (; f && g; f = f->outer, g = g->outer) {
		assert_int_equal(f->line, g->line);
		assert_string_equal(file_of(f), file_of(g));
	}
	if (f || g)
		fail_msg("0x%llx: line %u without the index, %u with it",
			 (unsigned long long)x->pc.address, f ? f->line : 0, g ? g->line : 0);
}

static void the_index_says_what_the_file_says(void **state)
{
	char dir[] = "/tmp/fathom-test-XXXXXX";
	struct asked truth = { 0 };
	struct asked stored = { 0 };
	char command[64];

	(void)state;
	assert_int_equal(padded_first(1) + padded_second(2) + padded_third(3), 4);
	assert_int_equal(dl_iterate_phdr(take_bias, &truth.first), 1);
	truth.first = (uint64_t)(uintptr_t)padded_first - truth.first - 256;
	stored.first = truth.first;
	assert_non_null(mkdtemp(dir));
	open_self(&truth, NULL);
	ask(&truth, 0, 1);
	/* Stores a part, then more, then all. */
	for (size_t round = 0; round < 4; round++) {
		open_self(&stored, dir);
		ask(&stored, round * 13, round == 3 ? 1 : 101);
		assert_int_equal(fathom_cache_store(stored.target, round == 3, 0, NULL, NULL), 0);
		close_self(&stored);
		open_self(&stored, dir);
		ask(&stored, 0, 1);
		for (size_t i = 0; i < N_ADDRESSES; i++)
			assert_same_frames(&truth, &stored, i);
		close_self(&stored);
	}
	close_self(&truth);
	(void)snprintf(command, sizeof command, "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

/* Changes one byte of page @page of the index in @dir; the same again restores it. */
static void flip(const char *dir, size_t page)
{
	char pattern[64];
	glob_t found;
	uint8_t byte;
	int fd;

	(void)snprintf(pattern, sizeof pattern, "%s/*", dir);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 1);
	fd = open(found.gl_pathv[0], O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, (off_t)page * 4096 + 2048), 1);
	byte ^= 0x40;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)page * 4096 + 2048), 1);
	close(fd);
	globfree(&found);
}

static size_t count_pages(const char *dir)
{
	char pattern[64];
	glob_t found;
	struct stat st;

	(void)snprintf(pattern, sizeof pattern, "%s/*", dir);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_int_equal(stat(found.gl_pathv[0], &st), 0);
	globfree(&found);
	return (size_t)st.st_size / 4096;
}

static void assert_same_symbol(const struct asked *a, const struct asked *b, size_t i)
{
	const struct fathom_answer *x = fathom_answers_get(a->answers, i);
	const struct fathom_answer *y = fathom_answers_get(b->answers, i);

	if (strcmp(x->symbol ? x->symbol : "", y->symbol ? y->symbol : "") != 0)
		fail_msg("0x%llx: %s, and %s by the damaged index",
			 (unsigned long long)x->pc.address, x->symbol, y->symbol);
}

/* Whichever page is damaged, what can be read of the index gives no wrong name. */
static void a_damaged_page_gives_no_wrong_name(void **state)
{
	char dir[] = "/tmp/fathom-test-XXXXXX";
	struct asked truth = { 0 };
	struct asked stored = { 0 };
	char command[64];
	size_t n;

	(void)state;
	assert_int_equal(dl_iterate_phdr(take_bias, &truth.first), 1);
	truth.first = (uint64_t)(uintptr_t)padded_first - truth.first - 256;
	stored.first = truth.first;
	assert_non_null(mkdtemp(dir));
	open_self(&truth, NULL);
	ask(&truth, 0, 331);
	open_self(&stored, dir);
	assert_int_equal(fathom_cache_store(stored.target, 1, 0, NULL, NULL), 0);
	fathom_target_release(stored.target);
	fathom_destroy(stored.session);
	n = count_pages(dir);
	assert_true(n > 8);
	for (size_t page = 1; page < n; page++) {
		flip(dir, page);
		open_self(&stored, dir);
		ask(&stored, 0, 331);
		for (size_t i = 0; i < fathom_answers_count(truth.answers); i++)
			assert_same_symbol(&truth, &stored, i);
		close_self(&stored);
		flip(dir, page);
	}
	fathom_answers_free(truth.answers);
	fathom_target_release(truth.target);
	fathom_destroy(truth.session);
	(void)snprintf(command, sizeof command, "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_index_says_what_the_file_says),
		cmocka_unit_test(a_damaged_page_gives_no_wrong_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
