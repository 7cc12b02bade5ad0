/* SPDX-License-Identifier: MIT */
#include "host/death/death.h"

#include <signal.h>

#include "host/death/library_frames.h"
#include "host/module/module.h"

/* Signals of a thread that end its process because of what it did. */
static bool is_fatal(int32_t signal)
{
	switch (signal) {
	case SIGABRT:
	case SIGBUS:
	case SIGFPE:
	case SIGILL:
	case SIGSEGV:
	case SIGSYS:
	case SIGTRAP:
		return true;
	default:
		return false;
	}
}

/* Returns whether @t dies: a signal has ended it, or its stack goes through abort(). */
static bool is_dying(const struct fathom_thread *t)
{
	return is_fatal(t->signal) || fathom_frame_find(t, 0, "abort") != FATHOM_NO_FRAME ||
	       fathom_frame_find(t, 0, "_ZSt9terminatev") != FATHOM_NO_FRAME;
}

static bool add_module(const struct fathom_module_at *m, void *data)
{
	struct fathom_death_work *w = data;

	w->is_complete = !fathom_runtime_add(&w->runtime, m->module, m->name, m->bias);
	return w->is_complete;
}

fathom_err fathom_death_runtime(struct fathom_death_work *w)
{
	fathom_err err;

	if (w->has_runtime)
		return FATHOM_OK;
	fathom_runtime_init(&w->runtime, &w->view->memory, &w->budget, w->view->target->is_live);
	w->has_runtime = true;
	w->is_complete = true;
	/* Most of them have no frame of the stacks. */
	fathom_notes_mute(&w->view->target->notes);
	err = fathom_view_modules(w->view, add_module, w);
	fathom_notes_unmute(&w->view->target->notes);
	FATHOM_TRY(err);
	return w->is_complete ? fathom_runtime_read(&w->runtime) : FATHOM_E_MEMORY;
}

/* Bytes that are read at a time: memory after a text may not be there. */
#define STEP 4096

char *fathom_death_text(const struct fathom_death_work *w, uint64_t avma, size_t most,
			bool *ret_cut, fathom_err *ret_err)
{
	struct fathom_bytes_array text = { 0 };
	const char *end = NULL;
	char *copy = NULL;

	while (text.n < most && !end) {
		const size_t stretch = STEP - (avma + text.n) % STEP;
		const size_t wanted = stretch < most - text.n ? stretch : most - text.n;
		size_t got;

		if (avma > UINT64_MAX - most || !fathom_array_room(&text, wanted)) {
			*ret_err = avma > UINT64_MAX - most ? *ret_err : FATHOM_E_MEMORY;
			break;
		}
		got = fathom_view_read(w->view, avma + text.n, text.items + text.n, wanted);
		end = got ? memchr(text.items + text.n, '\0', got) : NULL;
		text.n = end ? (size_t)(end - text.items) : text.n + got;
		if (got < wanted)
			break;
	}
	if (end || (most && text.n == most)) {
		copy = fathom_arena_strdup(w->arena,
					   (struct fathom_str){ text.items, (uint32_t)text.n });
		*ret_err = copy ? *ret_err : FATHOM_E_MEMORY;
	}
	*ret_cut = !end;
	fathom_array_free(&text);
	return copy;
}

/* Finds why @t died, at @p. */
static fathom_err read_one(struct fathom_death_work *w, struct fathom_thread *t,
			   const struct fathom_death_point *p)
{
	struct fathom_death *d = fathom_arena_alloc(w->arena, sizeof *d);

	if (!d)
		return FATHOM_E_MEMORY;
	*d = (struct fathom_death){ .fault_address = FATHOM_NO_ADDRESS };
	FATHOM_TRY(fathom_death_fault(w, t, p, d));
	FATHOM_TRY(fathom_death_abort_message(w, t, d));
	FATHOM_TRY(fathom_death_exception(w, t, d));
	t->died = d;
	return FATHOM_OK;
}

/* Finds why @t died, if it did. */
static fathom_err look_at(struct fathom_death_work *w, struct fathom_thread *t)
{
	struct fathom_death_point p = { .registers = t->registers };
	const bool may_handle = !t->signal && fathom_death_has_handler(t);
	struct fathom_registers r;

	if (!may_handle && !is_dying(t))
		return FATHOM_OK;
	if (!w->layout.word)
		FATHOM_TRY(w->view->target->ops->layout(w->view, &w->layout));
	if (!w->layout.word)
		return FATHOM_OK;
	if (may_handle && !fathom_death_find_handled(w, t, &r, &p) && !is_dying(t))
		return FATHOM_OK;
	return read_one(w, t, &p);
}

fathom_err fathom_death_read(struct fathom_death_work *w)
{
	fathom_err err = FATHOM_OK;

	w->budget.session = w->view->target->session;
	for (size_t i = 0; i < w->n && !err; i++) {
		err = look_at(w, &w->threads[i]);
		/* An answer that cannot be read, or does not fit the budget, is absent. */
		if (err != FATHOM_E_CANCELLED && (err != FATHOM_E_MEMORY || w->budget.is_over))
			err = FATHOM_OK;
	}
	if (w->has_runtime)
		fathom_runtime_deinit(&w->runtime);
	fathom_budget_give(&w->budget, w->budget.counted);
	return err;
}
