/* SPDX-License-Identifier: MIT */
#include "host/trace/scratch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "host/code/x86_64/x86_instructions.h"
#include "host/trace/program_syscalls.h"

/* Bytes of a mapping that are searched at once. */
#define LONGEST_LOOK (UINT64_C(1) << 21)

/* Bytes below the stack pointer that code may use. */
#define RED_ZONE 128

#define SCRATCH_SIZE (FATHOM_SCRATCH_FREE + FATHOM_RECOVERY_FRAME_SIZE)

static bool is_named(const struct fathom_mapping *m, const char *name)
{
	return m->name.size == strlen(name) && !memcmp(m->name.data, name, m->name.size);
}

/*
 * Returns where the memory begins that is free below @sp, because it is the rest of a stack: that
 * of the first thread, or one that a guard page ends. 0: who owns it is not known.
 */
static uint64_t free_below(const struct fathom_maps *maps, uint64_t sp)
{
	const size_t i = fathom_maps_at(maps, sp);
	const struct fathom_mapping *m = i < maps->n ? &maps->items[i] : NULL;
	const bool has_guard = m && i && m[-1].end == m->start && !m[-1].readable &&
			       !m[-1].writable && !m[-1].executable;

	if (!m || !m->writable || m->inode || !(has_guard || is_named(m, "[stack]")) ||
	    sp < m->start + FATHOM_RECOVERY_FRAME_SIZE + RED_ZONE)
		return 0;
	return m->start;
}

int fathom_scratch_fitness(pid_t tid, const struct fathom_maps *maps)
{
	struct user_regs_struct regs;

	if (!fathom_tracee_get(tid, &regs))
		return -1;
	/* A call that it is in would have to be made again. */
	return 2 * (free_below(maps, regs.rsp) != 0) + ((int64_t)regs.orig_rax < 0);
}

/* Finds code that calls the kernel, and code for a way back, in what is no memory of a tracer. */
static void find_code(struct fathom_scratch *s, const struct fathom_maps *maps)
{
	uint8_t *bytes = malloc(LONGEST_LOOK);

	/* The vDSO has a call, and so has each libc: they are at the end. */
	for (size_t i = maps->n; bytes && i-- && !(s->call && s->way.call && s->way.restore);) {
		const struct fathom_mapping *m = &maps->items[i];
		const uint64_t size =
			m->end - m->start < LONGEST_LOOK ? m->end - m->start : LONGEST_LOOK;
		const uint8_t *at;

		/* The memory above is the kernel's. */
		if (!m->executable || m->start >> 47 || !(m->inode || is_named(m, "[vdso]")) ||
		    !fathom_tracee_read(&s->process->tracee, m->start, bytes, size))
			continue;
		at = memmem(bytes, size, fathom_x86_syscall, sizeof fathom_x86_syscall);
		if (at && !s->call)
			s->call = m->start + (uint64_t)(at - bytes);
		fathom_recovery_frame_look(&s->way, bytes, size, m->start);
	}
	free(bytes);
}

/*
 * Makes calls run on the thread's own stack, if that has room, else without memory: then a thread
 * whose tracer is killed just now does not find its way back.
 */
static void use_own_stack(struct fathom_scratch *s)
{
	struct fathom_tracee *t = &s->process->tracee;

	t->syscall_avma = s->call;
	t->call_sp = 0;
	if (s->high)
		(void)fathom_recovery_frame_make(t, s->tid, &s->way, s->low, s->high);
}

fathom_err fathom_scratch_map(struct fathom_traced *p, pid_t tid, const struct fathom_maps *maps,
			      struct fathom_scratch *ret, struct fathom_errinfo *reterr)
{
	struct user_regs_struct regs;
	long at;

	*ret = (struct fathom_scratch){ .process = p, .tid = tid };
	find_code(ret, maps);
	if (!ret->call)
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
				   "it has no instruction that calls the kernel");
	if (fathom_tracee_get(tid, &regs))
		ret->low = free_below(maps, regs.rsp);
	if (ret->low)
		ret->high = regs.rsp - RED_ZONE;
	use_own_stack(ret);
	at = fathom_program_map(&p->tracee, tid, 0, SCRATCH_SIZE, PROT_READ | PROT_WRITE);
	if (fathom_program_is_error(at))
		return fathom_program_fail_syscall(reterr, "it cannot map memory (mmap)", at);
	ret->avma = (uint64_t)at;
	(void)fathom_recovery_frame_make(&p->tracee, tid, &ret->way,
					 ret->avma + FATHOM_SCRATCH_FREE, ret->avma + SCRATCH_SIZE);
	return FATHOM_OK;
}

void fathom_scratch_note(const struct fathom_scratch *s)
{
	struct fathom_traced *p = s->process;

	if (!p->mapped.avma)
		return;
	fathom_runtime_maps_add(&p->mapped, s->avma, SCRATCH_SIZE, FATHOM_TRACE_MAPPED_DATA);
	(void)fathom_runtime_maps_write(&p->tracee, &p->mapped);
}

void fathom_scratch_unmap(struct fathom_scratch *s)
{
	struct fathom_tracee *t = &s->process->tracee;

	use_own_stack(s);
	fathom_runtime_maps_remove(&s->process->mapped, s->avma);
	if (s->process->mapped.avma)
		(void)fathom_runtime_maps_write(t, &s->process->mapped);
	(void)fathom_tracee_call(t, s->tid, SYS_munmap, (uint64_t[6]){ s->avma, SCRATCH_SIZE });
	t->syscall_avma = 0;
	t->call_sp = 0;
}
