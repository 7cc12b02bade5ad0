/* SPDX-License-Identifier: MIT */
/*
 * A library that is loaded before twig (examples/jit), with functions that its programs call. From
 * step() to stop() the program runs one instruction at a time. The handler of each trap notes calls
 * and returns in a log, the shadow; in made code it unwinds from its context by nongnu's libunwind
 * and by libgcc's unwinder, and compares: each frame has to have the pc and the stack pointer of
 * the log. stop() prints what was counted. wait() prints what backtrace() finds, and waits.
 *
 * A shim and the code that it calls are one frame (made_code.h). The frames outside of step()
 * are those that libunwind finds there: a return to one that is wrong loses the log.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>
#include <unwind.h>

#include "../../lib/made_code.h"
#include "../../lib/own_steps.h"

enum { DEPTH = 4096, RSP = 7, RIP = 16, AT_SIGNAL = 1 };

/* A walk of the stack; its first frame is where the trap was. */
struct walk {
	uint64_t pcs[DEPTH];
	uint64_t sps[DEPTH];
	size_t n;
};

static struct log_entry entries[DEPTH];
static struct log calls = { .items = entries, .cap = DEPTH };
static struct own_step before;
static struct made_code made = { .is_wanted = 1 };
static unsigned long steps;
static unsigned long walks;
static unsigned long same[2];
static volatile bool is_over;
static int (*init)(void *cursor, void *context, int flags);
static int (*get)(void *cursor, int reg, uint64_t *ret);
static int (*step)(void *cursor);

/* Where nothing is published, libunwind finds frames at any address. */
static uint64_t checked_word(const void *data, uint64_t at)
{
	uint64_t word = 0;
	const struct iovec to = { &word, sizeof word };
	const struct iovec from = { (void *)at, sizeof word };

	(void)data;
	(void)process_vm_readv(getpid(), &to, 1, &from, 1, 0);
	return word;
}

static void walk_by_nongnu(struct walk *w, void *context)
{
	static uint64_t cursor[1024];

	w->n = 0;
	if (init(cursor, context, AT_SIGNAL))
		return;
	do {
		(void)get(cursor, RIP, &w->pcs[w->n]);
		(void)get(cursor, RSP, &w->sps[w->n]);
		w->n++;
	} while (w->n < DEPTH && step(cursor) > 0);
}

/* The frames of the handler come first: what is at the place of the trap begins anew. */
static _Unwind_Reason_Code see_frame(struct _Unwind_Context *context, void *data)
{
	struct walk *w = data;

	if (_Unwind_GetIP(context) == before.pc && _Unwind_GetCFA(context) == before.sp)
		w->n = 0;
	if (w->n < DEPTH) {
		w->pcs[w->n] = _Unwind_GetIP(context);
		w->sps[w->n++] = _Unwind_GetCFA(context);
	}
	return _URC_NO_REASON;
}

/* Returns whether @w is at the place of the trap and then at those of @log, to the last. */
static bool is_log(const struct walk *w, const struct log *log)
{
	/* Where it ends, libgcc counts a frame more, without a pc. */
	const size_t n = w->n && !w->pcs[w->n - 1] ? w->n - 1 : w->n;
	bool is_same = n == log->n + 1 && w->pcs[0] == before.pc && w->sps[0] == before.sp;

	for (size_t i = 1; i < n && is_same; i++)
		is_same = w->pcs[i] == log->items[log->n - i].pc &&
			  w->sps[i] == log->items[log->n - i].sp;
	return is_same;
}

static void print_walk(const char *name, const struct walk *w, const struct log *log)
{
	printf("# %s at %lx, step %lu\n", name, before.pc, steps);
	for (size_t i = 0; i < w->n || i <= log->n; i++)
		printf("#   %lx %lx, log %lx %lx\n", w->pcs[i], w->sps[i],
		       i && i <= log->n ? log->items[log->n - i].pc : before.pc,
		       i && i <= log->n ? log->items[log->n - i].sp : before.sp);
}

static void compare(void *context)
{
	static struct walk by[2];
	const struct log *log =
		made_frames(&made, &calls, before.fp, before.code[0], checked_word, NULL);
	const char *const names[] = { "nongnu", "libgcc" };

	walks++;
	walk_by_nongnu(&by[0], context);
	by[1].n = 0;
	(void)_Unwind_Backtrace(see_frame, &by[1]);
	for (int i = 0; i < 2; i++) {
		same[i] += is_log(&by[i], log);
		if (!is_log(&by[i], log) && walks - same[i] == 1)
			print_walk(names[i], &by[i], log);
	}
}

/* Begins the log with the frames outside. */
static void begin_log(void *context)
{
	static struct walk outside;

	walk_by_nongnu(&outside, context);
	for (size_t i = outside.n; --i;)
		log_push(&calls, outside.pcs[i], outside.sps[i], 0);
	made_begin(&made, calls.n - 1);
}

static void on_trap(int number, siginfo_t *info, void *context)
{
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)number;
	(void)info;
	if (is_over) {
		r[REG_EFL] &= ~OWN_STEP_FLAG;
		return;
	}
	if (steps++) {
		own_step_note(&before, &calls, r);
		made_note(&made, before.code);
	} else {
		begin_log(context);
	}
	own_step_take(&before, r);
	if (made_has(&made, getpid(), before.pc))
		compare(context);
}

static void *symbol(void *library, const char *name)
{
	void *found = library ? dlsym(library, name) : NULL;

	if (!found) {
		fprintf(stderr, "steps: %s\n", dlerror());
		exit(3);
	}
	return found;
}

/* Before main(): libunwind must be there when code is published. */
__attribute__((constructor)) static void load(void)
{
	void *library = dlopen("libunwind.so.8", RTLD_NOW);

	init = symbol(library, "_ULx86_64_init_local2");
	get = symbol(library, "_ULx86_64_get_reg");
	step = symbol(library, "_ULx86_64_step");
}

long twig_step(long *arguments)
{
	static char room[1 << 16];
	const stack_t alternate = { .ss_sp = room, .ss_size = sizeof room };
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	(void)made_has(&made, getpid(), (uint64_t)__builtin_return_address(0));
	sigfillset(&action.sa_mask);
	(void)sigaltstack(&alternate, NULL);
	(void)sigaction(SIGTRAP, &action, NULL);
	own_steps_begin();
	return arguments[0];
}

long twig_stop(long *arguments)
{
	(void)arguments;
	is_over = true;
	printf("steps %lu\ncalls %lu\nthrown %lu\nlost %d\nwalks %lu\nnongnu-same %lu\nlibgcc-same "
	       "%lu\n",
	       steps, calls.calls, calls.thrown, calls.is_lost, walks, same[0], same[1]);
	made_print(&made);
	return 0;
}

long twig_wait(long *arguments)
{
	void *pcs[64];
	const int n = backtrace(pcs, 64);

	(void)arguments;
	for (int i = 0; i < n; i++)
		printf("%p\n", pcs[i]);
	puts("ready");
	(void)fflush(stdout);
	return pause();
}
