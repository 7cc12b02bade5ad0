/* SPDX-License-Identifier: MIT */
#include "fathom/hook.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "fathom/target.h"
#include "host/base/option_struct.h"
#include "host/hook/dispatch.h"
#include "host/hook/gate.h"
#include "host/hook/hooked_site.h"
#include "host/hook/near_pool.h"
#include "host/hook/prefix_cfi.h"
#include "host/patch/own_text.h"
#include "host/sites/list.h"
#include "host/trace/select.h"

#define KNOWN_FLAGS (FATHOM_HOOK_OFF | FATHOM_HOOK_EXITS | FATHOM_HOOK_NO_VECTORS)

struct fathom_hook {
	struct fathom_gate *gate;
	bool is_on;
	size_t n_refused[FATHOM_TRACE_NO_FRAME + 1];
	struct fathom_trampoline_cfi rows;
	struct fathom_hook_plans plans;
	FATHOM_ARRAY_OF(struct fathom_hooked_site *);
};

/* State that all hooks of the process share. */
static struct {
	pthread_mutex_t lock;
	pthread_once_t once;
	struct fathom_near_pools code;
	struct fathom_gate *unused;
	/* All gates that were ever made, and all sites, sorted by address. */
	struct {
		FATHOM_ARRAY_OF(struct fathom_gate *);
	} gates;
	struct {
		FATHOM_ARRAY_OF(struct fathom_hooked_site *);
	} sites;
} fathom_hook_state = { .lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT };

static void lock(void)
{
	pthread_mutex_lock(&fathom_hook_state.lock);
}

static void unlock(void)
{
	pthread_mutex_unlock(&fathom_hook_state.lock);
}

/* Other threads that were in hook functions are not in the child. */
static void after_fork(void)
{
	const void *thread;
	const struct fathom_gate *own = fathom_hook_within(&thread);

	for (size_t i = 0; i < fathom_hook_state.gates.n; i++) {
		struct fathom_gate *g = fathom_hook_state.gates.items[i];

		fathom_gate_after_fork(g, thread, g == own);
	}
	unlock();
}

static void follow_forks(void)
{
	(void)pthread_atfork(lock, unlock, after_fork);
}

/* Returns a gate for @fn; NULL without memory. */
static struct fathom_gate *make_gate(fathom_hook_fn fn, void *data)
{
	struct fathom_gate *g = fathom_hook_state.unused;

	if (g) {
		fathom_hook_state.unused = g->next;
	} else {
		if (!fathom_array_room(&fathom_hook_state.gates, 1))
			return NULL;
		g = aligned_alloc(_Alignof(struct fathom_gate), sizeof *g);
		if (!g)
			return NULL;
		memset(g, 0, sizeof *g);
		(void)fathom_array_push(&fathom_hook_state.gates, g);
	}
	g->fn = fn;
	g->data = data;
	return g;
}

static void put_back(struct fathom_gate *g)
{
	g->next = fathom_hook_state.unused;
	fathom_hook_state.unused = g;
}

/* Functions that are chosen. */
struct choice {
	const struct fathom_hook_options *options;
	struct fathom_selection only;
	struct fathom_selection except;
	uint64_t *functions; /* sorted */
};

static int compare_words(const void *a, const void *b)
{
	return u64_compare(*(const uint64_t *)a, *(const uint64_t *)b);
}

static bool has_function(const struct choice *c, uint64_t function)
{
	const size_t n = c->options->n_functions;
	const size_t i = FATHOM_BISECT(n, k, c->functions[k] < function);

	return !n || (i < n && c->functions[i] == function);
}

static bool wants(struct choice *c, const struct fathom_site *site)
{
	const struct fathom_hook_options *o = c->options;

	if (site->place != FATHOM_SITE_ENTRY && !(o->flags & FATHOM_HOOK_EXITS))
		return false;
	return has_function(c, site->function) &&
	       (!o->n_only || fathom_selection_has(&c->only, site)) &&
	       (!o->n_except || !fathom_selection_has(&c->except, site));
}

/* Finds what queries select, and lists the sites of the process. */
static fathom_err list_sites(struct choice *c, struct fathom_target *self,
			     struct fathom_sites **ret_sites, struct fathom_errinfo *reterr)
{
	const bool by_name = c->options->n_only || c->options->n_except;
	const struct fathom_sites_options o = { .size = sizeof o,
						.flags = by_name ? FATHOM_SITES_NAMES : 0 };
	const struct fathom_sites_choice choice = {
		.with_lines = fathom_selection_has_files(&c->only) ||
			      fathom_selection_has_files(&c->except),
	};

	FATHOM_TRY(fathom_selection_find(&c->only, self, reterr));
	FATHOM_TRY(fathom_selection_find(&c->except, self, reterr));
	return fathom_sites_list(self, &o, &choice, ret_sites, reterr);
}

static void choice_deinit(struct choice *c)
{
	fathom_selection_deinit(&c->only);
	fathom_selection_deinit(&c->except);
	free(c->functions);
}

static fathom_err choice_init(struct choice *c, const struct fathom_hook_options *o)
{
	fathom_err err = fathom_selection_init(&c->only, o->only, o->n_only);
	const size_t size = o->n_functions * sizeof *c->functions;

	if (!err)
		err = fathom_selection_init(&c->except, o->except, o->n_except);
	c->options = o;
	c->functions = malloc(size + 1);
	if (err || !c->functions)
		return FATHOM_E_MEMORY;
	if (size)
		memcpy(c->functions, o->functions, size);
	qsort(c->functions, o->n_functions, sizeof *c->functions, compare_words);
	return FATHOM_OK;
}

/* Returns the site at @avma, which is made if there is none; NULL without memory. */
static struct fathom_hooked_site *site_at(uint64_t avma)
{
	const size_t n = fathom_hook_state.sites.n;
	const size_t i = FATHOM_BISECT(n, k, fathom_hook_state.sites.items[k]->avma < avma);
	struct fathom_hooked_site **at, *s;

	if (i < n && fathom_hook_state.sites.items[i]->avma == avma)
		return fathom_hook_state.sites.items[i];
	s = calloc(1, sizeof *s);
	if (!s || !fathom_array_push(&fathom_hook_state.sites, NULL)) {
		free(s);
		return NULL;
	}
	at = fathom_hook_state.sites.items + i;
	memmove(at + 1, at, (n - i) * sizeof *at);
	s->avma = avma;
	*at = s;
	return s;
}

/* Changes that add a hook. */
struct placing {
	struct fathom_hook *hook;
	const struct fathom_hook_options *options;
	uint32_t far_module; /* that has no room near it; UINT32_MAX: none */
};

bool fathom_hooked_site_plan(struct fathom_hook_plans *plans, uint64_t avma, const uint8_t *old,
			     const uint8_t *on, const uint8_t *off, size_t size, uint64_t resume,
			     bool is_on)
{
	return fathom_text_plan_add(&plans->text, avma, old, is_on ? on : off, size, resume) &&
	       fathom_text_plan_add(&plans->toggles, avma, off, on, size, 0);
}

static fathom_err place_at(struct placing *p, const struct fathom_site *site,
			   struct fathom_hooked_site *s)
{
	const bool has_stub = s->stub.avma && fathom_hooked_site_reaches(site, s->stub.avma);
	struct fathom_hook_plans *plans = &p->hook->plans;
	struct fathom_text_plan *stubs = has_stub ? &plans->text : &plans->unused;

	if (!has_stub)
		FATHOM_TRY(fathom_near_stub(&fathom_hook_state.code, site, &s->stub));
	if (!s->stub.avma) {
		p->far_module = site->module;
		p->hook->n_refused[FATHOM_TRACE_TOO_FAR]++;
		return FATHOM_OK;
	}
	fathom_hook_vectors(s);
	if (p->options->flags & FATHOM_HOOK_NO_VECTORS)
		s->vectors_size = 0;
	if (!fathom_hooked_site_place(s, site, p->hook->is_on, stubs, plans) ||
	    !fathom_array_push(p->hook, s))
		return FATHOM_E_MEMORY;
	atomic_store(&s->gate, p->hook->gate);
	return FATHOM_OK;
}

static fathom_err place(struct placing *p, const struct fathom_site *site)
{
	const uint8_t why = fathom_hooked_site_check(site);
	struct fathom_hooked_site *s;

	if (why || site->module == p->far_module) {
		p->hook->n_refused[why ? why : FATHOM_TRACE_TOO_FAR]++;
		return FATHOM_OK;
	}
	s = site_at(site->address);
	return s ? place_at(p, site, s) : FATHOM_E_MEMORY;
}

static void clear_gates(struct fathom_hook *h)
{
	for (size_t i = 0; i < h->n; i++)
		atomic_store(&h->items[i]->gate, NULL);
}

/* Makes the chosen @sites call the hook function. */
static fathom_err place_all(struct placing *p, struct choice *c, const struct fathom_sites *sites,
			    struct fathom_errinfo *reterr)
{
	fathom_err err = FATHOM_OK;

	for (size_t i = 0; i < fathom_sites_count(sites) && !err; i++) {
		const struct fathom_site *site = fathom_sites_get(sites, i);

		if (wants(c, site))
			err = place(p, site);
	}
	if (err == FATHOM_E_MEMORY)
		(void)fathom_fail_memory(reterr);
	if (!err && p->hook->plans.unused.n)
		err = fathom_text_put_unused(&p->hook->plans.unused, true, reterr);
	fathom_text_plan_clear(&p->hook->plans.unused);
	if (!err) {
		fathom_prefix_cfi_publish(&p->hook->rows, p->hook->items, p->hook->n);
		err = fathom_text_put_stopped(&p->hook->plans.text, true, reterr);
	}
	if (err)
		clear_gates(p->hook);
	return err;
}

static fathom_err add(struct fathom_hook *h, struct choice *c, const struct fathom_sites *sites,
		      struct fathom_errinfo *reterr)
{
	struct placing p = { .hook = h, .options = c->options, .far_module = UINT32_MAX };

	return place_all(&p, c, sites, reterr);
}

/* Lists the sites and places the hook. */
static fathom_err make(struct fathom *session, struct fathom_hook *h, struct choice *c,
		       struct fathom_errinfo *reterr)
{
	struct fathom_target *self;
	struct fathom_sites *sites = NULL;
	fathom_err err;

	FATHOM_TRY(fathom_target_open_self(session, NULL, &self, reterr));
	err = list_sites(c, self, &sites, reterr);
	fathom_target_release(self);
	if (err)
		return err;
	lock();
	err = add(h, c, sites, reterr);
	unlock();
	fathom_sites_free(sites);
	return err;
}

static void free_hook(struct fathom_hook *h)
{
	fathom_trampoline_cfi_withdraw(&h->rows);
	fathom_text_plan_clear(&h->plans.text);
	fathom_text_plan_clear(&h->plans.toggles);
	fathom_array_free(h);
	free(h);
}

fathom_err fathom_hook_add(struct fathom *session, fathom_hook_fn fn, void *data,
			   const struct fathom_hook_options *options, struct fathom_hook **ret_hook,
			   struct fathom_errinfo *reterr)
{
	struct fathom_hook_options o = { .size = sizeof o };
	struct choice c = { 0 };
	struct fathom_hook *h;
	fathom_err err;

	if (!session || !fn || !ret_hook ||
	    (options && !FATHOM_OPTIONS_READ(options, &o, KNOWN_FLAGS)) || o.reserved1 ||
	    (o.n_only && !o.only) || (o.n_except && !o.except) || (o.n_functions && !o.functions))
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0, "the hook's options");
	*ret_hook = NULL;
	(void)pthread_once(&fathom_hook_state.once, follow_forks);
	h = calloc(1, sizeof *h);
	err = h ? choice_init(&c, &o) : FATHOM_E_MEMORY;
	lock();
	if (!err && !(h->gate = make_gate(fn, data)))
		err = FATHOM_E_MEMORY;
	unlock();
	if (err) {
		(void)fathom_fail_memory(reterr);
	} else {
		h->is_on = !(o.flags & FATHOM_HOOK_OFF);
		err = make(session, h, &c, reterr);
	}
	choice_deinit(&c);
	if (!err) {
		*ret_hook = h;
		return FATHOM_OK;
	}
	lock();
	if (h && h->gate)
		put_back(h->gate);
	unlock();
	if (h)
		free_hook(h);
	return err;
}

size_t fathom_hook_count(const struct fathom_hook *hook)
{
	return hook->n;
}

size_t fathom_hook_refused(const struct fathom_hook *hook, enum fathom_trace_refusal why)
{
	return why >= FATHOM_TRACE_NO_ROOM && why <= FATHOM_TRACE_NO_FRAME ? hook->n_refused[why]
									   : 0;
}

fathom_err fathom_hook_switch(struct fathom_hook *hook, int on, struct fathom_errinfo *reterr)
{
	fathom_err err = FATHOM_OK;

	lock();
	if (hook->is_on != (on != 0))
		err = fathom_text_put_running(&hook->plans.toggles, on != 0, reterr);
	if (!err) {
		fathom_text_plan_follow(&hook->plans.text, &hook->plans.toggles, on != 0);
		hook->is_on = on != 0;
	}
	unlock();
	return err;
}

fathom_err fathom_hook_remove(struct fathom_hook *hook, struct fathom_errinfo *reterr)
{
	const void *thread;
	fathom_err err;

	if (!hook)
		return FATHOM_OK;
	if (fathom_hook_within(&thread))
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "a hook function cannot remove hooks");
	lock();
	err = fathom_text_put_stopped(&hook->plans.text, false, reterr);
	if (!err)
		clear_gates(hook);
	unlock();
	if (err)
		return err;
	if (fathom_gate_drain(hook->gate)) {
		lock();
		put_back(hook->gate);
		unlock();
	} else {
		err = fathom_fail(reterr, FATHOM_E_TIMEOUT, "", 0,
				  "a thread does not leave the hook function");
	}
	free_hook(hook);
	return err;
}

fathom_err fathom_code_write(void *code, const void *bytes, size_t n, struct fathom_errinfo *reterr)
{
	struct fathom_text_plan plan = { 0 };
	fathom_err err;

	if (!code || !bytes || n > FATHOM_CODE_MOST)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "more bytes than can be written");
	if (!n)
		return FATHOM_OK;
	lock();
	err = fathom_text_plan_add(&plan, (uintptr_t)code, code, bytes, n, 0)
		      ? fathom_text_put_stopped(&plan, true, reterr)
		      : fathom_fail_memory(reterr);
	unlock();
	fathom_text_plan_clear(&plan);
	return err;
}
