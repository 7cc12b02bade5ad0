/* SPDX-License-Identifier: MIT */
#include "host/trace/syscall_stacks.h"

#include <elf.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "host/events/stack_frames.h"
#include "host/stack/stopped.h"
#include "host/trace/program.h"

struct fathom_syscall_stacks {
	struct fathom *session;
	struct fathom_syscall_set last;  /* calls that end their caller */
	struct fathom_syscall_set moves; /* calls that may change where code is */
	struct fathom_stopped_naming naming;
	struct fathom_stack_frames frames;
	struct fathom_stopped_stack stack; /* that was read last */
};

/* Gives the frame that @answer names its number in the frames of the run. */
static bool name(void *data, const struct fathom_answer *answer, uint64_t file_offset,
		 uint32_t *ret_number)
{
	struct fathom_syscall_stacks *s = data;
	const struct fathom_trace_frame *frame =
		fathom_stack_frames_add(&s->frames, answer, file_offset);

	if (frame)
		*ret_number = frame->number;
	return frame != NULL;
}

struct fathom_syscall_stacks *fathom_syscall_stacks_create(struct fathom *session, bool names_only)
{
	struct fathom_syscall_stacks *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->session = session;
	s->naming = (struct fathom_stopped_naming){ .names_only = names_only,
						    .max_frames = FATHOM_SYSCALLS_FRAMES,
						    .name = name,
						    .data = s };
	if (!fathom_syscall_set_read("exit,exit_group,execve,execveat", &s->last, NULL) &&
	    !fathom_syscall_set_read("mmap,mmap2,munmap,mprotect,pkey_mprotect,mremap,"
				     "remap_file_pages,shmat,shmdt,ipc",
				     &s->moves, NULL))
		return s;
	free(s);
	return NULL;
}

void fathom_syscall_stacks_destroy(struct fathom_syscall_stacks *s)
{
	if (!s)
		return;
	fathom_stack_frames_deinit(&s->frames);
	fathom_array_free(&s->stack);
	free(s);
}

void fathom_syscall_stacks_forget(struct fathom_traced *p)
{
	fathom_stopped_destroy(p->stacks);
	p->stacks = NULL;
}

void fathom_syscall_stacks_renew(struct fathom_traced *p)
{
	if (p->stacks)
		fathom_stopped_renew(p->stacks);
}

bool fathom_syscall_stacks_is_last(const struct fathom_syscall_stacks *s,
				   const struct fathom_syscall_call *call)
{
	return fathom_syscall_set_has(&s->last, call->machine, call->number);
}

void fathom_syscall_stacks_need(const struct fathom_syscall_stacks *s,
				struct fathom_syscall_set *set)
{
	for (size_t i = 0; i < FATHOM_SYSCALL_TABLES; i++)
		for (size_t k = 0; k < FATHOM_SYSCALL_SET_NUMBERS / 64; k++)
			set->bits[i][k] |= s->moves.bits[i][k];
}

bool fathom_syscall_stacks_moves_code(const struct fathom_syscall_stacks *s,
				      const struct fathom_traced *p,
				      const struct fathom_syscall_call *call)
{
	const uint64_t *args = call->args;

	if (!fathom_syscall_set_has(&s->moves, call->machine, call->number))
		return false;
	/* Until the call ends, another thread may look at what is not known yet. */
	if (!p->stacks || fathom_stopped_is_blank(p->stacks) || call->machine != EM_X86_64)
		return true;
	switch (call->number) {
	case SYS_mmap:
	case SYS_mprotect:
	case SYS_pkey_mprotect:
		return args[2] & PROT_EXEC || fathom_stopped_has_code(p->stacks, args[0], args[1]);
	case SYS_munmap:
		return fathom_stopped_has_code(p->stacks, args[0], args[1]);
	case SYS_mremap:
		return args[3] & MREMAP_FIXED ||
		       fathom_stopped_has_code(p->stacks, args[0], args[1]);
	default:
		return true;
	}
}

struct fathom_trace_stack *fathom_syscall_stacks_read(struct fathom_syscall_stacks *s,
						      struct fathom_traced *p, pid_t tid)
{
	struct fathom_trace_stack *stack;

	if (!p->stacks)
		p->stacks = fathom_stopped_create(s->session, p->tracee.pid, &s->naming);
	if (!p->stacks || !fathom_stopped_read(p->stacks, tid, &s->stack))
		return NULL;
	stack = fathom_trace_stack_create(s->stack.n, s->stack.stop);
	for (size_t i = 0; stack && i < s->stack.n; i++) {
		const struct fathom_stopped_frame *f = &s->stack.items[i];
		struct fathom_trace_frame *to = &fathom_trace_stack_frames(stack)[i];

		*to = *s->frames.items[f->number];
		to->frame.sp = f->sp;
		to->frame.trust = f->trust;
		to->frame.is_signal_return = f->is_signal_return;
	}
	return stack;
}
