/* SPDX-License-Identifier: MIT */
#include "trace/user_dispatch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "trace/syscall_hook.h"
#include "trace/dispatch_task.h"
#include "trace/filter_look.h"
#include "trace/hook_stack.h"
#include "trace/linked.h"
#include "trace/machine.h"
#include "trace/program_signals.h"
#include "trace/signal_frame.h"

/* si_code of a call that was dispatched (include/uapi/asm-generic/siginfo.h). */
#define BY_DISPATCH 2
/* si_code of a call that a filter has judged. */
#define BY_FILTER 1
/* CLONE_CLEAR_SIGHAND (include/uapi/linux/sched.h) */
#define CLEARS_SIGNALS UINT64_C(0x100000000)

/* si_code by which a thread is asked to be armed, whoever sends it. */
#define ASKED (-0x66617468)

/* Traces of one process that have selectors of their own. */
#define TRACES 256

/* Bytes of the instruction `syscall`, or `int $0x80`. */
#define SYSCALL_SIZE 2

/*
 * Where the place after a call is below the stack pointer, if it is_unwound: as
 * user_dispatch_x86_64.S.
 */
#define UNWOUND_OFF 136

/* Result of a call that was not made, as the kernel's ERESTARTSYS: it is to be made again. */
#define NOT_MADE (-512)

/* Values of a selector. */
enum { ALLOWED = 0, BLOCKED = 1 };

/*
 * Registers of a new thread, below its stack pointer, in its red zone: as user_dispatch_x86_64.S.
 */
struct registers {
	uint64_t task; /* its struct fathom_dispatch_task, with enum flag */
	uint64_t rbx, rbp, rdi, rsi, rdx, r8, r9, r10, r12, r13, r14, r15, rip, rflags;
	uint64_t mask;
};

enum flag {
	CLEARED = 1, /* it has no actions for signals of its parent's (CLONE_CLEAR_SIGHAND) */
	UNARMED = 2  /* its calls are not dispatched */
};

_Static_assert(sizeof(struct registers) == 128 && offsetof(struct registers, rflags) == 112, "");
_Static_assert(offsetof(struct fathom_dispatch_task, args) == 32, "");
_Static_assert(offsetof(struct fathom_dispatch_task, behind) == 80, "");

/* Whether what the calling thread calls is the tracer's. */
static _Thread_local bool fathom_trace_self_is_silent __attribute__((tls_model("initial-exec")));

/*
 * The task that has made a call on the program's stack last: of a thread that is dispatched no
 * more when that returns.
 */
__attribute__((
	visibility("hidden"))) _Thread_local struct fathom_dispatch_task *fathom_trace_self_task
	__attribute__((tls_model("initial-exec")));

/* Whether children of vfork() are not to be dispatched. */
__attribute__((visibility("hidden"))) volatile uint8_t fathom_trace_self_is_unarmed;

/* The state of the process. */
static struct {
	void (*ended)(int status); /* called when the process ends */
	int32_t pid;               /* of the process */
	_Atomic bool is_over;      /* each thread leaves at its next call */
} fathom_trace_self_dispatch;

/* Where the kernel looks whether calls are dispatched. */
static volatile char fathom_trace_self_selectors[TRACES];

/*
 * The one of the trace that runs, or ran last. Threads keep that of the trace in which they were
 * armed: one that has blocked SIGSYS since then is not dispatched before it is armed anew.
 */
__attribute__((visibility("hidden"))) volatile char *fathom_trace_self_selector =
	fathom_trace_self_selectors;

extern const char __start_fathom_tracer_syscalls[] __attribute__((visibility("hidden")));
extern const char __stop_fathom_tracer_syscalls[] __attribute__((visibility("hidden")));

long fathom_user_dispatch_clone(long number, const uint64_t args[6]);
long fathom_user_dispatch_int80(long number, const uint64_t args[6]);
_Noreturn void fathom_user_dispatch_return(uint64_t sp);
void fathom_user_dispatch_restorer(void);
/* Calls sigaltstack(@stack, NULL) with the stack pointer @sp. */
long fathom_user_dispatch_set_stack(const stack_t *stack, uint64_t sp);

/*
 * Code that makes a call on the program's stack, and goes on to the trap, an instruction that is
 * dispatched: at the first place it is not made, at the second one the result is in %rax, then in
 * %r9.
 */
#define STUB(name)                                                                              \
	extern const char fathom_user_dispatch_##name[] __attribute__((visibility("hidden")));  \
	extern const char fathom_user_dispatch_##name##_made[]                                  \
		__attribute__((visibility("hidden")));                                          \
	extern const char fathom_user_dispatch_##name##_end[] __attribute__((visibility("hidde" \
											"n")))
STUB(inline);
STUB(inline_unwound);
STUB(inline_int80);
STUB(inline_vfork);
STUB(inline_exec);
STUB(trap);

struct stub {
	const char *begin;
	const char *made;
	const char *end;
};

#define PLACES(name)                                                       \
	{ fathom_user_dispatch_##name, fathom_user_dispatch_##name##_made, \
	  fathom_user_dispatch_##name##_end }

static struct stub stub_of(const struct fathom_dispatch_inlined *call)
{
	switch (call->kind) {
	case FATHOM_DISPATCH_I386:
		return (struct stub)PLACES(inline_int80);
	case FATHOM_DISPATCH_VFORK:
		return (struct stub)PLACES(inline_vfork);
	case FATHOM_DISPATCH_EXEC:
		return (struct stub)PLACES(inline_exec);
	case FATHOM_DISPATCH_CALL:
	case FATHOM_DISPATCH_EXIT:
	default:
		return call->is_unwound ? (struct stub)PLACES(inline_unwound)
					: (struct stub)PLACES(inline);
	}
}

static long call6(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
		  uint64_t f)
{
	const uint64_t args[6] = { a, b, c, d, e, f };

	return fathom_trace_syscall_kernel6(number, args);
}

/* Enables syscall user dispatch for the calling thread. */
static bool arm(void)
{
	return !call6(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON,
		      (uintptr_t)__start_fathom_tracer_syscalls,
		      (uintptr_t)__stop_fathom_tracer_syscalls -
			      (uintptr_t)__start_fathom_tracer_syscalls,
		      (uintptr_t)fathom_trace_self_selector, 0);
}

/* Returns whether a new thread may be armed. Those that are not are counted as lost. */
static bool arms_children(void)
{
	const struct fathom_trace_process *p = &fathom_trace_self_process;

	if (!atomic_load(&p->is_unarmed))
		return true;
	atomic_fetch_add_explicit(&p->head->lost, 1, memory_order_relaxed);
	return false;
}

/* Disables it. */
static void disarm(void)
{
	(void)call6(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0, 0);
}

/*
 * Returns the block of the calling thread, which is given one; NULL: it is not recorded. A child
 * of vfork() has its parent's thread-local variables: so the number of the thread decides.
 */
static struct fathom_trace_thread *find_block(void)
{
	struct fathom_trace_process *p = &fathom_trace_self_process;
	struct fathom_trace_thread *t = fathom_trace_self_block();
	int32_t tid;

	if (!p->head || atomic_load(&p->is_over) || fathom_trace_self_is_silent)
		return NULL;
	if (fathom_trace_is_filtered()) {
		/* Taking a ring may be forbidden. */
		if (!t || !t->tid)
			atomic_fetch_add_explicit(&p->head->lost, 1, memory_order_relaxed);
		return t && t->tid ? t : NULL;
	}
	tid = (int32_t)fathom_trace_syscall_kernel(SYS_gettid, 0, 0, 0, 0);
	if (t && t->tid == tid)
		return t;
	for (uint32_t i = 0; i < p->head->n_rings; i++) {
		t = &p->threads[i];
		if (t->tid != tid || atomic_load(&fathom_trace_ring_at(p->head, i)->tid) != tid)
			continue;
		fathom_trace_set_own_block(t);
		return t;
	}
	fathom_trace_set_own_block(NULL);
	(void)fathom_trace_slow(NULL, fathom_trace_thread_pointer(), p);
	return fathom_trace_self_block();
}

/*
 * Records the call of @f, before it is made; returns its thread's block, NULL if it is not
 * recorded.
 */
static struct fathom_trace_thread *begin_syscall(struct fathom_trace_syscall_frame *f)
{
	const struct fathom_trace_process *p = &fathom_trace_self_process;
	const uint64_t known = f->rax < FATHOM_TRACE_PLANS ? f->rax : FATHOM_TRACE_PLANS - 1;
	const unsigned bit = f->stub == FATHOM_TRACE_STUB_I386 ? 2 : 1;
	struct fathom_trace_thread *t;

	if (fathom_trace_self_plans.plans[known].is_left_out & bit)
		return NULL;
	t = find_block();
	if (!t || t->first + t->change <= 0)
		return NULL;
	if (!fathom_trace_wait_for_room(p, t, UINT64_C(2) * FATHOM_TRACE_SYSCALL_RECORDS)) {
		atomic_fetch_add_explicit(&fathom_trace_ring_at(p->head, t->number)->lost, 1,
					  memory_order_relaxed);
		return NULL;
	}
	fathom_trace_forget_memory();
	return fathom_trace_syscall_begin(f) ? t : NULL;
}

/* Records how the call of @f, which begin() has returned @t for, has ended. */
static void end(struct fathom_trace_syscall_frame *f, struct fathom_trace_thread *t, long result)
{
	f->rax = (uint64_t)result;
	if (!t || atomic_load(&fathom_trace_self_process.is_over))
		return;
	/* A child of vfork() has had the variable. */
	fathom_trace_set_own_block(t);
	fathom_trace_forget_memory();
	fathom_trace_syscall_end(f);
}

/*
 * Stores the registers of a new thread below its stack pointer @sp; its signal stack is that of
 * @task, or NULL.
 */
static void give_registers(uint64_t sp, const ucontext_t *u, uint64_t task, uint64_t mask)
{
	const greg_t *r = u->uc_mcontext.gregs;
	const struct registers registers = {
		.task = task,
		.rbx = (uint64_t)r[REG_RBX],
		.rbp = (uint64_t)r[REG_RBP],
		.rdi = (uint64_t)r[REG_RDI],
		.rsi = (uint64_t)r[REG_RSI],
		.rdx = (uint64_t)r[REG_RDX],
		.r8 = (uint64_t)r[REG_R8],
		.r9 = (uint64_t)r[REG_R9],
		.r10 = (uint64_t)r[REG_R10],
		.r12 = (uint64_t)r[REG_R12],
		.r13 = (uint64_t)r[REG_R13],
		.r14 = (uint64_t)r[REG_R14],
		.r15 = (uint64_t)r[REG_R15],
		.rip = (uint64_t)r[REG_RIP],
		.rflags = (uint64_t)r[REG_EFL],
		.mask = mask,
	};

	(void)fathom_trace_write_memory(sp - sizeof registers, &registers, sizeof registers);
}

static int32_t own_pid(void)
{
	return (int32_t)fathom_trace_syscall_kernel(SYS_getpid, 0, 0, 0, 0);
}

/* Returns the number of the calling thread; 0: asking for it may be forbidden. */
static int32_t own_tid(void)
{
	return fathom_trace_is_filtered()
		       ? 0
		       : (int32_t)fathom_trace_syscall_kernel(SYS_gettid, 0, 0, 0, 0);
}

/* Returns whether the stack pointer of @u is on the stack of @task: our handler was interrupted. */
static bool is_ours(const struct fathom_dispatch_task *task, const ucontext_t *u)
{
	return (uint64_t)u->uc_mcontext.gregs[REG_RSP] - (uintptr_t)task < FATHOM_DISPATCH_TASK;
}

/* Gives the thread the program's stack for its handlers again when our handler returns to @u. */
static void give_stack_back(struct fathom_dispatch_task *task, ucontext_t *u)
{
	u->uc_stack = task->signals.stack;
	if (!u->uc_stack.ss_size)
		u->uc_stack = (stack_t){ .ss_flags = SS_DISABLE };
	fathom_dispatch_task_give(task, true);
}

/* Sets the arguments of the call that @u is about to make to @args. */
static void set_args(ucontext_t *u, const uint64_t args[6])
{
	static const int registers[6] = { REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9 };

	for (unsigned i = 0; i < 6; i++)
		u->uc_mcontext.gregs[registers[i]] = (greg_t)args[i];
}

/* Sets the mask of @u to that of the thread while a call of @kind is made. */
static void set_inline_mask(enum fathom_dispatch_kind kind, struct fathom_dispatch_task *task,
			    ucontext_t *u)
{
	const uint64_t sigsys = fathom_signal_bit(SIGSYS);

	if (kind == FATHOM_DISPATCH_EXIT)
		fathom_signal_set_mask(u, UINT64_MAX);
	else if (kind == FATHOM_DISPATCH_VFORK && !fathom_trace_self_is_unarmed)
		fathom_signal_set_mask(u, ~sigsys);
	else if (kind == FATHOM_DISPATCH_EXEC && task->signals.is_blocked)
		fathom_signal_set_mask(u, fathom_signal_mask(u) | sigsys);
}

/*
 * Makes the call of @f where our handler returns to, on the program's stack, which the kernel then
 * uses as it would without us; false: there are too many already.
 */
static bool begin_inline(const struct fathom_trace_syscall_frame *f,
			 const struct fathom_trace_thread *t, struct fathom_dispatch_task *task,
			 ucontext_t *u, enum fathom_dispatch_kind kind)
{
	struct fathom_dispatch_inlined *call = &task->inlined[task->n_inlined];
	uint64_t args[6];

	if (task->n_inlined == FATHOM_DISPATCH_INLINED)
		return false;
	call->frame = *f;
	call->thread = fathom_trace_self_block();
	__builtin_memcpy(&call->registers, &u->uc_mcontext.gregs, sizeof call->registers);
	call->mask = fathom_signal_mask(u);
	call->kind = kind;
	/* Only a child of vfork() has the calls of another task below its own. */
	call->tid = task->n_inlined || kind == FATHOM_DISPATCH_VFORK ? own_tid() : 0;
	call->is_recorded = t != NULL;
	__builtin_memcpy(args, f->args, sizeof args);
	__builtin_memcpy(task->args, f->args, sizeof args);
	task->behind = f->behind;
	fathom_trace_self_task = task;
	if (kind == FATHOM_DISPATCH_CALL) {
		fathom_program_signals_clean((long)f->rax, args, call->copies);
		set_args(u, args);
	} else if (kind == FATHOM_DISPATCH_VFORK) {
		fathom_trace_self_is_unarmed = !arms_children();
		call->signals = task->signals;
		call->lent.changed = 0;
		call->lent_before = task->lent;
		task->lent = &call->lent;
	} else if (kind == FATHOM_DISPATCH_EXEC) {
		fathom_program_signals_execute();
	} else if (kind == FATHOM_DISPATCH_EXIT && !task->n_inlined) {
		fathom_dispatch_task_give(task, true);
	}
	call->is_unwound = kind == FATHOM_DISPATCH_CALL && fathom_hook_stack_has_room(f->sp);
	if (call->is_unwound)
		*(uint64_t *)(f->sp - UNWOUND_OFF) = f->behind;
	set_inline_mask(kind, task, u);
	task->n_inlined++;
	u->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)stub_of(call).begin;
	return true;
}

/* Moves @u to the place of the program after @call, or before it: it was not made. */
static void go_back(const struct fathom_dispatch_inlined *call, ucontext_t *u, long result,
		    bool is_made)
{
	greg_t *r = u->uc_mcontext.gregs;

	for (unsigned i = 0; i <= REG_EFL; i++)
		r[i] = call->registers[i];
	r[REG_RAX] = result;
	r[REG_RIP] = (greg_t)call->frame.behind - (is_made ? 0 : SYSCALL_SIZE);
	if (call->kind != FATHOM_DISPATCH_I386) {
		r[REG_RCX] = (greg_t)call->frame.behind;
		r[REG_R11] = r[REG_EFL];
	}
	if (call->kind != FATHOM_DISPATCH_CALL && call->kind != FATHOM_DISPATCH_I386)
		fathom_signal_set_mask(u, call->mask);
}

/* Takes @call, the latest one of @task, and records that it has ended with @result. */
static void end_inline(struct fathom_dispatch_task *task, struct fathom_dispatch_inlined *call,
		       long result)
{
	task->n_inlined = (uint32_t)(call - task->inlined);
	if (call->kind == FATHOM_DISPATCH_VFORK) {
		task->signals = call->signals;
		fathom_program_signals_restore(&call->lent);
		task->lent = call->lent_before;
	}
	if (!call->thread)
		return;
	/* A child has had the variable. */
	fathom_trace_set_own_block(call->thread);
	end(&call->frame, call->is_recorded ? call->thread : NULL, result);
}

/* A call that was made on the program's stack has returned, and led to the trap. */
static void made(struct fathom_dispatch_task *task, ucontext_t *u)
{
	const long result = u->uc_mcontext.gregs[REG_R9];
	uint32_t n = task->n_inlined;
	int32_t tid;

	if (n == 1 && task->inlined[0].kind != FATHOM_DISPATCH_VFORK) {
		end_inline(task, &task->inlined[0], result);
		go_back(&task->inlined[0], u, result, true);
		return;
	}
	tid = own_tid();
	/* A child of vfork() may have been killed within a call of its own. */
	while (n && tid && task->inlined[n - 1].tid != tid)
		n--;
	if (n && (tid || result))
		end_inline(task, &task->inlined[n - 1], result);
	else
		n = task->n_inlined; /* it is the child */
	go_back(&task->inlined[n - 1], u, result, true);
}

static bool lies_in(uint64_t pc, const char *begin, const char *end)
{
	return pc >= (uintptr_t)begin && pc < (uintptr_t)end;
}

/*
 * A signal has come. If a call of the program is being made on its stack, that ends here: the
 * program is where it would be without us, in front of the call or after it. Returns false if the
 * signal has to wait for that, unless it @is_forced.
 */
static bool settle(struct fathom_dispatch_task *task, ucontext_t *u, bool is_forced)
{
	greg_t *r = u->uc_mcontext.gregs;
	const uint64_t pc = (uint64_t)r[REG_RIP];
	struct fathom_dispatch_inlined *call;
	struct stub stub;
	bool is_made;
	long result;

	task->signals.has_waited = false;
	if (!task->n_inlined)
		return true;
	call = &task->inlined[task->n_inlined - 1];
	stub = stub_of(call);
	if (!lies_in(pc, stub.begin, stub.end) &&
	    !lies_in(pc, fathom_user_dispatch_trap, fathom_user_dispatch_trap_made))
		return true;
	if (call->kind != FATHOM_DISPATCH_CALL && call->kind != FATHOM_DISPATCH_I386 && !is_forced)
		return false;
	if (call->kind == FATHOM_DISPATCH_EXEC)
		fathom_program_signals_not_executed();
	is_made = pc != (uintptr_t)stub.begin;
	result = !is_made || pc == (uintptr_t)stub.made ? r[REG_RAX] : r[REG_R9];
	/* The kernel keeps the mask of such a call for the handler that ends it. */
	if (call->kind == FATHOM_DISPATCH_CALL && pc == (uintptr_t)stub.made && result == -EINTR)
		fathom_program_signals_note_wait(&task->signals, (long)call->frame.rax,
						 call->frame.args);
	end_inline(task, call, is_made ? result : NOT_MADE);
	go_back(call, u, result, is_made);
	return true;
}

/* Sets the state of signals of the task of a new thread with @flags. */
static void begin_task(struct fathom_dispatch_task *child, const struct fathom_dispatch_task *task,
		       uint64_t flags)
{
	child->signals = task->signals;
	child->signals.is_pending = false;
	if ((flags & (CLONE_VM | CLONE_VFORK)) == CLONE_VM)
		child->signals.stack = (stack_t){ .ss_flags = SS_DISABLE };
}

/*
 * Makes the call of @f, of a task with a stack of its own, up to @sp. While its parent waits, it
 * has the parent's memory (CLONE_VFORK), and says other things of its signals.
 */
static long clone_with_stack(const struct fathom_trace_syscall_frame *f, uint64_t flags,
			     uint64_t sp, const struct fathom_dispatch_task *task,
			     const ucontext_t *u)
{
	const bool clears = flags & CLEARS_SIGNALS;
	const bool is_armed = arms_children();
	struct fathom_dispatch_task *child =
		is_armed && !fathom_trace_is_filtered() ? fathom_dispatch_task_take(0) : NULL;
	uint64_t mask = fathom_signal_mask(u);
	struct fathom_program_lent lent = { .changed = 0 };
	uint64_t said = (uintptr_t)child | (clears ? CLEARED : 0);
	long result;

	if (child)
		begin_task(child, task, flags);
	else if (is_armed)
		atomic_fetch_add_explicit(&fathom_trace_self_process.head->lost, 1,
					  memory_order_relaxed);
	if (!child) {
		said |= UNARMED;
		mask |= task->signals.is_blocked ? fathom_signal_bit(SIGSYS) : 0;
	}
	give_registers(sp, u, said, mask);
	if (child && flags & CLONE_VFORK)
		child->lent = &lent;
	if (clears && flags & CLONE_VFORK)
		fathom_program_signals_clear(&lent);
	result = fathom_user_dispatch_clone((long)f->rax, f->args);
	if (flags & CLONE_VFORK)
		fathom_program_signals_restore(&lent);
	if (!child)
		return result;
	if (result < 0 || flags & CLONE_VFORK || !(flags & CLONE_VM))
		fathom_dispatch_task_give(child, false);
	else
		atomic_store(&child->tid, (int32_t)result);
	return result;
}

/* Called in the child of a fork(), which is dispatched on. */
static void begin_child(struct fathom_dispatch_task *task, bool clears)
{
	const bool is_filtered = fathom_trace_is_filtered();

	fathom_trace_set_own_block(NULL);
	fathom_program_signals_begin_child(&task->signals, clears);
	if (!is_filtered)
		fathom_trace_self_dispatch.pid = own_pid();
	fathom_dispatch_task_begin_child(task, own_tid());
	if (arms_children())
		(void)arm();
}

/* Properties of a task, of the call that makes it. */
struct wanted {
	uint64_t flags;
	uint64_t sp;   /* 0: that of its parent */
	uint64_t size; /* of its stack; 0: that is not known */
};

static struct wanted wanted_of(const struct fathom_trace_syscall_frame *f)
{
	struct clone_args args = { .flags = 0 };

	switch (f->rax) {
	case SYS_vfork:
		return (struct wanted){ CLONE_VM | CLONE_VFORK, 0, 0 };
	case SYS_clone:
		return (struct wanted){ f->args[0], f->args[1], 0 };
	case SYS_clone3:
		(void)fathom_trace_read_memory(&args, f->args[0],
					       f->args[1] < sizeof args ? f->args[1] : sizeof args);
		return (struct wanted){ args.flags, args.stack ? args.stack + args.stack_size : 0,
					args.stack_size };
	default:
		return (struct wanted){ 0, 0, 0 };
	}
}

/*
 * Returns whether the calling thread is to leave before it makes the call of @f, by which it would
 * make a task: the filter of the program forbids what that would need, which is its mask, and,
 * where handlers of its may run while our handler waits for it, a signal stack.
 */
static bool must_leave_child(const struct fathom_trace_syscall_frame *f, const ucontext_t *u)
{
	const uint64_t all = UINT64_MAX & ~fathom_signal_bit(SIGKILL) &
			     ~fathom_signal_bit(SIGSTOP) & ~fathom_signal_bit(SIGSYS);
	struct wanted wanted;

	if (!fathom_trace_is_filtered() && !atomic_load(&fathom_trace_self_process.is_unarmed))
		return false;
	wanted = wanted_of(f);
	return wanted.sp && (!fathom_trace_may_probe() ||
			     (wanted.flags & CLONE_VFORK && (fathom_signal_mask(u) & all) != all));
}

/* A call that makes a thread or a process; false: it is made inline. */
static bool make_child(struct fathom_trace_syscall_frame *f, const struct fathom_trace_thread *t,
		       struct fathom_dispatch_task *task, ucontext_t *u, long *ret_result)
{
	const struct wanted wanted = wanted_of(f);

	if (wanted.sp) {
		if (wanted.size && wanted.flags & CLONE_THREAD)
			fathom_hook_stack_note(wanted.sp - wanted.size, wanted.size);
		*ret_result = clone_with_stack(f, wanted.flags, wanted.sp, task, u);
		return true;
	}
	if (wanted.flags & CLONE_VM) {
		if (begin_inline(f, t, task, u, FATHOM_DISPATCH_VFORK))
			return false;
		*ret_result = -EAGAIN;
		return true;
	}
	*ret_result = fathom_trace_make_call((long)f->rax, f->args);
	if (!*ret_result)
		begin_child(task, wanted.flags & CLEARS_SIGNALS);
	return true;
}

/*
 * Returns whether call @number cannot be interrupted by the handler of a signal: it is made in our
 * handler, where all signals are blocked.
 */
static bool is_brief(uint64_t number)
{
	switch (number) {
	case SYS_lseek:
	case SYS_mmap:
	case SYS_mprotect:
	case SYS_munmap:
	case SYS_brk:
	case SYS_access:
	case SYS_stat:
	case SYS_fstat:
	case SYS_lstat:
	case SYS_newfstatat:
	case SYS_readlink:
	case SYS_sched_yield:
	case SYS_mremap:
	case SYS_madvise:
	case SYS_dup:
	case SYS_dup2:
	case SYS_dup3:
	case SYS_pipe:
	case SYS_pipe2:
	case SYS_getpid:
	case SYS_gettid:
	case SYS_getppid:
	case SYS_getpgrp:
	case SYS_getpgid:
	case SYS_getsid:
	case SYS_getuid:
	case SYS_geteuid:
	case SYS_getgid:
	case SYS_getegid:
	case SYS_getgroups:
	case SYS_getcwd:
	case SYS_uname:
	case SYS_gettimeofday:
	case SYS_clock_gettime:
	case SYS_clock_getres:
	case SYS_time:
	case SYS_times:
	case SYS_getrusage:
	case SYS_getrlimit:
	case SYS_prlimit64:
	case SYS_sysinfo:
	case SYS_socket:
	case SYS_socketpair:
	case SYS_bind:
	case SYS_listen:
	case SYS_getsockname:
	case SYS_getpeername:
	case SYS_setsockopt:
	case SYS_getsockopt:
	case SYS_epoll_create1:
	case SYS_epoll_ctl:
	case SYS_eventfd2:
	case SYS_set_tid_address:
	case SYS_set_robust_list:
	case SYS_rseq:
	case SYS_kill:
	case SYS_tkill:
	case SYS_tgkill:
	case SYS_sched_getaffinity:
	case SYS_rt_sigaction:
	case SYS_rt_sigprocmask:
	case SYS_rt_sigpending:
	case SYS_sigaltstack:
	case SYS_seccomp:
	case SYS_prctl:
	case SYS_ptrace:
	case SYS_exit_group:
		return true;
	default:
		return false;
	}
}

/* Returns how the call of @f is made on the program's stack. */
static enum fathom_dispatch_kind kind_of(const struct fathom_trace_syscall_frame *f,
					 const struct fathom_dispatch_task *task)
{
	if (f->rax == SYS_exit)
		return FATHOM_DISPATCH_EXIT;
	if ((f->rax == SYS_execve || f->rax == SYS_execveat) && !fathom_trace_is_filtered() &&
	    (task->signals.is_blocked || fathom_program_signals_have_action()))
		return FATHOM_DISPATCH_EXEC;
	return FATHOM_DISPATCH_CALL;
}

/* Makes the call that @f describes, as the program is to see it; returns its result. */
static long make(const struct fathom_trace_syscall_frame *f, struct fathom_dispatch_task *task,
		 ucontext_t *u)
{
	const uint64_t *args = f->args;
	const long number = (long)f->rax;
	uint64_t program;
	uint32_t found;
	long result;

	if (fathom_program_signals_make(number, args, task, u, &result))
		return result;
	switch (number) {
	case SYS_exit_group:
		/* A filter may forbid the calls of ended(): the reader then finds out by itself. */
		if (fathom_trace_is_filtered())
			break;
		/* A child of vfork() has its parent's variable. */
		fathom_trace_self_is_silent = true;
		fathom_trace_self_dispatch.ended((int)(args[0] & 0xff) << 8);
		fathom_trace_self_is_silent = false;
		break;
	case SYS_seccomp:
	case SYS_prctl:
		found = fathom_filter_is_set_by((uint64_t)number, args, &program)
				? fathom_filter_look(program)
				: 0;
		result = fathom_trace_make_call(number, args);
		fathom_trace_note_filter((uint64_t)number, args[0], args[1], found, result);
		return result;
	default:
		break;
	}
	return fathom_trace_make_call(number, args);
}

/* The program returns from a handler, whose frame is where its stack pointer is. */
static _Noreturn void return_from_handler(struct fathom_trace_syscall_frame *f,
					  struct fathom_trace_thread *t,
					  struct fathom_dispatch_task *task)
{
	const size_t off = offsetof(ucontext_t, uc_mcontext.gregs[REG_RAX]);
	uint64_t rax = 0;

	if (t)
		(void)fathom_trace_read_memory(&rax, f->sp + off, sizeof rax);
	end(f, t, (long)rax);
	fathom_signal_frame_leave(&task->signals, f->sp, &task->own);
	if (fathom_program_signals_have_pending(&task->signals))
		fathom_program_signals_send_pending(&task->signals);
	fathom_user_dispatch_return(f->sp);
}

/* Returns whether one thread cannot be disarmed alone: a filter forbids what that needs. */
static bool must_stay_armed(void)
{
	return fathom_trace_is_filtered() || atomic_load(&fathom_trace_self_process.is_bound);
}

/* Returns whether the process may have other threads. */
static bool has_other_threads(void)
{
	struct stat task;

	/* The folder has a link for itself, one from above, and one from each thread's. */
	return fathom_trace_syscall_kernel(SYS_newfstatat, AT_FDCWD, (long)"/proc/self/task",
					   (long)&task, 0) ||
	       task.st_nlink != 3;
}

/* Marks the thread of ring @i, or all of this process, as recorded no more, for the log. */
static void say_left(uint32_t i, bool is_all)
{
	struct fathom_trace_head *head = fathom_trace_self_process.head;
	const int32_t pid = atomic_load(&fathom_trace_ring_at(head, i)->pid);

	for (uint32_t k = 0; k < head->n_rings; k++) {
		struct fathom_trace_ring *ring = fathom_trace_ring_at(head, k);

		if (k == i || (is_all && atomic_load(&ring->tid) && atomic_load(&ring->pid) == pid))
			atomic_store(&ring->is_left, 1);
	}
}

/*
 * Lets the calling thread make its call itself, and all later ones: its filter would not let the
 * runtime make them, or return from its handler. With @has_all, the filter is that of all threads.
 * The kernel has one action for SIGSYS: where other threads are to be dispatched on, and the
 * program has none, the thread blocks it, and so ends by one of its filter.
 */
static void leave(struct fathom_dispatch_task *task, ucontext_t *u, bool has_all)
{
	const struct fathom_trace_thread *t = find_block();
	/* Another filter may forbid the calls that would report, or disarm one thread alone. */
	const bool is_bound = must_stay_armed();
	const bool is_alone = !is_bound && !has_other_threads();
	const bool is_all = is_bound || is_alone || has_all || fathom_program_signals_have_action();

	if (is_all && !is_alone)
		*fathom_trace_self_selector = ALLOWED;
	if (t)
		say_left(t->number, is_all);
	/* The handler of fork() asks in the child whose block this is. */
	fathom_trace_set_own_block(NULL);
	if (!fathom_trace_is_filtered())
		fathom_program_signals_leave(&task->signals, u, is_all);
	if (!is_bound)
		disarm();
	if (is_alone)
		fathom_program_signals_end();
	give_stack_back(task, u);
	u->uc_mcontext.gregs[REG_RIP] -= SYSCALL_SIZE;
}

/* Disarms the calling thread, with or without @task, without a note in the log. */
static void stop(struct fathom_dispatch_task *task, ucontext_t *u)
{
	if (must_stay_armed())
		*fathom_trace_self_selector = ALLOWED;
	else
		disarm();
	if (!task)
		return;
	if (task->signals.is_blocked)
		fathom_signal_set_mask(u, fathom_signal_mask(u) | fathom_signal_bit(SIGSYS));
	fathom_program_signals_send_pending(&task->signals);
	give_stack_back(task, u);
}

static bool is_strict(const struct fathom_trace_syscall_frame *f)
{
	return f->rax == SYS_seccomp
		       ? (uint32_t)f->args[0] == SECCOMP_SET_MODE_STRICT && !(uint32_t)f->args[1] &&
				 !f->args[2]
		       : f->rax == SYS_prctl && (uint32_t)f->args[0] == PR_SET_SECCOMP &&
				 f->args[1] == SECCOMP_MODE_STRICT;
}

/* Returns whether the calling thread is to leave before it makes the call of @f. */
static bool must_leave(const struct fathom_trace_syscall_frame *f, bool *ret_has_all)
{
	const uint32_t bad = FATHOM_FILTER_ASKS_PLACE | FATHOM_FILTER_FORBIDS_RETURN;
	uint64_t program;
	uint32_t found;

	*ret_has_all = f->rax == SYS_seccomp && f->args[1] & SECCOMP_FILTER_FLAG_TSYNC;
	/* The kernel dispatches a thread for one only. */
	if (is_strict(f) || (f->rax == SYS_prctl && f->args[0] == PR_SET_SYSCALL_USER_DISPATCH))
		return true;
	if (!fathom_filter_is_set_by(f->rax, f->args, &program))
		return false;
	found = fathom_filter_look(program);
	/* A filter of a child of vfork() does not bind its parent. */
	return found & bad || (found && !fathom_trace_is_filtered() &&
			       own_pid() != fathom_trace_self_dispatch.pid);
}

/* Returns whether call @number of i386 sets a filter, or strict mode. */
static bool filters_i386(uint64_t number, uint64_t first)
{
	enum { PRCTL = 172, SECCOMP = 354 };

	return number == PRCTL ? first == PR_SET_SECCOMP
			       : number == SECCOMP && first <= SECCOMP_SET_MODE_FILTER;
}

/*
 * Returns whether call @number of i386 is made in our handler: it makes tasks, or is about masks,
 * actions and stacks of signals.
 */
static bool is_made_by_handler_i386(uint64_t number)
{
	static const uint16_t numbers[] = { 1,   2,   11,  67,  68,  69,  119, 120, 126,
					    173, 174, 175, 186, 190, 252, 358, 435 };

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (numbers[i] == number)
			return true;
	return false;
}

/* A call by `int $0x80`. */
static void dispatch_int80(struct fathom_dispatch_task *task, ucontext_t *u)
{
	greg_t *r = u->uc_mcontext.gregs;
	struct fathom_trace_syscall_frame f = {
		.args = { (uint32_t)r[REG_RBX], (uint32_t)r[REG_RCX], (uint32_t)r[REG_RDX],
			  (uint32_t)r[REG_RSI], (uint32_t)r[REG_RDI], (uint32_t)r[REG_RBP] },
		.rax = (uint32_t)r[REG_RAX],
		.stub = FATHOM_TRACE_STUB_I386,
		.behind = (uint64_t)r[REG_RIP],
		.sp = (uint64_t)r[REG_RSP],
	};
	struct fathom_trace_thread *t = begin_syscall(&f);
	const int32_t pid = fathom_trace_is_filtered() ? 0 : own_pid();
	long result;

	if (filters_i386(f.rax, f.args[0])) {
		leave(task, u, false);
		return;
	}
	if (!is_made_by_handler_i386(f.rax) && begin_inline(&f, t, task, u, FATHOM_DISPATCH_I386))
		return;
	result = fathom_user_dispatch_int80((long)f.rax, f.args);
	if (!result && pid && own_pid() != pid)
		begin_child(task, false);
	else
		end(&f, t, result);
	r[REG_RAX] = result;
}

/* Takes a task for the calling thread, whose signal stack is @stack; NULL: there is none. */
static struct fathom_dispatch_task *take_task(const stack_t *stack, bool is_blocked)
{
	const uint32_t kept = UINT32_C(0x80000000); /* SS_AUTODISARM */
	struct fathom_dispatch_task *task = fathom_dispatch_task_take(own_tid());

	if (!task)
		return NULL;
	task->signals =
		(struct fathom_program_signals){ .stack = *stack, .is_blocked = is_blocked };
	task->signals.stack.ss_flags =
		(int)((uint32_t)stack->ss_flags & kept) | (stack->ss_size ? 0 : SS_DISABLE);
	/* On its own signal stack, a thread may not change it. */
	(void)fathom_user_dispatch_set_stack(&task->own, (uintptr_t)task + FATHOM_DISPATCH_TASK);
	return task;
}

/* A SIGSYS of a thread that is not dispatched, or was asked to be. */
static void take_without_task(siginfo_t *info, ucontext_t *u)
{
	struct fathom_dispatch_task *task;

	if (info->si_code == BY_DISPATCH) {
		/* The program has changed its signal stack behind our back (int $0x80). */
		stop(NULL, u);
		u->uc_mcontext.gregs[REG_RIP] -= SYSCALL_SIZE;
		return;
	}
	if (info->si_code != ASKED) {
		fathom_program_signals_deliver(NULL, u, info, info->si_code > 0);
		return;
	}
	if (atomic_load(&fathom_trace_self_dispatch.is_over))
		return;
	task = take_task(&u->uc_stack, false);
	if (!task || !arm())
		atomic_fetch_add_explicit(&fathom_trace_self_process.head->lost, 1,
					  memory_order_relaxed);
	else
		u->uc_stack = task->own;
}

/* A SIGSYS that is no call. */
static void take_other(struct fathom_dispatch_task *task, siginfo_t *info, ucontext_t *u)
{
	const bool is_forced = info->si_code > 0;

	if (info->si_code == ASKED) {
		if (!atomic_load(&fathom_trace_self_dispatch.is_over))
			(void)arm();
	} else if (is_ours(task, u)) {
		/* A filter of the program has judged a call that was made for it. */
		if (is_forced) {
			task->trapped = *info;
			task->is_trapped = true;
		} else {
			fathom_program_signals_keep(&task->signals, info);
		}
	} else if (!settle(task, u, is_forced)) {
		fathom_program_signals_keep(&task->signals, info);
	} else {
		if (info->si_code == BY_FILTER)
			info->si_call_addr = (void *)u->uc_mcontext.gregs[REG_RIP];
		fathom_program_signals_deliver(task, u, info, is_forced);
	}
}

/* A call of the program. */
static void dispatch_call(struct fathom_dispatch_task *task, ucontext_t *u)
{
	greg_t *r = u->uc_mcontext.gregs;
	struct fathom_trace_syscall_frame f = {
		.behind = (uint64_t)r[REG_RIP],
		.args = { (uint64_t)r[REG_RDI], (uint64_t)r[REG_RSI], (uint64_t)r[REG_RDX],
			  (uint64_t)r[REG_R10], (uint64_t)r[REG_R8], (uint64_t)r[REG_R9] },
		.rax = (uint64_t)r[REG_RAX],
		.sp = (uint64_t)r[REG_RSP],
	};
	const uint64_t number = f.rax;
	struct fathom_trace_thread *t = begin_syscall(&f);
	bool has_all;
	long result;

	if (must_leave(&f, &has_all) || must_leave_child(&f, u)) {
		leave(task, u, has_all);
		return;
	}
	if (number == SYS_rt_sigreturn)
		return_from_handler(&f, t, task);
	if (number == SYS_clone || number == SYS_clone3 || number == SYS_vfork ||
	    number == SYS_fork) {
		if (!make_child(&f, t, task, u, &result))
			return;
		if (!result)
			t = NULL;
	} else if (is_brief(number) ||
		   (number == SYS_rt_sigtimedwait && task->signals.is_pending) ||
		   !begin_inline(&f, t, task, u, kind_of(&f, task))) {
		result = make(&f, task, u);
	} else {
		return;
	}
	end(&f, t, result);
	/* Its tracer would see each SIGSYS, and may wait for it in vfork(). */
	if (number == SYS_ptrace && !result && f.args[0] == PTRACE_TRACEME)
		stop(task, u);
	r[REG_RAX] = result;
	r[REG_RCX] = r[REG_RIP];
	r[REG_R11] = r[REG_EFL];
	if (task->is_trapped) {
		task->is_trapped = false;
		r[REG_RAX] = (greg_t)number;
		task->trapped.si_call_addr = (void *)f.behind;
		fathom_program_signals_deliver(task, u, &task->trapped, true);
	}
}

/* The handler of SIGSYS. */
static void dispatched(int number, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	const greg_t *r = u->uc_mcontext.gregs;
	struct fathom_dispatch_task *task = fathom_dispatch_task_of(&u->uc_stack);
	const uint64_t args[6] = {
		(uint64_t)r[REG_RDI], (uint64_t)r[REG_RSI], (uint64_t)r[REG_RDX],
		(uint64_t)r[REG_R10], (uint64_t)r[REG_R8],  (uint64_t)r[REG_R9]
	};
	long result;

	(void)number;
	if (!task) {
		take_without_task(info, u);
		return;
	}
	if (info->si_code != BY_DISPATCH) {
		take_other(task, info, u);
		return;
	}
	if ((uint64_t)r[REG_RIP] == (uintptr_t)fathom_user_dispatch_trap_made) {
		made(task, u);
	} else if (fathom_trace_self_is_silent && r[REG_RAX] != SYS_rt_sigreturn) {
		if (is_ours(task, u) ||
		    !fathom_program_signals_make(r[REG_RAX], args, task, u, &result))
			result = fathom_trace_syscall_kernel6(r[REG_RAX], args);
		u->uc_mcontext.gregs[REG_RAX] = result;
	} else if (atomic_load(&fathom_trace_self_dispatch.is_over)) {
		stop(task, u);
		if (!fathom_dispatch_task_others(task))
			fathom_program_signals_end();
		u->uc_mcontext.gregs[REG_RIP] -= SYSCALL_SIZE;
		return;
	} else if (info->si_arch != AUDIT_ARCH_X86_64) {
		dispatch_int80(task, u);
	} else {
		dispatch_call(task, u);
	}
	if (!is_ours(task, u) && fathom_program_signals_have_pending(&task->signals)) {
		if (settle(task, u, false))
			fathom_program_signals_deliver_pending(task, u);
	}
}

/* The handler of all that the program has handlers for. */
static void arrived(int number, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	struct fathom_dispatch_task *task = fathom_dispatch_task_of(&u->uc_stack);

	(void)number;
	if (task)
		(void)settle(task, u, true);
	fathom_program_signals_deliver(task, u, info, false);
}

/* Gives a task to the calling thread, which blocks @mask. */
static struct fathom_dispatch_task *begin_own(uint64_t mask)
{
	struct fathom_dispatch_task *task;
	stack_t stack;

	if (fathom_trace_syscall_kernel(SYS_sigaltstack, 0, (long)&stack, 0, 0))
		return NULL;
	task = fathom_dispatch_task_of(&stack);
	return task ? task : take_task(&stack, mask & fathom_signal_bit(SIGSYS));
}

bool fathom_user_dispatch_begin(void (*ended)(int status))
{
	const uint64_t all = UINT64_MAX;
	struct fathom_dispatch_task *task;
	uint64_t mask = 0;

	if (++fathom_trace_self_selector == fathom_trace_self_selectors + TRACES)
		fathom_trace_self_selector = fathom_trace_self_selectors;
	*fathom_trace_self_selector = ALLOWED;
	/* No handler of the program may run before it is replaced. */
	(void)fathom_trace_syscall_kernel(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&mask,
					  sizeof mask);
	task = begin_own(mask);
	if (task && arm()) {
		fathom_trace_self_dispatch.ended = ended;
		fathom_trace_self_dispatch.pid = own_pid();
		fathom_program_signals_begin(dispatched, arrived, fathom_user_dispatch_restorer);
		atomic_store(&fathom_trace_self_dispatch.is_over, false);
		mask &= ~fathom_signal_bit(SIGSYS);
	} else if (task) {
		(void)fathom_user_dispatch_set_stack(&task->signals.stack,
						     (uintptr_t)task + FATHOM_DISPATCH_TASK);
		fathom_dispatch_task_give(task, false);
		task = NULL;
	}
	(void)fathom_trace_syscall_kernel(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0,
					  sizeof mask);
	if (task)
		*fathom_trace_self_selector = BLOCKED;
	return task != NULL;
}

void fathom_user_dispatch_ask(int32_t tid)
{
	siginfo_t info = { .si_signo = SIGSYS, .si_code = ASKED };

	(void)fathom_trace_syscall_kernel(SYS_rt_tgsigqueueinfo,
					  fathom_trace_syscall_kernel(SYS_getpid, 0, 0, 0, 0), tid,
					  SIGSYS, (long)&info);
}

void fathom_user_dispatch_end(void)
{
	/*
	 * Each thread gives its signal stack back at its next call. The handler stays, and delivers
	 * what is not ours.
	 */
	atomic_store(&fathom_trace_self_dispatch.is_over, true);
	if (fathom_trace_is_filtered())
		*fathom_trace_self_selector = ALLOWED;
}

void fathom_user_dispatch_set_own(bool is_own)
{
	fathom_trace_self_is_silent = is_own;
}
