/* SPDX-License-Identifier: MIT */
/* Changes of a text that is an array: what is written, in which order, and what is left alone. */
#include "unit.h"

#include <string.h>

#include "host/patch/text_plan.h"

enum { SIZE = 64, MOST = 16 };

/* A text, and what was done to it: 'w' and the first address of a write, or 's'. */
struct text {
	struct fathom_text_memory memory;
	uint8_t bytes[SIZE];
	char done[MOST];
	uint8_t at[MOST];
	uint8_t sizes[MOST];
	unsigned n;
	unsigned fails; /* the number of the write that fails, from 1 on; 0: none */
	unsigned n_writes;
};

static bool read_text(struct fathom_text_memory *m, uint64_t avma, void *to, size_t size)
{
	const struct text *t = (struct text *)m;

	memcpy(to, t->bytes + avma, size);
	return true;
}

static bool write_text(struct fathom_text_memory *m, uint64_t avma, const void *from, size_t size)
{
	struct text *t = (struct text *)m;

	if (++t->n_writes == t->fails)
		return false;
	assert_true(t->n < MOST);
	t->done[t->n] = 'w';
	t->at[t->n] = (uint8_t)avma;
	t->sizes[t->n++] = (uint8_t)size;
	memcpy(t->bytes + avma, from, size);
	return true;
}

static bool synchronize(struct fathom_text_memory *m)
{
	struct text *t = (struct text *)m;

	assert_true(t->n < MOST);
	t->at[t->n] = t->sizes[t->n] = 0;
	t->done[t->n++] = 's';
	return true;
}

static const uint8_t nop[] = { 0x0f, 0x1f, 0x44, 0x00, 0x08 };
static const uint8_t jump[] = { 0xe9, 0x1f, 0x44, 0x12, 0x34 };
static const uint8_t stub[] = { 0xcc, 0xc3 };

/* A stub at 40, a site in two steps at 8, a byte at 20. */
static void make(struct text *t, struct fathom_text_plan *plan)
{
	*t = (struct text){ .memory = { read_text, write_text, synchronize } };
	memcpy(t->bytes + 8, nop, sizeof nop);
	assert_true(fathom_text_plan_add(plan, 20, "\0", "\x55", 1, 0));
	assert_true(fathom_text_plan_add_steps(plan, 8, nop, jump, sizeof jump, 0));
	assert_true(fathom_text_plan_add(plan, 40, NULL, stub, sizeof stub, 0));
}

static void what_leads_elsewhere_is_written_last(void **state)
{
	static const uint8_t order[] = { 11, 40, 0, 20, 8, 0 };
	static const uint8_t sizes[] = { 2, 2, 0, 1, 1, 0 };
	struct fathom_text_plan plan = { 0 };
	struct text t;

	(void)state;
	make(&t, &plan);
	assert_int_equal(fathom_text_plan_count(&plan, 0, true, &t.memory), 3);
	assert_true(fathom_text_plan_put(&plan, 0, true, &t.memory));
	assert_int_equal(t.n, 6);
	assert_memory_equal(t.done, "wwswws", 6);
	assert_memory_equal(t.at, order, 6);
	assert_memory_equal(t.sizes, sizes, 6);
	assert_memory_equal(t.bytes + 8, jump, sizeof jump);
	assert_memory_equal(t.bytes + 40, stub, sizeof stub);
	assert_int_equal(t.bytes[20], 0x55);
	assert_int_equal(fathom_text_plan_count(&plan, 0, true, &t.memory), 0);
	fathom_text_plan_clear(&plan);
}

static void what_leads_elsewhere_is_put_back_first(void **state)
{
	static const uint8_t order[] = { 8, 20, 0, 11, 0 };
	struct fathom_text_plan plan = { 0 };
	struct text t;

	(void)state;
	make(&t, &plan);
	assert_true(fathom_text_plan_put(&plan, 0, true, &t.memory));
	t.n = 0;
	assert_true(fathom_text_plan_put(&plan, 0, false, &t.memory));
	assert_int_equal(t.n, 5);
	assert_memory_equal(t.done, "wwsws", 5);
	assert_memory_equal(t.at, order, 5);
	assert_memory_equal(t.bytes + 8, nop, sizeof nop);
	assert_int_equal(t.bytes[20], 0);
	/* A stub stays. */
	assert_memory_equal(t.bytes + 40, stub, sizeof stub);
	fathom_text_plan_clear(&plan);
}

static void a_site_that_holds_something_else_is_left_alone(void **state)
{
	struct fathom_text_plan plan = { 0 };
	struct text t;

	(void)state;
	make(&t, &plan);
	/* A debugger's breakpoint. */
	t.bytes[8] = 0xcc;
	assert_true(fathom_text_plan_put(&plan, 0, true, &t.memory));
	assert_int_equal(t.bytes[8], 0xcc);
	assert_memory_equal(t.bytes + 9, nop + 1, sizeof nop - 1);
	assert_int_equal(t.bytes[20], 0x55);
	fathom_text_plan_clear(&plan);
}

static void a_write_that_fails_changes_nothing(void **state)
{
	struct fathom_text_plan plan = { 0 };
	struct text before, t;

	(void)state;
	make(&before, &plan);
	for (unsigned fails = 1; fails <= 4; fails++) {
		fathom_text_plan_clear(&plan);
		make(&t, &plan);
		t.fails = fails;
		assert_false(fathom_text_plan_put(&plan, 0, true, &t.memory));
		/* But for the stub, which nothing leads to. */
		assert_memory_equal(t.bytes, before.bytes, 40);
	}
	fathom_text_plan_clear(&plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_leads_elsewhere_is_written_last),
		cmocka_unit_test(what_leads_elsewhere_is_put_back_first),
		cmocka_unit_test(a_site_that_holds_something_else_is_left_alone),
		cmocka_unit_test(a_write_that_fails_changes_nothing),
	};

	return cmocka_run_group_tests_name("text_plan", tests, NULL, NULL);
}
