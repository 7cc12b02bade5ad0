/* SPDX-License-Identifier: MIT */
/* Records of system calls: what is stored, what is read back, and what is no record. */
#include "unit.h"

#include <elf.h>
#include <string.h>

#include "host/syscalls/syscall_record.h"

static const struct fathom_syscall_call openat_call = { .machine = EM_X86_64,
							.number = 257,
							.args = { 1, 2, 3, 4, 5, 6 } };

static struct fathom_syscall_record begun(uint8_t *bytes, size_t cap)
{
	struct fathom_syscall_record r;

	assert_true(fathom_syscall_record_begin(&r, bytes, cap, &openat_call));
	return r;
}

static void ranges_are_found_by_address_and_exit(void **state)
{
	uint8_t bytes[1024] __attribute__((aligned(8)));
	struct fathom_syscall_record r = begun(bytes, sizeof bytes);
	char text[8] = "";

	(void)state;
	fathom_syscall_record_add(&r, 100, false, "before", 6);
	fathom_syscall_record_add(&r, 100, true, "after", 5);
	assert_int_equal(fathom_syscall_record_read(&r, 100, false, text, 6), 6);
	assert_memory_equal(text, "before", 6);
	assert_int_equal(fathom_syscall_record_read(&r, 100, true, text, 6), 5);
	assert_memory_equal(text, "after", 5);
	assert_int_equal(fathom_syscall_record_read(&r, 102, false, text, 2), 2);
	assert_memory_equal(text, "fo", 2);
	assert_int_equal(fathom_syscall_record_read(&r, 106, false, text, 2), 0);
	assert_int_equal(fathom_syscall_record_read(&r, 99, false, text, 2), 0);
}

static void the_call_and_its_end_are_stored(void **state)
{
	uint8_t bytes[1024] __attribute__((aligned(8)));
	struct fathom_syscall_record r = begun(bytes, sizeof bytes);
	struct fathom_syscall_call call;

	(void)state;
	fathom_syscall_record_call(&r, &call);
	assert_int_equal(call.end, FATHOM_SYSCALL_NOT_YET);
	assert_memory_equal(call.args, openat_call.args, sizeof call.args);
	fathom_syscall_record_end(&r, FATHOM_SYSCALL_RETURNED, -2);
	fathom_syscall_record_call(&r, &call);
	assert_int_equal(call.end, FATHOM_SYSCALL_RETURNED);
	assert_int_equal(call.result, -2);
}

static void what_does_not_fit_is_left_out(void **state)
{
	uint8_t bytes[256] __attribute__((aligned(8)));
	struct fathom_syscall_record r = begun(bytes, sizeof bytes);
	uint8_t much[256] = { 0 };
	const size_t before = r.n;
	struct fathom_syscall_record none;

	(void)state;
	fathom_syscall_record_add(&r, 100, false, much, sizeof much);
	assert_true(r.is_cut);
	assert_int_equal(r.n, before);
	fathom_syscall_record_add(&r, 100, false, "abc", 3);
	assert_int_equal(fathom_syscall_record_read(&r, 100, false, much, 3), 3);
	assert_false(fathom_syscall_record_begin(&none, bytes, 16, &openat_call));
}

/* Of all prefixes only those that end after a range are records; so is no flip of the size. */
static void cut_records_are_refused(void **state)
{
	uint8_t bytes[1024] __attribute__((aligned(8)));
	struct fathom_syscall_record r = begun(bytes, sizeof bytes);
	const size_t head = r.n;
	struct fathom_syscall_record back;
	size_t whole = 0;

	(void)state;
	fathom_syscall_record_add(&r, 100, false, "abc", 3);
	fathom_syscall_record_add(&r, 200, true, "defghijkl", 9);
	for (size_t n = 0; n <= r.n; n++)
		whole += fathom_syscall_record_open(bytes, n, &back);
	assert_int_equal(whole, 3);
	assert_true(fathom_syscall_record_open(bytes, r.n, &back));
	bytes[head + 11] = 0x7f; /* the highest byte of the first size */
	assert_false(fathom_syscall_record_open(bytes, r.n, &back));
	bytes[head + 11] = 0;
	bytes[0] ^= 1;
	assert_false(fathom_syscall_record_open(bytes, r.n, &back));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_are_found_by_address_and_exit),
		cmocka_unit_test(the_call_and_its_end_are_stored),
		cmocka_unit_test(what_does_not_fit_is_left_out),
		cmocka_unit_test(cut_records_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
