/* SPDX-License-Identifier: MIT */
/*
 * The text of system calls, of records with bytes made by hand: each family, both dialects, three
 * machines. The lines are what the kernel's headers and the manual pages say of such bytes.
 */
#include "unit.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/syscalls/syscall_capture.h"
#include "host/syscalls/syscall_table.h"

/* Memory of a program that never was: at 0x1000. */
#define BASE 0x1000

struct program {
	uint8_t bytes[4096];
	size_t size; /* what can be read */
	size_t n_reads;
};

static size_t read_program(void *data, uint64_t avma, void *to, size_t size)
{
	struct program *p = data;
	size_t n;

	p->n_reads++;
	if (avma < BASE || avma >= BASE + p->size)
		return 0;
	n = BASE + p->size - avma;
	n = n < size ? n : size;
	memcpy(to, p->bytes + (avma - BASE), n);
	return n;
}

static const struct fathom_syscall_options plain = { .string_limit = 32, .is_unpadded = true };
static const struct fathom_syscall_options arrows = { .string_limit = 32,
						      .dialect = FATHOM_SYSCALL_ARROW };

static uint8_t storage[FATHOM_SYSCALL_RECORD_USUAL] __attribute__((aligned(8)));

/* Captures a call of @p, whose memory becomes @after meanwhile, and returns its text. */
static const char *text_of(struct program *p, const struct program *after,
			   const struct fathom_syscall_options *options,
			   const struct fathom_syscall_call *call, int64_t result)
{
	static char text[4096];
	struct fathom_text out = text_init(text, sizeof text);
	const struct fathom_reader memory = { .read = read_program, .data = p };
	struct fathom_syscall_record r;

	assert_true(
		fathom_syscall_capture_entry(call, options, &memory, storage, sizeof storage, &r));
	if (after)
		*p = *after;
	fathom_syscall_capture_exit(&r, result, options, &memory);
	/* What is formatted is the record alone. */
	memset(p, 0xee, sizeof *p);
	fathom_syscall_format(&r, options, &out, NULL);
	fathom_text_end(&out);
	return text;
}

static void put(struct program *p, size_t off, const void *bytes, size_t n)
{
	memcpy(p->bytes + off, bytes, n);
	p->size = p->size > off + n ? p->size : off + n;
}

static void put_u32(struct program *p, size_t off, uint32_t value)
{
	put(p, off, &value, sizeof value);
}

static void put_u64(struct program *p, size_t off, uint64_t value)
{
	put(p, off, &value, sizeof value);
}

static struct fathom_syscall_call call_of(uint32_t machine, const char *name)
{
	const int32_t number = fathom_syscall_by_name(machine, name);

	assert_true(number >= 0);
	return (struct fathom_syscall_call){ .machine = machine, .number = (uint64_t)number };
}

static void paths_and_flags(void **state)
{
	struct fathom_syscall_call call = call_of(EM_X86_64, "openat");
	struct program p = { .size = 0 };

	(void)state;
	put(&p, 0, "o/foo", 6);
	call.args[0] = (uint32_t)-100;
	call.args[1] = BASE;
	call.args[2] = 01 | 0100 | 01000;
	call.args[3] = 0644;
	assert_string_equal(text_of(&p, NULL, &plain, &call, 3),
			    "openat(AT_FDCWD, \"o/foo\", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3");
	/* Without O_CREAT there is no mode; what cannot be read is its address. */
	call.args[2] = 0;
	call.args[1] = 0x99;
	assert_string_equal(text_of(&p, NULL, &plain, &call, -14),
			    "openat(AT_FDCWD, 0x99, O_RDONLY) = -1 EFAULT (Bad address)");
}

/* O_DIRECTORY is 040000 on aarch64, where 0200000 is O_DIRECT; on x86 it is the other way round. */
static void constants_are_those_of_the_machine(void **state)
{
	static const uint32_t machines[] = { EM_X86_64, EM_AARCH64 };
	static const char *const wanted[] = {
		"openat(3, NULL, O_RDONLY|O_DIRECT) = -1 EFAULT (Bad address)",
		"openat(3, NULL, O_RDONLY|O_DIRECTORY) = -1 EFAULT (Bad address)"
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct fathom_syscall_call call = call_of(machines[i], "openat");
		struct program p = { .size = 0 };

		call.args[0] = 3;
		call.args[2] = 040000;
		assert_string_equal(text_of(&p, NULL, &plain, &call, -14), wanted[i]);
	}
}

static void data_is_read_after_the_call(void **state)
{
	struct fathom_syscall_call call = call_of(EM_X86_64, "read");
	struct program p = { .size = 64 };
	struct program after = { .size = 64 };

	(void)state;
	put(&after, 0,
	    "\177\1a\0"
	    "1\\\"\n",
	    8);
	call.args[0] = 5;
	call.args[1] = BASE;
	call.args[2] = 131072;
	assert_string_equal(text_of(&p, &after, &plain, &call, 8),
			    "read(5, \"\\177\\1a\\0001\\\\\\\"\\n\", 131072) = 8");
	p = after;
	assert_string_equal(text_of(&p, NULL, &arrows, &call, 3), "read(5, u\"⌂☺a\", 131'072) → 3");
}

static void strings_end_at_the_limit(void **state)
{
	struct fathom_syscall_call call = call_of(EM_X86_64, "write");
	struct fathom_syscall_options options = plain;
	struct program p = { .size = 0 };

	(void)state;
	put(&p, 0, "abcdefgh", 8);
	call.args[0] = 1;
	call.args[1] = BASE;
	call.args[2] = 8;
	options.string_limit = 3;
	assert_string_equal(text_of(&p, NULL, &options, &call, 8), "write(1, \"abc\"..., 8) = 8");
	p.size = 0;
	put(&p, 0, "abcdefgh", 8);
	options.hex = 2;
	assert_string_equal(text_of(&p, NULL, &options, &call, 8),
			    "write(1, \"\\x61\\x62\\x63\"..., 8) = 8");
}

/* struct timespec is 16 bytes, of i386 8; struct stat64 of i386 is not aligned to 8. */
static void layouts_are_those_of_the_machine(void **state)
{
	struct fathom_syscall_call call = call_of(EM_386, "nanosleep");
	struct program p = { .size = 0 };

	(void)state;
	put_u32(&p, 0, 1);
	put_u32(&p, 4, 500);
	call.args[0] = BASE;
	assert_string_equal(text_of(&p, NULL, &plain, &call, 0),
			    "nanosleep({tv_sec=1, tv_nsec=500}, NULL) = 0");
	call = call_of(EM_AARCH64, "nanosleep");
	p.size = 0;
	put_u64(&p, 0, 1);
	put_u64(&p, 8, 500);
	call.args[0] = BASE;
	assert_string_equal(text_of(&p, NULL, &plain, &call, 0),
			    "nanosleep({tv_sec=1, tv_nsec=500}, NULL) = 0");
	call = call_of(EM_386, "stat64");
	memset(&p, 0, sizeof p);
	put(&p, 256, "f", 2);
	put_u32(&p, 16, 0100644);
	put_u64(&p, 44, 1221);
	call.args[0] = BASE + 256;
	call.args[1] = BASE;
	assert_string_equal(text_of(&p, NULL, &plain, &call, 0),
			    "stat64(\"f\", {st_mode=S_IFREG|0644, st_size=1221, ...}) = 0");
}

/* Halves of one number are in two registers of i386. */
static void wide_arguments_are_put_together(void **state)
{
	struct fathom_syscall_call call = call_of(EM_386, "pread64");
	struct program p = { .size = 0 };

	(void)state;
	call.args[0] = 3;
	call.args[3] = 5;
	call.args[4] = 1;
	assert_string_equal(text_of(&p, NULL, &plain, &call, -9),
			    "pread64(3, NULL, 0, 4294967301) = -1 EBADF (Bad file descriptor)");
}

static void vectors_and_addresses_of_sockets(void **state)
{
	struct fathom_syscall_call call = call_of(EM_X86_64, "writev");
	struct program p = { .size = 0 };

	(void)state;
	put_u64(&p, 0, BASE + 32);
	put_u64(&p, 8, 2);
	put_u64(&p, 16, 0x8);
	put_u64(&p, 24, 3);
	put(&p, 32, "hi", 2);
	call.args[0] = 1;
	call.args[1] = BASE;
	call.args[2] = 3;
	/* The second buffer cannot be read; the third vector lies where the memory ends. */
	assert_string_equal(text_of(&p, NULL, &plain, &call, 2),
			    "writev(1, [{iov_base=\"hi\", iov_len=2}, {iov_base=0x8, iov_len=3}, "
			    "... /* 0x1020 */], 3) = 2");
	memset(&p, 0, sizeof p);
	put(&p, 0, "\2\0\0\120\177\0\0\1\0\0\0\0\0\0\0\0", 16);
	call = call_of(EM_X86_64, "connect");
	call.args[0] = 3;
	call.args[1] = BASE;
	call.args[2] = 16;
	assert_string_equal(text_of(&p, NULL, &plain, &call, 0),
			    "connect(3, {sa_family=AF_INET, sin_port=htons(80), "
			    "sin_addr=inet_addr(\"127.0.0.1\")}, 16) = 0");
}

/* The size of the room is read before the call, that of the address after it. */
static void sizes_of_rooms_change(void **state)
{
	struct fathom_syscall_call call = call_of(EM_X86_64, "getsockname");
	struct program p = { .size = 0 };
	struct program after = { .size = 0 };

	(void)state;
	put_u32(&p, 0, 100);
	p.size = 64;
	put_u32(&after, 0, 2);
	put(&after, 16, "\1\0", 2);
	call.args[0] = 3;
	call.args[1] = BASE + 16;
	call.args[2] = BASE;
	assert_string_equal(text_of(&p, &after, &plain, &call, 0),
			    "getsockname(3, {sa_family=AF_UNIX}, [100 => 2]) = 0");
}

static bool name_code(void *data, uint64_t avma, struct fathom_text *out)
{
	(void)data;
	fathom_text_cstr(out, "FreeFds");
	return avma == 0x407eef;
}

static void functions_have_names_with_arrows(void **state)
{
	struct fathom_syscall_call call = call_of(EM_X86_64, "rt_sigaction");
	struct fathom_syscall_options options = arrows;
	struct program p = { .size = 0 };

	(void)state;
	options.name_code = name_code;
	put_u64(&p, 0, 0x407eef);
	put_u64(&p, 8, 0x04000004);
	put_u64(&p, 16, 0x1234);
	put_u64(&p, 24, UINT64_C(1) << 1 | UINT64_C(1) << 33);
	call.args[0] = 11;
	call.args[1] = BASE;
	call.args[3] = 8;
	assert_string_equal(text_of(&p, NULL, &options, &call, 0),
			    "rt_sigaction(SIGSEGV, {sa_handler=&FreeFds, sa_mask=[INT RT_2], "
			    "sa_flags=SA_RESTORER|SA_SIGINFO, sa_restorer=&1234}, NULL, 8) → 0");
}

static void ends_of_calls(void **state)
{
	struct fathom_syscall_call call = call_of(EM_X86_64, "exit_group");
	struct fathom_syscall_record r;
	char text[256];
	struct fathom_text out = text_init(text, sizeof text);
	struct program p = { .size = 0 };

	(void)state;
	call.args[0] = 7;
	assert_true(fathom_syscall_record_begin(&r, storage, sizeof storage, &call));
	fathom_syscall_record_end(&r, FATHOM_SYSCALL_NEVER, 0);
	fathom_syscall_format(&r, &plain, &out, NULL);
	fathom_text_end(&out);
	assert_string_equal(text, "exit_group(7) = ?");
	/* strace's column. */
	call = call_of(EM_X86_64, "close");
	call.args[0] = 3;
	assert_string_equal(
		text_of(&p, NULL, &(struct fathom_syscall_options){ .string_limit = 32 }, &call, 0),
		"close(3)                                = 0");
	call = call_of(EM_X86_64, "pause");
	assert_string_equal(text_of(&p, NULL, &plain, &call, -514),
			    "pause() = ? ERESTARTNOHAND (To be restarted if no handler)");
	call.number = 471;
	call.args[0] = 1;
	assert_string_equal(text_of(&p, NULL, &arrows, &call, -38),
			    "syscall_471(0x1, 0, 0, 0, 0, 0) → -1 ENOSYS");
}

/* What is known before the call ends with the comma, as in " <unfinished ...>". */
static void halves_of_a_call(void **state)
{
	struct fathom_syscall_call call = call_of(EM_X86_64, "read");
	struct fathom_syscall_record r;
	struct fathom_syscall_line line;
	char text[256];
	struct fathom_text out = text_init(text, sizeof text);

	(void)state;
	assert_true(fathom_syscall_record_begin(&r, storage, sizeof storage, &call));
	fathom_syscall_format(&r, &plain, &out, &line);
	fathom_text_end(&out);
	assert_string_equal(text, "read(0, ");
	assert_int_equal(line.entry, 8);
	assert_int_equal(line.n, 3);
	assert_string_equal(line.args[0].name, "fd");
	assert_int_equal(line.args[0].begin, 5);
	assert_int_equal(line.args[0].end, 6);
}

/* One close() reads nothing; a path is read once. */
static void only_what_is_shown_is_read(void **state)
{
	struct fathom_syscall_call call = call_of(EM_X86_64, "close");
	struct fathom_syscall_record r;
	struct program p = { .size = 0 };
	const struct fathom_reader memory = { .read = read_program, .data = &p };

	(void)state;
	assert_true(
		fathom_syscall_capture_entry(&call, &plain, &memory, storage, sizeof storage, &r));
	fathom_syscall_capture_exit(&r, 0, &plain, &memory);
	assert_int_equal(p.n_reads, 0);
	put(&p, 0, "path", 5);
	call = call_of(EM_X86_64, "unlink");
	call.args[0] = BASE;
	assert_true(
		fathom_syscall_capture_entry(&call, &plain, &memory, storage, sizeof storage, &r));
	fathom_syscall_capture_exit(&r, 0, &plain, &memory);
	assert_int_equal(p.n_reads, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_and_flags),
		cmocka_unit_test(constants_are_those_of_the_machine),
		cmocka_unit_test(data_is_read_after_the_call),
		cmocka_unit_test(strings_end_at_the_limit),
		cmocka_unit_test(layouts_are_those_of_the_machine),
		cmocka_unit_test(wide_arguments_are_put_together),
		cmocka_unit_test(vectors_and_addresses_of_sockets),
		cmocka_unit_test(sizes_of_rooms_change),
		cmocka_unit_test(functions_have_names_with_arrows),
		cmocka_unit_test(ends_of_calls),
		cmocka_unit_test(halves_of_a_call),
		cmocka_unit_test(only_what_is_shown_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
