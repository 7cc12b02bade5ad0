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
static int wait_for_ring(void *data)
{
	struct fathom_wakeup *b = data;

	(void)fathom_sys(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0, 0);
	/* A maker that was killed before that sends no signal. */
	while (!atomic_load(&b->is_rung) && fathom_sys(SYS_getppid, 0, 0, 0, 0, 0, 0) == b->maker)
		(void)fathom_sys(SYS_futex, (long)&b->is_rung, FUTEX_WAIT, 0, 0, 0, 0);
	(void)fathom_sys(SYS_exit, 0, 0, 0, 0, 0, 0);
	return 0;
}

void fathom_wakeup_start(struct fathom_wakeup *b)
{
	sigset_t all;
	sigset_t mask;

	if (!b->stack) {
		b->stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (b->stack == MAP_FAILED)
			b->stack = NULL;
	}
	b->maker = getpid();
	/* It takes no signals: handlers are ours, and so are their variables. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	b->pid = b->stack ? clone(wait_for_ring, (char *)b->stack + STACK_SIZE, CLONE_VM, b) : 0;
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	if (b->pid < 0)
		b->pid = 0;
}

void fathom_wakeup_send(struct fathom_wakeup *b)
{
	atomic_store(&b->is_rung, 1);
	(void)fathom_sys(SYS_futex, (long)&b->is_rung, FUTEX_WAKE, 1, 0, 0, 0);
}

void fathom_wakeup_stop(struct fathom_wakeup *b)
{
	fathom_wakeup_send(b);
	if (b->pid)
		(void)waitpid(b->pid, NULL, __WALL);
	b->pid = 0;
	if (b->stack)
		munmap(b->stack, STACK_SIZE);
	b->stack = NULL;
}
