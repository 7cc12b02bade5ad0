/* SPDX-License-Identifier: MIT */
#include "cli/top_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <fathom/symbolize.h>

#include "cli/common.h"

/* How long to wait before the next batch, in ns: some places come together. */
#define PAUSE_NS 100000000

/*
 * Each batch reads the tables of its file anew. So a module that took long waits for the next one,
 * that many times as long, but never longer than so many ns.
 */
#define REST_TIMES 10
#define REST_NS    UINT64_C(2000000000)

/* Returns whether @p is to be named now, in one batch with places of @module, if that is any. */
static bool is_due(const struct top_samples *s, const struct top_place *p, uint32_t module,
		   uint64_t now)
{
	return p->naming == TOP_TO_NAME && (module == TOP_NONE || p->module == module) &&
	       s->modules.items[p->module].due <= now;
}

/* Takes the places of one module that have no names yet; false: there are none. */
static bool take_batch(struct top_samples *s, struct top_batch *b, uint64_t now)
{
	uint32_t module = TOP_NONE;
	const struct top_module *m;
	uint8_t *id;

	*b = (struct top_batch){ .generation = s->generation };
	for (size_t i = 0; s->n_to_name && i < s->places.n; i++) {
		struct top_place *p = &s->places.items[i];

		if (!is_due(s, p, module, now))
			continue;
		if (module == TOP_NONE) {
			b->numbers = must(malloc((s->places.n - i) * sizeof *b->numbers));
			b->pcs = must(malloc((s->places.n - i) * sizeof *b->pcs));
		}
		module = p->module;
		p->naming = TOP_ASKED;
		b->numbers[b->n] = (uint32_t)i;
		b->pcs[b->n++] = p->pc;
	}
	if (module == TOP_NONE)
		return false;
	m = &s->modules.items[module];
	b->module = m->m;
	b->pid = m->pid;
	b->module.path = must(strdup(m->m.path));
	id = must(malloc(m->m.build_id_size + 1));
	memcpy(id, m->m.build_id, m->m.build_id_size);
	b->module.build_id = id;
	return true;
}

static void free_batch(struct top_batch *b)
{
	fathom_answers_free(b->answers);
	free((char *)(uintptr_t)b->module.path);
	free((uint8_t *)(uintptr_t)b->module.build_id);
	free(b->numbers);
	free(b->pcs);
	*b = (struct top_batch){ .n = 0 };
}

void top_names_init(struct top_names *t)
{
	*t = (struct top_names){ .options = { .size = sizeof t->options } };
	(void)pthread_mutex_init(&t->lock, NULL);
	(void)pthread_cond_init(&t->changed, NULL);
}

void top_names_deinit(struct top_names *t)
{
	free_batch(&t->batch);
	(void)pthread_mutex_destroy(&t->lock);
	(void)pthread_cond_destroy(&t->changed);
}

/* Gives the places of @b their names. */
static void take_answers(struct top_samples *s, const struct top_batch *b, uint64_t now)
{
	const uint64_t rest = REST_TIMES * b->cost;

	if (b->generation == s->generation)
		s->modules.items[s->places.items[b->numbers[0]].module].due =
			now + (rest < REST_NS ? rest : REST_NS);
	for (size_t i = 0; b->generation == s->generation && i < b->n; i++)
		top_place_name(s, b->numbers[i],
			       b->answers ? fathom_answers_get(b->answers, i) : NULL);
}

void top_names_exchange(struct top_names *t, struct top_samples *s)
{
	const uint64_t now = top_now();

	(void)pthread_mutex_lock(&t->lock);
	if (t->state == TOP_BATCH_ANSWERED) {
		take_answers(s, &t->batch, now);
		free_batch(&t->batch);
		t->state = TOP_BATCH_NONE;
		/* Other modules need not wait. */
		t->passed = 0;
	}
	if (t->state == TOP_BATCH_NONE && now - t->passed > PAUSE_NS) {
		t->passed = now;
		if (take_batch(s, &t->batch, now)) {
			t->state = TOP_BATCH_ASKED;
			(void)pthread_cond_signal(&t->changed);
		}
	}
	(void)pthread_mutex_unlock(&t->lock);
}

/* Asks for the names, below the root directory of @o. Returns whether there are answers. */
static bool ask_below(struct top_names *t, const struct fathom_profile_resolve_options *o,
		      struct top_batch *b)
{
	return top_targets_ask(&t->targets, t->session, o, &b->module, b->pcs, b->n, &b->answers) ||
	       !fathom_profile_name_module(t->session, &b->module, o, b->pcs, b->n, &b->answers,
					   NULL);
}

/*
 * Asks for the names: of the file at its path, else of that which the process sees there, who may
 * have another root directory.
 */
static void ask(struct top_names *t, struct top_batch *b)
{
	struct fathom_profile_resolve_options o = t->options;
	char root[32];

	if (ask_below(t, &o, b) || o.sysroot || b->module.kind != FATHOM_PROFILE_MODULE_FILE)
		return;
	(void)snprintf(root, sizeof root, "/proc/%d/root", (int)b->pid);
	o.sysroot = root;
	(void)ask_below(t, &o, b);
}

/* Returns the processor time of this thread. */
static uint64_t own_ns(void)
{
	struct timespec used;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

void *top_names_run(void *data)
{
	struct top_names *t = data;

	(void)pthread_mutex_lock(&t->lock);
	while (!t->is_over) {
		if (t->state != TOP_BATCH_ASKED) {
			(void)pthread_cond_wait(&t->changed, &t->lock);
			continue;
		}
		(void)pthread_mutex_unlock(&t->lock);
		t->batch.cost = own_ns();
		ask(t, &t->batch);
		t->batch.cost = own_ns() - t->batch.cost;
		(void)pthread_mutex_lock(&t->lock);
		t->state = TOP_BATCH_ANSWERED;
	}
	(void)pthread_mutex_unlock(&t->lock);
	top_targets_deinit(&t->targets);
	return NULL;
}

void top_names_end(struct top_names *t)
{
	(void)pthread_mutex_lock(&t->lock);
	t->is_over = true;
	(void)pthread_cond_signal(&t->changed);
	(void)pthread_mutex_unlock(&t->lock);
}
