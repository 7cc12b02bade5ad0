/* SPDX-License-Identifier: MIT */
/* Requests of ptrace(2), to a child that stands. Its registers differ from run to run where
 * addresses do. */
#include "made.h"

#include <elf.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#define REQUEST(request, a, b) CALL(ptrace, (long)(request), (long)pid, (long)(a), (long)(b))

static void sets(int pid)
{
	static const unsigned sizes[] = { 0, 8, 20, 104, 216, 8192 };
	static const unsigned fp_sizes[] = { 0, 16, 40, 512 };
	struct iovec v = { big };

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		v.iov_len = sizes[i];
		REQUEST(PTRACE_GETREGSET, NT_PRSTATUS, &v);
	}
	REQUEST(PTRACE_SETREGSET, NT_PRSTATUS, &v);
	for (size_t i = 0; i < sizeof fp_sizes / sizeof *fp_sizes; i++) {
		v.iov_len = fp_sizes[i];
		REQUEST(PTRACE_GETREGSET, NT_PRFPREG, &v);
	}
	REQUEST(PTRACE_SETREGSET, NT_PRFPREG, &v);
	REQUEST(PTRACE_GETREGSET, 0x999, &v);
	REQUEST(PTRACE_GETREGSET, 1, 0);
	REQUEST(PTRACE_GETREGSET, 1, BAD);
	v = (struct iovec){ BAD, 216 };
	REQUEST(PTRACE_GETREGSET, 1, &v);
	REQUEST(PTRACE_SETREGSET, 1, &v);
}

static void told(int pid)
{
	struct __ptrace_peeksiginfo_args args = { 0, 0, 3 };
	uint64_t place[2] = { 5 };

	REQUEST(PTRACE_GETSIGMASK, 8, big);
	REQUEST(PTRACE_SETSIGMASK, 8, big);
	REQUEST(PTRACE_GETSIGMASK, 7, big);
	REQUEST(PTRACE_PEEKSIGINFO, &args, big);
	args.flags = PTRACE_PEEKSIGINFO_SHARED;
	REQUEST(PTRACE_PEEKSIGINFO, &args, big);
	REQUEST(PTRACE_PEEKSIGINFO, BAD, big);
	REQUEST(PTRACE_GETEVENTMSG, 0, big);
	REQUEST(PTRACE_GETSIGINFO, 0, big);
	REQUEST(PTRACE_SETSIGINFO, 0, big);
	REQUEST(PTRACE_SECCOMP_GET_FILTER, 0, 0);
	REQUEST(PTRACE_SECCOMP_GET_METADATA, 16, place);
	REQUEST(PTRACE_GET_SYSCALL_INFO, 88, big);
	REQUEST(PTRACE_GET_SYSCALL_INFO, 16, big);
	REQUEST(PTRACE_GET_SYSCALL_INFO, 5, big);
}

/* The child's next calls, at their entry and exit. */
static void calls(int pid)
{
	for (int i = 0; i < 8; i++) {
		REQUEST(PTRACE_SYSCALL, 0, 0);
		waitpid(pid, 0, 0);
		REQUEST(PTRACE_GET_SYSCALL_INFO, 88, big);
	}
}

void tracing(void)
{
	struct user_regs_struct registers;
	int pid = fork();

	if (!pid) {
		CALL(ptrace, 0L, 0L, 0L, 0L);
		raise(SIGSTOP);
		getpgid(0);
		close(-1);
		syscall(5555, 1);
		kill(getpid(), 0);
		_exit(3);
	}
	waitpid(pid, 0, 0);
	REQUEST(PTRACE_SETOPTIONS, 0, 0x10001f);
	REQUEST(PTRACE_GETREGS, 0, &registers);
	REQUEST(PTRACE_SETREGS, 0, &registers);
	REQUEST(PTRACE_SETREGS, 5, BAD);
	REQUEST(PTRACE_GETFPREGS, 0, big);
	REQUEST(PTRACE_SETFPREGS, 0, big);
	for (int i = 0; i < 920; i += 3)
		REQUEST(PTRACE_PEEKUSER, i, big);
	REQUEST(PTRACE_PEEKUSER, 80, big);
	REQUEST(PTRACE_PEEKUSER, 912, big);
	REQUEST(PTRACE_PEEKUSER, -8, big);
	REQUEST(PTRACE_POKEUSER, 80, 5);
	REQUEST(PTRACE_PEEKDATA, registers.rsp, big);
	REQUEST(PTRACE_PEEKDATA, BAD, big);
	told(pid);
	sets(pid);
	calls(pid);
	REQUEST(PTRACE_LISTEN, 5, 6);
	REQUEST(21, 0, 1);
	REQUEST(PTRACE_KILL, 0, 0);
	waitpid(pid, 0, 0);
}
