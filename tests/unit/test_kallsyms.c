/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/space/kernel/kallsyms.h"

static struct fathom_kallsyms parse(const char *text)
{
	struct fathom_kallsyms k;

	assert_int_equal(fathom_kallsyms_parse(strdup(text), strlen(text), &k), 0);
	return k;
}

/* Asserts that @avma is @name's, which starts at @start and has @size bytes; NULL: no name. */
static void assert_at(const struct fathom_kallsyms *k, uint64_t avma, const char *name,
		      uint64_t start, uint64_t size)
{
	struct fathom_kallsym_hit hit;
	const bool found = fathom_kallsyms_at(k, avma, &hit);

	if (!name) {
		assert_false(found);
		return;
	}
	assert_true(found);
	assert_int_equal(hit.name.size, strlen(name));
	assert_memory_equal(hit.name.data, name, strlen(name));
	assert_true(hit.start == start);
	assert_true(hit.size == size);
}

static void code_reaches_to_the_next_symbol(void **state)
{
	struct fathom_kallsyms k =
		parse("1000 T first\n1020 t second\n1100 W third\n1108 T _etext\n"
		      "2000 D data\n");

	(void)state;
	assert_at(&k, 0xfff, NULL, 0, 0);
	assert_at(&k, 0x1000, "first", 0x1000, 0x20);
	assert_at(&k, 0x101f, "first", 0x1000, 0x20);
	assert_at(&k, 0x1020, "second", 0x1020, 0xe0);
	assert_at(&k, 0x1107, "third", 0x1100, 8);
	assert_at(&k, 0x1108, "_etext", 0x1108, 0);
	assert_at(&k, 0x1109, NULL, 0, 0);
	assert_at(&k, 0x2000, "data", 0x2000, 0);
	assert_at(&k, 0x2001, NULL, 0, 0);
	fathom_kallsyms_deinit(&k);
}

static void code_that_no_code_follows_ends_with_its_page(void **state)
{
	struct fathom_kallsyms k =
		parse("1ff0 T last\n5000 R data\n7000 t one\t[a]\n7800 t two\t[b]\n"
		      "fffffffffffff010 t end\t[b]\n");

	(void)state;
	assert_at(&k, 0x1fff, "last", 0x1ff0, 0x10);
	assert_at(&k, 0x2000, NULL, 0, 0);
	/* The next symbol is another module's, before the end of the page: the first ends there. */
	assert_at(&k, 0x77ff, "one", 0x7000, 0x800);
	assert_at(&k, UINT64_MAX - 1, "end", UINT64_C(0xfffffffffffff010), 0xfef);
	fathom_kallsyms_deinit(&k);
}

static void pages_that_the_kernel_makes_hold_one_thing_each(void **state)
{
	struct fathom_kallsyms k = parse("1000 t ftrace_trampoline\t[__builtin__ftrace]\n"
					 "5000 t ftrace_trampoline\t[__builtin__ftrace]\n");
	struct fathom_str owner;

	(void)state;
	assert_at(&k, 0x1fff, "ftrace_trampoline", 0x1000, 0x1000);
	assert_at(&k, 0x2000, NULL, 0, 0);
	owner = fathom_kallsyms_owner(&k, 0x5001);
	assert_true(str_is(owner, "__builtin__ftrace"));
	assert_true(fathom_kallsyms_owner(&k, 0xfff).size == 0);
	fathom_kallsyms_deinit(&k);
}

static void of_several_names_the_library_has_its_preference(void **state)
{
	struct fathom_kallsyms k =
		parse("1000 T _text\n1000 T _stext\n1000 t local\n1000 T __inner\n1000 T outer\n"
		      "1000 W weaker\n1000 D table\n1010 T next\n"
		      "1010 T __sched_text_start\n1020 T __sched_text_end\n1030 T x\n");

	(void)state;
	assert_at(&k, 0x1000, "outer", 0x1000, 0x10);
	assert_at(&k, 0x1001, "outer", 0x1000, 0x10);
	assert_at(&k, 0x1010, "next", 0x1010, 0x10);
	assert_at(&k, 0x1020, "__sched_text_end", 0x1020, 0);
	assert_at(&k, 0x1021, NULL, 0, 0);
	fathom_kallsyms_deinit(&k);
}

static void order_is_not_relied_on(void **state)
{
	struct fathom_kallsyms k = parse("3000 t c\t[m]\n1020 T b\n2800 t a\t[m]\n1000 T a\n"
					 "1040 D d");
	struct fathom_kallsym_facts facts;

	(void)state;
	assert_int_equal(k.n_image, 3);
	assert_int_equal(k.n, 5);
	assert_at(&k, 0x1001, "a", 0x1000, 0x20);
	assert_at(&k, 0x2801, "a", 0x2800, 0x800);
	assert_true(fathom_kallsyms_in_image(&k, 0x1030) && !fathom_kallsyms_in_image(&k, 0x2800));
	/* The image's come first. */
	fathom_kallsyms_describe(&k, 0, &facts);
	assert_true(facts.avma == 0x1000 && !facts.owner.size && str_is(facts.name, "a"));
	fathom_kallsyms_describe(&k, 3, &facts);
	assert_true(facts.avma == 0x2800 && str_is(facts.owner, "m") && str_is(facts.name, "a"));
	assert_int_equal(fathom_kallsyms_size(&k, 0), 0x20);
	assert_int_equal(fathom_kallsyms_size(&k, 3), 0x800);
	fathom_kallsyms_deinit(&k);
}

static void what_names_no_address_is_left_out(void **state)
{
	static const char *const lines[] = {
		"0000000000000000 A fixed_percpu_data\n",
		"1000 A absolute\n",
		"1000 a absolute\t[m]\n",
		"1000 U undefined\t[m]\n",
		"1000 n note\n",
		"1000 t $x.3\n",
		"1000 t .Ltmp1\n",
		"1000 t\n",
		"1000 t \n",
		"1000  name\n",
		"1000\n",
		"\n",
		" 1000 t x\n",
		"10g0 t x\n",
		"00000000000001000 t x\n",
		"1000 t x\tm]\n",
		"1000 t x\t[m\n",
		"1000 t x\t[]\n",
		"1000 t \t[m]\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		struct fathom_kallsyms k = parse(lines[i]);

		assert_int_equal(k.n, 0);
		assert_at(&k, 0x1000, NULL, 0, 0);
		fathom_kallsyms_deinit(&k);
	}
}

static void addresses_that_are_all_zero_are_hidden(void **state)
{
	struct fathom_kallsyms k = parse("0000000000000000 T _text\n0000000000000000 t x\t[m]\n");

	(void)state;
	assert_true(k.is_hidden);
	fathom_kallsyms_deinit(&k);
	k = parse("0000000000000000 A percpu\n1000 T _text\n");
	assert_false(k.is_hidden);
	fathom_kallsyms_deinit(&k);
	k = parse("");
	assert_false(k.is_hidden);
	fathom_kallsyms_deinit(&k);
}

/* Writes @n symbols of 16 bytes each, from 0x10000 on, and two of a module; returns the path. */
static const char *write_many(char *path, size_t n)
{
	const int fd = mkstemp(path);
	FILE *f = fdopen(fd, "w");

	assert_non_null(f);
	fprintf(f, "0000000000000000 A percpu\n");
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%016zx t function%zu\n", 0x10000 + 16 * i, i);
	fprintf(f, "%016x t module\t[m]\n", 0x8000);
	fclose(f);
	return path;
}

static void a_part_knows_what_it_names(void **state)
{
	char path[] = "/tmp/fathom-unit-XXXXXX";
	const size_t n = 100000;
	struct fathom_kallsyms k;

	(void)state;
	write_many(path, n);
	assert_int_equal(fathom_kallsyms_read(path, 0x10000 + 16 * 500 + 3, NULL, &k, NULL), 0);
	assert_true(k.n < n && k.known_to > 0x10000 + 16 * 500 + 3);
	assert_at(&k, 0x10000 + 16 * 500 + 3, "function500", 0x10000 + 16 * 500, 16);
	assert_at(&k, k.known_to, NULL, 0, 0);
	fathom_kallsyms_deinit(&k);
	/* No symbol beyond the image ends it. */
	assert_int_equal(fathom_kallsyms_read(path, 0x10000 + 16 * n, NULL, &k, NULL), 0);
	assert_true(k.n == n + 1 && k.known_to == UINT64_MAX);
	assert_at(&k, 0x8001, "module", 0x8000, 0x1000);
	fathom_kallsyms_deinit(&k);
	unlink(path);
}

static void the_start_is_found_without_the_rest(void **state)
{
	char path[] = "/tmp/fathom-unit-XXXXXX";
	FILE *f = fdopen(mkstemp(path), "w");
	const char *name;
	uint64_t avma;

	(void)state;
	assert_non_null(f);
	fprintf(f, "0000000000000000 A x\n1000 t _text\t[m]\n2000 T my_text\n3000 T _stext\n"
		   "3000 T _text\n");
	fclose(f);
	assert_int_equal(fathom_kallsyms_read_start(path, NULL, &avma, &name, NULL), 0);
	assert_true(avma == 0x3000);
	assert_string_equal(name, "_stext");
	unlink(path);
	assert_int_equal(fathom_kallsyms_read_start(path, NULL, &avma, &name, NULL), FATHOM_E_OS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_reaches_to_the_next_symbol),
		cmocka_unit_test(code_that_no_code_follows_ends_with_its_page),
		cmocka_unit_test(pages_that_the_kernel_makes_hold_one_thing_each),
		cmocka_unit_test(of_several_names_the_library_has_its_preference),
		cmocka_unit_test(order_is_not_relied_on),
		cmocka_unit_test(what_names_no_address_is_left_out),
		cmocka_unit_test(addresses_that_are_all_zero_are_hidden),
		cmocka_unit_test(a_part_knows_what_it_names),
		cmocka_unit_test(the_start_is_found_without_the_rest),
	};

	return cmocka_run_group_tests_name("kallsyms", tests, NULL, NULL);
}
