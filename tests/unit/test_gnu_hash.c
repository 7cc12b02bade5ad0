/* SPDX-License-Identifier: MIT */
/* Hash tables and versions of the dynamic linker (safe/elf), made by hand. */
#include "unit.h"

#include <string.h>

#include "safe/elf/gnu_hash.h"
#include "safe/elf/version.h"

/* Words of 4 bytes in this machine's byte order. */
struct bytes {
	uint32_t word[64];
	size_t n;
};

static struct fathom_bytes bytes_of(const struct bytes *b)
{
	return (struct fathom_bytes){ (const uint8_t *)b->word, b->n * 4 };
}

static struct fathom_str str(const char *s)
{
	return (struct fathom_str){ s, (uint32_t)strlen(s) };
}

/* Returns the number of candidates for @name; *@ret is the last one. */
static int search(const struct fathom_hash_table *t, const char *name, uint32_t *ret)
{
	struct fathom_hash_search s;
	int n = 0;

	fathom_hash_search_init(&s, t, str(name));
	while (fathom_hash_search_next(&s, ret))
		n++;
	return n;
}

/*
 * GNU: 2 buckets, symbols 3 to 5, one word of filter that passes all. Hashes from "GNU Hash ELF
 * Sections": "" is 0x1505, "printf" 0x156b2bb8, "exit" 0x7c967e3f, "syscall" 0xbac212a0.
 */
static const struct bytes gnu = {
	{ 2, 3, 1, 5, 0xffffffff, 0xffffffff, 3, 5, 0x156b2bb8, 0xbac212a1, 0x7c967e3f }, 11
};

static void gnu_names_are_found(void **state)
{
	struct fathom_hash_table t;
	uint32_t i = 0;

	(void)state;
	assert_true(fathom_gnu_hash_init(&t, bytes_of(&gnu), true, false));
	/* Both hashes are even, so both names are in one bucket. */
	assert_int_equal(search(&t, "printf", &i), 1);
	assert_int_equal(i, 3);
	assert_int_equal(search(&t, "syscall", &i), 1);
	assert_int_equal(i, 4);
	assert_int_equal(search(&t, "exit", &i), 1);
	assert_int_equal(i, 5);
	assert_int_equal(search(&t, "puts", &i), 0);
	assert_int_equal(search(&t, "", &i), 0);
}

static void the_filter_is_asked_first(void **state)
{
	struct bytes b = gnu;
	struct fathom_hash_table t;
	uint32_t i;

	(void)state;
	/* "printf": bits 0x156b2bb8 % 64 = 56 and (0x156b2bb8 >> 5) % 64 = 29 of the word. */
	b.word[4] = UINT32_C(1) << 29;
	b.word[5] = UINT32_C(1) << (56 - 32);
	assert_true(fathom_gnu_hash_init(&t, bytes_of(&b), true, false));
	assert_int_equal(search(&t, "printf", &i), 1);
	assert_int_equal(search(&t, "exit", &i), 0);
	b.word[4] = 0;
	assert_int_equal(search(&t, "printf", &i), 0);
}

static void damaged_gnu_tables_end(void **state)
{
	struct bytes b = gnu;
	struct fathom_hash_table t;
	uint32_t i;

	(void)state;
	/* The chain has no end mark: the end of the bytes ends it. */
	b.word[9] &= ~UINT32_C(1);
	b.word[10] &= ~UINT32_C(1);
	assert_true(fathom_gnu_hash_init(&t, bytes_of(&b), true, false));
	assert_int_equal(search(&t, "printf", &i), 1);
	/* Buckets before the first symbol, and far after the last. */
	b.word[6] = 1;
	assert_int_equal(search(&t, "printf", &i), 0);
	b.word[6] = UINT32_MAX;
	assert_int_equal(search(&t, "printf", &i), 0);
	/* No buckets; no filter; a part of the table is missing. */
	b = gnu;
	b.word[0] = 0;
	assert_false(fathom_gnu_hash_init(&t, bytes_of(&b), true, false));
	b = gnu;
	b.word[2] = 0;
	assert_false(fathom_gnu_hash_init(&t, bytes_of(&b), true, false));
	b.word[2] = UINT32_MAX;
	assert_false(fathom_gnu_hash_init(&t, bytes_of(&b), true, false));
	for (b = gnu; b.n > 0; b.n--)
		if (fathom_gnu_hash_init(&t, bytes_of(&b), true, false))
			(void)search(&t, "exit", &i);
	/* An invalid shift. */
	b = gnu;
	b.word[3] = 77;
	assert_true(fathom_gnu_hash_init(&t, bytes_of(&b), true, false));
	(void)search(&t, "exit", &i);
}

/* gABI: 1 bucket, 4 symbols; 3 -> 1 -> 2. All names are in this bucket. */
static const struct bytes sysv = { { 1, 4, 3, 0, 2, 0, 1 }, 7 };

static void sysv_chains_are_followed(void **state)
{
	struct bytes b = sysv;
	struct fathom_hash_table t;
	uint32_t i;

	(void)state;
	assert_true(fathom_sysv_hash_init(&t, bytes_of(&b), 4, false));
	assert_int_equal(search(&t, "any", &i), 3);
	assert_int_equal(i, 2);
	/* A circle: as many steps as there are symbols. */
	b.word[5] = 3;
	assert_int_equal(search(&t, "any", &i), 4);
	/* A link out of the table. */
	b.word[2] = 4;
	assert_int_equal(search(&t, "any", &i), 0);
	b.word[1] = 0x40000000;
	assert_false(fathom_sysv_hash_init(&t, bytes_of(&b), 4, false));
	b.word[0] = 0;
	assert_false(fathom_sysv_hash_init(&t, bytes_of(&b), 4, false));
}

/* The gABI's hash: "printf" is 0x077905a6, "exit" 0x0006cf04 (its own function, by hand). */
static void sysv_buckets_are_chosen(void **state)
{
	const struct bytes b = { { 2, 3, 1, 2, 0, 0, 0 }, 7 };
	struct fathom_hash_table t;
	uint32_t i;

	(void)state;
	assert_true(fathom_sysv_hash_init(&t, bytes_of(&b), 4, false));
	assert_int_equal(search(&t, "printf", &i), 1);
	assert_int_equal(i, 1);
	/* "a" is 0x61. */
	assert_int_equal(search(&t, "a", &i), 1);
	assert_int_equal(i, 2);
}

static const char strings[] = "\0lib.so\0V_1\0V_2\0libc.so\0GLIBC_2.5\0GLIBC_2.6";

/* Three definitions and one need of two versions. */
static const uint16_t defined[] = {
	/* version, flags, index, names, hash (2), first name (2), next (2); name (2), next (2) */
	1, 1, 1, 1, 0, 0, 20, 0, 28, 0, 1,  0, 0, 0, /* the file */
	1, 0, 2, 1, 0, 0, 20, 0, 28, 0, 8,  0, 0, 0, /* V_1 */
	1, 0, 3, 2, 0, 0, 20, 0, 0,  0, 12, 0, 0, 0, /* V_2 */
};
static const uint16_t needed[] = {
	/* version, entries, file (2), first entry (2), next (2) */
	1, 2, 16, 0, 16, 0, 0, 0,
	/* hash (2), flags, number, name (2), next (2) */
	0, 0, 0, 4, 24, 0, 16, 0, /* GLIBC_2.5 */
	0, 0, 0, 5, 34, 0, 0, 0,  /* GLIBC_2.6 */
};
static const uint16_t numbers[] = { 0, 1, 2, 0x8003 };

static struct fathom_versions tables(void)
{
	return (struct fathom_versions){
		.numbers = { (const uint8_t *)numbers, sizeof numbers },
		.defined = { (const uint8_t *)defined, sizeof defined },
		.needed = { (const uint8_t *)needed, sizeof needed },
		.strings = { (const uint8_t *)strings, sizeof strings },
		.n_defined = 3,
		.n_needed = 1,
	};
}

static void versions_are_walked(void **state)
{
	static const struct {
		const char *name;
		uint16_t number;
		bool is_needed;
		bool is_base;
	} want[] = { { "lib.so", 1, false, true },
		     { "V_1", 2, false, false },
		     { "V_2", 3, false, false },
		     { "GLIBC_2.5", 4, true, false },
		     { "GLIBC_2.6", 5, true, false } };
	const struct fathom_versions v = tables();
	struct fathom_version_walk w;
	struct fathom_version got;

	(void)state;
	fathom_version_walk_init(&w, &v);
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		assert_true(fathom_version_next(&w, &got));
		assert_true(str_is(got.name, want[i].name));
		assert_int_equal(got.number, want[i].number);
		assert_int_equal(got.is_needed, want[i].is_needed);
		assert_int_equal(got.is_base, want[i].is_base);
	}
	assert_false(fathom_version_next(&w, &got));
	assert_int_equal(fathom_version_number(&v, 2), 2);
	assert_int_equal(fathom_version_number(&v, 3), 0x8003);
	assert_int_equal(fathom_version_number(&v, 4), FATHOM_VERSION_GLOBAL);
}

static void damaged_versions_end(void **state)
{
	struct fathom_versions v = tables();
	struct fathom_version_walk w;
	struct fathom_version got;
	uint16_t circle[sizeof needed / 2];
	int n;

	(void)state;
	/* Counts that are too high. */
	v.n_defined = v.n_needed = UINT32_MAX;
	fathom_version_walk_init(&w, &v);
	for (n = 0; fathom_version_next(&w, &got); n++)
		assert_true(n < 100);
	assert_int_equal(n, 5);
	/* A need that claims many entries, which lead nowhere. */
	memcpy(circle, needed, sizeof needed);
	circle[1] = 0xffff;
	circle[22] = 0xffff;
	circle[23] = 0xffff;
	v.needed.data = (const uint8_t *)circle;
	fathom_version_walk_init(&w, &v);
	for (n = 0; fathom_version_next(&w, &got); n++)
		assert_true(n < 100);
	/* Cut at every length. */
	for (v = tables(); v.needed.size; v.needed.size--) {
		v.defined.size = v.defined.size ? v.defined.size - 1 : 0;
		fathom_version_walk_init(&w, &v);
		for (n = 0; fathom_version_next(&w, &got); n++)
			assert_true(n < 100);
	}
	/* A name without an end. */
	v = tables();
	v.strings.size = 10;
	fathom_version_walk_init(&w, &v);
	assert_true(fathom_version_next(&w, &got));
	assert_true(fathom_version_next(&w, &got));
	assert_null(got.name.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gnu_names_are_found),
		cmocka_unit_test(the_filter_is_asked_first),
		cmocka_unit_test(damaged_gnu_tables_end),
		cmocka_unit_test(sysv_chains_are_followed),
		cmocka_unit_test(sysv_buckets_are_chosen),
		cmocka_unit_test(versions_are_walked),
		cmocka_unit_test(damaged_versions_end),
	};

	return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
