/* SPDX-License-Identifier: MIT */
#include "host/stack/regset.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "host/space/user/prstatus.h"

/* The kernel's own result of a call that it restarts unless a handler runs (linux/errno.h). */
#define KERNEL_ERESTARTNOHAND 514

/* The layout of one machine's registers, by their indexes. */
struct layout {
	size_t size; /* bytes */
	uint16_t machine;
	uint8_t word;
	uint8_t result;      /* of a system call */
	int8_t number;       /* of the call; negative value: none; -1: not here */
	uint8_t instruction; /* bytes of the one that makes the call */
	uint8_t pc;
	uint8_t sp;
	uint8_t arguments[6];
};

static const struct layout layouts[] = {
	{ 27 * 8, EM_X86_64, 8, 10, 15, 2, 16, 19, { 14, 13, 12, 7, 9, 8 } },
	{ 17 * 4, EM_386, 4, 6, 11, 2, 12, 15, { 0, 1, 2, 3, 4, 5 } },
	{ 34 * 8, EM_AARCH64, 8, 0, -1, 4, 32, 31, { 0, 1, 2, 3, 4, 5 } },
};

static const struct layout *layout_of(const struct fathom_regset *r)
{
	for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
		if (layouts[i].size == r->size)
			return &layouts[i];
	return NULL;
}

bool fathom_regset_get(int32_t tid, struct fathom_regset *ret)
{
	struct iovec iov = { ret->bytes, sizeof ret->bytes };

	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &iov))
		return false;
	ret->size = iov.iov_len;
	return true;
}

bool fathom_regset_set(int32_t tid, const struct fathom_regset *r)
{
	struct iovec iov = { (void *)(uintptr_t)r->bytes, r->size };

	return !ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &iov);
}

/* Returns register @i, sign-extended: results of calls are negative on failure. */
static int64_t get(const struct fathom_regset *r, const struct layout *l, int i)
{
	const uint8_t *at = r->bytes + (size_t)i * l->word;

	return l->word == 8 ? (int64_t)load_u64(at, false) : (int32_t)load_u32(at, false);
}

static void set(struct fathom_regset *r, const struct layout *l, int i, uint64_t value)
{
	const uint32_t half = (uint32_t)value;

	if (l->word == 8)
		memcpy(r->bytes + (size_t)i * 8, &value, 8);
	else
		memcpy(r->bytes + (size_t)i * 4, &half, 4);
}

static uint64_t get_unsigned(const struct fathom_regset *r, const struct layout *l, int i)
{
	return l->word == 8 ? (uint64_t)get(r, l, i) : (uint32_t)get(r, l, i);
}

/*
 * Returns whether a thread is still in the system call that @copy says. The pc is behind the call,
 * or before it if the kernel is about to restart it (aarch64 goes back before the stop).
 */
static bool is_in_call(const struct fathom_regset *r, const struct layout *l,
		       const struct fathom_thread_copy *copy)
{
	const uint64_t pc = get_unsigned(r, l, l->pc);
	bool is = copy->in_syscall && get_unsigned(r, l, l->sp) == copy->registers.sp &&
		  (pc == copy->registers.pc || pc + l->instruction == copy->registers.pc);

	for (int i = 1; i < 6 && is; i++)
		is = get_unsigned(r, l, l->arguments[i]) == copy->arguments[i];
	return is;
}

bool fathom_regset_take(const struct fathom_regset *r, struct fathom_thread_copy *copy)
{
	const struct layout *l = layout_of(r);

	if (!l)
		return false;
	if (l->number < 0) {
		copy->in_syscall = is_in_call(r, l, copy);
	} else {
		copy->syscall = get(r, l, l->number);
		copy->in_syscall = copy->syscall >= 0;
		for (int i = 0; i < 6; i++)
			copy->arguments[i] = get_unsigned(r, l, l->arguments[i]);
	}
	if (!copy->in_syscall) {
		copy->syscall = -1;
		memset(copy->arguments, 0, sizeof copy->arguments);
	}
	return fathom_prstatus_general(
		l->machine, false, (struct fathom_bytes){ r->bytes, r->size }, &copy->registers);
}

bool fathom_regset_is_interrupted(const struct fathom_regset *r,
				  const struct fathom_thread_copy *copy)
{
	const struct layout *l = layout_of(r);

	return l && copy->in_syscall && get(r, l, l->result) == -EINTR;
}

/*
 * On x86 the kernel looks at the result after the stop: it restarts the call, unless a handler of a
 * signal runs now, which makes the result EINTR. So no signal is missed that comes meanwhile. On
 * aarch64 the kernel has looked before: the first argument and the instruction are put back, so the
 * caller looks for signals.
 */
void fathom_regset_restart(struct fathom_regset *r, const struct fathom_thread_copy *copy)
{
	const struct layout *l = layout_of(r);

	if (!l)
		return;
	if (l->number >= 0) {
		set(r, l, l->result, (uint64_t)-KERNEL_ERESTARTNOHAND);
	} else {
		set(r, l, l->result, copy->arguments[0]);
		set(r, l, l->pc, get_unsigned(r, l, l->pc) - l->instruction);
	}
}
