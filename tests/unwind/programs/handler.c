/* SPDX-License-Identifier: MIT */
/*
 * handler [plain]: puts known values into all registers, runs an instruction that is none, and
 * compares, in the handler of the signal, what a step over its frame finds: that is where the
 * handler returns to. With "plain", the handler asks for no siginfo: on i386 the kernel has another
 * frame for it. Prints "ok", or what differs.
 */
#include <elf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "safe/unwind/step.h"

extern const char fault[];
unsigned long stack_pointer; /* when the instruction runs */

#ifdef __x86_64__
#define MACHINE EM_X86_64
/* Register i is i + 0x1000; sp is kept first. */
__asm__(".text\n"
	"start: mov %rsp, stack_pointer(%rip)\n"
	"mov $0x1000, %eax\n mov $0x1001, %edx\n mov $0x1002, %ecx\n mov $0x1003, %ebx\n"
	"mov $0x1004, %esi\n mov $0x1005, %edi\n mov $0x1006, %ebp\n mov $0x1008, %r8d\n"
	"mov $0x1009, %r9d\n mov $0x100a, %r10d\n mov $0x100b, %r11d\n mov $0x100c, %r12d\n"
	"mov $0x100d, %r13d\n mov $0x100e, %r14d\n mov $0x100f, %r15d\n"
	"fault: ud2\n");
#else
#define MACHINE EM_386
__asm__(".text\n"
	"start: mov %esp, stack_pointer\n"
	"mov $0x1000, %eax\n mov $0x1001, %ecx\n mov $0x1002, %edx\n mov $0x1003, %ebx\n"
	"mov $0x1005, %ebp\n mov $0x1006, %esi\n mov $0x1007, %edi\n"
	"fault: ud2\n");
#endif
extern void start(void) __attribute__((noreturn));

static size_t read_here(void *data, uint64_t avma, void *to, size_t size)
{
	(void)data;
	memcpy(to, (const void *)(uintptr_t)avma, size);
	return size;
}

static int n_wrong;

static void expect(const char *what, unsigned number, uint64_t value, uint64_t wanted)
{
	if (value == wanted)
		return;
	n_wrong++;
	printf("%s %u is %#llx, not %#llx\n", what, number, (unsigned long long)value,
	       (unsigned long long)wanted);
}

static void check(uint64_t pc, uint64_t sp)
{
	const struct fathom_reader reader = { .read = read_here };
	const struct fathom_step_memory m = { &reader, &reader, false };
	const struct fathom_unwind_arch *arch = fathom_unwind_arch(MACHINE);
	struct fathom_registers r = { .machine = MACHINE, .pc = pc, .sp = sp };
	bool is = false;

	fathom_register_set(&r, arch->pc, pc);
	fathom_register_set(&r, arch->sp, sp);
	expect("stop", 0, fathom_step_signal(arch, &m, &r, &is), FATHOM_STOP_NONE);
	expect("signal frame", 0, is, 1);
	for (uint8_t i = 0; i < arch->n; i++)
		expect("register", i, r.value[i],
		       i == arch->pc   ? (uintptr_t)fault
		       : i == arch->sp ? stack_pointer
				       : 0x1000u + i);
	expect("pc", 0, r.pc, (uintptr_t)fault);
	expect("sp", 0, r.sp, stack_pointer);
	expect("unknown", 0, r.known, (UINT64_C(1) << arch->n) - 1);
	if (!n_wrong)
		printf("ok\n");
	(void)fflush(stdout);
	_exit(n_wrong != 0);
}

static void on_signal(int number)
{
	(void)number;
	check((uintptr_t)__builtin_return_address(0), (uintptr_t)__builtin_dwarf_cfa());
}

static void on_signal_with_info(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info, (void)context;
	check((uintptr_t)__builtin_return_address(0), (uintptr_t)__builtin_dwarf_cfa());
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_flags = 0 };

	if (argc > 1 && strcmp(argv[1], "plain") == 0) {
		action.sa_handler = on_signal;
	} else {
		action.sa_flags = SA_SIGINFO;
		action.sa_sigaction = on_signal_with_info;
	}
	if (sigaction(SIGILL, &action, NULL))
		return 2;
	start();
}
