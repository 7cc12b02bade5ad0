/* SPDX-License-Identifier: MIT */
/* What queries of fathom_find() and types of fathom_value_read() mean, as tables. */
#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fathom/fathom.h"
#include "host/find/query.h"
#include "host/value/type.h"

static struct fathom_str str(const char *s)
{
	return (struct fathom_str){ s, (uint32_t)strlen(s) };
}

struct parsed {
	const char *query;
	enum fathom_query_kind kind;
	const char *text;
	const char *library;
	const char *version;
	uint32_t line;
	bool is_default;
};

static const struct parsed parsed[] = {
	{ "memcpy", FATHOM_QUERY_NAME, "memcpy", NULL, NULL, 0, false },
	{ "memcpy@V", FATHOM_QUERY_NAME, "memcpy", NULL, "V", 0, false },
	{ "memcpy@@V", FATHOM_QUERY_NAME, "memcpy", NULL, "V", 0, true },
	{ "memcpy@@", FATHOM_QUERY_NAME, "memcpy", NULL, NULL, 0, true },
	{ "libc.so*:mem*@V_2", FATHOM_QUERY_GLOB, "mem*", "libc.so*", "V_2", 0, false },
	{ "a::b", FATHOM_QUERY_NAME, "a::b", NULL, NULL, 0, false },
	{ "lib:a::b", FATHOM_QUERY_NAME, "a::b", "lib", NULL, 0, false },
	{ "::a", FATHOM_QUERY_NAME, "::a", NULL, NULL, 0, false },
	{ "f(int*)", FATHOM_QUERY_NAME, "f(int*)", NULL, NULL, 0, false },
	{ "A::operator*", FATHOM_QUERY_NAME, "A::operator*", NULL, NULL, 0, false },
	{ "a.c:12", FATHOM_QUERY_LINE, "a.c", NULL, NULL, 12, false },
	{ "/usr/a.c:12", FATHOM_QUERY_LINE, "/usr/a.c", NULL, NULL, 12, false },
	{ "lib:a.c:12", FATHOM_QUERY_LINE, "a.c", "lib", NULL, 12, false },
	{ "a::b:12", FATHOM_QUERY_LINE, "a::b", NULL, NULL, 12, false },
	{ "a.c:0", FATHOM_QUERY_NAME, "0", "a.c", NULL, 0, false },
	{ "a.c:99999999999", FATHOM_QUERY_NAME, "99999999999", "a.c", NULL, 0, false },
	{ "/usr/lib/x.so:f", FATHOM_QUERY_NAME, "f", "/usr/lib/x.so", NULL, 0, false },
	{ "/a:b/", FATHOM_QUERY_EXPRESSION, "a:b", NULL, NULL, 0, false },
	{ "lib:/^a/", FATHOM_QUERY_EXPRESSION, "^a", "lib", NULL, 0, false },
	{ "-[Foo bar:]", FATHOM_QUERY_NAME, "-[Foo bar:]", NULL, NULL, 0, false },
	{ "std::vector<int, a:b>", FATHOM_QUERY_NAME, "std::vector<int, a:b>", NULL, NULL, 0,
	  false },
	{ "@a", FATHOM_QUERY_NAME, "@a", NULL, NULL, 0, false },
};

static void queries_are_taken_apart(void **state)
{
	struct fathom_arena arena = { 0 };
	struct fathom_find_query q;

	(void)state;
	for (size_t i = 0; i < sizeof parsed / sizeof *parsed; i++) {
		const struct parsed *p = &parsed[i];

		assert_int_equal(fathom_find_query_parse(&q, p->query, 0, &arena, NULL), 0);
		if (q.kind != p->kind || !str_is(q.text, p->text))
			fail_msg("%s: kind %d, text %s", p->query, (int)q.kind, q.text.data);
		assert_string_equal(q.library.data ? q.library.data : "",
				    p->library ? p->library : "");
		assert_string_equal(q.version.data ? q.version.data : "",
				    p->version ? p->version : "");
		assert_int_equal(q.line, p->line);
		assert_int_equal(q.is_default, p->is_default);
		fathom_find_query_deinit(&q);
	}
	fathom_arena_deinit(&arena);
}

static void bad_queries_are_refused(void **state)
{
	static const char *const bad[] = { "",     "/(/", "lib:/a{1/",
					   "lib:", "/[/", "/(a{1,255}){1,255}{9}/" };
	struct fathom_arena arena = { 0 };
	struct fathom_errinfo info;
	struct fathom_find_query q;
	char large[5000];

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_true(fathom_find_query_parse(&q, bad[i], 0, &arena, &info) < 0);
		assert_non_null(info.what);
		fathom_find_query_deinit(&q);
	}
	memset(large, 'a', sizeof large - 1);
	large[sizeof large - 1] = '\0';
	assert_int_equal(fathom_find_query_parse(&q, large, 0, &arena, &info), FATHOM_E_ARGUMENT);
	assert_int_equal(fathom_find_query_parse(&q, "(", FATHOM_FIND_REGEX, &arena, &info),
			 FATHOM_E_ARGUMENT);
	assert_int_equal(fathom_find_query_parse(&q, "a*b@c:1", FATHOM_FIND_LITERAL, &arena, &info),
			 0);
	assert_true(q.kind == FATHOM_QUERY_NAME && str_is(q.text, "a*b@c:1") && !q.version.data);
	fathom_arena_deinit(&arena);
}

struct taken {
	const char *query;
	const char *name; /* as linked */
	bool taken;
};

static const struct taken taken[] = {
	{ "memcpy", "memcpy", true },
	{ "memcpy", "memcpy2", false },
	{ "mem*", "memcpy", true },
	{ "mem[a-c]*", "memcpy", true },
	{ "mem[!a-c]*", "memcpy", false },
	{ "/^mem/", "memcpy", true },
	{ "/^cpy/", "memcpy", false },
	{ "A::get", "_ZN1A3getEv", true },
	{ "A::get()", "_ZN1A3getEv", true },
	{ "A::get(int)", "_ZN1A3getEv", false },
	{ "get", "_ZN1A3getEv", false },
	{ "get", "_Z3getv", true },
	{ "A::*", "_ZN1A3getEv", true },
	{ "A::g?t", "_ZN1A3getEv", true },
	{ "A::ge", "_ZN1A3getEv", false },
	{ "A::A", "_ZN1AC1Ev", true },
	{ "A::~A", "_ZN1AD2Ev", true },
	{ "A::operator()", "_ZN1AclEi", true },
	{ "A::operator()(int)", "_ZN1AclEi", true },
	{ "A::operator new", "_ZN1AnwEm", true },
	{ "operator new(unsigned long)", "_Znwm", true },
	{ "operator new", "_Znwm", true },
	{ "operator<", "_ZltRK1AS1_", true },
	{ "f", "_Z1fIiEvT_", false },
	{ "f<int>", "_Z1fIiEvT_", true },
	{ "f<int>(int)", "_Z1fIiEvT_", true },
	{ "void f<int>(int)", "_Z1fIiEvT_", true },
	{ "f< int >( int )", "_Z1fIiEvT_", true },
	{ "std::string::size", "_ZNKSs4sizeEv", true },
	{ "std::ostream::flush", "_ZNSo5flushEv", true },
	{ "(anonymous namespace)::x", "_ZN12_GLOBAL__N_11xEv", true },
	{ "vtable for A", "_ZTV1A", true },
	{ "A::value", "_ZNK1A5valueEv", true },
	{ "A::value() const", "_ZNK1A5valueEv", true },
	{ "core::fmt::write", "_ZN4core3fmt5write17h0123456789abcdefE", true },
};

static void names_are_compared(void **state)
{
	struct fathom_arena arena = { 0 };
	struct fathom_find_name name = { 0 };
	struct fathom_find_query q;

	(void)state;
	for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
		assert_int_equal(fathom_find_query_parse(&q, taken[i].query, 0, &arena, NULL), 0);
		fathom_find_name_set(&name, str(taken[i].name));
		if (fathom_find_query_takes_name(&q, &name) != taken[i].taken)
			fail_msg("%s %s %s", taken[i].query, taken[i].taken ? "is not" : "is",
				 taken[i].name);
		fathom_find_query_deinit(&q);
	}
	fathom_find_name_deinit(&name);
	fathom_arena_deinit(&arena);
}

/* What the C library expands; a group and each repetition count for one more. */
static void expressions_have_sizes(void **state)
{
	static const struct {
		const char *text;
		uint64_t size;
	} cases[] = {
		{ "", 0 },
		{ "abc", 3 },
		{ "a|b", 3 },
		{ "\\(a", 2 },
		{ "a*b?", 2 },
		{ "a+", 2 },
		{ "ab+c+", 5 },
		{ "a{3}", 4 },
		{ "ba{2,30}", 32 },
		{ "a{7,}", 8 },
		{ "a{,2}", 3 },
		{ "a{x}", 4 },
		{ "(ab){10}", 33 },
		{ "(a{9}b){9}c", 121 },
		{ "((a+)+)+", 14 },
		{ "[(]a", 2 },
		{ "[]({9}]+", 2 },
		{ "[^](+]{4}", 5 },
		{ "[[:alpha:](]b", 2 },
		{ "[[.].](]b", 2 },
		{ "[[=]=](]b", 2 },
		{ "[a", 1 },
		{ "[[:a", 1 },
		{ "(a", 1 },
		{ "a)b", 3 },
		{ "\\", 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (fathom_find_expression_size(cases[i].text) != cases[i].size)
			fail_msg("%s: %llu", cases[i].text,
				 (unsigned long long)fathom_find_expression_size(cases[i].text));
	assert_true(fathom_find_expression_size("((((a{255}){255}){255}){255})") >
		    FATHOM_MAX_EXPRESSION);
	assert_true(fathom_find_expression_size("a{99999999999999999999999}") >
		    FATHOM_MAX_EXPRESSION);
	assert_true(fathom_find_expression_size("a{512}{512}") > FATHOM_MAX_EXPRESSION);
}

static void files_end_with_whole_parts(void **state)
{
	struct fathom_arena arena = { 0 };
	struct fathom_find_query q;

	(void)state;
	assert_int_equal(fathom_find_query_parse(&q, "b/c.c:1", 0, &arena, NULL), 0);
	assert_true(fathom_find_query_takes_file(&q, str("/a/b/c.c")));
	assert_true(fathom_find_query_takes_file(&q, str("b/c.c")));
	assert_false(fathom_find_query_takes_file(&q, str("/a/bb/c.c")));
	assert_false(fathom_find_query_takes_file(&q, str("/ab/c.c")));
	assert_false(fathom_find_query_takes_file(&q, str("c.c")));
	assert_int_equal(fathom_find_query_parse(&q, "lib*.so:f", 0, &arena, NULL), 0);
	assert_true(fathom_find_query_takes_module(&q, "/usr/lib/libx.so"));
	assert_true(fathom_find_query_takes_module(&q, "lib.so"));
	assert_false(fathom_find_query_takes_module(&q, "/lib/x.so"));
	assert_int_equal(fathom_find_query_parse(&q, "*/lib/*:f", 0, &arena, NULL), 0);
	assert_true(fathom_find_query_takes_module(&q, "/usr/lib/libx.so"));
	assert_false(fathom_find_query_takes_module(&q, "/usr/libx.so"));
	fathom_arena_deinit(&arena);
}

struct typed {
	const char *text;
	uint32_t n_hops;
	uint64_t offset; /* of the last hop */
	bool is_pointer; /* the last hop */
	uint8_t kind;
	uint8_t size;
	uint32_t count;
};

static const struct typed typed[] = {
	{ "str", 0, 0, false, FATHOM_VALUE_TEXT, 1, 4096 },
	{ "str:16", 0, 0, false, FATHOM_VALUE_TEXT, 1, 16 },
	{ "bytes:0x10", 0, 0, false, FATHOM_VALUE_BYTES, 1, 16 },
	{ "i8", 0, 0, false, FATHOM_VALUE_SIGNED, 1, 1 },
	{ "u32[4]", 0, 0, false, FATHOM_VALUE_UNSIGNED, 4, 4 },
	{ "f64[8192]", 0, 0, false, FATHOM_VALUE_FLOAT, 8, 8192 },
	{ "ptr", 0, 0, false, FATHOM_VALUE_POINTER, 0, 1 },
	{ "*str", 1, 0, true, FATHOM_VALUE_TEXT, 1, 4096 },
	{ "ptr->str", 1, 0, true, FATHOM_VALUE_TEXT, 1, 4096 },
	{ "*+16:u64", 1, 16, true, FATHOM_VALUE_UNSIGNED, 8, 1 },
	{ "+0x10:*-8:u16", 2, UINT64_MAX - 7, true, FATHOM_VALUE_UNSIGNED, 2, 1 },
	{ "-1:u8", 1, UINT64_MAX, false, FATHOM_VALUE_UNSIGNED, 1, 1 },
	{ "ptr->ptr->+1:ptr", 2, 1, true, FATHOM_VALUE_POINTER, 0, 1 },
};

static void types_are_read(void **state)
{
	struct fathom_value_type t;

	(void)state;
	for (size_t i = 0; i < sizeof typed / sizeof *typed; i++) {
		const struct typed *want = &typed[i];
		const struct fathom_hop *hop;

		assert_int_equal(fathom_value_type_parse(want->text, &t, NULL), 0);
		assert_int_equal(t.n_hops, want->n_hops);
		assert_int_equal(t.kind, want->kind);
		assert_int_equal(t.size, want->size);
		assert_int_equal(t.count, want->count);
		hop = &t.hop[t.n_hops ? t.n_hops - 1 : 0];
		assert_int_equal(hop->offset, want->offset);
		assert_int_equal(hop->is_pointer, want->is_pointer);
	}
}

static void bad_types_are_refused(void **state)
{
	static const struct {
		const char *text;
		uint64_t at;
	} bad[] = { { "", 0 },      { "u", 0 },       { "u33", 0 },   { "u8x", 2 }, { "u8[", 3 },
		    { "u8[1", 4 },  { "+1u8", 0 },    { "*+1", 1 },   { "*", 1 },   { "str:", 4 },
		    { "bytes", 0 }, { "bytes:x", 6 }, { "+1:+2:", 6 } };
	struct fathom_errinfo info;
	struct fathom_value_type t;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(fathom_value_type_parse(bad[i].text, &t, &info),
				 FATHOM_E_ARGUMENT);
		if (info.offset != bad[i].at)
			fail_msg("%s: at %d", bad[i].text, (int)info.offset);
	}
	assert_int_equal(fathom_value_type_parse("f64[8193]", &t, &info), FATHOM_E_LIMIT);
	assert_int_equal(fathom_value_type_parse("ptr[8193]", &t, &info), FATHOM_E_LIMIT);
	assert_int_equal(fathom_value_type_parse("str:65536", &t, &info), 0);
	assert_int_equal(fathom_value_type_parse("*****************u8", &t, &info), FATHOM_E_LIMIT);
}

static uint64_t memory_used(const struct fathom *session)
{
	struct fathom_usage usage;

	fathom_get_usage(session, &usage);
	return usage.memory_used;
}

/* Opens this program with a budget, and looks for @query in it. */
static fathom_err find_here(uint64_t budget, const char *query, uint64_t *ret_left)
{
	const struct fathom_options options = { .size = sizeof options,
						.flags = FATHOM_NO_CACHE,
						.memory_budget = budget };
	struct fathom_errinfo info = { 0 };
	struct fathom_matches *matches;
	struct fathom_target *target;
	struct fathom *session;
	uint64_t before;
	fathom_err err;

	assert_int_equal(fathom_create(&options, &session, NULL), 0);
	assert_int_equal(fathom_target_open_file(session, "/proc/self/exe", NULL, &target, NULL),
			 0);
	before = memory_used(session);
	err = fathom_find(target, NULL, &query, 1, &matches, &info);
	if (!err)
		fathom_matches_free(matches);
	else
		assert_string_equal(info.file, query);
	*ret_left = memory_used(session) - before;
	fathom_target_release(target);
	fathom_destroy(session);
	return err;
}

static void a_search_gives_the_memory_budget_back(void **state)
{
	uint64_t left;

	(void)state;
	assert_int_equal(find_here(0, "*", &left), 0);
	assert_int_equal(left, 0);
	assert_int_equal(find_here(50000, "*", &left), FATHOM_E_LIMIT);
	assert_int_equal(left, 0);
	/* A small result is found whatever others have left of the budget. */
	assert_int_equal(find_here(1, "main", &left), 0);
	assert_int_equal(left, 0);
}

static void each_name_has_its_address(void **state)
{
	static const char *const names[] = { "main", "no_such_name",  "",
					     "main", "fathom_create", "fathom_find",
					     "main", "ma*n",          "main(" };
	enum { N = sizeof names / sizeof *names };
	const struct fathom_options options = { .size = sizeof options, .flags = FATHOM_NO_CACHE };
	struct fathom_target *target;
	struct fathom *session;
	uint64_t address[N];
	uint8_t reason[N];
	uint64_t one;

	(void)state;
	assert_int_equal(fathom_create(&options, &session, NULL), 0);
	assert_int_equal(fathom_target_open_file(session, "/proc/self/exe", NULL, &target, NULL),
			 0);
	assert_int_equal(fathom_target_find_symbols(target, 0, names, N, address, reason, NULL), 0);
	for (size_t i = 0; i < N; i++) {
		const fathom_err err = fathom_target_find_symbol(target, names[i], &one);

		assert_int_equal(err, reason[i] ? FATHOM_E_NOT_FOUND : FATHOM_OK);
		assert_int_equal(reason[i], i == 1 || i == 2 || i > 6 ? FATHOM_REASON_NO_SUCH_SYMBOL
								      : FATHOM_REASON_NONE);
		if (!err)
			assert_int_equal(address[i], one);
	}
	assert_true(address[0] == address[3] && address[0] == address[6]);
	assert_int_equal((uintptr_t)fathom_create - address[4],
			 (uintptr_t)fathom_find - address[5]);
	assert_int_equal(fathom_target_find_symbols(target, FATHOM_FIND_LINKED, names, N, address,
						    reason, NULL),
			 0);
	assert_int_equal(reason[0], FATHOM_REASON_NONE);
	assert_int_equal(fathom_target_find_symbols(target, FATHOM_FIND_REGEX, names, N, address,
						    reason, NULL),
			 FATHOM_E_ARGUMENT);
	fathom_target_release(target);
	fathom_destroy(session);
}

/* Code of this process, with a name in a perf map that the library looks for itself. */
static void what_is_not_asked_for_is_no_match(void **state)
{
	const struct fathom_options options = { .size = sizeof options, .flags = FATHOM_NO_CACHE };
	const char *const query = "made_code";
	char *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct fathom_target *target;
	struct fathom_matches *matches;
	struct fathom *session;
	char path[64];
	FILE *map;

	(void)state;
	assert_true(code != MAP_FAILED);
	(void)snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "wxe");
	assert_non_null(map);
	fprintf(map, "%" PRIxPTR " 10 made_code\n%" PRIxPTR " 10 __jit_debug_descriptor\n",
		(uintptr_t)code, (uintptr_t)code + 16);
	assert_int_equal(fclose(map), 0);
	assert_int_equal(fathom_create(&options, &session, NULL), 0);
	assert_int_equal(fathom_target_open_process(session, (int)getpid(), NULL, &target, NULL),
			 0);
	assert_int_equal(fathom_find(target, NULL, &query, 1, &matches, NULL), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(fathom_matches_count(matches), 1);
	assert_int_equal(fathom_matches_get(matches, 0)->query, 0);
	assert_true(fathom_matches_get(matches, 0)->address == (uintptr_t)code);
	fathom_matches_free(matches);
	fathom_target_release(target);
	fathom_destroy(session);
	(void)munmap(code, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queries_are_taken_apart),
		cmocka_unit_test(bad_queries_are_refused),
		cmocka_unit_test(names_are_compared),
		cmocka_unit_test(expressions_have_sizes),
		cmocka_unit_test(files_end_with_whole_parts),
		cmocka_unit_test(types_are_read),
		cmocka_unit_test(each_name_has_its_address),
		cmocka_unit_test(what_is_not_asked_for_is_no_match),
		cmocka_unit_test(bad_types_are_refused),
		cmocka_unit_test(a_search_gives_the_memory_budget_back),
	};

	return cmocka_run_group_tests_name("find", tests, NULL, NULL);
}
