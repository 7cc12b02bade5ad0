/* SPDX-License-Identifier: MIT */
/* Replaces native frames by those of the interpreter that ran in them, as the caller tells. */
#include <string.h>

#include "host/stack/stacks.h"

/* Copies @text, of @size bytes, to the arena; returns false without memory. */
static bool copy_text(struct fathom_arena *a, const char *text, const char **ret,
		      uint32_t *ret_size)
{
	*ret = NULL;
	*ret_size = 0;
	if (!text)
		return true;
	*ret_size = (uint32_t)strlen(text);
	*ret = fathom_arena_strdup(a, (struct fathom_str){ text, *ret_size });
	return *ret != NULL;
}

/* Makes the frames of @run, linked from the innermost to the outermost; NULL without memory. */
static const struct fathom_frame *make_frames(struct fathom_arena *a,
					      const struct fathom_interpreter_run *run)
{
	struct fathom_frame *f = fathom_arena_alloc(a, run->n_frames * sizeof *f);

	for (size_t i = 0; f && i < run->n_frames; i++) {
		const struct fathom_interpreter_frame *from = &run->frames[i];

		f[i] = (struct fathom_frame){ .line = from->line,
					      .outer = i + 1 < run->n_frames ? &f[i + 1] : NULL };
		if (!copy_text(a, from->function, &f[i].function, &f[i].function_size) ||
		    !copy_text(a, from->file, &f[i].file, &f[i].file_size))
			return NULL;
	}
	return f;
}

/* Gives @frame the answer that @run tells; returns false without memory. */
static bool replace(struct fathom_arena *a, struct fathom_stack_frame *frame,
		    const struct fathom_interpreter_run *run)
{
	const struct fathom_frame *frames = make_frames(a, run);
	struct fathom_answer *answer = fathom_arena_alloc(a, sizeof *answer);
	const struct fathom_frame *last = frames;

	if (!frames || !answer)
		return false;
	while (last->outer)
		last = last->outer;
	*answer = *frame->answer;
	answer->symbol = last->function;
	answer->symbol_size = last->function_size;
	answer->linkage_name = NULL;
	answer->linkage_size = 0;
	answer->offset = 0;
	answer->size = 0;
	answer->frame = frames;
	answer->source = FATHOM_SOURCE_INTERPRETER;
	answer->reason = FATHOM_REASON_NONE;
	frame->answer = answer;
	return true;
}

/* Returns whether @run can replace frames from @first on. */
static bool is_valid(const struct fathom_interpreter_run *run, const struct fathom_thread *t,
		     size_t first)
{
	bool has_names = run->n_native && run->n_native <= t->n_frames - first && run->n_frames &&
			 run->n_frames <= FATHOM_MAX_INTERPRETER_FRAMES && run->frames;

	for (size_t i = 0; has_names && i < run->n_frames; i++)
		has_names = run->frames[i].function != NULL;
	return has_names;
}

/* Asks for each frame of @t; the frames that stay move up. */
static fathom_err interpret_thread(struct fathom_stacks_work *w, struct fathom_thread *t)
{
	const struct fathom_stack_options *o = &w->options;
	struct fathom_stack_frame *frames = w->to->frames + (t->frames - w->to->frames);
	size_t n = 0;
	size_t n_inner = 0; /* of those that remain */

	for (size_t i = 0; i < t->n_frames;) {
		struct fathom_interpreter_run run = { .size = sizeof run };
		struct fathom_stack_frame frame = frames[i];
		size_t step = 1;

		if (o->interpret(o->interpret_data, w->view->target, t, i, &run)) {
			if (!is_valid(&run, t, i))
				return FATHOM_E_ARGUMENT;
			if (!replace(&w->to->arena, &frame, &run))
				return FATHOM_E_MEMORY;
			step = run.n_native;
		}
		n_inner += i < t->left_out_at;
		i += step;
		/* The caller still sees what it has not been asked for. */
		frames[n++] = frame;
	}
	t->n_frames = n;
	t->left_out_at = n_inner;
	return FATHOM_OK;
}

fathom_err fathom_stacks_interpret(struct fathom_stacks_work *w, struct fathom_errinfo *reterr)
{
	for (size_t i = 0; i < w->to->threads.n; i++) {
		const fathom_err err = interpret_thread(w, &w->to->threads.items[i]);

		if (err == FATHOM_E_ARGUMENT)
			return fathom_fail(reterr, err, "", 0,
					   "fathom_stack_options.interpret replaces frames that "
					   "are not there, or by none");
		if (err)
			return fathom_fail_memory(reterr);
	}
	return FATHOM_OK;
}
