/* SPDX-License-Identifier: MIT */
#include "host/tracer/recovery_frame.h"

#include <cpuid.h>
#include <elf.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "host/code/x86_64/x86_instructions.h"

/* The most bytes of the registers' extended state, without tiles. */
#define MOST_STATE 4096

/* Tiles (AMX) are a part that a process must ask for. */
#define TILES (UINT64_C(3) << 17)

/* Of extended state as handlers' frames have it (arch/x86/include/uapi/asm/sigcontext.h). */
enum { MAGIC1 = 0x46505853, MAGIC2 = 0x46505845, SOFTWARE_OFF = 464, FIRST_PART = 576 };

/* uc_flags: there is extended state; ss is saved, and is to be restored. */
enum { FLAGS = 1 | 2 | 4 };

/* No such flag: rt_sigreturn() leaves the signal stack as it is then. */
#define NO_SIGNAL_STACK 0x7fffffff

/* struct ucontext of the kernel, x86-64. */
struct frame {
	uint64_t flags;
	uint64_t link;
	uint64_t stack;
	uint64_t stack_flags;
	uint64_t stack_size;
	uint64_t r8_to_r15[8];
	uint64_t rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags;
	uint16_t cs, gs, fs, ss;
	uint64_t err, trapno, oldmask, cr2;
	uint64_t state; /* address */
	uint64_t reserved[8];
	uint64_t mask; /* of signals */
};

_Static_assert(offsetof(struct frame, mask) == 296, "as the kernel has it");

struct software {
	uint32_t magic1;
	uint32_t extended_size; /* with MAGIC2 */
	uint64_t features;
	uint32_t size;
	uint32_t padding[7];
};

void fathom_recovery_frame_look(struct fathom_recovery_code *code, const uint8_t *bytes,
				size_t size, uint64_t avma)
{
	static const uint8_t call[] = { 0x0f, 0x05, FATHOM_X86_RET };
	const uint8_t *at;

	at = code->call ? NULL : memmem(bytes, size, call, sizeof call);
	if (at)
		code->call = avma + (uint64_t)(at - bytes);
	at = code->restore ? NULL
			   : memmem(bytes, size, fathom_x86_sigreturn, sizeof fathom_x86_sigreturn);
	if (at)
		code->restore = avma + (uint64_t)(at - bytes);
}

/* Returns how many bytes extended state with @features takes. */
static uint32_t state_size(uint64_t features)
{
	uint32_t most = FIRST_PART;

	for (unsigned i = 2; i < 63; i++) {
		unsigned size, off, c, d;

		if (!(features >> i & 1))
			continue;
		__cpuid_count(0xd, i, size, off, c, d);
		if (off + size > most)
			most = off + size;
	}
	return most;
}

/* Reads the extended state of @tid as frames have it; returns its size, 0 if there is none. */
static uint32_t read_state(pid_t tid, uint8_t *bytes)
{
	struct iovec io = { bytes, MOST_STATE };
	struct software software = { .magic1 = MAGIC1 };
	const uint32_t magic2 = MAGIC2;
	uint64_t used;

	if (ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &io) || io.iov_len < FIRST_PART)
		return 0;
	memcpy(&software.features, bytes + SOFTWARE_OFF, sizeof software.features);
	memcpy(&used, bytes + 512, sizeof used);
	if (used & TILES)
		return 0;
	software.features &= ~TILES;
	software.size = state_size(software.features);
	if (software.size > io.iov_len || software.size + sizeof magic2 > MOST_STATE)
		return 0;
	software.extended_size = software.size + (uint32_t)sizeof magic2;
	memcpy(bytes + SOFTWARE_OFF, &software, sizeof software);
	memcpy(bytes + software.size, &magic2, sizeof magic2);
	return software.extended_size;
}

static struct frame frame_of(const struct user_regs_struct *u, uint64_t state, uint64_t mask)
{
	return (struct frame){
		.flags = FLAGS,
		.stack_flags = NO_SIGNAL_STACK,
		.r8_to_r15 = { u->r8, u->r9, u->r10, u->r11, u->r12, u->r13, u->r14, u->r15 },
		.rdi = u->rdi,
		.rsi = u->rsi,
		.rbp = u->rbp,
		.rbx = u->rbx,
		.rdx = u->rdx,
		.rax = u->rax,
		.rcx = u->rcx,
		.rsp = u->rsp,
		.rip = u->rip,
		.eflags = u->eflags,
		.cs = (uint16_t)u->cs,
		.ss = (uint16_t)u->ss,
		.state = state,
		.mask = mask,
	};
}

bool fathom_recovery_frame_make(struct fathom_tracee *t, pid_t tid,
				const struct fathom_recovery_code *code, uint64_t low,
				uint64_t high)
{
	uint8_t state[MOST_STATE] = { 0 };
	struct user_regs_struct regs;
	struct frame frame;
	uint64_t state_at;
	uint64_t frame_at;
	uint64_t mask;
	uint32_t size;

	if (!code->call || !code->restore || !fathom_tracee_get(tid, &regs) ||
	    ptrace(PTRACE_GETSIGMASK, tid, sizeof mask, &mask))
		return false;
	size = read_state(tid, state);
	state_at = (high - size) & ~UINT64_C(63);
	frame_at = (state_at - sizeof frame) & ~UINT64_C(15);
	if (!size || high < low + FATHOM_RECOVERY_FRAME_SIZE)
		return false;
	/* From its beginning: rt_sigreturn() forgets how long a call has waited. */
	fathom_tracee_again(&regs);
	frame = frame_of(&regs, state_at, mask);
	if (!fathom_tracee_write(t, state_at, state, size) ||
	    !fathom_tracee_write(t, frame_at, &frame, sizeof frame) ||
	    !fathom_tracee_write(t, frame_at - 8, &code->restore, 8))
		return false;
	t->syscall_avma = code->call;
	t->call_sp = frame_at - 8;
	return true;
}
