/* SPDX-License-Identifier: MIT */
#include "host/tracer/regset.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "safe/base/bytes.h"

/* The kernel's own result of a call that it restarts unless a handler runs (linux/errno.h). */
#define KERNEL_ERESTARTNOHAND 514

/* The layout of one machine's registers, by their indexes. */
struct layout {
	size_t size; /* bytes */
	uint16_t machine;
	uint8_t word;
	uint8_t result; /* of a system call */
	/*
	 * Register that has the call's number, and is negative outside of calls; -1: none tells
	 * that
	 */
	int8_t number;
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

bool fathom_regset_get(pid_t tid, struct fathom_regset *ret)
{
	struct iovec iov = { ret->bytes, sizeof ret->bytes };

	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &iov))
		return false;
	ret->size = iov.iov_len;
	return true;
}

bool fathom_regset_set(pid_t tid, const struct fathom_regset *r)
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

struct fathom_regset_call fathom_regset_call(const struct fathom_regset *r)
{
	const struct layout *l = layout_of(r);
	struct fathom_regset_call c = { .number = -1 };

	if (!l)
		return c;
	c.machine = l->machine;
	c.size = l->instruction;
	c.has_number = l->number >= 0;
	c.number = c.has_number ? get(r, l, l->number) : -1;
	c.result = get(r, l, l->result);
	for (int i = 0; i < 6; i++)
		c.arguments[i] = get_unsigned(r, l, l->arguments[i]);
	c.pc = get_unsigned(r, l, l->pc);
	c.sp = get_unsigned(r, l, l->sp);
	return c;
}

/*
 * On x86 the kernel looks at the result after the stop: it restarts the call, unless a handler of a
 * signal runs now, which makes the result EINTR. So no signal is missed that comes meanwhile. On
 * aarch64 the kernel has looked before: the first argument and the instruction are put back, so the
 * caller looks for signals.
 */
bool fathom_regset_restart(pid_t tid, struct fathom_regset *r, const struct fathom_blocking_call *c)
{
	const struct layout *l = layout_of(r);

	if (!l || get(r, l, l->result) != -EINTR ||
	    fathom_blocking_call_effect(c) != FATHOM_STOP_EINTR)
		return false;
	if (l->number >= 0) {
		set(r, l, l->result, (uint64_t)-KERNEL_ERESTARTNOHAND);
	} else {
		set(r, l, l->result, c->arguments[0]);
		set(r, l, l->pc, get_unsigned(r, l, l->pc) - l->instruction);
	}
	return fathom_regset_set(tid, r);
}

void fathom_regset_repair(pid_t pid, pid_t tid, int tasks, const struct fathom_reader *memory)
{
	struct fathom_blocking_call blocking;
	struct fathom_regset_call call;
	struct fathom_regset r;
	char name[16];

	if (!fathom_regset_get(tid, &r))
		return;
	call = fathom_regset_call(&r);
	if (call.number < 0 || call.result != -EINTR)
		return;
	(void)snprintf(name, sizeof name, "%d", (int)tid);
	blocking = (struct fathom_blocking_call){
		.machine = call.machine,
		.number = call.number,
		.arguments = call.arguments,
		.task = openat(tasks, name, O_PATH | O_DIRECTORY | O_CLOEXEC),
		.process = (int)syscall(SYS_pidfd_open, pid, 0),
		.memory = memory,
	};
	(void)fathom_regset_restart(tid, &r, &blocking);
	if (blocking.task >= 0)
		close(blocking.task);
	if (blocking.process >= 0)
		close(blocking.process);
}
