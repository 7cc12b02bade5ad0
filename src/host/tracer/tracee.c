/* SPDX-License-Identifier: MIT */
#include "host/tracer/tracee.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/code/x86_64/x86_instructions.h"
#include "host/tracer/held_child.h"
#include "host/tracer/stop.h"

/* The kernel's own results of calls that are to be restarted (include/linux/errno.h). */
enum {
	RESTART_SYS = 512,
	RESTART_NO_INTERRUPT = 513,
	RESTART_NO_HANDLER = 514,
	RESTART_BLOCK = 516
};

static size_t read_memory(void *data, uint64_t avma, void *to, size_t size)
{
	const struct fathom_tracee *t = data;
	const ssize_t n = pread(t->memory, to, size, (off_t)avma);

	return n < 0 ? 0 : (size_t)n;
}

/*
 * Reads as the kernel does for calls of the program: not what is mapped without PROT_READ. Where
 * that is forbidden to us, or the first thread has ended, reads what is there.
 */
static size_t read_own(void *data, uint64_t avma, void *to, size_t size)
{
	const struct fathom_tracee *t = data;
	const struct iovec local = { to, size };
	const struct iovec remote = { (void *)(uintptr_t)avma, size };
	const ssize_t n = process_vm_readv(t->pid, &local, 1, &remote, 1, 0);

	if (n >= 0)
		return (size_t)n;
	return errno == EFAULT ? 0 : read_memory(data, avma, to, size);
}

static fathom_err fail_os(struct fathom_errinfo *reterr, const char *what)
{
	const int number = errno;
	const fathom_err err = fathom_fail(reterr, FATHOM_E_OS, "", 0, what);

	if (reterr)
		reterr->os_errno = number;
	return err;
}

/* Seizes the child, and lets it go on to exec(). */
static fathom_err seize(struct fathom_held_child *c, long options, bool stops,
			struct fathom_errinfo *reterr)
{
	const long err = fathom_stop_seize(c->pid, options);

	errno = err ? (int)-err : ESRCH;
	if (err || (stops && !fathom_stop_ask(c->pid)))
		return fail_os(reterr, "cannot be traced (ptrace)");
	return fathom_held_child_go(c, reterr);
}

void fathom_tracee_init(struct fathom_tracee *t, pid_t pid)
{
	*t = (struct fathom_tracee){ .memory = -1, .pid = pid };
	t->reader = (struct fathom_reader){ .read = read_memory, .data = t };
	t->own = (struct fathom_reader){ .read = read_own, .data = t };
}

fathom_err fathom_tracee_start(struct fathom_tracee *t, char *const *argv, long options, bool stops,
			       const struct sock_fprog *filter, const struct fathom_user *user,
			       int *ret_report, struct fathom_errinfo *reterr)
{
	const struct fathom_held_child_options how = { .filter = filter, .user = user };
	struct fathom_held_child child;
	fathom_err err;

	FATHOM_TRY(fathom_held_child_start(&child, argv, &how, reterr));
	fathom_tracee_init(t, child.pid);
	err = seize(&child, options, stops, reterr);
	if (!err) {
		*ret_report = child.report;
		return FATHOM_OK;
	}
	fathom_held_child_close(&child);
	kill(t->pid, SIGKILL);
	(void)fathom_tracee_wait(t, t->pid);
	return err;
}

void fathom_tracee_deinit(struct fathom_tracee *t)
{
	if (t->memory >= 0)
		close(t->memory);
}

bool fathom_tracee_open_memory(struct fathom_tracee *t)
{
	char path[64];

	if (t->memory >= 0)
		close(t->memory);
	(void)snprintf(path, sizeof path, "/proc/%d/mem", (int)t->pid);
	t->memory = open(path, O_RDWR | O_CLOEXEC);
	t->syscall_avma = 0;
	return t->memory >= 0;
}

bool fathom_tracee_read(const struct fathom_tracee *t, uint64_t avma, void *to, size_t size)
{
	return fathom_reader_read(&t->reader, avma, to, size);
}

uint64_t fathom_tracee_word(const struct fathom_tracee *t, uint64_t avma)
{
	uint64_t word = 0;

	return fathom_tracee_read(t, avma, &word, sizeof word) ? word : 0;
}

bool fathom_tracee_write(const struct fathom_tracee *t, uint64_t avma, const void *from,
			 size_t size)
{
	return pwrite(t->memory, from, size, (off_t)avma) == (ssize_t)size;
}

bool fathom_tracee_write_byte(pid_t tid, uint64_t avma, uint8_t byte)
{
	const uint64_t at = avma & ~UINT64_C(7);
	uint64_t word;

	errno = 0;
	word = (uint64_t)ptrace(PTRACE_PEEKTEXT, tid, at, NULL);
	if (errno)
		return false;
	memcpy((uint8_t *)&word + (avma - at), &byte, 1);
	return !ptrace(PTRACE_POKETEXT, tid, at, word);
}

bool fathom_tracee_get(pid_t tid, struct user_regs_struct *ret)
{
	return !ptrace(PTRACE_GETREGS, tid, NULL, ret);
}

bool fathom_tracee_set(pid_t tid, const struct user_regs_struct *regs)
{
	return !ptrace(PTRACE_SETREGS, tid, NULL, regs);
}

void fathom_tracee_registers(const struct user_regs_struct *u, struct fathom_registers *ret)
{
	const uint64_t values[] = { u->rax, u->rdx, u->rcx, u->rbx, u->rsi, u->rdi,
				    u->rbp, u->rsp, u->r8,  u->r9,  u->r10, u->r11,
				    u->r12, u->r13, u->r14, u->r15, u->rip };
	const size_t n = sizeof values / sizeof *values;

	*ret = (struct fathom_registers){ .machine = EM_X86_64, .pc = u->rip, .sp = u->rsp };
	memcpy(ret->value, values, sizeof values);
	ret->known = (UINT64_C(1) << n) - 1;
}

static void note(const struct fathom_tracee *t, pid_t tid, int status)
{
	if (t->note)
		t->note(t->data, tid, status);
}

int fathom_tracee_wait(const struct fathom_tracee *t, pid_t tid)
{
	int status;
	pid_t who;

	while ((who = waitpid(-1, &status, __WALL | __WNOTHREAD)) != tid) {
		if (who > 0)
			note(t, who, status);
		else if (errno != EINTR)
			return -1;
	}
	return status;
}

/* Returns whether @status is one that is not to be lost: an end, or an event such as exec(). */
static bool is_lasting(int status)
{
	return !WIFSTOPPED(status) || (status >> 16 && status >> 16 != PTRACE_EVENT_STOP &&
				       status >> 16 != PTRACE_EVENT_SECCOMP);
}

bool fathom_tracee_run_to_call(const struct fathom_tracee *t, pid_t tid)
{
	bool was_stopped = false;
	int status;

	do {
		if (ptrace(PTRACE_SYSCALL, tid, NULL, 0))
			return false;
		status = fathom_tracee_wait(t, tid);
		if (status == -1)
			return false;
		if (is_lasting(status)) {
			note(t, tid, status);
			return false;
		}
		/* Anything else is a stop that was asked for before. */
		was_stopped |= !(status >> 16) && WSTOPSIG(status) == SIGSTOP;
	} while (WSTOPSIG(status) != (SIGTRAP | 0x80));
	/* No mask blocks it: it comes again. */
	if (was_stopped)
		(void)kill(t->pid, SIGSTOP);
	return true;
}

void fathom_tracee_again(struct user_regs_struct *regs)
{
	if ((int64_t)regs->orig_rax < 0)
		return;
	switch (-(int64_t)regs->rax) {
	case RESTART_SYS:
	case RESTART_NO_INTERRUPT:
	case RESTART_NO_HANDLER:
	case RESTART_BLOCK:
		regs->rax = regs->orig_rax;
		regs->rip -= FATHOM_X86_SYSCALL_SIZE;
		break;
	default:
		break;
	}
	regs->orig_rax = UINT64_MAX;
}

/*
 * With a way back, the thread can be let go between any two of these requests, if we are killed: it
 * makes the call, and its mask and registers come from its stack.
 */
long fathom_tracee_call(const struct fathom_tracee *t, pid_t tid, long number,
			const uint64_t arguments[6])
{
	struct user_regs_struct before;
	struct user_regs_struct regs;
	uint64_t all = UINT64_MAX;
	uint64_t mask = 0;
	long result = -ESRCH;

	if (!t->syscall_avma || !fathom_tracee_get(tid, &before) ||
	    ptrace(PTRACE_GETSIGMASK, tid, sizeof mask, &mask))
		return -ESRCH;
	regs = before;
	regs.rip = t->syscall_avma;
	regs.rsp = t->call_sp ? t->call_sp : regs.rsp;
	regs.rax = (unsigned long long)number;
	regs.orig_rax = UINT64_MAX;
	regs.rdi = arguments[0];
	regs.rsi = arguments[1];
	regs.rdx = arguments[2];
	regs.r10 = arguments[3];
	regs.r8 = arguments[4];
	regs.r9 = arguments[5];
	if (!fathom_tracee_set(tid, &regs) || ptrace(PTRACE_SETSIGMASK, tid, sizeof all, &all) ||
	    !fathom_tracee_run_to_call(t, tid) || !fathom_tracee_run_to_call(t, tid))
		return -ESRCH;
	if (fathom_tracee_get(tid, &regs))
		result = (long)regs.rax;
	fathom_tracee_again(&before);
	(void)ptrace(PTRACE_SETSIGMASK, tid, sizeof mask, &mask);
	(void)fathom_tracee_set(tid, &before);
	return result;
}

bool fathom_tracee_unblock_trap(pid_t tid)
{
	const uint64_t bit = UINT64_C(1) << (SIGTRAP - 1);
	uint64_t mask = 0;

	if (ptrace(PTRACE_GETSIGMASK, tid, sizeof mask, &mask) || !(mask & bit))
		return false;
	mask &= ~bit;
	return !ptrace(PTRACE_SETSIGMASK, tid, sizeof mask, &mask);
}

void fathom_tracee_block(pid_t tid, int number)
{
	uint64_t mask = 0;

	if (ptrace(PTRACE_GETSIGMASK, tid, sizeof mask, &mask))
		return;
	mask |= UINT64_C(1) << (number - 1);
	(void)ptrace(PTRACE_SETSIGMASK, tid, sizeof mask, &mask);
}
