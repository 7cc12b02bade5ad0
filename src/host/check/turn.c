/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "host/check/checker.h"
#include "host/code/x86_64/x86_instructions.h"
#include "host/tracer/stop.h"

/* Bytes of the longest instruction. */
#define LONGEST_INSTRUCTION 15

/* The tasks that run beside one. */
struct others {
	struct fathom_checker *c;
	const struct fathom_checked_task *task;
};

/* Returns whether @other is to be stopped, or was asked to and has not. */
static bool runs(const struct others *o, const struct fathom_checked_task *other)
{
	return other != o->task && !other->is_stopped && !other->is_listening && !other->in_call &&
	       !other->is_unknown && !other->has_event;
}

/* Looks whether task @i has stopped; what comes instead is kept as its event. */
static pid_t look(void *data, size_t i)
{
	const struct others *o = data;
	struct fathom_checked_task *other = o->c->tasks.items[i];
	int status;

	if (!runs(o, other))
		return 0;
	switch (fathom_stop_take(other->tid, &status)) {
	case FATHOM_STOP_RUNS:
		return other->tid;
	case FATHOM_STOP_STOPPED:
		/* A stop that was asked for is no event. */
		other->is_stopped = true;
		break;
	case FATHOM_STOP_GROUP:
	case FATHOM_STOP_OTHER:
		fathom_checker_note(o->c, other->tid, status);
		break;
	case FATHOM_STOP_UNKNOWN:
		break;
	}
	return 0;
}

void fathom_checker_stop_others(struct fathom_checker *c, const struct fathom_checked_task *task)
{
	struct others o = { c, task };
	const struct fathom_stop_group g = { .look = look,
					     .data = &o,
					     .n = c->tasks.n,
					     .tasks = -1,
					     .brief_ns = INT64_MAX,
					     .most_ns = INT64_MAX };
	int64_t spent;

	for (size_t i = 0; i < c->tasks.n; i++)
		if (runs(&o, c->tasks.items[i]))
			(void)fathom_stop_ask(c->tasks.items[i]->tid);
	(void)fathom_stop_wait(&g, &spent);
}

void fathom_checker_resume_others(struct fathom_checker *c, const struct fathom_checked_task *task)
{
	for (size_t i = 0; i < c->tasks.n; i++) {
		struct fathom_checked_task *other = c->tasks.items[i];

		if (other != task && other->is_stopped && !other->has_event && !other->wants_turn &&
		    !other->is_unknown)
			fathom_checker_resume(other);
	}
}

bool fathom_checker_is_entry(const struct fathom_checker *c, const struct fathom_checked_task *task,
			     const struct user_regs_struct *regs)
{
	const struct fathom_closed_range *r;
	siginfo_t info;
	uint64_t at;

	if (ptrace(PTRACE_GETSIGINFO, task->tid, NULL, &info) || info.si_signo != SIGSEGV ||
	    info.si_code != SEGV_ACCERR)
		return false;
	at = (uint64_t)(uintptr_t)info.si_addr;
	r = fathom_closed_at(&c->closed, at);
	/* An instruction may reach into the page. */
	if (r && !r->is_open && at - regs->rip <= LONGEST_INSTRUCTION)
		return true;
	if (r)
		fathom_closed_restore_fault(r, task->tid, &info);
	return false;
}

/* Opens the closed pages that the instruction at @pc is in. */
static void open_at(struct fathom_checker *c, const struct fathom_checked_task *task, uint64_t pc)
{
	for (uint64_t at = pc; at - pc <= LONGEST_INSTRUCTION; at += LONGEST_INSTRUCTION) {
		struct fathom_closed_range *r = fathom_closed_at(&c->closed, at);

		if (r && !r->is_open)
			fathom_closed_open(&c->closed, r, &c->tracee, task->tid);
	}
}

/* Results of a step. */
enum step {
	STEP_DONE,
	STEP_AGAIN, /* the instruction has not run: it is to be stepped once more */
	STEP_OTHER  /* the task has an event */
};

/* Steps @task over one instruction, with the signal that is to be delivered. */
static enum step step(struct fathom_checker *c, struct fathom_checked_task *task)
{
	struct user_regs_struct regs;
	siginfo_t info;
	int status;

	if (ptrace(PTRACE_SINGLESTEP, task->tid, NULL, task->signal)) {
		task->is_stopped = false;
		return STEP_OTHER;
	}
	task->signal = 0;
	task->is_stopped = false;
	status = fathom_tracee_wait(&c->tracee, task->tid);
	if (status == -1)
		return STEP_OTHER;
	if (!WIFSTOPPED(status) || status >> 16 || WSTOPSIG(status) == (SIGTRAP | 0x80)) {
		fathom_checker_note(c, task->tid, status);
		return STEP_OTHER;
	}
	task->is_stopped = true;
	if (WSTOPSIG(status) == SIGTRAP) {
		/* A breakpoint of the program's own has run, and is to be reported. */
		if (!ptrace(PTRACE_GETSIGINFO, task->tid, NULL, &info) && info.si_code == SI_KERNEL)
			task->signal = SIGTRAP;
		return STEP_DONE;
	}
	if (WSTOPSIG(status) == SIGSEGV && fathom_tracee_get(task->tid, &regs) &&
	    fathom_checker_is_entry(c, task, &regs)) {
		open_at(c, task, regs.rip);
		return STEP_AGAIN;
	}
	task->signal = WSTOPSIG(status);
	return STEP_AGAIN;
}

/* Effects of the next instruction that a step must not change. */
enum effect { EFFECT_NONE, EFFECT_PUSHES_FLAGS, EFFECT_CALLS_KERNEL };

static enum effect effect_at(const struct fathom_checker *c, uint64_t pc)
{
	const struct fathom_reader *r = &c->tracee.reader;
	uint8_t code[3] = { 0 };
	size_t i = 0;

	(void)r->read(r->data, pc, code, sizeof code);
	if (code[0] == 0x0f && code[1] == 0x05)
		return EFFECT_CALLS_KERNEL;
	/* pushf, with a size or REX */
	while (i < 2 && (code[i] == 0x66 || (code[i] & 0xf0) == 0x40))
		i++;
	return code[i] == 0x9c ? EFFECT_PUSHES_FLAGS : EFFECT_NONE;
}

/* Takes the trap flag, which is ours, out of the flags that @task has pushed to @sp. */
static void hide_trap_flag(const struct fathom_checker *c, const struct fathom_checked_task *task,
			   uint64_t sp)
{
	uint8_t second;

	if (fathom_tracee_read(&c->tracee, sp + 1, &second, 1))
		(void)fathom_tracee_write_byte(task->tid, sp + 1, second & 0xfe);
}

/* Clears the trap flag, which the kernel takes for the program's after popf. */
static void drop_trap_flag(const struct fathom_checked_task *task)
{
	enum { TRAP_FLAG = 1 << 8 };
	struct user_regs_struct regs;

	if (!task->is_stopped || !fathom_tracee_get(task->tid, &regs) || !(regs.eflags & TRAP_FLAG))
		return;
	regs.eflags &= ~(unsigned long long)TRAP_FLAG;
	(void)fathom_tracee_set(task->tid, &regs);
}

/*
 * Lets @task begin the system call at @pc: it may wait there for other threads, and its end is an
 * event like others.
 */
static void begin_call(struct fathom_checker *c, struct fathom_checked_task *task, uint64_t pc,
		       uint64_t sp)
{
	int status;

	fathom_shadow_wait(&task->shadow, pc + 2, sp);
	fathom_checker_resume(task);
	status = fathom_tracee_wait(&c->tracee, task->tid);
	if (status != -1)
		fathom_checker_note(c, task->tid, status);
}

/* Steps @task until it has left the pages, its slice is over, or something else comes. */
static void run_slice(struct fathom_checker *c, struct fathom_checked_task *task,
		      struct user_regs_struct *regs)
{
	struct fathom_registers now;
	bool has_signal = false;

	for (uint32_t n = 0; c->tasks.n == 1 || n < c->options.slice;) {
		const enum effect effect = effect_at(c, regs->rip);
		const uint64_t pc = regs->rip;
		const uint64_t sp = regs->rsp;
		enum step s;

		if (effect == EFFECT_CALLS_KERNEL) {
			begin_call(c, task, pc, sp);
			return;
		}
		has_signal |= task->signal != 0;
		s = step(c, task);
		if (s == STEP_OTHER) {
			fathom_shadow_pause(&task->shadow, pc, sp);
			return;
		}
		if (s == STEP_AGAIN)
			continue;
		n++;
		if (!fathom_tracee_get(task->tid, regs))
			return;
		if (effect == EFFECT_PUSHES_FLAGS && regs->rsp < sp)
			hide_trap_flag(c, task, regs->rsp);
		fathom_tracee_registers(regs, &now);
		if (fathom_published_at(c->published, pc))
			fathom_shadow_step(&task->shadow, &c->work, pc, sp, &now, has_signal);
		else if (fathom_published_at(c->published, now.pc))
			fathom_shadow_enter(&task->shadow, &c->work, &now, false);
		has_signal = false;
		if (!fathom_closed_at(&c->closed, now.pc)) {
			task->wants_turn = false;
			return;
		}
	}
	task->is_stepping = true;
}

/* Returns whether @task can make a system call for us: it is not within one of its own. */
static bool can_call(const struct fathom_checked_task *task)
{
	const int event = task->event >> 16;

	return task->is_stopped &&
	       (!task->has_event || ((!event || event == PTRACE_EVENT_STOP) &&
				     WSTOPSIG(task->event) != (SIGTRAP | 0x80)));
}

/* Closes what @task has opened. Where no thread can, the next turn does. */
static void close_again(struct fathom_checker *c, const struct fathom_checked_task *task)
{
	for (size_t i = 0; i < c->tasks.n && !can_call(task); i++)
		task = c->tasks.items[i];
	if (can_call(task))
		fathom_closed_close(&c->closed, &c->tracee, task->tid);
}

void fathom_checker_turn(struct fathom_checker *c, struct fathom_checked_task *task)
{
	struct user_regs_struct regs;
	struct fathom_registers now;
	bool was_blocked;

	fathom_checker_stop_others(c, task);
	if (fathom_tracee_get(task->tid, &regs) && fathom_closed_at(&c->closed, regs.rip)) {
		open_at(c, task, regs.rip);
		fathom_tracee_registers(&regs, &now);
		if (!task->is_stepping)
			fathom_shadow_enter(&task->shadow, &c->work, &now, task->from_signal);
		task->is_stepping = false;
		task->from_signal = false;
		was_blocked = fathom_tracee_unblock_trap(task->tid);
		run_slice(c, task, &regs);
		drop_trap_flag(task);
		if (was_blocked && task->is_stopped)
			fathom_tracee_block(task->tid, SIGTRAP);
	} else {
		/* Its code was taken back meanwhile. */
		task->wants_turn = false;
	}
	close_again(c, task);
	if (can_call(task))
		fathom_dispositions_repair(&c->dispositions, &c->tracee, task->tid);
	if (task->has_event || !task->is_stopped)
		task->wants_turn = false;
	if (task->is_stopped && !task->wants_turn && !task->has_event)
		fathom_checker_resume(task);
	fathom_checker_resume_others(c, task);
}

void fathom_checker_step_over(struct fathom_checker *c, struct fathom_checked_task *task,
			      uint64_t avma, uint8_t byte)
{
	enum step s;

	fathom_checker_stop_others(c, task);
	(void)fathom_tracee_write_byte(task->tid, avma, byte);
	do
		s = step(c, task);
	while (s == STEP_AGAIN);
	if (task->is_stopped)
		(void)fathom_tracee_write_byte(task->tid, avma, FATHOM_X86_INT3);
	fathom_checker_resume_others(c, task);
}
