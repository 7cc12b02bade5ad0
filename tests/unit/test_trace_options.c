/* SPDX-License-Identifier: MIT */
/* Options of a trace as words state them, against what each says by hand. */
#include <string.h>

#include "unit.h"

#include <fathom/fathom.h>

struct taken {
	struct fathom_trace_options options;
	struct fathom_trace_syscalls syscalls;
	struct fathom_trace_settings settings;
};

static void begin(struct taken *t)
{
	*t = (struct taken){ .settings = { .size = sizeof t->settings,
					   .options = &t->options,
					   .syscalls = &t->syscalls } };
}

static const struct fathom_trace_option *named(const char *name)
{
	const struct fathom_trace_option *o;

	for (size_t i = 0; (o = fathom_trace_option_get(i)); i++)
		if (o->name ? !strcmp(o->name, name) : o->letter == name[0] && !name[1])
			return o;
	fail_msg("no option %s", name);
	return NULL;
}

static fathom_err take(struct taken *t, const char *name, const char *argument)
{
	return fathom_trace_option_take(named(name), argument, &t->settings);
}

static void names_and_letters_are_unique(void **state)
{
	const struct fathom_trace_option *a;
	const struct fathom_trace_option *b;

	(void)state;
	for (size_t i = 0; (a = fathom_trace_option_get(i)); i++) {
		assert_true(a->name || a->letter);
		assert_true(a->flags & (FATHOM_TRACE_OPTION_COMMAND | FATHOM_TRACE_OPTION_SELF));
		for (size_t k = 0; k < i; k++) {
			b = fathom_trace_option_get(k);
			assert_false(a->name && b->name && !strcmp(a->name, b->name));
			assert_false(a->letter && a->letter == b->letter);
		}
	}
}

static void arguments_are_stored_where_a_trace_reads_them(void **state)
{
	struct taken t;

	(void)state;
	begin(&t);
	assert_int_equal(take(&t, "only", "a"), FATHOM_OK);
	assert_int_equal(take(&t, "only", "b"), FATHOM_OK);
	assert_int_equal(take(&t, "not", "c"), FATHOM_OK);
	assert_int_equal(take(&t, "at", "ns::f:stack"), FATHOM_OK);
	assert_int_equal(take(&t, "depth", "4294967295"), FATHOM_OK);
	assert_int_equal(take(&t, "max-rate", "7"), FATHOM_OK);
	assert_int_equal(take(&t, "clock", "none"), FATHOM_OK);
	assert_int_equal(take(&t, "calls", "never"), FATHOM_OK);
	assert_int_equal(t.options.n_only, 2);
	assert_string_equal(t.options.only[0], "a");
	assert_string_equal(t.options.only[1], "b");
	assert_int_equal(t.options.n_except, 1);
	assert_int_equal(t.options.n_under, 0);
	assert_string_equal(t.options.at[0].query, "ns::f");
	assert_int_equal(t.options.at[0].actions, FATHOM_TRACE_AT_STACK);
	assert_int_equal(t.options.depth, UINT32_MAX);
	assert_int_equal(t.options.max_rate, 7);
	assert_int_equal(t.options.clock, FATHOM_TRACE_CLOCK_NONE);
	assert_int_equal(t.options.flags, FATHOM_TRACE_NO_CALLS);
	/* No system calls but with an option that wants them. */
	assert_int_equal(take(&t, "string-limit", "64"), FATHOM_OK);
	assert_null(t.options.syscalls);
	assert_int_equal(take(&t, "syscalls", NULL), FATHOM_OK);
	assert_ptr_equal(t.options.syscalls, &t.syscalls);
	assert_null(t.syscalls.set);
	assert_int_equal(t.syscalls.string_limit, 64);
	fathom_trace_settings_free(&t.settings);
}

static void wrong_arguments_are_refused(void **state)
{
	static const char *const wrong[][2] = {
		{ "depth", "0" },     { "depth", "-1" },   { "depth", "4294967296" },
		{ "depth", "" },      { "depth", "1x" },   { "last", "16777217" },
		{ "clock", "" },      { "clock", "fast" }, { "calls", "alway" },
		{ "export", "file" }, { "at", "f" },       { "at", ":start" },
		{ "at", "f:go" },     { "way", "none" },   { "string-limit", "1048577" },
	};
	struct taken t;

	(void)state;
	begin(&t);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(take(&t, wrong[i][0], wrong[i][1]), FATHOM_E_ARGUMENT);
	assert_int_equal(t.options.n_at, 0);
	fathom_trace_settings_free(&t.settings);
}

/* Takes @option with @argument and "--json" if @is_json, and returns the format. */
static uint32_t format_of(const char *option, const char *argument, bool is_json,
			  uint32_t *ret_flags)
{
	struct taken t;

	begin(&t);
	if (option)
		assert_int_equal(take(&t, option, argument), FATHOM_OK);
	if (is_json)
		assert_int_equal(take(&t, "json", NULL), FATHOM_OK);
	fathom_trace_settings_complete(&t.settings);
	*ret_flags = t.options.flags;
	fathom_trace_settings_free(&t.settings);
	return t.settings.format;
}

static void settings_are_completed(void **state)
{
	uint32_t flags;

	(void)state;
	assert_int_equal(format_of(NULL, NULL, false, &flags), FATHOM_TRACE_TEXT);
	assert_int_equal(flags, 0);
	assert_int_equal(format_of(NULL, NULL, true, &flags), FATHOM_TRACE_JSON);
	assert_int_equal(format_of("count", NULL, false, &flags), FATHOM_TRACE_COUNTS);
	assert_int_equal(format_of("count", NULL, true, &flags), FATHOM_TRACE_COUNTS_JSON);
	assert_int_equal(flags, 0);
	assert_int_equal(format_of("tree", NULL, true, &flags), FATHOM_TRACE_TREE_JSON);
	assert_int_equal(format_of("durations", NULL, false, &flags), FATHOM_TRACE_TEXT_DURATIONS);
	assert_int_equal(format_of("export", "dot", false, &flags), FATHOM_TRACE_DOT);
	assert_int_equal(flags, FATHOM_TRACE_NO_FOLD);
	assert_int_equal(format_of("o", "file", true, &flags), FATHOM_TRACE_FILE);
	assert_int_equal(format_of("o", "html", false, &flags), FATHOM_TRACE_FILE);
	assert_int_equal(format_of("o", "a.b.Html", false, &flags), FATHOM_TRACE_PAGE);
	assert_int_equal(format_of("export", "page", false, &flags), FATHOM_TRACE_PAGE);
	assert_int_equal(flags, FATHOM_TRACE_NO_FOLD);
	/* The rings keep 65,000 events of a thread, and no more. */
	assert_int_equal(format_of("last", "65000", false, &flags), FATHOM_TRACE_TEXT);
	assert_int_equal(flags, FATHOM_TRACE_LOSSY | FATHOM_TRACE_LATEST);
	assert_int_equal(format_of("last", "65001", false, &flags), FATHOM_TRACE_TEXT);
	assert_int_equal(flags, FATHOM_TRACE_LOSSY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_letters_are_unique),
		cmocka_unit_test(arguments_are_stored_where_a_trace_reads_them),
		cmocka_unit_test(wrong_arguments_are_refused),
		cmocka_unit_test(settings_are_completed),
	};

	return cmocka_run_group_tests_name("trace_options", tests, NULL, NULL);
}
