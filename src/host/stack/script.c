/* SPDX-License-Identifier: MIT */
/*
 * Frames of interpreters among native ones. What is in no native frame comes after all of them, and
 * says so.
 */
#include <stdlib.h>
#include <string.h>

#include "host/base/key_map.h"
#include "host/stack/stacks.h"
#include "safe/base/pc.h"

fathom_err fathom_stacks_look_for_scripts(struct fathom_stacks_work *w,
					  const struct fathom_walk_frames *frames, size_t first,
					  bool *ret_new)
{
	fathom_err err = FATHOM_OK;

	*ret_new = false;
	if (!w->interpreters)
		return FATHOM_OK;
	fathom_keep_record(w->keep, &w->view->memory);
	for (size_t i = first; i < frames->n && !err; i++) {
		const struct fathom_walk_frame *f = &frames->items[i];
		struct fathom_place place;
		bool is_new = false;

		if (!fathom_view_locate(w->view, fathom_pc_subtract(f->pc, f->kind), &place))
			err = fathom_interpreters_look(w->interpreters, &place, &is_new);
		*ret_new |= is_new;
	}
	fathom_keep_pause(w->keep);
	return err;
}

fathom_err fathom_stacks_read_scripts(struct fathom_stacks_work *w, int32_t tid,
				      const struct fathom_registers *registers,
				      struct fathom_script_frames *ret)
{
	fathom_err err;

	if (!w->interpreters || !fathom_interpreters_any(w->interpreters))
		return FATHOM_OK;
	fathom_keep_record(w->keep, &w->view->memory);
	err = fathom_interpreters_read(w->interpreters, tid, registers, ret);
	fathom_keep_pause(w->keep);
	return err;
}

static uint64_t walk_sp_of(const void *frames, size_t i)
{
	return ((const struct fathom_walk_frame *)frames)[i].sp;
}

static uint64_t walk_fp_of(const void *frames, size_t i)
{
	return ((const struct fathom_walk_frame *)frames)[i].fp;
}

static uint64_t walk_code_of(const void *frames, size_t i)
{
	const struct fathom_walk_frame *f = &((const struct fathom_walk_frame *)frames)[i];

	return fathom_pc_subtract(f->pc, f->kind);
}

struct fathom_native_frames fathom_stacks_native(const struct fathom_walk_frame *frames, size_t n)
{
	return (struct fathom_native_frames){ frames, n, walk_sp_of, walk_fp_of, walk_code_of };
}

/* Returns the script frames of thread @i; of those in place, such as are native frames. */
static struct fathom_script_frame *scripts_of(struct fathom_stacks_work *w, size_t i, size_t *ret_n)
{
	const size_t first = i ? w->ends.items[i - 1] : 0;
	const size_t first_script = i ? w->script_ends.items[i - 1] : 0;
	const struct fathom_native_frames native =
		fathom_stacks_native(w->frames.items + first, w->ends.items[i] - first);
	struct fathom_script_frame *scripts = w->scripts.items + first_script;

	*ret_n = fathom_script_keep_executed(w->interpreters, &native, scripts,
					     w->script_ends.items[i] - first_script);
	return scripts;
}

/* Reads the names of the script frames of thread @i. */
static fathom_err keep_thread(struct fathom_stacks_work *w, size_t i, struct fathom_arena *arena)
{
	size_t n;
	const struct fathom_script_frame *scripts = scripts_of(w, i, &n);
	struct fathom_script_name name;
	fathom_err err = FATHOM_OK;

	for (size_t k = 0; k < n && err != FATHOM_E_MEMORY; k++)
		err = fathom_interpreters_name(w->interpreters, &scripts[k], arena, &name);
	return err;
}

fathom_err fathom_stacks_keep_scripts(struct fathom_stacks_work *w)
{
	struct fathom_arena arena = { 0 };
	fathom_err err = FATHOM_OK;

	if (!w->interpreters || !fathom_interpreters_any(w->interpreters))
		return FATHOM_OK;
	fathom_keep_record(w->keep, &w->view->memory);
	for (size_t i = 0; i < w->script_ends.n && err != FATHOM_E_MEMORY; i++)
		err = keep_thread(w, i, &arena);
	fathom_keep_pause(w->keep);
	fathom_arena_deinit(&arena);
	return err == FATHOM_E_MEMORY ? err : FATHOM_OK;
}

/* The merging of one thread. */
struct merge {
	struct fathom_stacks_work *w;
	const struct fathom_script_frame *scripts;
	size_t n_scripts;
	size_t *places;               /* of each script frame: the native frame after it */
	struct fathom_key_map *names; /* numbers of answers by pc and mark */
	const struct fathom_answer **answers;
	size_t n_answers;
	const char *titles[FATHOM_MAX_RUNTIMES]; /* copies, which outlive the set */
	const char *refusals[FATHOM_MAX_RUNTIMES];
};

static uint64_t sp_of(const void *frames, size_t i)
{
	return ((const struct fathom_stack_frame *)frames)[i].sp;
}

static uint64_t code_of(const void *frames, size_t i)
{
	const struct fathom_pc *pc = &((const struct fathom_stack_frame *)frames)[i].pc;

	return fathom_pc_subtract(pc->address, pc->kind);
}

/* Places the script frames of @t; returns how many are in no native frame. */
static size_t place(struct merge *m, const struct fathom_thread *t)
{
	const struct fathom_native_frames native = { t->frames, t->n_frames, sp_of, NULL, code_of };

	return fathom_script_find_places(&native, m->scripts, m->n_scripts, m->places);
}

/* Makes the answer for script frame @f; NULL without memory. */
static const struct fathom_answer *make_answer(struct merge *m, const struct fathom_script_frame *f)
{
	struct fathom_arena *arena = &m->w->to->arena;
	const bool has_lines = !(m->w->options.flags & FATHOM_STACK_NAMES_ONLY);
	struct fathom_answer *answer = fathom_arena_alloc(arena, sizeof *answer);
	struct fathom_frame *frame = fathom_arena_alloc(arena, sizeof *frame);
	struct fathom_script_name name;
	fathom_err err;

	if (!answer || !frame)
		return NULL;
	err = fathom_interpreters_name(m->w->interpreters, f, arena, &name);
	if (err == FATHOM_E_MEMORY)
		return NULL;
	if (err)
		name = (struct fathom_script_name){ .line = 0 };
	*frame = (struct fathom_frame){ .function = name.function.data,
					.function_size = name.function.size,
					.file = has_lines ? name.file.data : NULL,
					.file_size = has_lines ? name.file.size : 0,
					.line = has_lines ? name.line : 0 };
	*answer = (struct fathom_answer){ .pc = { .address = f->pc },
					  .module_address = FATHOM_NO_ADDRESS,
					  .symbol = name.function.data,
					  .symbol_size = name.function.size,
					  .frame = has_lines && !err ? frame : NULL,
					  .source = FATHOM_SOURCE_INTERPRETER,
					  .reason = err ? FATHOM_REASON_CHANGED
							: FATHOM_REASON_NONE };
	return answer;
}

/* Returns what runtime @number is called, copied once; NULL without memory. */
static const char *title_of(struct merge *m, uint32_t number)
{
	const char *title = fathom_interpreters_title(m->w->interpreters, number);

	if (!m->titles[number])
		m->titles[number] = fathom_stacks_text(m->w, title);
	return m->titles[number];
}

/* Returns the sentence that refuses runtime @number, made once; NULL without memory. */
static const char *refusal_of(struct merge *m, uint32_t number)
{
	char text[FATHOM_SCRIPT_REFUSAL];

	if (!m->refusals[number]) {
		fathom_interpreters_refusal(m->w->interpreters, number, text);
		m->refusals[number] = fathom_stacks_text(m->w, text);
	}
	return m->refusals[number];
}

/* Returns the answer for script frame @f, made once; NULL without memory. */
static const struct fathom_answer *answer_for(struct merge *m, const struct fathom_script_frame *f)
{
	uint32_t *number = fathom_key_map_at(m->names, f->pc ^ f->mark);
	const struct fathom_answer *answer;

	if (!number)
		return NULL;
	if (*number != FATHOM_KEY_NEW)
		return m->answers[*number];
	answer = make_answer(m, f);
	if (!answer)
		return NULL;
	*number = (uint32_t)m->n_answers;
	m->answers[m->n_answers++] = answer;
	return answer;
}

/*
 * Writes script frame @i to @to; false without memory. Its place is as certain as @trust, that of
 * the native frame which executes it.
 */
static bool put_script(struct merge *m, size_t i, uint8_t trust, struct fathom_stack_frame *to)
{
	const struct fathom_script_frame *f = &m->scripts[i];

	*to = (struct fathom_stack_frame){ .pc = { .address = f->pc },
					   .sp = FATHOM_NO_ADDRESS,
					   .answer = answer_for(m, f),
					   .trust = trust,
					   .kind = FATHOM_FRAME_SCRIPT,
					   .runtime = title_of(m, f->runtime) };
	return to->answer && to->runtime;
}

/*
 * Says of native frame @f whether it is of an interpreter; *@ret_why: why that one cannot be read.
 * Returns false without memory.
 */
static bool mark_runtime(struct merge *m, struct fathom_stack_frame *f, const char **ret_why)
{
	const struct fathom_stacks_work *w = m->w;
	const char *why = NULL;
	struct fathom_place place;
	uint32_t number = FATHOM_NONE;

	if (!fathom_view_locate(w->view, fathom_pc_subtract(f->pc.address, f->pc.kind), &place))
		number = fathom_interpreters_at(w->interpreters, &place, &why);
	if (number == FATHOM_NONE)
		return true;
	if (why)
		*ret_why = refusal_of(m, number);
	f->kind = FATHOM_FRAME_RUNTIME;
	f->runtime = title_of(m, number);
	return f->runtime && (!why || *ret_why);
}

/*
 * Writes those before native frame @i of @t, or the frame in its place, to @to; false without
 * memory. *@ret_is_replaced: there is one. A frame that has no name stays a native one.
 */
static bool put_before(struct merge *m, const struct fathom_thread *t, size_t i, size_t *next,
		       struct fathom_stack_frame *to, size_t *n, bool *ret_is_replaced)
{
	const struct fathom_stack_frame *native = &t->frames[i];

	*ret_is_replaced = false;
	for (; *next < m->n_scripts &&
	       (m->places[*next] == i || m->places[*next] == FATHOM_SCRIPT_NOWHERE);
	     ++*next) {
		if (m->places[*next] != i)
			continue;
		if (!put_script(m, *next, native->trust, &to[*n]))
			return false;
		if (!m->scripts[*next].in_place) {
			++*n;
		} else if (!to[*n].answer->reason) {
			to[*n].sp = native->sp;
			++*n;
			*ret_is_replaced = true;
		}
	}
	return true;
}

/* Writes the frames of @t to @to; returns how many, 0 without memory. */
static size_t write_frames(struct merge *m, struct fathom_thread *t, struct fathom_stack_frame *to)
{
	const size_t left_out_at = t->left_out_at;
	uint8_t trust = FATHOM_TRUST_REGISTERS;
	const char *why = NULL;
	bool is_replaced;
	size_t next = 0;
	size_t n = 0;

	for (size_t i = 0; i < t->n_frames; i++) {
		trust = t->frames[i].trust;
		if (i == left_out_at)
			t->left_out_at = n;
		if (!put_before(m, t, i, &next, to, &n, &is_replaced))
			return 0;
		if (is_replaced)
			continue;
		to[n] = t->frames[i];
		if (!mark_runtime(m, &to[n++], &why))
			return 0;
	}
	for (size_t i = 0; i < m->n_scripts; i++)
		if (m->places[i] == FATHOM_SCRIPT_NOWHERE && !put_script(m, i, trust, &to[n++]))
			return 0;
	t->script_failed = t->script_failed ? t->script_failed : why;
	return n;
}

/* Merges the script frames of @t; returns how many frames it has then, 0 without memory. */
static size_t merge_thread(struct merge *m, struct fathom_thread *t, struct fathom_stack_frame *to)
{
	if (place(m, t))
		t->script_failed =
			t->stop == FATHOM_STOP_ENTRY && !t->n_left_out
				? "no native frame holds the last frames, of the script"
				: "the native frames that execute the last ones are missing";
	return write_frames(m, t, to);
}

fathom_err fathom_stacks_merge_scripts(struct fathom_stacks_work *w)
{
	const size_t n = w->frames.n + w->scripts.n;
	struct fathom_key_map names = { 0 };
	struct merge m = { .w = w, .names = &names };
	struct fathom_stack_frame *to;
	size_t used = 0;
	bool has_all = true;

	if (!w->interpreters || !fathom_interpreters_any(w->interpreters))
		return FATHOM_OK;
	to = malloc((n + 1) * sizeof *to);
	m.places = malloc((w->scripts.n + 1) * sizeof *m.places);
	m.answers = malloc((w->scripts.n + 1) * sizeof *m.answers);
	has_all = to && m.places && m.answers;
	for (size_t i = 0; i < w->to->threads.n && has_all; i++) {
		struct fathom_thread *t = &w->to->threads.items[i];
		const size_t all_native = t->n_frames;
		size_t all = 0;

		m.scripts = scripts_of(w, i, &m.n_scripts);
		if (all_native)
			all = merge_thread(&m, t, to + used);
		has_all = all || !all_native;
		t->frames = to + used;
		t->n_frames = all;
		used += all;
	}
	free(m.places);
	free(m.answers);
	fathom_key_map_deinit(&names);
	if (!has_all) {
		free(to);
		return FATHOM_E_MEMORY;
	}
	free(w->to->frames);
	w->to->frames = to;
	return FATHOM_OK;
}
