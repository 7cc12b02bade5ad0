/* SPDX-License-Identifier: MIT */
/*
 * Sites of `-fpatchable-function-entry=N,M` (GCC's manual, "Instrumentation Options"; LLVM's
 * attribute "patchable-function-entry"): N NOPs, of which M stand in front of the function. A word
 * of __patchable_function_entries points to the first of the M NOPs or, if there are none, after
 * the endbr64 or bti that the function may start with. The other NOPs, the slot, always stand
 * after that mark. N and M are not recorded.
 *
 * GCC writes x86 NOPs of one byte each, clang the fewest that fill the room.
 *
 * Not handled: functions that neither a symbol nor an FDE nor a landing mark nor a direct call
 * shows to start there, if those that are shown do not all have the same N and M.
 */
#include <stdlib.h>

#include "host/code/x86_64/x86_instructions.h"
#include "safe/base/nops.h"
#include "host/sites/site_work.h"

/* The most bytes of NOPs of one record; GCC allows 65,535 NOPs. */
#define MAX_NOPS 65535

/* The search. */
struct patchable {
	struct fathom_site_work *w;
	struct fathom_u64_array unknown; /* words whose functions are not known yet */
	struct fathom_u64_array called;  /* targets of direct calls, sorted; aarch64 */
	size_t first;                    /* of its sites among all */
};

static struct fathom_bytes code_at(struct patchable *p, uint64_t svma)
{
	return fathom_site_code(p->w, svma);
}

static bool is_landing_at(struct patchable *p, uint64_t svma)
{
	return fathom_is_landing(p->w->is_aarch64, code_at(p, svma));
}

/* Returns the bytes of all NOPs at @svma. */
static uint64_t nops_at(struct patchable *p, uint64_t svma)
{
	const uint64_t size = fathom_nops_size(p->w->is_aarch64, code_at(p, svma), MAX_NOPS);

	return fathom_site_may_go_on(p->w, size) ? size : 0;
}

/* Returns the bytes of one kind of NOPs at @svma. */
static uint16_t like_nops_at(struct patchable *p, uint64_t svma)
{
	const struct fathom_bytes code = code_at(p, svma);
	uint64_t size = 0;

	if (p->w->is_aarch64 || fathom_nop_size(false, code) != 1)
		return (uint16_t)nops_at(p, svma);
	/* GCC's: what follows and is longer is padding. */
	while (size < code.size && size < MAX_NOPS && code.data[size] == FATHOM_X86_NOP)
		size++;
	return fathom_site_may_go_on(p->w, size) ? (uint16_t)size : 0;
}

/* Returns the bytes of the slot at @svma. It ends where an FDE starts: see functions.h. */
static uint16_t slot_size(struct patchable *p, uint64_t svma)
{
	const struct fathom_functions *f = &p->w->functions;
	const uint16_t size = like_nops_at(p, svma);
	const size_t i = fathom_functions_from(f, svma + 1);

	return i < f->n && f->items[i].svma - svma < size ? (uint16_t)(f->items[i].svma - svma)
							  : size;
}

/* Adds the site of the function that starts at @entry, with @prefix bytes in front of it. */
static fathom_err add(struct patchable *p, uint64_t entry, uint64_t prefix)
{
	struct fathom_raw_site s = { .function = entry,
				     .prefix = (uint16_t)prefix,
				     .kind = FATHOM_SITE_PATCHABLE };

	s.svma = entry + fathom_landing_size(p->w->is_aarch64, code_at(p, entry));
	s.size = slot_size(p, s.svma);
	if (s.size)
		return fathom_site_add(p->w, &s);
	fathom_site_refuse(p->w, prefix ? FATHOM_REFUSED_NO_SLOT : FATHOM_REFUSED_OTHER_CODE);
	return FATHOM_OK;
}

/*
 * Returns whether function @f starts where it is listed. An FDE of aarch64 may start after the
 * slot: it says nothing unless @by_fde, and then only if a slot may follow.
 */
static bool is_start(struct patchable *p, const struct fathom_function *f, bool by_fde)
{
	const uint64_t svma = f->svma;

	if (f->is_symbol || !p->w->is_aarch64)
		return true;
	return by_fde &&
	       fathom_nop_size(true,
			       code_at(p, svma + fathom_landing_size(true, code_at(p, svma))));
}

/*
 * Finds the first start of a function before, between or after the @nops bytes of NOPs at @svma.
 */
static bool find_start(struct patchable *p, uint64_t svma, uint64_t nops, bool by_fde,
		       uint64_t *ret)
{
	const struct fathom_functions *f = &p->w->functions;
	const struct fathom_bytes code = code_at(p, svma);
	size_t i = fathom_functions_from(f, svma);

	for (uint64_t off = 0; i < f->n && off <= nops;) {
		if (f->items[i].svma - svma < off) {
			i++;
		} else if (f->items[i].svma - svma == off && is_start(p, &f->items[i], by_fde)) {
			*ret = svma + off;
			return true;
		} else if (off < nops) {
			off += fathom_nop_size(p->w->is_aarch64, bytes_from(code, off));
		} else {
			break;
		}
	}
	return false;
}

/*
 * Returns whether a function may start at @svma: one does, or no other one is known to go on there.
 */
static bool may_start(struct patchable *p, uint64_t svma)
{
	const struct fathom_function *f = fathom_functions_holding(&p->w->functions, svma);

	return !f || f->svma == svma;
}

/* Finds the function of the record @word, with @nops bytes of NOPs there. */
static bool find_entry(struct patchable *p, uint64_t word, uint64_t nops, uint64_t *ret)
{
	const uint64_t mark = word - FATHOM_LANDING;

	/* The mark is the start of the function that goes on at the word. */
	if (word >= FATHOM_LANDING && is_landing_at(p, mark) && may_start(p, mark) &&
	    !fathom_functions_at(&p->w->functions, word)) {
		*ret = mark;
		return true;
	}
	if (find_start(p, word, nops, false, ret))
		return true;
	*ret = word + nops;
	return is_landing_at(p, *ret) && may_start(p, *ret);
}

static fathom_err take_word(struct patchable *p, uint64_t word)
{
	const uint64_t nops = nops_at(p, word);
	uint64_t entry;

	if (!code_at(p, word).size || (p->w->is_aarch64 && word % 4)) {
		fathom_site_refuse(p->w, FATHOM_REFUSED_NOT_CODE);
	} else if (!nops && !is_landing_at(p, word)) {
		fathom_site_refuse(p->w, FATHOM_REFUSED_OTHER_CODE);
	} else if (find_entry(p, word, nops, &entry)) {
		return add(p, entry, entry > word ? entry - word : 0);
	} else if (!may_start(p, word)) {
		fathom_site_refuse(p->w, FATHOM_REFUSED_NO_FUNCTION);
	} else if (!fathom_array_push(&p->unknown, word)) {
		return FATHOM_E_MEMORY;
	}
	return FATHOM_OK;
}

static int compare(const void *a, const void *b)
{
	return u64_compare(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* Lists what direct calls lead to, if NOPs are there. */
static fathom_err list_called(struct patchable *p)
{
	const struct fathom_object *o = p->w->object;

	for (uint32_t i = 0; i < o->n_code; i++) {
		const struct fathom_bytes code = code_at(p, o->code[i].low);

		for (uint64_t off = 0; off + 4 <= code.size; off += 4) {
			struct fathom_stack_code c;

			if (!fathom_site_decode(p->w, o->code[i].low + off, &c))
				break;
			if (c.flow != FATHOM_FLOW_CALL || !c.is_direct)
				continue;
			if (!fathom_array_push(&p->called, c.target))
				return FATHOM_E_MEMORY;
		}
	}
	if (p->called.n)
		qsort(p->called.items, p->called.n, sizeof *p->called.items, compare);
	return FATHOM_OK;
}

/* Adds the sites of unknown functions to which direct calls lead; the others remain unknown. */
static fathom_err take_called(struct patchable *p)
{
	size_t n = 0;

	FATHOM_TRY(list_called(p));
	for (size_t i = 0; i < p->unknown.n; i++) {
		const uint64_t word = p->unknown.items[i];
		const uint64_t nops = nops_at(p, word);
		const size_t k = FATHOM_BISECT(p->called.n, j, p->called.items[j] < word);

		/* After the last NOP another function would have no slot. */
		if (k < p->called.n && p->called.items[k] < word + nops)
			FATHOM_TRY(add(p, p->called.items[k], p->called.items[k] - word));
		else
			p->unknown.items[n++] = word;
	}
	p->unknown.n = n;
	return FATHOM_OK;
}

/* Returns whether all sites found so far have one prefix and size, and which. */
static bool find_shape(const struct patchable *p, struct fathom_raw_site *ret)
{
	const struct fathom_module_sites *to = p->w->to;

	for (size_t i = p->first; i < to->n; i++) {
		if (i == p->first)
			*ret = to->items[i];
		else if (to->items[i].prefix != ret->prefix || to->items[i].size != ret->size)
			return false;
	}
	return to->n > p->first;
}

/* Returns whether the NOPs at @word are those of @shape: no more, or an FDE starts after them. */
static bool is_alike(struct patchable *p, uint64_t word, const struct fathom_raw_site *shape)
{
	const uint64_t nops = nops_at(p, word);
	const uint64_t whole = (uint64_t)shape->prefix + shape->size;

	return nops == whole ||
	       (nops > whole && fathom_functions_at(&p->w->functions, word + whole));
}

/*
 * Adds the sites of unknown functions: of the shape of all known ones, if these have one; else as
 * an FDE says. The others are refused.
 */
static fathom_err take_rest(struct patchable *p)
{
	struct fathom_raw_site shape = { 0 };
	const bool has_shape = find_shape(p, &shape);

	for (size_t i = 0; i < p->unknown.n; i++) {
		const uint64_t word = p->unknown.items[i];
		uint64_t entry = word + shape.prefix;

		if ((has_shape && is_alike(p, word, &shape)) ||
		    find_start(p, word, nops_at(p, word), true, &entry))
			FATHOM_TRY(add(p, entry, entry - word));
		else
			fathom_site_refuse(p->w, FATHOM_REFUSED_NO_FUNCTION);
	}
	return FATHOM_OK;
}

/* Returns the first address in (@low, @high) that the code of the function there branches to. */
static uint64_t first_target(struct patchable *p, uint64_t low, uint64_t high)
{
	const struct fathom_function *f = fathom_functions_holding(&p->w->functions, low);
	const uint64_t end = f ? fathom_functions_end(&p->w->functions, f) : 0;
	struct fathom_stack_code c;
	uint64_t first = high;

	for (uint64_t at = high; at < end && fathom_site_decode(p->w, at, &c); at += c.size)
		if (c.is_direct && c.target > low && c.target < first)
			first = c.target;
	return first;
}

/*
 * Cuts slots at what branches lead to: NOPs after a slot may be padding before a loop, or a loop.
 * Of sites with one prefix, those that are no longer than the others need no look.
 */
static fathom_err cut_slots(struct patchable *p)
{
	struct fathom_module_sites *to = p->w->to;
	uint16_t *shortest;

	if (to->n == p->first)
		return FATHOM_OK;
	shortest = malloc((MAX_NOPS + 1) * sizeof *shortest);
	if (!shortest)
		return FATHOM_E_MEMORY;
	memset(shortest, 0xff, (MAX_NOPS + 1) * sizeof *shortest);
	for (size_t i = p->first; i < to->n; i++)
		if (to->items[i].size < shortest[to->items[i].prefix])
			shortest[to->items[i].prefix] = to->items[i].size;
	for (size_t i = p->first; i < to->n; i++) {
		struct fathom_raw_site *s = &to->items[i];

		if (s->size > shortest[s->prefix])
			s->size = (uint16_t)(first_target(p, s->svma, s->svma + s->size) - s->svma);
	}
	free(shortest);
	return FATHOM_OK;
}

static fathom_err run(struct patchable *p)
{
	struct fathom_site_words words =
		fathom_site_words_init(p->w, "__patchable_function_entries");
	uint64_t word;

	while (fathom_site_words_next(&words, &word))
		FATHOM_TRY(take_word(p, word));
	if (p->unknown.n && p->w->is_aarch64)
		FATHOM_TRY(take_called(p));
	FATHOM_TRY(take_rest(p));
	return cut_slots(p);
}

fathom_err fathom_site_find_patchable(struct fathom_site_work *w)
{
	struct patchable p = { .w = w, .first = w->to->n };
	const fathom_err err = run(&p);

	fathom_array_free(&p.unknown);
	fathom_array_free(&p.called);
	return err;
}
