/* SPDX-License-Identifier: MIT */
#include "host/tracer/stop.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "host/base/thread_list.h"
#include "safe/base/sys.h"

/*
 * How long one looks again and again; then with pauses; and from when on with longer ones, before
 * which it is asked in which states threads are.
 */
#define SPIN_NS  20000
#define PAUSE_NS 10000
#define SLOW_NS  1000000
#define LONG_NS  100000

static long request(long number, pid_t tid, uintptr_t data)
{
	return fathom_sys(SYS_ptrace, number, tid, 0, (long)data, 0, 0);
}

long fathom_stop_seize(pid_t tid, long options)
{
	return request(PTRACE_SEIZE, tid, (uintptr_t)options);
}

bool fathom_stop_ask(pid_t tid)
{
	return !request(PTRACE_INTERRUPT, tid, 0);
}

void fathom_stop_release(pid_t tid, int signal)
{
	(void)request(PTRACE_DETACH, tid, (uintptr_t)signal);
}

enum fathom_stop_kind fathom_stop_take(pid_t tid, int *ret_status)
{
	const long flags = __WALL | __WNOTHREAD | WNOHANG;
	const long got = fathom_sys(SYS_wait4, tid, (long)(uintptr_t)ret_status, flags, 0, 0, 0);

	if (!got || got == -EINTR)
		return FATHOM_STOP_RUNS;
	if (got < 0)
		return FATHOM_STOP_UNKNOWN;
	if (!WIFSTOPPED(*ret_status) || *ret_status >> 16 != PTRACE_EVENT_STOP)
		return FATHOM_STOP_OTHER;
	return WSTOPSIG(*ret_status) == SIGTRAP ? FATHOM_STOP_STOPPED : FATHOM_STOP_GROUP;
}

bool fathom_stop_peek(pid_t tid, int *ret_signal)
{
	siginfo_t info;

	if (request(PTRACE_GETSIGINFO, tid, (uintptr_t)&info))
		return false;
	*ret_signal = info.si_code >> 8 == PTRACE_EVENT_STOP ? 0 : info.si_signo;
	return true;
}

int64_t fathom_stop_now_ns(void)
{
	struct timespec t;

	(void)fathom_sys(SYS_clock_gettime, CLOCK_MONOTONIC, (long)(uintptr_t)&t, 0, 0, 0, 0);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void fathom_stop_sleep_ns(int64_t ns)
{
	const struct timespec t = { .tv_sec = (time_t)(ns / 1000000000),
				    .tv_nsec = (long)(ns % 1000000000) };

	(void)fathom_sys(SYS_nanosleep, (long)(uintptr_t)&t, 0, 0, 0, 0, 0);
}

/* The threads of a group that have not stopped in one round. */
struct round {
	size_t n;       /* that are waited for */
	size_t n_late;  /* of those, that wait for a processor, or have just stopped */
	size_t n_ended; /* that have ended; the kernel does not always say so (ptrace(2)) */
};

/* Looks at all threads of @g once; @asks: at the states of those that have not stopped, too. */
static struct round look(const struct fathom_stop_group *g, bool asks)
{
	struct round r = { 0 };

	for (size_t i = 0; i < g->n; i++) {
		const pid_t tid = g->look(g->data, i);
		const char state = tid && asks ? fathom_thread_state(g->tasks, tid) : 'R';

		if (tid && fathom_thread_has_ended(state))
			r.n_ended++;
		else if (tid)
			r.n++;
		r.n_late += tid && (state == 'R' || state == 'T' || state == 't');
	}
	return r;
}

bool fathom_stop_wait(const struct fathom_stop_group *g, int64_t *ret_ns)
{
	const int64_t began = fathom_stop_now_ns();
	bool has_ended = false;
	bool is_done = false;
	struct round r;

	for (;;) {
		*ret_ns = fathom_stop_now_ns() - began;
		r = look(g, *ret_ns > SLOW_NS && g->tasks >= 0);
		/* Its status may have come after the look. */
		is_done = !r.n && (!r.n_ended || has_ended);
		has_ended = r.n_ended && !r.n;
		if (is_done)
			break;
		if (*ret_ns > g->brief_ns && (*ret_ns > g->most_ns || (r.n && !r.n_late) ||
					      (g->goes_on && !g->goes_on(g->data, r.n_late))))
			break;
		if (*ret_ns > SPIN_NS)
			fathom_stop_sleep_ns(*ret_ns > SLOW_NS ? LONG_NS : PAUSE_NS);
	}
	return is_done;
}
