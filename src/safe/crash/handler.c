/* SPDX-License-Identifier: MIT */
/*
 * The crash handler: one thread reports, then the signal goes where it would have gone.
 *
 * The kernel calls it with all signals blocked but those that it handles itself: no other handler
 * runs meanwhile, and a crash inside comes here, too.
 */
#define _GNU_SOURCE
#include "safe/crash/state.h"

#include <errno.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "safe/base/sys.h"
#include "safe/crash/cause.h"
#include "safe/crash/report.h"
#include "safe/crash/switch_stack.h"
#include "safe/self/own_context.h"

struct fathom_crash_state fathom_crash_state;

/* How long a thread waits for the report of another: so many times so long. */
#define WAITS   500
#define WAIT_NS 10000000

/* Bytes of the kernel's set of signals. */
#define SET_SIZE 8

/* Most bytes of the kernel's struct sigaction on any processor. */
#define ACTION_SIZE 64

static uint32_t own_tid(void)
{
	return (uint32_t)fathom_sys(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

static long own_pid(void)
{
	return fathom_sys(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

/* Whose turn it is --------------------------------------------------------------------------- */

enum turn {
	TURN_OURS,
	TURN_NESTED, /* this thread has crashed in its own report */
	TURN_MISSED  /* another thread reports and has not ended within the bound */
};

/*
 * Returns whether the thread that has the turn cannot give it back: it has ended, or was that of a
 * child of vfork(), which shares this memory.
 */
static bool is_stale(uint64_t turn)
{
	const long tid = (long)(uint32_t)turn;

	if (turn & TURN_DONE)
		return fathom_sys(SYS_tgkill, own_pid(), tid, 0, 0, 0, 0) == -ESRCH;
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
	const uint32_t tid = own_tid();
	uint64_t now = 0;

	for (int i = 0; i <= WAITS; i++) {
		now = atomic_load(turn);
		if ((uint32_t)now == tid && !(now & TURN_CHAINED))
			return TURN_NESTED;
		/* The earlier handler of this thread has jumped out, or has crashed itself. */
		if ((uint32_t)now == tid || !now || is_stale(now)) {
			if (atomic_compare_exchange_strong(turn, &now, tid))
				return TURN_OURS;
			continue;
		}
		pause_for(WAIT_NS);
	}
	/* An earlier handler that runs so long has jumped out, in the other thread. */
	if (now & TURN_CHAINED && atomic_compare_exchange_strong(turn, &now, tid))
		return TURN_OURS;
	return TURN_MISSED;
}

/* What follows the report -------------------------------------------------------------------- */

static void set_mask(int how, uint64_t set)
{
	(void)fathom_sys(SYS_rt_sigprocmask, how, (long)(uintptr_t)&set, 0, SET_SIZE, 0, 0);
}

static uint64_t bit_of(int number)
{
	return UINT64_C(1) << (number - 1);
}

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
	const uint64_t mask = read_set(&c->uc_sigmask) & ~bit_of(number);
	const bool is_init = own_pid() == 1;
	long err;

	(void)fathom_sys(SYS_rt_sigaction, number, (long)(uintptr_t)defaults, 0, SET_SIZE, 0, 0);
	set_mask(SIG_BLOCK, bit_of(number));
	/* Not blocked where it returns to: the thread may be in sigsuspend(). */
	memcpy(&c->uc_sigmask, &mask, sizeof mask);
	err = fathom_sys(SYS_rt_tgsigqueueinfo, own_pid(), (long)own_tid(), number,
			 (long)(uintptr_t)info, 0, 0);
	if (err)
		err = fathom_sys(SYS_tgkill, own_pid(), (long)own_tid(), number, 0, 0, 0);
	/* The first process of a PID namespace dies by faults only. */
	if ((err || is_init) && !comes_again(number, info))
		(void)fathom_sys(SYS_exit_group, 128 + number, 0, 0, 0, 0, 0);
}

/* Calls the handler that was there before as the kernel would. */
static void chain(struct fathom_crash *c, int number, siginfo_t *info, void *context)
{
	const struct sigaction old = c->old[number];
	const ucontext_t *u = context;
	uint64_t mask = read_set(&u->uc_sigmask) | read_set(&old.sa_mask);

	if ((unsigned)old.sa_flags & (unsigned)SA_RESETHAND)
		c->old[number] = (struct sigaction){ .sa_flags = 0 };
	if (!(old.sa_flags & SA_NODEFER))
		mask |= bit_of(number);
	set_mask(SIG_SETMASK, mask);
	if (old.sa_flags & SA_SIGINFO)
		old.sa_sigaction(number, info, context);
	else
		old.sa_handler(number);
}

static bool is_chained(const struct fathom_crash *c, int number)
{
	const struct sigaction *old = &c->old[number];

	return old->sa_flags & SA_SIGINFO ||
	       (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN);
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

/* Reports, and goes on with what was there before. */
static void report(struct fathom_crash_event *e, siginfo_t *info, void *context)
{
	struct fathom_crash *c = e->crash;
	const uint32_t tid = own_tid();
	const bool goes_on = is_chained(c, e->number);

	if (!goes_on || !is_repeated(c, info, context))
		fathom_switch_stack(fathom_crash_report, e, c->stack + FATHOM_CRASH_STACK);
	atomic_store(c->turn, tid | (goes_on ? TURN_CHAINED : TURN_DONE));
	if (!goes_on) {
		end_by(e->number, info, context);
		return;
	}
	chain(c, e->number, info, context);
	atomic_store(c->turn, 0);
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
		return;
	case TURN_NESTED:
		fathom_switch_stack(fathom_crash_report_nested, &e,
				    c->stack + FATHOM_CRASH_STACK / 2);
		break;
	case TURN_MISSED:
		break;
	}
	end_by(number, info, context);
}
