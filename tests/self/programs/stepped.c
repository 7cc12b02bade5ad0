/* SPDX-License-Identifier: MIT */
/*
 * stepped: runs the shapes of calls in ../../stacks/programs/shapes.c one instruction at a time, by the
 * trap flag. The handler of each trap notes calls and returns in a log, unwinds from its context, and
 * compares: each frame has to be where the log says, and the walk has to end in the entry. Handlers of
 * other signals run without steps. Prints what it counted.
 */
#define _GNU_SOURCE
#include "check.h"

#include <elf.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

enum { DEPTH = 4096, TRAP_FLAG = 0x100 };

struct entry {
	uint64_t pc;
	uint64_t sp;
};

static struct entry shadow[DEPTH];
static size_t depth;
/* Frames that called what is stepped. */
static size_t outer;
static uint64_t before_pc;
static uint64_t before_sp;
static uint8_t code[16];
static bool was_nowhere;
static volatile bool is_over;
static unsigned long steps;
static unsigned long calls;
static unsigned long wrong;
static struct fathom_unwind_stack stack;

int shapes_main(void);

static size_t prefixes(const uint8_t *c)
{
	size_t i = 0;

	while (i < 8 && (c[i] == 0x66 || c[i] == 0xf2 || c[i] == 0xf3 || c[i] == 0x3e || (c[i] & 0xf0) == 0x40))
		i++;
	return i;
}

static bool is_call(const uint8_t *c)
{
	c += prefixes(c);
	return c[0] == 0xe8 || (c[0] == 0xff && (c[1] >> 3 & 7) == 2);
}

static bool is_return(const uint8_t *c)
{
	c += prefixes(c);
	return c[0] == 0xc3 || c[0] == 0xc2;
}

/*
 * Notes what the instruction in @code did, behind which are @pc and @sp. The trap of a system call
 * comes one instruction late.
 */
static void note(uint64_t pc, uint64_t sp)
{
	if (code[0] == 0x0f && code[1] == 0x05 && pc != before_pc + 2)
		memmove(code, code + 2, sizeof code - 2);
	if (is_call(code) && sp == before_sp - 8) {
		/* What a longjmp() has left. */
		while (depth && shadow[depth - 1].sp <= before_sp)
			depth--;
		if (depth < DEPTH)
			shadow[depth++] = (struct entry){ *(const uint64_t *)sp, before_sp };
		calls++;
	} else if (is_return(code)) {
		while (depth && (shadow[depth - 1].pc != pc || shadow[depth - 1].sp != sp))
			depth--;
		depth -= depth > 0;
	}
}

static void compare(const void *context, uint64_t pc)
{
	const struct fathom_unwind_options options = { .size = sizeof options, .context = context, .stack = &stack };
	struct fathom_unwind_result r = { .size = sizeof r };
	static uint64_t pcs[DEPTH];
	static uint8_t kinds[DEPTH];
	bool is_wrong = fathom_unwind(self, &options, pcs, kinds, DEPTH, &r) != FATHOM_OK;

	if (steps == 0)
		outer = r.n - 1;
	is_wrong |= r.stop != FATHOM_STOP_ENTRY || r.n != depth + outer + 1 || pcs[0] != pc ||
		    r.trust > (pc ? FATHOM_TRUST_SIGNAL : FATHOM_TRUST_DECODED);
	for (size_t i = 1; i <= depth && i < r.n; i++)
		is_wrong |= pcs[i] != shadow[depth - i].pc || kinds[i] != FATHOM_PC_RETURN;
	wrong += is_wrong;
	if (is_wrong && wrong < 4) {
		printf("wrong at step %lu: stop %s, trust %s\n", steps, fathom_stop_name(r.stop), fathom_trust_name(r.trust));
		for (size_t i = 0; i < r.n || i <= depth; i++)
			printf(" %zu: %lx, log %lx\n", i, i < r.n ? pcs[i] : 0,
			       i == 0 ? pc : i <= depth ? shadow[depth - i].pc : 0);
	}
}

static void on_trap(int number, siginfo_t *info, void *context)
{
	ucontext_t *c = context;
	const uint64_t pc = (uint64_t)c->uc_mcontext.gregs[REG_RIP];
	const uint64_t sp = (uint64_t)c->uc_mcontext.gregs[REG_RSP];

	(void)number;
	(void)info;
	if (is_over) {
		c->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
		return;
	}
	if (before_sp)
		note(pc, sp);
	/* A call of no address: the handler of its fault goes on behind it. */
	depth -= was_nowhere && depth;
	was_nowhere = pc == 0;
	compare(context, pc);
	steps++;
	before_pc = pc;
	before_sp = sp;
	memset(code, 0, sizeof code);
	if (pc)
		memcpy(code, (const void *)pc, sizeof code);
}

static void set_trap_flag(void)
{
	__asm__ volatile("pushfq; orq %0, (%%rsp); popfq" ::"i"(TRAP_FLAG) : "cc", "memory");
}

static void finish(void)
{
	int status;

	is_over = true;
	printf("steps %lu calls %lu wrong %lu\n", steps, calls, wrong);
	expect(!wrong);
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
	set_trap_flag();
	return shapes_main();
}
