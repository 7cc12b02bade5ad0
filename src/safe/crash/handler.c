/* SPDX-License-Identifier: MIT */
/*
 * The crash handler: one thread at a time reports, then the signal goes where it would have gone.
 *
 * The kernel calls it with all signals blocked but those that it handles itself: no other handler
 * runs meanwhile, and a crash inside comes here, too.
 */
#define _GNU_SOURCE
#include "safe/crash/state.h"

#include <errno.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "safe/base/own_thread.h"
#include "safe/crash/cause.h"
#include "safe/crash/handler_frame.h"
#include "safe/crash/report.h"
#include "safe/crash/switch_stack.h"
#include "safe/self/own_context.h"

struct fathom_crash_state fathom_crash_state;

/* How long a thread waits for the report of another: so many times so long. */
#define WAITS   500
#define WAIT_NS 10000000

/* Most bytes of the kernel's struct sigaction on any processor. */
#define ACTION_SIZE 64

/* Whose turn it is --------------------------------------------------------------------------- */

enum turn {
	TURN_OURS,
	TURN_NESTED, /* this thread has crashed in its own report */
	TURN_MISSED  /* another thread reports and has not come to an end within the bound */
};

/*
 * Returns whether the thread that has the turn cannot give it back: it has ended, or was that of a
 * child of vfork(), which shares this memory.
 */
static bool is_stale(uint64_t turn)
{
	const long tid = (long)(uint32_t)turn;

	if (turn & TURN_DONE)
		return fathom_own_thread_is_gone((int32_t)tid);
	return fathom_sys(SYS_tkill, tid, 0, 0, 0, 0, 0) == -ESRCH;
}

static void pause_for(long nanoseconds)
{
	/* struct timespec of nanosleep(2) */
	const long wait[2] = { 0, nanoseconds };

	(void)fathom_sys(SYS_nanosleep, (long)(uintptr_t)wait, 0, 0, 0, 0, 0);
}

/* Takes the turn. Waits for another thread that has it. */
static enum turn take_turn(_Atomic uint64_t *turn)
{
	const uint32_t tid = (uint32_t)fathom_own_tid();

	for (int i = 0; i <= WAITS; i++) {
		uint64_t now = atomic_load(turn);

		if ((uint32_t)now == tid)
			return TURN_NESTED;
		if (now && !is_stale(now))
			pause_for(WAIT_NS);
		else if (atomic_compare_exchange_strong(turn, &now, tid))
			return TURN_OURS;
	}
	return TURN_MISSED;
}

/* After the report ----------------------------------------------------------------------------- */

/* The kernel's set of signals is the first 8 bytes of the C library's. */
static uint64_t read_set(const sigset_t *set)
{
	uint64_t bits;

	memcpy(&bits, set, sizeof bits);
	return bits;
}

/* Returns whether the instruction will raise the signal once more if nothing is done. */
static bool comes_again(int number, const siginfo_t *info)
{
	return info->si_code > 0 &&
	       (number == SIGSEGV || number == SIGBUS || number == SIGILL || number == SIGFPE);
}

/*
 * Takes the default action: sends the signal once more, with all that is known of it, to be
 * delivered where this handler returns to. So the core has the registers of the crash, and no
 * instruction runs again.
 */
static void end_by(int number, siginfo_t *info, void *context)
{
	/* All zeros: SIG_DFL, no flags, an empty set, in whatever order a processor has them. */
	static const uint64_t defaults[ACTION_SIZE / 8];
	ucontext_t *c = context;
	const uint64_t mask = read_set(&c->uc_sigmask) & ~fathom_signal_bit(number);
	const bool is_init = fathom_own_pid() == 1;
	long err;

	(void)fathom_sys(SYS_rt_sigaction, number, (long)(uintptr_t)defaults, 0, FATHOM_SIGNAL_SET,
			 0, 0);
	(void)fathom_signal_mask(SIG_BLOCK, fathom_signal_bit(number));
	/* Not blocked where it returns to: the thread may be in sigsuspend(). */
	memcpy(&c->uc_sigmask, &mask, sizeof mask);
	err = fathom_sys(SYS_rt_tgsigqueueinfo, fathom_own_pid(), fathom_own_tid(), number,
			 (long)(uintptr_t)info, 0, 0);
	if (err)
		err = fathom_sys(SYS_tgkill, fathom_own_pid(), fathom_own_tid(), number, 0, 0, 0);
	/* The first process of a PID namespace dies by faults only. */
	if ((err || is_init) && !comes_again(number, info))
		(void)fathom_sys(SYS_exit_group, 128 + number, 0, 0, 0, 0, 0);
}

/* Returns whether a handler was there before that is still to be called. */
static bool has_earlier(const struct fathom_crash *c, int number)
{
	const struct sigaction *old = &c->old[number];
	const bool is_handler = old->sa_flags & SA_SIGINFO ||
				(old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN);

	return is_handler && !(atomic_load(&c->spent) >> number & 1);
}

/* As has_earlier(), once only for a handler that is to be called once. */
static bool take_earlier(struct fathom_crash *c, int number)
{
	const uint32_t bit = UINT32_C(1) << number;

	return has_earlier(c, number) && (!((unsigned)c->old[number].sa_flags & SA_RESETHAND) ||
					  !(atomic_fetch_or(&c->spent, bit) & bit));
}

/* Calls the handler that was there before as the kernel would; returns false if it would not. */
static bool chain(struct fathom_crash *c, int number, siginfo_t *info, void *context)
{
	const struct sigaction *old = &c->old[number];
	const ucontext_t *u = context;
	uint64_t mask = read_set(&u->uc_sigmask) | read_set(&old->sa_mask);
	enum fathom_frame_move moved = FATHOM_FRAME_STAYS;

	if (!take_earlier(c, number))
		return false;
	if (!(old->sa_flags & SA_NODEFER))
		mask |= fathom_signal_bit(number);
	if (!(old->sa_flags & SA_ONSTACK))
		moved = fathom_handler_frame_move(number, info, context,
						  (uintptr_t)old->sa_sigaction, mask);
	if (moved != FATHOM_FRAME_STAYS)
		return moved == FATHOM_FRAME_MOVED;
	(void)fathom_signal_mask(SIG_SETMASK, mask);
	if (old->sa_flags & SA_SIGINFO)
		old->sa_sigaction(number, info, context);
	else
		old->sa_handler(number);
	return true;
}

/* Returns whether the same has happened before, or too much has: then nothing is reported. */
static bool is_repeated(struct fathom_crash *c, const siginfo_t *info, const void *context)
{
	struct fathom_registers r;
	bool is_same;

	fathom_own_context(context, &r);
	is_same = c->n_reports && r.machine && r.pc == c->last_pc &&
		  (uintptr_t)info->si_addr == c->last_address;
	c->last_pc = r.pc;
	c->last_address = (uintptr_t)info->si_addr;
	if (is_same || c->n_reports >= FATHOM_MAX_CRASH_REPORTS)
		return true;
	c->n_reports++;
	return false;
}

/* Reports, and gives the turn back if the program may go on: nobody waits for its own handlers. */
static void report(struct fathom_crash_event *e, siginfo_t *info, void *context)
{
	struct fathom_crash *c = e->crash;
	const bool may_go_on = has_earlier(c, e->number);

	if (!may_go_on || !is_repeated(c, info, context))
		fathom_switch_stack(fathom_crash_report, e, c->stack + FATHOM_CRASH_STACK);
	atomic_store(c->turn, may_go_on ? 0 : (uint32_t)fathom_own_tid() | TURN_DONE);
}

void fathom_crash_handle(int number, siginfo_t *info, void *context)
{
	struct fathom_crash *c = atomic_load(&fathom_crash_state.prepared);
	struct fathom_crash_event e = { c, number, info, context };

	if (!c || number <= 0 || number >= FATHOM_CRASH_SIGNALS) {
		end_by(number, info, context);
		return;
	}
	if (number == SIGBUS && fathom_cause_is_fault(number, info->si_code) &&
	    c->handle_sigbus(c->session, info->si_addr))
		return;
	/* The kernel ignores no fault. */
	if (c->old[number].sa_handler == SIG_IGN && !(c->old[number].sa_flags & SA_SIGINFO) &&
	    info->si_code <= 0)
		return;
	switch (take_turn(c->turn)) {
	case TURN_OURS:
		report(&e, info, context);
		break;
	case TURN_NESTED:
		fathom_switch_stack(fathom_crash_report_nested, &e,
				    c->stack + FATHOM_CRASH_STACK / 2);
		end_by(number, info, context);
		return;
	case TURN_MISSED:
		break;
	}
	if (!chain(c, number, info, context))
		end_by(number, info, context);
}
