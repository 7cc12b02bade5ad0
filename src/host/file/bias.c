/* SPDX-License-Identifier: MIT */
#include "host/file/bias.h"

#include <stdlib.h>

#include "host/base/array.h"
#include "host/base/memory.h"
#include "safe/base/sort.h"

/* Votes of one file: 65,530 mappings of a file with several segments for each page have fewer. */
#define MAX_VOTES ((size_t)1 << 22)

/* Finds the bias of mapping @m by segment @s; returns false when the mapping is not of it. */
static bool bias_by_segment(const struct fathom_segment *s, const struct fathom_mapping *m,
			    uint64_t page, uint64_t *ret_bias)
{
	const uint64_t first = s->off & ~(page - 1);
	uint64_t end;

	if (s->type != PT_LOAD || !s->filesz || __builtin_add_overflow(s->off, s->filesz, &end) ||
	    end > UINT64_MAX - page)
		return false;
	end = (end + page - 1) & ~(page - 1);
	if (m->off < first || m->off >= end)
		return false;
	*ret_bias = m->start - ((s->vaddr & ~(page - 1)) + (m->off - first));
	return true;
}

static int compare_biases(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a;
	const uint64_t y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Sorts what @biases has from number @first on, and keeps each once. */
static void keep_once(struct fathom_u64_array *biases, size_t first)
{
	uint64_t *bias = biases->items + first;
	const size_t n = biases->n - first;
	size_t kept = n != 0;

	if (n > 1)
		qsort(bias, n, sizeof *bias, compare_biases);
	for (size_t i = 1; i < n; i++)
		if (bias[i] != bias[kept - 1])
			bias[kept++] = bias[i];
	biases->n = first + kept;
}

/* Adds the biases that @m may have, each once. False without memory, or when there are too many. */
static bool add_votes(const struct fathom_image *image, const struct fathom_mapping *m,
		      uint64_t page, struct fathom_u64_array *biases)
{
	const size_t first = biases->n;
	struct fathom_segment s;
	uint64_t bias;

	for (uint32_t k = 0; k < image->phnum; k++) {
		if (!fathom_image_segment(image, k, &s) || !bias_by_segment(&s, m, page, &bias))
			continue;
		if (biases->n >= MAX_VOTES || !fathom_array_push(biases, bias))
			return false;
	}
	if (biases->n > first)
		keep_once(biases, first);
	return true;
}

/* Counts the votes of the mappings of the file of mapping @i, as far as there is room for them. */
static void count_votes(const struct fathom_image *image, const struct fathom_maps *maps, size_t i,
			uint64_t page, struct fathom_bias_votes *ret)
{
	struct fathom_u64_array biases = { 0 };
	bool done = true;

	for (size_t k = maps->items[i].first; done && k < maps->n; k = maps->items[k].next)
		if (fathom_mapping_is_usable(&maps->items[k]))
			done = add_votes(image, &maps->items[k], page, &biases);
	if (biases.n)
		qsort(biases.items, biases.n, sizeof(uint64_t), compare_biases);
	*ret = (struct fathom_bias_votes){ biases.items, biases.n };
}

void fathom_bias_votes_deinit(struct fathom_bias_votes *votes)
{
	free(votes->biases);
	*votes = (struct fathom_bias_votes){ NULL, 0 };
}

/* How many mappings agree with @bias. */
static size_t count_agreeing(const struct fathom_bias_votes *votes, uint64_t bias)
{
	return FATHOM_BISECT(votes->n, i, votes->biases[i] <= bias) -
	       FATHOM_BISECT(votes->n, i, votes->biases[i] < bias);
}

/*
 * Stores the bias by the first segment that @m may be of, and whether another segment gives another
 * bias. Returns false if there is none.
 */
static bool first_bias(const struct fathom_image *image, const struct fathom_mapping *m,
		       uint64_t page, uint64_t *ret_bias, bool *ret_is_disputed)
{
	struct fathom_segment s;
	bool found = false;
	uint64_t bias;

	*ret_is_disputed = false;
	for (uint32_t k = 0; k < image->phnum; k++) {
		if (!fathom_image_segment(image, k, &s) || !bias_by_segment(&s, m, page, &bias))
			continue;
		if (!found)
			*ret_bias = bias;
		else if (bias != *ret_bias)
			*ret_is_disputed = true;
		found = true;
	}
	return found;
}

bool fathom_bias_is_disputed(const struct fathom_image *image, const struct fathom_mapping *m,
			     uint64_t page)
{
	bool is_disputed;
	uint64_t bias = 0;

	return first_bias(image, m, page, &bias, &is_disputed) && is_disputed;
}

/*
 * Returns the bias that most mappings of the file agree with, of those that @m may have; @chosen,
 * the first of them, if none agrees with any.
 */
static uint64_t choose_bias(const struct fathom_image *image, const struct fathom_mapping *m,
			    uint64_t page, const struct fathom_bias_votes *votes, uint64_t chosen)
{
	struct fathom_segment s;
	size_t best = 0;
	uint64_t bias;

	for (uint32_t k = 0; k < image->phnum; k++) {
		size_t n;

		if (!fathom_image_segment(image, k, &s) || !bias_by_segment(&s, m, page, &bias))
			continue;
		/* Of two that as many agree with, the one whose rights are the mapping's. */
		n = 2 * count_agreeing(votes, bias) + (((s.flags & PF_X) != 0) == m->executable);
		if (n > best) {
			best = n;
			chosen = bias;
		}
	}
	return chosen;
}

bool fathom_bias_of_mapping(const struct fathom_image *image, const struct fathom_maps *maps,
			    size_t i, uint64_t page, struct fathom_bias_votes *votes,
			    uint64_t *ret_bias)
{
	const struct fathom_mapping *m = &maps->items[i];
	struct fathom_bias_votes own = { NULL, 0 };
	bool is_disputed;

	if (!first_bias(image, m, page, ret_bias, &is_disputed))
		return false;
	if (!is_disputed)
		return true;
	votes = votes ? votes : &own;
	if (!votes->biases)
		count_votes(image, maps, i, page, votes);
	*ret_bias = choose_bias(image, m, page, votes, *ret_bias);
	fathom_bias_votes_deinit(&own);
	return true;
}

bool fathom_bias_holds(const struct fathom_image *image, uint64_t bias,
		       const struct fathom_mapping *m, uint64_t at, uint64_t avma, uint64_t page)
{
	struct fathom_segment s;

	for (uint32_t i = 0; i < image->phnum; i++) {
		uint64_t first;
		uint64_t size;

		if (!fathom_image_segment(image, i, &s) || s.type != PT_LOAD)
			continue;
		/* Whole pages are mapped: what stands around the segment in them, too. */
		first = s.vaddr & ~(page - 1);
		size = (s.vaddr - first + s.memsz + page - 1) & ~(page - 1);
		if (avma - bias - first >= size || at - bias - first >= size)
			continue;
		if (m->off + (at - m->start) == s.off + (at - bias - s.vaddr) &&
		    (m->executable || !(s.flags & PF_X)))
			return true;
	}
	return false;
}

static bool may_run(const struct fathom_maps *maps, uint64_t avma)
{
	const size_t at = fathom_maps_at(maps, avma);

	return at < maps->n && maps->items[at].executable;
}

bool fathom_bias_is_loaded(const struct fathom_image *image, const struct fathom_maps *maps,
			   uint64_t bias)
{
	struct fathom_segment s;
	bool has_code = false;

	for (uint32_t i = 0; i < image->phnum; i++) {
		if (!fathom_image_segment(image, i, &s) || s.type != PT_LOAD || !(s.flags & PF_X) ||
		    !s.memsz)
			continue;
		has_code = true;
		/* Single pages may have lost that right for a while: those that are patched. */
		if (may_run(maps, bias + s.vaddr) || may_run(maps, bias + s.vaddr + s.memsz - 1))
			return true;
	}
	return !has_code;
}

bool fathom_bias_covers(const struct fathom_image *image, uint64_t bias, uint64_t avma)
{
	struct fathom_segment s;

	for (uint32_t i = 0; i < image->phnum; i++)
		if (fathom_image_segment(image, i, &s) && s.type == PT_LOAD &&
		    avma - bias - s.vaddr < s.memsz)
			return true;
	return false;
}
