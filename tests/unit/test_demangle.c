/* SPDX-License-Identifier: MIT */
/* Which names are demangled, and to what: the rule of src/host/base/demangle.h. */
#include "unit.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "../hostile/alloc.h"
#include "host/base/demangle.h"
#include "safe/base/limits.h"

struct name {
	const char *linkage;
	bool ada;           /* the unit's language is Ada */
	const char *wanted; /* NULL: left as it is */
};

static const struct name names[] = {
	/* Itanium C++ ABI, 5.1. */
	{ "_Z3fooi", false, "foo(int)" },
	{ "_ZN2ns1SC1Ev", false, "ns::S::S()" },
	{ "_ZNK2ns1SplERKS0_", false, "ns::S::operator+(ns::S const&) const" },
	{ "_ZZ4mainENKUliE_clEi", false, "main::{lambda(int)#1}::operator()(int) const" },
	{ "_ZL3barPKc", false, "bar(char const*)" },
	{ "_Z3fooi.cold", false, "foo(int) [clone .cold]" },
	/* Rust, both schemes (RFC 2603). */
	{ "_ZN4core3fmt5write17h0123456789abcdefE", false, "core::fmt::write" },
	{ "_RNvCs1234_7mycrate3foo", false, "mycrate::foo" },
	/* D ABI, "Name Mangling". */
	{ "_D6module4funcFiZi", false, "module.func(int)" },
	{ "_D6shapes__T5twiceTiZQjFiZi", false, "shapes.twice!(int).twice(int)" },
	{ "_D8demangle22__T4testVG3ua3_616263Zv", false, "demangle.test!(\"abc\")" },
	{ "_D1fFHiiHQeQgHQgQiZv", false,
	  "f(int[int], int[int][int[int]], int[int][int[int]][int[int][int[int]]])" },
	/* GNAT, only if the language is Ada. */
	{ "shapes__inner__scale", true, "shapes.inner.scale" },
	{ "shapes__inner__scale", false, NULL },
	{ "_ada_start", true, "start" },
	{ "_ada_start", false, NULL },
	{ "Mixed_Case", true, NULL },
	{ "_Z3fooi", true, "foo(int)" },
	/* Cinder's own tests of its symbolizer's demangler. */
	{ "PyObject_Size", false, NULL },
	{ "_ZN3jit7Runtime3getEv", false, "jit::Runtime::get()" },
	{ "_ZWTFBBQ", false, NULL },
	/* Names that only look mangled. */
	{ "main", false, NULL },
	{ "_Znotmangled", false, NULL },
	{ "_Rest", false, NULL },
	{ "_DYNAMIC", false, NULL },
	{ "_Z", false, NULL },
	{ "__Z3fooi", false, NULL },
	{ "Z3fooi", false, NULL },
};

static void rules_are_kept(void **state)
{
	struct fathom_bytes_array out = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const struct name *n = &names[i];
		const struct fathom_str s = { n->linkage, (uint32_t)strlen(n->linkage) };
		bool done;

		out.n = 0;
		done = fathom_demangle(s, n->ada, &out) == FATHOM_OK;
		if (done != (n->wanted != NULL))
			fail_msg("%s", n->linkage);
		if (done &&
		    (out.n != strlen(n->wanted) || memcmp(out.items, n->wanted, out.n) != 0))
			fail_msg("%s: %.*s", n->linkage, (int)out.n, out.items);
		assert_true(done || out.n == 0);
	}
	fathom_array_free(&out);
}

static void suffixes_of_clones_are_found(void **state)
{
	static const struct {
		const char *name;
		uint32_t at;
	} suffixed[] = {
		{ "foo.cold", 3 },
		{ "foo.part.0", 3 },
		{ "foo.constprop.0.isra.1", 3 },
		{ "_Z3fooi.llvm.123", 7 },
		{ "foo.lto_priv.0", 3 },
		{ "inner.0", 7 },
		{ "foo", 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof suffixed / sizeof *suffixed; i++) {
		const struct fathom_str s = { suffixed[i].name,
					      (uint32_t)strlen(suffixed[i].name) };

		assert_int_equal(fathom_clone_suffix(s), suffixed[i].at);
	}
}

/* Demangles the name @n; fails the test unless it becomes n->wanted, or memory ran out. */
static fathom_err demangle(const struct name *n)
{
	const struct fathom_str s = { n->linkage, (uint32_t)strlen(n->linkage) };
	struct fathom_bytes_array out = { 0 };
	const fathom_err err = fathom_demangle(s, n->ada, &out);

	if (fail_after) /* which is of one thread */
		fail_after = 0;
	if (err == FATHOM_E_MEMORY ? out.n != 0
				   : err != FATHOM_OK || out.n != strlen(n->wanted) ||
					     memcmp(out.items, n->wanted, out.n) != 0)
		fail_msg("%s: %d, %.*s", n->linkage, (int)err, (int)out.n, out.items);
	fathom_array_free(&out);
	return err;
}

static void without_memory_names_are_not_demangled(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		size_t before;
		long failed = 0;

		if (!names[i].wanted)
			continue;
		assert_int_equal(demangle(&names[i]), FATHOM_OK);
		before = mallinfo2().uordblks;
		for (long n = 1; failed == n - 1; n++) {
			allocations = 0;
			fail_after = n;
			failed += demangle(&names[i]) == FATHOM_E_MEMORY;
		}
		/* All memory allocated since the start has been freed. */
		if (mallinfo2().uordblks != before)
			fail_msg("%s: %zu bytes are lost", names[i].linkage,
				 mallinfo2().uordblks - before);
		/* When allocations are counted, the text itself is one. */
		assert_true(failed || !allocations);
	}
}

static void *demangle_again_and_again(void *wrong)
{
	for (int i = 0; i < 2000; i++) {
		const struct name *n = &names[(size_t)i % (sizeof names / sizeof *names)];

		if (n->wanted && demangle(n))
			*(unsigned *)wrong += 1;
	}
	return NULL;
}

static void threads_demangle_each_for_itself(void **state)
{
	pthread_t id[4];
	unsigned wrong[4] = { 0 };

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&id[i], NULL, demangle_again_and_again, &wrong[i]),
				 0);
	for (int i = 0; i < 4; i++) {
		(void)pthread_join(id[i], NULL);
		assert_int_equal(wrong[i], 0);
	}
}

/* Each parameter of this D function is a map whose key and value are the previous parameter. */
static void what_grows_without_end_is_left(void **state)
{
	char text[256] = "_D1fFHiiHQeQg";
	struct fathom_bytes_array out = { 0 };

	(void)state;
	for (int i = 0; i < 40; i++)
		strcat(text, "HQgQi");
	strcat(text, "Zv");
	assert_int_equal(
		fathom_demangle((struct fathom_str){ text, (uint32_t)strlen(text) }, false, &out),
		FATHOM_END);
	assert_int_equal(out.n, 0);
	fathom_array_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_are_kept),
		cmocka_unit_test(suffixes_of_clones_are_found),
		cmocka_unit_test(without_memory_names_are_not_demangled),
		cmocka_unit_test(threads_demangle_each_for_itself),
		cmocka_unit_test(what_grows_without_end_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
