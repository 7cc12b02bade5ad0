/* SPDX-License-Identifier: MIT */
/*
 * Commits refuse some changes, and have then changed nothing; the index is right after many of
 * them.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../hostile/alloc.h"
#include "fathom/jit.h"
#include "host/publish/plan.h"

#define PITCH 64
#define SLOTS 4096

static uint8_t code[SLOTS * PITCH];

static struct fathom_jit_function function(size_t slot, size_t size, const char *name)
{
	return (struct fathom_jit_function){ .size = sizeof(struct fathom_jit_function),
					     .code = code + slot * PITCH,
					     .code_size = size,
					     .name = name };
}

static struct fathom_jit_arena *arena_of(const struct fathom_jit_unwind *rule)
{
	const struct fathom_jit_arena_options o = { .size = sizeof o, .unwind = rule };
	struct fathom_jit_arena *arena = NULL;

	assert_int_equal(fathom_jit_arena_create(code, sizeof code, &o, &arena, NULL), FATHOM_OK);
	return arena;
}

/* Returns the name of the function that begins in @slot; NULL if none does. */
static const char *name_at(size_t slot)
{
	const struct fathom_jit_entry *e =
		fathom_jit_find(&fathom_jit_registry, (uintptr_t)code + slot * PITCH);

	return e ? e->body->name : NULL;
}

static size_t count(void)
{
	size_t n = 0;

	for (size_t i = 0; i < fathom_jit_registry.leaves.n; i++)
		n += fathom_jit_registry.leaves.items[i]->n;
	return n;
}

static void refused(struct fathom_jit_arena *a, const struct fathom_jit_changes *c, size_t number)
{
	const size_t before = count();
	struct fathom_errinfo info = { .err = FATHOM_OK };

	assert_int_equal(fathom_jit_commit(a, c, &info), FATHOM_E_ARGUMENT);
	assert_int_equal(info.err, FATHOM_E_ARGUMENT);
	assert_int_equal(info.offset, number);
	assert_true(*info.what);
	assert_int_equal(count(), before);
}

static void what_cannot_be_is_refused_as_a_whole(void **state)
{
	struct fathom_jit_arena *a = arena_of(NULL);
	const struct fathom_jit_function first = function(10, PITCH, "first");
	struct fathom_jit_function pair[2] = { function(20, PITCH, "good"), first };
	struct fathom_jit_changes c = { .size = sizeof c, .add = pair, .n_add = 2 };
	const void *gone[2] = { code + 10 * PITCH, code + 10 * PITCH };
	const struct fathom_jit_move move = { code + 10 * PITCH, code + sizeof code - 8 };
	struct fathom_jit_unwind rule = { .size = sizeof rule,
					  .kind = FATHOM_JIT_RESERVED,
					  .reserved = { 1 } };
	const struct fathom_jit_line line = { .line = 1, .reserved = 1 };

	(void)state;
	assert_int_equal(fathom_jit_add(a, &first, NULL), FATHOM_OK);
	/* The same place; a part of it; from before it. */
	refused(a, &c, 1);
	assert_null(name_at(20));
	pair[1].code = code + 10 * PITCH + 8;
	refused(a, &c, 1);
	pair[1].code = code + 9 * PITCH + 8;
	refused(a, &c, 1);
	/* Both of one commit. */
	pair[1].code = code + 20 * PITCH + 1;
	refused(a, &c, 1);
	/* No name, no code, outside. */
	pair[1] = function(30, PITCH, "");
	refused(a, &c, 1);
	pair[1] = function(30, 0, "empty");
	refused(a, &c, 1);
	pair[1] = function(SLOTS - 1, PITCH + 1, "outside");
	refused(a, &c, 1);
	c = (struct fathom_jit_changes){ .size = sizeof c, .remove = gone, .n_remove = 2 };
	refused(a, &c, 1);
	gone[1] = code + 20 * PITCH;
	refused(a, &c, 1);
	c = (struct fathom_jit_changes){ .size = sizeof c, .move = &move, .n_move = 1 };
	refused(a, &c, 0);
	/* What a later version may mean by it is unknown to this one. */
	pair[1] = function(30, PITCH, "reserved");
	pair[1].reserved[3] = 1;
	c = (struct fathom_jit_changes){ .size = sizeof c, .add = pair, .n_add = 2 };
	refused(a, &c, 1);
	pair[1] = function(30, PITCH, "rule");
	pair[1].unwind = &rule;
	refused(a, &c, 1);
	rule.reserved[0] = 0;
	rule.size = 0;
	refused(a, &c, 1);
	pair[1] = function(30, PITCH, "lines");
	pair[1].file = "a.lang";
	pair[1].lines = &line;
	pair[1].n_lines = 1;
	refused(a, &c, 1);
	c.n_add = 1;
	c.reserved[0] = 1;
	refused(a, &c, 0);
	assert_string_equal(name_at(10), "first");
	assert_int_equal(fathom_jit_remove(a, code + 10 * PITCH, NULL), FATHOM_OK);
	assert_int_equal(fathom_jit_remove(a, code + 10 * PITCH, NULL), FATHOM_E_ARGUMENT);
	fathom_jit_arena_destroy(a);
	assert_int_equal(count(), 0);
}

/* The cause, the number of the change and that of its part, and the text of all that. */
static void blamed(struct fathom_jit_arena *a, const struct fathom_jit_function *bad,
		   enum fathom_cause cause, uint32_t part, const char *text)
{
	const struct fathom_jit_function both[2] = { function(20, PITCH, "good"), *bad };
	const struct fathom_jit_changes c = { .size = sizeof c, .add = both, .n_add = 2 };
	struct fathom_errinfo info;
	char line[200];

	assert_int_equal(fathom_jit_commit(a, &c, &info), FATHOM_E_ARGUMENT);
	assert_int_equal(info.cause, cause);
	assert_int_equal(info.offset, 1);
	assert_int_equal(info.part, part);
	(void)fathom_errinfo_format(&info, line, sizeof line);
	assert_string_equal(line, text);
}

static void errors_name_the_part_that_is_wrong(void **state)
{
	struct fathom_jit_arena *a = arena_of(NULL);
	const struct fathom_jit_event events[3] = { { 1, 8, 0, FATHOM_JIT_SUB, 0 },
						    { 2, 8, 0, FATHOM_JIT_ADD, 0 },
						    { 3, 8, 0, FATHOM_JIT_ADD, 0 } };
	const struct fathom_jit_line lines[2] = { { .offset = 4, .line = 1 },
						  { .offset = 3, .line = 2 } };
	const struct fathom_jit_inline copies[2] = { { .begin = 0, .end = 1, .function = "f" },
						     { .begin = 2, .end = 2, .function = "g" } };
	struct fathom_jit_unwind rule = {
		.size = sizeof rule, .kind = FATHOM_JIT_EVENTS, .events = events, .n_events = 3
	};
	struct fathom_jit_function f = function(30, PITCH, "f");
	struct fathom_errinfo info;
	struct fathom_jit_changes forgotten = { .n_add = 1 };
	const struct fathom_jit_arena_options options = { .flags = 0 };
	struct fathom_jit_arena *b = NULL;

	(void)state;
	f.unwind = &rule;
	blamed(a, &f, FATHOM_CAUSE_EVENT, 2,
	       "change 1, event 2: events: the stack pointer leaves the frame");
	rule.size = 0;
	blamed(a, &f, FATHOM_CAUSE_CHANGE, 0,
	       "change 1: unwind: .size is not sizeof(struct fathom_jit_unwind)");
	f = function(30, PITCH, "f");
	f.file = "a.lang";
	f.lines = lines;
	f.n_lines = 2;
	blamed(a, &f, FATHOM_CAUSE_LINE, 1,
	       "change 1, line 1: lines: not in order, or after the end of the code");
	f.n_lines = 0;
	f.inlines = copies;
	f.n_inlines = 2;
	blamed(a, &f, FATHOM_CAUSE_INLINE, 1,
	       "change 1, inline 1: inlines: empty, after the end of the code, or without a name");
	f = function(30, PITCH, "");
	blamed(a, &f, FATHOM_CAUSE_CHANGE, 0, "change 1: function: without a name");
	/* A size that was forgotten, also where the whole struct was. */
	f = function(30, PITCH, "f");
	f.size = 0;
	assert_int_equal(fathom_jit_add(a, &f, &info), FATHOM_E_ARGUMENT);
	assert_string_equal(info.what, "function: .size is not sizeof(struct fathom_jit_function)");
	assert_int_equal(fathom_jit_commit(a, &forgotten, &info), FATHOM_E_ARGUMENT);
	assert_string_equal(info.what, "changes: .size is not sizeof(struct fathom_jit_changes)");
	assert_int_equal(fathom_jit_arena_create(code, PITCH, &options, &b, &info),
			 FATHOM_E_ARGUMENT);
	assert_string_equal(info.what,
			    "options: .size is not sizeof(struct fathom_jit_arena_options)");
	fathom_jit_arena_destroy(a);
	assert_int_equal(count(), 0);
}

static void a_range_is_removed_with_all_that_reaches_into_it(void **state)
{
	struct fathom_jit_arena *a = arena_of(NULL);
	struct fathom_jit_arena *other = arena_of(NULL);
	struct fathom_jit_function f = function(0, PITCH, "f");

	(void)state;
	for (size_t slot = 0; slot < 10; slot++) {
		f = function(slot, PITCH - 8, "f");
		assert_int_equal(fathom_jit_add(slot == 5 ? other : a, &f, NULL), FATHOM_OK);
	}
	/* Between two functions, and nothing at all. */
	assert_int_equal(fathom_jit_remove_range(a, code + PITCH - 8, 8, NULL), FATHOM_OK);
	assert_int_equal(fathom_jit_remove_range(a, code + PITCH, 0, NULL), FATHOM_OK);
	assert_int_equal(count(), 10);
	/* From the last byte of 2 to the first of 7; 5 is the other arena's. */
	assert_int_equal(fathom_jit_remove_range(a, code + 3 * PITCH - 9, 4 * PITCH + 10, NULL),
			 FATHOM_OK);
	for (size_t slot = 0; slot < 10; slot++)
		assert_int_equal(name_at(slot) != NULL, slot < 2 || slot == 5 || slot > 7);
	/* Its memory can be used again. */
	f = function(3, PITCH, "again");
	assert_int_equal(fathom_jit_add(a, &f, NULL), FATHOM_OK);
	assert_int_equal(fathom_jit_remove_range(a, code, SIZE_MAX, NULL), FATHOM_OK);
	assert_int_equal(count(), 1);
	fathom_jit_arena_destroy(a);
	fathom_jit_arena_destroy(other);
	assert_int_equal(count(), 0);
}

static void arenas_with_a_rule_overlap_no_other(void **state)
{
	const struct fathom_jit_unwind rule = { .size = sizeof rule, .kind = FATHOM_JIT_RESERVED };
	const struct fathom_jit_unwind events = { .size = sizeof events,
						  .kind = FATHOM_JIT_EVENTS };
	const struct fathom_jit_arena_options of_all = { .size = sizeof of_all, .unwind = &events };
	struct fathom_jit_function f = function(1, PITCH, "has its own");
	struct fathom_jit_arena *a = arena_of(&rule);
	struct fathom_jit_arena *b = NULL;
	struct fathom_errinfo info;

	(void)state;
	assert_int_equal(fathom_jit_arena_create(code + sizeof code - 1, 8, NULL, &b, &info),
			 FATHOM_E_ARGUMENT);
	assert_int_equal(fathom_jit_arena_create(code, 0, NULL, &b, &info), FATHOM_E_ARGUMENT);
	assert_int_equal(fathom_jit_arena_create(code + sizeof code, 8, &of_all, &b, &info),
			 FATHOM_E_ARGUMENT);
	{
		char folder[300];
		struct fathom_jit_arena_options o = { .size = sizeof o, .consumers = 1u << 29 };

		assert_int_equal(fathom_jit_arena_create(code + sizeof code, 8, &o, &b, &info),
				 FATHOM_E_ARGUMENT);
		memset(folder, 'a', sizeof folder);
		folder[sizeof folder - 1] = '\0';
		o = (struct fathom_jit_arena_options){ .size = sizeof o, .folder = folder };
		assert_int_equal(fathom_jit_arena_create(code + sizeof code, 8, &o, &b, &info),
				 FATHOM_E_ARGUMENT);
	}
	f.unwind = &rule;
	assert_int_equal(fathom_jit_add(a, &f, &info), FATHOM_E_ARGUMENT);
	f.unwind = NULL;
	assert_int_equal(fathom_jit_add(a, &f, &info), FATHOM_OK);
	fathom_jit_arena_destroy(a);
	assert_int_equal(count(), 0);
}

/* All leaves are in order, within their capacity, few, and without gaps in what they say. */
static void check_leaves(const char *const *names)
{
	const struct fathom_jit_registry *r = &fathom_jit_registry;
	uint64_t end = 0;
	size_t n = 0;

	assert_true(r->leaves.n <= FATHOM_JIT_MOST_LEAVES);
	for (size_t i = 0; i < r->leaves.n; i++) {
		const struct fathom_jit_leaf *l = r->leaves.items[i];

		assert_true(l->n && l->n <= r->capacity);
		for (size_t k = 0; k < l->n; k++) {
			assert_true(l->entries[k]->low >= end);
			end = fathom_jit_high(l->entries[k]);
		}
		n += l->n;
	}
	for (size_t i = 0; i < SLOTS; i++) {
		const char *name = name_at(i);

		assert_true((name != NULL) == (names[i] != NULL));
		if (name)
			assert_string_equal(name, names[i]);
		n -= name != NULL;
	}
	assert_int_equal(n, 0);
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

/* Commits of some changes each, at random places: against an array that says what must be there. */
static void the_index_is_what_was_committed(void **state)
{
	static const char *names[SLOTS];
	static char texts[64][8];
	struct fathom_jit_arena *a = arena_of(NULL);
	uint32_t seed = 1;

	(void)state;
	for (size_t i = 0; i < 64; i++)
		(void)snprintf(texts[i], sizeof texts[i], "f%zu", i);
	for (int round = 0; round < 3000; round++) {
		struct fathom_jit_function add[16];
		struct fathom_jit_move move[4];
		const void *gone[16];
		struct fathom_jit_changes c = {
			.size = sizeof c, .add = add, .move = move, .remove = gone
		};

		for (int k = 0; k < 16; k++) {
			const size_t slot = next_random(&seed) % SLOTS;
			const size_t to = next_random(&seed) % SLOTS;
			bool used = false;

			/* One change for each place in a commit. */
			for (size_t i = 0; i < c.n_add; i++)
				used |= add[i].code == code + slot * PITCH;
			for (size_t i = 0; i < c.n_move; i++)
				used |= move[i].to == code + slot * PITCH ||
					move[i].from == code + slot * PITCH;
			if (used)
				continue;
			if (!names[slot]) {
				names[slot] = texts[slot % 64];
				add[c.n_add++] = function(slot, 1 + slot % PITCH, names[slot]);
			} else if (!names[to] && c.n_move < 4 && c.n_add == 0) {
				move[c.n_move++] = (struct fathom_jit_move){ code + slot * PITCH,
									     code + to * PITCH };
				names[to] = names[slot];
				names[slot] = NULL;
			} else if (c.n_add == 0 && c.n_move == 0 && round % 3) {
				gone[c.n_remove++] = code + slot * PITCH;
				names[slot] = NULL;
			}
		}
		assert_int_equal(fathom_jit_commit(a, &c, NULL), FATHOM_OK);
		if (round % 100 == 0)
			check_leaves(names);
	}
	check_leaves(names);
	fathom_jit_arena_destroy(a);
	assert_int_equal(count(), 0);
}

static void leaves_stay_few_however_many_functions_come(void **state)
{
	static uint8_t many[1 << 21];
	struct fathom_jit_arena *a = NULL;

	(void)state;
	assert_int_equal(fathom_jit_arena_create(many, sizeof many, NULL, &a, NULL), FATHOM_OK);
	for (size_t i = 0; i < 60000; i++) {
		/* From three places that grow. */
		const size_t at = (i % 3) * (sizeof many / 3) + i / 3 * 32;
		const struct fathom_jit_function f = {
			.size = sizeof f, .code = many + at, .code_size = 32, .name = "one of many"
		};

		assert_int_equal(fathom_jit_add(a, &f, NULL), FATHOM_OK);
	}
	assert_int_equal(count(), 60000);
	assert_true(fathom_jit_registry.leaves.n <= FATHOM_JIT_MOST_LEAVES);
	fathom_jit_arena_destroy(a);
}

/* Every allocation of a commit fails once: then it has changed nothing. */
static void without_memory_nothing_is_half_done(void **state)
{
	static const struct fathom_jit_event push[] = { { 1, 0, 3, FATHOM_JIT_PUSH, 0 } };
	const struct fathom_jit_unwind rule = {
		.size = sizeof rule, .kind = FATHOM_JIT_EVENTS, .events = push, .n_events = 1
	};
	const struct fathom_jit_line line = { 0, 1, 1, 0, "a file of its own" };
	struct fathom_jit_arena *a = arena_of(NULL);
	struct fathom_jit_function old = function(3, PITCH, "old");
	struct fathom_jit_function f = function(5, PITCH, "new");
	const struct fathom_jit_move move = { old.code, code + 7 * PITCH };
	const struct fathom_jit_changes c = {
		.size = sizeof c, .move = &move, .n_move = 1, .add = &f, .n_add = 1
	};
	fathom_err err = FATHOM_E_MEMORY;
	long n;

	(void)state;
	f.unwind = &rule;
	f.lines = &line;
	f.n_lines = 1;
	assert_int_equal(fathom_jit_add(a, &old, NULL), FATHOM_OK);
	for (n = 1; alloc_is_ours && err && n < 100; n++) {
		allocations = 0;
		fail_after = n;
		err = fathom_jit_commit(a, &c, NULL);
		fail_after = 0;
		assert_true(!err || err == FATHOM_E_MEMORY);
		assert_int_equal(count(), err ? 1 : 2);
		assert_true((name_at(3) != NULL) == (err != 0));
	}
	assert_true(!alloc_is_ours || n > 8);
	fathom_jit_arena_destroy(a);
	assert_int_equal(count(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_cannot_be_is_refused_as_a_whole),
		cmocka_unit_test(errors_name_the_part_that_is_wrong),
		cmocka_unit_test(a_range_is_removed_with_all_that_reaches_into_it),
		cmocka_unit_test(arenas_with_a_rule_overlap_no_other),
		cmocka_unit_test(the_index_is_what_was_committed),
		cmocka_unit_test(leaves_stay_few_however_many_functions_come),
		cmocka_unit_test(without_memory_nothing_is_half_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
