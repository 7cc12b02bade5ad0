/* SPDX-License-Identifier: MIT */
#include "host/self/self.h"

#include <elf.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include "host/base/clock.h"
#include "host/base/option_struct.h"
#include "host/base/progress.h"
#include "host/module/cache_key.h"
#include "host/module/rule_table.h"
#include "host/space/own_process.h"
#include "safe/base/limits.h"
#include "safe/jit/registry.h"
#include "safe/self/loader.h"
#include "safe/self/other_thread.h"

/* Outgrown tables of places, kept to the end because readers may still use them. */
struct old_table {
	struct old_table *next;
	struct fathom_self_table *table;
};

struct host_self {
	struct fathom_self self; /* the handlers' view */
	struct fathom *session;
	struct fathom_search_paths *paths; /* refers to session */
	struct fathom_notes notes;
	pthread_mutex_t lock; /* protects the members below, except the counters */
	uint32_t flags;
	struct fathom_self_prepared *prepared;
	uint64_t n_looks;
	_Atomic uint32_t readers;
	_Atomic uintptr_t registries[FATHOM_MAX_REGISTRIES];
	struct old_table *old;
	/* The loader's counters when the current table was made. */
	_Atomic uint64_t loaded;
	_Atomic uint64_t unloaded;
};

/* Most attempts to get a consistent look while the loader keeps loading. */
#define MAX_ATTEMPTS 8

static struct host_self *host_of(struct fathom_self *self)
{
	return (struct host_self *)self;
}

static void free_prepared(struct host_self *h, struct fathom_self_prepared *p)
{
	fathom_memory_uncount(&h->session->memory, p->bytes);
	fathom_cache_file_close(p->lines);
	fathom_array_free(&p->strings);
	fathom_array_free(&p->demangled);
	free(p->starts);
	free(p->winners);
	free(p->buckets);
	free(p->symbols);
	free(p->rules);
	free(p->path);
	free(p);
}

/* Reads the identity of @m's module; returns false if it has none. */
static bool identify(const struct fathom_module_at *m, struct fathom_self_prepared *ret)
{
	const struct fathom_object *o = m->module->main;

	if (o->file->id.inode)
		ret->files = fathom_cache_identity(m->module);
	if (o->build_id.size <= sizeof ret->build_id) {
		ret->module.build_id_size = (uint32_t)o->build_id.size;
		if (o->build_id.size)
			memcpy(ret->build_id, o->build_id.data, (size_t)o->build_id.size);
	}
	return ret->files || ret->module.build_id_size;
}

static bool is_same(const struct fathom_self_prepared *a, const struct fathom_self_prepared *b)
{
	return strcmp(a->path, b->path) == 0 && a->files == b->files &&
	       a->module.build_id_size == b->module.build_id_size &&
	       memcmp(a->build_id, b->build_id, sizeof a->build_id) == 0;
}

/* Completes @p and counts its memory. */
static void finish(struct host_self *h, struct fathom_self_prepared *p)
{
	struct fathom_self_module *to = &p->module;

	to->path = p->path;
	to->build_id = p->build_id;
	to->strings = p->strings.items;
	to->demangled = p->demangled.items;
	to->n_demangled = (uint32_t)p->demangled.n;
	p->bytes += p->strings.cap + p->demangled.cap * sizeof *to->demangled;
	fathom_memory_count(&h->session->memory, p->bytes);
	p->next = h->prepared;
	h->prepared = p;
}

struct places {
	FATHOM_ARRAY_OF(struct fathom_self_place);
};

/* One look at the process. */
struct look {
	struct host_self *self;
	struct fathom_self_loaded_array loaded;
	struct places places;
	fathom_err err; /* error of the first module that could not be prepared */
	struct fathom_errinfo info;
	uint64_t n_modules; /* modules visited */
	uintptr_t registries[FATHOM_MAX_REGISTRIES];
	size_t n_registries;
};

/* Returns the address of the build-id in memory; 0: none. */
static uintptr_t place_of_build_id(const struct fathom_module_at *m)
{
	const struct fathom_object *o = m->module->main;
	const uint64_t off = (uint64_t)(o->build_id.data - o->image.bytes.data);
	struct fathom_segment s;

	for (uint32_t i = 0; o->build_id.size && i < o->image.phnum; i++)
		if (fathom_image_segment(&o->image, i, &s) && s.type == PT_LOAD && off >= s.off &&
		    range_inside(off - s.off, o->build_id.size, s.filesz))
			return (uintptr_t)(m->bias + s.vaddr + (off - s.off));
	return 0;
}

/* Returns the loader's flags for the segment at @low of the object loaded at @bias. */
static uintptr_t flags_of(const struct look *l, uintptr_t bias, uintptr_t low)
{
	const struct fathom_self_loaded *o = l->loaded.items;

	for (size_t i = 0; i < l->loaded.n; i++)
		if ((o[i].bias == bias || o[i].is_vdso) && low >= o[i].low && low < o[i].high)
			return FATHOM_SELF_OURS | (o[i].stays ? FATHOM_SELF_STAYS : 0);
	return 0;
}

/* Returns whether a segment of @m belongs to an object that stays. */
static bool any_stays(const struct look *l, const struct fathom_module_at *m)
{
	const struct fathom_image *image = &m->module->main->image;
	struct fathom_segment s;

	for (uint32_t i = 0; i < image->phnum; i++)
		if (fathom_image_segment(image, i, &s) && s.type == PT_LOAD &&
		    flags_of(l, (uintptr_t)m->bias, (uintptr_t)(m->bias + s.vaddr)) &
			    FATHOM_SELF_STAYS)
			return true;
	return false;
}

/* Returns the earlier preparation of the module of @p, which is unfinished; NULL: none. */
static struct fathom_self_prepared *find_prepared(const struct host_self *h,
						  const struct fathom_self_prepared *p,
						  bool is_identified)
{
	struct fathom_self_prepared *old = h->prepared;

	if (is_identified)
		while (old && !is_same(old, p))
			old = old->next;
	else
		while (old && !(old->stays && p->stays && old->bias == p->bias &&
				strcmp(old->path, p->path) == 0))
			old = old->next;
	return old;
}

/* Makes the unwind rules of @m. Without room for them, its code ends walks. */
static fathom_err copy_rules(struct fathom_module *m, struct fathom_self_prepared *p)
{
	const fathom_err err = fathom_rule_table_make(m, &p->rules);

	if (err)
		return err == FATHOM_E_MEMORY ? err : FATHOM_OK;
	p->module.rules = p->rules;
	p->bytes += p->rules->n_rows * UINT64_C(4) + p->rules->n_pages * UINT64_C(4);
	return FATHOM_OK;
}

/* Copies the needed data of @m; also fails if its file was truncated meanwhile. */
static fathom_err copy_module(struct look *l, struct fathom_module *m,
			      struct fathom_self_prepared *p)
{
	if (l->self->flags & FATHOM_SELF_FULL)
		FATHOM_TRY(fathom_self_copy_lines(m, p));
	FATHOM_TRY(fathom_self_copy_names(m, p));
	if (l->self->flags & FATHOM_SELF_UNWIND)
		FATHOM_TRY(copy_rules(m, p));
	return fathom_module_check(m, &l->info);
}

/* Returns the prepared module of @m; NULL on failure. */
static struct fathom_self_prepared *prepare_module(struct look *l, const struct fathom_module_at *m)
{
	struct host_self *h = l->self;
	struct fathom_self_prepared *p = calloc(1, sizeof *p);
	struct fathom_self_prepared *old = NULL;

	l->err = FATHOM_E_MEMORY;
	if (!p)
		return NULL;
	p->path = strdup(m->name);
	p->bias = (uintptr_t)m->bias;
	p->stays = any_stays(l, m);
	if (p->path)
		old = find_prepared(h, p, identify(m, p));
	if (old) {
		old->stays |= p->stays;
		free_prepared(h, p);
		l->err = FATHOM_OK;
		return old;
	}
	if (p->path)
		l->err = copy_module(l, m->module, p);
	if (l->err) {
		p->bytes = 0;
		free_prepared(h, p);
		return NULL;
	}
	finish(h, p);
	return p;
}

static void ask_loader(struct fathom_self_place *p)
{
	struct fathom_self_object o;

	if (fathom_self_object_at(p->low, &o)) {
		/* Also a module of another dlmopen() namespace. */
		p->flags |= FATHOM_SELF_OURS;
		p->object = o.start;
		p->object_end = o.end;
	}
}

/* Returns whether @p may be unloaded but the loader does not know it. */
static bool is_unknown(const struct fathom_self_place *p)
{
	return !p->object && !(p->flags & FATHOM_SELF_STAYS) && fathom_self_has_loader();
}

static bool add_place(struct look *l, const struct fathom_self_place *segment)
{
	struct fathom_self_place *p;

	if (!fathom_array_room(&l->places, 1))
		return false;
	p = l->places.items + l->places.n++;
	*p = *segment;
	p->flags |= flags_of(l, p->bias, p->low);
	ask_loader(p);
	return true;
}

/* Notes the registry of published code of @m, unless it is the library's own. */
static void add_registry(struct look *l, const struct fathom_module_at *m)
{
	uint64_t svma;
	uintptr_t at;

	if (l->n_registries == FATHOM_MAX_REGISTRIES ||
	    !fathom_module_jit_registry(m->module, &svma))
		return;
	at = (uintptr_t)(m->bias + svma);
	if (at != (uintptr_t)&fathom_registry_own)
		l->registries[l->n_registries++] = at;
}

/* Replaces the list of registries by that of @l. */
static void publish_registries(struct host_self *h, const struct look *l)
{
	for (size_t i = 0; i < FATHOM_MAX_REGISTRIES; i++)
		atomic_store(&h->registries[i], l->registries[i]);
}

static bool add_module(const struct fathom_module_at *m, void *data)
{
	struct look *l = data;
	const struct fathom_image *image = &m->module->main->image;
	struct fathom_self_prepared *p;
	struct fathom_segment s;

	if (!fathom_goes_on(l->self->session, FATHOM_PHASE_PREPARE, l->n_modules++, 0)) {
		l->err = FATHOM_E_CANCELLED;
		return false;
	}
	/* The process has only code of its own machine. */
	if (image->is64 != (sizeof(void *) == 8) || image->swap)
		return true;
	p = prepare_module(l, m);
	if (p) {
		p->look = l->self->n_looks;
		add_registry(l, m);
	}
	for (uint32_t i = 0; p && i < image->phnum; i++) {
		struct fathom_self_place place = { .bias = (uintptr_t)m->bias,
						   .build_id = place_of_build_id(m),
						   .module = (uintptr_t)&p->module };

		if (!fathom_image_segment(image, i, &s) || s.type != PT_LOAD || !s.memsz)
			continue;
		place.low = (uintptr_t)(m->bias + s.vaddr);
		place.high = place.low + (uintptr_t)s.memsz;
		if (place.high > place.low && !add_place(l, &place)) {
			l->err = FATHOM_E_MEMORY;
			p = NULL;
		}
	}
	return p != NULL;
}

static int compare_lows(const void *a, const void *b)
{
	const struct fathom_self_place *x = a;
	const struct fathom_self_place *y = b;

	return x->low < y->low ? -1 : x->low > y->low;
}

/* Sorts the places; where two overlap, the one that starts last wins. */
static void sort_places(struct places *a)
{
	struct fathom_self_place *p = a->items;

	if (a->n)
		qsort(p, a->n, sizeof *p, compare_lows);
	for (size_t i = 0; i + 1 < a->n; i++)
		if (p[i].high > p[i + 1].low)
			p[i].high = p[i + 1].low;
}

static struct fathom_self_table *table_new(uint32_t cap)
{
	struct fathom_self_table *t = calloc(1, sizeof *t);

	if (!t)
		return NULL;
	t->cap = cap;
	t->lows = calloc(cap, sizeof *t->lows);
	t->rows = calloc(cap, sizeof *t->rows);
	if (t->lows && t->rows)
		return t;
	free((void *)t->lows);
	free(t->rows);
	free(t);
	return NULL;
}

static void table_free(struct fathom_self_table *t)
{
	if (!t)
		return;
	free((void *)t->lows);
	free(t->rows);
	free(t);
}

/* Makes room for @n places in the spare table. */
static bool reserve_table(struct host_self *h, size_t n)
{
	_Atomic(struct fathom_self_table *) *slot =
		&h->self.tables[(atomic_load(&h->self.generation) + 1) & 1];
	struct fathom_self_table *t = atomic_load(slot);
	struct old_table *old;
	uint32_t cap = t->cap;

	if (n <= cap)
		return true;
	if (n > UINT32_MAX / 4)
		return false;
	while (cap < n)
		cap *= 2;
	old = malloc(sizeof *old);
	t = old ? table_new(cap) : NULL;
	if (!t) {
		free(old);
		return false;
	}
	/* Keep the outgrown table: a reader may still be in it. */
	*old = (struct old_table){ h->old, atomic_load(slot) };
	h->old = old;
	atomic_store_explicit(slot, t, memory_order_release);
	return true;
}

/* Visits the modules of this process and takes over the notes. */
static fathom_err walk_modules(struct host_self *h, struct look *l, struct fathom_errinfo *reterr)
{
	const struct fathom_errinfo *note;
	struct fathom_target *t;
	struct fathom_view *v;
	fathom_err err;

	FATHOM_TRY(fathom_own_process_open(h->paths, fathom_self_make_map, &t, reterr));
	err = fathom_view_begin(t, FATHOM_VIEW_PLACES, &v, reterr);
	if (!err) {
		err = fathom_view_modules(v, add_module, l);
		if (err)
			(void)fathom_view_fail(v, err, reterr);
		fathom_view_end(v);
	}
	for (size_t i = 0; (note = fathom_target_note(t, i)) != NULL; i++)
		fathom_notes_add(&h->notes, note);
	fathom_target_release(t);
	return err;
}

static fathom_err look_around(struct host_self *h, struct look *l, struct fathom_errinfo *reterr)
{
	fathom_err err;

	*l = (struct look){ .self = h };
	h->n_looks++;
	if (fathom_self_list(&l->loaded))
		return fathom_fail_memory(reterr);
	err = walk_modules(h, l, reterr);
	if (err || !l->err)
		return err;
	if (l->err != FATHOM_E_CHANGED)
		return fathom_fail_memory(reterr);
	if (reterr)
		*reterr = l->info;
	return FATHOM_E_CHANGED;
}

/* Returns whether the current table is up to date. */
static bool is_current(const struct host_self *h, struct fathom_self_counters c)
{
	/* The loader counts from 1. */
	return atomic_load_explicit(&h->loaded, memory_order_acquire) == c.loaded &&
	       atomic_load_explicit(&h->unloaded, memory_order_acquire) == c.unloaded && c.loaded;
}

/*
 * Removes the module that was unloaded first from the list; returns NULL if no more are unloaded
 * than are kept.
 */
static struct fathom_self_prepared *take_gone(struct host_self *h)
{
	struct fathom_self_prepared **oldest = NULL;
	struct fathom_self_prepared *p;
	size_t n = 0;

	for (struct fathom_self_prepared **at = &h->prepared; *at; at = &(*at)->next) {
		if ((*at)->look == h->n_looks || (*at)->stays)
			continue;
		n++;
		if (!oldest || (*at)->look <= (*oldest)->look)
			oldest = at;
	}
	if (n <= FATHOM_SELF_KEPT)
		return NULL;
	p = *oldest;
	*oldest = p->next;
	return p;
}

/*
 * Frees modules unloaded long ago once there are no readers. The current table must be of the last
 * look.
 */
static void free_gone(struct host_self *h)
{
	struct fathom_self_prepared *p;

	if (atomic_load(&h->readers))
		return;
	while ((p = take_gone(h)) != NULL)
		free_prepared(h, p);
}

/*
 * Asks the loader again about unknown modules after it has finished. Such a module was being loaded
 * or unloaded, or the program has mapped it itself. Its build-id in memory proves nothing, because
 * a library file mapped for reading has it, too.
 */
static void ask_again(struct places *places)
{
	struct fathom_self_place *p = places->items;
	bool any = false;

	for (size_t i = 0; i < places->n; i++)
		any |= is_unknown(&p[i]);
	if (!any)
		return;
	fathom_self_await_loader();
	for (size_t i = 0; i < places->n; i++)
		if (is_unknown(&p[i]))
			ask_loader(&p[i]);
}

/*
 * Returns whether the loader lists a module that it does not know yet: this thread calls from
 * inside it.
 */
static bool is_loading(const struct places *places)
{
	const struct fathom_self_place *p = places->items;

	for (size_t i = 0; i < places->n; i++)
		if (is_unknown(&p[i]) && p[i].flags & FATHOM_SELF_OURS)
			return true;
	return false;
}

/*
 * Drops unknown modules, because something was loaded or unloaded meanwhile; the next look will
 * find them.
 */
static void forget_unknown(struct places *places)
{
	struct fathom_self_place *p = places->items;
	size_t n = 0;

	for (size_t i = 0; i < places->n; i++)
		if (!is_unknown(&p[i]))
			p[n++] = p[i];
	places->n = n;
}

/*
 * Makes a table of the current modules; sets *@ret_settled if nothing was loaded or unloaded
 * meanwhile.
 */
static fathom_err make_table(struct host_self *h, bool *ret_settled, struct fathom_errinfo *reterr)
{
	const struct fathom_self_counters before = fathom_self_count();
	struct fathom_self_counters after;
	struct look l;
	fathom_err err = look_around(h, &l, reterr);

	ask_again(&l.places);
	after = fathom_self_count();
	*ret_settled = before.loaded == after.loaded && before.unloaded == after.unloaded &&
		       !is_loading(&l.places);
	if (!*ret_settled)
		forget_unknown(&l.places);
	if (!err) {
		sort_places(&l.places);
		if (!reserve_table(h, l.places.n))
			err = fathom_fail_memory(reterr);
	}
	if (!err) {
		/* Readers must not take the old counters for the new table's. */
		atomic_store_explicit(&h->loaded, 0, memory_order_release);
		fathom_self_publish(&h->self, l.places.items, (uint32_t)l.places.n);
		publish_registries(h, &l);
		if (*ret_settled) {
			atomic_store_explicit(&h->unloaded, after.unloaded, memory_order_release);
			atomic_store_explicit(&h->loaded, after.loaded, memory_order_release);
			free_gone(h);
		}
	}
	fathom_self_list_free(&l.loaded);
	fathom_array_free(&l.places);
	return err;
}

static fathom_err refresh(struct host_self *h, bool *ret_is_current, struct fathom_errinfo *reterr)
{
	fathom_err err = FATHOM_OK;
	bool settled;

	*ret_is_current = is_current(h, fathom_self_count());
	if (*ret_is_current)
		return FATHOM_OK;
	pthread_mutex_lock(&h->lock);
	for (int i = 0; i < MAX_ATTEMPTS && !err && !*ret_is_current; i++) {
		/* Another thread may have refreshed it meanwhile. */
		settled = is_current(h, fathom_self_count());
		if (!settled)
			err = make_table(h, &settled, reterr);
		*ret_is_current = !err && settled;
	}
	pthread_mutex_unlock(&h->lock);
	return err;
}

fathom_err fathom_self_refresh(struct fathom_self *self, struct fathom_errinfo *reterr)
{
	bool current;

	return refresh(host_of(self), &current, reterr);
}

const struct fathom_answer *fathom_self_lookup_now(struct fathom_self *self, struct fathom_pc pc,
						   uint32_t flags, void *buffer, size_t size)
{
	bool current = false;

	if (refresh(host_of(self), &current, NULL))
		current = false;
	return fathom_self_answer(self, pc, flags, current, buffer, size);
}

/*
 * Binds the functions of other libraries that handlers call: lazy binding would take locks, and
 * more stack than anything else. The compiler does not know the sizes, so it emits real calls.
 */
static void bind_functions(void)
{
	volatile size_t size = 8;
	struct fathom_self_object o;
	char from[64] = "";
	char to[64];

	memcpy(to, from, size);
	memmove(to + 1, to, size);
	memset(to, memcmp(from, to, size), size);
	(void)fathom_self_object_at((uintptr_t)bind_functions, &o);
}

/* Initializes both tables without places. */
static bool init_tables(struct host_self *h)
{
	for (int i = 0; i < 2; i++) {
		struct fathom_self_table *t = table_new(64);

		if (!t)
			return false;
		atomic_init(&h->self.tables[i], t);
	}
	return true;
}

/* Notes where the program and the dynamic linker begin: their stacks end there. */
static void find_entries(struct fathom_self *self)
{
	const ElfW(Ehdr) *loader = (const void *)(uintptr_t)getauxval(AT_BASE);

	self->entries[0] = (uintptr_t)getauxval(AT_ENTRY);
	if (loader)
		self->entries[1] = (uintptr_t)loader + loader->e_entry;
}

/* Makes the cache of rules, if unwinding is prepared. */
static bool init_rules(struct host_self *h)
{
	if (!(h->flags & FATHOM_SELF_UNWIND))
		return true;
	h->self.rules = calloc(FATHOM_SELF_RULES, sizeof *h->self.rules);
	/* The first trace finds all pages of it there. */
	for (size_t i = 0; h->self.rules && i < FATHOM_SELF_RULES; i++)
		atomic_store_explicit(&h->self.rules[i].key, 0, memory_order_relaxed);
	return h->self.rules != NULL;
}

static fathom_err check_options(const struct fathom_self_options *options,
				struct fathom_self_options *ret, struct fathom_errinfo *reterr)
{
	*ret = (struct fathom_self_options){ .size = sizeof *ret };
	if (options && !FATHOM_OPTIONS_READ(options, ret, FATHOM_SELF_FULL | FATHOM_SELF_UNWIND))
		return fathom_fail_options(reterr);
	return FATHOM_OK;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)number;
	fathom_be_held(info, context);
}

/* Prepares @signal to hold threads. */
static fathom_err init_held(struct host_self *h, int32_t signal, struct fathom_errinfo *reterr)
{
	struct sigaction action = { .sa_sigaction = on_signal,
				    .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK };
	struct sigaction before;

	if (!signal)
		return FATHOM_OK;
	if (signal < 1 || signal > 64 || sigaction(signal, NULL, &before))
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "is no signal that can have a handler");
	if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN &&
	    before.sa_sigaction != on_signal)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "the signal has a handler already");
	h->self.held = calloc(1, sizeof *h->self.held);
	if (!h->self.held)
		return fathom_fail_memory(reterr);
	h->self.held->signal = signal;
	sigemptyset(&action.sa_mask);
	return sigaction(signal, &action, NULL)
		       ? fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				     "is no signal that can have a handler")
		       : FATHOM_OK;
}

fathom_err fathom_self_prepare(struct fathom *session, const struct fathom_self_options *options,
			       struct fathom_self **ret_self, struct fathom_errinfo *reterr)
{
	struct fathom_self_options o;
	struct fathom_call call;
	struct host_self *h;
	fathom_err err;

	FATHOM_TRY(check_options(options, &o, reterr));
	h = calloc(1, sizeof *h);
	if (!h)
		return fathom_fail_memory(reterr);
	h->session = session;
	h->flags = o.flags;
	h->self.readers = &h->readers;
	find_entries(&h->self);
	h->self.registries = h->registries;
	h->self.started_ns = (uint64_t)fathom_now_ns();
	pthread_mutex_init(&h->lock, NULL);
	fathom_call_begin(&call, session);
	err = fathom_search_paths_create(session, o.target, &h->paths, reterr);
	if (!err)
		err = init_held(h, o.signal, reterr);
	if (!err)
		err = init_tables(h) && init_rules(h) ? fathom_self_refresh(&h->self, reterr)
						      : fathom_fail_memory(reterr);
	err = fathom_call_end(&call, err, reterr);
	if (err) {
		fathom_self_destroy(&h->self);
		return err;
	}
	bind_functions();
	*ret_self = &h->self;
	return FATHOM_OK;
}

void fathom_self_destroy(struct fathom_self *self)
{
	struct host_self *h = host_of(self);

	if (!h)
		return;
	while (h->prepared) {
		struct fathom_self_prepared *next = h->prepared->next;

		free_prepared(h, h->prepared);
		h->prepared = next;
	}
	while (h->old) {
		struct old_table *next = h->old->next;

		table_free(h->old->table);
		free(h->old);
		h->old = next;
	}
	for (int i = 0; i < 2; i++)
		table_free(atomic_load(&h->self.tables[i]));
	free(h->self.rules);
	/* A thread that did not take its signal in time may do so later. */
	if (h->self.held && !atomic_load(&h->self.held->is_late))
		free(h->self.held);
	fathom_notes_deinit(&h->notes);
	fathom_search_paths_release(h->paths);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

const struct fathom_errinfo *fathom_self_note(const struct fathom_self *self, size_t i)
{
	const struct host_self *h = (const struct host_self *)self;

	return i < FATHOM_MAX_NOTES ? atomic_load_explicit(&h->notes.note[i], memory_order_acquire)
				    : NULL;
}
