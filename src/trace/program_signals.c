/* SPDX-License-Identifier: MIT */
#include "trace/program_signals.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "trace/linked.h"
#include "trace/machine.h"
#include "trace/signal_frame.h"

#define MASK_SIZE 8

#define FLAG_RESTORER UINT64_C(0x04000000) /* SA_RESTORER */
/* Flags of an action that the kernel keeps, and those that are not only its handler's. */
#define FLAGS (UINT64_C(0xdc000807) | FLAG_RESTORER)
#define FLAGS_OF_KERNEL \
	(SA_NOCLDSTOP | SA_NOCLDWAIT | SA_RESTART | (uint64_t)(uint32_t)SA_RESETHAND)

/* The signal actions of the process. New threads give the kernel the first member. */
__attribute__((visibility("hidden"))) struct {
	struct fathom_program_action
		own; /* the kernel's for SIGSYS: whose handler dispatches calls */
	struct fathom_program_action other; /* for all that the program handles, but its flags */
	struct fathom_program_actions kept;
	atomic_flag is_locked; /* while kept, and the kernel's actions, are read or changed */
} fathom_trace_self_actions;

static void lock(void)
{
	while (atomic_flag_test_and_set_explicit(&fathom_trace_self_actions.is_locked,
						 memory_order_acquire))
		;
}

static void unlock(void)
{
	atomic_flag_clear_explicit(&fathom_trace_self_actions.is_locked, memory_order_release);
}

static uint64_t sigsys(void)
{
	return fathom_signal_bit(SIGSYS);
}

/* Bits that no mask has. */
static uint64_t unblockable(void)
{
	return fathom_signal_bit(SIGKILL) | fathom_signal_bit(SIGSTOP);
}

static long own_pid(void)
{
	return fathom_trace_syscall_kernel(SYS_getpid, 0, 0, 0, 0);
}

static long own_tid(void)
{
	return fathom_trace_syscall_kernel(SYS_gettid, 0, 0, 0, 0);
}

/* Replaces mask argument @i of @args by a copy without SIGSYS in @copy. */
static void clean_mask(uint64_t args[6], unsigned i, uint64_t *copy)
{
	if (!args[i] || !fathom_trace_read_memory(copy, args[i], MASK_SIZE) || !(*copy & sigsys()))
		return;
	*copy &= ~sigsys();
	args[i] = (uintptr_t)copy;
}

void fathom_program_signals_clean(long number, uint64_t args[6], uint64_t copies[3])
{
	uint64_t inner[6] = { 0 };

	switch (number) {
	case SYS_rt_sigsuspend:
		clean_mask(args, 0, copies);
		break;
	case SYS_ppoll:
		clean_mask(args, 3, copies);
		break;
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
		clean_mask(args, 4, copies);
		break;
	case SYS_pselect6:
	case SYS_io_pgetevents:
		if (!args[5] ||
		    !fathom_trace_read_memory(copies + 1, args[5], 2 * sizeof *copies) ||
		    !copies[1])
			break;
		inner[0] = copies[1];
		clean_mask(inner, 0, copies);
		copies[1] = inner[0];
		args[5] = (uintptr_t)(copies + 1);
		break;
	default:
		break;
	}
}

void fathom_program_signals_note_wait(struct fathom_program_signals *signals, long number,
				      const uint64_t args[6])
{
	uint64_t at = 0;

	switch (number) {
	case SYS_rt_sigsuspend:
		at = args[0];
		break;
	case SYS_ppoll:
		at = args[3];
		break;
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
		at = args[4];
		break;
	case SYS_pselect6:
	case SYS_io_pgetevents:
		if (!args[5] || !fathom_trace_read_memory(&at, args[5], sizeof at))
			return;
		break;
	default:
		break;
	}
	signals->has_waited =
		at && fathom_trace_read_memory(&signals->waited, at, sizeof signals->waited);
}

void fathom_program_signals_keep(struct fathom_program_signals *signals, const siginfo_t *info)
{
	signals->is_pending = true;
	signals->code = info->si_code;
	signals->pid = info->si_pid;
	signals->uid = info->si_uid;
	signals->value = info->si_value;
}

bool fathom_program_signals_have_pending(const struct fathom_program_signals *signals)
{
	return signals->is_pending && !signals->is_blocked;
}

/* Returns the SIGSYS that was kept, which is kept no more. */
static siginfo_t take_pending(struct fathom_program_signals *signals)
{
	siginfo_t info;

	__builtin_memset(&info, 0, sizeof info);
	info.si_signo = SIGSYS;
	info.si_code = signals->code;
	info.si_pid = signals->pid;
	info.si_uid = signals->uid;
	info.si_value = signals->value;
	signals->is_pending = false;
	return info;
}

/* Makes the kernel send @info to the calling thread. */
static void send(const siginfo_t *info)
{
	(void)fathom_trace_syscall_kernel(SYS_rt_tgsigqueueinfo, own_pid(), own_tid(),
					  info->si_signo, (long)info);
}

void fathom_program_signals_send_pending(struct fathom_program_signals *signals)
{
	const uint64_t mask = sigsys();
	siginfo_t info;

	if (!signals->is_pending)
		return;
	info = take_pending(signals);
	(void)fathom_trace_syscall_kernel(SYS_rt_sigprocmask, SIG_BLOCK, (long)&mask, 0, MASK_SIZE);
	send(&info);
}

/*
 * rt_sigprocmask(how, set, old, size): the mask that our handler returns to is in @u. The kernel is
 * asked, as a filter may judge the call, but to change nothing.
 */
static long change_mask(const uint64_t args[6], struct fathom_program_signals *signals,
			ucontext_t *u)
{
	const uint64_t was = fathom_signal_mask(u) | (signals->is_blocked ? sigsys() : 0);
	const int how = (int)args[0];
	uint64_t set = 0;
	uint64_t given, mask;
	long result;

	if (args[1] && args[3] == MASK_SIZE && !fathom_trace_read_memory(&set, args[1], MASK_SIZE))
		return -EFAULT;
	given = how == SIG_BLOCK ? set & ~sigsys() : how == SIG_UNBLOCK ? 0 : ~sigsys();
	mask = how == SIG_BLOCK ? was | set : how == SIG_UNBLOCK ? was & ~set : set;
	result = fathom_trace_make_call(
		SYS_rt_sigprocmask,
		(const uint64_t[6]){ args[0], args[1] ? (uintptr_t)&given : 0, 0, args[3] });
	if (result)
		return result;
	if (args[1]) {
		mask &= ~unblockable();
		signals->is_blocked = mask & sigsys();
		fathom_signal_set_mask(u, mask & ~sigsys());
	}
	return args[2] && !fathom_trace_write_memory(args[2], &was, MASK_SIZE) ? -EFAULT : 0;
}

/* rt_sigpending(set, size): the kernel blocks more than the program. */
static long tell_pending(const uint64_t args[6], const struct fathom_program_signals *signals,
			 const ucontext_t *u)
{
	const long result = fathom_trace_make_call(SYS_rt_sigpending, args);
	uint64_t set = 0;

	if (result || args[1] != MASK_SIZE || !fathom_trace_read_memory(&set, args[0], MASK_SIZE))
		return result;
	set &= fathom_signal_mask(u);
	if (signals->is_pending)
		set |= sigsys();
	(void)fathom_trace_write_memory(args[0], &set, MASK_SIZE);
	return 0;
}

/* rt_sigtimedwait(set, info, timeout, size): SIGSYS may be here already. */
static bool take_waited(const uint64_t args[6], struct fathom_program_signals *signals,
			long *ret_result)
{
	uint64_t set = 0;
	siginfo_t info;

	if (!signals->is_pending || args[3] != MASK_SIZE ||
	    !fathom_trace_read_memory(&set, args[0], MASK_SIZE) || !(set & sigsys()))
		return false;
	info = take_pending(signals);
	*ret_result = args[1] && !fathom_trace_write_memory(args[1], &info, sizeof info) ? -EFAULT
											 : SIGSYS;
	return true;
}

/* Returns the kernel's action where @action is the program's. */
static struct fathom_program_action replaced(const struct fathom_program_action *action)
{
	struct fathom_program_action own = fathom_trace_self_actions.other;

	if (action->handler <= (uintptr_t)SIG_IGN || action->handler == own.handler)
		return *action;
	own.flags |= action->flags & FLAGS_OF_KERNEL;
	return own;
}

/* Returns what the program has said, where @kernels is the kernel's, of signal @number. */
static struct fathom_program_action said(const struct fathom_program_action *kernels, int number)
{
	struct fathom_program_action action = fathom_trace_self_actions.kept.actions[number - 1];

	/* The kernel has reset its own (SA_RESETHAND), or it was never ours. */
	if (kernels->handler != fathom_trace_self_actions.other.handler) {
		if (kernels->restorer != fathom_trace_self_actions.other.restorer)
			return *kernels;
		action.handler = kernels->handler;
	}
	return action;
}

/* Keeps @action of signal @number, if the kernel does not. What was kept goes to @lent, or NULL. */
static void keep(const struct fathom_program_action *action, int number,
		 struct fathom_program_lent *lent)
{
	struct fathom_program_action *kept = &fathom_trace_self_actions.kept.actions[number - 1];
	const uint64_t bit = fathom_signal_bit(number);

	/* An action that is ours was found behind our back, when calls were not dispatched. */
	if (action->handler == fathom_trace_self_actions.other.handler ||
	    (action->handler <= (uintptr_t)SIG_IGN && number != SIGSYS))
		return;
	if (lent && !(lent->changed & bit)) {
		lent->changed |= bit;
		lent->before.actions[number - 1] = *kept;
	}
	*kept = *action;
	kept->flags &= FLAGS;
	kept->mask &= ~unblockable();
}

/* rt_sigaction(number, action, old, size) */
static long change_action(const uint64_t args[6], struct fathom_program_lent *lent)
{
	const int number = (int)args[0];
	struct fathom_program_action new, given, old;
	uint64_t call[6] = { args[0], 0, 0, args[3] };
	long result;

	if (args[1] && args[3] == MASK_SIZE && !fathom_trace_read_memory(&new, args[1], sizeof new))
		return -EFAULT;
	if (number < 1 || number > FATHOM_PROGRAM_SIGNALS || args[3] != MASK_SIZE)
		return fathom_trace_make_call(SYS_rt_sigaction, call);
	lock();
	call[2] = (uintptr_t)&old;
	if (args[1] && number != SIGSYS) {
		given = replaced(&new);
		call[1] = (uintptr_t)&given;
	}
	result = fathom_trace_make_call(SYS_rt_sigaction, call);
	if (result) {
		unlock();
		return result;
	}
	old = number == SIGSYS ? fathom_trace_self_actions.kept.actions[SIGSYS - 1]
			       : said(&old, number);
	if (args[1])
		keep(&new, number, lent);
	unlock();
	return args[2] && !fathom_trace_write_memory(args[2], &old, sizeof old) ? -EFAULT : 0;
}

/* sigaltstack(stack, old): the kernel's is ours. */
static long change_stack(const uint64_t args[6], struct fathom_program_signals *signals,
			 const ucontext_t *u)
{
	const uint64_t none[6] = { 0 };
	stack_t stack, old;
	long result = fathom_trace_make_call(SYS_sigaltstack, none);

	if (result)
		return result;
	if (args[0] && !fathom_trace_read_memory(&stack, args[0], sizeof stack))
		return -EFAULT;
	result = fathom_signal_stack_change(signals, (uint64_t)u->uc_mcontext.gregs[REG_RSP],
					    args[0] ? &stack : NULL, &old);
	if (result)
		return result;
	return args[1] && !fathom_trace_write_memory(args[1], &old, sizeof old) ? -EFAULT : 0;
}

bool fathom_program_signals_make(long number, const uint64_t args[6],
				 struct fathom_dispatch_task *task, ucontext_t *u, long *ret_result)
{
	switch (number) {
	case SYS_rt_sigprocmask:
		*ret_result = change_mask(args, &task->signals, u);
		return true;
	case SYS_rt_sigaction:
		*ret_result = change_action(args, task->lent);
		return true;
	case SYS_rt_sigpending:
		*ret_result = tell_pending(args, &task->signals, u);
		return true;
	case SYS_rt_sigtimedwait:
		return take_waited(args, &task->signals, ret_result);
	case SYS_sigaltstack:
		*ret_result = change_stack(args, &task->signals, u);
		return true;
	default:
		return false;
	}
}

/* Sets the kernel's action for @number to @action. */
static void set_action(int number, const struct fathom_program_action *action)
{
	(void)fathom_trace_syscall_kernel(SYS_rt_sigaction, number, (long)action, 0, MASK_SIZE);
}

/* Ends the program, as signal @number does by default, when our handler returns to @u. */
static void die(ucontext_t *u, int number)
{
	const struct fathom_program_action none = { .handler = (uintptr_t)SIG_DFL };

	set_action(number, &none);
	fathom_signal_set_mask(u, fathom_signal_mask(u) & ~fathom_signal_bit(number));
	(void)fathom_trace_syscall_kernel(SYS_tgkill, own_pid(), own_tid(), number, 0);
}

/* There is no room for the frame of signal @number: SIGSEGV comes, whose handler may have some. */
static void overflow(struct fathom_dispatch_task *task, ucontext_t *u, int number)
{
	siginfo_t info;

	if (number == SIGSEGV) {
		die(u, SIGSEGV);
		return;
	}
	__builtin_memset(&info, 0, sizeof info);
	info.si_signo = SIGSEGV;
	info.si_code = SI_KERNEL;
	fathom_program_signals_deliver(task, u, &info, true);
}

/* Calls the handler of @action where the kernel has put the frame of @u: in its place. */
static void call_handler(const struct fathom_program_action *action, const siginfo_t *info,
			 ucontext_t *u)
{
	const uint64_t all = UINT64_MAX;
	uint64_t mask = fathom_signal_mask(u) | action->mask;

	if (!(action->flags & SA_NODEFER))
		mask |= fathom_signal_bit(info->si_signo);
	if (fathom_trace_may_probe())
		(void)fathom_trace_syscall_kernel(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0,
						  MASK_SIZE);
	((fathom_signal_handler)action->handler)(info->si_signo, (siginfo_t *)(uintptr_t)info, u);
	if (fathom_trace_may_probe())
		(void)fathom_trace_syscall_kernel(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, 0,
						  MASK_SIZE);
}

/* Takes what the program has said of signal @number, which has come. */
static struct fathom_program_action take_action(int number)
{
	struct fathom_program_action *kept = &fathom_trace_self_actions.kept.actions[number - 1];
	struct fathom_program_action action;

	lock();
	action = *kept;
	/* Of others the kernel knows. */
	if (number == SIGSYS && action.flags & (uint64_t)(uint32_t)SA_RESETHAND &&
	    action.handler > (uintptr_t)SIG_IGN)
		kept->handler = (uintptr_t)SIG_DFL;
	unlock();
	return action;
}

void fathom_program_signals_deliver(struct fathom_dispatch_task *task, ucontext_t *u,
				    const siginfo_t *info, bool is_forced)
{
	const int number = info->si_signo;
	const bool is_blocked = number == SIGSYS
					? task && task->signals.is_blocked
					: fathom_signal_mask(u) & fathom_signal_bit(number);
	struct fathom_program_action action;

	if (number == SIGSYS && is_blocked && !is_forced) {
		fathom_program_signals_keep(&task->signals, info);
		return;
	}
	action = take_action(number);
	if (action.handler == (uintptr_t)SIG_IGN && !is_forced)
		return;
	if (action.handler <= (uintptr_t)SIG_IGN || (is_blocked && is_forced)) {
		die(u, number);
		return;
	}
	if (!task)
		call_handler(&action, info, u);
	else if (!fathom_signal_frame_enter(&task->signals, u, info, &action))
		overflow(task, u, number);
}

void fathom_program_signals_deliver_pending(struct fathom_dispatch_task *task, ucontext_t *u)
{
	const siginfo_t info = take_pending(&task->signals);

	fathom_program_signals_deliver(task, u, &info, false);
}

void fathom_program_signals_begin(fathom_signal_handler handler, fathom_signal_handler others,
				  void (*restorer)(void))
{
	const uint64_t flags = SA_SIGINFO | SA_ONSTACK | FLAG_RESTORER;
	struct fathom_program_action action;

	/* Filters of the program have SIGSYS come while a call of its is made. */
	fathom_trace_self_actions.own =
		(struct fathom_program_action){ .handler = (uintptr_t)handler,
						.flags = flags | SA_NODEFER | SA_RESTART,
						.restorer = (uintptr_t)restorer,
						.mask = ~sigsys() };
	fathom_trace_self_actions.other =
		(struct fathom_program_action){ .handler = (uintptr_t)others,
						.flags = flags,
						.restorer = (uintptr_t)restorer,
						.mask = UINT64_MAX };
	for (int i = 1; i <= FATHOM_PROGRAM_SIGNALS; i++) {
		const struct fathom_program_action *own =
			i == SIGSYS ? &fathom_trace_self_actions.own
				    : &fathom_trace_self_actions.other;

		/* Ours may be there since the last time. */
		if (fathom_trace_syscall_kernel(SYS_rt_sigaction, i, 0, (long)&action, MASK_SIZE) ||
		    action.handler == own->handler)
			continue;
		fathom_trace_self_actions.kept.actions[i - 1] = action;
		if (i != SIGSYS && action.handler > (uintptr_t)SIG_IGN) {
			action = replaced(&action);
			set_action(i, &action);
		}
	}
	set_action(SIGSYS, &fathom_trace_self_actions.own);
}

void fathom_program_signals_end(void)
{
	struct fathom_program_action action;

	lock();
	for (int i = 1; i <= FATHOM_PROGRAM_SIGNALS; i++)
		if (i != SIGSYS &&
		    !fathom_trace_syscall_kernel(SYS_rt_sigaction, i, 0, (long)&action,
						 MASK_SIZE) &&
		    action.handler == fathom_trace_self_actions.other.handler)
			set_action(i, &fathom_trace_self_actions.kept.actions[i - 1]);
	unlock();
}

bool fathom_program_signals_have_action(void)
{
	return fathom_trace_self_actions.kept.actions[SIGSYS - 1].handler != (uintptr_t)SIG_DFL;
}

void fathom_program_signals_execute(void)
{
	const struct fathom_program_action *kept =
		&fathom_trace_self_actions.kept.actions[SIGSYS - 1];

	if (kept->handler == (uintptr_t)SIG_IGN)
		set_action(SIGSYS, kept);
}

void fathom_program_signals_not_executed(void)
{
	set_action(SIGSYS, &fathom_trace_self_actions.own);
}

void fathom_program_signals_leave(struct fathom_program_signals *signals, ucontext_t *u,
				  bool is_all)
{
	uint64_t mask = fathom_signal_mask(u);

	if (signals->is_blocked || !is_all)
		mask |= sigsys();
	fathom_signal_set_mask(u, mask);
	/* From now on the kernel keeps it until the program does not block it. */
	fathom_program_signals_send_pending(signals);
	if (is_all)
		set_action(SIGSYS, &fathom_trace_self_actions.kept.actions[SIGSYS - 1]);
}

void fathom_program_signals_restore(const struct fathom_program_lent *lent)
{
	lock();
	for (int i = 1; i <= FATHOM_PROGRAM_SIGNALS; i++)
		if (lent->changed & fathom_signal_bit(i))
			fathom_trace_self_actions.kept.actions[i - 1] = lent->before.actions[i - 1];
	unlock();
}

void fathom_program_signals_clear(struct fathom_program_lent *lent)
{
	const struct fathom_program_action none = { .handler = (uintptr_t)SIG_DFL };

	lock();
	keep(&none, SIGSYS, lent);
	unlock();
}

void fathom_program_signals_begin_child(struct fathom_program_signals *signals, bool has_no_actions)
{
	signals->is_pending = false;
	/* Another thread of the parent may have had it. */
	unlock();
	if (!has_no_actions)
		return;
	fathom_program_signals_clear(NULL);
	set_action(SIGSYS, &fathom_trace_self_actions.own);
}
