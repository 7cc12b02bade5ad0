/* SPDX-License-Identifier: MIT */
#include "host/trace/syscall_stops.h"

#include <elf.h>
#include <asm/prctl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fathom/stack.h"
#include "host/base/clock.h"
#include "host/syscalls/syscall_capture.h"
#include "host/syscalls/syscall_files.h"
#include "host/trace/syscall_rewriter.h"
#include "host/trace/ring_syscalls.h"
#include "host/trace/seccomp_turn.h"
#include "trace/syscall_hook.h"

/* A call that a thread is in. */
struct fathom_stopped_call {
	struct fathom_syscall_record record;
	int64_t begin; /* by fathom_now_ns() */
	uint64_t pc;
	uint64_t sp;
	uint64_t system_ns; /* of its process, before it */
	int64_t result;     /* in place of the call's */
	uint64_t delay_exit_ns;
	bool is_injected; /* the call is not made */
	bool is_delayed;
	uint64_t cursor;                  /* records of the ring before it */
	struct fathom_trace_stack *stack; /* by which it is made; NULL: not read yet */
	_Alignas(8) uint8_t bytes[];
};

/* AUDIT_ARCH_ constants (<linux/audit.h>) are an EM_ and flags. */
#define MACHINE UINT32_C(0xffff)

/* Lets thread @tid go on; @task: what is known of it, or NULL. */
static void resume(const struct fathom_follow *f, const struct fathom_follow_task *task, pid_t tid,
		   int signal)
{
	/* Where a filter stops it at the calls that count, it stops again at their ends. */
	const bool is_told = task && !task->process->is_silent &&
			     (!f->calls->filter || task->call || task->moves_code);
	const bool is_stopped = is_told || (task && task->process->is_filtered &&
					    (f->calls->filter || !task->process->is_silent));

	(void)ptrace(is_stopped ? PTRACE_SYSCALL : PTRACE_CONT, tid, NULL, signal);
}

void fathom_follow_resume(const struct fathom_follow *f, pid_t tid, int signal)
{
	resume(f, f->calls ? fathom_follow_find(f, tid) : NULL, tid, signal);
}

/* Where siginfo_t is in the record by which its text is made. */
#define SIGINFO_AVMA UINT64_C(0x1000)

void fathom_follow_signal_text(const struct fathom_follow *f, pid_t tid, int number,
			       char text[FATHOM_SIGNAL_TEXT])
{
	/* The call that takes one shows what it is. */
	const struct fathom_syscall_call call = {
		.machine = EM_X86_64,
		.number = SYS_rt_sigqueueinfo,
		.args = { 0, (uint64_t)number, SIGINFO_AVMA },
	};
	_Alignas(8) uint8_t bytes[sizeof call + 512];
	struct fathom_syscall_record record;
	struct fathom_syscall_line line;
	char whole[FATHOM_SIGNAL_TEXT];
	struct fathom_text to = text_init(whole, sizeof whole);
	siginfo_t info;
	int n;

	n = snprintf(text, FATHOM_SIGNAL_TEXT, "%s", fathom_signal_name(number));
	if (!f->calls || f->calls->options.dialect != FATHOM_SYSCALL_STRACE ||
	    ptrace(PTRACE_GETSIGINFO, tid, NULL, &info) ||
	    !fathom_syscall_record_begin(&record, bytes, sizeof bytes, &call))
		return;
	fathom_syscall_record_add(&record, SIGINFO_AVMA, false, &info, sizeof info);
	fathom_syscall_format(&record, &f->calls->options, &to, &line);
	fathom_text_end(&to);
	if (to.len < sizeof whole && line.n == 3)
		(void)snprintf(text + n, FATHOM_SIGNAL_TEXT - (size_t)n, " %.*s",
			       (int)(line.args[2].end - line.args[2].begin),
			       whole + line.args[2].begin);
}

/*
 * Copies the low bits of words of the stack of @task, from @sp on; returns how many. By them is
 * seen which functions have returned.
 */
static uint32_t read_stack(const struct fathom_follow_task *task, uint64_t sp,
			   uint32_t to[FATHOM_CALL_WORDS])
{
	const struct fathom_reader *memory = &task->process->tracee.reader;
	uint64_t words[FATHOM_CALL_WORDS];
	uint32_t n;

	if (!task->process->program)
		return 0;
	n = (uint32_t)(memory->read(memory->data, sp & ~UINT64_C(7), words, sizeof words) /
		       sizeof *words);
	for (uint32_t i = 0; i < n; i++)
		to[i] = (uint32_t)words[i];
	return n;
}

/* Posts the call of @task as it is now. */
static void post(struct fathom_follow *f, const struct fathom_follow_task *task, uint8_t type)
{
	struct fathom_stopped_call *call = task->call;
	struct fathom_posted_syscall *posted = malloc(sizeof *posted + call->record.n);
	struct fathom_post p;

	if (!posted)
		return;
	posted->duration_ns = (uint64_t)(fathom_now_ns() - call->begin);
	posted->pc = call->pc;
	posted->system_ns = f->system_ns > call->system_ns ? f->system_ns - call->system_ns : 0;
	posted->size = (uint32_t)call->record.n;
	posted->method = FATHOM_SYSCALL_BY_PTRACE;
	posted->is_injected = call->is_injected;
	posted->is_delayed = call->is_delayed;
	posted->n_words =
		type == FATHOM_TRACE_SYSCALL ? read_stack(task, call->sp, posted->words) : 0;
	memcpy(posted->record, call->bytes, call->record.n);
	p = fathom_follow_post_at(task, type, NULL);
	/* The memory of a thread that has ended does not say how far it was. */
	if (p.cursor < call->cursor)
		p.cursor = call->cursor;
	p.call = posted;
	p.sp = call->sp;
	if (type == FATHOM_TRACE_SYSCALL) {
		p.stack = call->stack;
		call->stack = NULL;
	}
	fathom_rings_post(f->rings, &p);
}

/* Returns how many bytes the record of @call may need. */
static size_t room_of(const struct fathom_syscall_call *call)
{
	return call->format & FATHOM_SYSCALL_DUMPED ? FATHOM_SYSCALL_RECORD_MAX
						    : FATHOM_SYSCALL_RECORD_LONG;
}

/* Counts the call of @task for each injection, and has @call do what is due. */
static void inject(struct fathom_follow *f, struct fathom_follow_task *task,
		   const struct fathom_syscall_call *info, int *ret_signal, uint64_t *ret_delay_ns)
{
	const struct fathom_follow_calls *calls = f->calls;
	struct fathom_stopped_call *call = task->call;

	if (!task->n_injected)
		task->n_injected = calloc(calls->injections.n, sizeof *task->n_injected);
	for (size_t i = 0; task->n_injected && i < calls->injections.n; i++) {
		const struct fathom_injection *in = &calls->injections.items[i];

		if (!fathom_syscall_set_has(&in->set, info->machine, info->number) ||
		    !fathom_injection_is_due(in, ++task->n_injected[i]))
			continue;
		if (in->has_result)
			call->result = in->result;
		call->is_injected |= in->has_result;
		call->delay_exit_ns += in->delay_exit_ns;
		*ret_delay_ns += in->delay_enter_ns;
		if (in->signal)
			*ret_signal = in->signal;
	}
}

/* Suppresses the call that @tid begins, or sets the result of one that was suppressed. */
static void set_result(pid_t tid, bool is_begin, int64_t result)
{
	struct user_regs_struct regs;

	if (!fathom_tracee_get(tid, &regs))
		return;
	if (is_begin)
		regs.orig_rax = UINT64_MAX;
	else
		regs.rax = (uint64_t)result;
	(void)fathom_tracee_set(tid, &regs);
}

/*
 * Returns whether @call refers to a path that is chosen, if some are; the @cap bytes are scratch.
 */
static bool is_chosen(const struct fathom_follow *f, const struct fathom_follow_task *task,
		      const struct fathom_syscall_call *call, uint8_t *bytes, size_t cap)
{
	struct fathom_syscall_call decoded = *call;
	struct fathom_syscall_record record;

	/* However it is shown later, what it refers to is looked at. */
	decoded.format = 0;
	return !f->calls->paths.n ||
	       (fathom_syscall_capture_entry(&decoded, &f->calls->options,
					     &task->process->tracee.own, bytes, cap, &record) &&
		fathom_syscall_refers(&record, task->tid, &f->calls->paths));
}

/* Makes the record of a call that @info reports; NULL without memory, or if it does not count. */
static struct fathom_stopped_call *make_call(const struct fathom_follow *f,
					     const struct fathom_follow_task *task,
					     const struct fathom_syscall_call *call,
					     const struct __ptrace_syscall_info *info)
{
	const size_t cap = room_of(call);
	struct fathom_stopped_call *made = malloc(sizeof *made + cap);

	if (!made)
		return NULL;
	*made = (struct fathom_stopped_call){ .begin = fathom_now_ns(),
					      .sp = info->stack_pointer,
					      .system_ns = f->system_ns };
	made->cursor = fathom_follow_post_at(task, 0, NULL).cursor;
	if (is_chosen(f, task, call, made->bytes, cap) &&
	    fathom_syscall_capture_entry(call, &f->calls->options, &task->process->tracee.own,
					 made->bytes, cap, &made->record))
		return made;
	free(made);
	return NULL;
}

static void name_files(const struct fathom_follow *f, const struct fathom_follow_task *task)
{
	if (f->calls->files.wanted)
		fathom_syscall_files_add(&f->calls->files, &task->call->record, &f->calls->options,
					 task->tid);
}

/* Reads the stack of @task, unless that was done before its call. */
static void read_frames(const struct fathom_follow *f, const struct fathom_follow_task *task)
{
	if (f->stacks && f->has_run && !task->call->stack)
		task->call->stack = fathom_syscall_stacks_read(f->stacks, task->process, task->tid);
}

static void free_call(struct fathom_follow_task *task)
{
	free(task->call->stack);
	free(task->call);
	task->call = NULL;
}

/*
 * If the call that @info reports filters calls of @p (seccomp(2)), has them all stop from now on:
 * the filter may answer before ours does, or forbid what the runtime calls. If it takes the gs
 * base, by which the runtime finds its thread's block, has it record none.
 */
static void note_filter(struct fathom_traced *p, const struct __ptrace_syscall_info *info)
{
	const char *name = fathom_syscall_name(info->arch & MACHINE, (int64_t)info->entry.nr);
	const uint64_t first = info->entry.args[0];

	if (name && strcmp(name, "arch_prctl") == 0 && first == ARCH_SET_GS)
		fathom_program_record_no_calls(p);
	if (!name || (strcmp(name, "seccomp") != 0 &&
		      !(strcmp(name, "prctl") == 0 && first == PR_SET_SECCOMP)))
		return;
	p->is_filtered = true;
	fathom_program_record_no_calls(p);
}

/* Begins the call of @task that @info reports; sets the signal and the delay that are injected. */
static void begin_syscall(struct fathom_follow *f, struct fathom_follow_task *task,
			  const struct __ptrace_syscall_info *info, int *ret_signal,
			  uint64_t *ret_delay_ns)
{
	const struct fathom_follow_calls *calls = f->calls;
	struct fathom_syscall_call call = { .machine = info->arch & MACHINE,
					    .number = info->entry.nr,
					    .sp = info->stack_pointer };
	const uint64_t pc = fathom_syscalls_pc(task->process, info->instruction_pointer);
	const struct fathom_self_trace_link *insider = &f->loader.insider;

	/* Both kinds of begins have the same members there. */
	memcpy(call.args, info->entry.args, sizeof call.args);
	call.format = fathom_syscall_format_options_of(&calls->format_options, &call);
	task->moves_code =
		f->stacks && fathom_syscall_stacks_moves_code(f->stacks, task->process, &call);
	note_filter(task->process, info);
	if (insider->busy && atomic_load(insider->busy) == task->tid)
		return;
	/* The runtime waits for room in its rings, and for libraries to be looked at. */
	if (!fathom_syscall_set_has(&calls->set, call.machine, call.number) ||
	    (task->process->program && pc == info->instruction_pointer &&
	     fathom_program_is_inside(task->process, pc)))
		return;
	task->call = make_call(f, task, &call, info);
	if (!task->call)
		return;
	task->call->pc = pc;
	if (f->stacks && fathom_syscall_stacks_is_last(f->stacks, &call))
		read_frames(f, task);
	if (calls->injections.n && f->has_run)
		inject(f, task, &call, ret_signal, ret_delay_ns);
	if (task->call->is_injected)
		set_result(task->tid, true, 0);
	task->call->is_delayed = *ret_delay_ns || task->call->delay_exit_ns;
	name_files(f, task);
	if (calls->tells_entries && f->has_run)
		post(f, task, FATHOM_TRACE_SYSCALL_ENTRY);
}

/* Ends the call of @task, which has led to @result; sets how long the thread is to be held up. */
static void end(struct fathom_follow *f, struct fathom_follow_task *task, int64_t result,
		uint64_t *ret_delay_ns)
{
	struct fathom_stopped_call *call = task->call;

	if (call->is_injected) {
		result = call->result;
		set_result(task->tid, false, result);
	}
	*ret_delay_ns = call->delay_exit_ns;
	/* Before the program there are only attempts to become it. */
	if (f->has_run) {
		fathom_syscall_capture_exit(&call->record, result, &f->calls->options,
					    &task->process->tracee.own);
		name_files(f, task);
		read_frames(f, task);
		post(f, task, FATHOM_TRACE_SYSCALL);
	}
	free_call(task);
}

/* Lets @task go on now, or after @ns. */
static void go_on(struct fathom_follow *f, struct fathom_follow_task *task, int signal, uint64_t ns)
{
	if (!ns) {
		resume(f, task, task->tid, signal);
		return;
	}
	task->resumes_at = fathom_now_ns() + (int64_t)ns;
	task->resumes_with = signal;
	f->n_delayed++;
}

/* Reports the call at which @task has stopped, which @info reports. */
static void tell(struct fathom_follow *f, struct fathom_follow_task *task,
		 const struct __ptrace_syscall_info *info, int *ret_signal, uint64_t *ret_delay_ns)
{
	if (task->moves_code)
		fathom_syscall_stacks_renew(task->process);
	task->moves_code = false;
	if (info->op == PTRACE_SYSCALL_INFO_SECCOMP || info->op == PTRACE_SYSCALL_INFO_ENTRY) {
		/*
		 * A call that was begun before has become this one, as execve() of another thread
		 * has.
		 */
		fathom_follow_end_syscall(f, task);
		begin_syscall(f, task, info, ret_signal, ret_delay_ns);
	} else if (info->op == PTRACE_SYSCALL_INFO_EXIT && task->call) {
		end(f, task, info->exit.rval, ret_delay_ns);
	}
}

/* The filter has stopped @task, whose call was told; returns whether the thread has ended. */
static bool take_filter_stop(struct fathom_follow *f, struct fathom_follow_task *task,
			     const struct __ptrace_syscall_info *info, uint64_t *ret_delay_ns)
{
	int64_t result = 0;

	if (!f->calls->filter || (task->call && task->call->is_injected))
		return false;
	switch (fathom_seccomp_take(f, task, info, &result)) {
	case FATHOM_SECCOMP_ENDED:
		return true;
	case FATHOM_SECCOMP_MADE:
		if (task->call)
			end(f, task, result, ret_delay_ns);
		return false;
	default:
		return false;
	}
}

/*
 * Moves @task, stopped before the call of a stub, which @info describes, to the program's own
 * instruction: filters of the program judge by where a call is made, and tell its handlers.
 */
static void put_back(const struct fathom_follow_task *task,
		     const struct __ptrace_syscall_info *info)
{
	const uint64_t pc = fathom_syscalls_pc(task->process, info->instruction_pointer);
	struct user_regs_struct regs;

	if (pc == info->instruction_pointer || !fathom_tracee_get(task->tid, &regs))
		return;
	regs.rip = pc;
	(void)fathom_tracee_set(task->tid, &regs);
}

void fathom_follow_take_syscall(struct fathom_follow *f, pid_t tid)
{
	struct fathom_follow_task *task = f->calls ? fathom_follow_find(f, tid) : NULL;
	struct __ptrace_syscall_info info;
	uint64_t delay_ns = 0;
	int signal = 0;

	if (!task || ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof info, &info) < 0) {
		resume(f, task, tid, 0);
		return;
	}
	/* It may have stopped for this call already. */
	if (!task->process->is_silent &&
	    !(info.op == PTRACE_SYSCALL_INFO_SECCOMP && task->process->is_filtered && task->call))
		tell(f, task, &info, &signal, &delay_ns);
	else if (info.op == PTRACE_SYSCALL_INFO_SECCOMP)
		note_filter(task->process, &info);
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY && task->process->is_filtered)
		put_back(task, &info);
	if (info.op == PTRACE_SYSCALL_INFO_SECCOMP && take_filter_stop(f, task, &info, &delay_ns))
		return;
	/* Only where a call begins or ends, a signal can be given along. */
	if (signal && info.op == PTRACE_SYSCALL_INFO_SECCOMP) {
		task->injected = signal;
		(void)syscall(SYS_tgkill, task->process->tracee.pid, tid, signal);
		signal = 0;
	}
	go_on(f, task, signal, delay_ns);
}

void fathom_follow_take_injected(const struct fathom_follow *f, pid_t tid, int number)
{
	struct fathom_follow_task *task = f->calls ? fathom_follow_find(f, tid) : NULL;
	const siginfo_t info = { .si_signo = number, .si_code = SI_KERNEL };

	if (!task || !task->injected || task->injected != number)
		return;
	task->injected = 0;
	(void)ptrace(PTRACE_SETSIGINFO, tid, NULL, &info);
}

void fathom_follow_resume_due(struct fathom_follow *f)
{
	const int64_t now = f->n_delayed ? fathom_now_ns() : 0;

	for (size_t i = 0; f->n_delayed && i < f->tasks.n; i++) {
		struct fathom_follow_task *task = &f->tasks.items[i];

		if (!task->resumes_at || task->resumes_at > now)
			continue;
		task->resumes_at = 0;
		f->n_delayed--;
		resume(f, task, task->tid, task->resumes_with);
	}
}

void fathom_follow_take_exec(struct fathom_follow *f, pid_t tid, bool is_first)
{
	struct fathom_follow_task *task = fathom_follow_find(f, tid);
	struct __ptrace_syscall_info info;
	uint64_t delay_ns;

	if (!task || !task->call || ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof info, &info) < 0 ||
	    info.op != PTRACE_SYSCALL_INFO_EXIT)
		return;
	if (is_first && f->calls->tells_entries)
		post(f, task, FATHOM_TRACE_SYSCALL_ENTRY);
	end(f, task, info.exit.rval, &delay_ns);
}

void fathom_follow_end_syscall(struct fathom_follow *f, struct fathom_follow_task *task)
{
	if (!task->call)
		return;
	fathom_syscall_record_end(&task->call->record, FATHOM_SYSCALL_NEVER, 0);
	if (f->has_run)
		post(f, task, FATHOM_TRACE_SYSCALL);
	free_call(task);
}
