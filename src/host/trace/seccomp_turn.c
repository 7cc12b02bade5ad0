/* SPDX-License-Identifier: MIT */
#include "host/trace/seccomp_turn.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host/base/clock.h"
#include "host/base/thread_list.h"
#include "host/code/x86_64/x86_instructions.h"
#include "host/file/process_status.h"
#include "host/tracer/stop.h"
#include "host/trace/attach.h"
#include "host/trace/syscall_hooked.h"

/* Calls of i386 (arch/x86/entry/syscalls/syscall_32.tbl). */
enum { EXIT_I386 = 1, PRCTL_I386 = 172 };

/* Bytes of `syscall`, and of `int $0x80`. */

/* Below the stack pointer nothing may change so far. */
#define RED_ZONE 128

/* AUDIT_ARCH_ constants (<linux/audit.h>) are an EM_ and flags. */
#define MACHINE UINT32_C(0xffff)

/* Bytes of the vDSO at most that are searched. */
#define VDSO_SIZE 16384

/* struct sock_fprog of i386 */
struct program_32 {
	uint16_t len;
	uint16_t padding;
	uint32_t filter;
};

/* Memory that the thread is given while it makes the call: of either size. */
struct strict_filter {
	struct sock_fprog program;
	struct program_32 program_32;
	struct sock_filter code[FATHOM_STRICT_FILTER_SIZE];
};

/* The question of a call to seccomp. */
enum request { NOTHING, STRICT, FILTER, GET_MODE, GET_NO_NEW_PRIVS, SET_NO_NEW_PRIVS };

struct question {
	enum request request;
	bool is_i386;
	uint64_t program; /* avma of a struct sock_fprog */
	uint64_t flags;   /* SECCOMP_FILTER_FLAG_ */
};

static struct question question_of_prctl(const uint64_t args[6])
{
	const bool has_more = args[2] || args[3] || args[4];

	switch ((uint32_t)args[0]) {
	case PR_SET_SECCOMP:
		if (args[1] == SECCOMP_MODE_STRICT)
			return (struct question){ .request = STRICT };
		if (args[1] == SECCOMP_MODE_FILTER)
			return (struct question){ .request = FILTER, .program = args[2] };
		break;
	case PR_GET_SECCOMP:
		return (struct question){ .request = GET_MODE };
	case PR_GET_NO_NEW_PRIVS:
		if (!args[1] && !has_more)
			return (struct question){ .request = GET_NO_NEW_PRIVS };
		break;
	case PR_SET_NO_NEW_PRIVS:
		if (args[1] == 1 && !has_more)
			return (struct question){ .request = SET_NO_NEW_PRIVS };
		break;
	default:
		break;
	}
	return (struct question){ .request = NOTHING };
}

static struct question question_of_seccomp(const uint64_t args[6])
{
	const uint32_t operation = (uint32_t)args[0];

	if (operation == SECCOMP_SET_MODE_STRICT && !(uint32_t)args[1] && !args[2])
		return (struct question){ .request = STRICT };
	if (operation == SECCOMP_SET_MODE_FILTER)
		return (struct question){ .request = FILTER,
					  .program = args[2],
					  .flags = (uint32_t)args[1] };
	return (struct question){ .request = NOTHING };
}

/*
 * Returns what the call of @info asks; NOTHING, also where the kernel says what is wrong with it.
 */
static struct question question_of(const struct __ptrace_syscall_info *info)
{
	const uint32_t machine = info->arch & MACHINE;
	const uint64_t number = info->entry.nr & ~(uint64_t)FATHOM_SYSCALL_X32;
	const char *name = fathom_syscall_name(machine, (int64_t)number);
	struct question q = { .request = NOTHING };
	uint64_t args[6];

	/* Both kinds of begins have the same members there. */
	memcpy(args, info->entry.args, sizeof args);
	if (name && !strcmp(name, "prctl"))
		q = question_of_prctl(args);
	else if (name && !strcmp(name, "seccomp"))
		q = question_of_seccomp(args);
	q.is_i386 = machine == EM_386;
	return q;
}

/*
 * Returns whether thread @tid has a filter beside the one by which it stops. Linux before 5.9 does
 * not say.
 */
static bool has_other_filter(pid_t tid)
{
	const int n = fathom_status_filters(tid);

	return n != INT_MAX && n > 1;
}

/* Makes the call of @tid have @result without being made. */
static void answer(pid_t tid, int64_t result)
{
	struct user_regs_struct regs;

	if (!fathom_tracee_get(tid, &regs))
		return;
	regs.orig_rax = UINT64_MAX;
	regs.rax = (uint64_t)result;
	(void)fathom_tracee_set(tid, &regs);
}

/*
 * Makes @tid, stopped after a call with registers @regs, call prctl() with these arguments, by the
 * instruction at @avma, with all signals blocked; returns the result.
 */
static int64_t make_prctl(const struct fathom_tracee *t, pid_t tid, uint64_t avma,
			  struct user_regs_struct regs, uint64_t option, uint64_t second,
			  uint64_t third)
{
	uint64_t all = UINT64_MAX;
	uint64_t mask = 0;
	int64_t result = -ESRCH;

	regs.rip = avma;
	regs.rax = regs.cs == FATHOM_CODE_64 ? SYS_prctl : PRCTL_I386;
	regs.orig_rax = UINT64_MAX;
	/* Where x86-64 has its arguments, and where i386 has them. */
	regs.rdi = regs.rbx = option;
	regs.rsi = regs.rcx = second;
	regs.rdx = third;
	if (ptrace(PTRACE_GETSIGMASK, tid, sizeof mask, &mask) ||
	    ptrace(PTRACE_SETSIGMASK, tid, sizeof all, &all))
		return result;
	if (fathom_tracee_set(tid, &regs) && fathom_tracee_run_to_call(t, tid) &&
	    fathom_tracee_run_to_call(t, tid) && fathom_tracee_get(tid, &regs))
		result = (int64_t)regs.rax;
	(void)ptrace(PTRACE_SETSIGMASK, tid, sizeof mask, &mask);
	return result;
}

/*
 * Returns the avma of an instruction by which a thread with registers @regs can call the kernel as
 * its own code does: that of its last call, unless that is `int $0x80` of 64 bits, then one of the
 * vDSO; 0: there is none.
 */
static uint64_t find_instruction(const struct fathom_tracee *t, const struct user_regs_struct *regs,
				 bool is_i386)
{
	uint8_t code[VDSO_SIZE];
	uint64_t word[2];
	uint64_t vdso = 0;
	const uint8_t *at;
	char path[64];
	ssize_t n;
	FILE *f;

	if (!is_i386 || regs->cs != FATHOM_CODE_64)
		return regs->rip - FATHOM_X86_SYSCALL_SIZE;
	(void)snprintf(path, sizeof path, "/proc/%d/auxv", (int)t->pid);
	f = fopen(path, "re");
	while (f && !vdso && fread(word, sizeof word, 1, f) == 1)
		vdso = word[0] == AT_SYSINFO_EHDR ? word[1] : 0;
	if (f)
		(void)fclose(f);
	n = vdso ? pread(t->memory, code, sizeof code, (off_t)vdso) : 0;
	at = n > 0 ? memmem(code, (size_t)n, fathom_x86_syscall, FATHOM_X86_SYSCALL_SIZE) : NULL;
	return at ? vdso + (uint64_t)(at - code) : 0;
}

/*
 * Puts @tid, stopped after a call with registers @regs, into strict mode; returns an error or 0.
 */
static int64_t set_strict(const struct fathom_tracee *t, pid_t tid, uint64_t avma,
			  const struct user_regs_struct *regs)
{
	const bool is_32 = regs->cs != FATHOM_CODE_64;
	const uint64_t at = (regs->rsp - RED_ZONE - sizeof(struct strict_filter)) & ~UINT64_C(15);
	const uint64_t code = at + offsetof(struct strict_filter, code);
	struct strict_filter filter = { .program.len = FATHOM_STRICT_FILTER_SIZE };
	struct strict_filter before;
	int64_t result;

	memcpy(&filter.program.filter, &code, sizeof code);
	filter.program_32.len = FATHOM_STRICT_FILTER_SIZE;
	filter.program_32.filter = (uint32_t)code;
	memcpy(filter.code, fathom_strict_filter, sizeof filter.code);
	if (!fathom_tracee_read(t, at, &before, sizeof before) ||
	    !fathom_tracee_write(t, at, &filter, sizeof filter))
		return -EFAULT;
	result = make_prctl(t, tid, avma, *regs, PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
			    at + (is_32 ? offsetof(struct strict_filter, program_32) : 0));
	(void)fathom_tracee_write(t, at, &before, sizeof before);
	/* Strict mode forbids the processor's clock, too. */
	if (!result)
		(void)make_prctl(t, tid, avma, *regs, PR_SET_TSC, PR_TSC_SIGSEGV, 0);
	return result;
}

/* Puts @task into strict mode; returns the result of its call, after which it has stopped. */
static int64_t begin_strict(struct fathom_follow_task *task, bool is_i386)
{
	const struct fathom_tracee *t = &task->process->tracee;
	struct user_regs_struct regs;
	int64_t result = -EINVAL;
	uint64_t avma;

	answer(task->tid, result);
	if (!fathom_tracee_run_to_call(t, task->tid) || !fathom_tracee_get(task->tid, &regs))
		return result;
	avma = find_instruction(t, &regs, is_i386);
	if (avma)
		result = set_strict(t, task->tid, avma, &regs);
	task->is_strict = result == 0;
	regs.rax = (uint64_t)result;
	(void)fathom_tracee_set(task->tid, &regs);
	return result;
}

/* Returns whether the kernel would let @task filter its calls without PR_SET_NO_NEW_PRIVS. */
static bool is_privileged(pid_t tid)
{
	return fathom_status_capability(tid, FATHOM_CAP_SYS_ADMIN) != 0;
}

/*
 * Returns whether the filter of @q is one that the kernel would look at: without rights it fails.
 */
static bool is_whole_filter(const struct fathom_follow_task *task, const struct question *q)
{
	const uint32_t flags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_LOG |
			       SECCOMP_FILTER_FLAG_SPEC_ALLOW;
	const size_t size = q->is_i386 ? sizeof(struct program_32) : sizeof(struct sock_fprog);
	_Alignas(8) uint8_t bytes[sizeof(struct sock_fprog)];
	uint16_t n;

	if (q->flags & ~(uint64_t)flags ||
	    !fathom_tracee_read(&task->process->tracee, q->program, bytes, size))
		return false;
	memcpy(&n, bytes, sizeof n);
	return n > 0 && n <= BPF_MAXINSNS;
}

/* The threads that were asked to stop before a filter is theirs, too. */
struct asked {
	struct fathom_follow *f;
	FATHOM_ARRAY_OF(pid_t); /* 0: it has stopped */
};

/* Looks whether thread @i has stopped, and notes its status. */
static pid_t look(void *data, size_t i)
{
	struct asked *asked = data;
	const pid_t tid = asked->items[i];
	enum fathom_stop_kind kind;
	int status;

	if (!tid)
		return 0;
	kind = fathom_stop_take(tid, &status);
	if (kind == FATHOM_STOP_RUNS)
		return tid;
	asked->items[i] = 0;
	if (kind == FATHOM_STOP_STOPPED || kind == FATHOM_STOP_GROUP)
		fathom_follow_end_hooked(asked->f, tid);
	if (kind != FATHOM_STOP_UNKNOWN)
		fathom_follow_note_event(asked->f, tid, status);
	return 0;
}

/*
 * Stops the other threads of @task's process before its filter is theirs, too: they go on to where
 * their next calls begin. One that the kernel does not stop, as it waits for a child of vfork(), is
 * within a call.
 */
static void stop_others(struct fathom_follow *f, const struct fathom_follow_task *task)
{
	struct asked asked = { .f = f };
	struct fathom_stop_group g = { .look = look,
				       .data = &asked,
				       .tasks = fathom_threads_open(task->process->tracee.pid),
				       .brief_ns = FATHOM_STOP_BRIEF_NS,
				       .most_ns = FATHOM_STOP_BUSY_NS };
	int64_t spent;

	for (size_t i = 0; i < f->tasks.n; i++) {
		const pid_t tid = f->tasks.items[i].tid;

		if (f->tasks.items[i].process == task->process && tid != task->tid &&
		    fathom_stop_ask(tid))
			(void)fathom_array_push(&asked, tid);
	}
	g.n = asked.n;
	(void)fathom_stop_wait(&g, &spent);
	if (g.tasks >= 0)
		close(g.tasks);
	fathom_array_free(&asked);
}

/* @task filters its calls, where it may; its other threads, too, then have no new rights. */
static void take_filter(struct fathom_follow *f, struct fathom_follow_task *task,
			const struct question *q)
{
	if (!task->has_no_new_privs && is_whole_filter(task, q) && !is_privileged(task->tid)) {
		answer(task->tid, -EACCES);
		return;
	}
	if (!(q->flags & SECCOMP_FILTER_FLAG_TSYNC))
		return;
	stop_others(f, task);
	for (size_t i = 0; i < f->tasks.n; i++)
		if (f->tasks.items[i].process == task->process)
			f->tasks.items[i].has_no_new_privs |= task->has_no_new_privs;
}

/* A thread, beside which others are looked for that live. */
struct beside {
	pid_t tid;
	int tasks;
};

static bool has_ended(void *data, pid_t tid)
{
	const struct beside *b = data;

	return tid == b->tid || fathom_thread_has_ended(fathom_thread_state(b->tasks, tid));
}

/* Returns whether no other thread of the process of @task is left. */
static bool is_last(const struct fathom_follow_task *task)
{
	struct beside b = { task->tid, fathom_threads_open(task->process->tracee.pid) };
	const bool is = fathom_threads_each(b.tasks, has_ended, &b) != 1;

	if (b.tasks >= 0)
		close(b.tasks);
	return is;
}

/* Ends @task, which has made a forbidden call, without the other threads of its process. */
static void kill_task(struct fathom_follow_task *task, bool is_i386)
{
	struct user_regs_struct regs;

	task->is_killed = true;
	/* The last one's end is that of the process. */
	if (is_last(task) || !fathom_tracee_get(task->tid, &regs)) {
		(void)kill(task->process->tracee.pid, SIGKILL);
		return;
	}
	regs.orig_rax = is_i386 ? EXIT_I386 : SYS_exit;
	if (fathom_tracee_set(task->tid, &regs))
		(void)ptrace(PTRACE_CONT, task->tid, NULL, NULL);
}

void fathom_seccomp_begin(struct fathom_follow_task *task)
{
	task->has_no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
}

enum fathom_seccomp_turn fathom_seccomp_take(struct fathom_follow *f,
					     struct fathom_follow_task *task,
					     const struct __ptrace_syscall_info *info,
					     int64_t *ret_result)
{
	const struct question q = question_of(info);

	if (task->is_strict && info->seccomp.ret_data == FATHOM_STRICT_FILTER_DATA) {
		kill_task(task, (info->arch & MACHINE) == EM_386);
		return FATHOM_SECCOMP_ENDED;
	}
	/* It is the program's filter that wants a tracer: without one, the call fails so. */
	if (info->seccomp.ret_data != FATHOM_SYSCALL_FILTER_DATA) {
		answer(task->tid, -ENOSYS);
		return FATHOM_SECCOMP_GOES_ON;
	}
	switch (q.request) {
	case STRICT:
		/* The kernel refuses it beside a filter. */
		if (has_other_filter(task->tid))
			break;
		*ret_result = begin_strict(task, q.is_i386);
		return FATHOM_SECCOMP_MADE;
	case FILTER:
		take_filter(f, task, &q);
		break;
	case GET_MODE:
		if (!has_other_filter(task->tid))
			answer(task->tid, 0);
		break;
	case GET_NO_NEW_PRIVS:
		answer(task->tid, task->has_no_new_privs);
		break;
	case SET_NO_NEW_PRIVS:
		task->has_no_new_privs = true;
		break;
	default:
		break;
	}
	return FATHOM_SECCOMP_GOES_ON;
}
