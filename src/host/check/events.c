/* SPDX-License-Identifier: MIT */
#include <elf.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/base/page.h"
#include "host/check/checker.h"
#include "host/code/x86_64/x86_instructions.h"
#include "host/space/target.h"

struct fathom_checked_task *fathom_checker_task(const struct fathom_checker *c, pid_t tid)
{
	for (size_t i = 0; i < c->tasks.n; i++)
		if (c->tasks.items[i]->tid == tid)
			return c->tasks.items[i];
	return NULL;
}

struct fathom_checked_task *fathom_checker_add(struct fathom_checker *c, pid_t tid)
{
	struct fathom_checked_task *task = calloc(1, sizeof *task);

	if (!task || !fathom_array_room(&c->tasks, 1)) {
		free(task);
		c->err = fathom_fail_memory(c->reterr);
		return NULL;
	}
	task->tid = tid;
	task->call = -1;
	c->tasks.items[c->tasks.n++] = task;
	return task;
}

void fathom_checker_remove(struct fathom_checker *c, struct fathom_checked_task *task)
{
	for (size_t i = 0; i < c->tasks.n; i++)
		if (c->tasks.items[i] == task) {
			c->tasks.items[i] = c->tasks.items[--c->tasks.n];
			break;
		}
	fathom_array_free(&task->shadow);
	free(task);
}

void fathom_checker_note(struct fathom_checker *c, pid_t tid, int status)
{
	struct fathom_checked_task *task = fathom_checker_task(c, tid);

	if (!task) {
		/* A new thread or child, of which its parent's event will tell. */
		if (!WIFSTOPPED(status) || !(task = fathom_checker_add(c, tid)))
			return;
		task->is_unknown = true;
	}
	task->is_stopped = WIFSTOPPED(status);
	task->is_listening = false;
	task->has_event = true;
	task->event = status;
}

void fathom_checker_resume(struct fathom_checked_task *task)
{
	task->is_stopped = ptrace(PTRACE_SYSCALL, task->tid, NULL, task->signal) != 0;
	task->signal = 0;
	/* One that cannot be resumed is being killed, and its end comes next. */
	task->is_stopped = false;
}

/* Ends the run with the error of the last call. */
static void fail(struct fathom_checker *c, fathom_err err)
{
	if (err && !c->err)
		c->err = err;
	if (err == FATHOM_E_MEMORY)
		(void)fathom_fail_memory(c->reterr);
}

/* Forgets the program that was there before exec(), and opens the new one. */
static fathom_err open_program(struct fathom_checker *c)
{
	struct fathom_view *v;
	struct fathom_layout layout;

	fathom_array_free(&c->interfaces);
	fathom_array_free(&c->closed);
	fathom_published_destroy(c->published);
	fathom_target_release(c->target);
	c->published = NULL;
	c->work.published = NULL;
	c->target = NULL;
	if (!fathom_tracee_open_memory(&c->tracee))
		return fathom_fail(c->reterr, FATHOM_E_OS, "", 0, "its memory cannot be read");
	FATHOM_TRY(
		fathom_target_open_process(c->session, c->tracee.pid, NULL, &c->target, c->reterr));
	FATHOM_TRY(fathom_view_begin(c->target, FATHOM_VIEW_PLACES, &v, c->reterr));
	if (c->target->ops->layout(v, &layout))
		layout.machine = EM_NONE;
	fathom_view_end(v);
	if (layout.machine != EM_X86_64)
		return fathom_fail(c->reterr, FATHOM_E_UNSUPPORTED, "", 0,
				   "the program is not for x86-64");
	FATHOM_TRY(fathom_published_create(&c->tracee, c->target, &c->published));
	c->work.published = c->published;
	c->modules_changed = true;
	return FATHOM_OK;
}

/* @task runs another program now. */
static void handle_exec(struct fathom_checker *c, struct fathom_checked_task *task)
{
	if (task->tid != c->tracee.pid) {
		/* A child that had shared the memory. */
		(void)ptrace(PTRACE_DETACH, task->tid, NULL, NULL);
		fathom_checker_remove(c, task);
		return;
	}
	for (size_t i = c->tasks.n; i--;)
		if (c->tasks.items[i] != task)
			fathom_checker_remove(c, c->tasks.items[i]);
	c->is_started = true;
	fathom_array_free(&task->shadow);
	c->dispositions = (struct fathom_dispositions){ 0 };
	fail(c, open_program(c));
	fathom_checker_resume(task);
}

/* Returns whether @tid, of which the event @event told, has the memory of the program. */
static bool shares_memory(const struct fathom_checker *c, pid_t tid, int event)
{
	enum { KCMP_VM = 1 };
	const long result = syscall(SYS_kcmp, c->tracee.pid, tid, KCMP_VM, 0, 0);

	return result < 0 ? event != PTRACE_EVENT_FORK : result == 0;
}

/* Takes in a task that has made its first stop, or lets a child with a copy of the memory go. */
static void adopt(struct fathom_checker *c, struct fathom_checked_task *task, int event)
{
	task->is_unknown = false;
	task->has_event = false;
	task->is_child = event != PTRACE_EVENT_CLONE;
	if (shares_memory(c, task->tid, event)) {
		struct user_regs_struct regs;

		/* Published code may have made it, by a system call of its own. */
		task->wants_turn = fathom_tracee_get(task->tid, &regs) &&
				   fathom_closed_at(&c->closed, regs.rip);
		if (task->wants_turn)
			return;
		fathom_closed_close(&c->closed, &c->tracee, task->tid);
		fathom_checker_resume(task);
		return;
	}
	fathom_closed_release(&c->closed, &c->tracee, task->tid);
	fathom_interfaces_clear(&c->interfaces, task->tid);
	(void)ptrace(PTRACE_DETACH, task->tid, NULL, NULL);
	fathom_checker_remove(c, task);
}

/* @task has made another one. */
static void handle_child(struct fathom_checker *c, struct fathom_checked_task *task, int event)
{
	unsigned long tid = 0;
	struct fathom_checked_task *child;

	if (!ptrace(PTRACE_GETEVENTMSG, task->tid, NULL, &tid) && tid) {
		child = fathom_checker_task(c, (pid_t)tid);
		/* One that has ended before its first stop was taken, and is not waited for. */
		if (!child && !kill((pid_t)tid, 0)) {
			const int status = fathom_tracee_wait(&c->tracee, (pid_t)tid);

			if (status != -1)
				fathom_checker_note(c, (pid_t)tid, status);
			child = fathom_checker_task(c, (pid_t)tid);
		}
		if (child && child->is_stopped)
			adopt(c, child, event);
	}
	fathom_checker_resume(task);
}

/* Returns whether @call may change what is mapped where, or how. */
static bool is_mapping(long call)
{
	return call == SYS_mmap || call == SYS_munmap || call == SYS_mprotect ||
	       call == SYS_mremap || call == SYS_pkey_mprotect;
}

/* The call of @task has changed mappings, and returned @result. */
static void take_mapping(struct fathom_checker *c, struct fathom_checked_task *task,
			 uint64_t result)
{
	const uint64_t page = fathom_page_size();
	const uint64_t *a = task->arguments;
	const uint64_t low = task->call == SYS_mmap ? result : a[0];
	const bool is_file = task->call == SYS_mmap && (int64_t)(int32_t)a[4] >= 0;
	const bool is_code =
		task->call == SYS_mremap || (task->call != SYS_munmap && a[2] & PROT_EXEC);

	if (is_file && is_code)
		c->modules_changed = true;
	/* The kernel rounds sizes up. */
	fail(c, fathom_closed_forget(&c->closed, low, (low + a[1] + page - 1) & ~(page - 1)));
	if (task->call == SYS_mremap)
		fail(c, fathom_closed_forget(&c->closed, result,
					     (result + a[2] + page - 1) & ~(page - 1)));
	if (is_code)
		fail(c, fathom_closed_update(&c->closed, &c->tracee, task->tid, c->published));
}

/* Finds the interfaces of objects that were mapped since. */
static void find_interfaces(struct fathom_checker *c, const struct fathom_checked_task *task)
{
	bool changed = false;

	c->modules_changed = false;
	fail(c, fathom_interfaces_find(&c->interfaces, &c->tracee, c->target, task->tid,
				       c->published, &changed, c->reterr));
	/* Its pages are closed when the call is over: now the thread can make no other. */
	if (changed)
		c->closed_late = true;
}

/* @task begins a system call. */
static void begin_call(struct fathom_checker *c, struct fathom_checked_task *task,
		       const struct __ptrace_syscall_info *info)
{
	task->call = (long)info->entry.nr;
	for (size_t i = 0; i < 6; i++)
		task->arguments[i] = info->entry.args[i];
	task->from_signal = task->call == SYS_rt_sigreturn;
	if (task->call == SYS_rt_sigaction)
		task->action.is_set =
			task->arguments[1] && !task->is_child &&
			fathom_tracee_read(&c->tracee, task->arguments[1], task->action.words,
					   sizeof task->action.words);
	/* The instruction has 2 bytes. */
	if (!c->tracee.syscall_avma)
		c->tracee.syscall_avma = info->instruction_pointer - 2;
	if (c->modules_changed && !is_mapping(task->call))
		find_interfaces(c, task);
}

/* Returns whether the call, which was published code's own, is over: it goes on with a turn. */
static bool handle_syscall(struct fathom_checker *c, struct fathom_checked_task *task)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, task->tid, sizeof info, &info) <= 0)
		return false;
	task->in_call = info.op == PTRACE_SYSCALL_INFO_ENTRY;
	if (task->in_call) {
		begin_call(c, task, &info);
		return false;
	}
	if (!info.exit.is_error && task->call == SYS_rt_sigaction && task->action.is_set)
		fathom_dispositions_take(&c->dispositions, task->arguments[0], &task->action);
	if (!info.exit.is_error && is_mapping(task->call))
		take_mapping(c, task, (uint64_t)info.exit.rval);
	if (c->closed_late)
		fail(c, fathom_closed_update(&c->closed, &c->tracee, task->tid, c->published));
	c->closed_late = false;
	task->call = -1;
	if (fathom_closed_at(&c->closed, info.instruction_pointer))
		return true;
	/* Another thread may have opened it, which then waited in a call of published code. */
	fathom_closed_close(&c->closed, &c->tracee, task->tid);
	return false;
}

/* Takes over what is registered at the breakpoint of @i, which @task has run into. */
static void handle_registration(struct fathom_checker *c, struct fathom_checked_task *task,
				const struct fathom_interface *i, struct user_regs_struct *regs)
{
	const uint64_t at = i->breakpoint;

	fail(c, fathom_interface_update(i, &c->tracee, c->published));
	/* Most such functions do nothing. */
	regs->rip = i->byte == FATHOM_X86_RET ? fathom_tracee_word(&c->tracee, regs->rsp) : at;
	regs->rsp += i->byte == FATHOM_X86_RET ? 8 : 0;
	(void)fathom_tracee_set(task->tid, regs);
	fail(c, fathom_closed_update(&c->closed, &c->tracee, task->tid, c->published));
	if (i->byte != FATHOM_X86_RET)
		fathom_checker_step_over(c, task, at, i->byte);
}

/* Returns the interface whose breakpoint @task has run into; NULL if it was none. */
static const struct fathom_interface *breakpoint_of(const struct fathom_checker *c,
						    const struct fathom_checked_task *task,
						    struct user_regs_struct *regs)
{
	siginfo_t info;

	if (ptrace(PTRACE_GETSIGINFO, task->tid, NULL, &info) || info.si_code != SI_KERNEL ||
	    !fathom_tracee_get(task->tid, regs))
		return NULL;
	return fathom_interfaces_at(&c->interfaces, regs->rip - 1);
}

/* @task has stopped for a signal. */
static void handle_signal(struct fathom_checker *c, struct fathom_checked_task *task, int number)
{
	const struct fathom_interface *i;
	struct user_regs_struct regs;

	if (number == SIGTRAP && (i = breakpoint_of(c, task, &regs))) {
		handle_registration(c, task, i, &regs);
		if (!task->has_event)
			fathom_dispositions_repair(&c->dispositions, &c->tracee, task->tid);
	} else if (number == SIGSEGV && fathom_tracee_get(task->tid, &regs) &&
		   fathom_checker_is_entry(c, task, &regs)) {
		fathom_dispositions_repair(&c->dispositions, &c->tracee, task->tid);
		task->wants_turn = true;
		return;
	} else {
		task->signal = number;
	}
	if (!task->has_event)
		fathom_checker_resume(task);
}

/* The event of @task is one of ptrace's own. */
static void handle_event(struct fathom_checker *c, struct fathom_checked_task *task, int status)
{
	const int number = WSTOPSIG(status);

	switch (status >> 16) {
	case PTRACE_EVENT_EXEC:
		handle_exec(c, task);
		break;
	case PTRACE_EVENT_CLONE:
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
		handle_child(c, task, status >> 16);
		break;
	case PTRACE_EVENT_STOP:
		if (number == SIGTRAP) {
			fathom_checker_resume(task);
			break;
		}
		/* Stopped by a signal, as the program would be without us. */
		task->is_listening = !ptrace(PTRACE_LISTEN, task->tid, NULL, NULL);
		task->is_stopped = false;
		break;
	default:
		fathom_checker_resume(task);
	}
}

void fathom_checker_handle(struct fathom_checker *c, struct fathom_checked_task *task)
{
	const int status = task->event;

	if (task->is_unknown && WIFSTOPPED(status))
		return;
	task->has_event = false;
	if (!WIFSTOPPED(status)) {
		if (task->tid == c->tracee.pid) {
			c->status = status;
			c->has_ended = true;
		}
		fathom_checker_remove(c, task);
	} else if (status >> 16) {
		handle_event(c, task, status);
	} else if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
		task->wants_turn = handle_syscall(c, task);
		if (!task->has_event && !task->wants_turn)
			fathom_checker_resume(task);
	} else {
		handle_signal(c, task, WSTOPSIG(status));
	}
}
