/* SPDX-License-Identifier: MIT */
/*
 * stepped: runs shapes_main(), of another file, one instruction at a time by the trap flag. The
 * handler of each trap notes calls and returns in a log, unwinds from its context, and compares:
 * each frame has to be where the log says, and the walk has to end in the entry. Handlers of other
 * signals run without steps. Prints what it counted.
 */
#define _GNU_SOURCE
#include "../../lib/own_steps.h"
#include "check.h"

#include <signal.h>
#include <string.h>
#include <ucontext.h>

enum { DEPTH = 4096, BELOW = 256 };

static struct log_entry entries[DEPTH];
static struct log calls = { .items = entries, .cap = DEPTH };
/* Frames that called what is stepped, and the end of their stack. */
static size_t outer;
static uint64_t end_of_stack;
static struct own_step before;
static bool was_nowhere;
static volatile bool is_over;
static unsigned long steps;
static unsigned long walks;
static unsigned long wrong;
static struct fathom_unwind_stack stack;

int shapes_main(void);

static void compare(const void *context, uint64_t pc)
{
	const struct fathom_unwind_options options = { .size = sizeof options,
						       .context = context,
						       .stack = &stack };
	struct fathom_unwind_result r = { .size = sizeof r };
	static uint64_t pcs[DEPTH];
	static uint8_t kinds[DEPTH];
	bool is_wrong = fathom_unwind(self, &options, pcs, kinds, DEPTH, &r) != FATHOM_OK;

	if (steps == 0)
		outer = r.n - 1;
	walks++;
	is_wrong |= r.stop != FATHOM_STOP_ENTRY || r.n != calls.n + outer + 1 || pcs[0] != pc ||
		    r.trust > (pc ? FATHOM_TRUST_SIGNAL : FATHOM_TRUST_DECODED);
	for (size_t i = 1; i <= calls.n && i < r.n; i++) {
		const struct log_entry *e = &entries[calls.n - i];

		is_wrong |= pcs[i] != e->pc || (kinds[i] == FATHOM_PC_EXACT) !=
						       (e->is_interrupted || e->is_trampoline);
	}
	wrong += is_wrong;
	if (is_wrong && wrong < 4) {
		printf("wrong at step %lu: stop %s, trust %s\n", steps, fathom_stop_name(r.stop),
		       fathom_trust_name(r.trust));
		for (size_t i = 0; i < r.n || i <= calls.n; i++)
			printf(" %zu: %lx, log %lx\n", i, i < r.n ? pcs[i] : 0,
			       i == 0         ? pc
			       : i <= calls.n ? entries[calls.n - i].pc
					      : 0);
	}
}

static void on_trap(int number, siginfo_t *info, void *context)
{
	ucontext_t *c = context;
	greg_t *r = c->uc_mcontext.gregs;
	const uint64_t sp = (uint64_t)r[REG_RSP];
	struct log_stack copy = { .avma = sp - BELOW, .data = (const uint8_t *)(sp - BELOW) };

	(void)number;
	(void)info;
	if (is_over) {
		r[REG_EFL] &= ~OWN_STEP_FLAG;
		return;
	}
	if (steps == 0)
		end_of_stack = sp;
	else
		own_step_note(&before, &calls, r);
	/* A call of no address: the handler of its fault goes on behind it. */
	calls.n -= was_nowhere && calls.n;
	was_nowhere = r[REG_RIP] == 0;
	copy.size = end_of_stack - copy.avma;
	if (log_holds(&calls, &copy, sp))
		compare(context, (uint64_t)r[REG_RIP]);
	steps++;
	own_step_take(&before, r);
}

static void finish(void)
{
	int status;

	is_over = true;
	printf("steps %lu calls %lu thrown %lu walks %lu wrong %lu\n", steps, calls.calls,
	       calls.thrown, walks, wrong);
	expect(!wrong && !calls.is_lost);
	status = end();
	(void)fflush(stdout);
	_exit(status);
}

int main(void)
{
	static char room[1 << 16];
	const stack_t alternate = { .ss_sp = room, .ss_size = sizeof room };
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	start(FATHOM_SELF_UNWIND);
	sigfillset(&action.sa_mask);
	(void)sigaltstack(&alternate, NULL);
	(void)sigaction(SIGTRAP, &action, NULL);
	(void)atexit(finish);
	own_steps_begin();
	/* What main() returned to is not in the log. */
	exit(shapes_main());
}
