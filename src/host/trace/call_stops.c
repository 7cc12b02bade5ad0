/* SPDX-License-Identifier: MIT */
#include "host/trace/call_stops.h"

#include <elf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <x86intrin.h>

#include "fathom/stack.h"
#include "host/syscalls/call_capture.h"
#include "host/syscalls/call_files.h"

/* A call that a thread is in. */
struct fathom_stopped_call {
	struct fathom_syscall_record record;
	uint64_t begin; /* ticks */
	uint64_t pc;
	uint64_t sp;
	uint64_t system_ns; /* of its process, before it */
	uint64_t cursor;    /* records of the ring before it */
	_Alignas(8) uint8_t bytes[];
};

/* AUDIT_ARCH_ constants (<linux/audit.h>) are an EM_ and flags. */
#define MACHINE UINT32_C(0xffff)

/* x32 makes calls of x86-64 with this bit in their numbers. */
#define X32_BIT UINT64_C(0x40000000)

void fathom_follow_resume(const struct fathom_follow *f, pid_t tid, int signal)
{
	const struct fathom_follow_task *task = f->calls ? fathom_follow_find(f, tid) : NULL;
	const bool is_stopped = task && !task->process->is_silent;

	(void)ptrace(is_stopped ? PTRACE_SYSCALL : PTRACE_CONT, tid, NULL, signal);
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

/* Posts the call of @task as it is now. */
static void post(struct fathom_follow *f, const struct fathom_follow_task *task, uint8_t type)
{
	const struct fathom_stopped_call *call = task->call;
	struct fathom_posted_call *posted = malloc(sizeof *posted + call->record.n);
	struct fathom_post p;

	if (!posted)
		return;
	posted->begin = call->begin;
	posted->pc = call->pc;
	posted->system_ns = f->system_ns > call->system_ns ? f->system_ns - call->system_ns : 0;
	posted->size = (uint32_t)call->record.n;
	posted->way = FATHOM_SYSCALL_BY_PTRACE;
	memcpy(posted->record, call->bytes, call->record.n);
	p = fathom_follow_post_at(task, type, NULL);
	/* The memory of a thread that has ended does not say how far it was. */
	if (p.cursor < call->cursor)
		p.cursor = call->cursor;
	p.call = posted;
	p.sp = call->sp;
	fathom_rings_post(f->rings, &p);
}

/* Bytes of a record that is larger than usual strings make necessary. */
static size_t room_of(const struct fathom_syscall_options *o)
{
	return o->string_limit <= FATHOM_SYSCALL_STRING_LIMIT ? FATHOM_SYSCALL_RECORD_USUAL
							      : FATHOM_SYSCALL_RECORD_MAX;
}

static void name_files(const struct fathom_follow *f, const struct fathom_follow_task *task)
{
	if (f->calls->names_files)
		fathom_call_files_add(&task->call->record, &f->calls->options, task->tid);
}

/* Begins the call of @task that @info tells of. */
static void begin(struct fathom_follow *f, struct fathom_follow_task *task,
		  const struct __ptrace_syscall_info *info)
{
	const struct fathom_follow_calls *calls = f->calls;
	const size_t cap = room_of(&calls->options);
	struct fathom_syscall_call call = { .machine = info->arch & MACHINE,
					    .number = info->entry.nr,
					    .sp = info->stack_pointer };

	/* The runtime waits for room in its rings, and for libraries to be looked at. */
	if (!fathom_syscall_set_has(&calls->set, call.machine, call.number & ~X32_BIT) ||
	    (task->process->program &&
	     fathom_program_is_inside(task->process, info->instruction_pointer)))
		return;
	memcpy(call.args, info->entry.args, sizeof call.args);
	task->call = malloc(sizeof *task->call + cap);
	if (!task->call)
		return;
	task->call->begin = __rdtsc();
	task->call->pc = info->instruction_pointer;
	task->call->sp = info->stack_pointer;
	task->call->system_ns = f->system_ns;
	task->call->cursor = fathom_follow_post_at(task, 0, NULL).cursor;
	if (!fathom_syscall_capture_entry(&call, &calls->options, &task->process->tracee.reader,
					  task->call->bytes, cap, &task->call->record)) {
		free(task->call);
		task->call = NULL;
	} else {
		name_files(f, task);
		if (calls->tells_entries && f->has_run)
			post(f, task, FATHOM_TRACE_SYSCALL_ENTRY);
	}
}

/* Ends the call of @task. */
static void end(struct fathom_follow *f, struct fathom_follow_task *task, int64_t result)
{
	fathom_syscall_capture_exit(&task->call->record, result, &f->calls->options,
				    &task->process->tracee.reader);
	name_files(f, task);
	/* Before the program, only what is tried to become it. */
	if (f->has_run)
		post(f, task, FATHOM_TRACE_SYSCALL);
	free(task->call);
	task->call = NULL;
}

void fathom_follow_take_call(struct fathom_follow *f, pid_t tid)
{
	struct fathom_follow_task *task = f->calls ? fathom_follow_find(f, tid) : NULL;
	struct __ptrace_syscall_info info;

	if (!task || task->process->is_silent ||
	    ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof info, &info) < 0)
		return;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		/* What was begun before has become this one, as execve() of another thread has. */
		fathom_follow_end_call(f, task);
		begin(f, task, &info);
	} else if (info.op == PTRACE_SYSCALL_INFO_EXIT && task->call) {
		end(f, task, info.exit.rval);
	}
}

void fathom_follow_take_exec(struct fathom_follow *f, pid_t tid, bool is_first)
{
	const struct fathom_follow_task *task = fathom_follow_find(f, tid);

	if (is_first && task && task->call && f->calls->tells_entries)
		post(f, task, FATHOM_TRACE_SYSCALL_ENTRY);
	fathom_follow_take_call(f, tid);
}

void fathom_follow_end_call(struct fathom_follow *f, struct fathom_follow_task *task)
{
	if (!task->call)
		return;
	fathom_syscall_record_end(&task->call->record, FATHOM_SYSCALL_NEVER, 0);
	post(f, task, FATHOM_TRACE_SYSCALL);
	free(task->call);
	task->call = NULL;
}
