/* SPDX-License-Identifier: MIT */
#include "host/trace/syscall_hooked.h"

#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "host/code/x86_64/x86_instructions.h"
#include "host/syscalls/syscall_capture.h"
#include "host/trace/syscall_rewriter.h"
#include "host/trace/ring_syscalls.h"
#include "trace/syscall_hook.h"

/* Steps from any instruction of the hook to its end: copying the longest strings takes most. */
#define MOST_STEPS 100000

/* ERESTARTNOINTR of the kernel (include/linux/errno.h), as a result. */
#define RESTART_NO_INTERRUPT (-513)

/* SYS_SECCOMP of si_code (include/uapi/asm-generic/siginfo.h). */
#define BY_FILTER 1

/* The bit of the flags by which each instruction traps (Intel SDM, EFLAGS). */
#define TRAP_FLAG 0x100

/* Completes @call, which the runtime has begun for @task, and posts it. */
static void post_hooked(struct fathom_follow *f, const struct fathom_follow_task *task,
			struct fathom_ring_syscall *begun, int64_t result)
{
	fathom_ring_syscall_complete(begun, &f->calls->options);

	struct fathom_posted_syscall *call = begun->call;
	struct fathom_syscall_record record = {
		.bytes = call->record,
		.n = call->size,
		.cap = FATHOM_RING_SYSCALL_BYTES,
	};
	struct fathom_post p = fathom_follow_post_at(task, FATHOM_TRACE_SYSCALL, NULL);

	fathom_syscall_capture_exit(&record, result, &f->calls->options,
				    &task->process->tracee.own);
	call->size = (uint32_t)record.n;
	call->duration_ns =
		(uint64_t)((double)(p.ticks - begun->ticks) * 1e9 / (double)f->wait_ticks);
	p.call = call;
	p.ends = begun->begin + 1;
	p.sp = begun->sp;
	fathom_rings_post(f->rings, &p);
}

/*
 * Changes @regs, of a thread of @task that is about to make a call in the hook, or has made it, to
 * those after the program's own instruction.
 */
static bool leave_hook(const struct fathom_follow_task *task, struct user_regs_struct *regs,
		       struct fathom_trace_syscall_frame *ret)
{
	if (!fathom_tracee_read(&task->process->tracee, regs->rsp, ret, sizeof *ret))
		return false;
	regs->rsp = ret->sp;
	regs->rip = regs->rcx = ret->behind;
	regs->r11 = regs->eflags = ret->flags;
	return true;
}

/* Reads the call of @task from its ring; false if it is not there. */
static bool read_begun(const struct fathom_follow_task *task,
		       const struct fathom_trace_syscall_frame *frame,
		       struct fathom_ring_syscall *ret)
{
	return task->ring != FATHOM_NO_RING &&
	       fathom_ring_syscall_read(fathom_program_records(task->process->program, task->ring),
					frame->begin, ret);
}

/* The call of @task was made. */
static void end_made(struct fathom_follow *f, const struct fathom_follow_task *task,
		     struct user_regs_struct *regs)
{
	struct fathom_trace_syscall_frame frame;
	struct fathom_ring_syscall begun;

	if (!leave_hook(task, regs, &frame))
		return;
	if (read_begun(task, &frame, &begun))
		post_hooked(f, task, &begun, (int64_t)regs->rax);
	(void)fathom_tracee_set(task->tid, regs);
}

/*
 * The call of @task is about to be made: it will be, by its instruction. If it was told that it
 * begins, it has ended as calls do that the kernel makes again.
 */
static void take_back(struct fathom_follow *f, const struct fathom_follow_task *task,
		      struct user_regs_struct *regs)
{
	struct fathom_post p = fathom_follow_post_at(task, FATHOM_TRACE_SYSCALL, NULL);
	struct fathom_trace_syscall_frame frame;
	struct fathom_ring_syscall begun;

	if (!leave_hook(task, regs, &frame))
		return;
	p.ends = frame.begin + 1;
	if (!f->calls->tells_entries)
		fathom_rings_post(f->rings, &p);
	else if (read_begun(task, &frame, &begun))
		post_hooked(f, task, &begun, RESTART_NO_INTERRUPT);
	regs->rip -= FATHOM_X86_SYSCALL_SIZE;
	regs->orig_rax = UINT64_MAX;
	(void)fathom_tracee_set(task->tid, regs);
}

/*
 * Single-steps @tid, with all signals blocked; returns false if something else has happened to it,
 * which is noted if it lasts.
 */
static bool step(struct fathom_follow *f, pid_t tid, bool *was_stopped)
{
	int status;

	do {
		if (ptrace(PTRACE_SINGLESTEP, tid, NULL, NULL))
			return false;
		status = fathom_tracee_wait(&f->waiter, tid);
		if (status == -1)
			return false;
		if (!WIFSTOPPED(status) || (status >> 16 && status >> 16 != PTRACE_EVENT_STOP)) {
			fathom_follow_note_event(f, tid, status);
			return false;
		}
		/* Of itself, or of all its process. */
		*was_stopped |= WSTOPSIG(status) != SIGTRAP &&
				(status >> 16 || WSTOPSIG(status) == SIGSTOP);
		if (!(status >> 16) && WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != SIGSTOP &&
		    !fathom_follow_take_fault(f, tid))
			return false;
	} while (status >> 16 || WSTOPSIG(status) != SIGTRAP);
	return true;
}

/* Returns whether @task, with @regs, is in the hook of system calls. */
static bool is_in_hook(const struct fathom_follow_task *task, const struct user_regs_struct *regs)
{
	const struct fathom_program *pr = task->process->program;
	const struct fathom_image_calls at = fathom_image_calls();

	return (task->ring != FATHOM_NO_RING &&
		fathom_program_hook_stack(pr, task->ring) - regs->rsp - 1 <
			FATHOM_TRACE_HOOK_STACK) ||
	       regs->rip - pr->image - at.entry < at.load - at.entry;
}

/* Returns whether @task, which was in the hook, makes the call now, has made it, or is out. */
static bool has_made(const struct fathom_follow_task *task, const struct user_regs_struct *regs)
{
	const uint64_t made = task->process->program->image + fathom_image_calls().made;

	return !is_in_hook(task, regs) || regs->rip == made ||
	       regs->rip == made - FATHOM_X86_SYSCALL_SIZE;
}

/* Returns whether @task, which was at a moved instruction, is at one that it can go on from. */
static bool has_own_pc(const struct fathom_follow_task *task, const struct user_regs_struct *regs)
{
	return !fathom_syscalls_is_gone(task->process, regs->rip);
}

/* Steps @task on to where @has_arrived says so; false if that cannot be. */
static bool step_on(struct fathom_follow *f, const struct fathom_follow_task *task,
		    struct user_regs_struct *regs,
		    bool (*has_arrived)(const struct fathom_follow_task *task,
					const struct user_regs_struct *regs))
{
	const uint64_t flag = regs->eflags & TRAP_FLAG;
	const uint64_t all = ~(UINT64_C(1) << (SIGTRAP - 1));
	bool was_stopped = false;
	bool is_done = false;
	uint64_t mask;
	siginfo_t info;

	if (ptrace(PTRACE_GETSIGMASK, task->tid, sizeof mask, &mask) ||
	    ptrace(PTRACE_GETSIGINFO, task->tid, NULL, &info) ||
	    ptrace(PTRACE_SETSIGMASK, task->tid, sizeof all, &all))
		return false;
	for (int i = 0; i < MOST_STEPS && !is_done; i++) {
		if (!step(f, task->tid, &was_stopped) || !fathom_tracee_get(task->tid, regs))
			break;
		is_done = has_arrived(task, regs);
	}
	/* The kernel takes the flag for the program's where a step has loaded all flags. */
	if (is_done) {
		regs->eflags = (regs->eflags & ~(unsigned long long)TRAP_FLAG) | flag;
		(void)fathom_tracee_set(task->tid, regs);
	}
	(void)ptrace(PTRACE_SETSIGMASK, task->tid, sizeof mask, &mask);
	(void)ptrace(PTRACE_SETSIGINFO, task->tid, NULL, &info);
	if (was_stopped)
		(void)kill(task->process->tracee.pid, SIGSTOP);
	return is_done;
}

/* A filter of the program's has refused a call of @tid: the signal says where that is. */
static void tell_place(pid_t tid, uint64_t pc)
{
	siginfo_t info;

	if (ptrace(PTRACE_GETSIGINFO, tid, NULL, &info) || info.si_signo != SIGSYS ||
	    info.si_code != BY_FILTER)
		return;
	info.si_call_addr = (void *)(uintptr_t)pc;
	(void)ptrace(PTRACE_SETSIGINFO, tid, NULL, &info);
}

/*
 * Returns whether @task, with @regs, has a trap of its own from a step into a stub. Back at the
 * jump that has led there, its next step would be the same.
 */
static bool has_stepped_itself(const struct fathom_follow_task *task,
			       const struct user_regs_struct *regs)
{
	siginfo_t info;

	return regs->eflags & TRAP_FLAG && fathom_syscalls_is_moved(task->process, regs->rip) &&
	       !ptrace(PTRACE_GETSIGINFO, task->tid, NULL, &info) && info.si_signo == SIGTRAP &&
	       info.si_code == TRAP_TRACE;
}

void fathom_follow_end_hooked(struct fathom_follow *f, pid_t tid)
{
	const struct fathom_follow_task *task = f->calls ? fathom_follow_find(f, tid) : NULL;
	const struct fathom_program *pr = task ? task->process->program : NULL;
	struct user_regs_struct regs;
	uint64_t made;
	uint64_t own;

	if (!pr || !pr->is_fixed || !fathom_tracee_get(tid, &regs))
		return;
	made = pr->image + fathom_image_calls().made;
	if ((fathom_syscalls_is_gone(task->process, regs.rip) || has_stepped_itself(task, &regs)) &&
	    !step_on(f, task, &regs, has_own_pc))
		return;
	own = fathom_syscalls_own_pc(task->process, regs.rip);
	if (own != regs.rip) {
		regs.rip = own;
		(void)fathom_tracee_set(tid, &regs);
	} else if (is_in_hook(task, &regs) && regs.rip != made &&
		   regs.rip != made - FATHOM_X86_SYSCALL_SIZE &&
		   !step_on(f, task, &regs, has_made)) {
		return;
	}
	if (regs.rip == made)
		end_made(f, task, &regs);
	else if (regs.rip == made - FATHOM_X86_SYSCALL_SIZE)
		take_back(f, task, &regs);
	tell_place(tid, regs.rip);
}

bool fathom_follow_take_fault(const struct fathom_follow *f, pid_t tid)
{
	const struct fathom_follow_task *task = f->calls ? fathom_follow_find(f, tid) : NULL;
	const struct fathom_program *pr = task ? task->process->program : NULL;
	const struct fathom_image_calls at = fathom_image_calls();
	struct user_regs_struct regs;
	siginfo_t info;

	/* One that somebody has sent is the program's. */
	if (!pr || !pr->is_fixed || !fathom_tracee_get(tid, &regs) ||
	    regs.rip - pr->image - at.load >= at.load_fault - at.load ||
	    ptrace(PTRACE_GETSIGINFO, tid, NULL, &info) || info.si_code <= 0)
		return false;
	regs.rip = pr->image + at.load_fault;
	return fathom_tracee_set(tid, &regs);
}
