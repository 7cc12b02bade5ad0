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

#include "trace/call_hook.h"
#include "trace/cancellation_point.h"
#include "trace/filter_look.h"
#include "trace/linked.h"
#include "trace/machine.h"
#include "trace/program_signals.h"

/* si_code of a call that was dispatched (include/uapi/asm-generic/siginfo.h). */
#define BY_DISPATCH 2
/* That of a call that a filter has judged. */
#define BY_FILTER 1
/* CLONE_CLEAR_SIGHAND (include/uapi/linux/sched.h) */
#define CLEARS_SIGNALS UINT64_C(0x100000000)

/* si_code by which a thread is asked to be armed; who else sends it has it be armed, too. */
#define ASKED (-0x66617468)

/* Traces of one process that have selectors of their own. */
#define TRACES 256

/* Calls of which is remembered whether they are cancellation points. */
#define POINTS 64

/* Bytes of the instruction `syscall`. */
#define SYSCALL_SIZE 2

/* Where the address of a thread's flags is above the stack pointer at a cancellation point. */
#define FLAGS_OFF 8

/* What a selector says. */
enum { ALLOWED = 0, BLOCKED = 1 };

/* What a new thread finds below its stack pointer, in its red zone: as user_dispatch_x86_64.S. */
struct registers {
	uint64_t is_unarmed; /* its calls are not dispatched */
	uint64_t rbx, rbp, rdi, rsi, rdx, r8, r9, r10, r12, r13, r14, r15, rip, rflags;
	uint64_t clears; /* it has no actions for signals of its parent's (CLONE_CLEAR_SIGHAND) */
};

_Static_assert(sizeof(struct registers) == 128 && offsetof(struct registers, rflags) == 112, "");

/* A call that is made inline, and has not returned yet: of vfork(), to its parent. */
struct inlined {
	uint64_t behind;                    /* where the program goes on */
	struct fathom_trace_thread *thread; /* whose block and extra it has; NULL: it has none */
	int32_t tid;                        /* whose it is */
	bool is_recorded;
	bool is_blocked;
};

/* What is one for a thread, and for its child of vfork(). */
static _Thread_local struct {
	struct inlined inlined[FATHOM_TRACE_INLINE];
	uint32_t n_inlined;
	bool is_own;     /* what it calls is the tracer's */
	uint64_t behind; /* the program's place of the call that it makes */
} fathom_trace_own_inlined __attribute__((tls_model("initial-exec")));

/* What is one for the process. */
static struct {
	void (*ended)(int status); /* called when the process ends */
	int32_t pid;               /* of the process */
	/* The last calls that came from slots of a hash: what is behind, and whether it is a
	 * cancellation point. */
	_Atomic uint64_t points[POINTS];
} fathom_trace_own_dispatch;

/* Where the kernel looks whether calls are dispatched. */
static volatile char fathom_trace_own_selectors[TRACES];

/*
 * The one of the trace that runs, or ran last. Threads keep that of the trace in which they were
 * armed: one that has blocked SIGSYS since then is not dispatched before it is armed anew.
 */
__attribute__((visibility("hidden"))) volatile char *fathom_trace_own_selector =
	fathom_trace_own_selectors;

extern const char __start_fathom_own_calls[] __attribute__((visibility("hidden")));
extern const char __stop_fathom_own_calls[] __attribute__((visibility("hidden")));

long fathom_user_dispatch_clone(long number, const uint64_t args[6]);
long fathom_user_dispatch_int80(long number, const uint64_t args[6]);
void fathom_user_dispatch_inline(void);
_Noreturn void fathom_user_dispatch_return(uint64_t sp);
void fathom_user_dispatch_restorer(void);
uint64_t fathom_user_dispatch_made(long result);

static long call6(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
		  uint64_t f)
{
	const uint64_t args[6] = { a, b, c, d, e, f };

	return fathom_trace_call_kernel6(number, args);
}

/* Has the calling thread be dispatched from now on. */
static bool arm(void)
{
	return !call6(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON,
		      (uintptr_t)__start_fathom_own_calls,
		      (uintptr_t)__stop_fathom_own_calls - (uintptr_t)__start_fathom_own_calls,
		      (uintptr_t)fathom_trace_own_selector, 0);
}

/* Returns whether a new thread may be armed. Those that are not are counted as lost. */
static bool arms_children(void)
{
	const struct fathom_trace_process *p = &fathom_trace_own_process;

	if (!atomic_load(&p->is_unarmed))
		return true;
	atomic_fetch_add_explicit(&p->head->lost, 1, memory_order_relaxed);
	return false;
}

/* Arms the calling thread, which is new, if its filter lets it. */
static void arm_child(void)
{
	if (arms_children())
		(void)arm();
}

/* Has it be dispatched no more. */
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
	struct fathom_trace_process *p = &fathom_trace_own_process;
	struct fathom_trace_thread *t = fathom_trace_own_block();
	int32_t tid;

	if (!p->head || atomic_load(&p->is_over) || fathom_trace_own_inlined.is_own)
		return NULL;
	if (fathom_trace_is_filtered()) {
		/* Taking a ring may be forbidden. */
		if (!t || !t->tid)
			atomic_fetch_add_explicit(&p->head->lost, 1, memory_order_relaxed);
		return t && t->tid ? t : NULL;
	}
	tid = (int32_t)fathom_trace_call_kernel(SYS_gettid, 0, 0, 0, 0);
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
	return fathom_trace_own_block();
}

/* Records the call of @f, before it is made; returns its thread's block, NULL if it is not
 * recorded. */
static struct fathom_trace_thread *begin(struct fathom_trace_call_frame *f)
{
	const struct fathom_trace_process *p = &fathom_trace_own_process;
	const uint64_t known = f->rax < FATHOM_TRACE_PLANS ? f->rax : FATHOM_TRACE_PLANS - 1;
	const unsigned bit = f->stub == FATHOM_TRACE_STUB_I386 ? 2 : 1;
	struct fathom_trace_thread *t;

	if (fathom_trace_own_plans.plans[known].is_left_out & bit)
		return NULL;
	t = find_block();
	if (!t || t->first + t->change <= 0)
		return NULL;
	if (!fathom_trace_wait_for_room(p, t, UINT64_C(2) * FATHOM_TRACE_CALL_RECORDS)) {
		atomic_fetch_add_explicit(&fathom_trace_ring_at(p->head, t->number)->lost, 1,
					  memory_order_relaxed);
		return NULL;
	}
	fathom_trace_forget_memory();
	return fathom_trace_call_begin(f) ? t : NULL;
}

/* Records how the call of @f, which begin() has returned @t for, has ended. */
static void end(struct fathom_trace_call_frame *f, struct fathom_trace_thread *t, long result)
{
	f->rax = (uint64_t)result;
	if (!t || atomic_load(&fathom_trace_own_process.is_over))
		return;
	/* A child of vfork() has had the variable. */
	fathom_trace_set_own_block(t);
	fathom_trace_forget_memory();
	fathom_trace_call_end(f);
}

/* What a new thread is to have in its registers goes below its stack pointer @sp. */
static void give_registers(uint64_t sp, const ucontext_t *u, bool clears)
{
	const greg_t *r = u->uc_mcontext.gregs;
	const struct registers registers = {
		.is_unarmed = !arms_children(),
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
		.clears = clears,
	};

	(void)fathom_trace_write_memory(sp - sizeof registers, &registers, sizeof registers);
}

static int32_t own_pid(void)
{
	return (int32_t)fathom_trace_call_kernel(SYS_getpid, 0, 0, 0, 0);
}

/* Returns the number of the calling thread; 0: asking for it may be forbidden. */
static int32_t own_tid(void)
{
	return fathom_trace_is_filtered()
		       ? 0
		       : (int32_t)fathom_trace_call_kernel(SYS_gettid, 0, 0, 0, 0);
}

/* Has the thread go on in fathom_user_dispatch_inline(); false: there are too many already. */
static bool begin_inline(const struct fathom_trace_call_frame *f,
			 const struct fathom_trace_thread *t, ucontext_t *u)
{
	const int32_t tid = own_tid();
	struct fathom_trace_extra *extra = fathom_trace_own_extra();
	uint32_t n = fathom_trace_own_inlined.n_inlined;

	/* The handler of a signal has jumped away from what this thread has begun. */
	while (n && fathom_trace_own_inlined.inlined[n - 1].tid == tid)
		n--;
	if (n == FATHOM_TRACE_INLINE)
		return false;
	fathom_trace_own_inlined.inlined[n] = (struct inlined){
		.behind = f->behind,
		.thread = extra ? fathom_trace_own_block() : NULL,
		.tid = tid,
		.is_recorded = t != NULL,
		.is_blocked = fathom_program_signals_are_blocked(),
	};
	if (extra) {
		extra->inlined[n].frame = *f;
		extra->inlined[n].kept = fathom_program_signals_save();
	}
	fathom_trace_own_inlined.n_inlined = n + 1;
	u->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)fathom_user_dispatch_inline;
	return true;
}

/* Called behind a call that was made inline, with @result; returns where the program goes on. */
uint64_t fathom_user_dispatch_made(long result)
{
	const int32_t tid = own_tid();
	uint32_t n = fathom_trace_own_inlined.n_inlined;
	struct fathom_trace_call_frame frame;
	struct fathom_trace_extra *extra;
	struct inlined *call;

	/* Its child may have been killed within one of its own. */
	while (n && tid && fathom_trace_own_inlined.inlined[n - 1].tid != tid)
		n--;
	if (!n || (!tid && !result)) {
		/* It is the child. */
		n = fathom_trace_own_inlined.n_inlined;
		arm_child();
		return fathom_trace_own_inlined.inlined[n - 1].behind;
	}
	call = &fathom_trace_own_inlined.inlined[n - 1];
	fathom_trace_own_inlined.n_inlined = n - 1;
	fathom_program_signals_block(call->is_blocked);
	if (!call->thread)
		return call->behind;
	/* The child has had the variable. */
	fathom_trace_set_own_block(call->thread);
	extra = fathom_trace_own_extra();
	fathom_program_signals_restore(&extra->inlined[n - 1].kept);
	frame = extra->inlined[n - 1].frame;
	end(&frame, call->is_recorded ? call->thread : NULL, result);
	return call->behind;
}

/*
 * Makes the call of @f, of a task with a stack of its own, up to @sp. While its parent waits, it
 * has the parent's memory (CLONE_VFORK), and says other things of its signals.
 */
static long clone_with_stack(const struct fathom_trace_call_frame *f, uint64_t flags, uint64_t sp,
			     const ucontext_t *u)
{
	const bool clears = flags & CLEARS_SIGNALS;
	const bool is_blocked = fathom_program_signals_are_blocked();
	const struct fathom_program_actions kept = fathom_program_signals_save();
	long result;

	give_registers(sp, u, clears);
	if (clears && flags & CLONE_VFORK)
		fathom_program_signals_restore(&(struct fathom_program_actions){ .masked = 0 });
	result = fathom_user_dispatch_clone((long)f->rax, f->args);
	if (flags & CLONE_VFORK) {
		fathom_program_signals_block(is_blocked);
		fathom_program_signals_restore(&kept);
	}
	return result;
}

/* A call that makes a thread or a process; false: it is made inline. */
static bool make_child(struct fathom_trace_call_frame *f, const struct fathom_trace_thread *t,
		       ucontext_t *u, long *ret_result)
{
	const uint64_t number = f->rax;
	struct clone_args wanted = { .flags = 0 };
	uint64_t sp = 0;
	uint64_t flags = number == SYS_vfork ? CLONE_VM | CLONE_VFORK : 0;

	if (number == SYS_clone) {
		flags = f->args[0];
		sp = f->args[1];
	} else if (number == SYS_clone3) {
		const uint64_t size = f->args[1] < sizeof wanted ? f->args[1] : sizeof wanted;

		(void)fathom_trace_read_memory(&wanted, f->args[0], size);
		flags = wanted.flags;
		sp = wanted.stack ? wanted.stack + wanted.stack_size : 0;
	}
	if (sp) {
		*ret_result = clone_with_stack(f, flags, sp, u);
		return true;
	}
	if (flags & CLONE_VM) {
		if (begin_inline(f, t, u))
			return false;
		*ret_result = -EAGAIN;
		return true;
	}
	*ret_result = fathom_trace_make_call((long)number, f->args);
	if (!*ret_result) {
		fathom_trace_set_own_block(NULL);
		fathom_program_signals_begin_child(flags & CLEARS_SIGNALS);
		if (!fathom_trace_is_filtered())
			fathom_trace_own_dispatch.pid = own_pid();
		arm_child();
	}
	return true;
}

/* Makes the call that @f describes, as the program is to see it; returns its result. */
static long make(const struct fathom_trace_call_frame *f, ucontext_t *u)
{
	uint64_t args[6];
	const long number = (long)f->rax;
	uint64_t program;
	uint32_t found;
	long result;

	__builtin_memcpy(args, f->args, sizeof args);
	if (fathom_program_signals_make(number, args, u, &result))
		return result;
	switch (number) {
	case SYS_exit_group:
		/* What that calls a filter may forbid: the reader finds out by itself. */
		if (fathom_trace_is_filtered())
			break;
		/* A child of vfork() has its parent's variable. */
		fathom_trace_own_inlined.is_own = true;
		fathom_trace_own_dispatch.ended((int)(args[0] & 0xff) << 8);
		fathom_trace_own_inlined.is_own = false;
		break;
	case SYS_ptrace:
		result = fathom_trace_make_call(number, args);
		/* Its tracer would see each SIGSYS, and may wait for it in vfork(). */
		if (!result && args[0] == PTRACE_TRACEME)
			disarm();
		return result;
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
static _Noreturn void return_from_handler(struct fathom_trace_call_frame *f,
					  struct fathom_trace_thread *t)
{
	const size_t off = offsetof(ucontext_t, uc_mcontext.gregs[REG_RAX]);
	uint64_t rax = 0;

	if (t)
		(void)fathom_trace_read_memory(&rax, f->sp + off, sizeof rax);
	end(f, t, (long)rax);
	fathom_program_signals_return(f->sp);
	fathom_user_dispatch_return(f->sp);
}

/* Returns whether the process may have other threads. */
static bool has_other_threads(void)
{
	struct stat task;

	/* The folder has a link for itself, one from above, and one from each thread's. */
	return fathom_trace_call_kernel(SYS_newfstatat, AT_FDCWD, (long)"/proc/self/task",
					(long)&task, 0) ||
	       task.st_nlink != 3;
}

/* Has the log say that the thread of ring @i, or of all of this process, is recorded no more. */
static void say_left(uint32_t i, bool is_all)
{
	struct fathom_trace_head *head = fathom_trace_own_process.head;
	const int32_t pid = atomic_load(&fathom_trace_ring_at(head, i)->pid);

	for (uint32_t k = 0; k < head->n_rings; k++) {
		struct fathom_trace_ring *ring = fathom_trace_ring_at(head, k);

		if (k == i || (is_all && atomic_load(&ring->tid) && atomic_load(&ring->pid) == pid))
			atomic_store(&ring->is_left, 1);
	}
}

/*
 * Has the calling thread make its call itself, and all later ones: its filter would not let the
 * runtime make them, or return from its handler. With @has_all, the filter is that of all threads.
 * The kernel has one action for SIGSYS: where other threads are to be dispatched on, and the
 * program has none, the thread blocks it, and so ends by one of its filter.
 */
static void leave(ucontext_t *u, bool has_all)
{
	const struct fathom_trace_thread *t = find_block();
	/* What would tell, or disarm one thread alone, another filter may forbid. */
	const bool is_filtered = fathom_trace_is_filtered();
	const bool is_alone = !is_filtered && !has_other_threads();
	const bool is_all =
		is_filtered || is_alone || has_all || fathom_program_signals_have_action();

	if (is_all && !is_alone)
		*fathom_trace_own_selector = ALLOWED;
	if (t)
		say_left(t->number, is_all);
	/* What runs in a child of fork() asks whose it is. */
	fathom_trace_set_own_block(NULL);
	if (!is_filtered) {
		fathom_program_signals_leave(u, is_all);
		disarm();
	}
	u->uc_mcontext.gregs[REG_RIP] -= SYSCALL_SIZE;
}

static bool is_strict(const struct fathom_trace_call_frame *f)
{
	return f->rax == SYS_seccomp
		       ? (uint32_t)f->args[0] == SECCOMP_SET_MODE_STRICT && !(uint32_t)f->args[1] &&
				 !f->args[2]
		       : f->rax == SYS_prctl && (uint32_t)f->args[0] == PR_SET_SECCOMP &&
				 f->args[1] == SECCOMP_MODE_STRICT;
}

/* Returns whether the calling thread is to leave before it makes the call of @f. */
static bool must_leave(const struct fathom_trace_call_frame *f, bool *ret_has_all)
{
	const uint32_t bad = FATHOM_FILTER_ASKS_PLACE | FATHOM_FILTER_FORBIDS_RETURN;
	uint64_t program;
	uint32_t found;

	*ret_has_all = f->rax == SYS_seccomp && f->args[1] & SECCOMP_FILTER_FLAG_TSYNC;
	if (is_strict(f))
		return true;
	if (!fathom_filter_is_set_by(f->rax, f->args, &program))
		return false;
	found = fathom_filter_look(program);
	/* What a child of vfork() forbids itself is not forbidden to its parent. */
	return found & bad ||
	       (found && !fathom_trace_is_filtered() && own_pid() != fathom_trace_own_dispatch.pid);
}

/* Returns whether call @number of i386 sets a filter, or strict mode. */
static bool filters_i386(uint64_t number, uint64_t first)
{
	enum { PRCTL = 172, SECCOMP = 354 };

	return number == PRCTL ? first == PR_SET_SECCOMP
			       : number == SECCOMP && first <= SECCOMP_SET_MODE_FILTER;
}

/* A call by `int $0x80`. */
static void dispatch_int80(ucontext_t *u)
{
	greg_t *r = u->uc_mcontext.gregs;
	struct fathom_trace_call_frame f = {
		.args = { (uint32_t)r[REG_RBX], (uint32_t)r[REG_RCX], (uint32_t)r[REG_RDX],
			  (uint32_t)r[REG_RSI], (uint32_t)r[REG_RDI], (uint32_t)r[REG_RBP] },
		.rax = (uint32_t)r[REG_RAX],
		.stub = FATHOM_TRACE_STUB_I386,
		.behind = (uint64_t)r[REG_RIP],
		.sp = (uint64_t)r[REG_RSP],
	};
	struct fathom_trace_thread *t = begin(&f);
	const int32_t pid = fathom_trace_is_filtered() ? 0 : own_pid();
	long result;

	if (filters_i386(f.rax, f.args[0])) {
		leave(u, false);
		return;
	}
	result = fathom_user_dispatch_int80((long)f.rax, f.args);
	if (!result && pid && own_pid() != pid) {
		fathom_trace_set_own_block(NULL);
		fathom_program_signals_begin_child(false);
		arm_child();
	} else {
		end(&f, t, result);
	}
	r[REG_RAX] = result;
}

/* Returns whether the call that is before @behind is at a cancellation point. */
static bool is_at_point(uint64_t behind)
{
	_Atomic uint64_t *known =
		&fathom_trace_own_dispatch.points[(behind ^ behind >> 8) % POINTS];
	const uint64_t was = atomic_load_explicit(known, memory_order_relaxed);
	uint8_t code[FATHOM_CANCELLATION_BYTES];
	bool is_point;

	/* What reads the code, and what sends the signal again, a filter may forbid. */
	if (fathom_trace_is_filtered())
		return false;
	if (was >> 1 == behind)
		return was & 1;
	is_point = fathom_trace_read_memory(code, behind - sizeof code, sizeof code) &&
		   fathom_is_cancellation_point(code, sizeof code);
	atomic_store_explicit(known, behind << 1 | is_point, memory_order_relaxed);
	return is_point;
}

/* Makes the call of @f, at a cancellation point; a thread that is cancelled goes back to it. */
static long make_at_point(const struct fathom_trace_call_frame *f, ucontext_t *u)
{
	greg_t *r = u->uc_mcontext.gregs;
	long result;

	/* The code before the instruction has stored their address there. */
	fathom_program_signals_begin_point(*(uint32_t **)(f->sp + FLAGS_OFF));
	result = make(f, u);
	fathom_program_signals_end_point();
	if (result == FATHOM_NOT_MADE)
		r[REG_RIP] -= SYSCALL_SIZE;
	return result;
}

/* Returns whether @pc is in code that makes calls. */
static bool is_inside(uint64_t pc)
{
	const uint64_t begin = (uintptr_t)__start_fathom_own_calls;

	return pc - begin < (uintptr_t)__stop_fathom_own_calls - begin;
}

/* The handler of SIGSYS. */
static void dispatched(int number, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	greg_t *r = u->uc_mcontext.gregs;
	struct fathom_trace_call_frame f = {
		.behind = (uint64_t)r[REG_RIP],
		.args = { (uint64_t)r[REG_RDI], (uint64_t)r[REG_RSI], (uint64_t)r[REG_RDX],
			  (uint64_t)r[REG_R10], (uint64_t)r[REG_R8], (uint64_t)r[REG_R9] },
		.rax = (uint64_t)r[REG_RAX],
		.sp = (uint64_t)r[REG_RSP],
	};
	const greg_t call = r[REG_RAX];
	const uint64_t behind = fathom_trace_own_inlined.behind;
	struct fathom_trace_thread *t;
	bool has_all;
	long result;

	if (info->si_code == ASKED) {
		(void)arm();
		return;
	}
	if (info->si_code != BY_DISPATCH) {
		/* A filter of the program has judged a call that was made for it. */
		if (info->si_code == BY_FILTER && is_inside(f.behind))
			info->si_call_addr = (void *)fathom_trace_own_inlined.behind;
		fathom_program_signals_deliver(number, info, context);
		return;
	}
	if (info->si_arch != AUDIT_ARCH_X86_64) {
		dispatch_int80(u);
		return;
	}
	if (fathom_trace_own_inlined.is_own && f.rax != SYS_rt_sigreturn) {
		r[REG_RAX] = fathom_trace_call_kernel6((long)f.rax, f.args);
		return;
	}
	t = begin(&f);
	if (must_leave(&f, &has_all)) {
		leave(u, has_all);
		return;
	}
	if (f.rax == SYS_rt_sigreturn)
		return_from_handler(&f, t);
	if (f.rax == SYS_clone || f.rax == SYS_clone3 || f.rax == SYS_vfork || f.rax == SYS_fork) {
		if (!make_child(&f, t, u, &result))
			return;
		if (!result)
			t = NULL;
	} else if (f.rax == SYS_pkey_alloc && begin_inline(&f, t, u)) {
		return;
	} else {
		fathom_trace_own_inlined.behind = f.behind;
		result = is_at_point(f.behind) ? make_at_point(&f, u) : make(&f, u);
		fathom_trace_own_inlined.behind = behind;
	}
	end(&f, t, result);
	r[REG_RAX] = result;
	if (result == FATHOM_NOT_MADE) {
		r[REG_RAX] = call;
		return;
	}
	r[REG_RCX] = r[REG_RIP];
	r[REG_R11] = r[REG_EFL];
}

bool fathom_user_dispatch_begin(void (*ended)(int status))
{
	if (++fathom_trace_own_selector == fathom_trace_own_selectors + TRACES)
		fathom_trace_own_selector = fathom_trace_own_selectors;
	if (!arm())
		return false;
	fathom_trace_own_dispatch.ended = ended;
	fathom_trace_own_dispatch.pid = own_pid();
	fathom_program_signals_begin(dispatched, fathom_user_dispatch_restorer,
				     !has_other_threads());
	*fathom_trace_own_selector = BLOCKED;
	return true;
}

void fathom_user_dispatch_ask(int32_t tid)
{
	siginfo_t info = { .si_signo = SIGSYS, .si_code = ASKED };

	(void)fathom_trace_call_kernel(SYS_rt_tgsigqueueinfo,
				       fathom_trace_call_kernel(SYS_getpid, 0, 0, 0, 0), tid,
				       SIGSYS, (long)&info);
}

void fathom_user_dispatch_end(void)
{
	/* Other threads may be on their way into the handler: it stays, and delivers what is not
	 * ours. */
	*fathom_trace_own_selector = ALLOWED;
}

void fathom_user_dispatch_set_own(bool is_own)
{
	fathom_trace_own_inlined.is_own = is_own;
}
