/* SPDX-License-Identifier: MIT */
#include "host/stack/stopped.h"

#include <stdlib.h>

#include "host/base/key_map.h"
#include "host/base/progress.h"
#include "host/stack/capture_work.h"
#include "host/tracer/regset.h"
#include "host/stack/walk.h"
#include "host/symbolize/answers.h"
#include "host/space/user/space.h"

/* A pc that has a name. */
struct named_pc {
	uint32_t number;  /* that the caller gave it */
	bool is_made;     /* in code of no file: its name may change without a call */
	bool is_unmapped; /* nothing is mapped there */
};

struct fathom_stopped_process {
	struct fathom *session;
	int pid;
	const struct fathom_stopped_naming *naming;
	struct fathom_target *target;  /* NULL: not opened yet */
	struct fathom_view *view;      /* NULL: none, or nothing of it holds any more */
	struct fathom_walker *walker;  /* of view */
	struct fathom_capture capture; /* likewise; it reads stacks */
	bool is_old;                   /* code has moved since view began */
	struct fathom_key_map places;  /* in named, by pc and kind */
	struct {
		FATHOM_ARRAY_OF(struct named_pc);
	} named;
	struct fathom_walk_frames walked; /* the stack at hand */
	/* those of its pcs that have no names yet */
	struct fathom_u64_array pcs;
	struct fathom_bytes_array kinds;
};

struct fathom_stopped_process *fathom_stopped_create(struct fathom *session, int pid,
						     const struct fathom_stopped_naming *naming)
{
	struct fathom_stopped_process *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->session = session;
	p->pid = pid;
	p->naming = naming;
	return p;
}

static void end_view(struct fathom_stopped_process *p)
{
	fathom_walker_destroy(p->walker);
	fathom_view_end(p->view);
	fathom_key_map_deinit(&p->places);
	p->walker = NULL;
	p->view = NULL;
	p->places = (struct fathom_key_map){ .n = 0 };
	p->named.n = 0;
	p->is_old = false;
}

void fathom_stopped_destroy(struct fathom_stopped_process *p)
{
	if (!p)
		return;
	end_view(p);
	fathom_target_release(p->target);
	free(p->capture.scratch);
	fathom_array_free(&p->named);
	fathom_array_free(&p->walked);
	fathom_array_free(&p->pcs);
	fathom_array_free(&p->kinds);
	free(p);
}

void fathom_stopped_renew(struct fathom_stopped_process *p)
{
	p->is_old = true;
}

bool fathom_stopped_is_blank(const struct fathom_stopped_process *p)
{
	return !p->view || p->is_old;
}

bool fathom_stopped_has_code(const struct fathom_stopped_process *p, uint64_t start, uint64_t size)
{
	const struct fathom_maps *maps = fathom_space_maps(p->view);

	for (size_t i = 0; i < maps->n; i++) {
		const struct fathom_mapping *m = &maps->items[i];

		if (m->executable && start < m->end &&
		    (start >= m->start || m->start - start < size))
			return true;
	}
	return false;
}

/* Renews the view of the process if it is old; returns false if the process cannot be read. */
static bool begin_view(struct fathom_stopped_process *p)
{
	if (p->is_old)
		end_view(p);
	if (p->view)
		return true;
	if (!p->target && fathom_target_open_process(p->session, p->pid, NULL, &p->target, NULL))
		return false;
	if (fathom_view_begin(p->target, FATHOM_VIEW_MEMORY, &p->view, NULL))
		return false;
	p->capture.options.memory = &p->view->memory;
	p->capture.options.maps = fathom_space_maps(p->view);
	if (!fathom_walker_create(p->view, &p->walker, NULL))
		return true;
	end_view(p);
	return false;
}

/* Walks the stack of the thread whose registers @copy has. */
static fathom_err walk(struct fathom_stopped_process *p, const struct fathom_thread_copy *copy,
		       uint8_t *ret_stop)
{
	const struct fathom_scratch_pieces read = fathom_capture_read_stack(&p->capture, copy);
	const struct fathom_stack_piece piece = { read.avma[0],
						  { p->capture.scratch, read.size[0] } };
	struct fathom_walk walk = { .registers = &copy->registers,
				    .pieces = &piece,
				    .n_pieces = 1,
				    .max_frames = p->naming->max_frames,
				    .frames = &p->walked };
	fathom_err err;

	p->walked.n = 0;
	err = fathom_walker_run(p->walker, &walk);
	*ret_stop = (uint8_t)walk.stop;
	return err;
}

/* Returns where the place in named of @pc is kept; NULL without memory. */
static uint32_t *place_of(struct fathom_stopped_process *p, uint64_t pc, uint8_t kind)
{
	return fathom_key_map_at(&p->places, pc << 2 | kind);
}

/* Gives each walked pc a place in named, and collects those that are new. */
static bool collect_new(struct fathom_stopped_process *p)
{
	p->pcs.n = p->kinds.n = 0;
	for (size_t i = 0; i < p->walked.n; i++) {
		const struct fathom_walk_frame *f = &p->walked.items[i];
		uint32_t *place = place_of(p, f->pc, f->kind);

		if (!place)
			return false;
		if (*place != FATHOM_KEY_NEW)
			continue;
		*place = (uint32_t)(p->named.n + p->pcs.n);
		if (!fathom_array_push(&p->pcs, f->pc) ||
		    !fathom_array_push(&p->kinds, (char)f->kind))
			return false;
	}
	return true;
}

/* Returns the offset of @avma in the file that is mapped there; FATHOM_NO_ADDRESS: none is. */
static uint64_t file_offset(const struct fathom_stopped_process *p, uint64_t avma)
{
	const struct fathom_maps *maps = fathom_space_maps(p->view);
	const size_t i = fathom_maps_at(maps, avma);

	return i < maps->n ? avma - maps->items[i].start + maps->items[i].off : FATHOM_NO_ADDRESS;
}

/* Names the pc of @a. */
static bool name(struct fathom_stopped_process *p, const struct fathom_answer *a)
{
	struct named_pc named = { .is_made = !a->module || fathom_source_has_files(a->source),
				  .is_unmapped = a->reason == FATHOM_REASON_UNMAPPED };

	return p->naming->name(p->naming->data, a,
			       a->module ? file_offset(p, a->pc.address) : FATHOM_NO_ADDRESS,
			       &named.number) &&
	       fathom_array_push(&p->named, named);
}

/* Names the walked pcs that have no names yet, in one batch. */
static fathom_err name_new(struct fathom_stopped_process *p)
{
	struct fathom_batch_options o = { .flags = p->naming->names_only ? FATHOM_NAMES_ONLY : 0 };
	struct fathom_answers *answers;
	bool is_done = true;

	if (!collect_new(p))
		return FATHOM_E_MEMORY;
	if (!p->pcs.n)
		return FATHOM_OK;
	o.kinds = (const uint8_t *)p->kinds.items;
	FATHOM_TRY(fathom_view_answer(p->view, &o, p->pcs.items, p->pcs.n, &answers, NULL));
	for (size_t i = 0; is_done && i < p->pcs.n; i++)
		is_done = name(p, fathom_answers_get(answers, i));
	fathom_answers_free(answers);
	return is_done ? FATHOM_OK : FATHOM_E_MEMORY;
}

/*
 * Takes the walked frames into @ret. Returns whether all that is known of them is true now: code of
 * no file may change without a call, and the thread itself cannot stand where nothing is mapped.
 * *@ret_ok: there was memory.
 */
static bool take_stack(struct fathom_stopped_process *p, struct fathom_stopped_stack *ret,
		       bool *ret_ok)
{
	bool is_made = false;

	ret->n = 0;
	*ret_ok = fathom_array_room(ret, p->walked.n);
	for (size_t i = 0; *ret_ok && i < p->walked.n; i++) {
		const struct fathom_walk_frame *f = &p->walked.items[i];
		const struct named_pc *n = &p->named.items[*place_of(p, f->pc, f->kind)];

		if (!i && n->is_unmapped)
			return false;
		is_made |= n->is_made;
		ret->items[ret->n++] = (struct fathom_stopped_frame){ f->sp, n->number, f->trust,
								      f->is_signal_return };
	}
	return !is_made || fathom_view_jit_stayed(p->view);
}

/* Reads the stack of the thread whose registers @copy has. */
static bool read_stack(struct fathom_stopped_process *p, const struct fathom_thread_copy *copy,
		       struct fathom_stopped_stack *ret)
{
	bool is_ok;

	for (int i = 0; begin_view(p); i++) {
		if (walk(p, copy, &ret->stop) || name_new(p)) {
			/* Places may be without names. */
			p->is_old = true;
			return false;
		}
		if (take_stack(p, ret, &is_ok) || i)
			return is_ok;
		p->is_old = true;
	}
	return false;
}

bool fathom_stopped_read(struct fathom_stopped_process *p, int32_t tid,
			 struct fathom_stopped_stack *ret)
{
	struct fathom_thread_copy copy = { .tid = tid };
	struct fathom_regset regset;
	struct fathom_call call;
	bool is_read;

	if (!fathom_regset_get(tid, &regset) || !fathom_capture_take_registers(&regset, &copy))
		return false;
	fathom_call_begin(&call, p->session);
	is_read = read_stack(p, &copy, ret);
	(void)fathom_call_end(&call, FATHOM_OK, NULL);
	return is_read;
}
