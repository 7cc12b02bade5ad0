/* SPDX-License-Identifier: MIT */
/* Prepares the crash handler (safe/crash) and installs it: <fathom/crash.h>. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fathom/crash.h"
#include "fathom/self.h"
#include "fathom/session.h"
#include "host/base/context.h"
#include "host/base/option_struct.h"
#include "host/base/page.h"
#include "host/crash/find_cxx.h"
#include "safe/base/error.h"
#include "safe/base/text.h"
#include "safe/crash/state.h"

static const int usual[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS };

#define ALL_FLAGS FATHOM_CRASH_NAMES_ONLY

/* Bytes of the report's stack with the guard page below and the handler's data above. */
static size_t size_of_mapping(void)
{
	return fathom_page_size() + FATHOM_CRASH_STACK + sizeof(struct fathom_crash);
}

static void crash_free(struct fathom_crash *c)
{
	if (c->self)
		fathom_self_destroy((struct fathom_self *)c->self);
	if (c->turn)
		(void)munmap((void *)c->turn, fathom_page_size());
	(void)munmap(c->stack - fathom_page_size(), size_of_mapping());
}

/* Maps the handler's memory; NULL on failure. */
static struct fathom_crash *crash_new(void)
{
	uint8_t *at = mmap(NULL, size_of_mapping(), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct fathom_crash *c;
	void *turn;

	if (at == MAP_FAILED)
		return NULL;
	c = (void *)(at + fathom_page_size() + FATHOM_CRASH_STACK);
	c->stack = at + fathom_page_size();
	(void)mprotect(at, fathom_page_size(), PROT_NONE);
	turn = mmap(NULL, fathom_page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	if (turn == MAP_FAILED) {
		crash_free(c);
		return NULL;
	}
	c->turn = turn;
	/* A kernel that cannot: a child waits for a thread that it does not have, for a bound. */
	(void)madvise(turn, fathom_page_size(), MADV_WIPEONFORK);
	return c;
}

/* Signals that cannot be handled, and those whose default action ends no process: no crashes. */
static const int refused[] = { SIGKILL, SIGSTOP, SIGCHLD, SIGCONT, SIGURG,
			       SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH };

static bool is_refused(int number)
{
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		if (refused[i] == number)
			return true;
	return number <= 0 || number >= FATHOM_CRASH_SIGNALS;
}

static bool add_signals(struct fathom_crash *c, const int *signals, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (is_refused(signals[i]))
			return false;
		c->signals |= UINT32_C(1) << signals[i];
	}
	return true;
}

static void set_program(struct fathom_crash *c)
{
	const ssize_t n = readlink("/proc/self/exe", c->program, sizeof c->program - 1);

	if (n <= 0)
		fathom_copy_cstr(c->program, sizeof c->program, program_invocation_name);
}

/* Finds what glibc keeps for debuggers. Handlers must not call dlsym(). */
static void find_abort_text(struct fathom_crash *c)
{
	void *const at = dlsym(RTLD_DEFAULT, "__abort_msg");
	Dl_info info;

	if (!at || !dladdr(at, &info))
		return;
	c->abort_text = (uintptr_t)at;
	c->libc = (uintptr_t)info.dli_fbase;
}

static fathom_err set_options(struct fathom_crash *c, const struct fathom_crash_options *o,
			      struct fathom_errinfo *reterr)
{
	const bool is_usual = !o->signals;

	if (o->fd < 0 || (o->path && strlen(o->path) >= sizeof c->path))
		return fathom_fail_options(reterr);
	if (!add_signals(c, is_usual ? usual : o->signals,
			 is_usual ? sizeof usual / sizeof *usual : o->n_signals))
		return fathom_fail_options(reterr);
	c->fd = o->fd ? o->fd : STDERR_FILENO;
	if (o->path)
		fathom_copy_cstr(c->path, sizeof c->path, o->path);
	set_program(c);
	find_abort_text(c);
	return FATHOM_OK;
}

/* Prepares names and rules of the process. */
static fathom_err prepare(struct fathom_crash *c, struct fathom *session,
			  const struct fathom_crash_options *o, struct fathom_errinfo *reterr)
{
	const struct fathom_self_options options = {
		.size = sizeof options,
		.flags = FATHOM_SELF_UNWIND |
			 (o->flags & FATHOM_CRASH_NAMES_ONLY ? 0u : (uint32_t)FATHOM_SELF_FULL),
		.target = o->target,
	};
	struct fathom *own = NULL;
	struct fathom_self *self;
	fathom_err err;

	if (!session)
		FATHOM_TRY(fathom_create(NULL, &own, reterr));
	c->session = session ? session : own;
	c->handle_sigbus = fathom_handle_sigbus;
	err = fathom_self_prepare(c->session, &options, &self, reterr);
	/* Prepared memory keeps the session. */
	fathom_destroy(own);
	if (err)
		return err;
	c->self = self;
	fathom_find_cxx(self, &c->cxx);
	return FATHOM_OK;
}

/*
 * Makes the action for a signal that @old was there for. All signals but the handler's own are
 * blocked while it runs, and these can interrupt it, so that it learns of its own crashes. SIGPIPE
 * is none.
 */
static struct sigaction action_for(const struct fathom_crash *c, const struct sigaction *old)
{
	const bool is_ignored = !(old->sa_flags & SA_SIGINFO) && old->sa_handler == SIG_IGN;
	struct sigaction a = { .sa_sigaction = fathom_crash_handle,
			       .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };

	/* System calls end as they would without it. */
	if (is_ignored || old->sa_flags & SA_RESTART)
		a.sa_flags |= SA_RESTART;
	sigfillset(&a.sa_mask);
	for (int i = 1; i < FATHOM_CRASH_SIGNALS; i++)
		if (c->signals >> i & 1 && i != SIGPIPE)
			sigdelset(&a.sa_mask, i);
	return a;
}

static void install(struct fathom_crash *c)
{
	/* The earlier handlers must be known when the handler first runs. */
	for (int i = 1; i < FATHOM_CRASH_SIGNALS; i++)
		if (c->signals >> i & 1)
			(void)sigaction(i, NULL, &c->old[i]);
	atomic_store(&fathom_crash_state.prepared, c);
	for (int i = 1; i < FATHOM_CRASH_SIGNALS; i++) {
		const struct sigaction a = action_for(c, &c->old[i]);

		if (c->signals >> i & 1)
			(void)sigaction(i, &a, NULL);
	}
}

void fathom_crash_uninstall(void)
{
	struct fathom_crash *c = atomic_load(&fathom_crash_state.prepared);
	const struct sigaction none = { .sa_handler = SIG_DFL };
	struct sigaction now;

	if (!c)
		return;
	for (int i = 1; i < FATHOM_CRASH_SIGNALS; i++) {
		if (!(c->signals >> i & 1) || sigaction(i, NULL, &now))
			continue;
		if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == fathom_crash_handle)
			(void)sigaction(i, c->spent >> i & 1 ? &none : &c->old[i], NULL);
	}
	atomic_store(&fathom_crash_state.prepared, NULL);
	crash_free(c);
}

fathom_err fathom_crash_install(struct fathom *session, const struct fathom_crash_options *options,
				struct fathom_errinfo *reterr)
{
	struct fathom_crash_options o = { .size = sizeof o };
	struct fathom_crash *c;
	fathom_err err;

	if (options && !FATHOM_OPTIONS_READ(options, &o, ALL_FLAGS))
		return fathom_fail_options(reterr);
	c = crash_new();
	if (!c)
		return fathom_fail_memory(reterr);
	err = set_options(c, &o, reterr);
	if (!err)
		err = prepare(c, session, &o, reterr);
	if (!err)
		err = fathom_crash_thread_stack(reterr);
	if (err) {
		crash_free(c);
		return err;
	}
	fathom_crash_uninstall();
	install(c);
	return FATHOM_OK;
}
