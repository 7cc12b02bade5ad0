/* SPDX-License-Identifier: MIT */
/*
 * The threads of a live process: read while they sleep, else stopped, copied, let go and walked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/stack/capture.h"
#include "host/stack/stacks.h"
#include "host/stack/wait.h"

/* A thread and how its stack was read so far. */
struct reading {
	struct fathom_thread thread;
	struct fathom_registers registers; /* of the frames */
	struct fathom_walk_frames frames;
	struct fathom_script_frames scripts; /* of interpreters, read with the stack */
	uint8_t *stack;                      /* the bytes of pieces, if they are kept */
	struct fathom_stack_pieces pieces;
	fathom_err err; /* of the last try; OK: frames are those of one moment */
	bool has_frames;
	bool needs_stop;
	bool would_stop; /* to be more certain */
	/* the call whose wait is described, if one is */
	bool has_wait;
	int64_t call;
	uint64_t call_sp;
	uint64_t arguments[6];
	/* other stacks to copy, which the walk has come to, and whether one was added */
	bool wants_more;
	uint8_t n_also;
	uint64_t also[FATHOM_STACK_PIECES - 1];
};

struct live {
	struct fathom_stacks_work *work;
	const struct fathom_live *of;
	struct fathom_capture *capture;
	struct fathom_wait_facts *facts;
	struct reading *readings;
	int32_t *tids;
	size_t n;
	fathom_err script_err; /* of the last reading of interpreters' frames */
};

/* Takes what @copy says of the thread, whether or not it has registers. */
static void describe(struct live *l, struct reading *r, const struct fathom_thread_copy *copy)
{
	struct fathom_thread *t = &r->thread;

	t->name = t->name ? t->name : fathom_stacks_text(l->work, copy->name);
	t->state = copy->state ? copy->state : t->state;
	t->pause_ns += copy->pause_ns;
	t->was_restarted |= copy->was_restarted;
	t->is_kernel_worker = copy->is_kernel_worker;
	if (!copy->err)
		t->syscall_number = copy->in_syscall ? copy->syscall : -1;
	r->err = copy->err;
	if (!copy->err)
		t->failed = NULL;
	else if (copy->failed.what)
		t->failed = fathom_stacks_text(l->work, copy->failed.what);
}

/* Returns whether the thread of @copy is in the call that is described already. */
static bool is_described(const struct reading *r, const struct fathom_thread_copy *copy)
{
	return r->has_wait && copy->in_syscall && r->call == copy->syscall &&
	       r->call_sp == copy->registers.sp &&
	       !memcmp(r->arguments, copy->arguments, sizeof r->arguments);
}

/* Says what the thread waits for, or no longer. */
static void describe_wait(struct live *l, struct reading *r, const struct fathom_thread_copy *copy)
{
	const struct fathom_wait_source from = { .proc = l->of->proc,
						 .memory = &l->work->view->memory,
						 .machine = fathom_walker_machine(l->work->walker),
						 .facts = l->facts };
	struct fathom_wait wait;
	bool is_known;

	if (is_described(r, copy))
		return;
	r->thread.syscall = NULL;
	r->thread.waits_for = NULL;
	r->thread.owner = 0;
	r->has_wait = copy->in_syscall;
	if (!copy->in_syscall)
		return;
	r->call = copy->syscall;
	r->call_sp = copy->registers.sp;
	memcpy(r->arguments, copy->arguments, sizeof r->arguments);
	is_known = fathom_wait_describe(&from, copy, &wait);
	r->thread.syscall = wait.syscall;
	if (!is_known)
		return;
	r->thread.waits_for = fathom_stacks_text(l->work, wait.text);
	r->thread.owner = wait.owner;
}

/* Takes the stack of @copy, if it is to be kept. */
static void keep_stack(const struct live *l, struct reading *r, struct fathom_thread_copy *copy)
{
	if (!l->work->keep)
		return;
	free(r->stack);
	r->stack = copy->stack;
	r->pieces = copy->pieces;
	copy->stack = NULL;
}

/* Walks the stack in @copy. */
static fathom_err walk(struct live *l, struct reading *r, struct fathom_thread_copy *copy)
{
	struct fathom_walk_frames frames = { 0 };
	struct fathom_walk w = { .registers = &copy->registers,
				 .pieces = copy->pieces.items,
				 .n_pieces = copy->pieces.n,
				 .max_frames = l->work->options.max_frames,
				 .outer_frames = l->work->options.outer_frames,
				 .frames = &frames };
	const fathom_err err = fathom_stacks_walk(l->work, &w);
	bool is_new;

	if (err) {
		fathom_array_free(&frames);
		return err;
	}
	/* Memory that was not copied may have changed since: copy it, too. */
	r->wants_more = false;
	if (w.n_inside < frames.n) {
		frames.n = w.n_inside;
		r->wants_more = r->n_also < FATHOM_STACK_PIECES - 1;
		w.stop = r->wants_more ? FATHOM_STOP_CHANGED : FATHOM_STOP_UNREADABLE;
		if (r->wants_more)
			r->also[r->n_also++] = w.outside;
	}
	r->needs_stop =
		!copy->was_stopped && w.stop != FATHOM_STOP_ENTRY && w.stop != FATHOM_STOP_LIMIT;
	/* With all registers its frames are no guesses. */
	r->would_stop = !copy->was_stopped && w.has_depth;
	fathom_array_free(&r->frames);
	r->frames = frames;
	r->has_frames = true;
	r->registers = copy->registers;
	r->thread.stop = (uint8_t)w.stop;
	r->thread.n_left_out = frames.n > w.max_frames ? w.n_left_out : 0;
	r->thread.left_out_trust = w.left_out_trust;
	r->thread.left_out_at = r->thread.n_left_out ? w.max_frames : 0;
	keep_stack(l, r, copy);
	/* Frames of an interpreter are to be read with the stack: once more, if it is new. */
	FATHOM_TRY(fathom_stacks_look_for_scripts(l->work, &r->frames, 0, &is_new));
	r->wants_more |= is_new;
	return l->script_err;
}

/* Reads what interpreters run in the thread of @copy, while it sleeps or stands. */
static void read_scripts(void *data, const struct fathom_thread_copy *copy)
{
	struct live *l = data;
	struct reading *r = NULL;

	if (!l->work->interpreters || !fathom_interpreters_any(l->work->interpreters))
		return;
	for (size_t i = 0; i < l->n && !r; i++)
		if (l->readings[i].thread.tid == copy->tid)
			r = &l->readings[i];
	if (!r)
		return;
	r->scripts.n = 0;
	l->script_err =
		fathom_stacks_read_scripts(l->work, copy->tid, &copy->registers, &r->scripts);
}

/* Asks for what @r wants of its thread, @tid. */
static struct fathom_thread_copy ask_for(const struct reading *r, int32_t tid)
{
	struct fathom_thread_copy copy = { .tid = tid, .n_also = r->n_also };

	memcpy(copy.also, r->also, sizeof copy.also);
	return copy;
}

/* Reads thread @i while it sleeps; again if its stack leads to another one. */
static fathom_err peek(struct live *l, size_t i)
{
	struct reading *r = &l->readings[i];
	fathom_err err = FATHOM_OK;

	r->thread.tid = l->tids[i];
	r->thread.pid = l->of->pid;
	r->thread.syscall_number = -1;
	do {
		struct fathom_thread_copy copy = ask_for(r, l->tids[i]);

		r->wants_more = false;
		fathom_capture_peek(l->capture, &copy);
		describe(l, r, &copy);
		r->needs_stop = !copy.is_kernel_worker &&
				(copy.err == FATHOM_E_UNSUPPORTED || copy.err == FATHOM_E_CHANGED);
		if (!copy.err) {
			describe_wait(l, r, &copy);
			err = walk(l, r, &copy);
		}
		fathom_thread_copy_deinit(&copy);
	} while (r->wants_more && !err);
	return err;
}

/* Takes @copy, of a thread that was stopped; frees what it owns. */
static fathom_err take_stopped(struct live *l, struct reading *r, struct fathom_thread_copy *copy,
			       fathom_err err)
{
	/* The stack that was read before is whole. */
	const bool is_enough = copy->err && copy->err != FATHOM_E_NOT_FOUND && r->has_frames &&
			       r->would_stop && !r->needs_stop;

	if (!is_enough)
		describe(l, r, copy);
	if (!copy->err && !err) {
		describe_wait(l, r, copy);
		err = walk(l, r, copy);
	}
	fathom_thread_copy_deinit(copy);
	return err;
}

/* Threads that are stopped in one call, each for itself: it bounds the copies. */
#define STOPPED_AT_ONCE 64

/* Stops and reads the @n threads @which: at one moment if @all, else each for itself. */
static fathom_err stop_once(struct live *l, const size_t *which, size_t n, bool all)
{
	struct fathom_thread_copy *copies = calloc(n + 1, sizeof *copies);
	fathom_err err = FATHOM_OK;

	if (!copies)
		return FATHOM_E_MEMORY;
	for (size_t i = 0; i < n; i++)
		copies[i] = ask_for(&l->readings[which[i]], l->readings[which[i]].thread.tid);
	fathom_capture_stop(l->capture, copies, n, all, all);
	for (size_t i = 0; i < n; i++)
		err = take_stopped(l, &l->readings[which[i]], &copies[i], err);
	free(copies);
	return err;
}

/*
 * Does that, and again for those whose stacks lead to others; with @all for all, so that they
 * remain those of one moment.
 */
static fathom_err stop_some(struct live *l, size_t *which, size_t n, bool all)
{
	fathom_err err = FATHOM_OK;

	for (int i = 0; i < FATHOM_STACK_PIECES && n && !err; i++) {
		size_t more = 0;

		err = stop_once(l, which, n, all);
		for (size_t k = 0; k < n; k++) {
			if (!l->readings[which[k]].wants_more)
				continue;
			if (!all)
				which[more] = which[k];
			more++;
		}
		n = all && more ? n : more;
	}
	return err;
}

/* Stops and reads the threads that could not be read otherwise, or all that were asked for. */
static fathom_err stop_listed(struct live *l)
{
	const bool all = l->work->options.stop == FATHOM_STACK_STOP_ALL;
	size_t *which = malloc((l->n + 1) * sizeof *which);
	fathom_err err = which ? FATHOM_OK : FATHOM_E_MEMORY;
	size_t n = 0;

	for (size_t i = 0; i < l->n && which; i++)
		if (all || l->readings[i].needs_stop || l->readings[i].would_stop)
			which[n++] = i;
	for (size_t i = 0, some; i < n && !err; i += some) {
		some = all || n - i < STOPPED_AT_ONCE ? n - i : STOPPED_AT_ONCE;
		err = stop_some(l, which + i, some, all);
	}
	free(which);
	return err;
}

/* Returns the reading of @tid, which is probably number @hint; makes one if there is none. */
static struct reading *reading_of(struct live *l, int32_t tid, size_t hint)
{
	struct reading *larger;

	if (hint < l->n && l->readings[hint].thread.tid == tid)
		return &l->readings[hint];
	for (size_t i = 0; i < l->n; i++)
		if (l->readings[i].thread.tid == tid)
			return &l->readings[i];
	larger = realloc(l->readings, (l->n + 2) * sizeof *larger);
	if (!larger)
		return NULL;
	l->readings = larger;
	larger[l->n] = (struct reading){
		.thread = { .tid = tid, .pid = l->of->pid, .syscall_number = -1 }
	};
	return &larger[l->n++];
}

/* Stops and reads all threads at one moment, also those that appeared since they were listed. */
static fathom_err stop_all(struct live *l, struct fathom_errinfo *reterr)
{
	struct fathom_thread_copy *copies;
	fathom_err err = FATHOM_OK;
	bool more = false;
	size_t n;

	FATHOM_TRY(fathom_capture_stop_all(l->capture, true, &copies, &n, reterr));
	for (size_t i = 0; i < n; i++) {
		struct reading *r = reading_of(l, copies[i].tid, i);

		if (r) {
			err = take_stopped(l, r, &copies[i], err);
		} else {
			fathom_thread_copy_deinit(&copies[i]);
			err = FATHOM_E_MEMORY;
		}
	}
	free(copies);
	for (size_t i = 0; i < l->n; i++)
		more |= l->readings[i].wants_more;
	return more && !err ? stop_listed(l) : err;
}

/* Returns why a thread has no frames, or not all. */
static enum fathom_reason reason_of(fathom_err err)
{
	switch (err) {
	case FATHOM_E_TIMEOUT:
		return FATHOM_REASON_TIMEOUT;
	case FATHOM_E_CHANGED:
		return FATHOM_REASON_CHANGED;
	case FATHOM_E_OS:
		return FATHOM_REASON_NO_PERMISSION;
	case FATHOM_E_LIMIT:
		return FATHOM_REASON_LIMIT;
	default:
		return FATHOM_REASON_UNSUPPORTED;
	}
}

/* Returns whether the process has thread @tid. */
static bool has_thread(const struct live *l, int32_t tid)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->readings[i].thread.tid == tid)
			return true;
	return false;
}

/* Says that the thread of @r waits for a lock of an interpreter, if it does, and who has it. */
static void describe_lock(struct live *l, struct reading *r)
{
	struct fathom_interpreters *s = l->work->interpreters;
	const char *name;
	int32_t owner;
	char text[FATHOM_SCRIPT_LOCK];

	if (!s || !fathom_interpreters_any(s) || !r->has_wait || !r->thread.syscall ||
	    strcmp(r->thread.syscall, "futex") != 0 ||
	    !fathom_interpreters_lock(s, r->arguments[0], &name, &owner))
		return;
	/* In another PID namespace it has another number. */
	if (!has_thread(l, owner) || owner == r->thread.tid)
		owner = 0;
	fathom_interpreters_lock_text(name, owner, text);
	r->thread.waits_for = fathom_stacks_text(l->work, text);
	r->thread.owner = owner;
}

/* Adds the thread of @r, whose frames were added. */
static fathom_err add_reading(struct live *l, struct reading *r)
{
	const struct fathom_registers *registers = r->has_frames ? &r->registers : NULL;
	uint8_t *stack = r->stack;

	describe_lock(l, r);
	FATHOM_TRY(fathom_stacks_add(l->work, &r->thread, registers));
	if (!l->work->keep)
		return FATHOM_OK;
	r->stack = NULL;
	FATHOM_TRY(fathom_keep_own(l->work->keep, stack));
	return fathom_keep_thread(l->work->keep, &r->thread, registers, 0, &r->pieces);
}

/* Adds the frames of interpreters of one thread. */
static fathom_err add_scripts(struct fathom_stacks_work *w, const struct fathom_script_frames *from)
{
	if (!fathom_array_room(&w->scripts, from->n))
		return FATHOM_E_MEMORY;
	if (from->n)
		memcpy(w->scripts.items + w->scripts.n, from->items, from->n * sizeof *from->items);
	w->scripts.n += from->n;
	return FATHOM_OK;
}

/* Adds what was read to the stacks. Threads that ended before they were read are left out. */
static fathom_err add_readings(struct live *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct reading *r = &l->readings[i];
		struct fathom_walk_frames *to = &l->work->frames;

		/*
		 * The first thread that has ended stays as a zombie; another one is gone in a
		 * moment.
		 */
		if (!r->has_frames && r->err == FATHOM_E_NOT_FOUND && !l->work->options.tids &&
		    (r->thread.state != 'Z' || r->thread.tid != r->thread.pid))
			continue;
		if (r->has_frames) {
			if (!fathom_array_room(to, r->frames.n))
				return FATHOM_E_MEMORY;
			memcpy(to->items + to->n, r->frames.items, r->frames.n * sizeof *to->items);
			to->n += r->frames.n;
			FATHOM_TRY(add_scripts(l->work, &r->scripts));
		} else {
			r->thread.reason = (uint8_t)reason_of(r->err);
		}
		if (r->has_frames && r->thread.stop != FATHOM_STOP_ENTRY && r->err)
			r->thread.reason = (uint8_t)reason_of(r->err);
		FATHOM_TRY(add_reading(l, r));
	}
	return FATHOM_OK;
}

/* Takes the threads that were asked for, each of which must exist, or all. */
static fathom_err list(struct live *l, struct fathom_errinfo *reterr)
{
	const struct fathom_stack_options *o = &l->work->options;
	int32_t *all;
	size_t n;

	FATHOM_TRY(fathom_capture_list(l->capture, &all, &n, reterr));
	if (!o->tids) {
		l->tids = all;
		l->n = n;
		return FATHOM_OK;
	}
	for (size_t i = 0; i < o->n_tids; i++) {
		size_t k = 0;

		while (k < n && all[k] != o->tids[i])
			k++;
		if (k == n) {
			free(all);
			return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", (uint64_t)o->tids[i],
					   "the process has no thread of this number");
		}
	}
	free(all);
	l->n = o->n_tids;
	l->tids = malloc((l->n + 1) * sizeof *l->tids);
	if (!l->tids)
		return fathom_fail_memory(reterr);
	memcpy(l->tids, o->tids, l->n * sizeof *l->tids);
	return FATHOM_OK;
}

static fathom_err read_threads(struct live *l, struct fathom_errinfo *reterr)
{
	fathom_err err = FATHOM_OK;

	FATHOM_TRY(list(l, reterr));
	l->readings = calloc(l->n + 1, sizeof *l->readings);
	if (!l->readings)
		return fathom_fail_memory(reterr);
	for (size_t i = 0; i < l->n && !err; i++)
		err = peek(l, i);
	if (!err && l->work->options.stop == FATHOM_STACK_STOP_ALL && !l->work->options.tids)
		err = stop_all(l, reterr);
	else if (!err && l->work->options.stop != FATHOM_STACK_STOP_NEVER)
		err = stop_listed(l);
	if (!err)
		err = add_readings(l);
	return err ? fathom_view_fail(l->work->view, err, reterr) : FATHOM_OK;
}

fathom_err fathom_stacks_add_live(struct fathom_stacks_work *w, const struct fathom_live *of,
				  struct fathom_errinfo *reterr)
{
	struct live l = { .work = w, .of = of };
	const struct fathom_capture_options o = { .pid = of->pid,
						  .proc = of->proc,
						  .memory = &w->view->memory,
						  .maps = of->maps,
						  .machine = fathom_walker_machine(w->walker),
						  .deadline_ms = w->options.deadline_ms,
						  .read_more = read_scripts,
						  .read_more_data = &l,
						  .waiting = w->options.waiting,
						  .waiting_data = w->options.waiting_data };
	fathom_err err;

	FATHOM_TRY(fathom_capture_create(&o, &l.capture, reterr));
	l.facts = fathom_wait_facts_create();
	err = l.facts ? read_threads(&l, reterr) : fathom_fail_memory(reterr);
	for (size_t i = 0; i < l.n && l.readings; i++) {
		fathom_array_free(&l.readings[i].frames);
		fathom_array_free(&l.readings[i].scripts);
		free(l.readings[i].stack);
	}
	free(l.readings);
	free(l.tids);
	fathom_wait_facts_destroy(l.facts);
	fathom_capture_destroy(l.capture);
	return err;
}
