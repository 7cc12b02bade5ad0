/* SPDX-License-Identifier: MIT */
/*
 * Publishes a function of made code with the two files to vendor, in C alone. The made function
 * calls the one that it is given: walk() counts the frames up to main(), and then waits or returns.
 * Prints the address of the made code, and what was counted. (With an argument it waits.)
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include "fathom_jit.h"

typedef long callback_fn(long argument);
typedef long made_fn(callback_fn *next, long argument);

/* push %rbp; mov %rsp,%rbp; mov %rdi,%rax; mov %rsi,%rdi; call *%rax; inc %rax; pop %rbp; ret */
static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x48, 0x89,
				0xf7, 0xff, 0xd0, 0x48, 0xff, 0xc0, 0x5d, 0xc3 };

int main(int argc, char **argv);

static uint8_t *made;
static int waits;

/* What was met on the way. */
struct met {
	int frames;
	int made;
	int main;
};

static _Unwind_Reason_Code count(struct _Unwind_Context *context, void *data)
{
	struct met *m = data;
	const uintptr_t pc = (uintptr_t)_Unwind_GetIP(context);

	m->frames++;
	m->made += pc > (uintptr_t)made && pc < (uintptr_t)made + sizeof code;
	m->main |= (uintptr_t)_Unwind_GetRegionStart(context) == (uintptr_t)main;
	return _URC_NO_REASON;
}

__attribute__((noinline)) long walk(long argument)
{
	struct met m = { 0, 0, 0 };

	(void)_Unwind_Backtrace(count, &m);
	printf("%p %d %d\n", (void *)made, m.made, m.main);
	(void)fflush(stdout);
	while (waits)
		__asm__ volatile("syscall" : : "a"(SYS_pause) : "rcx", "r11", "memory");
	return argument * 2;
}

int main(int argc, char **argv)
{
	const struct fathom_jit_unwind frame = { .size = sizeof frame,
						 .kind = FATHOM_JIT_FRAME_POINTER,
						 .from = 4,
						 .until = sizeof code - 1 };
	struct fathom_jit_function function = { .size = sizeof function,
						.code_size = sizeof code,
						.name = "made_of_musl",
						.unwind = &frame };
	struct fathom_jit_changes changes = { .size = sizeof changes,
					      .add = &function,
					      .n_add = 1 };
	struct fathom_jit_arena *arena;
	long result;

	(void)argv;
	waits = argc > 1;
	made = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (made == MAP_FAILED)
		return 3;
	memcpy(made, code, sizeof code);
	function.code = made;
	if (fathom_jit_arena_create(made, 4096, NULL, &arena, NULL) ||
	    fathom_jit_commit(arena, &changes, NULL))
		return 4;
	result = ((made_fn *)(uintptr_t)made)(walk, 21);
	fathom_jit_arena_destroy(arena);
	printf("%ld\n", result);
	return result == 43 ? 0 : 5;
}
