/* SPDX-License-Identifier: MIT */
/*
 * Lines from jumps to their targets, left of the code. Jumps to one target share a lane; short ones
 * are next to the code. What is too long to be followed by eye is not drawn.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/report_annotate.h"

/* Lanes beside each other, and the most rows that a line passes. */
#define MOST_LANES 8
#define LONGEST    512

/* All jumps to one row. */
struct bundle {
	size_t target;
	size_t first; /* rows that it reaches over */
	size_t last;
	unsigned lane; /* from the code outwards; MOST_LANES: it is not drawn */
};

static int compare_lengths(const void *pa, const void *pb)
{
	const struct bundle *a = pa;
	const struct bundle *b = pb;
	const size_t one = a->last - a->first;
	const size_t other = b->last - b->first;

	return one != other          ? (one > other ? 1 : -1)
	       : a->first > b->first ? 1
				     : -(a->first < b->first);
}

/* Returns whether the jump of row @i is drawn. */
static bool is_drawn(const struct jump_row *rows, size_t i)
{
	const size_t to = rows[i].to;

	return to != SIZE_MAX && to != i && (to > i ? to - i : i - to) <= LONGEST;
}

/* Collects the jumps by their targets; returns their number. */
static size_t collect(const struct jump_row *rows, size_t n, struct bundle *all)
{
	size_t *by_target = must(calloc(n + 1, sizeof *by_target)); /* index + 1 */
	size_t n_all = 0;

	for (size_t i = 0; i < n; i++) {
		struct bundle *b;

		if (!is_drawn(rows, i))
			continue;
		if (!by_target[rows[i].to]) {
			all[n_all] = (struct bundle){ rows[i].to, rows[i].to, rows[i].to, 0 };
			by_target[rows[i].to] = ++n_all;
		}
		b = &all[by_target[rows[i].to] - 1];
		b->first = i < b->first ? i : b->first;
		b->last = i > b->last ? i : b->last;
	}
	free(by_target);
	return n_all;
}

/* Gives each of @all the lane next to the code that is free; returns how many lanes there are. */
static unsigned assign(struct bundle *all, size_t n_all, size_t n_rows)
{
	uint8_t *used = must(calloc(n_rows + 1, 1)); /* of each row, a bit for each lane */
	unsigned lanes = 0;

	for (size_t i = 0; i < n_all; i++) {
		struct bundle *b = &all[i];
		uint8_t mask = 0;

		for (size_t row = b->first; row <= b->last; row++)
			mask |= used[row];
		for (b->lane = 0; b->lane < MOST_LANES && mask & 1u << b->lane; b->lane++)
			continue;
		for (size_t row = b->first; row <= b->last && b->lane < MOST_LANES; row++)
			used[row] |= (uint8_t)(1u << b->lane);
		if (b->lane < MOST_LANES && b->lane + 1 > lanes)
			lanes = b->lane + 1;
	}
	free(used);
	return lanes;
}

/* Draws the line of row @row, from its lane to the code. */
static void draw_end(struct jump_lines *l, size_t row, size_t lane, char corner, char end)
{
	char *cells = l->cells + row * l->width;

	cells[lane] = corner;
	for (size_t i = lane + 1; i < l->width - 1; i++)
		cells[i] = cells[i] == '|' ? '+' : cells[i] == ' ' ? '-' : cells[i];
	if (cells[l->width - 1] != '>')
		cells[l->width - 1] = end;
}

static void draw_lane(struct jump_lines *l, const struct bundle *b)
{
	const size_t lane = l->width - 2 - b->lane;

	for (size_t row = b->first; row <= b->last; row++) {
		char *cell = l->cells + row * l->width + lane;

		*cell = *cell == ' ' ? '|' : *cell;
	}
}

static char corner_of(const struct bundle *b, size_t row)
{
	return row == b->first ? '/' : row == b->last ? '\\' : '+';
}

void jump_lines_init(struct jump_lines *l, const struct jump_row *rows, size_t n)
{
	struct bundle *all = must(malloc((n + 1) * sizeof *all));
	const struct bundle **by_target = must(calloc(n + 1, sizeof *by_target));
	const size_t n_all = collect(rows, n, all);
	unsigned lanes;

	*l = (struct jump_lines){ .cells = NULL };
	qsort(all, n_all, sizeof *all, compare_lengths);
	lanes = assign(all, n_all, n);
	if (lanes) {
		l->width = lanes + 1;
		l->cells = must(malloc(n * l->width));
		memset(l->cells, ' ', n * l->width);
	}
	for (size_t i = 0; i < n_all; i++)
		if (all[i].lane < MOST_LANES) {
			draw_lane(l, &all[i]);
			by_target[all[i].target] = &all[i];
		}
	for (size_t i = 0; i < n; i++) {
		const struct bundle *b = is_drawn(rows, i) ? by_target[rows[i].to] : NULL;

		if (b)
			draw_end(l, i, l->width - 2 - b->lane, corner_of(b, i), '-');
		b = by_target[i];
		if (b)
			draw_end(l, i, l->width - 2 - b->lane, corner_of(b, i), '>');
	}
	free(by_target);
	free(all);
}

void jump_lines_deinit(struct jump_lines *l)
{
	free(l->cells);
}
