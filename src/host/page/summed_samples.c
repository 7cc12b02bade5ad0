/* SPDX-License-Identifier: MIT */
#include "host/page/summed_samples.h"

#include <stdlib.h>

#include "host/profile/in_memory.h"

/* Slices that a recording is divided into at first. */
#define SLICES_BITS 16
/* Samples before their size is compared with the budget. */
#define SAMPLES_UNCHECKED 4096

/* Compares all but ns, whose slices are compared before, and what is added up. */
static int compare_kinds(const struct fathom_page_sample *a, const struct fathom_page_sample *b)
{
	int order = u64_compare(a->node, b->node);

	order = order ? order : u64_compare(a->thread, b->thread);
	order = order ? order : u64_compare(a->place, b->place);
	return order ? order : u64_compare(a->part, b->part);
}

/* A sample with its slice. */
struct sliced {
	struct fathom_page_sample sample;
	uint64_t slice;
};

static int compare_sliced(const void *pa, const void *pb)
{
	const struct sliced *a = pa;
	const struct sliced *b = pb;
	int order = u64_compare(a->slice, b->slice);

	order = order ? order : compare_kinds(&a->sample, &b->sample);
	return order ? order : u64_compare(a->sample.ns, b->sample.ns);
}

/*
 * Returns whether @one is a call, or a wait, that takes more than a slice: it is left as it is. A
 * wait's weight says when it began.
 */
static bool is_long(const struct fathom_page_samples *s, const struct fathom_page_sample *one)
{
	if (s->are_calls)
		return one->ns - one->begin > s->slice;
	return fathom_profile_is_wait(one->part) && one->n == 1 && one->weight > s->slice;
}

/* Returns whether @next can be added to @to. */
static bool can_join(const struct fathom_page_samples *s, const struct sliced *to,
		     const struct sliced *next)
{
	return to->slice == next->slice && !compare_kinds(&to->sample, &next->sample) &&
	       !is_long(s, &to->sample) && !is_long(s, &next->sample) &&
	       next->sample.n <= UINT32_MAX - to->sample.n;
}

/* Sums up what is the same within each slice. */
static void sum_slices(struct fathom_page_samples *s)
{
	struct sliced *sliced = malloc(s->n * sizeof *sliced);
	size_t n = 0;

	if (!sliced) {
		s->no_memory = true;
		return;
	}
	for (size_t i = 0; i < s->n; i++)
		sliced[i] = (struct sliced){ s->items[i], s->items[i].ns / s->slice };
	qsort(sliced, s->n, sizeof *sliced, compare_sliced);
	for (size_t i = 1; i < s->n; i++) {
		struct fathom_page_sample *to = &sliced[n].sample;

		if (!can_join(s, &sliced[n], &sliced[i])) {
			sliced[++n] = sliced[i];
			continue;
		}
		to->ns = sliced[i].sample.ns;
		if (sliced[i].sample.begin < to->begin)
			to->begin = sliced[i].sample.begin;
		to->weight += sliced[i].sample.weight;
		to->n += sliced[i].sample.n;
	}
	s->n = n + 1;
	for (size_t i = 0; i < s->n; i++)
		s->items[i] = sliced[i].sample;
	free(sliced);
}

/* Makes slices longer until a quarter of the room is free, or one slice is all the time. */
static void make_room(struct fathom_page_samples *s)
{
	if (s->slice)
		sum_slices(s);
	while (s->n > s->most / 4 * 3 && s->slice <= s->duration && !s->no_memory) {
		s->slice = s->slice ? s->slice * 2 : (s->duration >> SLICES_BITS) + 1;
		sum_slices(s);
	}
	/* So many stacks differ. */
	if (s->n > s->most / 4 * 3)
		s->most *= 2;
}

void fathom_page_samples_add(struct fathom_page_samples *s, const struct fathom_page_sample *one)
{
	if (s->n >= s->most)
		make_room(s);
	if (s->n >= SAMPLES_UNCHECKED && !(s->n & (s->n - 1)) &&
	    !fathom_memory_fits(s->memory, 4 * s->n * sizeof *s->items))
		s->is_too_large = true;
	if (!s->is_too_large)
		s->no_memory |= !fathom_array_push(s, *one);
}

static int compare_times(const void *pa, const void *pb)
{
	const struct fathom_page_sample *a = pa;
	const struct fathom_page_sample *b = pb;
	const int order = u64_compare(a->ns, b->ns);

	return order ? order : compare_kinds(a, b);
}

void fathom_page_samples_sort(struct fathom_page_samples *s)
{
	if (s->n)
		qsort(s->items, s->n, sizeof *s->items, compare_times);
}

void fathom_page_samples_deinit(struct fathom_page_samples *s)
{
	fathom_array_free(s);
}
