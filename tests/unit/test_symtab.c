/* SPDX-License-Identifier: MIT */
/* The rule that chooses among the names of one address (safe/elf/symtab.h), as a table. */
#include "unit.h"

#include <string.h>

#include "host/symbol/spelling.h"
#include "safe/elf/symtab.h"

struct name {
	const char *name;
	uint8_t type;
	uint8_t bind;
	uint64_t size;
	bool old_version;
};

struct rule {
	const char *why;
	struct name winner;
	struct name loser;
};

#define FUNC(name, bind) { name, STT_FUNC, bind, 16, false }

static const struct rule rules[] = {
	{ "fewer leading underscores", FUNC("printf", STB_GLOBAL), FUNC("_IO_printf", STB_GLOBAL) },
	{ "fewer leading underscores", FUNC("write", STB_WEAK), FUNC("__write", STB_GLOBAL) },
	{ "_IO_ counts as one more", FUNC("_foo", STB_GLOBAL), FUNC("_IO_a", STB_GLOBAL) },
	{ "exported before local", FUNC("__write", STB_GLOBAL), FUNC("write", STB_LOCAL) },
	{ "exported before local", FUNC("__libc_malloc", STB_WEAK), FUNC("malloc", STB_LOCAL) },
	{ "global before weak", FUNC("zeta", STB_GLOBAL), FUNC("alpha", STB_WEAK) },
	{ "unique counts as exported", FUNC("b", STB_GNU_UNIQUE), FUNC("a", STB_LOCAL) },
	{ "typed before untyped",
	  FUNC("__long_local_name", STB_LOCAL),
	  { "a", STT_NOTYPE, STB_GLOBAL, 16, false } },
	{ "sized before sizeless",
	  FUNC("_local", STB_LOCAL),
	  { "a", STT_FUNC, STB_GLOBAL, 0, false } },
	{ "default version",
	  FUNC("memcpy", STB_GLOBAL),
	  { "memcpy", STT_FUNC, STB_GLOBAL, 16, true } },
	{ "shorter", FUNC("stat", STB_GLOBAL), FUNC("stat64", STB_GLOBAL) },
	{ "first in byte order", FUNC("abc", STB_GLOBAL), FUNC("abd", STB_GLOBAL) },
	{ "a mangled prefix is no underscore", FUNC("_ZN1A1fEv", STB_GLOBAL),
	  FUNC("_alias_of_it", STB_GLOBAL) },
	{ "a mangled prefix is no underscore", FUNC("_RNvC1a1b", STB_GLOBAL),
	  FUNC("_alias_of_it", STB_GLOBAL) },
	{ "of the vDSO what the kernel documents", FUNC("__vdso_clock_gettime", STB_GLOBAL),
	  FUNC("clock_gettime", STB_WEAK) },
	{ "constructors: C1 before C2", FUNC("_ZN1AC1Ev", STB_WEAK), FUNC("_ZN1AC2Ev", STB_WEAK) },
	{ "an IFUNC is typed",
	  { "strlen", STT_GNU_IFUNC, STB_GLOBAL, 16, false },
	  { "a", STT_NOTYPE, STB_GLOBAL, 16, false } },
};

static struct fathom_contender candidate(const struct name *n)
{
	return (struct fathom_contender){
		.symbol = { .type = n->type, .bind = n->bind, .size = n->size },
		.name = { n->name, (uint32_t)strlen(n->name) },
		.default_version = !n->old_version,
	};
}

static void the_winner_wins_from_either_side(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		const struct fathom_contender winner = candidate(&rules[i].winner);
		const struct fathom_contender loser = candidate(&rules[i].loser);

		if (!fathom_symbol_preferred(&winner, &loser) ||
		    fathom_symbol_preferred(&loser, &winner))
			fail_msg("%s: %s against %s", rules[i].why, rules[i].winner.name,
				 rules[i].loser.name);
	}
}

/* Otherwise the name shown would depend on the order of the symbol table. */
static void the_rule_is_an_order(void **state)
{
	struct fathom_contender all[2 * sizeof rules / sizeof *rules];
	const size_t n = sizeof all / sizeof *all;

	(void)state;
	for (size_t i = 0; i < n; i++)
		all[i] = candidate(i % 2 ? &rules[i / 2].loser : &rules[i / 2].winner);
	for (size_t a = 0; a < n; a++)
		for (size_t b = 0; b < n; b++)
			for (size_t c = 0; c < n; c++)
				if (fathom_symbol_preferred(&all[a], &all[b]) &&
				    fathom_symbol_preferred(&all[b], &all[c]))
					assert_true(fathom_symbol_preferred(&all[a], &all[c]));
}

struct namable {
	const char *name;
	uint16_t machine;
	uint8_t type;
	uint32_t section;
	bool namable;
};

static const struct namable marks[] = {
	{ "main", EM_X86_64, STT_FUNC, 1, true },
	{ "main", EM_X86_64, STT_FUNC, SHN_UNDEF, false },
	{ "abs", EM_X86_64, STT_NOTYPE, FATHOM_SHN(SHN_ABS), false },
	{ "main", EM_X86_64, STT_FUNC, SHN_ABS, true }, /* the section with this number */
	{ "file.c", EM_X86_64, STT_FILE, 1, false },
	{ ".text", EM_X86_64, STT_SECTION, 1, false },
	{ "tls", EM_X86_64, STT_TLS, 1, false },
	{ ".Ltmp7", EM_X86_64, STT_NOTYPE, 1, false },
	{ ".L_local", EM_X86_64, STT_FUNC, 1, false },
	{ ".annobin_x.c", EM_X86_64, STT_NOTYPE, 1, false },
	{ "L0\001", EM_X86_64, STT_NOTYPE, 1, false },
	{ "$x", EM_AARCH64, STT_NOTYPE, 1, false },
	{ "$d.12", EM_AARCH64, STT_NOTYPE, 1, false },
	{ "$xyz", EM_AARCH64, STT_NOTYPE, 1, true },
	{ "$x", EM_X86_64, STT_NOTYPE, 1, true },
	{ "$a", EM_ARM, STT_NOTYPE, 1, false },
	{ "$xrv64i2p1", EM_RISCV, STT_NOTYPE, 1, false },
	{ "entry_SYSCALL_64", EM_X86_64, STT_NOTYPE, 1, true },
};

static void marks_of_tools_are_never_served(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		const struct fathom_symtab t = { .machine = marks[i].machine };
		const struct fathom_symbol s = { .type = marks[i].type,
						 .section = marks[i].section };
		const struct fathom_str name = { marks[i].name, (uint32_t)strlen(marks[i].name) };

		if (fathom_symbol_is_namable(&t, &s, name) != marks[i].namable)
			fail_msg("%s", marks[i].name);
	}
}

static void versions_are_split_off(void **state)
{
	const struct fathom_str full = { "memcpy@@GLIBC_2.14", 18 };
	struct fathom_str version;
	struct fathom_str name = fathom_symbol_base_name(full, &version);

	(void)state;
	assert_true(str_is(name, "memcpy"));
	assert_true(str_is(version, "@@GLIBC_2.14"));
	name = fathom_symbol_base_name((struct fathom_str){ "@odd", 4 }, &version);
	assert_true(str_is(name, "@odd"));
	assert_null(version.data);
}

/* A symbol, the function's name in debug information, and whether the symbol names another one. */
static const struct {
	const char *symbol;
	const char *function;
	bool differs;
} spellings[] = {
	{ "alpha", "alpha", false },
	{ "zeta", "alpha", true },
	{ "alpha2", "alpha", true },
	{ "malloc", "__libc_malloc", false },
	{ "__libc_malloc", "__GI___libc_malloc", false },
	{ "clock_nanosleep", "__clock_nanosleep", false },
	{ "fopen", "_IO_new_fopen", false },
	{ "work", "__internal_work", false },
	{ "foo", "_foo", false },
	{ "_foo", "foo", true },
	{ "malloc", "libc_malloc", true },
	{ "loc", "__malloc", true },
	{ "read", "__a_b_c_read", true },
	{ "", "__", true },
	{ "foo.cold", "foo", false },
	{ "foo.constprop.0.isra.0", "foo", false },
	{ "_ZN1AC1Ev", "_ZN1AC2Ev", false },
	{ "_ZN1AD1Ev", "_ZN1AD2Ev", false },
	{ "_ZN1AD0Ev", "_ZN1AD2Ev", true },
	{ "_ZN1AC1Ev", "_ZN1BC2Ev", true },
	{ "_Z1ai", "_Z1aj", true },
	{ "i", "_Z_i", true },
};

static struct fathom_str str_from(const char *s)
{
	return (struct fathom_str){ s, (uint32_t)strlen(s) };
}

static void names_of_other_functions_are_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
		if (fathom_spelling_differs(str_from(spellings[i].symbol),
					    str_from(spellings[i].function)) !=
		    spellings[i].differs)
			fail_msg("%s for %s", spellings[i].symbol, spellings[i].function);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_winner_wins_from_either_side),
		cmocka_unit_test(the_rule_is_an_order),
		cmocka_unit_test(marks_of_tools_are_never_served),
		cmocka_unit_test(versions_are_split_off),
		cmocka_unit_test(names_of_other_functions_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
