/* SPDX-License-Identifier: MIT */
/*
 * Damages stacks as programs do that write beyond the end of an array: overwrites the return
 * address of a function and words behind it, in many shapes, and calls a function in there that
 * looks at the stack or waits. No such stack is whole.
 *
 * Not among them: a return address that is replaced by that of another call.
 */
#ifndef TESTS_DAMAGE_H
#define TESTS_DAMAGE_H

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

/* What overwrites: numbers of values, and of words. */
enum { DAMAGE_VALUES = 12, DAMAGE_SIZES = 5 };

/* On which stack. */
enum damage_stack { DAMAGE_THREAD, DAMAGE_CONTEXT, DAMAGE_HANDLER, DAMAGE_CUT, DAMAGE_STACKS };

struct damage {
	int stack;
	int value;
	int size;
	void (*look)(void);
};

#define DAMAGE_ALL (DAMAGE_STACKS * DAMAGE_VALUES * DAMAGE_SIZES)

#define DAMAGE_NOINLINE __attribute__((noinline, noclone, no_stack_protector))

enum { DAMAGE_ROOM = 1 << 16, DAMAGE_PAGE = 4096 };

/* Where stacks are made: an address in there that is on a stack, too, looks as a call instruction
 * does (e8). */
#define DAMAGE_PLACE UINT64_C(0x5a00e8000000)

static uint64_t damage_data[4];
volatile int damage_sink;

/* Code without call frame information that nothing calls. */
void damage_code(void);
__asm__(".text\n.globl damage_code\n.hidden damage_code\n.type damage_code, @function\n"
	"	nop\n	nop\n	nop\n	nop\n	nop\n	nop\n	nop\n	nop\n"
	"damage_code: xor %eax, %eax\n	add $1, %eax\n	ret\n.size damage_code, .-damage_code\n");

/* A function that nothing calls, either. */
DAMAGE_NOINLINE int damage_other(int n)
{
	volatile char room[100];

	room[n] = (char)n;
	return printf("%d\n", room[0]) + damage_sink;
}

static uint64_t damage_value(int i, const uint64_t *slot)
{
	const uint64_t values[DAMAGE_VALUES] = {
		0,
		UINT64_C(0x4141414141414141),
		UINT64_MAX,
		UINT64_C(0x123456789000),
		0x10,
		(uintptr_t)slot,
		(uintptr_t)(slot + 1),
		(uintptr_t)damage_data,
		(uintptr_t)damage_other,
		(uintptr_t)damage_other + 4,
		(uintptr_t)damage_code,
		(uintptr_t)"\xe8\0\0\0\0text" + 5,
	};

	return values[i];
}

DAMAGE_NOINLINE void damage_victim(const struct damage *d)
{
	static const int sizes[DAMAGE_SIZES] = { 1, 2, 3, 8, 40 };
	volatile uint64_t *slot = (volatile uint64_t *)__builtin_dwarf_cfa() - 1;
	const uint64_t value = damage_value(d->value, (const uint64_t *)(uintptr_t)slot);

	for (int i = 0; d->stack != DAMAGE_CUT && i < sizes[d->size]; i++)
		slot[i] = value;
	d->look();
	_exit(3); /* there is no way back */
}

/* Has room for what is overwritten. */
DAMAGE_NOINLINE int damage_middle(const struct damage *d, int n)
{
	volatile char room[200];

	room[0] = (char)n;
	if (n)
		damage_middle(d, n - 1);
	else
		damage_victim(d);
	return room[0] + damage_sink;
}

static __thread const struct damage *damage_mine;
static __thread char *damage_room;

static void damage_on_signal(int number)
{
	damage_middle(damage_mine, number ? 3 : 0);
}

static void damage_in_context(void)
{
	damage_middle(damage_mine, 3);
}

/*
 * Takes the upper pages of the stack away, on which its first frames are, from a place below them.
 */
DAMAGE_NOINLINE static int damage_cut(int n)
{
	volatile char room[1000];

	room[0] = (char)n;
	if (n)
		return damage_cut(n - 1) + room[0];
	munmap(damage_room + DAMAGE_ROOM - DAMAGE_PAGE, DAMAGE_PAGE);
	damage_victim(damage_mine);
	return 0;
}

static void damage_cut_in_context(void)
{
	/* How much is left differs. */
	(void)damage_cut(3 + damage_mine->value + damage_mine->size * DAMAGE_VALUES % 47);
}

static void damage_make_context(void (*fn)(void))
{
	static __thread ucontext_t here;
	static __thread ucontext_t there;

	getcontext(&there);
	there.uc_stack.ss_sp = damage_room;
	there.uc_stack.ss_size = DAMAGE_ROOM;
	there.uc_link = &here;
	makecontext(&there, fn, 0);
	swapcontext(&here, &there);
}

/* Runs @d on the calling thread; it does not return. */
static void damage_run(const struct damage *d)
{
	const struct sigaction action = { .sa_handler = damage_on_signal,
					  .sa_flags = SA_ONSTACK | SA_NODEFER };
	stack_t other;

	damage_mine = d;
	damage_room = mmap((void *)(uintptr_t)DAMAGE_PLACE, DAMAGE_ROOM, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (damage_room == MAP_FAILED)
		_exit(4);
	switch (d->stack) {
	case DAMAGE_THREAD:
		damage_middle(d, 3);
		break;
	case DAMAGE_CONTEXT:
		damage_make_context(damage_in_context);
		break;
	case DAMAGE_HANDLER:
		other = (stack_t){ .ss_sp = damage_room, .ss_size = DAMAGE_ROOM };
		sigaltstack(&other, NULL);
		sigaction(SIGUSR1, &action, NULL);
		pthread_kill(pthread_self(), SIGUSR1);
		break;
	default:
		damage_make_context(damage_cut_in_context);
		break;
	}
	_exit(3);
}

/* Makes *@d the number @i of all. */
static inline void damage_number(int i, void (*look)(void), struct damage *d)
{
	*d = (struct damage){ i / DAMAGE_SIZES / DAMAGE_VALUES, i / DAMAGE_SIZES % DAMAGE_VALUES,
			      i % DAMAGE_SIZES, look };
}

#endif
