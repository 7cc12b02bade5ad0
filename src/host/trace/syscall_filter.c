/* SPDX-License-Identifier: MIT */
#include "host/trace/syscall_filter.h"

#include <elf.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stddef.h>

#include "safe/trace/syscall_ring.h"

/* The action by which calls stop. */
#define STOP (SECCOMP_RET_TRACE | FATHOM_SYSCALL_FILTER_DATA)

static void add(struct fathom_syscall_filter *f, struct sock_filter code)
{
	if (f->program.len < FATHOM_SYSCALL_FILTER_SIZE)
		f->code[f->program.len++] = code;
}

static void add_return(struct fathom_syscall_filter *f, uint32_t what)
{
	add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, what));
}

/* A jump to what tells calls of the runtime from others, until it is known where that is. */
#define TO_EXEMPT UINT32_MAX

/* Adds what is done with a call that counts, or does not. */
static void add_choice(struct fathom_syscall_filter *f, bool is_in, bool is_exempt)
{
	if (is_in && is_exempt)
		add(f, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, TO_EXEMPT));
	else
		add_return(f, is_in ? STOP : SECCOMP_RET_ALLOW);
}

/*
 * Adds what stops at the calls of @machine in @set, whose number is loaded, and lets the others be.
 * With @is_exempt, some of those in @set are made by the runtime.
 */
static void add_calls(struct fathom_syscall_filter *f, const struct fathom_syscall_set *set,
		      uint32_t machine, bool is_exempt)
{
	uint32_t first = 0;

	/* Each stretch of numbers that are treated alike is one comparison with its end. */
	for (uint32_t i = 1; i <= FATHOM_SYSCALL_SET_NUMBERS; i++) {
		const bool is_in = fathom_syscall_set_has(set, machine, first);

		if (i < FATHOM_SYSCALL_SET_NUMBERS &&
		    fathom_syscall_set_has(set, machine, i) == is_in)
			continue;
		add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, i, 1, 0));
		add_choice(f, is_in, is_exempt);
		first = i;
	}
	add_choice(f, set->has_unknown, is_exempt);
}

/* Returns how many instructions add_calls() makes. */
static unsigned short size_of(const struct fathom_syscall_set *set, uint32_t machine)
{
	unsigned short n = 3;

	for (uint32_t i = 1; i < FATHOM_SYSCALL_SET_NUMBERS; i++)
		if (fathom_syscall_set_has(set, machine, i) !=
		    fathom_syscall_set_has(set, machine, i - 1))
			n += 2;
	return n;
}

/*
 * Lets the calls of the @size first bytes of the runtime be, and has jumps to TO_EXEMPT lead here.
 */
static void add_exempt(struct fathom_syscall_filter *f, uint64_t size)
{
	const uint32_t off = offsetof(struct seccomp_data, instruction_pointer);
	const uint64_t low = FATHOM_TRACE_FIXED_IMAGE;

	for (uint32_t i = 0; i < f->program.len; i++)
		if (f->code[i].code == (BPF_JMP | BPF_JA) && f->code[i].k == TO_EXEMPT)
			f->code[i].k = f->program.len - i - 1;
	add(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, off + 4));
	add(f,
	    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(low >> 32), 0, 4));
	add(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, off));
	add(f, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_SUB | BPF_K, (uint32_t)low));
	add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)size, 1, 0));
	add_return(f, SECCOMP_RET_ALLOW);
}

void fathom_syscall_filter_make(const struct fathom_syscall_set *set, uint64_t exempt,
				struct fathom_syscall_filter *ret)
{
	static const struct {
		uint32_t arch;
		uint32_t machine;
	} arches[] = { { AUDIT_ARCH_X86_64, EM_X86_64 }, { AUDIT_ARCH_I386, EM_386 } };

	ret->program = (struct sock_fprog){ .len = 0, .filter = ret->code };
	/*
	 * Where a call is made from is asked last: a number that is let be whatever else is said of
	 * it is one for which the kernel does not run the filter.
	 */
	for (size_t i = 0; i < sizeof arches / sizeof *arches; i++) {
		add(ret, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						      offsetof(struct seccomp_data, arch)));
		add(ret,
		    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, arches[i].arch, 1, 0));
		/* A jump of its own: the other side is farther than a comparison leads. */
		add(ret, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA,
						      size_of(set, arches[i].machine) + 2u));
		add(ret, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						      offsetof(struct seccomp_data, nr)));
		add(ret,
		    (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~FATHOM_SYSCALL_X32));
		add_calls(ret, set, arches[i].machine, exempt && arches[i].machine == EM_X86_64);
	}
	add_return(ret, STOP);
	if (!exempt)
		return;
	add_exempt(ret, exempt);
	add_return(ret, STOP);
}

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
/* The instruction with number @at goes to the last one if what is loaded is @value. */
#define IF(value, at) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, FATHOM_STRICT_FILTER_SIZE - 2 - at, 0)

const struct sock_filter fathom_strict_filter[FATHOM_STRICT_FILTER_SIZE] = {
	[0] = LOAD(arch),
	[1] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 6),
	[2] = LOAD(nr),
	[3] = IF(0, 3),  /* read() */
	[4] = IF(1, 4),  /* write() */
	[5] = IF(60, 5), /* exit() */
	[6] = IF(15, 6), /* rt_sigreturn() */
	[7] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | FATHOM_STRICT_FILTER_DATA),
	[8] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_I386, 0, 5),
	[9] = LOAD(nr),
	[10] = IF(3, 10),
	[11] = IF(4, 11),
	[12] = IF(1, 12),
	[13] = IF(119, 13), /* sigreturn() */
	[14] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | FATHOM_STRICT_FILTER_DATA),
	[15] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};
