/* SPDX-License-Identifier: MIT */
/*
 * Safety: as-safe, once the constructor has looked the functions of the C library up.
 *
 * The kernel holds the truth, so there is no lock: a thread that reads the crash handler there
 * knows that the program's action is the default. Only that default's flags and mask, which have
 * no effect, are kept here.
 */
#include "host/crash/preload_signals.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host/base/page.h"
#include "safe/crash/state.h"

#define EXPORT __attribute__((visibility("default")))

typedef void handler_fn(int number);
typedef int sigaction_fn(int number, const struct sigaction *action, struct sigaction *old);
typedef handler_fn *signal_fn(int number, handler_fn *handler);
typedef int number_fn(int number);
typedef int switch_fn(int number, int value);

/* The functions that are defined here. */
enum function {
	SIGACTION,
	SIGNAL,
	SYSV_SIGNAL,
	SIGSET,
	SIGIGNORE,
	SIGINTERRUPT,
	ABORT,
	ASSERT_FAIL,
	N_FUNCTIONS
};

static const char *const names[N_FUNCTIONS] = { "sigaction", "signal",       "__sysv_signal",
						"sigset",    "sigignore",    "siginterrupt",
						"abort",     "__assert_fail" };

/* All mutable state of libfathom-crash.so: it takes the place of functions that have no context. */
static struct {
	_Atomic(void *) next[N_FUNCTIONS]; /* the C library's functions; NULL: not looked up yet */
	_Atomic uint32_t handled;          /* bit n: ours[n] is known, and stands for the default */
	_Atomic uint32_t own; /* bit n: the program has set our handler, by the public call */
	_Atomic bool is_installing;
	struct sigaction ours[FATHOM_CRASH_SIGNALS];
	/* The program's action while ours stands: SIG_DFL with these. */
	_Atomic int flags[FATHOM_CRASH_SIGNALS];
	_Atomic uint64_t mask[FATHOM_CRASH_SIGNALS];
	/* The process that this memory belongs to, in a page that fork() empties. */
	_Atomic long *owner;
} state;

/* Returns the C library's function; NULL if it has none. */
static void *next_of(enum function f)
{
	void *next = atomic_load_explicit(&state.next[f], memory_order_acquire);

	if (next)
		return next;
	next = dlsym(RTLD_NEXT, names[f]);
	atomic_store_explicit(&state.next[f], next, memory_order_release);
	return next;
}

/* Calls the C library's sigaction(). */
static int act(int number, const struct sigaction *action, struct sigaction *old)
{
	sigaction_fn *const next = (sigaction_fn *)(uintptr_t)next_of(SIGACTION);

	return next ? next(number, action, old) : -1;
}

static bool is_handled(int number)
{
	return number > 0 && number < FATHOM_CRASH_SIGNALS &&
	       atomic_load(&state.handled) >> number & 1;
}

static bool is_default(const struct sigaction *a)
{
	return a->sa_handler == SIG_DFL;
}

/* Returns whether @a is the crash handler. */
static bool is_ours(int number, const struct sigaction *a)
{
	return a->sa_flags & SA_SIGINFO && a->sa_sigaction == state.ours[number].sa_sigaction;
}

/* Returns whether @a, which the kernel has, stands there for the program's default. */
static bool is_hidden(int number, const struct sigaction *a)
{
	return is_ours(number, a) && !(atomic_load(&state.own) >> number & 1);
}

/* Returns whether this is a child of vfork(): it has this memory, but signal actions of its own. */
static bool is_guest(void)
{
	const long pid = getpid();
	long owner = state.owner ? atomic_load(state.owner) : pid;

	/* Empty after fork(): the first to come takes it. */
	if (!owner && atomic_compare_exchange_strong(state.owner, &owner, pid))
		return false;
	return owner != pid;
}

/* Changes @ret, what the kernel has, to the program's default. */
static void show_default(int number, struct sigaction *ret)
{
	const uint64_t mask = atomic_load(&state.mask[number]);

	ret->sa_handler = SIG_DFL;
	ret->sa_flags = atomic_load(&state.flags[number]);
	memcpy(&ret->sa_mask, &mask, sizeof mask);
}

static void keep_default(int number, const struct sigaction *a)
{
	uint64_t mask;

	memcpy(&mask, &a->sa_mask, sizeof mask);
	atomic_store(&state.flags[number], a->sa_flags);
	atomic_store(&state.mask[number], mask);
}

/* Installs the crash handler where the default action stands. */
static void cover(int number)
{
	struct sigaction now;
	struct sigaction before;

	if (act(number, NULL, &now) || !is_default(&now) || is_guest())
		return;
	keep_default(number, &now);
	/* Another thread may have set a handler meanwhile. */
	if (!act(number, &state.ours[number], &before) && !is_default(&before) &&
	    !is_ours(number, &before))
		(void)act(number, &before, NULL);
}

/* Restores the program's default where the crash handler stands. */
static void uncover(int number)
{
	struct sigaction now;

	if (act(number, NULL, &now) || !is_hidden(number, &now))
		return;
	show_default(number, &now);
	(void)act(number, &now, NULL);
}

/* Before the program calls one of them in a handler, where dlsym() may not be called. */
__attribute__((constructor)) static void find_functions(void)
{
	for (int i = 0; i < N_FUNCTIONS; i++)
		(void)next_of((enum function)i);
}

void fathom_preload_signals_begin(void)
{
	void *owner = mmap(NULL, fathom_page_size(), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (owner != MAP_FAILED) {
		/* A kernel that cannot: children that reset signals are not reported. */
		(void)madvise(owner, fathom_page_size(), MADV_WIPEONFORK);
		state.owner = owner;
		atomic_store(state.owner, getpid());
	}
	atomic_store(&state.is_installing, true);
}

void fathom_preload_signals_end(void)
{
	atomic_store(&state.is_installing, false);
	for (int i = 1; i < FATHOM_CRASH_SIGNALS; i++)
		if (is_handled(i))
			cover(i);
}

/* sigaction() for fathom_crash_install(). */
static int note(int number, const struct sigaction *action, struct sigaction *old)
{
	if (number <= 0 || number >= FATHOM_CRASH_SIGNALS)
		return act(number, action, old);
	if (old)
		*old = (struct sigaction){ .sa_handler = SIG_DFL };
	if (action) {
		state.ours[number] = *action;
		(void)atomic_fetch_or(&state.handled, UINT32_C(1) << number);
	}
	return 0;
}

static int set_action(int number, const struct sigaction *action, struct sigaction *old)
{
	const uint32_t bit = UINT32_C(1) << (number & 31);
	struct sigaction before;
	bool to_default;
	bool to_ours;
	int err;

	if (atomic_load(&state.is_installing))
		return note(number, action, old);
	if (!is_handled(number))
		return act(number, action, old);
	/* Both may be one struct. */
	to_default = action && is_default(action);
	to_ours = action && is_ours(number, action);
	err = act(number, action, &before);
	if (err)
		return err;
	if (old)
		*old = before;
	if (old && is_hidden(number, &before))
		show_default(number, old);
	if (to_ours)
		(void)atomic_fetch_or(&state.own, bit);
	else if (action)
		(void)atomic_fetch_and(&state.own, ~bit);
	if (to_default)
		cover(number);
	return 0;
}

static handler_fn *by_handler(enum function f, int number, handler_fn *handler)
{
	signal_fn *const next = (signal_fn *)(uintptr_t)next_of(f);
	handler_fn *before;

	if (!next) {
		errno = ENOSYS;
		return SIG_ERR;
	}
	if (!is_handled(number))
		return next(number, handler);
	uncover(number);
	before = next(number, handler);
	cover(number);
	return before;
}

/* The C library has all of these names; not all headers do. */
EXPORT sigaction_fn __sigaction;
EXPORT signal_fn bsd_signal;
EXPORT signal_fn ssignal;
EXPORT signal_fn sysv_signal;
EXPORT signal_fn __sysv_signal;
EXPORT signal_fn sigset;
EXPORT number_fn sigignore;
EXPORT switch_fn siginterrupt;

EXPORT int sigaction(int number, const struct sigaction *restrict action,
		     struct sigaction *restrict old)
{
	return set_action(number, action, old);
}

EXPORT int __sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	return set_action(number, action, old);
}

EXPORT handler_fn *signal(int number, handler_fn *handler)
{
	return by_handler(SIGNAL, number, handler);
}

EXPORT handler_fn *bsd_signal(int number, handler_fn *handler)
{
	return by_handler(SIGNAL, number, handler);
}

EXPORT handler_fn *ssignal(int number, handler_fn *handler)
{
	return by_handler(SIGNAL, number, handler);
}

EXPORT handler_fn *__sysv_signal(int number, handler_fn *handler)
{
	return by_handler(SYSV_SIGNAL, number, handler);
}

EXPORT handler_fn *sysv_signal(int number, handler_fn *handler)
{
	return by_handler(SYSV_SIGNAL, number, handler);
}

EXPORT handler_fn *sigset(int number, handler_fn *handler)
{
	return by_handler(SIGSET, number, handler);
}

EXPORT int sigignore(int number)
{
	number_fn *const next = (number_fn *)(uintptr_t)next_of(SIGIGNORE);
	int err;

	if (!next) {
		errno = ENOSYS;
		return -1;
	}
	if (!is_handled(number))
		return next(number);
	uncover(number);
	err = next(number);
	cover(number);
	return err;
}

EXPORT int siginterrupt(int number, int interrupts)
{
	switch_fn *const next = (switch_fn *)(uintptr_t)next_of(SIGINTERRUPT);
	int err;

	if (!next) {
		errno = ENOSYS;
		return -1;
	}
	if (!is_handled(number))
		return next(number, interrupts);
	uncover(number);
	err = next(number, interrupts);
	cover(number);
	return err;
}

/* Ends of the program ------------------------------------------------------------------------ */

/*
 * Lets SIGABRT come if it is to be reported. abort() of glibc 2.41 and of musl does not, where it
 * is blocked, but has the kernel end the program by a system call that no one sees.
 */
static void let_abort_come(void)
{
	struct sigaction now;
	sigset_t aborts;

	if (!is_handled(SIGABRT) || act(SIGABRT, NULL, &now) || !is_hidden(SIGABRT, &now))
		return;
	sigemptyset(&aborts);
	sigaddset(&aborts, SIGABRT);
	(void)pthread_sigmask(SIG_UNBLOCK, &aborts, NULL);
}

/*
 * In front of the C library's functions of these names. As functions that may return, their last
 * calls are jumps: no frame of theirs is in a report.
 */
typedef void abort_fn(void);
typedef void assert_fn(const char *text, const char *file, unsigned line, const char *function);

EXPORT abort_fn fathom_preload_abort __asm__("abort");
EXPORT assert_fn fathom_preload_assert_fail __asm__("__assert_fail");

void fathom_preload_abort(void)
{
	abort_fn *const next = (abort_fn *)(uintptr_t)next_of(ABORT);

	let_abort_come();
	if (!next)
		__builtin_trap();
	next();
}

void fathom_preload_assert_fail(const char *text, const char *file, unsigned line,
				const char *function)
{
	assert_fn *const next = (assert_fn *)(uintptr_t)next_of(ASSERT_FAIL);

	let_abort_come();
	if (!next)
		__builtin_trap();
	next(text, file, line, function);
}
