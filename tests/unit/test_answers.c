/* SPDX-License-Identifier: MIT */
/* The tables of a batch's answers, as src/host/symbolize/answers.h has them. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "../hostile/alloc.h"
#include "host/symbolize/answers.h"

/* Longer than a chunk of an arena, so that each copy is an allocation. */
#define LONG_SIZE ((uint32_t)100 << 10)

/* Allocations of the calls below, at most. */
#define MOST_ALLOCATIONS 64

static struct fathom_str long_text(void)
{
	static char text[LONG_SIZE];

	memset(text, 'a', sizeof text);
	return (struct fathom_str){ text, sizeof text };
}

/* Asks for the file @path twice: once while allocation @n fails, and once with memory. */
static bool fails_for_file(struct fathom_str path, long n)
{
	struct fathom_part p = { .err = FATHOM_OK };
	const struct fathom_source_file *f;
	bool failed;

	fathom_part_begin(&p, 0, 0, 0);
	allocations = 0;
	fail_after = n;
	f = fathom_part_file(&p, path);
	fail_after = 0;
	failed = !f;
	assert_int_equal(p.err, failed ? FATHOM_E_MEMORY : FATHOM_OK);
	assert_int_equal(p.files.n, failed ? 0 : 1);
	f = fathom_part_file(&p, path);
	assert_non_null(f);
	assert_int_equal(f->number, 0);
	assert_int_equal(f->path_size, path.size);
	assert_memory_equal(f->path, path.data, path.size);
	assert_int_equal(p.files.n, 1);
	fathom_part_deinit(&p);
	return failed;
}

static void without_memory_no_file_is_added(void **state)
{
	long n = 1;

	(void)state;
	if (!alloc_is_ours)
		return;
	while (n < MOST_ALLOCATIONS && fails_for_file(long_text(), n))
		n++;
	/* The set, the array of chunks, the first chunk, and the path. */
	assert_int_equal(n, 5);
}

/* Asks for the function of @hit twice: once while allocation @n fails, and once with memory. */
static bool fails_for_symbol(const struct fathom_symbol_hit *hit, long n)
{
	struct fathom_part p = { .err = FATHOM_OK };
	uint32_t id;
	bool failed;

	fathom_part_begin(&p, 0, FATHOM_NO_DEMANGLE, 0);
	allocations = 0;
	fail_after = n;
	id = fathom_part_symbol(&p, hit);
	fail_after = 0;
	failed = id == FATHOM_NONE;
	assert_int_equal(p.err, failed ? FATHOM_E_MEMORY : FATHOM_OK);
	assert_int_equal(p.functions.n, failed ? 0 : 1);
	id = fathom_part_symbol(&p, hit);
	assert_int_equal(id, failed ? 0 : 1);
	assert_int_equal(fathom_part_function(&p, id)->linkage_size, hit->name.size);
	assert_memory_equal(fathom_part_function(&p, id)->linkage_name, hit->name.data,
			    hit->name.size);
	fathom_part_deinit(&p);
	return failed;
}

static void without_memory_no_function_is_added(void **state)
{
	const struct fathom_symbol_hit hit = { .name = long_text(),
					       .source = FATHOM_SOURCE_SYMTAB };
	long n = 1;

	(void)state;
	if (!alloc_is_ours)
		return;
	while (n < MOST_ALLOCATIONS && fails_for_symbol(&hit, n))
		n++;
	/* The array of chunks, the first chunk, and the name. */
	assert_int_equal(n, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_memory_no_file_is_added),
		cmocka_unit_test(without_memory_no_function_is_added),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
