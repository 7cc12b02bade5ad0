/* SPDX-License-Identifier: MIT */
#include "host/trace/call_hooked.h"

#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "host/syscalls/call_capture.h"
#include "host/trace/call_sites.h"
#include "host/trace/ring_calls.h"
#include "trace/call_hook.h"

/* Steps from any instruction of the hook to its end: copying the longest strings takes most. */
#define MOST_STEPS 100000

/* ERESTARTNOINTR of the kernel (include/linux/errno.h), as a result. */
#define RESTART_NO_INTERRUPT (-513)

/* The bit of the flags by which each instruction traps (Intel SDM, EFLAGS). */
#define TRAP_FLAG 0x100

/* Completes @call, which the runtime has begun for @task, and posts it. */
static void post_hooked(struct fathom_follow *f, const struct fathom_follow_task *task,
			const struct fathom_ring_call *begun, int64_t result)
{
	struct fathom_posted_call *call = begun->call;
	struct fathom_syscall_record record = {
		.bytes = call->record,
		.n = call->size,
		.cap = FATHOM_TRACE_CALL_BYTES * 2,
	};
	struct fathom_post p = fathom_follow_post_at(task, FATHOM_TRACE_SYSCALL, NULL);

	fathom_syscall_capture_exit(&record, result, &f->calls->options,
				    &task->process->tracee.reader);
	call->size = (uint32_t)record.n;
	call->duration_ns =
		(uint64_t)((double)(p.ticks - begun->ticks) * 1e9 / (double)f->wait_ticks);
	p.call = call;
	p.ends = begun->begin + 1;
	p.sp = begun->sp;
	fathom_rings_post(f->rings, &p);
}

/*
 * Has @regs, of a thread of @task that is about to make a call in the hook, or has made it, be
 * those that it would have behind its own instruction.
 */
static bool leave_hook(const struct fathom_follow_task *task, struct user_regs_struct *regs,
		       struct fathom_trace_call_frame *ret)
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
		       const struct fathom_trace_call_frame *frame, struct fathom_ring_call *ret)
{
	return task->ring != FATHOM_NO_RING &&
	       fathom_ring_call_read(fathom_program_records(task->process->program, task->ring),
				     frame->begin, ret);
}

/* The call of @task was made. */
static void end_made(struct fathom_follow *f, const struct fathom_follow_task *task,
		     struct user_regs_struct *regs)
{
	struct fathom_trace_call_frame frame;
	struct fathom_ring_call begun;

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
	struct fathom_trace_call_frame frame;
	struct fathom_ring_call begun;

	if (!leave_hook(task, regs, &frame))
		return;
	p.ends = frame.begin + 1;
	if (!f->calls->tells_entries)
		fathom_rings_post(f->rings, &p);
	else if (read_begun(task, &frame, &begun))
		post_hooked(f, task, &begun, RESTART_NO_INTERRUPT);
	regs->rip -= FATHOM_KERNEL_CALL_SIZE;
	regs->orig_rax = UINT64_MAX;
	(void)fathom_tracee_set(task->tid, regs);
}

/* Has @task, at an instruction of a stub, be at its own; false if it is at none of these. */
static bool leave_stub(const struct fathom_follow_task *task, struct user_regs_struct *regs)
{
	static const uint8_t system_call[FATHOM_KERNEL_CALL_SIZE] = { 0x0f, 0x05 };
	const struct fathom_traced *p = task->process;
	const uint64_t behind = fathom_calls_pc(p, regs->rip);
	uint8_t code[sizeof system_call];

	if (behind != regs->rip) {
		regs->rip = behind;
	} else if (fathom_tracee_read(&p->tracee, regs->rip, code, sizeof code) &&
		   !memcmp(code, system_call, sizeof code) &&
		   fathom_calls_pc(p, regs->rip + sizeof code) != regs->rip + sizeof code) {
		regs->rip = fathom_calls_pc(p, regs->rip + sizeof code) - sizeof code;
	} else {
		return false;
	}
	(void)fathom_tracee_set(task->tid, regs);
	return true;
}

/* Has @tid make one step; false if something else has happened to it, which is noted. */
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
		*was_stopped |= !(status >> 16) && WSTOPSIG(status) == SIGSTOP;
		if (WSTOPSIG(status) == SIGSEGV || WSTOPSIG(status) == SIGBUS)
			(void)fathom_follow_take_fault(f, tid);
	} while (WSTOPSIG(status) != SIGTRAP);
	return true;
}

/* Brings @task out of the hook, wherever in it it is, by as many steps as are needed. */
static void come_out(struct fathom_follow *f, const struct fathom_follow_task *task,
		     bool *was_stopped)
{
	const struct fathom_traced *p = task->process;
	const uint64_t made = p->program->image + fathom_image_calls().made;
	struct user_regs_struct regs;

	for (int i = 0; i < MOST_STEPS; i++) {
		if (!fathom_tracee_get(task->tid, &regs) || !fathom_program_is_inside(p, regs.rip))
			return;
		if (regs.rip == made) {
			end_made(f, task, &regs);
			return;
		}
		if (regs.rip == made - FATHOM_KERNEL_CALL_SIZE) {
			take_back(f, task, &regs);
			return;
		}
		if (leave_stub(task, &regs) || !step(f, task->tid, was_stopped))
			return;
	}
}

void fathom_follow_end_hooked(struct fathom_follow *f, pid_t tid)
{
	const struct fathom_follow_task *task = f->calls ? fathom_follow_find(f, tid) : NULL;
	const struct fathom_program *pr = task ? task->process->program : NULL;
	const uint64_t all = ~(UINT64_C(1) << (SIGTRAP - 1));
	bool was_stopped = false;
	struct user_regs_struct regs;
	uint64_t mask;
	siginfo_t info;

	if (!pr || !pr->is_fixed || !fathom_tracee_get(tid, &regs) ||
	    !fathom_program_is_inside(task->process, regs.rip))
		return;
	if (ptrace(PTRACE_GETSIGMASK, tid, sizeof mask, &mask) ||
	    ptrace(PTRACE_GETSIGINFO, tid, NULL, &info) ||
	    ptrace(PTRACE_SETSIGMASK, tid, sizeof all, &all))
		return;
	come_out(f, task, &was_stopped);
	/* The kernel takes the flag for the program's where a step has loaded all flags. */
	if (fathom_tracee_get(tid, &regs)) {
		regs.eflags &= ~(unsigned long long)TRAP_FLAG;
		(void)fathom_tracee_set(tid, &regs);
	}
	(void)ptrace(PTRACE_SETSIGMASK, tid, sizeof mask, &mask);
	(void)ptrace(PTRACE_SETSIGINFO, tid, NULL, &info);
	if (was_stopped)
		(void)kill(task->process->tracee.pid, SIGSTOP);
}

bool fathom_follow_take_fault(const struct fathom_follow *f, pid_t tid)
{
	const struct fathom_follow_task *task = f->calls ? fathom_follow_find(f, tid) : NULL;
	const struct fathom_program *pr = task ? task->process->program : NULL;
	const struct fathom_image_calls at = fathom_image_calls();
	struct user_regs_struct regs;

	if (!pr || !pr->is_fixed || !fathom_tracee_get(tid, &regs) ||
	    regs.rip - pr->image - at.load >= at.load_fault - at.load)
		return false;
	regs.rip = pr->image + at.load_fault;
	return fathom_tracee_set(tid, &regs);
}
