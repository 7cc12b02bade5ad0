/* SPDX-License-Identifier: MIT */
/*
 * NT_PRSTATUS of each machine, class and byte order, whose registers are numbers that tell which.
 */
#include "unit.h"

#include <elf.h>
#include <string.h>

#include "fathom/answer.h"
#include "host/space/user/prstatus.h"

/* A note being made. */
struct made {
	uint8_t bytes[512];
	size_t n;
	bool swap;
};

static void put(struct made *m, uint64_t value, size_t size)
{
	const bool little = (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) != m->swap;

	for (size_t i = 0; i < size; i++)
		m->bytes[m->n++] = (uint8_t)(value >> 8 * (little ? i : size - 1 - i));
}

/* struct elf_prstatus up to pr_reg, by <sys/procfs.h>, of thread 4711; then @n registers 1000... */
static struct made make(bool is64, bool swap, size_t word, size_t n)
{
	const size_t large = is64 ? 8 : 4;
	struct made m = { .swap = swap };

	put(&m, 11, 4); /* si_signo, si_code, si_errno */
	put(&m, 1, 4);
	put(&m, 0, 4);
	put(&m, 11, 2); /* pr_cursig */
	put(&m, 0, 2);
	put(&m, 0x55, large); /* pr_sigpend, pr_sighold */
	put(&m, 0xaa, large);
	put(&m, 4711, 4); /* pr_pid, pr_ppid, pr_pgrp, pr_sid */
	put(&m, 1, 4);
	put(&m, 2, 4);
	put(&m, 3, 4);
	for (int i = 0; i < 8; i++) /* pr_utime to pr_cstime */
		put(&m, 9, large);
	for (size_t i = 0; i < n; i++)
		put(&m, 1000 + i, word);
	put(&m, 1, 4); /* pr_fpvalid */
	return m;
}

/*
 * Compares where registers are with what <sys/user.h> and <asm/ptrace.h> call them.
 */
static void check(uint16_t machine, bool is64, bool swap, size_t n, const uint8_t *numbers,
		  size_t n_numbers, uint64_t pc, uint64_t sp)
{
	const size_t word = machine == EM_386 ? 4 : 8;
	const struct made m = make(is64, swap, word, n);
	const struct fathom_image image = { .machine = machine, .is64 = is64, .swap = swap };
	struct fathom_registers r;

	assert_int_equal(fathom_prstatus_tid(&image, (struct fathom_bytes){ m.bytes, m.n }), 4711);
	assert_true(fathom_prstatus_registers(&image, (struct fathom_bytes){ m.bytes, m.n }, &r));
	assert_int_equal(r.machine, machine);
	assert_int_equal(r.known, (UINT64_C(1) << n_numbers) - 1);
	for (size_t i = 0; i < n_numbers; i++)
		assert_int_equal(r.value[i], 1000 + numbers[i]);
	assert_int_equal(r.pc, 1000 + pc);
	assert_int_equal(r.sp, 1000 + sp);
	/* What ends in the registers has none; before its number, it is of no thread. */
	assert_false(fathom_prstatus_registers(
		&image, (struct fathom_bytes){ m.bytes, (is64 ? 112 : 72) + 3 * word }, &r));
	assert_int_equal(
		fathom_prstatus_tid(&image, (struct fathom_bytes){ m.bytes, is64 ? 35 : 27 }), 0);
}

static void x86_64(void **state)
{
	/* rax rdx rcx rbx rsi rdi rbp rsp r8 to r15 rip, in struct user_regs_struct */
	const uint8_t numbers[] = { 10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16 };

	(void)state;
	check(EM_X86_64, true, false, 27, numbers, 17, 16, 19);
	check(EM_X86_64, false, false, 27, numbers, 17, 16, 19); /* x32 */
}

static void i386(void **state)
{
	/* eax ecx edx ebx esp ebp esi edi eip */
	const uint8_t numbers[] = { 6, 1, 2, 0, 15, 5, 3, 4, 12 };
	struct fathom_registers r;
	const struct made m = make(false, false, 4, 17);
	const struct fathom_image image = { .machine = EM_386 };

	(void)state;
	assert_true(fathom_prstatus_registers(&image, (struct fathom_bytes){ m.bytes, m.n }, &r));
	/* eflags, DWARF number 9, are known, too. */
	assert_int_equal(r.value[9], 1014);
	for (size_t i = 0; i < sizeof numbers; i++)
		assert_int_equal(r.value[i], 1000 + numbers[i]);
	assert_int_equal(r.pc, 1012);
	assert_int_equal(r.sp, 1015);
}

static void aarch64(void **state)
{
	uint8_t numbers[33]; /* x0 to x30, sp, pc */

	(void)state;
	for (uint8_t i = 0; i < sizeof numbers; i++)
		numbers[i] = i;
	check(EM_AARCH64, true, false, 34, numbers, 33, 32, 31);
	check(EM_AARCH64, true, true, 34, numbers, 33, 32, 31); /* the other byte order */
}

static void other_machines(void **state)
{
	const struct made m = make(true, true, 8, 48);
	const struct fathom_image image = { .machine = EM_PPC64, .is64 = true, .swap = true };
	struct fathom_registers r;

	(void)state;
	assert_int_equal(fathom_prstatus_tid(&image, (struct fathom_bytes){ m.bytes, m.n }), 4711);
	assert_false(fathom_prstatus_registers(&image, (struct fathom_bytes){ m.bytes, m.n }, &r));
}

/* siginfo_t: signal, error, code, padding to a pointer, the address. */
static void signals(void **state)
{
	(void)state;
	for (int form = 0; form < 4; form++) {
		const bool is64 = form & 1;
		const struct fathom_image image = { .is64 = is64, .swap = form & 2 };
		struct made m = { .swap = image.swap };
		struct fathom_thread_signal s;

		put(&m, 11, 4);
		put(&m, 99, 4);
		put(&m, 2, 4);
		if (is64)
			put(&m, 0xdead, 4);
		put(&m, 0x1234, is64 ? 8 : 4);
		s = fathom_siginfo_read(fathom_image_address_size(&image), image.swap,
					(struct fathom_bytes){ m.bytes, m.n });
		assert_int_equal(s.number, 11);
		assert_int_equal(s.code, 2);
		assert_int_equal(s.address, 0x1234);
		/* One byte less is none. */
		s = fathom_siginfo_read(fathom_image_address_size(&image), image.swap,
					(struct fathom_bytes){ m.bytes, m.n - 1 });
		assert_int_equal(s.number, 0);
		assert_true(s.address == FATHOM_NO_ADDRESS);
		m = make(is64, image.swap, 8, 1);
		assert_int_equal(
			fathom_prstatus_signal(&image, (struct fathom_bytes){ m.bytes, m.n }), 11);
		assert_int_equal(
			fathom_prstatus_signal(&image, (struct fathom_bytes){ m.bytes, 13 }), 0);
	}
}

/* A signal that was sent has no address, nor has a general protection fault. */
static void signals_without_address(void **state)
{
	static const int32_t sent[][2] = {
		{ 11, 0 }, { 11, -6 }, { 11, 0x80 }, { 6, 1 }, { 17, 1 }
	};
	const struct fathom_image image = { .is64 = true };

	(void)state;
	for (size_t i = 0; i < sizeof sent / sizeof *sent; i++) {
		struct made m = { .n = 0 };
		struct fathom_thread_signal s;

		put(&m, (uint32_t)sent[i][0], 4);
		put(&m, 0, 4);
		put(&m, (uint32_t)sent[i][1], 4);
		put(&m, 0, 4);
		put(&m, 0x1234, 8);
		s = fathom_siginfo_read(fathom_image_address_size(&image), image.swap,
					(struct fathom_bytes){ m.bytes, m.n });
		assert_int_equal(s.number, sent[i][0]);
		assert_int_equal(s.code, sent[i][1]);
		assert_true(s.address == FATHOM_NO_ADDRESS);
	}
}

/* struct user_pac_mask: of data, of instructions. */
static void pac_mask(void **state)
{
	const struct fathom_image image = { .is64 = true };
	struct made m = { .n = 0 };

	(void)state;
	put(&m, UINT64_C(0x007f000000000000), 8);
	put(&m, UINT64_C(0xff7fff8000000000), 8);
	assert_true(fathom_pac_mask_read(&image, (struct fathom_bytes){ m.bytes, m.n }) ==
		    UINT64_C(0xff7fff8000000000));
	assert_int_equal(fathom_pac_mask_read(&image, (struct fathom_bytes){ m.bytes, 15 }), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(x86_64),   cmocka_unit_test(i386),
		cmocka_unit_test(aarch64),  cmocka_unit_test(other_machines),
		cmocka_unit_test(signals),  cmocka_unit_test(signals_without_address),
		cmocka_unit_test(pac_mask),
	};

	return cmocka_run_group_tests_name("prstatus", tests, NULL, NULL);
}
