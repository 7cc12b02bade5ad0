/* SPDX-License-Identifier: MIT */
/* Code of __cxa_get_globals() as compilers and linkers make it, whole, cut and changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "safe/cxx/globals_code.h"

/* Where the code is said to be. */
#define AT UINT64_C(0xa80e0)

/* Code with breakpoints after it. */
static uint8_t code[FATHOM_GLOBALS_CODE];

static void put(const char *bytes, size_t n)
{
	memset(code, 0xcc, sizeof code);
	memcpy(code, bytes, n);
}

#define PUT(bytes) put((bytes), sizeof(bytes) - 1)

/* Sub $8, %rsp; lea 0x16ad71(%rip), %rdi; call; add $8, %rsp; add $0x10, %rax; ret. */
static const char general[] = "\xf3\x0f\x1e\xfa\x48\x83\xec\x08\x48\x8d\x3d\x71\xad\x16\x00"
			      "\xe8\x37\x2c\xff\xff\x48\x83\xc4\x08\x48\x05\x10\0\0\0\xc3";

static void reads_a_pair_of_the_got(void **state)
{
	struct fathom_globals_tls g;

	(void)state;
	put(general, sizeof general - 1);
	assert_true(fathom_globals_by_tls(code, AT, &g));
	/* From the end of lea, 15 bytes on. */
	assert_int_equal(g.pair, AT + 15 + 0x16ad71);
	assert_int_equal(g.added, 0x10);
}

static void reads_a_distance_from_the_thread_pointer(void **state)
{
	static const struct {
		const char *code;
		size_t size;
		int64_t added;
	} rows[] = {
		/* Mov %fs:0, %rax; add $-0x90, %rax, in two forms, or lea -0x10(%rax), %rax; ret.
		 */
		{ "\x64\x48\x8b\x04\x25\0\0\0\0\x48\x05\x70\xff\xff\xff\xc3", 16, -0x90 },
		{ "\xf3\x0f\x1e\xfa\x64\x48\x8b\x04\x25\0\0\0\0\x48\x83\xc0\xf0\xc3", 18, -16 },
		{ "\x66\x66\x66\x64\x48\x8b\x04\x25\0\0\0\0\x48\x8d\x40\xf0\xc3", 17, -16 },
		{ "\x64\x48\x8b\x04\x25\0\0\0\0\x48\x8d\x80\xf0\xff\xff\xff\xc3", 17, -16 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct fathom_globals_tls g;

		put(rows[i].code, rows[i].size);
		assert_true(fathom_globals_by_tls(code, AT, &g));
		assert_int_equal(g.pair, 0);
		assert_int_equal(g.added, rows[i].added);
	}
}

/* Of libc++abi, without endbr64: the key is at lea's end + 0x12802, 0x1e bytes on. */
static const char by_key[] = "\x50\x48\x8d\x3d\x1c\x28\x01\x00\x48\x8d\x35\x31\x00\x00\x00"
			     "\xe8\x1c\xa8\xfe\xff\x85\xc0\x75\x0c\x8b\x3d\x02\x28\x01\x00"
			     "\x58\xe9\x1c\xa8\xfe\xff";

static void reads_a_key(void **state)
{
	uint64_t key;
	uint64_t stub;
	uint64_t slot;

	(void)state;
	put(by_key, sizeof by_key - 1);
	assert_true(fathom_globals_by_key(code, 0x24b70, &key, &stub));
	assert_int_equal(key, 0x37390);
	assert_int_equal(stub, 0xf3b0);
	PUT("\xf3\x0f\x1e\xfa\xf2\xff\x25\x10\0\0\0");
	assert_true(fathom_globals_stub(code, AT, &slot));
	assert_int_equal(slot, AT + 11 + 0x10);
	PUT("\xff\x25\xf0\xff\xff\xff");
	assert_true(fathom_globals_stub(code, AT, &slot));
	assert_int_equal(slot, AT + 6 - 16);
}

/* Returns whether either form is read from @bytes, cut after @n of them. */
static bool is_read(const char *bytes, size_t n)
{
	struct fathom_globals_tls g;
	uint64_t key;
	uint64_t stub;

	put(bytes, n);
	return fathom_globals_by_tls(code, AT, &g) || fathom_globals_by_key(code, AT, &key, &stub);
}

static void refuses_what_is_cut(void **state)
{
	(void)state;
	for (size_t n = 0; n < sizeof general - 1; n++)
		assert_false(is_read(general, n));
	/* The last four bytes are a distance: any are one. */
	for (size_t n = 0; n < sizeof by_key - 1 - 4; n++)
		assert_false(is_read(by_key, n));
}

/* Code that stands at the end of what may be read: no byte after it is looked at. */
static void refuses_what_goes_on_behind_the_end(void **state)
{
	struct fathom_globals_tls g;

	(void)state;
	for (size_t i = 0; i + 3 <= sizeof code; i += 3)
		memcpy(code + i, "\x66\x66\x66", 3);
	assert_false(fathom_globals_by_tls(code, AT, &g));
	memset(code, 0x90, sizeof code);
	memcpy(code, general, sizeof general - 2);
	/* Another function than one that returns. */
	assert_false(fathom_globals_by_tls(code, AT, &g));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_pair_of_the_got),
		cmocka_unit_test(reads_a_distance_from_the_thread_pointer),
		cmocka_unit_test(reads_a_key),
		cmocka_unit_test(refuses_what_is_cut),
		cmocka_unit_test(refuses_what_goes_on_behind_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
