/* SPDX-License-Identifier: MIT */
/* Which names are demangled, and as what: the rule of src/host/demangle.h. */
#include "unit.h"

#include <string.h>

#include "host/base/demangle.h"

struct name {
	const char *linkage;
	bool ada;           /* the unit's language is Ada */
	const char *wanted; /* NULL: not touched */
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
	/* GNAT, only where it is Ada. */
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
	/* What only looks like it. */
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
	struct fathom_array out = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const struct name *n = &names[i];
		const struct fathom_str s = { n->linkage, (uint32_t)strlen(n->linkage) };
		bool done;

		out.n = 0;
		done = fathom_demangle(s, n->ada, &out) == FATHOM_OK;
		if (done != (n->wanted != NULL))
			fail_msg("%s", n->linkage);
		if (done && (out.n != strlen(n->wanted) || memcmp(out.data, n->wanted, out.n) != 0))
			fail_msg("%s: %.*s", n->linkage, (int)out.n, (const char *)out.data);
		assert_true(done || out.n == 0);
	}
	fathom_array_deinit(&out);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_are_kept),
		cmocka_unit_test(suffixes_of_clones_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
