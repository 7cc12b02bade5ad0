/* SPDX-License-Identifier: MIT */
/*
 * Steps through calls that are recorded (CALLS: of a library), with the tracer inside; the first event asks the runtime for room. At each
 * instruction libgcc and fathom_unwind() must find the callers. Prints how many instructions there were, of those how
 * many in no object, and where callers were not found, by libgcc and by fathom_unwind().
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include <fathom/fathom.h>

#define PLAIN __attribute__((noinline, no_instrument_function, patchable_function_entry(0, 0)))

static struct fathom_self *self;
static volatile int is_over;
static int n_steps, n_outside, n_lost, n_lost_own;

__attribute__((noinline)) int leaf(int n)
{
	__asm__ volatile("" : "+r"(n));
#ifdef CALLS
	n += getppid() < 0;
#endif
	return n + 1;
}

/* Returns whether the callers are among the names of @pcs. */
PLAIN static int has_callers(void **pcs, int n)
{
	char names[1024] = "";

	for (int i = 0; i < n; i++) {
		Dl_info info = { 0 };

		if (dladdr((char *)pcs[i] - 1, &info) && info.dli_sname && strlen(names) < 900)
			strcat(strncat(names, info.dli_sname, 60), " ");
	}
	return strstr(names, "walk stepped steps main ") != NULL;
}

PLAIN static void step(int number, siginfo_t *info, void *context)
{
	const struct fathom_unwind_options o = { .size = sizeof o, .context = context };
	struct fathom_unwind_result result = { .size = sizeof result };
	ucontext_t *u = context;
	void *pc = (void *)u->uc_mcontext.gregs[REG_RIP];
	uint64_t own[64];
	uint8_t kinds[64];
	void *pcs[64];
	Dl_info at = { 0 };

	(void)number;
	(void)info;
	n_steps++;
	n_outside += !dladdr(pc, &at);
	if (!has_callers(pcs, backtrace(pcs, 64)) && ++n_lost && getenv("SHOW"))
		fprintf(stderr, "libgcc %p %s+%td\n", pc, at.dli_sname ? at.dli_sname : "?", (char *)pc - (char *)at.dli_saddr);
	(void)fathom_unwind(self, &o, own, kinds, 64, &result);
	for (size_t i = 0; i < result.n; i++)
		pcs[i] = (char *)own[i] + (i == 0);
	if (!has_callers(pcs, (int)result.n) && ++n_lost_own && getenv("SHOW"))
		fprintf(stderr, "fathom %p %s+%td, %zu frames\n", pc, at.dli_sname ? at.dli_sname : "?", (char *)pc - (char *)at.dli_saddr, result.n);
	if (is_over)
		u->uc_mcontext.gregs[REG_EFL] &= ~0x100l;
	else
		u->uc_mcontext.gregs[REG_EFL] |= 0x100;
}

PLAIN int walk(int n)
{
	/* The runtime takes the flag away where it makes room. */
	for (int i = 0; i < 3; i++) {
		is_over = 0;
		__asm__ volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" ::: "memory", "cc");
		n = leaf(n);
		__asm__ volatile("" : "+r"(n));
		is_over = 1;
		__asm__ volatile("nop\n\tnop");
	}
	return n + 1;
}

PLAIN int stepped(int n)
{
	return walk(n) + 1;
}

PLAIN int steps(void)
{
	const struct fathom_self_options o = { .size = sizeof o, .flags = FATHOM_SELF_UNWIND };
	struct sigaction act = { .sa_sigaction = step, .sa_flags = SA_SIGINFO };
	struct fathom *session;
	void *pcs[1];

	if (fathom_create(NULL, &session, NULL) || fathom_self_prepare(session, &o, &self, NULL))
		return 0;
	(void)backtrace(pcs, 1);
	sigaction(SIGTRAP, &act, NULL);
	(void)fathom_trace_thread(1);
	return stepped(3) + 1;
}

PLAIN int main(void)
{
	printf("%d ", steps());
	printf("%d %d %d %d\n", n_steps, n_outside, n_lost, n_lost_own);
	return 0;
}
