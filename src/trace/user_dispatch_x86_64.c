/* SPDX-License-Identifier: MIT */
#include "trace/user_dispatch.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>

#include "trace/call_hook.h"
#include "trace/linked.h"
#include "trace/machine.h"

/* The bit of SIGSYS in a mask of the kernel, and the bytes of that. */
#define SIGSYS_BIT (UINT64_C(1) << (SIGSYS - 1))
#define MASK_SIZE  8
#define SIGNALS    64

/* si_code of a call that was dispatched (include/uapi/asm-generic/siginfo.h). */
#define BY_DISPATCH 2
/* si_code by which a thread is asked to be armed; who else sends it has it be armed, too. */
#define ASKED (-0x66617468)

/* What a selector says. */
enum { ALLOWED = 0, BLOCKED = 1 };

/* As the kernel has it (struct sigaction of arch/x86/include/uapi/asm/signal.h). */
struct action {
	uint64_t handler;
	uint64_t flags;
	uint64_t restorer;
	uint64_t mask;
};

#define FLAG_RESTORER UINT64_C(0x04000000) /* SA_RESTORER */

/* What a new thread finds below its stack pointer, in its red zone: as user_dispatch_x86_64.S. */
struct registers {
	uint64_t rbx, rbp, rdi, rsi, rdx, r8, r9, r10, r12, r13, r14, r15, rip, rflags;
	uint64_t unused;
};

_Static_assert(sizeof(struct registers) == 120 && offsetof(struct registers, rflags) == 104, "");

/* A call that is made inline, and has not returned yet: of vfork(), to its parent. */
struct inlined {
	uint64_t behind; /* where the program goes on */
	int32_t tid;     /* whose it is */
	bool is_recorded;
	bool is_blocked;
};

/* What is one for a thread, and for its child of vfork(). */
static _Thread_local struct {
	struct inlined inlined[FATHOM_TRACE_INLINE];
	uint32_t n_inlined;
	bool is_own;     /* what it calls is the tracer's */
	bool is_blocked; /* SIGSYS, as the program has it */
	bool is_pending; /* one has come meanwhile, with what is below */
	int32_t code;
	int32_t pid;
	uint32_t uid;
	union sigval value;
} fathom_trace_own_signals __attribute__((tls_model("initial-exec")));

/* What is one for the process. */
static struct {
	void (*ended)(int status);
	struct action program;   /* its action for SIGSYS */
	_Atomic uint64_t masked; /* signals whose actions have SIGSYS in their masks: bits */
} fathom_trace_own_dispatch;

/* Where the kernel looks whether calls are dispatched. */
__attribute__((visibility("hidden"))) volatile char fathom_trace_own_selector = ALLOWED;

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
		      (uintptr_t)&fathom_trace_own_selector, 0);
}

/* Has it be dispatched no more. */
static void disarm(void)
{
	(void)call6(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0, 0);
}

static bool is_filtered(void)
{
	return atomic_load_explicit(&fathom_trace_own_process.is_filtered, memory_order_relaxed);
}

/* Copies the program's memory; false if not all can be read. */
static bool read_memory(void *to, uint64_t avma, uint64_t size)
{
	if (!is_filtered())
		return fathom_trace_copy_memory(to, avma, size) == size;
	__builtin_memcpy(to, (const void *)avma, size);
	return true;
}

/* Changes the program's memory, if that is possible. */
static bool write_memory(uint64_t avma, const void *from, uint64_t size)
{
	const struct iovec local = { (void *)(uintptr_t)from, size };
	const struct iovec remote = { (void *)avma, size };

	if (!is_filtered())
		return call6(SYS_process_vm_writev,
			     (uint64_t)fathom_trace_call_kernel(SYS_getpid, 0, 0, 0, 0),
			     (uintptr_t)&local, 1, (uintptr_t)&remote, 1, 0) == (long)size;
	__builtin_memcpy((void *)avma, from, size);
	return true;
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

	if (!p->head || atomic_load(&p->is_over) || fathom_trace_own_signals.is_own)
		return NULL;
	if (is_filtered())
		return t && t->tid ? t : NULL;
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

/* Records the call of @f, before it is made; false if it is not recorded. */
static bool begin(struct fathom_trace_call_frame *f)
{
	const struct fathom_trace_process *p = &fathom_trace_own_process;
	const uint64_t known = f->rax < FATHOM_TRACE_PLANS ? f->rax : FATHOM_TRACE_PLANS - 1;
	const unsigned bit = f->stub == FATHOM_TRACE_STUB_I386 ? 2 : 1;
	struct fathom_trace_thread *t;

	if (fathom_trace_own_plans.plans[known].is_left_out & bit)
		return false;
	t = find_block();
	if (!t || t->first + t->change <= 0)
		return false;
	if (!fathom_trace_wait_for_room(p, t, 2 * UINT64_C(FATHOM_TRACE_CALL_RECORDS))) {
		atomic_fetch_add_explicit(&fathom_trace_ring_at(p->head, t->number)->lost, 1,
					  memory_order_relaxed);
		return false;
	}
	fathom_trace_forget_memory();
	return fathom_trace_call_begin(f);
}

/* Records how the call of @f has ended, if it is recorded. */
static void end(struct fathom_trace_call_frame *f, bool is_recorded, long result)
{
	f->rax = (uint64_t)result;
	if (!is_recorded || !find_block())
		return;
	fathom_trace_forget_memory();
	fathom_trace_call_end(f);
}

/* Has argument @i of @args, a mask, be one without SIGSYS, which @copy has room for. */
static void clean_mask(uint64_t args[6], unsigned i, uint64_t *copy)
{
	if (!args[i] || !read_memory(copy, args[i], MASK_SIZE) || !(*copy & SIGSYS_BIT))
		return;
	*copy &= ~SIGSYS_BIT;
	args[i] = (uintptr_t)copy;
}

/* Calls @number, which waits with a mask in argument @i, or in a struct there. */
static long call_with_mask(long number, uint64_t args[6], unsigned i, bool is_in_struct)
{
	uint64_t copy;
	uint64_t pair[2];

	if (!is_in_struct) {
		clean_mask(args, i, &copy);
	} else if (args[i] && read_memory(pair, args[i], sizeof pair) && pair[0]) {
		uint64_t inner[6] = { pair[0] };

		clean_mask(inner, 0, &copy);
		pair[0] = inner[0];
		args[i] = (uintptr_t)pair;
	}
	return fathom_trace_make_call(number, args);
}

/* Keeps the SIGSYS @info until the program does not block it. */
static void keep_pending(const siginfo_t *info)
{
	fathom_trace_own_signals.is_pending = true;
	fathom_trace_own_signals.code = info->si_code;
	fathom_trace_own_signals.pid = info->si_pid;
	fathom_trace_own_signals.uid = info->si_uid;
	fathom_trace_own_signals.value = info->si_value;
}

static siginfo_t pending(void)
{
	siginfo_t info;

	__builtin_memset(&info, 0, sizeof info);
	info.si_signo = SIGSYS;
	info.si_code = fathom_trace_own_signals.code;
	info.si_pid = fathom_trace_own_signals.pid;
	info.si_uid = fathom_trace_own_signals.uid;
	info.si_value = fathom_trace_own_signals.value;
	return info;
}

/* The SIGSYS that has come while the program had it blocked comes again. */
static void send_pending(void)
{
	siginfo_t info = pending();

	fathom_trace_own_signals.is_pending = false;
	(void)fathom_trace_call_kernel(
		SYS_rt_tgsigqueueinfo, fathom_trace_call_kernel(SYS_getpid, 0, 0, 0, 0),
		fathom_trace_call_kernel(SYS_gettid, 0, 0, 0, 0), SIGSYS, (long)&info);
}

/* rt_sigprocmask(how, set, old, size); the mask that the handler returns to is in @u. */
static long change_mask(uint64_t args[6], ucontext_t *u)
{
	const bool was_blocked = fathom_trace_own_signals.is_blocked;
	const uint64_t old = args[2];
	const int how = (int)args[0];
	bool is_blocked = was_blocked;
	uint64_t copy = 0;
	long result;

	if (args[1] && args[3] == MASK_SIZE && read_memory(&copy, args[1], MASK_SIZE)) {
		if (how == SIG_SETMASK)
			is_blocked = copy & SIGSYS_BIT;
		else if (copy & SIGSYS_BIT)
			is_blocked = how == SIG_BLOCK;
		copy &= ~SIGSYS_BIT;
		args[1] = (uintptr_t)&copy;
	}
	result = fathom_trace_make_call(SYS_rt_sigprocmask, args);
	if (result)
		return result;
	(void)fathom_trace_call_kernel(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)&u->uc_sigmask,
				       MASK_SIZE);
	fathom_trace_own_signals.is_blocked = is_blocked;
	if (was_blocked && old && read_memory(&copy, old, MASK_SIZE)) {
		copy |= SIGSYS_BIT;
		(void)write_memory(old, &copy, MASK_SIZE);
	}
	if (!is_blocked && fathom_trace_own_signals.is_pending)
		send_pending();
	return 0;
}

/* rt_sigpending(set, size) */
static long tell_pending(const uint64_t args[6])
{
	const long result = fathom_trace_make_call(SYS_rt_sigpending, args);
	uint64_t set = 0;

	if (result || !fathom_trace_own_signals.is_pending ||
	    !read_memory(&set, args[0], MASK_SIZE))
		return result;
	set |= SIGSYS_BIT;
	(void)write_memory(args[0], &set, MASK_SIZE);
	return 0;
}

/* rt_sigtimedwait(set, info, timeout, size): SIGSYS may be here already. */
static long wait_for_signal(const uint64_t args[6])
{
	uint64_t set = 0;
	bool may_be_here;
	siginfo_t info;
	long result = -EINTR;

	may_be_here =
		args[3] == MASK_SIZE && read_memory(&set, args[0], MASK_SIZE) && set & SIGSYS_BIT;
	if (!may_be_here || !fathom_trace_own_signals.is_pending)
		result = fathom_trace_make_call(SYS_rt_sigtimedwait, args);
	if (result != -EINTR || !may_be_here || !fathom_trace_own_signals.is_pending)
		return result;
	fathom_trace_own_signals.is_pending = false;
	info = pending();
	return args[1] && !write_memory(args[1], &info, sizeof info) ? -EFAULT : SIGSYS;
}

/* rt_sigaction(SIGSYS, action, old, size): the kernel keeps ours. */
static long change_own_action(const uint64_t args[6])
{
	struct action old = fathom_trace_own_dispatch.program;
	struct action new;

	if (args[3] != MASK_SIZE)
		return -EINVAL;
	if (args[1] && !read_memory(&new, args[1], sizeof new))
		return -EFAULT;
	if (args[1])
		fathom_trace_own_dispatch.program = new;
	return args[2] && !write_memory(args[2], &old, sizeof old) ? -EFAULT : 0;
}

/* rt_sigaction(number, action, old, size) */
static long change_action(uint64_t args[6])
{
	const uint64_t number = args[0];
	const uint64_t bit = number - 1 < SIGNALS ? UINT64_C(1) << (number - 1) : 0;
	const uint64_t old = args[2];
	const bool was_masked = atomic_load(&fathom_trace_own_dispatch.masked) & bit;
	bool is_masked = was_masked;
	struct action copy;
	long result;

	if (number == SIGSYS)
		return change_own_action(args);
	if (args[1] && args[3] == MASK_SIZE && read_memory(&copy, args[1], sizeof copy)) {
		is_masked = copy.mask & SIGSYS_BIT;
		copy.mask &= ~SIGSYS_BIT;
		args[1] = (uintptr_t)&copy;
	}
	result = fathom_trace_make_call(SYS_rt_sigaction, args);
	if (result)
		return result;
	if (is_masked)
		atomic_fetch_or(&fathom_trace_own_dispatch.masked, bit);
	else
		atomic_fetch_and(&fathom_trace_own_dispatch.masked, ~bit);
	if (was_masked && old && read_memory(&copy, old, sizeof copy)) {
		copy.mask |= SIGSYS_BIT;
		(void)write_memory(old, &copy, sizeof copy);
	}
	return 0;
}

/* Has the kernel's action for SIGSYS be @action. */
static void set_action(const struct action *action)
{
	(void)fathom_trace_call_kernel(SYS_rt_sigaction, SIGSYS, (long)action, 0, MASK_SIZE);
}

static void dispatched(int number, siginfo_t *info, void *context);

/* Has the kernel's action be the handler of this file. */
static void set_own_action(void)
{
	const struct action own = { .handler = (uintptr_t)dispatched,
				    .flags = SA_SIGINFO | SA_NODEFER | SA_RESTART | FLAG_RESTORER,
				    .restorer = (uintptr_t)fathom_user_dispatch_restorer };

	set_action(&own);
}

/* execve(): the new program inherits what the program has said of SIGSYS. */
static long execute(long number, const uint64_t args[6])
{
	const bool is_blocked = fathom_trace_own_signals.is_blocked;
	const bool is_ignored = fathom_trace_own_dispatch.program.handler == (uintptr_t)SIG_IGN;
	const uint64_t mask = SIGSYS_BIT;
	long result;

	if (is_ignored)
		set_action(&fathom_trace_own_dispatch.program);
	if (is_blocked)
		(void)fathom_trace_call_kernel(SYS_rt_sigprocmask, SIG_BLOCK, (long)&mask, 0,
					       MASK_SIZE);
	result = fathom_trace_make_call(number, args);
	if (is_blocked)
		(void)fathom_trace_call_kernel(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&mask, 0,
					       MASK_SIZE);
	if (is_ignored)
		set_own_action();
	return result;
}

/* Has the program end, as SIGSYS does by default. */
static void die(void)
{
	const struct action none = { .handler = (uintptr_t)SIG_DFL };

	set_action(&none);
	(void)fathom_trace_call_kernel(SYS_tgkill, fathom_trace_call_kernel(SYS_getpid, 0, 0, 0, 0),
				       fathom_trace_call_kernel(SYS_gettid, 0, 0, 0, 0), SIGSYS, 0);
}

/* A SIGSYS that is the program's: of kill(2), of its own filter (seccomp(2)). */
static void deliver(int number, siginfo_t *info, void *context)
{
	const struct action action = fathom_trace_own_dispatch.program;
	const bool is_forced = info->si_code > 0;
	uint64_t mask = action.mask & ~SIGSYS_BIT;

	if (fathom_trace_own_signals.is_blocked && !is_forced) {
		keep_pending(info);
		return;
	}
	if (action.handler == (uintptr_t)SIG_IGN && !is_forced)
		return;
	if (action.handler == (uintptr_t)SIG_DFL || action.handler == (uintptr_t)SIG_IGN ||
	    fathom_trace_own_signals.is_blocked) {
		die();
		return;
	}
	if (action.flags & SA_RESETHAND)
		fathom_trace_own_dispatch.program.handler = (uintptr_t)SIG_DFL;
	if (mask)
		(void)fathom_trace_call_kernel(SYS_rt_sigprocmask, SIG_BLOCK, (long)&mask,
					       (long)&mask, MASK_SIZE);
	((void (*)(int, siginfo_t *, void *))action.handler)(number, info, context);
	if (action.mask & ~SIGSYS_BIT)
		(void)fathom_trace_call_kernel(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0,
					       MASK_SIZE);
}

/* What a new thread is to have in its registers goes below its stack pointer @sp. */
static void give_registers(uint64_t sp, const ucontext_t *u)
{
	const greg_t *r = u->uc_mcontext.gregs;
	const struct registers registers = {
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
	};

	(void)write_memory(sp - sizeof registers, &registers, sizeof registers);
}

/* Has the thread go on in fathom_user_dispatch_inline(); false: there are too many already. */
static bool begin_inline(const struct fathom_trace_call_frame *f, bool is_recorded, ucontext_t *u)
{
	const uint32_t n = fathom_trace_own_signals.n_inlined;

	if (n == FATHOM_TRACE_INLINE)
		return false;
	fathom_trace_own_signals.inlined[n] = (struct inlined){
		.behind = f->behind,
		.tid = (int32_t)fathom_trace_call_kernel(SYS_gettid, 0, 0, 0, 0),
		.is_recorded = is_recorded,
		.is_blocked = fathom_trace_own_signals.is_blocked,
	};
	if (is_recorded)
		fathom_trace_own_extra()->inlined[n] = *f;
	fathom_trace_own_signals.n_inlined = n + 1;
	u->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)fathom_user_dispatch_inline;
	return true;
}

/* Called behind a call that was made inline, with @result; returns where the program goes on. */
uint64_t fathom_user_dispatch_made(long result)
{
	const int32_t tid = (int32_t)fathom_trace_call_kernel(SYS_gettid, 0, 0, 0, 0);
	uint32_t n = fathom_trace_own_signals.n_inlined;
	struct fathom_trace_call_frame frame;
	struct inlined *call;

	/* Its child may have been killed within one of its own. */
	while (n && fathom_trace_own_signals.inlined[n - 1].tid != tid)
		n--;
	if (!n) {
		/* It is the child. */
		n = fathom_trace_own_signals.n_inlined;
		(void)arm();
		return fathom_trace_own_signals.inlined[n - 1].behind;
	}
	call = &fathom_trace_own_signals.inlined[n - 1];
	fathom_trace_own_signals.n_inlined = n - 1;
	fathom_trace_own_signals.is_blocked = call->is_blocked;
	if (call->is_recorded && find_block()) {
		frame = fathom_trace_own_extra()->inlined[n - 1];
		end(&frame, true, result);
	}
	return call->behind;
}

/* A call that makes a thread or a process; false: it is made inline. */
static bool make_child(struct fathom_trace_call_frame *f, bool is_recorded, ucontext_t *u,
		       long *ret_result)
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

		(void)read_memory(&wanted, f->args[0], size);
		flags = wanted.flags;
		sp = wanted.stack ? wanted.stack + wanted.stack_size : 0;
	}
	if (sp) {
		const bool is_blocked = fathom_trace_own_signals.is_blocked;

		give_registers(sp, u);
		*ret_result = fathom_user_dispatch_clone((long)number, f->args);
		/* The child may have changed it: until it has ended, it had this variable, too. */
		if (flags & CLONE_VFORK)
			fathom_trace_own_signals.is_blocked = is_blocked;
		return true;
	}
	if (flags & CLONE_VM) {
		if (begin_inline(f, is_recorded, u))
			return false;
		*ret_result = -EAGAIN;
		return true;
	}
	*ret_result = fathom_trace_make_call((long)number, f->args);
	if (!*ret_result) {
		fathom_trace_set_own_block(NULL);
		(void)arm();
	}
	return true;
}

/*
 * The program filters its calls from now on. If the filter @is_strict, its thread may not even read
 * the clock of the processor (PR_SET_SECCOMP(2const)): nothing can be recorded any more.
 */
static void note_filter(bool is_strict)
{
	atomic_store(&fathom_trace_own_process.is_filtered, 1);
	if (is_strict)
		atomic_store(&fathom_trace_own_process.is_over, 1);
}

/* Makes the call that @f describes, as the program is to see it; returns its result. */
static long make(const struct fathom_trace_call_frame *f, ucontext_t *u)
{
	uint64_t args[6];
	const long number = (long)f->rax;
	long result;

	__builtin_memcpy(args, f->args, sizeof args);
	switch (number) {
	case SYS_rt_sigprocmask:
		return change_mask(args, u);
	case SYS_rt_sigaction:
		return change_action(args);
	case SYS_rt_sigpending:
		return tell_pending(args);
	case SYS_rt_sigtimedwait:
		return wait_for_signal(args);
	case SYS_rt_sigsuspend:
		return call_with_mask(number, args, 0, false);
	case SYS_ppoll:
		return call_with_mask(number, args, 3, false);
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
		return call_with_mask(number, args, 4, false);
	case SYS_pselect6:
	case SYS_io_pgetevents:
		return call_with_mask(number, args, 5, true);
	case SYS_execve:
	case SYS_execveat:
		return execute(number, args);
	case SYS_exit_group:
		/* A child of vfork() has its parent's variable. */
		fathom_trace_own_signals.is_own = true;
		fathom_trace_own_dispatch.ended((int)(args[0] & 0xff) << 8);
		fathom_trace_own_signals.is_own = false;
		break;
	case SYS_ptrace:
		result = fathom_trace_make_call(number, args);
		/* Its tracer would see each SIGSYS, and may wait for it in vfork(). */
		if (!result && args[0] == PTRACE_TRACEME)
			disarm();
		return result;
	case SYS_sigaltstack:
		/* The handler returns to what it was. */
		result = fathom_trace_make_call(number, args);
		(void)fathom_trace_call_kernel(number, 0, (long)&u->uc_stack, 0, 0);
		return result;
	case SYS_seccomp:
	case SYS_prctl:
		result = fathom_trace_make_call(number, args);
		if (!result && (number == SYS_seccomp || args[0] == PR_SET_SECCOMP))
			note_filter(number == SYS_seccomp ? args[0] == SECCOMP_SET_MODE_STRICT
							  : args[1] == SECCOMP_MODE_STRICT);
		return result;
	default:
		break;
	}
	return fathom_trace_make_call(number, args);
}

/* The program returns from a handler, whose frame is where its stack pointer is. */
static _Noreturn void return_from_handler(struct fathom_trace_call_frame *f, bool is_recorded)
{
	const size_t off = offsetof(ucontext_t, uc_mcontext.gregs[REG_RAX]);
	uint64_t rax = 0;

	if (is_recorded)
		(void)read_memory(&rax, f->sp + off, sizeof rax);
	end(f, is_recorded, (long)rax);
	fathom_user_dispatch_return(f->sp);
}

/* A call by `int $0x80`. */
static void dispatch_int80(greg_t *r)
{
	struct fathom_trace_call_frame f = {
		.args = { (uint32_t)r[REG_RBX], (uint32_t)r[REG_RCX], (uint32_t)r[REG_RDX],
			  (uint32_t)r[REG_RSI], (uint32_t)r[REG_RDI], (uint32_t)r[REG_RBP] },
		.rax = (uint32_t)r[REG_RAX],
		.stub = FATHOM_TRACE_STUB_I386,
		.behind = (uint64_t)r[REG_RIP],
		.sp = (uint64_t)r[REG_RSP],
	};
	const bool is_recorded = begin(&f);
	const int32_t pid = (int32_t)fathom_trace_call_kernel(SYS_getpid, 0, 0, 0, 0);
	const long result = fathom_user_dispatch_int80((long)f.rax, f.args);

	if (!result && (int32_t)fathom_trace_call_kernel(SYS_getpid, 0, 0, 0, 0) != pid) {
		fathom_trace_set_own_block(NULL);
		(void)arm();
	} else {
		end(&f, is_recorded, result);
	}
	r[REG_RAX] = result;
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
	bool is_recorded;
	long result;

	if (info->si_code == ASKED) {
		(void)arm();
		return;
	}
	if (info->si_code != BY_DISPATCH) {
		deliver(number, info, context);
		return;
	}
	if (info->si_arch != AUDIT_ARCH_X86_64) {
		dispatch_int80(r);
		return;
	}
	if (fathom_trace_own_signals.is_own && f.rax != SYS_rt_sigreturn) {
		r[REG_RAX] = fathom_trace_call_kernel6((long)f.rax, f.args);
		return;
	}
	is_recorded = begin(&f);
	if (f.rax == SYS_rt_sigreturn)
		return_from_handler(&f, is_recorded);
	if (f.rax == SYS_clone || f.rax == SYS_clone3 || f.rax == SYS_vfork || f.rax == SYS_fork) {
		if (!make_child(&f, is_recorded, u, &result))
			return;
		is_recorded &= result != 0;
	} else if (f.rax == SYS_pkey_alloc && begin_inline(&f, is_recorded, u)) {
		return;
	} else {
		result = make(&f, u);
	}
	end(&f, is_recorded, result);
	r[REG_RAX] = result;
	r[REG_RCX] = r[REG_RIP];
	r[REG_R11] = r[REG_EFL];
}

/* Has no action of the program block SIGSYS while its handler runs. */
static void clean_actions(void)
{
	for (int i = 1; i <= SIGNALS; i++) {
		struct action action;

		if (i == SIGSYS ||
		    fathom_trace_call_kernel(SYS_rt_sigaction, i, 0, (long)&action, MASK_SIZE) ||
		    !(action.mask & SIGSYS_BIT))
			continue;
		action.mask &= ~SIGSYS_BIT;
		if (!fathom_trace_call_kernel(SYS_rt_sigaction, i, (long)&action, 0, MASK_SIZE))
			atomic_fetch_or(&fathom_trace_own_dispatch.masked, UINT64_C(1) << (i - 1));
	}
}

bool fathom_user_dispatch_begin(void (*ended)(int status))
{
	const uint64_t sigsys = SIGSYS_BIT;
	uint64_t mask = 0;
	struct action action = { .handler = (uintptr_t)SIG_DFL };

	if (!arm())
		return false;
	fathom_trace_own_dispatch.ended = ended;
	(void)fathom_trace_call_kernel(SYS_rt_sigaction, SIGSYS, 0, (long)&action, MASK_SIZE);
	/* The handler may be there since the last time. */
	if (action.handler != (uintptr_t)dispatched)
		fathom_trace_own_dispatch.program = action;
	clean_actions();
	set_own_action();
	(void)fathom_trace_call_kernel(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&sigsys, (long)&mask,
				       MASK_SIZE);
	fathom_trace_own_signals.is_blocked = mask & SIGSYS_BIT;
	fathom_trace_own_selector = BLOCKED;
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
	fathom_trace_own_selector = ALLOWED;
}

bool fathom_user_dispatch_set_own(bool is_own)
{
	const bool was = fathom_trace_own_signals.is_own;

	fathom_trace_own_signals.is_own = is_own;
	return was;
}
