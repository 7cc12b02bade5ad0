/* SPDX-License-Identifier: MIT */
#include "trace/filter_look.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "trace/syscall_hook.h"
#include "trace/linked.h"
#include "trace/machine.h"

#define PAGE UINT64_C(4096)

/* An address that stands for all. */
#define SOME_AVMA UINT64_C(0x7f0000001000)

/* The machine of a filter. */
struct machine {
	const struct seccomp_data *data;
	uint32_t a;
	uint32_t x;
	uint32_t words[BPF_MEMWORDS];
};

struct filter {
	uint64_t code; /* avma */
	uint32_t n;
};

bool fathom_filter_is_set_by(uint64_t number, const uint64_t args[6], uint64_t *ret_program)
{
	*ret_program = args[2];
	return (number == SYS_seccomp && (uint32_t)args[0] == SECCOMP_SET_MODE_FILTER) ||
	       (number == SYS_prctl && (uint32_t)args[0] == PR_SET_SECCOMP &&
		args[1] == SECCOMP_MODE_FILTER);
}

/* Reads instruction @i; false if that cannot be done. */
static bool fetch(const struct filter *f, uint32_t i, struct sock_filter *ret)
{
	const uint64_t at = f->code + i * sizeof *ret;
	uint64_t fault = 0;
	uint64_t word;

	if (i >= f->n)
		return false;
	if (fathom_trace_is_filtered())
		return at >= PAGE && fathom_trace_read_memory(ret, at, sizeof *ret);
	word = fathom_trace_load(at, &fault);
	__builtin_memcpy(ret, &word, sizeof *ret);
	return !fault;
}

/* Returns the word at @off of what a filter looks at. */
static uint32_t word_at(const struct seccomp_data *data, uint32_t off)
{
	uint32_t word = 0;

	if (off <= sizeof *data - sizeof word)
		__builtin_memcpy(&word, (const char *)data + off, sizeof word);
	return word;
}

/* Loads, or stores; false if @in is no such instruction. */
static bool move(struct machine *m, const struct sock_filter *in)
{
	uint32_t *cell = &m->words[in->k % BPF_MEMWORDS];

	switch (in->code) {
	case BPF_LD | BPF_W | BPF_ABS:
		m->a = word_at(m->data, in->k);
		return true;
	case BPF_LD | BPF_W | BPF_LEN:
		m->a = sizeof *m->data;
		return true;
	case BPF_LDX | BPF_W | BPF_LEN:
		m->x = sizeof *m->data;
		return true;
	case BPF_LD | BPF_IMM:
		m->a = in->k;
		return true;
	case BPF_LDX | BPF_IMM:
		m->x = in->k;
		return true;
	case BPF_LD | BPF_MEM:
		m->a = *cell;
		return true;
	case BPF_LDX | BPF_MEM:
		m->x = *cell;
		return true;
	case BPF_ST:
		*cell = m->a;
		return true;
	case BPF_STX:
		*cell = m->x;
		return true;
	case BPF_MISC | BPF_TAX:
		m->x = m->a;
		return true;
	case BPF_MISC | BPF_TXA:
		m->a = m->x;
		return true;
	default:
		return false;
	}
}

/* Calculates; false if @in does not, or divides by 0, for which the kernel returns 0. */
static bool calculate(struct machine *m, const struct sock_filter *in)
{
	const uint32_t by = in->code & BPF_X ? m->x : in->k;

	if (BPF_CLASS(in->code) != BPF_ALU)
		return false;
	switch (BPF_OP(in->code)) {
	case BPF_ADD:
		m->a += by;
		return true;
	case BPF_SUB:
		m->a -= by;
		return true;
	case BPF_MUL:
		m->a *= by;
		return true;
	case BPF_DIV:
		if (by)
			m->a /= by;
		return by != 0;
	case BPF_AND:
		m->a &= by;
		return true;
	case BPF_OR:
		m->a |= by;
		return true;
	case BPF_XOR:
		m->a ^= by;
		return true;
	case BPF_LSH:
		m->a <<= by % 32;
		return true;
	case BPF_RSH:
		m->a >>= by % 32;
		return true;
	case BPF_NEG:
		m->a = -m->a;
		return true;
	default:
		return false;
	}
}

/* Returns how many instructions jump @in goes over. */
static uint32_t jump(const struct machine *m, const struct sock_filter *in)
{
	const uint32_t with = in->code & BPF_X ? m->x : in->k;
	bool is_true = false;

	switch (BPF_OP(in->code)) {
	case BPF_JA:
		return in->k;
	case BPF_JEQ:
		is_true = m->a == with;
		break;
	case BPF_JGT:
		is_true = m->a > with;
		break;
	case BPF_JGE:
		is_true = m->a >= with;
		break;
	case BPF_JSET:
		is_true = m->a & with;
		break;
	default:
		break;
	}
	return is_true ? in->jt : in->jf;
}

/* Returns whether @f lets the call be made that @data reports. Jumps lead forward only. */
static bool lets(const struct filter *f, const struct seccomp_data *data)
{
	struct machine m = { .data = data };
	struct sock_filter in;
	uint32_t result = 0;

	for (uint32_t i = 0; fetch(f, i, &in); i++) {
		if (BPF_CLASS(in.code) == BPF_RET) {
			result = BPF_RVAL(in.code) == BPF_A ? m.a : in.k;
			break;
		}
		if (BPF_CLASS(in.code) == BPF_JMP) {
			const uint32_t over = jump(&m, &in);

			/* The kernel refuses such a filter. */
			if (over >= f->n - i)
				break;
			i += over;
		} else if (!move(&m, &in) && !calculate(&m, &in)) {
			break;
		}
	}
	result &= SECCOMP_RET_ACTION_FULL;
	return result == SECCOMP_RET_ALLOW || result == SECCOMP_RET_LOG;
}

/* Returns whether some instruction of @f loads the instruction pointer. */
static bool asks_place(const struct filter *f)
{
	const uint32_t low = offsetof(struct seccomp_data, instruction_pointer);
	struct sock_filter in;

	for (uint32_t i = 0; fetch(f, i, &in); i++)
		if (in.code == (BPF_LD | BPF_W | BPF_ABS) && in.k - low < sizeof(uint64_t))
			return true;
	return false;
}

/* Returns whether @f lets all be made that the runtime calls beside what the program does. */
static bool lets_others(const struct filter *f)
{
	const uint64_t at = SOME_AVMA;
	const uint64_t pid = (uint64_t)fathom_trace_syscall_kernel(SYS_getpid, 0, 0, 0, 0);
	const uint64_t tid = (uint64_t)fathom_trace_syscall_kernel(SYS_gettid, 0, 0, 0, 0);
	const struct seccomp_data calls[] = {
		{ .nr = SYS_getpid },
		{ .nr = SYS_gettid },
		{ .nr = SYS_getuid },
		{ .nr = SYS_process_vm_readv, .args = { tid, at, 1, at, 1 } },
		{ .nr = SYS_process_vm_writev, .args = { tid, at, 1, at, 1 } },
		{ .nr = SYS_rt_sigprocmask, .args = { SIG_BLOCK, at, at, 8 } },
		{ .nr = SYS_rt_sigprocmask, .args = { SIG_UNBLOCK, at, at, 8 } },
		{ .nr = SYS_rt_sigprocmask, .args = { SIG_SETMASK, at, 0, 8 } },
		{ .nr = SYS_rt_sigaction, .args = { SIGSYS, at, 0, 8 } },
		{ .nr = SYS_rt_tgsigqueueinfo, .args = { pid, tid, SIGSYS, at } },
		{ .nr = SYS_tgkill, .args = { pid, tid, SIGSYS } },
		{ .nr = SYS_kill, .args = { pid } },
		{ .nr = SYS_futex, .args = { at, FUTEX_WAIT, 1, at } },
		{ .nr = SYS_futex, .args = { at, FUTEX_WAKE, INT32_MAX } },
	};

	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		struct seccomp_data data = calls[i];

		data.arch = AUDIT_ARCH_X86_64;
		if (!lets(f, &data))
			return false;
	}
	return true;
}

uint32_t fathom_filter_look(uint64_t program)
{
	const struct seccomp_data leave = { .nr = SYS_rt_sigreturn, .arch = AUDIT_ARCH_X86_64 };
	const struct seccomp_data arming = { .nr = SYS_prctl,
					     .arch = AUDIT_ARCH_X86_64,
					     .args = { PR_SET_SYSCALL_USER_DISPATCH,
						       PR_SYS_DISPATCH_ON, SOME_AVMA, 4096,
						       SOME_AVMA } };
	const struct seccomp_data probing = { .nr = SYS_rt_sigprocmask,
					      .arch = AUDIT_ARCH_X86_64,
					      .args = { UINT64_MAX, SOME_AVMA, 0, 8 } };
	const struct seccomp_data masking = { .nr = SYS_rt_sigprocmask,
					      .arch = AUDIT_ARCH_X86_64,
					      .args = { SIG_SETMASK, SOME_AVMA, 0, 8 } };
	const struct seccomp_data writing = { .nr = SYS_rt_sigprocmask,
					      .arch = AUDIT_ARCH_X86_64,
					      .args = { SIG_BLOCK, 0, SOME_AVMA, 8 } };
	const struct seccomp_data counting = { .nr = SYS_newfstatat,
					       .arch = AUDIT_ARCH_X86_64,
					       .args = { (uint64_t)AT_FDCWD, SOME_AVMA,
							 SOME_AVMA } };
	const struct seccomp_data disarming = { .nr = SYS_prctl,
						.arch = AUDIT_ARCH_X86_64,
						.args = { PR_SET_SYSCALL_USER_DISPATCH,
							  PR_SYS_DISPATCH_OFF } };
	const struct seccomp_data staging = { .nr = SYS_sigaltstack,
					      .arch = AUDIT_ARCH_X86_64,
					      .args = { SOME_AVMA } };
	const struct seccomp_data mapping = { .nr = SYS_mmap,
					      .arch = AUDIT_ARCH_X86_64,
					      .args = { 0, 4096, PROT_READ | PROT_WRITE,
							MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
							UINT64_MAX } };
	struct sock_fprog fprog;
	struct filter f;
	uint32_t found = 0;

	fathom_trace_forget_memory();
	if (program < PAGE || !fathom_trace_read_memory(&fprog, program, sizeof fprog) ||
	    !fprog.len || fprog.len > BPF_MAXINSNS)
		return 0;
	f = (struct filter){ (uintptr_t)fprog.filter, fprog.len };
	if (asks_place(&f))
		found |= FATHOM_FILTER_ASKS_PLACE;
	if (!lets(&f, &leave))
		found |= FATHOM_FILTER_FORBIDS_RETURN;
	if (!lets(&f, &arming) || !lets(&f, &staging) || !lets(&f, &mapping))
		found |= FATHOM_FILTER_FORBIDS_ARMING;
	if (!lets(&f, &counting) || !lets(&f, &disarming))
		found |= FATHOM_FILTER_FORBIDS_LEAVING;
	if (!lets(&f, &probing) || !lets(&f, &masking) || !lets(&f, &writing))
		found |= FATHOM_FILTER_FORBIDS_PROBING;
	/* Beside another filter, they may be forbidden already. */
	if (fathom_trace_is_filtered() || !lets_others(&f))
		found |= FATHOM_FILTER_FORBIDS_OTHERS;
	return found;
}
