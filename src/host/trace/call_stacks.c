/* SPDX-License-Identifier: MIT */
#include "host/trace/call_stacks.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "host/base/progress.h"
#include "host/events/stack_frames.h"
#include "host/stack/capture_work.h"
#include "host/stack/regset.h"
#include "host/stack/walk.h"
#include "host/symbolize/answers.h"
#include "host/target/space/space.h"
#include "host/trace/program.h"

struct fathom_call_stacks {
	struct fathom *session;
	bool names_only;
	struct fathom_syscall_set last;  /* calls that end their caller */
	struct fathom_syscall_set moves; /* calls that may change where code is */
	struct fathom_stack_frames frames;
	struct fathom_walk_frames walked; /* the stack at hand */
	/* those of its pcs that have no names yet */
	struct fathom_u64_array pcs;
	struct fathom_bytes_array kinds;
};

/* What is known of a process. */
struct fathom_process_stacks {
	struct fathom_target *target;
	struct fathom_view *view;      /* NULL: none, or the map has changed */
	struct fathom_walker *walker;  /* of view */
	struct fathom_capture capture; /* likewise; it reads stacks */
	struct fathom_key_map known;   /* numbers of frames, by pc and kind */
	bool is_old;                   /* the map has changed since view began */
};

struct fathom_call_stacks *fathom_call_stacks_create(struct fathom *session, bool names_only)
{
	struct fathom_call_stacks *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->session = session;
	s->names_only = names_only;
	if (!fathom_syscall_set_read("exit,exit_group,execve,execveat", &s->last, NULL) &&
	    !fathom_syscall_set_read("mmap,mmap2,munmap,mprotect,pkey_mprotect,mremap,"
				     "remap_file_pages,shmat,shmdt,ipc",
				     &s->moves, NULL))
		return s;
	free(s);
	return NULL;
}

void fathom_call_stacks_destroy(struct fathom_call_stacks *s)
{
	if (!s)
		return;
	fathom_stack_frames_deinit(&s->frames);
	fathom_array_free(&s->walked);
	fathom_array_free(&s->pcs);
	fathom_array_free(&s->kinds);
	free(s);
}

static void end_view(struct fathom_process_stacks *of)
{
	fathom_walker_destroy(of->walker);
	fathom_view_end(of->view);
	fathom_key_map_deinit(&of->known);
	of->walker = NULL;
	of->view = NULL;
	of->known = (struct fathom_key_map){ .n = 0 };
	of->is_old = false;
}

void fathom_call_stacks_forget(struct fathom_traced *p)
{
	struct fathom_process_stacks *of = p->stacks;

	if (!of)
		return;
	end_view(of);
	fathom_target_release(of->target);
	free(of->capture.scratch);
	free(of);
	p->stacks = NULL;
}

void fathom_call_stacks_renew(struct fathom_traced *p)
{
	if (p->stacks)
		p->stacks->is_old = true;
}

bool fathom_call_stacks_is_last(const struct fathom_call_stacks *s,
				const struct fathom_syscall_call *call)
{
	return fathom_syscall_set_has(&s->last, call->machine, call->number);
}

void fathom_call_stacks_need(const struct fathom_call_stacks *s, struct fathom_syscall_set *set)
{
	for (size_t i = 0; i < FATHOM_SYSCALL_TABLES; i++)
		for (size_t k = 0; k < FATHOM_SYSCALL_SET_NUMBERS / 64; k++)
			set->bits[i][k] |= s->moves.bits[i][k];
}

/* Returns whether the @size bytes at @start hold code of the view. */
static bool is_code(const struct fathom_view *v, uint64_t start, uint64_t size)
{
	const struct fathom_maps *maps = fathom_space_maps(v);

	for (size_t i = 0; i < maps->n; i++) {
		const struct fathom_mapping *m = &maps->items[i];

		if (m->executable && start < m->end && m->start - start < size)
			return true;
		if (m->executable && start >= m->start && start < m->end)
			return true;
	}
	return false;
}

bool fathom_call_stacks_moves_code(const struct fathom_call_stacks *s,
				   const struct fathom_traced *p,
				   const struct fathom_syscall_call *call)
{
	const uint64_t *args = call->args;

	if (!p->stacks || !p->stacks->view || p->stacks->is_old ||
	    !fathom_syscall_set_has(&s->moves, call->machine, call->number))
		return false;
	if (call->machine != EM_X86_64)
		return true;
	switch (call->number) {
	case SYS_mmap:
	case SYS_mprotect:
	case SYS_pkey_mprotect:
		return args[2] & PROT_EXEC || is_code(p->stacks->view, args[0], args[1]);
	case SYS_munmap:
		return is_code(p->stacks->view, args[0], args[1]);
	case SYS_mremap:
		return args[3] & MREMAP_FIXED || is_code(p->stacks->view, args[0], args[1]);
	default:
		return true;
	}
}

/* Has what is known of @p be of its map as it is; returns false if it cannot be read. */
static bool begin_view(const struct fathom_call_stacks *s, struct fathom_traced *p)
{
	struct fathom_process_stacks *of = p->stacks ? p->stacks : calloc(1, sizeof *of);

	p->stacks = of;
	if (!of)
		return false;
	if (of->is_old)
		end_view(of);
	if (of->view)
		return true;
	if ((!of->target && fathom_target_open_process(s->session, p->tracee.pid, NULL,
						       &of->target, NULL)) ||
	    fathom_view_begin(of->target, FATHOM_VIEW_MEMORY, &of->view, NULL))
		return false;
	of->capture.options = (struct fathom_capture_options){ .memory = &of->view->memory,
							       .maps = fathom_space_maps(of->view) };
	if (!fathom_walker_create(of->view, &of->walker, NULL))
		return true;
	end_view(of);
	return false;
}

/* Walks the stack of the thread whose registers @copy has, into s->walked. */
static fathom_err walk(struct fathom_call_stacks *s, struct fathom_process_stacks *of,
		       struct fathom_thread_copy *copy, enum fathom_stop *ret_stop)
{
	const struct fathom_scratch_pieces read = fathom_capture_read_stack(&of->capture, copy);
	const struct fathom_stack_piece piece = { read.avma[0],
						  { of->capture.scratch, read.size[0] } };
	struct fathom_walk walk = { .registers = &copy->registers,
				    .pieces = &piece,
				    .n_pieces = 1,
				    .max_frames = FATHOM_SYSCALLS_FRAMES,
				    .frames = &s->walked };
	fathom_err err;

	s->walked.n = 0;
	err = fathom_walker_run(of->walker, &walk);
	*ret_stop = walk.stop;
	return err;
}

/* Returns where the number of the frame at @f is kept; NULL without memory. */
static uint32_t *known_at(struct fathom_process_stacks *of, const struct fathom_walk_frame *f)
{
	return fathom_key_map_at(&of->known, f->pc << 2 | f->kind);
}

/* Returns the offset of @avma in the file that is mapped there; FATHOM_NO_ADDRESS: none is. */
static uint64_t file_offset(const struct fathom_view *v, uint64_t avma)
{
	const struct fathom_maps *maps = fathom_space_maps(v);
	const size_t i = fathom_maps_at(maps, avma);

	return i < maps->n && maps->items[i].name.size
		       ? avma - maps->items[i].start + maps->items[i].off
		       : FATHOM_NO_ADDRESS;
}

/* The number of a frame that is being named. */
#define PENDING (FATHOM_KEY_NEW - 1)

/* Collects the pcs of the walked frames that have no names yet, each once. */
static bool collect_new(struct fathom_call_stacks *s, struct fathom_process_stacks *of)
{
	s->pcs.n = s->kinds.n = 0;
	for (size_t i = 0; i < s->walked.n; i++) {
		const struct fathom_walk_frame *f = &s->walked.items[i];
		uint32_t *number = known_at(of, f);

		if (!number)
			return false;
		if (*number != FATHOM_KEY_NEW)
			continue;
		*number = PENDING;
		if (!fathom_array_push(&s->pcs, f->pc) ||
		    !fathom_array_push(&s->kinds, (char)f->kind))
			return false;
	}
	return true;
}

/* Names the walked frames that have no names yet, in one batch. */
static fathom_err name_new(struct fathom_call_stacks *s, struct fathom_process_stacks *of)
{
	struct fathom_batch_options o = { .flags = s->names_only ? FATHOM_NAMES_ONLY : 0 };
	struct fathom_answers *answers;

	if (!collect_new(s, of))
		return FATHOM_E_MEMORY;
	if (!s->pcs.n)
		return FATHOM_OK;
	o.kinds = (const uint8_t *)s->kinds.items;
	FATHOM_TRY(fathom_view_answer(of->view, &o, s->pcs.items, s->pcs.n, &answers, NULL));
	for (size_t i = 0; i < s->pcs.n; i++) {
		const struct fathom_walk_frame f = { .pc = s->pcs.items[i],
						     .kind = (uint8_t)s->kinds.items[i] };
		uint32_t *number = known_at(of, &f);
		struct fathom_answer answer = *fathom_answers_get(answers, i);
		const struct fathom_trace_frame *frame;

		answer.pc = (struct fathom_pc){ .address = f.pc, .kind = f.kind };
		frame = fathom_stack_frames_add(&s->frames, &answer,
						answer.module ? file_offset(of->view, f.pc)
							      : FATHOM_NO_ADDRESS);
		if (!number || !frame) {
			fathom_answers_free(answers);
			return FATHOM_E_MEMORY;
		}
		*number = frame->number;
	}
	fathom_answers_free(answers);
	return FATHOM_OK;
}

/* Returns the frame of @f, which has a name. */
static const struct fathom_trace_frame *frame_of(const struct fathom_call_stacks *s,
						 struct fathom_process_stacks *of,
						 const struct fathom_walk_frame *f)
{
	return s->frames.items[*known_at(of, f)];
}

/*
 * Returns whether all that is known of the walked frames is true now. Code of no file may change
 * without a call; and the thread itself cannot stand where nothing is mapped.
 */
static bool is_true(const struct fathom_call_stacks *s, struct fathom_process_stacks *of)
{
	bool is_made = false;

	for (size_t i = 0; i < s->walked.n; i++) {
		const struct fathom_answer *a = frame_of(s, of, &s->walked.items[i])->frame.answer;

		if (!i && a->reason == FATHOM_REASON_UNMAPPED)
			return false;
		is_made |= !a->module || fathom_source_has_files(a->source);
	}
	return !is_made || fathom_view_made_stayed(of->view);
}

/* Returns the walked stack. */
static struct fathom_trace_stack *take(const struct fathom_call_stacks *s,
				       struct fathom_process_stacks *of, enum fathom_stop stop)
{
	struct fathom_trace_stack *stack = fathom_trace_stack_create(s->walked.n, (uint8_t)stop);

	for (size_t i = 0; stack && i < s->walked.n; i++) {
		const struct fathom_walk_frame *f = &s->walked.items[i];
		struct fathom_trace_frame *to = &fathom_trace_stack_frames(stack)[i];

		*to = *frame_of(s, of, f);
		to->frame.sp = f->sp;
		to->frame.trust = f->trust;
	}
	return stack;
}

/* Reads the stack of the thread whose registers @copy has. */
static struct fathom_trace_stack *read_stack(struct fathom_call_stacks *s, struct fathom_traced *p,
					     struct fathom_thread_copy *copy)
{
	enum fathom_stop stop = FATHOM_STOP_NONE;

	for (int i = 0; begin_view(s, p); i++) {
		if (walk(s, p->stacks, copy, &stop) || name_new(s, p->stacks)) {
			/* Some frames may be pending. */
			p->stacks->is_old = true;
			break;
		}
		if (i || is_true(s, p->stacks))
			return take(s, p->stacks, stop);
		p->stacks->is_old = true;
	}
	return NULL;
}

struct fathom_trace_stack *fathom_call_stacks_read(struct fathom_call_stacks *s,
						   struct fathom_traced *p, pid_t tid)
{
	struct fathom_thread_copy copy = { .tid = tid };
	struct fathom_trace_stack *stack;
	struct fathom_regset regset;
	struct fathom_call call;

	if (!fathom_regset_get(tid, &regset) || !fathom_regset_take(&regset, &copy))
		return NULL;
	fathom_call_begin(&call, s->session);
	stack = read_stack(s, p, &copy);
	(void)fathom_call_end(&call, FATHOM_OK, NULL);
	return stack;
}
