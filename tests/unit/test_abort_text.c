/* SPDX-License-Identifier: MIT */
/* glibc's text of abort() in pages made by hand, whole, cut and lying. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "safe/crash/abort_text.h"

#define PAGE 4096

/* Pages of a text: their number of bytes, and the text. */
static _Alignas(PAGE) struct {
	uint32_t size;
	char text[2 * PAGE - 4];
} pages;

static char text[FATHOM_CRASH_TEXT];

/* Reads the text that the pointer @to leads to. */
static bool read_at(uintptr_t to, size_t *ret_size, bool *ret_cut)
{
	return fathom_abort_text_read((uintptr_t)&to, text, ret_size, ret_cut);
}

static void make(uint32_t size, const char *what)
{
	memset(&pages, 'x', sizeof pages);
	pages.size = size;
	memcpy(pages.text, what, strlen(what) + 1);
}

static void right_texts(void **state)
{
	static const struct {
		const char *made;
		size_t size;
	} rows[] = { { "why\n", 3 }, { "why", 3 }, { "two\nlines\n", 9 }, { "", 0 }, { "\n", 0 } };
	bool is_cut;
	size_t size;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		make(PAGE, rows[i].made);
		assert_true(read_at((uintptr_t)&pages, &size, &is_cut));
		assert_int_equal(size, rows[i].size);
		assert_memory_equal(text, rows[i].made, size);
		assert_false(is_cut);
	}
}

static void long_text(void **state)
{
	bool is_cut;
	size_t size;

	(void)state;
	make(2 * PAGE, "");
	pages.text[0] = 'x';
	assert_true(read_at((uintptr_t)&pages, &size, &is_cut));
	assert_int_equal(size, FATHOM_CRASH_TEXT);
	assert_true(is_cut);
}

static void lies(void **state)
{
	static const uint32_t sizes[] = { 0, 1, 4, PAGE - 1, PAGE + 1, UINT32_MAX };
	static const uintptr_t pointers[] = { 0, 1, 8, PAGE, UINTPTR_MAX, UINTPTR_MAX - PAGE + 1 };
	bool is_cut;
	size_t size;

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		make(sizes[i], "why");
		assert_false(read_at((uintptr_t)&pages, &size, &is_cut));
	}
	make(PAGE, "why");
	for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++)
		assert_false(read_at(pointers[i], &size, &is_cut));
	assert_false(read_at((uintptr_t)&pages + 4, &size, &is_cut));
	/* The pointer itself is not there. */
	assert_false(fathom_abort_text_read(8, text, &size, &is_cut));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(right_texts),
		cmocka_unit_test(long_text),
		cmocka_unit_test(lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
