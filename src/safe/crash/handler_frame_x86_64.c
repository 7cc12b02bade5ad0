/* SPDX-License-Identifier: MIT */
/*
 * x86-64: the frame is that of Linux's arch/x86/include/asm/sigframe.h (struct rt_sigframe), and
 * apart from it what XSAVE has saved (arch/x86/include/uapi/asm/sigcontext.h, struct
 * _fpx_sw_bytes).
 */
#define _GNU_SOURCE
#include "safe/crash/handler_frame.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "safe/base/sys.h"

/* Bytes below the stack pointer that belong to the interrupted function (x86-64 psABI, 3.2.2). */
#define RED_ZONE 128

/* The kernel's struct ucontext, which the C library's begins with. */
#define CONTEXT_SIZE 304

struct frame {
	uint64_t restorer; /* where the handler returns to */
	uint8_t context[CONTEXT_SIZE];
	siginfo_t info;
};

/* The registers of XSAVE: how long they are stands in a part of them that hardware leaves free. */
#define SIZE_AT   464
#define MAGIC     0x46505853u
#define MOST_SIZE 65536

/* uc_flags (arch/x86/include/uapi/asm/ucontext.h): without it, FXSAVE has saved so many bytes. */
#define HAS_XSAVE   1
#define LEGACY_SIZE 512

#define PAGE 4096

/* Flags that the kernel clears for a handler: trap, direction, resume. */
#define CLEARED ((greg_t)(0x100 | 0x400 | 0x10000))

/*
 * Returns the bytes of the saved vector registers of @u; 0 if they are not as the kernel has them.
 */
static size_t vector_size(const ucontext_t *u)
{
	const uint8_t *at = (const void *)u->uc_mcontext.fpregs;
	uint32_t words[2];

	if (!at)
		return 0;
	if (!(u->uc_flags & HAS_XSAVE))
		return LEGACY_SIZE;
	memcpy(words, at + SIZE_AT, sizeof words);
	return words[0] == MAGIC && words[1] <= MOST_SIZE ? words[1] : 0;
}

static bool is_on(const stack_t *s, uintptr_t sp)
{
	return sp > (uintptr_t)s->ss_sp && sp - (uintptr_t)s->ss_sp <= s->ss_size;
}

/* A return that the shadow stack does not know of would end the thread. */
static bool has_shadow_stack(void)
{
	uint64_t sp = 0;

	__asm__ volatile("rdsspq %0" : "+r"(sp));
	return sp;
}

/* Returns whether a word can be written: the kernel does, which lets a stack grow, or refuses. */
static bool is_writable(uintptr_t at)
{
	return !fathom_sys(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)at, 8, 0, 0);
}

/* Returns whether all from @low, which no page is missing after, up to @high can be written. */
static bool has_room(uintptr_t low, uintptr_t high)
{
	for (uintptr_t at = low; at < high; at += PAGE)
		if (!is_writable(at))
			return false;
	return is_writable(high - sizeof(uint64_t));
}

/* Lets the kernel go on in @handler with the copy @f of the frame. */
static void go_to(ucontext_t *u, uintptr_t handler, int number, struct frame *f, uint64_t mask)
{
	greg_t *g = u->uc_mcontext.gregs;

	g[REG_RIP] = (greg_t)handler;
	g[REG_RSP] = (greg_t)(uintptr_t)f;
	g[REG_RDI] = number;
	g[REG_RSI] = (greg_t)(uintptr_t)&f->info;
	g[REG_RDX] = (greg_t)(uintptr_t)f->context;
	g[REG_RAX] = 0;
	g[REG_EFL] &= ~CLEARED;
	u->uc_mcontext.fpregs = NULL; /* as they are in a new program */
	memcpy(&u->uc_sigmask, &mask, sizeof mask);
}

enum fathom_frame_move fathom_handler_frame_move(int number, const siginfo_t *info, void *context,
						 uintptr_t handler, uint64_t mask)
{
	ucontext_t *u = context;
	const uint8_t *from = (const uint8_t *)context - offsetof(struct frame, context);
	const uintptr_t sp = (uintptr_t)u->uc_mcontext.gregs[REG_RSP];
	const size_t size = vector_size(u);
	const uintptr_t vectors = (sp - RED_ZONE - size) & ~(uintptr_t)63;
	/* Aligned as after a call. */
	const uintptr_t to = ((vectors - sizeof(struct frame)) & ~(uintptr_t)15) - sizeof(uint64_t);
	struct frame *f = (void *)to;
	ucontext_t *copy = (void *)f->context;

	if ((const uint8_t *)info != from + offsetof(struct frame, info) || !size ||
	    !is_on(&u->uc_stack, (uintptr_t)context) || is_on(&u->uc_stack, sp) ||
	    has_shadow_stack())
		return FATHOM_FRAME_STAYS;
	if (to >= sp || !has_room(to, sp - RED_ZONE))
		return FATHOM_FRAME_NO_ROOM;
	memcpy(f, from, sizeof *f);
	memcpy((void *)vectors, u->uc_mcontext.fpregs, size);
	copy->uc_mcontext.fpregs = (fpregset_t)vectors;
	go_to(u, handler, number, f, mask);
	return FATHOM_FRAME_MOVED;
}
