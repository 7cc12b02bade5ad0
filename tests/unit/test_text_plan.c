/* SPDX-License-Identifier: MIT */
/* Plans of changes to text, over a memory of 32 bytes that may refuse writes. */
#include "unit.h"

#include <string.h>

#include "host/patch/text_plan.h"

#define BASE UINT64_C(0x1000)

struct small {
	struct fathom_text_memory memory;
	int n_writes;
	int refused;     /* the write that fails, after half of its bytes; 0: none */
	uint64_t lowest; /* of the last write */
	size_t size;
	char bytes[33];
};

static bool is_within(uint64_t avma, size_t size)
{
	return avma >= BASE && avma + size <= BASE + 32;
}

static bool read_small(struct fathom_text_memory *m, uint64_t avma, void *to, size_t size)
{
	if (!is_within(avma, size))
		return false;
	memcpy(to, ((struct small *)m)->bytes + (avma - BASE), size);
	return true;
}

static bool write_small(struct fathom_text_memory *m, uint64_t avma, const void *from, size_t size)
{
	struct small *s = (struct small *)m;
	const bool is_refused = ++s->n_writes == s->refused;

	if (!is_within(avma, size))
		return false;
	memcpy(s->bytes + (avma - BASE), from, is_refused ? size / 2 : size);
	s->lowest = avma - BASE;
	s->size = size;
	return !is_refused;
}

static struct small small(void)
{
	return (struct small){ .memory = { .read = read_small, .write = write_small },
			       .bytes = "abcdefghijklmnopqrstuvwxyz012345" };
}

static void changes_are_made_and_undone(void **state)
{
	struct fathom_text_plan plan = { 0 };
	struct small s = small();

	(void)state;
	assert_true(fathom_text_plan_add(&plan, BASE + 4, "efg", "EFG", 3, 0));
	assert_true(fathom_text_plan_add(&plan, BASE, "ab", "AB", 2, 0));
	assert_int_equal(fathom_text_plan_count(&plan, 0, true, &s.memory), 2);
	assert_int_equal(fathom_text_plan_count(&plan, 0, false, &s.memory), 0);
	assert_true(fathom_text_plan_put(&plan, 0, true, &s.memory));
	assert_string_equal(s.bytes, "ABcdEFGhijklmnopqrstuvwxyz012345");
	assert_int_equal(s.lowest, 0);
	assert_true(fathom_text_plan_put(&plan, 0, true, &s.memory));
	assert_int_equal(s.n_writes, 2);
	assert_true(fathom_text_plan_put(&plan, 0, false, &s.memory));
	assert_string_equal(s.bytes, "abcdefghijklmnopqrstuvwxyz012345");
	assert_int_equal(s.lowest, 4);
	fathom_text_plan_clear(&plan);
}

static void what_something_else_has_changed_is_left_alone(void **state)
{
	struct fathom_text_plan plan = { 0 };
	struct small s = small();

	(void)state;
	assert_true(fathom_text_plan_add(&plan, BASE, "abX", "ABC", 3, 0));
	assert_true(fathom_text_plan_add(&plan, BASE + 31, "5a", "5A", 2, 0));
	assert_true(fathom_text_plan_add(&plan, BASE + 8, "ijk", "IJK", 3, 0));
	assert_true(fathom_text_plan_put(&plan, 0, true, &s.memory));
	assert_string_equal(s.bytes, "abcdefghIJKlmnopqrstuvwxyz012345");
	s.bytes[9] = '!';
	assert_true(fathom_text_plan_put(&plan, 0, false, &s.memory));
	assert_string_equal(s.bytes, "abcdefghI!Klmnopqrstuvwxyz012345");
	fathom_text_plan_clear(&plan);
}

static void changes_of_the_same_bytes_are_undone_in_reverse(void **state)
{
	struct fathom_text_plan plan = { 0 };
	struct small first = small(), second = small();

	(void)state;
	assert_true(fathom_text_plan_add(&plan, BASE, "abc", "ABC", 3, 0));
	assert_true(fathom_text_plan_put(&plan, 0, true, &first.memory));
	assert_true(fathom_text_plan_put(&plan, 0, true, &second.memory));
	assert_true(fathom_text_plan_add(&plan, BASE, "AB", "--", 2, 0));
	assert_true(fathom_text_plan_put(&plan, 1, true, &first.memory));
	assert_memory_equal(first.bytes, "--Cd", 4);
	/* The second memory has the first change only. */
	assert_true(fathom_text_plan_put(&plan, 0, false, &first.memory));
	assert_true(fathom_text_plan_put(&plan, 0, false, &second.memory));
	assert_string_equal(first.bytes, "abcdefghijklmnopqrstuvwxyz012345");
	assert_string_equal(second.bytes, first.bytes);
	fathom_text_plan_clear(&plan);
}

static void a_write_that_fails_takes_all_back(void **state)
{
	struct fathom_text_plan plan = { 0 };

	(void)state;
	assert_true(fathom_text_plan_add(&plan, BASE, "abcd", "ABCD", 4, 0));
	assert_true(fathom_text_plan_add(&plan, BASE + 9, "jklm", "JKLM", 4, 0));
	assert_true(fathom_text_plan_add(&plan, BASE + 18, "stuv", "STUV", 4, 0));
	for (int refused = 1; refused <= 3; refused++) {
		struct small s = small();

		s.refused = refused;
		assert_false(fathom_text_plan_put(&plan, 0, true, &s.memory));
		assert_string_equal(s.bytes, "abcdefghijklmnopqrstuvwxyz012345");
		s.refused = 0;
		assert_true(fathom_text_plan_put(&plan, 0, true, &s.memory));
		s.refused = s.n_writes + refused;
		assert_false(fathom_text_plan_put(&plan, 0, false, &s.memory));
		assert_string_equal(s.bytes, "ABCDefghiJKLMnopqrSTUVwxyz012345");
	}
	fathom_text_plan_clear(&plan);
}

static void only_bytes_that_differ_are_written_but_words_whole(void **state)
{
	struct fathom_text_plan plan = { 0 };
	struct small s = small();

	(void)state;
	assert_true(fathom_text_plan_add(&plan, BASE + 1, "bcdef", "bcDef", 5, 0));
	assert_true(fathom_text_plan_put(&plan, 0, true, &s.memory));
	assert_int_equal(s.lowest, 3);
	assert_int_equal(s.size, 1);
	fathom_text_plan_cut(&plan, 0);
	assert_true(fathom_text_plan_add(&plan, BASE + 8, "ijklmnop", "ijkLmnop", 8, 0));
	assert_true(fathom_text_plan_put(&plan, 0, true, &s.memory));
	assert_int_equal(s.lowest, 8);
	assert_int_equal(s.size, 8);
	assert_string_equal(s.bytes, "abcDefghijkLmnopqrstuvwxyz012345");
	fathom_text_plan_clear(&plan);
}

static void stubs_are_written_whatever_is_there_and_stay(void **state)
{
	struct fathom_text_plan plan = { 0 };
	struct small s = small();

	(void)state;
	assert_true(fathom_text_plan_add(&plan, BASE + 30, NULL, "!?", 2, 0));
	assert_true(fathom_text_plan_add(&plan, BASE, "a", "A", 1, 0));
	assert_true(fathom_text_plan_put(&plan, 0, true, &s.memory));
	assert_string_equal(s.bytes, "Abcdefghijklmnopqrstuvwxyz0123!?");
	assert_true(fathom_text_plan_put(&plan, 0, false, &s.memory));
	assert_string_equal(s.bytes, "abcdefghijklmnopqrstuvwxyz0123!?");
	fathom_text_plan_clear(&plan);
}

static void a_plan_follows_what_another_does_to_its_bytes(void **state)
{
	struct fathom_text_plan plan = { 0 }, toggles = { 0 };
	struct small s = small();

	(void)state;
	assert_true(fathom_text_plan_add(&plan, BASE + 6, "gh", "J1", 2, 0));
	assert_true(fathom_text_plan_add(&plan, BASE, "abc", "abC", 3, 0));
	assert_true(fathom_text_plan_add(&toggles, BASE + 6, "J1", "J2", 2, 0));
	fathom_text_plan_sort(&plan);
	assert_true(fathom_text_plan_put(&plan, 0, true, &s.memory));
	assert_true(fathom_text_plan_put(&toggles, 0, true, &s.memory));
	fathom_text_plan_follow(&plan, &toggles, true);
	assert_string_equal(s.bytes, "abCdefJ2ijklmnopqrstuvwxyz012345");
	assert_true(fathom_text_plan_put(&plan, 0, false, &s.memory));
	assert_string_equal(s.bytes, "abcdefghijklmnopqrstuvwxyz012345");
	fathom_text_plan_clear(&plan);
	fathom_text_plan_clear(&toggles);
}

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
	unsigned fails_to_synchronize; /* likewise */
	unsigned n_synchronized;
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
	return ++t->n_synchronized != t->fails_to_synchronize;
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

/* The kernel may refuse membarrier(2). */
static void where_processors_cannot_be_synchronized_nothing_changes(void **state)
{
	struct fathom_text_plan plan = { 0 };
	struct text before, t;

	(void)state;
	make(&before, &plan);
	for (unsigned fails = 1; fails <= 2; fails++) {
		fathom_text_plan_clear(&plan);
		make(&t, &plan);
		t.fails_to_synchronize = fails;
		assert_false(fathom_text_plan_put(&plan, 0, true, &t.memory));
		assert_memory_equal(t.bytes, before.bytes, 40);
	}
	fathom_text_plan_clear(&plan);
}

static void steps_have_a_largest_size(void **state)
{
	static const uint8_t old[FATHOM_TEXT_STEPS_SIZE + 1], bytes[sizeof old] = { 1 };
	struct fathom_text_plan plan = { 0 };

	(void)state;
	assert_true(fathom_text_plan_add_steps(&plan, 0, old, bytes, sizeof old - 1, 0));
	assert_false(fathom_text_plan_add_steps(&plan, 0, old, bytes, sizeof old, 0));
	assert_false(fathom_text_plan_add_steps(&plan, 0, old, bytes, 2, 2));
	assert_int_equal(plan.n, 1);
	fathom_text_plan_clear(&plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes_are_made_and_undone),
		cmocka_unit_test(what_something_else_has_changed_is_left_alone),
		cmocka_unit_test(changes_of_the_same_bytes_are_undone_in_reverse),
		cmocka_unit_test(a_write_that_fails_takes_all_back),
		cmocka_unit_test(only_bytes_that_differ_are_written_but_words_whole),
		cmocka_unit_test(stubs_are_written_whatever_is_there_and_stay),
		cmocka_unit_test(a_plan_follows_what_another_does_to_its_bytes),
		cmocka_unit_test(what_leads_elsewhere_is_written_last),
		cmocka_unit_test(what_leads_elsewhere_is_put_back_first),
		cmocka_unit_test(a_site_that_holds_something_else_is_left_alone),
		cmocka_unit_test(a_write_that_fails_changes_nothing),
		cmocka_unit_test(where_processors_cannot_be_synchronized_nothing_changes),
		cmocka_unit_test(steps_have_a_largest_size),
	};

	return cmocka_run_group_tests_name("text_plan", tests, NULL, NULL);
}
