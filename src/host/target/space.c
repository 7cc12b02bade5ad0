/* SPDX-License-Identifier: MIT */
#include "host/target/space.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/file/file.h"
#include "host/jit/jit.h"
#include "host/symbolize/batch.h"
#include "host/target/view.h"
#include "safe/base/sort.h"

void fathom_space_init(struct fathom_space *s, const struct fathom_space_ops *ops,
		       struct fathom *session, struct fathom_notes *notes)
{
	s->ops = ops;
	s->session = session;
	s->notes = notes;
	s->page = (uint64_t)sysconf(_SC_PAGESIZE);
	pthread_mutex_init(&s->lock, NULL);
}

void fathom_space_close(struct fathom_space *s)
{
	if (!s)
		return;
	fathom_space_batch_drop(s);
	fathom_space_files_close(s->files);
	fathom_jit_destroy(atomic_load(&s->jit));
	pthread_mutex_destroy(&s->lock);
	s->ops->free(s);
}

bool fathom_space_is_reachable(const struct fathom_space *s, const struct fathom_mapping *m)
{
	return !s->ops->is_reachable || s->ops->is_reachable(s, m);
}

fathom_err fathom_space_fail_reach(const struct fathom_space *s, uint64_t avma,
				   struct fathom_errinfo *reterr)
{
	char name[sizeof reterr->file] = "";
	struct fathom_maps maps;
	size_t at;

	if (!s->ops->read_maps(s, &maps, NULL)) {
		at = fathom_maps_at(&maps, avma);
		if (at < maps.n)
			(void)snprintf(name, sizeof name, "%.*s", (int)maps.items[at].name.size,
				       maps.items[at].name.data);
		fathom_maps_deinit(&maps);
	}
	return fathom_fail_reach(reterr, name);
}

size_t fathom_space_read(const struct fathom_space *s, uint64_t avma, void *to, size_t size)
{
	return s->ops->read(s, avma, to, size);
}

/* Scratch of a batch. */
struct scratch {
	struct fathom_keyed *keyed; /* twice as many as there are addresses */
	uint32_t *places;
	uint32_t *jit; /* places of addresses that may be of code without a module */
	size_t n_keyed;
	size_t n_jit;
};

/* Whether there may be code at @avma. */
static bool is_executable(const struct fathom_space_batch *b, uint64_t avma)
{
	const size_t at = fathom_maps_at(&b->maps, avma);

	return at < b->maps.n && b->maps.items[at].executable;
}

/* Keys the addresses that are in a module by the mapping that says so; answers the others. */
static fathom_err find_mappings(struct fathom_space_batch *b,
				const struct fathom_batch_options *options,
				const uint64_t *addresses, size_t n, struct fathom_answers *answers,
				struct scratch *k)
{
	k->n_keyed = 0;
	k->n_jit = 0;
	for (size_t i = 0; i < n; i++) {
		const uint64_t avma = fathom_looked_up(options, addresses, i);
		enum fathom_reason reason;
		size_t at;

		FATHOM_TRY(fathom_space_batch_find(b, avma, &at, &reason));
		if (at < b->maps.n) {
			k->keyed[k->n_keyed++] = (struct fathom_keyed){ at, i };
			continue;
		}
		answers->answers[i] = fathom_answer_without_module(addresses[i], reason);
		if (is_executable(b, avma))
			k->jit[k->n_jit++] = (uint32_t)i;
	}
	return FATHOM_OK;
}

/* Describes the module of @f in the answers, where each stands once. */
static fathom_err describe_module(struct fathom_answers *answers, struct fathom_batch_file *f,
				  const struct fathom_module_info **ret)
{
	if (!f->info)
		f->info = fathom_answers_add_module(answers, f->file->name,
						    f->file->module->main->build_id);
	*ret = f->info;
	return f->info ? FATHOM_OK : FATHOM_E_MEMORY;
}

static fathom_err answer_shares(struct fathom_space_batch *b,
				const struct fathom_batch_options *options,
				const uint64_t *addresses, const struct fathom_keyed *keyed,
				size_t n, uint32_t *places, struct fathom_answers *answers)
{
	struct fathom_share share = { .addresses = addresses };

	for (size_t i = 0; i < n; i++)
		places[i] = (uint32_t)keyed[i].value;
	for (size_t i = 0; i < n; i += share.n) {
		struct fathom_batch_file *f = fathom_space_batch_file(b, (size_t)keyed[i].key);

		share.module = f->file->module;
		share.places = places + i;
		share.bias = b->of[keyed[i].key].bias;
		share.n = 1;
		while (i + share.n < n && fathom_space_batch_is_one(b, (size_t)keyed[i].key,
								    (size_t)keyed[i + share.n].key))
			share.n++;
		FATHOM_TRY(describe_module(answers, f, &share.info));
		FATHOM_TRY(fathom_symbolize_share(&share, options, answers));
	}
	return FATHOM_OK;
}

/* Asks the program itself for names of code in its files that their tables do not name. */
static fathom_err answer_nameless(struct fathom_space_batch *b,
				  const struct fathom_batch_options *options,
				  const uint64_t *addresses, struct scratch *k,
				  struct fathom_answers *answers)
{
	size_t n = 0;

	for (size_t i = 0; i < k->n_keyed; i++) {
		const uint32_t place = (uint32_t)k->keyed[i].value;
		const struct fathom_answer *a = &answers->answers[place];
		const uint64_t avma = fathom_looked_up(options, addresses, place);

		if ((!a->symbol || a->source == FATHOM_SOURCE_FDE) && !a->frame &&
		    is_executable(b, avma))
			k->places[n++] = place;
	}
	return fathom_jit_answer(b, true, options, addresses, k->places, n, answers);
}

/* Begins a batch and finds the mappings: in a part of the map, if that will do. */
static fathom_err begin_batch(struct fathom_space *s, const struct fathom_batch_options *options,
			      const uint64_t *addresses, size_t n, struct scratch *k,
			      struct fathom_answers *answers, struct fathom_space_batch *ret,
			      struct fathom_errinfo *reterr)
{
	uint64_t avmas[FATHOM_MAPS_QUERIES] = { 0 };
	fathom_err err;

	for (size_t i = 0; i < n && i < FATHOM_MAPS_QUERIES; i++)
		avmas[i] = fathom_looked_up(options, addresses, i);
	err = fathom_space_batch_begin_part(s, avmas, n, ret);
	if (!err) {
		err = find_mappings(ret, options, addresses, n, answers, k);
		/* Any module may know of code that is in none. */
		if (!err && !k->n_jit)
			return FATHOM_OK;
		fathom_space_batch_end(ret);
	}
	FATHOM_TRY(fathom_space_batch_begin(s, ret, reterr));
	err = find_mappings(ret, options, addresses, n, answers, k);
	if (!err)
		return FATHOM_OK;
	fathom_space_batch_end(ret);
	return fathom_fail(reterr, err, "", 0, fathom_err_name(err));
}

static fathom_err run_batch(struct fathom_space *s, const struct fathom_batch_options *options,
			    const uint64_t *addresses, size_t n, struct scratch *k,
			    struct fathom_answers *answers, struct fathom_errinfo *reterr)
{
	struct fathom_space_batch b;
	fathom_err err;

	FATHOM_TRY(begin_batch(s, options, addresses, n, k, answers, &b, reterr));
	fathom_sort_keyed(k->keyed, k->keyed + k->n_keyed, k->n_keyed);
	err = answer_shares(&b, options, addresses, k->keyed, k->n_keyed, k->places, answers);
	if (!err)
		err = fathom_jit_answer(&b, false, options, addresses, k->jit, k->n_jit, answers);
	if (!err)
		err = answer_nameless(&b, options, addresses, k, answers);
	fathom_space_batch_end(&b);
	return err ? fathom_fail(reterr, err, "", 0, fathom_err_name(err)) : FATHOM_OK;
}

fathom_err fathom_space_symbolize(struct fathom_space *s,
				  const struct fathom_batch_options *options,
				  const uint64_t *addresses, size_t n,
				  struct fathom_answers *answers, struct fathom_errinfo *reterr)
{
	struct scratch k = { .keyed = malloc((2 * n + 1) * sizeof *k.keyed),
			     .places = malloc((n + 1) * sizeof *k.places),
			     .jit = malloc((n + 1) * sizeof *k.jit) };
	fathom_err err = FATHOM_E_MEMORY;

	if (k.keyed && k.places && k.jit)
		err = run_batch(s, options, addresses, n, &k, answers, reterr);
	else
		(void)fathom_fail(reterr, err, "", 0, "out of memory");
	free(k.keyed);
	free(k.places);
	free(k.jit);
	return err;
}

fathom_err fathom_space_batch_walk(struct fathom_space_batch *b,
				   bool (*fn)(const struct fathom_space_module *m, void *data),
				   void *data)
{
	size_t last = SIZE_MAX;
	bool more = true;

	for (size_t i = 0; i < b->maps.n && more; i++) {
		struct fathom_space_module m;

		FATHOM_TRY(fathom_space_batch_look_up(b, i));
		if (b->of[i].reason || (last != SIZE_MAX && fathom_space_batch_is_one(b, last, i)))
			continue;
		last = i;
		m.module = fathom_space_batch_file(b, i)->file->module;
		m.name = fathom_space_batch_file(b, i)->file->name;
		m.bias = b->of[i].bias;
		m.start = b->maps.items[i].start;
		more = fn(&m, data);
	}
	return FATHOM_OK;
}

fathom_err fathom_space_walk(struct fathom_space *s,
			     bool (*fn)(const struct fathom_space_module *m, void *data),
			     void *data, struct fathom_errinfo *reterr)
{
	struct fathom_space_batch b;
	fathom_err err;

	FATHOM_TRY(fathom_space_batch_begin(s, &b, reterr));
	err = fathom_space_batch_walk(&b, fn, data);
	fathom_space_batch_end(&b);
	return err ? fathom_fail(reterr, err, "", 0, fathom_err_name(err)) : FATHOM_OK;
}

/* The module whose layout is looked for. */
struct program {
	struct fathom_space_layout layout;
	uint64_t entry; /* avma; 0: not known */
};

static bool take_layout(const struct fathom_space_module *m, void *data)
{
	const struct fathom_image *image = &m->module->main->image;
	struct program *p = data;
	const bool is_program = image->entry + m->bias == p->entry;

	if (is_program || p->layout.machine == EM_NONE) {
		p->layout.machine = image->machine;
		p->layout.word = fathom_image_address_size(image);
		p->layout.swap = image->swap;
	}
	return p->entry && !is_program;
}

fathom_err fathom_space_batch_layout(struct fathom_space_batch *b, struct fathom_space_layout *ret)
{
	struct program p = { .layout = { .machine = EM_NONE, .word = sizeof(void *) } };
	struct fathom_space_facts facts;

	b->space->ops->describe(b->space, &facts);
	p.entry = facts.entry;
	FATHOM_TRY(fathom_space_batch_walk(b, take_layout, &p));
	*ret = p.layout;
	return FATHOM_OK;
}

fathom_err fathom_space_layout(struct fathom_space *s, struct fathom_space_layout *ret,
			       struct fathom_errinfo *reterr)
{
	struct fathom_space_batch b;
	fathom_err err;

	FATHOM_TRY(fathom_space_batch_begin(s, &b, reterr));
	err = fathom_space_batch_layout(&b, ret);
	fathom_space_batch_end(&b);
	return err ? fathom_fail(reterr, err, "", 0, fathom_err_name(err)) : FATHOM_OK;
}

void fathom_space_each_open(struct fathom_space *s, void (*fn)(struct fathom_module *m, void *data),
			    void *data)
{
	struct fathom_space_file *last;

	/* Whatever is put into the list meanwhile comes before the first. */
	pthread_mutex_lock(&s->lock);
	last = s->files;
	for (struct fathom_space_file *f = last; f; f = f->next)
		f->users++;
	pthread_mutex_unlock(&s->lock);
	/* No file that is in use leaves the list, and so none is passed by. */
	for (struct fathom_space_file *f = last; f; f = f->next)
		if (f->module)
			fn(f->module, data);
	pthread_mutex_lock(&s->lock);
	for (struct fathom_space_file *f = last; f; f = f->next)
		f->users--;
	pthread_mutex_unlock(&s->lock);
}
