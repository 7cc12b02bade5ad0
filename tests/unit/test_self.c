/* SPDX-License-Identifier: MIT */
/* This process asks itself: several threads while libraries come and go, and what nobody may do. */
#include "unit.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fathom/fathom.h"
#include "safe/self/table.h"

static struct fathom *session;
static struct fathom_self *self;

static int begin(void **state)
{
	const struct fathom_options options = { .size = sizeof options, .flags = FATHOM_NO_CACHE };

	(void)state;
	return fathom_create(&options, &session, NULL) ||
	       fathom_self_prepare(session, NULL, &self, NULL);
}

static int end(void **state)
{
	(void)state;
	fathom_self_destroy(self);
	fathom_destroy(session);
	return 0;
}

static void options_that_are_not_known_are_refused(void **state)
{
	struct fathom_self_options options = { .size = sizeof options, .flags = 1u << 31 };
	struct fathom_self *other;

	(void)state;
	assert_int_equal(fathom_self_prepare(session, &options, &other, NULL), FATHOM_E_ARGUMENT);
	options = (struct fathom_self_options){ .size = sizeof options, .reserved1 = 1 };
	assert_int_equal(fathom_self_prepare(session, &options, &other, NULL), FATHOM_E_ARGUMENT);
	options = (struct fathom_self_options){ .size = sizeof options, .reserved = { 0, 1 } };
	assert_int_equal(fathom_self_prepare(session, &options, &other, NULL), FATHOM_E_ARGUMENT);
	fathom_self_destroy(NULL);
}

static _Atomic bool stop;
static _Atomic uint64_t n_answers;

static void *ask(void *unused)
{
	struct fathom_self_answer a;

	while (!atomic_load(&stop)) {
		/* What stays has its name all the time. */
		if (!fathom_self_lookup(self, (uintptr_t)begin + 1, 0, &a) ||
		    strcmp(a.function, "begin") != 0 || a.offset != 1)
			abort();
		if (!fathom_self_lookup_now(self, (uintptr_t)labs, 0, &a))
			abort();
		atomic_fetch_add(&n_answers, 1);
	}
	return unused;
}

static void threads_ask_while_libraries_come_and_go(void **state)
{
	pthread_t thread[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, ask, NULL), 0);
	for (int turn = 0; turn < 30; turn++) {
		void *handle = dlopen("libBrokenLocale.so.1", RTLD_NOW);

		assert_int_equal(fathom_self_refresh(self, NULL), 0);
		if (handle)
			dlclose(handle);
	}
	while (atomic_load(&n_answers) < 200)
		;
	atomic_store(&stop, true);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
}

/* A table of our own, whose modules only the answers' bounds are seen of. */
static void tables_take_turns(void **state)
{
	static _Atomic uintptr_t lows[2][64];
	static struct fathom_self_row rows[2][64];
	struct fathom_self_table tables[2];
	static uint64_t starts[1] = { 0 };
	static uint32_t winners[1] = { 0 };
	static uint32_t buckets[65];
	static const struct fathom_self_symbol symbol = { .start = 0, .name = 1, .linkage = 1 };
	static const struct fathom_self_module module = { .path = "module",
							  .strings = "\0name",
							  .starts = starts,
							  .winners = winners,
							  .n_starts = 1,
							  .n_buckets = 64,
							  .buckets = buckets,
							  .symbols = &symbol };
	struct fathom_self own = { 0 };
	struct fathom_self_place p = { .low = 64,
				       .high = 128,
				       .bias = 64,
				       .flags = FATHOM_SELF_STAYS,
				       .module = (uintptr_t)&module };
	struct fathom_self_answer a;

	(void)state;
	for (int i = 1; i < 65; i++)
		buckets[i] = i > 1;
	for (int i = 0; i < 2; i++) {
		tables[i] =
			(struct fathom_self_table){ .cap = 64, .lows = lows[i], .rows = rows[i] };
		atomic_init(&own.tables[i], &tables[i]);
	}
	assert_false(fathom_self_answer(&own, 64, 0, true, &a));
	fathom_self_publish(&own, &p, 1);
	assert_true(fathom_self_answer(&own, 64, 0, true, &a));
	assert_string_equal(a.function, "name");
	assert_string_equal(a.module, "module");
	assert_int_equal(a.module_address, 0);
	assert_true(fathom_self_answer(&own, 127, 0, true, &a));
	assert_int_equal(a.offset, 63);
	assert_false(fathom_self_answer(&own, 128, 0, true, &a));
	assert_false(fathom_self_answer(&own, 63, 0, true, &a));
	/* It is gone, and comes back elsewhere. */
	fathom_self_publish(&own, &p, 0);
	assert_false(fathom_self_answer(&own, 64, 0, true, &a));
	p.low = 1024;
	p.high = 1030;
	p.bias = 1000;
	fathom_self_publish(&own, &p, 1);
	assert_false(fathom_self_answer(&own, 64, 0, true, &a));
	assert_true(fathom_self_answer(&own, 1029, 0, true, &a));
	assert_int_equal(a.offset, 29);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_that_are_not_known_are_refused),
		cmocka_unit_test(tables_take_turns),
		cmocka_unit_test(threads_ask_while_libraries_come_and_go),
	};

	return cmocka_run_group_tests_name("self", tests, begin, end);
}
