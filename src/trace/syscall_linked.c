/* SPDX-License-Identifier: MIT */
#include "trace/syscall_linked.h"

#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "trace/filter_look.h"
#include "trace/hook_stack.h"
#include "trace/linked.h"
#include "trace/machine.h"

/* Room for one call, and for one of a handler that comes between a look and a record. */
#define ROOM        (UINT64_C(4) * FATHOM_TRACE_SYSCALL_RECORDS)
#define ROOM_BEHIND (UINT64_C(2) * FATHOM_TRACE_SYSCALL_RECORDS)

struct fathom_trace_self_syscalls fathom_trace_self_syscalls;

/* The state of a thread that may have no block. */
static _Thread_local struct {
	/*
	 * Of a child of vfork(), which has the thread-local variables of its parent, and of that
	 * parent when the child has ended: the parent's block.
	 */
	struct fathom_trace_thread *parent;
	bool is_silent;
} fathom_trace_self_state __attribute__((tls_model("initial-exec")));

static struct fathom_trace_process *process(void)
{
	return &fathom_trace_self_process;
}

void fathom_trace_syscalls_silence(bool is_silent)
{
	fathom_trace_self_state.is_silent = is_silent;
}

static struct fathom_trace_syscall_state *calls_of(const struct fathom_trace_thread *t)
{
	return &process()->calls[t->number];
}

/* Keeps the compiler from moving what stands on either side of it. */
static void fence(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Returns the block of the calling thread, if that is recorded; it takes a ring if it has none. */
static struct fathom_trace_thread *own_block(void)
{
	const uint64_t base = fathom_trace_thread_pointer();
	struct fathom_trace_thread *t = fathom_trace_self_block();

	if (!t || t->owner != base || !t->tid) {
		if (!fathom_trace_slow(t, base, process()))
			return NULL;
		t = fathom_trace_self_block();
	}
	return t && t->owner == base && t->first + t->change > 0 ? t : NULL;
}

/* Returns whether there is room for @n records in the ring of @t. Counts what is lost. */
static bool has_room(struct fathom_trace_thread *t, uint64_t n)
{
	if (t->cursor + n <= t->limit || fathom_trace_wait_for_room(process(), t, n))
		return true;
	atomic_fetch_add_explicit(&fathom_trace_ring_at(process()->head, t->number)->lost, 1,
				  memory_order_relaxed);
	return false;
}

static bool makes_task(uint64_t number)
{
	return number == SYS_clone || number == SYS_clone3 || fathom_trace_is_fork(number);
}

/* Notes the stack of the thread that clone3(@args) makes. */
static void note_stack(uint64_t args)
{
	uint64_t fault = 0;
	const uint64_t low = fathom_trace_load(args + offsetof(struct clone_args, stack), &fault);
	const uint64_t size =
		fathom_trace_load(args + offsetof(struct clone_args, stack_size), &fault);

	if (!fault && low && size)
		fathom_hook_stack_note(low, size);
}

/* Returns the flags of clone() that a call has which makes a task; @first is its first argument. */
static uint64_t flags_of(uint64_t number, uint64_t first)
{
	uint64_t fault = 0;

	if (number == SYS_clone)
		return first;
	if (number == SYS_clone3)
		return fathom_trace_load(first, &fault);
	return fathom_trace_is_fork(number) - 1 ? CLONE_VM | CLONE_VFORK : 0;
}

static void push(struct fathom_trace_syscall_state *c, const struct fathom_trace_pending_call *call)
{
	uint32_t i = c->n;

	/* The oldest may have been left long ago. */
	if (i >= FATHOM_TRACE_PENDING_CALLS) {
		for (i = 0; i + 1 < FATHOM_TRACE_PENDING_CALLS; i++)
			c->items[i] = c->items[i + 1];
	}
	c->items[i] = *call;
	fence();
	c->n = i + 1;
}

/* Returns the latest call at @stub, with the stack pointer @sp unless that is 0; NULL: none. */
static const struct fathom_trace_pending_call *find_pending(
	const struct fathom_trace_syscall_state *c, uint64_t sp, uint64_t stub)
{
	for (uint32_t i = c->n; i-- > 0;)
		if (c->items[i].stub == stub && (!sp || c->items[i].sp == sp))
			return &c->items[i];
	return NULL;
}

/* Records that the call begins; false if nobody wants to know. */
static bool record_begin(struct fathom_trace_thread *t, struct fathom_trace_linked_call *call)
{
	const uint64_t number = call->frame.rax;
	const struct fathom_trace_plans *plans = &fathom_trace_self_plans;

	if (number < FATHOM_TRACE_PLANS ? plans->plans[number].is_left_out & 1
					: !plans->has_unknown)
		return false;
	return has_room(t, ROOM) && fathom_trace_syscall_begin(&call->frame);
}

/* Returns whether the calling thread is a child of vfork() that has filtered its own calls. */
static bool has_own_filter(void)
{
	const struct fathom_trace_thread *t = fathom_trace_self_block();

	return t && t->tid && t->first < 0;
}

/*
 * Ends the recording of the process, whose text becomes what it was, and says so for @t, or NULL.
 */
static void leave(const struct fathom_trace_thread *t)
{
	bool is_done;

	if (!fathom_trace_self_syscalls.leaves || fathom_trace_is_filtered())
		return;
	fathom_trace_self_state.is_silent = true;
	is_done = fathom_trace_self_syscalls.leaves();
	fathom_trace_self_state.is_silent = false;
	if (!is_done)
		return;
	atomic_store(&fathom_trace_self_process.is_over, 1);
	if (t)
		atomic_store(&fathom_trace_ring_at(process()->head, t->number)->is_left, 1);
	/* The handler of fork() asks in the child whose block this is. */
	fathom_trace_set_own_block(NULL);
}

/* Returns what is found of the filter that a call installs, or may install; 0: it installs none. */
static uint32_t look_at_filter(uint64_t number, const uint64_t args[FATHOM_TRACE_SYSCALL_ARGS])
{
	uint64_t program;

	if (number == SYS_seccomp ? (uint32_t)args[0] > SECCOMP_SET_MODE_FILTER
				  : number != SYS_prctl || (uint32_t)args[0] != PR_SET_SECCOMP)
		return 0;
	return fathom_filter_is_set_by(number, args, &program) ? fathom_filter_look(program)
							       : FATHOM_FILTER_FORBIDS_ALL;
}

/*
 * Sets @p to a call that is not recorded. Member by member: what an initializer leaves out, gcc
 * clears by a call of memset() on aarch64, which uses vectors, and those are the program's.
 */
static void set_pending(struct fathom_trace_pending_call *p, uint64_t first, uint64_t number,
			uint64_t sp, uint64_t stub)
{
	p->begin = 0;
	p->sp = sp;
	p->stub = stub;
	p->first = first;
	p->flags = 0;
	p->number = (uint32_t)number;
	p->found = 0;
	p->is_recorded = 0;
	p->was_filtered = 0;
}

/*
 * Notes, before a call installs the filter that was looked at, that the tracer may not do any more
 * what the filter forbids: after the call it would be too late.
 */
static void begin_filter(const struct fathom_trace_thread *t,
			 const struct fathom_trace_pending_call *p)
{
	if (t && p->found & FATHOM_FILTER_FORBIDS_PROBING && !calls_of(t)->parent)
		atomic_store(&process()->is_filtered, FATHOM_TRACE_FILTERED);
}

/* Takes that back if the call has failed with @result. */
static void end_filter(const struct fathom_trace_thread *t,
		       const struct fathom_trace_pending_call *p, int64_t result)
{
	if (result < 0 && p->found & FATHOM_FILTER_FORBIDS_PROBING && !calls_of(t)->parent)
		atomic_store(&process()->is_filtered, p->was_filtered);
}

void fathom_trace_linked_before(const uint64_t args[FATHOM_TRACE_SYSCALL_ARGS], uint64_t number,
				uint64_t sp, uint64_t stub, uint64_t fp, uint64_t lr)
{
	struct fathom_trace_linked_call call;
	struct fathom_trace_pending_call pending;
	struct fathom_trace_thread *t;

	set_pending(&pending, args[0], number, sp, stub);
	if (!fathom_trace_self_syscalls.is_on || atomic_load(&process()->is_over) ||
	    fathom_trace_self_state.is_silent)
		return;
	fathom_hook_stack_find(sp);
	t = own_block();
	if (t) {
		call.frame.behind = fathom_trace_syscall_goes_on(stub);
		call.frame.rax = number;
		call.frame.sp = sp;
		call.frame.stub = FATHOM_TRACE_STUB_LINKED;
		call.n_words = call.flags = 0;
		fathom_trace_forget_memory();
		for (unsigned i = 0; i < FATHOM_TRACE_SYSCALL_ARGS; i++)
			call.frame.args[i] = args[i];
		if (fathom_trace_self_plans.has_words)
			fathom_trace_syscall_find_words(&call, fp, lr);
		pending.is_recorded = record_begin(t, &call);
		pending.begin = call.frame.begin;
		if (makes_task(number))
			pending.flags = flags_of(number, args[0]);
		if (number == SYS_clone3 && pending.flags & CLONE_THREAD)
			note_stack(args[0]);
		pending.found = look_at_filter(number, args);
		pending.was_filtered = (uint32_t)atomic_load(&process()->is_filtered);
		if (pending.is_recorded || makes_task(number) || pending.found)
			push(calls_of(t), &pending);
	}
	/*
	 * A filter of the program may forbid the calls of ends(): the reader then finds out by
	 * itself.
	 */
	if (number == SYS_exit_group && !fathom_trace_is_filtered() && !has_own_filter())
		fathom_trace_self_syscalls.ends((int)args[0]);
	if (pending.found & FATHOM_FILTER_ASKS_PLACE && !(t && calls_of(t)->parent))
		leave(t);
	begin_filter(t, &pending);
}

/*
 * The calling thread was just made by @call. One with thread-local variables of its own takes a
 * ring when it first calls something. A child of fork() has none of those that its parent has. A
 * child that shares all memory with its parent, which sleeps, takes one now.
 */
static void begin_task(struct fathom_trace_thread *t, const struct fathom_trace_pending_call *call)
{
	if (!(call->flags & CLONE_VM)) {
		fathom_trace_set_own_block(NULL);
		fathom_trace_self_state.parent = NULL;
		fathom_hook_stack_forget();
	} else if (fathom_trace_take_ring(t, process(), fathom_trace_thread_pointer())) {
		calls_of(fathom_trace_self_block())->parent = t;
		fathom_trace_self_state.parent = t;
	}
}

/* Goes back to the block of a thread whose child has used its thread-local variables. */
static struct fathom_trace_thread *go_back(void)
{
	struct fathom_trace_thread *t = fathom_trace_self_state.parent;

	if (!t)
		return NULL;
	fathom_trace_set_own_block(t);
	fathom_trace_self_state.parent = calls_of(t)->parent;
	return t;
}

/* Takes the call that returns out of @c, and those begun since: they were left. */
static bool take_pending_of(struct fathom_trace_syscall_state *c, uint64_t sp, uint64_t stub,
			    struct fathom_trace_pending_call *ret)
{
	const struct fathom_trace_pending_call *call = find_pending(c, sp, stub);

	if (!call)
		return false;
	*ret = *call;
	fence();
	c->n = (uint32_t)(call - c->items);
	return true;
}

/* Finds the call that returns; returns the block of its thread, NULL if it is not known. */
static struct fathom_trace_thread *take_pending(uint64_t sp, uint64_t stub,
						struct fathom_trace_pending_call *ret)
{
	struct fathom_trace_thread *t = fathom_trace_self_block();

	while (t) {
		if (t->tid && take_pending_of(calls_of(t), sp, stub, ret))
			return t;
		t = go_back();
	}
	return NULL;
}

/*
 * Returns the call by which the calling thread was made, if it returns from that now: of its
 * parent, whose block it has.
 */
static const struct fathom_trace_pending_call *new_task(const struct fathom_trace_thread *t,
							uint64_t stub)
{
	const struct fathom_trace_pending_call *call = find_pending(calls_of(t), 0, stub);

	return call && makes_task(call->number) ? call : NULL;
}

static void end(const uint64_t args[FATHOM_TRACE_SYSCALL_ARGS], uint64_t sp, uint64_t stub)
{
	struct fathom_trace_syscall_frame f;
	struct fathom_trace_pending_call pending;
	struct fathom_trace_thread *t = take_pending(sp, stub, &pending);

	if (!t)
		return;
	end_filter(t, &pending, (int64_t)args[0]);
	/* A child of vfork() filters its own calls: it is recorded no more. */
	if (calls_of(t)->parent && pending.found && (int64_t)args[0] >= 0) {
		t->first = -1;
		t->change = 0;
	}
	if (t->first < 0)
		return;
	if (!calls_of(t)->parent)
		fathom_trace_note_filter(pending.number, pending.first, args[1], pending.found,
					 (int64_t)args[0]);
	if (!pending.is_recorded || atomic_load(&process()->is_over) || !has_room(t, ROOM_BEHIND))
		return;
	fathom_trace_forget_memory();
	f.rax = args[0];
	f.sp = sp;
	f.begin = pending.begin;
	f.args[0] = pending.first;
	for (unsigned i = 1; i < FATHOM_TRACE_SYSCALL_ARGS; i++)
		f.args[i] = args[i];
	fathom_trace_syscall_find_run(&f, pending.number);
	fathom_trace_syscall_end(&f);
}

uint64_t fathom_trace_linked_behind(const uint64_t args[FATHOM_TRACE_SYSCALL_ARGS], uint64_t sp,
				    uint64_t stub)
{
	const uint64_t base = fathom_trace_thread_pointer();
	struct fathom_trace_thread *t = fathom_trace_self_block();
	const struct fathom_trace_pending_call *maker =
		t && t->owner == base && t->tid && !args[0] ? new_task(t, stub) : NULL;

	if (!fathom_trace_self_syscalls.is_on || fathom_trace_self_state.is_silent)
		return fathom_trace_syscall_goes_on(stub);
	fathom_hook_stack_find(sp);
	if (maker)
		begin_task(t, maker);
	else
		end(args, sp, stub);
	return fathom_trace_syscall_goes_on(stub);
}
