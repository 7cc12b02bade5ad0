/* SPDX-License-Identifier: MIT */
/* Pages: the memory that they take, samples that are added up, and failures. */
#include "unit.h"

#include "../hostile/alloc.h"
#include "host/page/summed_samples.h"
#include "made_profile.h"
#include "profile_in_memory.h"

/* fathom_profile_write_fn: counts bytes. */
static int count(void *data, const void *bytes, size_t n)
{
	(void)bytes;
	*(size_t *)data += n;
	return 1;
}

static struct fathom_profile *make(void)
{
	static struct made_profile m;
	struct fathom_profile *p;

	memset(&m, 0, sizeof m);
	begin_file(&m.w);
	fathom_profile_write_about(&m.w, "unit", "ns");
	(void)made_thread(&m, 70, 70, "demo");
	made_sample(&m, 10, 0, "main@/bin/a;f@/bin/a!/src/a.c:3", 5, FATHOM_PROFILE_SAMPLED,
		    FATHOM_STOP_ENTRY);
	made_sample(&m, 20, 0, "main@/bin/a;g@/bin/a", 7, FATHOM_PROFILE_KERNEL_HIDDEN,
		    FATHOM_STOP_LOOP);
	made_sample(&m, 30, 0, "main@/bin/a;[futex]@[waits]", 9, FATHOM_PROFILE_WAITING,
		    FATHOM_STOP_ENTRY);
	fathom_profile_write_end(&m.w, 1000);
	end_file(&m.w);
	assert_int_equal(fathom_profile_open(session, path, &p, NULL), FATHOM_OK);
	return p;
}

static fathom_err write_page(const struct fathom_profile *p, int is_diff, size_t *ret_size)
{
	*ret_size = 0;
	return is_diff ? fathom_diff_export(p, p, FATHOM_PROFILE_PAGE, NULL, count, ret_size, NULL)
		       : fathom_profile_export(p, FATHOM_PROFILE_PAGE, NULL, count, ret_size, NULL);
}

static void says_that_memory_is_missing(void **state)
{
	struct fathom_profile *p = make();
	size_t size;

	(void)state;
	for (int is_diff = 0; is_diff < 2; is_diff++) {
		fathom_err err = FATHOM_E_MEMORY;
		long nth = 1;

		for (; alloc_is_ours && err == FATHOM_E_MEMORY && nth < 1000; nth++) {
			allocations = 0;
			fail_after = nth;
			err = write_page(p, is_diff, &size);
			fail_after = 0;
		}
		/* valgrind has an allocator of its own, which nothing fails in. */
		assert_int_equal(alloc_is_ours ? err : FATHOM_OK, FATHOM_OK);
		assert_true(!allocations || nth > 20);
		assert_int_equal(write_page(p, is_diff, &size), FATHOM_OK);
		assert_true(size > 10000);
	}
	fathom_profile_free(p);
}

static void compares_in_pages_only(void **state)
{
	struct fathom_profile *p = make();
	size_t size = 0;

	(void)state;
	assert_int_equal(
		fathom_diff_export(p, p, FATHOM_PROFILE_COLLAPSED, NULL, count, &size, NULL),
		FATHOM_E_ARGUMENT);
	assert_int_equal(fathom_diff_export(p, p, FATHOM_PROFILE_PAGE, NULL, NULL, &size, NULL),
			 FATHOM_E_ARGUMENT);
	assert_int_equal(size, 0);
	fathom_profile_free(p);
}

/* Samples of 4 kinds, one each nanosecond; every 100th is a wait that takes 1,000. */
static void add_many(struct fathom_page_samples *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct fathom_page_sample one = { .ns = i,
							.weight = i % 100 ? 3 : 1000,
							.node = (uint32_t)(i % 4),
							.n = 1,
							.part = i % 100 ? 0 : 3 };

		fathom_page_samples_add(s, &one);
	}
}

static void adds_up_what_is_too_much(void **state)
{
	const struct fathom_memory memory = { .budget = UINT64_MAX };
	struct fathom_page_samples s = { .memory = &memory, .duration = 10000, .most = 1024 };
	uint64_t weights[4] = { 0 };
	uint64_t n = 0;
	uint64_t last = 0;

	(void)state;
	add_many(&s, 10000);
	fathom_page_samples_sort(&s);
	assert_true(s.slice && s.n < 1024 && !s.no_memory && !s.is_too_large);
	for (size_t i = 0; i < s.n; i++) {
		assert_true(s.items[i].ns >= last);
		last = s.items[i].ns;
		weights[s.items[i].node] += s.items[i].weight;
		n += s.items[i].n;
		/* Long waits have begun when they say. */
		assert_true(s.items[i].part == 0 || s.items[i].weight == 1000);
	}
	assert_int_equal(n, 10000);
	assert_int_equal(weights[0], 100 * 1000 + 2400 * 3);
	assert_int_equal(weights[1], 2500 * 3);
	assert_int_equal(last, 9999);
	fathom_page_samples_deinit(&s);
}

static void grows_where_all_differ(void **state)
{
	const struct fathom_memory memory = { .budget = UINT64_MAX };
	struct fathom_page_samples s = { .memory = &memory, .duration = 100, .most = 64 };

	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		fathom_page_samples_add(&s, &(struct fathom_page_sample){ .node = i, .n = 1 });
	assert_int_equal(s.n, 1000);
	fathom_page_samples_deinit(&s);
}

static void keeps_to_the_budget(void **state)
{
	const struct fathom_memory memory = { .budget = 1 << 20 };
	struct fathom_page_samples s = { .memory = &memory, .duration = 100, .most = SIZE_MAX };

	(void)state;
	add_many(&s, 100000);
	assert_true(s.is_too_large && s.n < (1 << 20) / sizeof *s.items);
	fathom_page_samples_deinit(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_that_memory_is_missing),
		cmocka_unit_test(compares_in_pages_only),
		cmocka_unit_test(adds_up_what_is_too_much),
		cmocka_unit_test(grows_where_all_differ),
		cmocka_unit_test(keeps_to_the_budget),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
