/* SPDX-License-Identifier: MIT */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fathom/session.h"
#include "host/base/clock.h"
#include "host/base/option_struct.h"
#include "host/publish/body.h"
#include "host/publish/gdb_interface.h"
#include "host/publish/frame_image.h"
#include "host/publish/perf_files.h"
#include "host/publish/plan.h"
#include "host/publish/registry_table.h"
#include "host/publish/switches.h"
#include "host/publish/unwinders.h"
#include "safe/base/error.h"
#include "safe/base/text.h"

/* Functions of a leaf at first. Small, because a commit makes the leaves anew that it changes. */
#define FIRST_CAPACITY 64

struct fathom_jit_registry fathom_jit_registry = {
	.mutex = PTHREAD_MUTEX_INITIALIZER,
	.capacity = FIRST_CAPACITY,
};
_Atomic uint32_t fathom_jit_on = 0;

static void lock(void)
{
	(void)pthread_mutex_lock(&fathom_jit_registry.mutex);
}

static void unlock(void)
{
	(void)pthread_mutex_unlock(&fathom_jit_registry.mutex);
}

void fathom_jit_say(struct fathom_jit_registry *r, const char *text)
{
	for (size_t i = 0; i < r->n_notes; i++)
		if (r->notes[i] == text)
			return;
	if (r->n_notes < sizeof r->notes / sizeof *r->notes)
		r->notes[r->n_notes++] = text;
}

/* Bytes of scratch that stay after a large commit. */
#define MOST_SCRATCH ((size_t)16 << 20)

struct fathom_bytes fathom_jit_scratch_write(struct fathom_jit_registry *r,
					     void (*put)(struct fathom_jit_registry *r,
							 struct fathom_out *o, const void *data),
					     const void *data)
{
	for (;;) {
		struct fathom_out o = { .at = (uint8_t *)r->scratch.items, .cap = r->scratch.cap };

		put(r, &o, data);
		if (o.n <= o.cap)
			return (struct fathom_bytes){ o.at, o.n };
		if (!fathom_array_room(&r->scratch, o.n + o.n / 2))
			return (struct fathom_bytes){ 0 };
	}
}

static bool is_on(uint32_t consumer)
{
	return atomic_load(&fathom_jit_on) & consumer;
}

static bool wants_symbols(void)
{
	return is_on(FATHOM_JIT_GDB | FATHOM_JIT_REGISTRY);
}

static bool wants_leaves(const struct fathom_jit_registry *r)
{
	return wants_symbols() || fathom_jit_wants_tables(r);
}

/* After fork(), in the child: what other threads were reading is not read any more. */
static void begin_child(void)
{
	fathom_jit_table_forget_readers();
	unlock();
}

/* Says that @word of FATHOM_JIT is unknown, if it is not empty. */
static void say_unknown(struct fathom_jit_registry *r, struct fathom_str word)
{
	struct fathom_text t = text_init(r->unknown, sizeof r->unknown);

	if (!word.size)
		return;
	fathom_text_cstr(&t, "FATHOM_JIT: no consumer is called \"");
	for (uint32_t i = 0; i < word.size; i++)
		fathom_text_char(&t, word.data[i]);
	fathom_text_cstr(&t, "\": " FATHOM_JIT_WORDS);
	fathom_text_end(&t);
	fathom_jit_say(r, r->unknown);
}

/* The first arena decides who is told. Returns whether this is it. Under the lock. */
static bool set_up(struct fathom_jit_registry *r, const struct fathom_jit_arena_options *options)
{
	const char *folder = options->folder ? options->folder : "/tmp";
	struct fathom_str unknown;

	if (r->is_set_up)
		return false;
	r->is_set_up = true;
	r->machine = fathom_jit_own_machine();
	/* Not those of the program that was here before exec(), maybe with the same addresses. */
	r->serial = (uint64_t)fathom_now_ns();
	memcpy(r->folder, folder, strlen(folder) + 1);
	/* A child has the index as it was between two commits. */
	(void)pthread_atfork(lock, unlock, begin_child);
	atomic_store(&fathom_jit_on,
		     fathom_jit_switch(options->consumers, fathom_secure_getenv("FATHOM_JIT"),
				       &unknown));
	say_unknown(r, unknown);
	return true;
}

/* One commit. */
struct commit {
	struct fathom_jit_registry *r;
	struct fathom_jit_arena *arena;
	struct fathom_jit_change_array changes;
	struct fathom_jit_news_array news;
	struct fathom_jit_plan plan;
	struct fathom_jit_table *table; /* NULL: none is wanted */
	/* Removes what has code in [low, high), if there are no changes. */
	uint64_t low;
	uint64_t high;
	struct fathom_jit_blame blame; /* of the failure */
	size_t number;                 /* of the change that failed */
	uint64_t now;                  /* monotonic clock */
};

/* Says what is wrong with change @number, if nothing else is said. */
static void blame(struct commit *c, size_t number, const char *what)
{
	c->number = number;
	c->blame = (struct fathom_jit_blame){ .what = what, .cause = FATHOM_CAUSE_CHANGE };
}

static struct fathom_jit_entry *new_entry(struct commit *c, uint64_t low,
					  struct fathom_jit_body *body, uint64_t index)
{
	struct fathom_jit_entry *e = calloc(1, sizeof *e);

	if (!e)
		return NULL;
	e->low = low;
	e->body = body;
	e->arena = c->arena;
	e->since = c->r->since = c->now > c->r->since ? c->now : c->r->since + 1;
	e->index = index;
	return e;
}

static bool push_change(struct commit *c, struct fathom_jit_entry *e, size_t number)
{
	return fathom_array_push(&c->changes, (struct fathom_jit_change){ e, number });
}

/* Marks the function at @low, of the arena, as one that goes. */
static fathom_err take_out(struct commit *c, const void *code, size_t number,
			   struct fathom_jit_entry **ret)
{
	struct fathom_jit_entry *e = fathom_jit_find(c->r, (uintptr_t)code);

	blame(c, number, "remove, move: no function of the arena begins there");
	if (!e || e->arena != c->arena || e->leaves)
		return FATHOM_E_ARGUMENT;
	if (!push_change(c, e, number))
		return FATHOM_E_MEMORY;
	e->leaves = true;
	*ret = e;
	return FATHOM_OK;
}

/* Adds @e, which it owns, as one that comes. */
static fathom_err put_in(struct commit *c, struct fathom_jit_entry *e, uint64_t from, size_t number)
{
	if (!e || !fathom_array_room(&c->news, 1) || !push_change(c, e, number)) {
		free(e);
		return FATHOM_E_MEMORY;
	}
	c->news.items[c->news.n++] = (struct fathom_jit_news){ e, from };
	return FATHOM_OK;
}

static fathom_err plan_move(struct commit *c, const struct fathom_jit_move *m, size_t number)
{
	const uint64_t to = (uintptr_t)m->to;
	struct fathom_jit_entry *before;
	struct fathom_jit_entry *e;

	FATHOM_TRY(take_out(c, m->from, number, &before));
	blame(c, number, "move: to a place outside of the arena");
	if (to < c->arena->low || to >= c->arena->high || before->body->size > c->arena->high - to)
		return FATHOM_E_ARGUMENT;
	e = new_entry(c, to, before->body, before->index);
	FATHOM_TRY(put_in(c, e, before->low, number));
	before->body->uses++;
	return FATHOM_OK;
}

static fathom_err plan_add(struct commit *c, const struct fathom_jit_function *f, size_t number)
{
	struct fathom_jit_body *body;
	struct fathom_jit_entry *e;
	fathom_err err;

	c->number = number;
	FATHOM_TRY(fathom_jit_body_make(c->r, c->arena, f, &body, &c->blame));
	e = new_entry(c, (uintptr_t)f->code, body, c->r->next_index++);
	err = put_in(c, e, 0, number);
	if (err)
		fathom_jit_body_release(c->r, body);
	return err;
}

static fathom_err plan_changes(struct commit *c, const struct fathom_jit_changes *changes)
{
	const uint8_t *add = (const void *)changes->add;
	struct fathom_jit_entry *e;
	fathom_err err;

	for (size_t i = 0; i < changes->n_remove; i++)
		FATHOM_TRY(take_out(c, changes->remove[i], i, &e));
	for (size_t i = 0; i < changes->n_move; i++)
		FATHOM_TRY(plan_move(c, &changes->move[i], i));
	for (size_t i = 0; i < changes->n_add; i++)
		FATHOM_TRY(plan_add(c, (const void *)(add + i * changes->add->size), i));
	err = fathom_jit_plan_make(c->r, &c->changes, &c->plan);
	if (err) {
		blame(c, c->plan.bad, "function: overlaps another");
	}
	return err;
}

/* Marks all functions of the arena that have code in the range as such that go. */
static fathom_err plan_range(struct commit *c)
{
	for (size_t i = 0; i < c->r->leaves.n; i++) {
		const struct fathom_jit_leaf *l = c->r->leaves.items[i];

		for (size_t k = 0; k < l->n; k++) {
			struct fathom_jit_entry *e = l->entries[k];

			if (e->arena != c->arena || e->low >= c->high ||
			    fathom_jit_high(e) <= c->low)
				continue;
			if (!push_change(c, e, 0))
				return FATHOM_E_MEMORY;
			e->leaves = true;
		}
	}
	return fathom_jit_plan_make(c->r, &c->changes, &c->plan);
}

/* Makes what consumers will be told of: the last that can fail. */
static bool build(struct commit *c)
{
	struct fathom_jit_registry *r = c->r;
	const bool leaves = wants_leaves(r);
	const bool images = fathom_jit_wants_images(r);

	for (size_t i = 0; images && i < c->news.n; i++) {
		struct fathom_jit_entry *e = c->news.items[i].entry;

		if (!fathom_jit_image_of_entry(r, e) || !fathom_jit_entry_prepare(r, e, 0))
			return false;
	}
	for (size_t i = 0; i < c->plan.leaves.n; i++) {
		struct fathom_jit_leaf *l = c->plan.leaves.items[i];

		if (l->commit != c->plan.commit)
			continue;
		if ((leaves && !fathom_jit_leaf_build(r, l, wants_symbols())) ||
		    !fathom_jit_leaf_prepare(r, l, 0))
			return false;
	}
	if (is_on(FATHOM_JIT_REGISTRY))
		c->table = fathom_jit_table_make(r, &c->plan.leaves);
	return c->table || !is_on(FATHOM_JIT_REGISTRY);
}

static void free_entry(struct fathom_jit_registry *r, struct fathom_jit_entry *e)
{
	fathom_jit_image_free(r, e->image);
	fathom_jit_body_release(r, e->body);
	free(e);
}

/* Undoes what plan_changes() and build() did. */
static void give_up(struct commit *c)
{
	fathom_jit_plan_cancel(c->r, &c->plan);
	fathom_jit_table_free(c->table);
	for (size_t i = 0; i < c->changes.n; i++)
		if (c->changes.items[i].entry->leaves)
			c->changes.items[i].entry->leaves = false;
		else
			free_entry(c->r, c->changes.items[i].entry);
}

static void tell_leaves(struct commit *c)
{
	for (size_t i = 0; i < c->plan.leaves.n; i++) {
		struct fathom_jit_leaf *l = c->plan.leaves.items[i];

		if (l->commit != c->plan.commit)
			continue;
		fathom_jit_image_tell(c->r, &l->image);
		if (is_on(FATHOM_JIT_GDB)) {
			l->in_list = true;
			fathom_jit_gdb_add(&l->gdb);
		}
	}
	if (c->table)
		fathom_jit_table_publish(c->r, c->table);
	for (size_t i = 0; i < c->plan.gone.n; i++) {
		struct fathom_jit_leaf *l = c->plan.gone.items[i];

		fathom_jit_image_withdraw(c->r, &l->image);
		if (l->in_list)
			fathom_jit_gdb_remove(&l->gdb);
	}
}

/* Tells everybody, and makes the plan the index. Cannot fail. */
static void carry_out(struct commit *c)
{
	struct fathom_jit_registry *r = c->r;

	fathom_jit_sequence_rise(r);
	for (size_t i = 0; i < c->changes.n; i++) {
		struct fathom_jit_entry *e = c->changes.items[i].entry;

		if (e->leaves)
			fathom_jit_image_withdraw(r, e->image);
	}
	for (size_t i = 0; i < c->news.n; i++)
		fathom_jit_image_tell(r, c->news.items[i].entry->image);
	tell_leaves(c);
	fathom_jit_plan_apply(r, &c->plan);
	fathom_jit_tables_trim(r);
	fathom_jit_sequence_rise(r);
	for (size_t i = 0; i < c->changes.n; i++) {
		struct fathom_jit_entry *e = c->changes.items[i].entry;

		if (!e->leaves)
			continue;
		fathom_jit_flush(r, e->low, fathom_jit_high(e));
		free_entry(r, e);
	}
}

/* All code, for files that begin. */
static void write_all(struct fathom_jit_registry *r)
{
	struct fathom_jit_news_array all = { 0 };

	for (size_t i = 0; i < r->leaves.n; i++) {
		const struct fathom_jit_leaf *l = r->leaves.items[i];

		for (size_t k = 0; k < l->n; k++)
			if (!fathom_array_push(&all,
					       (struct fathom_jit_news){ l->entries[k], 0 })) {
				fathom_jit_say(r, "files: they lack code of before, for lack of "
						  "memory");
				goto out;
			}
	}
	fathom_jit_perf_map_write(r, &all);
	fathom_jit_dump_write(r, &all);
out:
	fathom_array_free(&all);
}

static void write_files(struct fathom_jit_registry *r, const struct fathom_jit_news_array *news)
{
	if (fathom_jit_files_open(r, atomic_load(&fathom_jit_on))) {
		write_all(r);
	} else {
		fathom_jit_perf_map_write(r, news);
		fathom_jit_dump_write(r, news);
	}
}

static fathom_err run(struct commit *c, const struct fathom_jit_changes *changes)
{
	fathom_err err;

	c->now = (uint64_t)fathom_now_ns();
	err = changes ? plan_changes(c, changes) : plan_range(c);
	if (!err && !build(c))
		err = FATHOM_E_MEMORY;
	if (err) {
		give_up(c);
	} else {
		carry_out(c);
		if (changes)
			write_files(c->r, &c->news);
	}
	if (c->r->scratch.cap > MOST_SCRATCH)
		fathom_array_free(&c->r->scratch);
	fathom_array_free(&c->changes);
	fathom_array_free(&c->news);
	return err;
}

/* Tells unwinders from number @first on of leaf @l; false without memory. */
static bool tell_leaf(struct fathom_jit_registry *r, struct fathom_jit_leaf *l, size_t first)
{
	const bool images = fathom_jit_wants_images(r);

	for (size_t k = 0; images && k < l->n; k++) {
		struct fathom_jit_entry *e = l->entries[k];

		if (!fathom_jit_image_of_entry(r, e) || !fathom_jit_entry_prepare(r, e, first))
			return false;
		fathom_jit_image_tell(r, e->image);
	}
	if ((wants_leaves(r) && !l->block && !fathom_jit_leaf_build(r, l, wants_symbols())) ||
	    !fathom_jit_leaf_prepare(r, l, first))
		return false;
	fathom_jit_image_tell(r, &l->image);
	return true;
}

/* Tells unwinders from number @first on of what is published already; false without memory. */
static bool tell_all(struct fathom_jit_registry *r, size_t first)
{
	for (struct fathom_jit_arena *a = r->arenas; a; a = a->next) {
		if (!fathom_jit_arena_prepare(r, a, first))
			return false;
		fathom_jit_image_tell(r, a->image);
	}
	for (size_t i = 0; i < r->leaves.n; i++)
		if (!tell_leaf(r, r->leaves.items[i], first))
			return false;
	return true;
}

/*
 * Looks for unwinders, if anything was loaded since the last time, and takes the lock: never the
 * dynamic linker's within it, because a library that is being loaded may commit.
 */
static void refresh_and_lock(void)
{
	struct fathom_jit_registry *r = &fathom_jit_registry;
	const uint32_t on = atomic_load(&fathom_jit_on);
	struct fathom_jit_found found = { .n = 0 };
	size_t first;

	lock();
	if (!(on & FATHOM_JIT_UNWINDERS) || !fathom_jit_list_objects(r, &found))
		return;
	unlock();
	fathom_jit_find_unwinders(on, &found);
	lock();
	first = fathom_jit_keep_unwinders(r, &found);
	if (first < r->n_unwinders && !tell_all(r, first))
		fathom_jit_say(r, "unwinders: one that was loaded later is not told of all code, "
				  "for lack of memory");
	unlock();
	fathom_jit_close_unwinders(&found);
	lock();
}

/* Returns whether nobody is told of anything, ever. */
static bool is_off(void)
{
	return !atomic_load_explicit(&fathom_jit_on, memory_order_relaxed);
}

/* Fails as @c says, or with @err alone for lack of memory. */
static fathom_err fail(const struct commit *c, fathom_err err, struct fathom_errinfo *reterr)
{
	if (err == FATHOM_E_MEMORY)
		return fathom_fail_memory(reterr);
	(void)fathom_fail(reterr, err, "", c->number, c->blame.what);
	if (reterr) {
		reterr->cause = c->blame.cause;
		reterr->part = (uint32_t)c->blame.part;
	}
	return err;
}

/* Not inlined: its frame is large, and costs more than all else where nobody is told. */
__attribute__((noinline)) static fathom_err commit(struct fathom_jit_arena *arena,
						   const struct fathom_jit_changes *changes,
						   struct fathom_errinfo *reterr)
{
	struct commit c = { .r = &fathom_jit_registry, .arena = arena };
	struct fathom_jit_changes known = { .size = 0 };
	fathom_err err = FATHOM_OK;

	if (changes && !FATHOM_STRUCT_READ(changes, &known))
		return fathom_size_is_set(changes)
			       ? fathom_fail_options(reterr)
			       : fathom_fail(
					 reterr, FATHOM_E_ARGUMENT, "", 0,
					 "changes: .size is not sizeof(struct fathom_jit_changes)");
	refresh_and_lock();
	if (changes)
		err = run(&c, &known);
	unlock();
	return err ? fail(&c, err, reterr) : FATHOM_OK;
}

fathom_err fathom_jit_commit(struct fathom_jit_arena *arena,
			     const struct fathom_jit_changes *changes,
			     struct fathom_errinfo *reterr)
{
	return is_off() ? FATHOM_OK : commit(arena, changes, reterr);
}

fathom_err fathom_jit_remove_range(struct fathom_jit_arena *arena, const void *low, size_t size,
				   struct fathom_errinfo *reterr)
{
	const uint64_t from = (uintptr_t)low;
	struct commit c = { .r = &fathom_jit_registry, .arena = arena, .low = from };
	fathom_err err;

	if (is_off())
		return FATHOM_OK;
	c.high = size > UINT64_MAX - from ? UINT64_MAX : from + size;
	refresh_and_lock();
	err = run(&c, NULL);
	unlock();
	return err ? fail(&c, err, reterr) : FATHOM_OK;
}

fathom_err fathom_jit_add(struct fathom_jit_arena *arena,
			  const struct fathom_jit_function *function, struct fathom_errinfo *reterr)
{
	struct fathom_jit_changes c;

	if (is_off())
		return FATHOM_OK;
	c = (struct fathom_jit_changes){ .size = sizeof c, .add = function, .n_add = 1 };
	return commit(arena, &c, reterr);
}

fathom_err fathom_jit_remove(struct fathom_jit_arena *arena, const void *code,
			     struct fathom_errinfo *reterr)
{
	struct fathom_jit_changes c;

	if (is_off())
		return FATHOM_OK;
	c = (struct fathom_jit_changes){ .size = sizeof c, .remove = &code, .n_remove = 1 };
	return commit(arena, &c, reterr);
}

/* Takes over the rule of @options for all of @a. */
static fathom_err set_rule(struct fathom_jit_registry *r, struct fathom_jit_arena *a,
			   const struct fathom_jit_arena_options *options,
			   struct fathom_jit_blame *blamed)
{
	struct fathom_jit_frame f;
	fathom_err err;

	if (!options->unwind)
		return FATHOM_OK;
	err = fathom_jit_frame_read(options->unwind, r->machine, a->low, a->high - a->low, &f,
				    blamed);
	if (err)
		return err < 0 ? err : FATHOM_OK;
	if (options->unwind->kind != FATHOM_JIT_RESERVED &&
	    options->unwind->kind != FATHOM_JIT_PUSHED) {
		fathom_jit_frame_deinit(&f);
		blamed->what = "unwind: a rule for an arena is RESERVED or PUSHED";
		return FATHOM_E_ARGUMENT;
	}
	a->cie = fathom_jit_cie_find(r, &f.cie);
	a->instructions = f.owned;
	a->n_instructions = (uint32_t)f.instructions.size;
	a->lsda = f.lsda;
	if (a->cie && fathom_jit_image_of_arena(r, a) && fathom_jit_arena_prepare(r, a, 0))
		return FATHOM_OK;
	return FATHOM_E_MEMORY;
}

static void free_arena(struct fathom_jit_registry *r, struct fathom_jit_arena *a)
{
	fathom_jit_image_free(r, a->image);
	free(a->instructions);
	free(a);
}

/* Puts @a among the arenas, unless one that it overlaps has a rule for all of it, or @a has. */
static fathom_err insert(struct fathom_jit_registry *r, struct fathom_jit_arena *a,
			 struct fathom_jit_blame *blamed)
{
	for (const struct fathom_jit_arena *o = r->arenas; o; o = o->next)
		if (a->low < o->high && o->low < a->high && (a->cie || o->cie)) {
			blamed->what = "arena: overlaps one, and a rule is for all of an arena";
			return FATHOM_E_ARGUMENT;
		}
	a->next = r->arenas;
	r->arenas = a;
	fathom_jit_table_widen(a->low, a->high);
	fathom_jit_image_tell(r, a->image);
	return FATHOM_OK;
}

static fathom_err make_arena(const void *memory, size_t size,
			     const struct fathom_jit_arena_options *options,
			     struct fathom_jit_arena **ret, struct fathom_jit_blame *blamed)
{
	struct fathom_jit_registry *r = &fathom_jit_registry;
	struct fathom_jit_arena *a = calloc(1, sizeof *a);
	fathom_err err;

	if (!a)
		return FATHOM_E_MEMORY;
	a->low = (uintptr_t)memory;
	a->high = a->low + size;
	a->is_within_file = options->flags & FATHOM_JIT_WITHIN_FILE;
	err = set_rule(r, a, options, blamed);
	if (!err)
		err = insert(r, a, blamed);
	if (err)
		free_arena(r, a);
	else
		*ret = a;
	return err;
}

fathom_err fathom_jit_arena_create(const void *memory, size_t size,
				   const struct fathom_jit_arena_options *options,
				   struct fathom_jit_arena **ret_arena,
				   struct fathom_errinfo *reterr)
{
	struct fathom_jit_registry *r = &fathom_jit_registry;
	struct fathom_jit_arena_options o = { .size = sizeof o };
	struct fathom_jit_blame blamed = { .what = "" };
	bool is_first;
	fathom_err err;

	if (options && !FATHOM_OPTIONS_READ(options, &o, FATHOM_JIT_WITHIN_FILE))
		return fathom_size_is_set(options)
			       ? fathom_fail_options(reterr)
			       : fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
					     "options: .size is not sizeof(struct "
					     "fathom_jit_arena_options)");
	if (o.consumers & ~(uint32_t)(FATHOM_JIT_ALL | FATHOM_JIT_NOBODY) ||
	    (o.folder && strlen(o.folder) >= sizeof fathom_jit_registry.folder))
		return fathom_fail_options(reterr);
	if (!fathom_jit_own_machine())
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
				   "code of this machine cannot be published");
	if (!size || size > UINTPTR_MAX - (uintptr_t)memory)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0, "the arena is empty");
	lock();
	is_first = set_up(r, &o);
	unlock();
	if (is_first && atomic_load(&fathom_jit_on) & FATHOM_JIT_LIBGCC)
		fathom_jit_open_libgcc();
	refresh_and_lock();
	err = make_arena(memory, size, &o, ret_arena, &blamed);
	unlock();
	if (err == FATHOM_E_MEMORY)
		return fathom_fail_memory(reterr);
	return err ? fathom_fail(reterr, err, "", 0, blamed.what) : FATHOM_OK;
}

/* Removes all functions of @a; false without memory. */
static bool empty(struct fathom_jit_registry *r, struct fathom_jit_arena *a)
{
	struct commit c = { .r = r, .arena = a, .high = UINT64_MAX };

	return run(&c, NULL) == FATHOM_OK;
}

/* Arenas that are kept after they were destroyed. */
#define MOST_GONE_ARENAS 64

/*
 * Frees @a, or keeps it for a while: nongnu's libunwind walks its list, which @a was in, without a
 * lock.
 */
static void retire_arena(struct fathom_jit_registry *r, struct fathom_jit_arena *a)
{
	struct fathom_jit_arena **last = &r->gone_arenas;
	size_t n = 0;

	if (!fathom_jit_wants_tables(r)) {
		free_arena(r, a);
		return;
	}
	a->next = r->gone_arenas;
	r->gone_arenas = a;
	for (; *last && n < MOST_GONE_ARENAS; n++)
		last = &(*last)->next;
	while (*last) {
		struct fathom_jit_arena *next = (*last)->next;

		free_arena(r, *last);
		*last = next;
	}
}

void fathom_jit_arena_destroy(struct fathom_jit_arena *arena)
{
	struct fathom_jit_registry *r = &fathom_jit_registry;
	struct fathom_jit_arena **link = &r->arenas;

	if (!arena)
		return;
	lock();
	if (!empty(r, arena)) {
		/* Without memory its functions stay known, and so does the arena. */
		fathom_jit_say(r, "an arena could not be emptied, for lack of memory");
		unlock();
		return;
	}
	while (*link != arena)
		link = &(*link)->next;
	*link = arena->next;
	fathom_jit_image_withdraw(r, arena->image);
	fathom_jit_flush(r, arena->low, arena->high);
	retire_arena(r, arena);
	unlock();
}

const char *fathom_jit_note(size_t i)
{
	const struct fathom_jit_registry *r = &fathom_jit_registry;
	const char *note;

	lock();
	note = i < r->n_notes ? r->notes[i] : NULL;
	unlock();
	return note;
}

uint32_t fathom_jit_consumers(void)
{
	const struct fathom_jit_registry *r = &fathom_jit_registry;
	uint32_t found;

	lock();
	found = atomic_load(&fathom_jit_on) & (FATHOM_JIT_GDB | FATHOM_JIT_REGISTRY);
	for (size_t i = 0; i < r->n_unwinders; i++)
		found |= r->unwinders[i].consumer;
	found |= r->perf_map ? FATHOM_JIT_PERF_MAP : 0u;
	found |= r->dump.fd ? FATHOM_JIT_JITDUMP : 0u;
	unlock();
	return found;
}
