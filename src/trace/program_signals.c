/* SPDX-License-Identifier: MIT */
#include "trace/program_signals.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "trace/linked.h"
#include "trace/machine.h"

/* The bit of SIGSYS in a mask of the kernel, and the bytes of that. */
#define SIGSYS_BIT (UINT64_C(1) << (SIGSYS - 1))
#define MASK_SIZE  8
#define SIGNALS    64

/* glibc's bit of a thread that is cancelled, among flags that a cancellation point tests (nptl,
 * CANCELED_BITMASK). */
#define CANCELED 8

/*
 * Bytes of the smallest signal stack that the kernel takes, and of one on which frames of SIGSYS
 * have room below and above those of the program's signals.
 */
#define SMALLEST_STACK 2048
#define LARGE_STACK    32768

#define AUTODISARM UINT32_C(0x80000000) /* SS_AUTODISARM (include/uapi/linux/signal.h) */

#define FLAG_RESTORER UINT64_C(0x04000000) /* SA_RESTORER */

/* What is one for a thread, and for its child of vfork(). */
static _Thread_local struct {
	bool is_blocked; /* SIGSYS, as the program has it */
	bool is_pending; /* one has come meanwhile, with what is below */
	int32_t code;
	int32_t pid;
	uint32_t uid;
	union sigval value;
	bool is_at_point;    /* it makes a call at a cancellation point */
	uint32_t cancel_uid; /* whose signal it was that has cancelled it */
} fathom_trace_own_signals __attribute__((tls_model("initial-exec")));

/*
 * Whether the thread is being cancelled, so that fathom_trace_make_call() makes no call. A signal
 * may come at each of its instructions.
 */
__attribute__((visibility("hidden"))) _Thread_local volatile uint8_t fathom_trace_own_is_cancelled
	__attribute__((tls_model("initial-exec")));

extern const uint8_t fathom_trace_make_call_made[] __attribute__((visibility("hidden")));
extern const uint8_t fathom_trace_make_call_given_up[] __attribute__((visibility("hidden")));

/* What is one for the process. New threads have the kernel take the first member. */
__attribute__((visibility("hidden"))) struct {
	struct fathom_program_action
		own; /* the kernel's for SIGSYS: whose handler dispatches calls */
	struct fathom_program_actions kept;
} fathom_trace_own_actions;

/* Has argument @i of @args, a mask, be one without SIGSYS, which @copy has room for. */
static void clean_mask(uint64_t args[6], unsigned i, uint64_t *copy)
{
	if (!args[i] || !fathom_trace_read_memory(copy, args[i], MASK_SIZE) ||
	    !(*copy & SIGSYS_BIT))
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
	} else if (args[i] && fathom_trace_read_memory(pair, args[i], sizeof pair) && pair[0]) {
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

	if (args[1] && args[3] == MASK_SIZE &&
	    fathom_trace_read_memory(&copy, args[1], MASK_SIZE)) {
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
	if (was_blocked && old && fathom_trace_read_memory(&copy, old, MASK_SIZE)) {
		copy |= SIGSYS_BIT;
		(void)fathom_trace_write_memory(old, &copy, MASK_SIZE);
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
	    !fathom_trace_read_memory(&set, args[0], MASK_SIZE))
		return result;
	set |= SIGSYS_BIT;
	(void)fathom_trace_write_memory(args[0], &set, MASK_SIZE);
	return 0;
}

/* rt_sigtimedwait(set, info, timeout, size): SIGSYS may be here already. */
static long wait_for_signal(const uint64_t args[6])
{
	uint64_t set = 0;
	bool may_be_here;
	siginfo_t info;
	long result = -EINTR;

	may_be_here = args[3] == MASK_SIZE && fathom_trace_read_memory(&set, args[0], MASK_SIZE) &&
		      set & SIGSYS_BIT;
	if (!may_be_here || !fathom_trace_own_signals.is_pending)
		result = fathom_trace_make_call(SYS_rt_sigtimedwait, args);
	if (result != -EINTR || !may_be_here || !fathom_trace_own_signals.is_pending)
		return result;
	fathom_trace_own_signals.is_pending = false;
	info = pending();
	return args[1] && !fathom_trace_write_memory(args[1], &info, sizeof info) ? -EFAULT
										  : SIGSYS;
}

/* rt_sigaction(SIGSYS, action, old, size): the kernel keeps ours. */
static long change_own_action(const uint64_t args[6])
{
	struct fathom_program_action old = fathom_trace_own_actions.kept.program;
	struct fathom_program_action new;

	if (args[3] != MASK_SIZE)
		return -EINVAL;
	if (args[1] && !fathom_trace_read_memory(&new, args[1], sizeof new))
		return -EFAULT;
	if (args[1])
		fathom_trace_own_actions.kept.program = new;
	return args[2] && !fathom_trace_write_memory(args[2], &old, sizeof old) ? -EFAULT : 0;
}

/* The handler of SIGCANCEL. */
static void cancelled(int number, siginfo_t *info, void *context)
{
	const struct fathom_program_action action = fathom_trace_own_actions.kept.cancel;
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
	const uint64_t begin = (uintptr_t)fathom_trace_make_call;

	if (!fathom_trace_own_signals.is_at_point) {
		if (action.handler > (uintptr_t)SIG_IGN)
			((void (*)(int, siginfo_t *, void *))action.handler)(number, info, context);
		return;
	}
	fathom_trace_own_is_cancelled = 1;
	fathom_trace_own_signals.cancel_uid = info->si_uid;
	/* Behind the instruction the call has been made, and its result counts. */
	if ((uint64_t)r[REG_RIP] - begin < (uintptr_t)fathom_trace_make_call_made - begin)
		r[REG_RIP] = (greg_t)(uintptr_t)fathom_trace_make_call_given_up;
}

/* Replaces the handler of *@action, of SIGCANCEL, by ours, if it has one. */
static bool replace_cancel(struct fathom_program_action *action)
{
	if (action->handler <= (uintptr_t)SIG_IGN || action->handler == (uintptr_t)cancelled)
		return false;
	fathom_trace_own_actions.kept.cancel = *action;
	action->handler = (uintptr_t)cancelled;
	action->flags |= SA_SIGINFO;
	return true;
}

void fathom_program_signals_begin_point(const uint32_t *flags)
{
	fathom_trace_own_signals.is_at_point = true;
	atomic_signal_fence(memory_order_seq_cst);
	/* A signal that came before that has found the thread at no point, and was not acted on. */
	if (__atomic_load_n(flags, __ATOMIC_RELAXED) & CANCELED) {
		fathom_trace_own_signals.cancel_uid =
			(uint32_t)fathom_trace_call_kernel(SYS_getuid, 0, 0, 0, 0);
		fathom_trace_own_is_cancelled = 1;
	}
}

void fathom_program_signals_end_point(void)
{
	const uint64_t mask = UINT64_C(1) << (FATHOM_SIGCANCEL - 1);
	siginfo_t info;

	fathom_trace_own_signals.is_at_point = false;
	atomic_signal_fence(memory_order_seq_cst);
	if (!fathom_trace_own_is_cancelled)
		return;
	fathom_trace_own_is_cancelled = 0;
	__builtin_memset(&info, 0, sizeof info);
	info.si_signo = FATHOM_SIGCANCEL;
	info.si_code = SI_TKILL;
	info.si_pid = (int32_t)fathom_trace_call_kernel(SYS_getpid, 0, 0, 0, 0);
	info.si_uid = fathom_trace_own_signals.cancel_uid;
	(void)fathom_trace_call_kernel(SYS_rt_sigprocmask, SIG_BLOCK, (long)&mask, 0, MASK_SIZE);
	(void)fathom_trace_call_kernel(SYS_rt_tgsigqueueinfo, info.si_pid,
				       fathom_trace_call_kernel(SYS_gettid, 0, 0, 0, 0),
				       FATHOM_SIGCANCEL, (long)&info);
}

static void choose_stack(void);
static void note_action(int number, const struct fathom_program_action *action);

/* rt_sigaction(number, action, old, size) */
static long change_action(uint64_t args[6])
{
	const uint64_t number = args[0];
	const uint64_t bit = number - 1 < SIGNALS ? UINT64_C(1) << (number - 1) : 0;
	const uint64_t old = args[2];
	const bool was_masked =
		__atomic_load_n(&fathom_trace_own_actions.kept.masked, __ATOMIC_SEQ_CST) & bit;
	bool is_masked = was_masked;
	struct fathom_program_action new = { .handler = (uintptr_t)SIG_DFL };
	const struct fathom_program_action cancel = fathom_trace_own_actions.kept.cancel;
	struct fathom_program_action copy;
	long result;

	if (number == SIGSYS)
		return change_own_action(args);
	if (args[1] && args[3] == MASK_SIZE &&
	    fathom_trace_read_memory(&copy, args[1], sizeof copy)) {
		is_masked = copy.mask & SIGSYS_BIT;
		copy.mask &= ~SIGSYS_BIT;
		if (number == FATHOM_SIGCANCEL)
			(void)replace_cancel(&copy);
		new = copy;
		args[1] = (uintptr_t)&copy;
	}
	result = fathom_trace_make_call(SYS_rt_sigaction, args);
	if (result)
		return result;
	if (args[1]) {
		note_action((int)number, &new);
		choose_stack();
	}
	if (number == FATHOM_SIGCANCEL && old &&
	    fathom_trace_read_memory(&copy, old, sizeof copy) &&
	    copy.handler == (uintptr_t)cancelled)
		(void)fathom_trace_write_memory(old, &cancel, sizeof cancel);
	if (is_masked)
		__atomic_fetch_or(&fathom_trace_own_actions.kept.masked, bit, __ATOMIC_SEQ_CST);
	else
		__atomic_fetch_and(&fathom_trace_own_actions.kept.masked, ~bit, __ATOMIC_SEQ_CST);
	if (was_masked && old && fathom_trace_read_memory(&copy, old, sizeof copy)) {
		copy.mask |= SIGSYS_BIT;
		(void)fathom_trace_write_memory(old, &copy, sizeof copy);
	}
	return 0;
}

/* Has the kernel's action for SIGSYS be @action. */
static void set_action(const struct fathom_program_action *action)
{
	(void)fathom_trace_call_kernel(SYS_rt_sigaction, SIGSYS, (long)action, 0, MASK_SIZE);
}

static void set_own_action(void)
{
	struct fathom_program_action *own = &fathom_trace_own_actions.own;

	own->flags = (own->flags & ~(uint64_t)SA_ONSTACK) |
		     (fathom_trace_own_actions.kept.is_on_stack ? (uint64_t)SA_ONSTACK : 0);
	set_action(own);
}

/*
 * Has SIGSYS be taken on the program's signal stacks, where all its handlers are, as Go's: its
 * other stacks may have no room for the frame of a signal. While our handler makes a call, handlers
 * of the program come to the same stack, below: so all are to be large, and no handler is to expect
 * more than these.
 */
static void choose_stack(void)
{
	struct fathom_program_actions *kept = &fathom_trace_own_actions.kept;
	const bool wants = kept->stacks == FATHOM_PROGRAM_STACK_LARGE && !kept->plain;

	if (wants == (kept->is_on_stack != 0))
		return;
	kept->is_on_stack = wants;
	set_own_action();
}

/* Notes that a thread has signal stack @stack. */
static void note_stack(const stack_t *stack)
{
	if (!((uint32_t)stack->ss_flags & SS_DISABLE) && stack->ss_size)
		fathom_trace_own_actions.kept.stacks |= stack->ss_size >= LARGE_STACK
								? FATHOM_PROGRAM_STACK_LARGE
								: FATHOM_PROGRAM_STACK_SMALL;
}

/* Notes that @action is that of signal @number. */
static void note_action(int number, const struct fathom_program_action *action)
{
	const uint64_t bit = UINT64_C(1) << (number - 1);

	if (action->handler > (uintptr_t)SIG_IGN && !(action->flags & SA_ONSTACK))
		fathom_trace_own_actions.kept.plain |= bit;
	else
		fathom_trace_own_actions.kept.plain &= ~bit;
}

/* execve(): the new program inherits what the program has said of SIGSYS. */
static long execute(long number, const uint64_t args[6])
{
	const bool is_blocked = fathom_trace_own_signals.is_blocked;
	const bool is_ignored = fathom_trace_own_actions.kept.program.handler == (uintptr_t)SIG_IGN;
	const uint64_t mask = SIGSYS_BIT;
	long result;

	if (is_ignored)
		set_action(&fathom_trace_own_actions.kept.program);
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
	const struct fathom_program_action none = { .handler = (uintptr_t)SIG_DFL };

	set_action(&none);
	(void)fathom_trace_call_kernel(SYS_tgkill, fathom_trace_call_kernel(SYS_getpid, 0, 0, 0, 0),
				       fathom_trace_call_kernel(SYS_gettid, 0, 0, 0, 0), SIGSYS, 0);
}

void fathom_program_signals_deliver(int number, siginfo_t *info, void *context)
{
	const struct fathom_program_action action = fathom_trace_own_actions.kept.program;
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
		fathom_trace_own_actions.kept.program.handler = (uintptr_t)SIG_DFL;
	if (mask)
		(void)fathom_trace_call_kernel(SYS_rt_sigprocmask, SIG_BLOCK, (long)&mask,
					       (long)&mask, MASK_SIZE);
	((void (*)(int, siginfo_t *, void *))action.handler)(number, info, context);
	if (action.mask & ~SIGSYS_BIT)
		(void)fathom_trace_call_kernel(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0,
					       MASK_SIZE);
}

/* Makes no action of the program block SIGSYS while its handler runs, and that of SIGCANCEL ours.
 */
static void clean_actions(void)
{
	for (int i = 1; i <= SIGNALS; i++) {
		struct fathom_program_action action;
		bool is_masked;

		if (i == SIGSYS ||
		    fathom_trace_call_kernel(SYS_rt_sigaction, i, 0, (long)&action, MASK_SIZE))
			continue;
		note_action(i, &action);
		is_masked = action.mask & SIGSYS_BIT;
		action.mask &= ~SIGSYS_BIT;
		if (!(i == FATHOM_SIGCANCEL && replace_cancel(&action)) && !is_masked)
			continue;
		if (!fathom_trace_call_kernel(SYS_rt_sigaction, i, (long)&action, 0, MASK_SIZE) &&
		    is_masked)
			__atomic_fetch_or(&fathom_trace_own_actions.kept.masked,
					  UINT64_C(1) << (i - 1), __ATOMIC_SEQ_CST);
	}
}

/*
 * Returns what sigaltstack(2) tells of the stack that handlers of the thread of @u have: its frame
 * has what was set, which says nothing of a thread that has none, or that uses it.
 */
static stack_t told_stack(const ucontext_t *u)
{
	const uint64_t sp = (uint64_t)u->uc_mcontext.gregs[REG_RSP];
	const uint64_t low = (uintptr_t)u->uc_stack.ss_sp;
	const bool is_automatic = (uint32_t)u->uc_stack.ss_flags & AUTODISARM;
	stack_t told = u->uc_stack;

	told.ss_flags = is_automatic ? (int)AUTODISARM : 0;
	if (!told.ss_size)
		told.ss_flags |= SS_DISABLE;
	else if (!is_automatic && sp > low && sp - low <= told.ss_size)
		told.ss_flags |= SS_ONSTACK;
	return told;
}

/* Returns what sigaltstack(2) says of @stack, for a thread whose stack is @old. */
static long check_stack(const stack_t *stack, const stack_t *old)
{
	const uint32_t mode = (uint32_t)stack->ss_flags & ~AUTODISARM;

	if (old->ss_flags & SS_ONSTACK)
		return -EPERM;
	if (mode != 0 && mode != SS_ONSTACK && mode != SS_DISABLE)
		return -EINVAL;
	return mode != SS_DISABLE && stack->ss_size < SMALLEST_STACK ? -ENOMEM : 0;
}

/*
 * sigaltstack(stack, old): the kernel puts back what is in @u, and what there is now may be
 * disarmed while the handler runs (SS_AUTODISARM). On that stack itself, nothing may be set.
 */
static long change_stack(uint64_t args[6], ucontext_t *u)
{
	const uint64_t here = (uintptr_t)__builtin_frame_address(0);
	const bool is_here = here - (uintptr_t)u->uc_stack.ss_sp < u->uc_stack.ss_size;
	const stack_t old = told_stack(u);
	const uint64_t to = args[1];
	stack_t stack;
	long result = 0;

	args[1] = 0;
	if (args[0] && !fathom_trace_read_memory(&stack, args[0], sizeof stack))
		return -EFAULT;
	if (args[0])
		result = is_here ? check_stack(&stack, &old)
				 : fathom_trace_make_call(SYS_sigaltstack, args);
	if (result)
		return result;
	if (args[0]) {
		u->uc_stack = stack;
		note_stack(&stack);
		choose_stack();
	}
	return to && !fathom_trace_write_memory(to, &old, sizeof old) ? -EFAULT : 0;
}

bool fathom_program_signals_make(long number, uint64_t args[6], ucontext_t *u, long *ret_result)
{
	switch (number) {
	case SYS_rt_sigprocmask:
		*ret_result = change_mask(args, u);
		return true;
	case SYS_rt_sigaction:
		*ret_result = change_action(args);
		return true;
	case SYS_rt_sigpending:
		*ret_result = tell_pending(args);
		return true;
	case SYS_rt_sigtimedwait:
		*ret_result = wait_for_signal(args);
		return true;
	case SYS_rt_sigsuspend:
		*ret_result = call_with_mask(number, args, 0, false);
		return true;
	case SYS_ppoll:
		*ret_result = call_with_mask(number, args, 3, false);
		return true;
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
		*ret_result = call_with_mask(number, args, 4, false);
		return true;
	case SYS_pselect6:
	case SYS_io_pgetevents:
		*ret_result = call_with_mask(number, args, 5, true);
		return true;
	case SYS_execve:
	case SYS_execveat:
		*ret_result = execute(number, args);
		return true;
	case SYS_sigaltstack:
		*ret_result = change_stack(args, u);
		return true;
	default:
		return false;
	}
}

void fathom_program_signals_begin(void (*handler)(int number, siginfo_t *info, void *context),
				  void (*restorer)(void), bool is_alone)
{
	const uint64_t sigsys = SIGSYS_BIT;
	struct fathom_program_action action = { .handler = (uintptr_t)SIG_DFL };
	stack_t stack;
	uint64_t mask = 0;

	fathom_trace_own_actions.own =
		(struct fathom_program_action){ .handler = (uintptr_t)handler,
						.flags = SA_SIGINFO | SA_NODEFER | SA_RESTART |
							 FLAG_RESTORER,
						.restorer = (uintptr_t)restorer };
	(void)fathom_trace_call_kernel(SYS_rt_sigaction, SIGSYS, 0, (long)&action, MASK_SIZE);
	/* The handler may be there since the last time. */
	if (action.handler != (uintptr_t)handler)
		fathom_trace_own_actions.kept.program = action;
	fathom_trace_own_actions.kept.plain = 0;
	fathom_trace_own_actions.kept.is_on_stack = 0;
	fathom_trace_own_actions.kept.stacks = is_alone ? 0 : FATHOM_PROGRAM_STACK_SMALL;
	if (!fathom_trace_call_kernel(SYS_sigaltstack, 0, (long)&stack, 0, 0))
		note_stack(&stack);
	clean_actions();
	set_own_action();
	choose_stack();
	(void)fathom_trace_call_kernel(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&sigsys, (long)&mask,
				       MASK_SIZE);
	fathom_trace_own_signals.is_blocked = mask & SIGSYS_BIT;
}

bool fathom_program_signals_have_action(void)
{
	return fathom_trace_own_actions.kept.program.handler != (uintptr_t)SIG_DFL;
}

void fathom_program_signals_leave(ucontext_t *u, bool is_all)
{
	const uint64_t mask = SIGSYS_BIT;
	uint64_t after;

	__builtin_memcpy(&after, &u->uc_sigmask, MASK_SIZE);
	if (fathom_trace_own_signals.is_blocked || !is_all)
		after |= SIGSYS_BIT;
	__builtin_memcpy(&u->uc_sigmask, &after, MASK_SIZE);
	/* From now on the kernel keeps it until the program does not block it. */
	if (fathom_trace_own_signals.is_pending) {
		(void)fathom_trace_call_kernel(SYS_rt_sigprocmask, SIG_BLOCK, (long)&mask, 0,
					       MASK_SIZE);
		send_pending();
	}
	if (is_all)
		set_action(&fathom_trace_own_actions.kept.program);
}

bool fathom_program_signals_are_blocked(void)
{
	return fathom_trace_own_signals.is_blocked;
}

void fathom_program_signals_block(bool is_blocked)
{
	fathom_trace_own_signals.is_blocked = is_blocked;
}

struct fathom_program_actions fathom_program_signals_save(void)
{
	return fathom_trace_own_actions.kept;
}

void fathom_program_signals_restore(const struct fathom_program_actions *kept)
{
	fathom_trace_own_actions.kept = *kept;
}

void fathom_program_signals_begin_child(bool has_no_actions)
{
	fathom_trace_own_signals.is_pending = false;
	if (!has_no_actions)
		return;
	fathom_trace_own_actions.kept = (struct fathom_program_actions){ .masked = 0 };
	set_own_action();
}

void fathom_program_signals_return(uint64_t sp)
{
	const uint64_t at = sp + offsetof(ucontext_t, uc_sigmask);
	uint64_t mask;

	if (!fathom_trace_read_memory(&mask, at, MASK_SIZE) || !(mask & SIGSYS_BIT))
		return;
	mask &= ~SIGSYS_BIT;
	if (fathom_trace_write_memory(at, &mask, MASK_SIZE))
		fathom_trace_own_signals.is_blocked = true;
}
