/* SPDX-License-Identifier: MIT */
/*
 * The tree from inside to outside. All stacks begin at the root, each at its innermost frame or at
 * the function that is asked for. Those of one branch are taken one frame further out, sorted by
 * the rows that they have reached, and so become the branches below it. Stacks that have reached
 * the same place are joined, and branches that are too light are not followed: the whole tree can
 * be as large as all stacks together.
 */
#include <stdlib.h>

#include "host/profile/report_tree.h"
#include "safe/base/error.h"

/* The next part of a stack. */
enum stage {
	STAGE_HIDDEN,
	STAGE_UNSAMPLED,
	STAGE_FRAMES,
	STAGE_INCOMPLETE,
	STAGE_GROUP,
	STAGE_END
};

/* A stack on its way out. */
struct climber {
	uint64_t weight;
	uint64_t n;     /* samples */
	uint32_t row;   /* that it has reached */
	uint32_t node;  /* of the next frame */
	uint32_t frame; /* in the chain of the node's location */
	uint32_t group;
	uint8_t stage; /* enum stage */
	uint8_t stop;
};

/* A frame in a stack; node 0: there is none. */
struct spot {
	uint32_t node;
	uint32_t frame;
};

/* Climbers that are in one branch. */
struct part {
	uint32_t branch;
	size_t first;
	size_t n;
};

struct up {
	struct fathom_report_tree *tree;
	const struct fathom_report_rows *rows;
	const struct fathom_profile_node *nodes;
	struct climber *climbers;
	size_t n;
	struct spot *under; /* of each node: where its stack begins; NULL: at its outermost frame */
	struct spot *of;    /* of each node: where its climbers begin; NULL: at itself */
	struct {
		FATHOM_ARRAY_OF(struct part);
	} parts; /* to be followed */
};

/* Returns whether frame @frame of @node is no further out than @spot, on the same stack. */
static bool is_within(struct spot spot, uint32_t node, uint32_t frame)
{
	return spot.node && (spot.node < node || (spot.node == node && frame <= spot.frame));
}

/*
 * Finds, for each node, the outermost frame of its stack that was chosen for @chosen and, unless
 * @within is NULL, is no further out than that one. Returns NULL without memory.
 */
static struct spot *find_spots(struct up *u, uint32_t chosen, const struct spot *within)
{
	const size_t n_nodes = u->rows->profile->n_nodes;
	struct spot *spots = calloc(n_nodes, sizeof *spots);

	for (uint32_t i = 1; spots && i < n_nodes; i++) {
		uint32_t n_frames;
		const struct fathom_report_frame *frames =
			fathom_report_chain(u->rows, u->nodes[i].location, &n_frames);

		spots[i] = spots[u->nodes[i].caller];
		while (!spots[i].node && n_frames-- && fathom_report_tree_step(u->tree))
			if (frames[n_frames].chosen & chosen &&
			    (!within || is_within(within[i], i, n_frames)))
				spots[i] = (struct spot){ i, n_frames };
	}
	return spots;
}

/* Takes the next frame of @c; returns its row, or FATHOM_NONE if it has none. */
static uint32_t take_frame(const struct up *u, struct climber *c)
{
	uint32_t n_frames;
	const struct fathom_report_frame *frames =
		fathom_report_chain(u->rows, u->nodes[c->node].location, &n_frames);
	const struct fathom_report_frame *f = &frames[c->frame];

	if (u->under && u->under[c->node].node == c->node && u->under[c->node].frame == c->frame)
		c->stage = STAGE_GROUP;
	if (++c->frame >= n_frames) {
		c->node = u->nodes[c->node].caller;
		c->frame = 0;
		if (!c->node && c->stage == STAGE_FRAMES)
			c->stage = STAGE_INCOMPLETE;
	}
	return f->chosen & FATHOM_REPORT_WANTED ? f->row : FATHOM_NONE;
}

/* Takes what @c has next; returns its row, or FATHOM_NONE if it has none. */
static uint32_t take(const struct up *u, struct climber *c)
{
	const struct fathom_report_rows *r = u->rows;

	switch (c->stage) {
	case STAGE_HIDDEN:
		c->stage = c->node ? STAGE_FRAMES : STAGE_INCOMPLETE;
		return r->has_own ? r->hidden : FATHOM_NONE;
	case STAGE_UNSAMPLED:
		c->stage = STAGE_GROUP;
		return r->has_own ? r->unsampled : FATHOM_NONE;
	case STAGE_FRAMES:
		return take_frame(u, c);
	case STAGE_INCOMPLETE:
		c->stage = STAGE_GROUP;
		return c->stop != FATHOM_STOP_ENTRY && r->has_own ? r->incomplete[c->stop]
								  : FATHOM_NONE;
	default:
		c->stage = STAGE_END;
		return c->group;
	}
}

/* Takes @c out of @row to the next one; its row is FATHOM_NONE at the end. */
static void climb(const struct up *u, struct climber *c, uint32_t row)
{
	const bool joins = u->rows->options->key == FATHOM_REPORT_BY_MODULE;

	c->row = FATHOM_NONE;
	while (c->stage != STAGE_END && fathom_report_tree_step(u->tree)) {
		const uint32_t next = take(u, c);

		if (next != FATHOM_NONE && !(joins && next == row)) {
			c->row = next;
			return;
		}
	}
}

static int compare_places(const struct climber *a, const struct climber *b)
{
	return a->row != b->row       ? u64_compare(a->row, b->row)
	       : a->node != b->node   ? u64_compare(a->node, b->node)
	       : a->frame != b->frame ? u64_compare(a->frame, b->frame)
	       : a->group != b->group ? u64_compare(a->group, b->group)
	       : a->stage != b->stage ? a->stage - b->stage
				      : a->stop - b->stop;
}

static int compare_climbers(const void *a, const void *b)
{
	return compare_places(a, b);
}

/* Sorts @n climbers by where they are, and joins those at one place; returns how many are left. */
static size_t join(struct climber *c, size_t n)
{
	size_t kept = 0;

	if (n > 1)
		qsort(c, n, sizeof *c, compare_climbers);
	for (size_t i = 0; i < n; i++) {
		if (c[i].row == FATHOM_NONE)
			break;
		if (kept && !compare_places(&c[kept - 1], &c[i])) {
			c[kept - 1].weight += c[i].weight;
			c[kept - 1].n += c[i].n;
		} else {
			c[kept++] = c[i];
		}
	}
	return kept;
}

/* Makes the branches below @part. */
static void follow(struct up *u, struct part part, uint64_t least)
{
	struct fathom_report_tree *t = u->tree;
	struct climber *c = u->climbers + part.first;

	for (size_t i = 0; i < part.n; i++)
		climb(u, &c[i], t->items[part.branch].row);
	part.n = join(c, part.n);
	for (size_t first = 0, end; first < part.n && fathom_report_tree_step(t); first = end) {
		struct fathom_report_branch *b;
		uint32_t branch;

		/* All its frames were passed over: the group alone is no stack. */
		if (!part.branch && c[first].stage == STAGE_END) {
			end = first + 1;
			continue;
		}
		branch = fathom_report_tree_add(t, part.branch, c[first].row);
		if (!branch)
			return;
		b = &t->items[branch];
		for (end = first; end < part.n && c[end].row == c[first].row; end++) {
			b->total += c[end].weight;
			b->total_samples += c[end].n;
		}
		if (b->total >= least && b->total_samples &&
		    !fathom_array_push(&u->parts,
				       (struct part){ branch, part.first + first, end - first }))
			t->no_memory = true;
	}
}

/* Begins with @leaf, if it is to be in the tree. */
static void begin(struct up *u, const struct fathom_report_leaf *leaf)
{
	struct climber c = { .weight = leaf->weight,
			     .n = leaf->n,
			     .node = leaf->node,
			     .group = leaf->group,
			     .stage = leaf->part == FATHOM_PROFILE_UNSAMPLED       ? STAGE_UNSAMPLED
				      : leaf->part == FATHOM_PROFILE_KERNEL_HIDDEN ? STAGE_HIDDEN
				      : leaf->node                                 ? STAGE_FRAMES
						   : STAGE_INCOMPLETE,
			     .stop = leaf->stop };

	if (u->under && !u->under[leaf->node].node)
		return;
	if (u->of) {
		if (!u->of[leaf->node].node)
			return;
		c.node = u->of[leaf->node].node;
		c.frame = u->of[leaf->node].frame;
		c.stage = STAGE_FRAMES;
	}
	u->climbers[u->n++] = c;
}

/* Weighs what ends in each branch, and all. */
static void weigh(struct fathom_report_tree *t)
{
	for (size_t i = 0; i < t->n; i++) {
		t->items[i].self = t->items[i].total;
		t->items[i].self_samples = t->items[i].total_samples;
	}
	for (size_t i = 1; i < t->n; i++) {
		struct fathom_report_branch *parent = &t->items[t->items[i].parent];

		if (parent == t->items) {
			parent->total += t->items[i].total;
			parent->total_samples += t->items[i].total_samples;
		} else {
			parent->self -= t->items[i].total;
			parent->self_samples -= t->items[i].total_samples;
		}
	}
}

fathom_err fathom_report_tree_up(struct fathom_report_tree *t,
				 const struct fathom_report_leaf *leaves, size_t n, bool from_of,
				 uint64_t least, struct fathom_errinfo *reterr)
{
	struct up u = { .tree = t,
			.rows = t->rows,
			.nodes = t->rows->profile->nodes,
			.climbers = calloc(n + 1, sizeof *u.climbers) };

	t->pace = fathom_pace_init(t->rows->profile->session, 1 << 18);
	(void)fathom_report_tree_add(t, 0, FATHOM_NONE);
	if (t->rows->has_under)
		u.under = find_spots(&u, FATHOM_REPORT_UNDER, NULL);
	if (from_of)
		u.of = find_spots(&u, FATHOM_REPORT_OF, u.under);
	t->no_memory |=
		!t->n || !u.climbers || (t->rows->has_under && !u.under) || (from_of && !u.of);
	if (fathom_report_tree_step(t)) {
		for (size_t i = 0; i < n; i++)
			begin(&u, &leaves[i]);
		follow(&u, (struct part){ 0, 0, u.n }, least);
	}
	while (u.parts.n && fathom_report_tree_step(t))
		follow(&u, u.parts.items[--u.parts.n], least);
	weigh(t);
	fathom_array_free(&u.parts);
	free(u.climbers);
	free(u.under);
	free(u.of);
	return fathom_report_tree_end(t, reterr);
}
