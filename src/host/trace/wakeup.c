/* SPDX-License-Identifier: MIT */
#include "host/trace/wakeup.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "safe/base/sys.h"

#define STACK_SIZE 65536

/* The child. It has the thread-local variables of who has made it: it uses none. */
static int wait_for_wakeup(void *data)
{
	struct fathom_wakeup *w = data;

	(void)fathom_sys(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0, 0);
	/* A maker that was killed before that sends no signal. */
	while (!atomic_load(&w->is_sent) && fathom_sys(SYS_getppid, 0, 0, 0, 0, 0, 0) == w->maker)
		(void)fathom_sys(SYS_futex, (long)&w->is_sent, FUTEX_WAIT, 0, 0, 0, 0);
	(void)fathom_sys(SYS_exit, 0, 0, 0, 0, 0, 0);
	return 0;
}

void fathom_wakeup_start(struct fathom_wakeup *w)
{
	sigset_t all;
	sigset_t mask;

	if (!w->stack) {
		w->stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (w->stack == MAP_FAILED)
			w->stack = NULL;
	}
	w->maker = getpid();
	/* It takes no signals: handlers are ours, and so are their variables. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	w->pid = w->stack ? clone(wait_for_wakeup, (char *)w->stack + STACK_SIZE, CLONE_VM, w) : 0;
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	if (w->pid < 0)
		w->pid = 0;
}

void fathom_wakeup_send(struct fathom_wakeup *w)
{
	atomic_store(&w->is_sent, 1);
	(void)fathom_sys(SYS_futex, (long)&w->is_sent, FUTEX_WAKE, 1, 0, 0, 0);
}

void fathom_wakeup_stop(struct fathom_wakeup *w)
{
	fathom_wakeup_send(w);
	if (w->pid)
		(void)waitpid(w->pid, NULL, __WALL);
	w->pid = 0;
	if (w->stack)
		munmap(w->stack, STACK_SIZE);
	w->stack = NULL;
}
