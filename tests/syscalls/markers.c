/* SPDX-License-Identifier: MIT */
/*
 * Makes each system call up to a number with arguments that are told, under a seccomp filter that
 * answers ENOSYS: nothing is done.
 *
 *	markers 64|32 LAST ARGUMENT...
 *
 * With 32 the calls are those of i386, by int 0x80.
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* It is not filtered, and ends the program. */
#define URETPROBE 335

/* exit_group() of x86-64 is let through, so that the program can end. */
static int refuse_all(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 2),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 38),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof code / sizeof *code, code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void call_32(long number, const unsigned long *a)
{
	long result;

	/* %ebp, the sixth argument, is set and restored around the call. */
	__asm__ volatile("push %%rbp\n\tmov %[sixth], %%rbp\n\tint $0x80\n\tpop %%rbp"
			 : "=a"(result)
			 : "a"(number), "b"(a[0]), "c"(a[1]), "d"(a[2]), "S"(a[3]),
			   "D"(a[4]), [sixth] "r"(a[5])
			 : "memory", "r8", "r9", "r10", "r11");
}

int main(int argc, char **argv)
{
	unsigned long a[6] = { 0 };
	const int is_32 = argc > 1 && !strcmp(argv[1], "32");

	if (argc < 3 || refuse_all())
		return 1;
	for (int i = 3; i < argc && i < 9; i++)
		a[i - 3] = strtoul(argv[i], NULL, 0);
	for (long number = 0; number <= atol(argv[2]); number++) {
		if (is_32)
			call_32(number, a);
		else if (number != SYS_exit_group && number != URETPROBE)
			syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	}
	_exit(0);
}
