/* SPDX-License-Identifier: MIT */
#include "host/stack/stacks.h"

#include <stdlib.h>
#include <string.h>

#include "host/base/option_struct.h"
#include "host/base/progress.h"
#include "host/death/death.h"
#include "host/file/file.h"
#include "host/module/module.h"
#include "host/space/user/space.h"
#include "safe/base/limits.h"
#include "safe/base/pc.h"
#include "safe/base/sort.h"

const char *fathom_stacks_text(struct fathom_stacks_work *w, const char *text)
{
	return text[0] ? fathom_arena_strdup(&w->to->arena,
					     (struct fathom_str){ text, (uint32_t)strlen(text) })
		       : NULL;
}

fathom_err fathom_stacks_walk(struct fathom_stacks_work *w, struct fathom_walk *walk)
{
	fathom_err err;

	fathom_keep_record(w->keep, &w->view->memory);
	err = fathom_walker_run(w->walker, walk);
	fathom_keep_pause(w->keep);
	if (!err && walk->astray && !fathom_array_push(&w->astray, walk->astray))
		err = FATHOM_E_MEMORY;
	return err;
}

fathom_err fathom_stacks_add(struct fathom_stacks_work *w, struct fathom_thread *thread,
			     const struct fathom_registers *r)
{
	const size_t first = w->ends.n ? w->ends.items[w->ends.n - 1] : 0;
	const struct fathom_unwind_arch *arch = r ? fathom_unwind_arch(r->machine) : NULL;
	uint64_t *values;

	if (!thread->signal)
		thread->fault_address = FATHOM_NO_ADDRESS;
	if (arch) {
		values = fathom_arena_alloc(&w->to->arena, arch->n * sizeof *values);
		if (!values)
			return FATHOM_E_MEMORY;
		memcpy(values, r->value, arch->n * sizeof *values);
		thread->registers =
			(struct fathom_thread_registers){ values, r->known, arch->n, r->machine };
	}
	thread->n_frames = w->frames.n - first;
	return fathom_array_push(&w->ends, w->frames.n) &&
			       fathom_array_push(&w->script_ends, w->scripts.n) &&
			       fathom_array_push(&w->to->threads, *thread)
		       ? FATHOM_OK
		       : FATHOM_E_MEMORY;
}

/* Returns how many frames one more thread may have: a core may tell of millions of threads. */
static size_t most_frames(const struct fathom_stacks_work *w)
{
	const size_t left =
		w->frames.n < FATHOM_MAX_STORED_FRAMES ? FATHOM_MAX_STORED_FRAMES - w->frames.n : 1;

	return w->options.max_frames < left ? w->options.max_frames : left;
}

/* Copies @text, which may be of no text, into the arena. */
static const char *copy_text(struct fathom_stacks_work *w, struct fathom_str text)
{
	return text.data && text.size ? fathom_arena_strdup(&w->to->arena, text) : NULL;
}

/* Takes what was stored of thread @t. */
static void describe_stored(struct fathom_stacks_work *w, struct fathom_thread *t,
			    struct fathom_stored_thread *ret)
{
	*ret = (struct fathom_stored_thread){ .fault_address = FATHOM_NO_ADDRESS,
					      .syscall_number = -1 };
	if (w->view->target->ops->describe_thread)
		w->view->target->ops->describe_thread(w->view, t->tid, ret);
	t->pid = ret->pid ? ret->pid : t->pid;
	t->name = copy_text(w, ret->name);
	t->syscall = copy_text(w, ret->syscall);
	t->waits_for = copy_text(w, ret->waits_for);
	t->failed = copy_text(w, ret->failed);
	t->pause_ns = ret->pause_ns;
	t->syscall_number = ret->syscall_number;
	t->owner = ret->owner;
	t->state = ret->state;
	t->was_restarted = ret->was_restarted;
	t->signal = ret->signal;
	t->signal_code = ret->signal_code;
	t->fault_address = ret->fault_address;
}

/* Adds the frames of interpreters of @t, whose native frames are those from @first on. */
static fathom_err add_stored_scripts(struct fathom_stacks_work *w, const struct fathom_thread *t,
				     size_t first, const struct fathom_registers *r)
{
	bool is_new;

	FATHOM_TRY(fathom_stacks_look_for_scripts(w, &w->frames, first, &is_new));
	return fathom_stacks_read_scripts(w, t->tid, r, &w->scripts);
}

/* Walks the stack of @t from its registers @r. */
static fathom_err walk_stored(struct fathom_stacks_work *w, struct fathom_thread *t,
			      const struct fathom_registers *r,
			      const struct fathom_stored_thread *stored)
{
	const size_t first = w->frames.n;
	struct fathom_walk walk = { .registers = r,
				    .pieces = stored->stack.items,
				    .n_pieces = stored->stack.n,
				    .pac_mask = stored->pac_mask,
				    .max_frames = most_frames(w),
				    .outer_frames = w->options.outer_frames,
				    .frames = &w->frames };

	FATHOM_TRY(fathom_stacks_walk(w, &walk));
	/* Memory outside the copies may be of another moment. */
	if (stored->stack.n && walk.n_inside < w->frames.n - first) {
		w->frames.n = first + walk.n_inside;
		walk.stop = FATHOM_STOP_UNREADABLE;
	}
	t->stop = (uint8_t)walk.stop;
	t->n_left_out = w->frames.n - first > walk.max_frames ? walk.n_left_out : 0;
	t->left_out_trust = walk.left_out_trust;
	t->left_out_at = t->n_left_out ? walk.max_frames : 0;
	t->reason = walk.reason ? (uint8_t)walk.reason : stored->reason;
	return add_stored_scripts(w, t, first, r);
}

/* Adds thread @tid of a core or snapshot. */
static fathom_err add_stored(struct fathom_stacks_work *w, int32_t tid)
{
	struct fathom_thread t = { .tid = tid, .pid = w->view->target->pid, .syscall_number = -1 };
	struct fathom_stored_thread stored;
	struct fathom_registers r;
	struct fathom_errinfo failed;
	const fathom_err err = fathom_view_registers(w->view, tid, &r, &failed);

	if (err == FATHOM_E_MEMORY || err == FATHOM_E_NOT_FOUND)
		return err;
	describe_stored(w, &t, &stored);
	if (err) {
		t.reason = stored.reason ? stored.reason : (uint8_t)FATHOM_REASON_UNSUPPORTED;
		if (!t.failed)
			t.failed = fathom_stacks_text(w, failed.what ? failed.what : "");
	} else {
		FATHOM_TRY(walk_stored(w, &t, &r, &stored));
	}
	FATHOM_TRY(fathom_stacks_add(w, &t, err ? NULL : &r));
	return w->keep ? fathom_keep_thread(w->keep, &t, err ? NULL : &r, stored.pac_mask,
					    &stored.stack)
		       : FATHOM_OK;
}

struct tids {
	FATHOM_ARRAY_OF(int32_t);
};

static bool take_tid(int32_t tid, void *data)
{
	struct tids *tids = data;

	return fathom_array_push(tids, tid);
}

/* Lists the threads of a core, or those that were asked for; the caller frees @ret. */
static fathom_err list_stored(struct fathom_stacks_work *w, struct tids *ret,
			      struct fathom_errinfo *reterr)
{
	bool more = true;

	for (size_t i = 0; i < w->options.n_tids && more; i++)
		more = take_tid(w->options.tids[i], ret);
	if (!more)
		return fathom_fail_memory(reterr);
	if (!w->options.tids)
		FATHOM_TRY(fathom_view_threads(w->view, take_tid, ret, reterr));
	if (!ret->n && !w->options.tids)
		return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0,
				   "the core tells of no threads: their notes are lost or damaged");
	return FATHOM_OK;
}

/* Adds the threads of a core. */
static fathom_err add_all_stored(struct fathom_stacks_work *w, const struct tids *tids,
				 struct fathom_errinfo *reterr)
{
	for (size_t i = 0; i < tids->n; i++) {
		const fathom_err err = add_stored(w, tids->items[i]);

		if (err == FATHOM_E_NOT_FOUND)
			return fathom_fail(reterr, err, "", (uint64_t)tids->items[i],
					   "has no thread of this number");
		if (err)
			return fathom_view_fail(w->view, err, reterr);
	}
	return FATHOM_OK;
}

/* Reads the stacks of a core. */
static fathom_err read_stored(struct fathom_stacks_work *w, struct fathom_errinfo *reterr)
{
	struct tids tids = { 0 };
	fathom_err err = list_stored(w, &tids, reterr);

	if (!err)
		err = fathom_walker_create(w->view, &w->walker, reterr);
	if (!err)
		err = add_all_stored(w, &tids, reterr);
	fathom_array_free(&tids);
	return err;
}

/* Reads the registers of @s, which must be of @arch; returns false if they are not. */
static bool read_sample(const struct fathom_stack_sample *s, const struct fathom_unwind_arch *arch,
			struct fathom_registers *ret)
{
	const struct fathom_thread_registers *from = &s->registers;

	*ret = (struct fathom_registers){ .machine = arch->machine };
	for (uint8_t i = 0; i < arch->n && i < from->n; i++)
		if (from->known >> i & 1)
			fathom_register_set(ret, i, from->value[i]);
	ret->pc = ret->value[arch->pc];
	ret->sp = ret->value[arch->sp];
	return s->size == sizeof *s && from->machine == arch->machine &&
	       fathom_register_known(ret, arch->pc) && fathom_register_known(ret, arch->sp);
}

/* Walks the samples. */
static fathom_err add_samples(struct fathom_stacks_work *w, struct fathom_errinfo *reterr)
{
	const struct fathom_unwind_arch *arch =
		fathom_unwind_arch(fathom_walker_machine(w->walker));

	for (size_t i = 0; i < w->n_samples; i++) {
		const struct fathom_stack_sample *s = &w->samples[i];
		const struct fathom_stack_piece piece = { s->stack_address,
							  { s->stack, s->stack_size } };
		struct fathom_thread t = { .tid = s->tid,
					   .pid = w->view->target->pid,
					   .syscall_number = -1 };
		struct fathom_registers r;
		struct fathom_walk walk = { .registers = &r,
					    .pieces = &piece,
					    .n_pieces = 1,
					    .is_past = true,
					    .max_frames = w->options.max_frames,
					    .frames = &w->frames };
		fathom_err err;

		if (!read_sample(s, arch, &r))
			return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", i,
					   "a sample lacks pc or sp, or is of another machine");
		err = fathom_walker_run(w->walker, &walk);
		t.stop = (uint8_t)walk.stop;
		err = err ? err : fathom_stacks_add(w, &t, &r);
		if (err)
			return fathom_view_fail(w->view, err, reterr);
	}
	return FATHOM_OK;
}

/* The different pcs of all frames. */
struct pcs {
	uint64_t *avmas;
	uint8_t *kinds;
	size_t n;
};

/*
 * Collects the different pcs, and says in w->answer_of which one is that of each frame: the threads
 * of a pool have the same ones. @sorted has room for twice the number of frames.
 */
static void collect_pcs(struct fathom_stacks_work *w, struct fathom_keyed *sorted, struct pcs *ret)
{
	const struct fathom_walk_frame *frames = w->frames.items;
	const size_t n = w->frames.n;

	for (size_t i = 0; i < n; i++)
		sorted[i] = (struct fathom_keyed){ frames[i].pc, i };
	fathom_sort_keyed(sorted, sorted + n, n);
	for (size_t i = 0; i < n; i++) {
		const struct fathom_walk_frame *f = &frames[sorted[i].value];

		if (!ret->n || ret->avmas[ret->n - 1] != f->pc ||
		    ret->kinds[ret->n - 1] != f->kind) {
			ret->avmas[ret->n] = f->pc;
			ret->kinds[ret->n++] = f->kind;
		}
		w->answer_of[sorted[i].value] = (uint32_t)(ret->n - 1);
	}
}

/* Names all frames as one batch, in the view that they were found in. */
static fathom_err name_frames(struct fathom_stacks_work *w, struct fathom_errinfo *reterr)
{
	const size_t room = w->frames.n + 1;
	struct fathom_keyed *sorted = malloc(2 * room * sizeof *sorted);
	struct pcs pcs = { malloc(room * sizeof *pcs.avmas), malloc(room), 0 };
	struct fathom_batch_options o = { .kinds = pcs.kinds };
	fathom_err err = FATHOM_E_MEMORY;

	o.flags = w->options.flags & FATHOM_STACK_NAMES_ONLY ? FATHOM_NAMES_ONLY : 0u;
	o.flags |= w->options.flags & FATHOM_STACK_NO_DEMANGLE ? FATHOM_NO_DEMANGLE : 0u;
	free(w->answer_of);
	w->answer_of = malloc(room * sizeof *w->answer_of);
	if (!sorted || !pcs.avmas || !pcs.kinds || !w->answer_of) {
		(void)fathom_fail_memory(reterr);
	} else {
		collect_pcs(w, sorted, &pcs);
		err = fathom_view_answer(w->view, &o, pcs.avmas, pcs.n, &w->to->answers, reterr);
	}
	free(sorted);
	free(pcs.avmas);
	free(pcs.kinds);
	return err;
}

/* Puts the frames and their answers where the threads can point to. */
static fathom_err finish(struct fathom_stacks_work *w)
{
	struct fathom_stacks *s = w->to;
	size_t first = 0;

	s->frames = malloc((w->frames.n + 1) * sizeof *s->frames);
	if (!s->frames)
		return FATHOM_E_MEMORY;
	for (size_t i = 0; i < w->frames.n; i++) {
		const struct fathom_walk_frame *f = &w->frames.items[i];

		s->frames[i] =
			(struct fathom_stack_frame){ .pc = { .address = f->pc, .kind = f->kind },
						     .sp = f->sp,
						     .answer = fathom_answers_get(s->answers,
										  w->answer_of[i]),
						     .trust = f->trust,
						     .is_signal_return = f->is_signal_return };
	}
	for (size_t i = 0; i < s->threads.n; i++) {
		s->threads.items[i].frames = s->frames + first;
		first = w->ends.items[i];
	}
	return FATHOM_OK;
}

/* Returns whether the symbol file that holds the code at @f has the name of @a there. */
static bool is_named_by(struct fathom_stacks_work *w, const struct fathom_walk_frame *f,
			const struct fathom_answer *a)
{
	const struct fathom_str name = { a->linkage_name ? a->linkage_name : a->symbol,
					 a->linkage_name ? a->linkage_size : a->symbol_size };
	const uint64_t avma = fathom_pc_subtract(f->pc, f->kind);
	const struct fathom_symbol_set *symbols;
	struct fathom_symbol_hit hit;
	struct fathom_place place;
	uint64_t svma;

	if (fathom_view_locate_code(w->view, avma, &place) || !place.holder)
		return false;
	symbols = &place.holder->module->symbols;
	if (fathom_symbols_scan(symbols, avma - place.bias, NULL, &hit) &&
	    str_equal(hit.name, name))
		return true;
	/* One of several names for the same code. */
	return fathom_symbols_find(symbols, name.data, &svma) &&
	       svma + place.bias + a->offset == avma;
}

/*
 * Returns whether the names of JIT code are those of the symbol files that were there when the
 * stacks were read: others may have come and left again.
 */
static bool names_stayed(struct fathom_stacks_work *w)
{
	for (size_t i = 0; i < w->frames.n; i++) {
		const struct fathom_answer *a = fathom_answers_get(w->to->answers, w->answer_of[i]);

		if (fathom_source_has_files(a->source) && !is_named_by(w, &w->frames.items[i], a))
			return false;
	}
	return true;
}

/* Finds why threads died. */
static fathom_err read_deaths(struct fathom_stacks_work *w)
{
	struct fathom_death_work d = { .view = w->view,
				       .arena = &w->to->arena,
				       .threads = w->to->threads.items,
				       .n = w->to->threads.n,
				       .is_all = !w->options.tids,
				       .no_demangle =
					       (w->options.flags & FATHOM_STACK_NO_DEMANGLE) != 0 };

	return w->samples ? FATHOM_OK : fathom_death_read(&d);
}

/* Reads and names the stacks in one view. */
static fathom_err read_stacks(struct fathom_stacks_work *w, struct fathom_errinfo *reterr)
{
	struct fathom_live live;
	fathom_err err;

	if (fathom_view_begin_code(w->view))
		return fathom_fail_memory(reterr);
	if (w->samples) {
		FATHOM_TRY(fathom_walker_create(w->view, &w->walker, reterr));
		FATHOM_TRY(add_samples(w, reterr));
	} else if (fathom_view_live(w->view, &live)) {
		FATHOM_TRY(fathom_walker_create(w->view, &w->walker, reterr));
		FATHOM_TRY(fathom_stacks_add_live(w, &live, reterr));
	} else {
		FATHOM_TRY(read_stored(w, reterr));
	}
	if (w->keep) /* a snapshot has no names */
		return fathom_stacks_keep_scripts(w);
	FATHOM_TRY(name_frames(w, reterr));
	if (finish(w))
		return fathom_fail_memory(reterr);
	err = read_deaths(w);
	err = err ? err : fathom_stacks_merge_scripts(w);
	if (err)
		return fathom_view_fail(w->view, err, reterr);
	return w->options.interpret ? fathom_stacks_interpret(w, reterr) : FATHOM_OK;
}

/*
 * Returns whether a stack leads through code that was not there when the process's map was read,
 * and is there now: a library that was loaded meanwhile.
 */
static bool leads_to_new_code(struct fathom_stacks_work *w, struct fathom_target *target)
{
	struct fathom_view *now = NULL;
	bool is_new = false;

	if (!target->ops->live || w->samples || w->keep)
		return false;
	for (size_t i = 0; !is_new && i < w->frames.n + w->astray.n; i++) {
		const bool is_frame = i < w->frames.n;
		const struct fathom_walk_frame f =
			is_frame ? w->frames.items[i]
				 : (struct fathom_walk_frame){
					   .pc = w->astray.items[i - w->frames.n],
					   .kind = FATHOM_PC_RETURN
				   };
		struct fathom_place place;

		if (is_frame && fathom_answers_get(w->to->answers, w->answer_of[i])->reason !=
					FATHOM_REASON_UNMAPPED)
			continue;
		if (!now && fathom_view_begin(target, FATHOM_VIEW_PLACES, &now, NULL))
			break;
		is_new = !fathom_view_locate(now, fathom_pc_subtract(f.pc, f.kind), &place) &&
			 place.is_code;
	}
	fathom_view_end(now);
	return is_new;
}

/*
 * Times that reading begins anew because exec() has put another program in its place, because JIT
 * code that a stack led through has changed, or because code has come.
 */
#define TRIES 3

/* Makes the snapshot of what was read; *@ret_changed: the process loaded or unloaded files. */
static fathom_err take_snapshot(struct fathom_stacks_work *w, bool *ret_changed,
				struct fathom_errinfo *reterr)
{
	struct fathom_stored_stacks kept;

	if (fathom_keep_finish(w->keep, &kept))
		return fathom_fail_memory(reterr);
	return fathom_snapshot_take(w->view, &kept, w->snapshot, ret_changed, reterr);
}

/* Reads the stacks in a view of their own; *@ret_stayed: what they are of stayed what it was. */
static fathom_err capture_once(struct fathom_stacks_work *w, struct fathom_target *target,
			       bool *ret_stayed, struct fathom_errinfo *reterr)
{
	bool has_changed = false;
	fathom_err err;

	FATHOM_TRY(fathom_view_begin(target, FATHOM_VIEW_MEMORY, &w->view, reterr));
	err = FATHOM_OK;
	if (!w->samples && !(w->options.flags & FATHOM_STACK_NATIVE))
		err = fathom_interpreters_create(w->view, &w->interpreters);
	err = err ? fathom_fail_memory(reterr) : read_stacks(w, reterr);
	if (!err && w->keep)
		err = take_snapshot(w, &has_changed, reterr);
	*ret_stayed = !has_changed &&
		      (!target->ops->has_stayed || target->ops->has_stayed(w->view)) &&
		      (err || w->keep || names_stayed(w)) && fathom_view_jit_stayed(w->view);
	fathom_walker_destroy(w->walker);
	w->walker = NULL;
	fathom_interpreters_destroy(w->interpreters);
	w->interpreters = NULL;
	fathom_view_end(w->view);
	return err;
}

static fathom_err capture(struct fathom_stacks_work *w, struct fathom_target *target,
			  struct fathom_errinfo *reterr)
{
	bool stayed = false;
	fathom_err err = FATHOM_OK;

	for (int i = 0; i < TRIES && !stayed && !err; i++) {
		fathom_stacks_free(w->to);
		w->frames.n = 0;
		w->ends.n = 0;
		w->astray.n = 0;
		w->scripts.n = 0;
		w->script_ends.n = 0;
		if (w->keep)
			fathom_keep_clear(w->keep);
		w->to = calloc(1, sizeof *w->to);
		if (!w->to)
			return fathom_fail_memory(reterr);
		err = capture_once(w, target, &stayed, reterr);
		/* The last result is kept, though it may be incomplete. */
		if (!err && stayed && i + 1 < TRIES)
			stayed = !leads_to_new_code(w, target);
	}
	if (!err && !stayed)
		err = fathom_fail(reterr, FATHOM_E_CHANGED, "", 0,
				  "the process kept running other programs, or changing its code");
	return err || !target->ops->check ? err : target->ops->check(target, false, reterr);
}

static fathom_err read_options(const struct fathom_stack_options *options,
			       struct fathom_stack_options *ret)
{
	const uint32_t known =
		FATHOM_STACK_NAMES_ONLY | FATHOM_STACK_NO_DEMANGLE | FATHOM_STACK_NATIVE;

	if (options &&
	    (!FATHOM_OPTIONS_READ(options, ret, known) || ret->stop > FATHOM_STACK_STOP_ALL ||
	     (!ret->tids && ret->n_tids) || ret->outer_frames > (1u << 24) || ret->reserved1))
		return FATHOM_E_ARGUMENT;
	if (!ret->max_frames)
		ret->max_frames = 10000;
	if (!ret->deadline_ms)
		ret->deadline_ms = 10000;
	return FATHOM_OK;
}

/* Says why @target has no stacks. */
static fathom_err fail_kind(const struct fathom_target *target, struct fathom_errinfo *reterr)
{
	struct fathom_target_info info;
	const char *why = "has no stacks: processes and cores have";

	if (target->kind == FATHOM_TARGET_FILE)
		why = "is a file: stacks are those of processes and cores";
	else if (target->kind == FATHOM_TARGET_SNAPSHOT)
		why = "the snapshot was taken without --stacks: it has none";
	else if (target->kind == FATHOM_TARGET_KERNEL)
		why = "has no stacks that fathom reads: processes and cores have";
	fathom_target_get_info(target, &info);
	(void)fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0, why);
	if (info.path)
		fathom_errinfo_set_file(reterr, info.path);
	return FATHOM_E_UNSUPPORTED;
}

/* Reads the stacks, and keeps what they were found by if @keep is not NULL. */
static fathom_err read_target(struct fathom_target *target,
			      const struct fathom_stack_options *options,
			      struct fathom_stacks_work *w, struct fathom_stacks **ret,
			      struct fathom_errinfo *reterr)
{
	fathom_err err;

	if (read_options(options, &w->options))
		return fathom_fail_options(reterr);
	if (!target->ops->threads && !target->ops->live)
		return fail_kind(target, reterr);
	err = capture(w, target, reterr);
	fathom_array_free(&w->frames);
	fathom_array_free(&w->ends);
	fathom_array_free(&w->astray);
	fathom_array_free(&w->scripts);
	fathom_array_free(&w->script_ends);
	free(w->answer_of);
	if (err)
		fathom_stacks_free(w->to);
	else
		*ret = w->to;
	return err;
}

/* Does so as one call of the caller. */
static fathom_err run(struct fathom_target *target, const struct fathom_stack_options *options,
		      struct fathom_stacks_work *w, struct fathom_stacks **ret_stacks,
		      struct fathom_errinfo *reterr)
{
	struct fathom_stacks *stacks = NULL;
	struct fathom_call call;
	fathom_err err;

	fathom_call_begin(&call, target->session);
	err = read_target(target, options, w, &stacks, reterr);
	err = fathom_call_end(&call, err, reterr);
	if (err)
		fathom_stacks_free(stacks);
	else
		*ret_stacks = stacks;
	return err;
}

fathom_err fathom_stacks_capture(struct fathom_target *target,
				 const struct fathom_stack_options *options,
				 struct fathom_stacks **ret_stacks, struct fathom_errinfo *reterr)
{
	struct fathom_stacks_work w = { 0 };

	return run(target, options, &w, ret_stacks, reterr);
}

fathom_err fathom_stacks_unwind_samples(struct fathom_target *target,
					const struct fathom_stack_options *options,
					const struct fathom_stack_sample *samples, size_t n,
					struct fathom_stacks **ret_stacks,
					struct fathom_errinfo *reterr)
{
	static const struct fathom_stack_sample none;
	struct fathom_stacks_work w = { .samples = n ? samples : &none, .n_samples = n };

	return run(target, options, &w, ret_stacks, reterr);
}

fathom_err fathom_snapshot_write_stacks(struct fathom_target *target,
					const struct fathom_stack_options *options,
					const char *path, struct fathom_errinfo *reterr)
{
	struct fathom_stacks *stacks = NULL;
	struct fathom_keep keep = { 0 };
	struct fathom_bytes_array snapshot = { NULL, 0, 0 };
	struct fathom_stacks_work w = { .keep = &keep, .snapshot = &snapshot };
	struct fathom_call call;
	fathom_err err;

	if (!target->ops->store)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "snapshots are taken of processes and cores");
	fathom_call_begin(&call, target->session);
	err = read_target(target, options, &w, &stacks, reterr);
	if (!err)
		err = fathom_snapshot_put(target, &snapshot, path, reterr);
	err = fathom_call_end(&call, err, reterr);
	fathom_stacks_free(stacks);
	fathom_keep_deinit(&keep);
	fathom_array_free(&snapshot);
	return err;
}

size_t fathom_stacks_count(const struct fathom_stacks *stacks)
{
	return stacks->threads.n;
}

const struct fathom_thread *fathom_stacks_get(const struct fathom_stacks *stacks, size_t i)
{
	return &stacks->threads.items[i];
}

void fathom_stacks_free(struct fathom_stacks *stacks)
{
	if (!stacks)
		return;
	fathom_answers_free(stacks->answers);
	fathom_arena_deinit(&stacks->arena);
	fathom_array_free(&stacks->threads);
	free(stacks->frames);
	free(stacks);
}
