/* SPDX-License-Identifier: MIT */
#include "trace/signal_frame.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "trace/machine.h"

#define PAGE      UINT64_C(4096)
#define RED_ZONE  128
#define MASK_SIZE 8

/* Bytes of the kernel's struct ucontext, which ends after the mask, and of its siginfo. */
#define CONTEXT 304
#define INFO    128

/* Bytes of the smallest signal stack that the kernel takes. */
#define SMALLEST_STACK 2048

#define AUTODISARM UINT32_C(0x80000000) /* SS_AUTODISARM (include/uapi/linux/signal.h) */

/*
 * The registers of the floating point unit: where the bytes that the kernel keeps for itself say
 * that there are more than 512, and how many (struct _fpx_sw_bytes), and which components the rest
 * has; what mxcsr and the control word of x87 are at first.
 */
#define FP_MAGIC   464
#define FP_SIZE    468
#define FP_PRESENT 512
#define FP_LEGACY  512
#define FP_MXCSR   24
#define MAGIC      UINT32_C(0x46505853)

/* Flags that a handler begins without: trap, direction, resume. */
#define NO_FLAGS UINT64_C(0x10500)

/* The component of the rest that has the rights of protection keys (Intel SDM, volume 1, 13.1). */
#define FP_PKRU 9

/* The selector of 64-bit code, in the lowest bits of REG_CSGSFS. */
#define CODE_64 UINT64_C(0x33)

_Static_assert(offsetof(ucontext_t, uc_sigmask) + MASK_SIZE == CONTEXT, "");
_Static_assert(sizeof(siginfo_t) == INFO, "");

/* As it lies on the stack, below the registers of the floating point unit. */
struct frame {
	uint64_t restorer;
	unsigned char context[CONTEXT];
	siginfo_t info;
};

_Static_assert(sizeof(struct frame) == 8 + CONTEXT + INFO, "");

uint64_t fathom_signal_mask(const ucontext_t *u)
{
	uint64_t mask;

	__builtin_memcpy(&mask, &u->uc_sigmask, MASK_SIZE);
	return mask;
}

void fathom_signal_set_mask(ucontext_t *u, uint64_t mask)
{
	__builtin_memcpy(&u->uc_sigmask, &mask, MASK_SIZE);
}

static bool lies_within(const stack_t *stack, uint64_t sp)
{
	const uint64_t low = (uintptr_t)stack->ss_sp;

	return sp > low && sp - low <= stack->ss_size;
}

/* Returns whether a thread with @sp runs on @stack. Of one that disarms itself nobody knows. */
static bool is_on(const stack_t *stack, uint64_t sp)
{
	return !((uint32_t)stack->ss_flags & AUTODISARM) && lies_within(stack, sp);
}

/*
 * Returns whether the @size bytes at @avma can be written, from above, as a stack grows; writes
 * there. Not with other threads' eyes (process_vm_writev(2)): for these no stack grows.
 */
static bool can_write(uint64_t avma, uint64_t size)
{
	const uint64_t last = avma + size - MASK_SIZE;

	if (!fathom_trace_may_probe())
		return true;
	for (uint64_t at = last;;) {
		if (fathom_trace_syscall_kernel(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)at,
						MASK_SIZE))
			return false;
		if (at == avma)
			return true;
		at = at - avma > PAGE ? at - PAGE : avma;
	}
}

static uint32_t word_at(const unsigned char *at)
{
	uint32_t word;

	__builtin_memcpy(&word, at, sizeof word);
	return word;
}

/* Returns how many bytes the kernel has kept of the floating point unit. */
static uint64_t fp_size(const unsigned char *fp)
{
	if (!fp)
		return 0;
	return word_at(fp + FP_MAGIC) == MAGIC ? word_at(fp + FP_SIZE) : FP_LEGACY;
}

/*
 * Offset of the rights of protection keys in the bytes of the floating point unit; 0: not known
 * yet.
 */
static _Atomic uint32_t fathom_trace_self_pkru_off;

static uint32_t pkru_off(void)
{
	uint32_t a = 0xd, b, c = FP_PKRU, d;

	if (!atomic_load(&fathom_trace_self_pkru_off)) {
		__asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
		atomic_store(&fathom_trace_self_pkru_off, b);
	}
	return atomic_load(&fathom_trace_self_pkru_off);
}

/*
 * Sets the components in @fp that are not those of the processor's start: a handler has the rights
 * of protection keys that the kernel gives to ours.
 */
static void clear_present(unsigned char *fp)
{
	uint64_t present;
	uint32_t rights, zero = 0, none;

	__builtin_memcpy(&present, fp + FP_PRESENT, sizeof present);
	present &= UINT64_C(1) << FP_PKRU;
	if (present && pkru_off() + sizeof rights <= fp_size(fp)) {
		/* rdpkru */
		__asm__ volatile(".byte 0x0f, 0x01, 0xee" : "=a"(rights), "=d"(none) : "c"(zero));
		__builtin_memcpy(fp + pkru_off(), &rights, sizeof rights);
	}
	__builtin_memcpy(fp + FP_PRESENT, &present, sizeof present);
}

/* Sets the floating point unit to its state at the start of a program. */
static void clear_fp(unsigned char *fp)
{
	const uint32_t mxcsr = 0x1f80;
	const uint16_t control = 0x37f;
	const bool has_more = fp_size(fp) > FP_LEGACY;

	if (!fp)
		return;
	__builtin_memset(fp, 0, FP_MXCSR);
	__builtin_memcpy(fp, &control, sizeof control);
	__builtin_memcpy(fp + FP_MXCSR, &mxcsr, sizeof mxcsr);
	if (has_more)
		clear_present(fp);
	else
		__builtin_memset(fp + FP_MXCSR + 8, 0, FP_MAGIC - FP_MXCSR - 8);
}

bool fathom_signal_frame_enter(struct fathom_program_signals *signals, ucontext_t *u,
			       const siginfo_t *info, const struct fathom_program_action *action)
{
	greg_t *r = u->uc_mcontext.gregs;
	stack_t *stack = &signals->stack;
	unsigned char *fp = (unsigned char *)u->uc_mcontext.fpregs;
	const uint64_t size = fp_size(fp);
	uint64_t sp = (uint64_t)r[REG_RSP];
	bool is_alternate = is_on(stack, sp);
	const uint64_t mask = fathom_signal_mask(u);
	const bool was_blocked = signals->is_blocked && !signals->has_waited;
	uint64_t blocks = (signals->has_waited ? signals->waited : mask) | action->mask;
	struct frame *frame;
	ucontext_t *context;
	uint64_t low, fp_at;

	sp -= RED_ZONE;
	if (action->flags & SA_ONSTACK && stack->ss_size && !is_on(stack, sp)) {
		sp = (uintptr_t)stack->ss_sp + stack->ss_size;
		is_alternate = true;
	}
	fp_at = (sp - size) & ~UINT64_C(63);
	low = ((fp_at - sizeof *frame) & ~UINT64_C(15)) - 8;
	if ((is_alternate && !lies_within(stack, low)) || !can_write(low, sp - low))
		return false;
	frame = (struct frame *)low;
	context = (ucontext_t *)(void *)frame->context;
	frame->restorer = action->restorer;
	__builtin_memcpy(frame->context, u, CONTEXT);
	frame->info = *info;
	__builtin_memcpy((void *)fp_at, fp, size);
	context->uc_stack = *stack;
	context->uc_mcontext.fpregs = fp ? (fpregset_t)fp_at : NULL;
	fathom_signal_set_mask(context,
			       mask | (signals->is_blocked ? fathom_signal_bit(SIGSYS) : 0));
	if (!(action->flags & SA_NODEFER))
		blocks |= fathom_signal_bit(info->si_signo);
	signals->is_blocked = was_blocked || blocks & fathom_signal_bit(SIGSYS);
	signals->has_waited = false;
	fathom_signal_set_mask(u, blocks & ~fathom_signal_bit(SIGSYS));
	if ((uint32_t)stack->ss_flags & AUTODISARM)
		*stack = (stack_t){ .ss_flags = SS_DISABLE };
	clear_fp(fp);
	r[REG_RIP] = (greg_t)action->handler;
	r[REG_RSP] = (greg_t)low;
	r[REG_RDI] = info->si_signo;
	r[REG_RSI] = (greg_t)(uintptr_t)&frame->info;
	r[REG_RDX] = (greg_t)(uintptr_t)context;
	r[REG_RAX] = 0;
	r[REG_CSGSFS] = (greg_t)(((uint64_t)r[REG_CSGSFS] & ~UINT64_C(0xffff)) | CODE_64);
	r[REG_EFL] &= (greg_t)~NO_FLAGS;
	return true;
}

void fathom_signal_frame_leave(struct fathom_program_signals *signals, uint64_t context,
			       const stack_t *own)
{
	const uint64_t at = context + offsetof(ucontext_t, uc_sigmask);
	const uint64_t at_stack = context + offsetof(ucontext_t, uc_stack);
	uint64_t mask, sp;
	stack_t stack;

	if (!fathom_trace_read_memory(&mask, at, MASK_SIZE) ||
	    !fathom_trace_read_memory(&stack, at_stack, sizeof stack) ||
	    !fathom_trace_read_memory(
		    &sp, context + offsetof(ucontext_t, uc_mcontext.gregs[REG_RSP]), sizeof sp))
		return;
	signals->is_blocked = mask & fathom_signal_bit(SIGSYS);
	if (signals->is_blocked) {
		mask &= ~fathom_signal_bit(SIGSYS);
		(void)fathom_trace_write_memory(at, &mask, MASK_SIZE);
	}
	/* A stack that the kernel refuses changes nothing. */
	(void)fathom_signal_stack_change(signals, sp, &stack, NULL);
	(void)fathom_trace_write_memory(at_stack, own, sizeof *own);
}

long fathom_signal_stack_change(struct fathom_program_signals *signals, uint64_t sp,
				const stack_t *stack, stack_t *old)
{
	stack_t *now = &signals->stack;
	const bool is_used = is_on(now, sp);
	const stack_t was = {
		.ss_sp = now->ss_sp,
		.ss_size = now->ss_size,
		.ss_flags =
			(int)((uint32_t)now->ss_flags & AUTODISARM) | (!now->ss_size ? SS_DISABLE
								       : is_used     ? SS_ONSTACK
										     : 0),
	};
	uint32_t mode;

	if (old)
		*old = was;
	if (!stack)
		return 0;
	mode = (uint32_t)stack->ss_flags & ~AUTODISARM;
	if (is_used)
		return -EPERM;
	if (mode != 0 && mode != SS_ONSTACK && mode != SS_DISABLE)
		return -EINVAL;
	if (mode != SS_DISABLE && stack->ss_size < SMALLEST_STACK)
		return -ENOMEM;
	*now = *stack;
	if (mode == SS_DISABLE) {
		now->ss_sp = NULL;
		now->ss_size = 0;
	}
	return 0;
}
