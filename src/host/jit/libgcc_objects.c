/* SPDX-License-Identifier: MIT */
/* Objects of libgcc: lists of them up to version 12, a tree from 13 on. */
#include "host/jit/registered.h"

/*
 * struct object { void *pc_begin, *tbase, *dbase; union { fde *single; fde **array;
 * struct fde_vector *sort; } u; unsigned long bits; struct object *next; };
 * struct fde_vector { void *orig_data; size_t count; fde *array[]; };
 */
enum { OBJECT_UNION = 24, OBJECT_BITS = 32, OBJECT_NEXT = 40 };
enum { BIT_SORTED = 1, BIT_FROM_ARRAY = 2, ENCODING_SHIFT = 3 };

/* Follows the NULL-terminated array of sections at @avma. */
static bool read_array(struct fathom_registered_work *w, uint64_t avma)
{
	uint64_t section;

	while (fathom_registered_word(w, avma, &section) && !w->err) {
		if (!section)
			return true;
		if (!fathom_registered_add_section(w, section))
			return false;
		avma += 8;
	}
	return false;
}

/* Returns whether @bits has an encoding of pointers that libgcc may have stored. */
static bool is_plausible(uint64_t bits)
{
	const uint8_t encoding = (uint8_t)(bits >> ENCODING_SHIFT);

	return encoding == DW_EH_PE_omit ||
	       ((encoding & 0x0f) <= DW_EH_PE_sdata8 && (encoding & 0x70) <= DW_EH_PE_aligned);
}

/* Adds the sections of the object at @avma; returns whether it is one. */
static bool read_object(struct fathom_registered_work *w, uint64_t avma)
{
	uint64_t begin;
	uint64_t bits;

	if (!avma || !fathom_registered_word(w, avma + OBJECT_UNION, &begin) ||
	    !fathom_registered_word(w, avma + OBJECT_BITS, &bits) || !is_plausible(bits))
		return false;
	if (bits & BIT_SORTED && !fathom_registered_word(w, begin, &begin))
		return false;
	return bits & BIT_FROM_ARRAY ? read_array(w, begin)
				     : fathom_registered_add_section(w, begin);
}

/*
 * Follows the list whose first object is at @avma, if that is one, up to what is no object: the
 * program may change it. The number of objects is bounded, so a circle ends.
 */
static void read_list(struct fathom_registered_work *w, uint64_t avma)
{
	uint64_t landmark = avma;
	uint64_t steps = 0;
	uint64_t stretch = 1;

	while (avma && !w->err && fathom_registered_count(w) && read_object(w, avma) &&
	       fathom_registered_word(w, avma + OBJECT_NEXT, &avma) && avma != landmark)
		if (++steps == stretch) { /* Brent's algorithm detects circles */
			landmark = avma;
			stretch *= 2;
			steps = 0;
		}
}

/*
 * struct btree_node { uintptr_t lock; unsigned entry_count; enum { inner, leaf, free } type;
 * union { struct { uintptr_t separator; node *child; } children[15];
 * struct { uintptr_t base, size; struct object *ob; } entries[10]; } content; };
 */
enum { NODE_COUNT = 8, NODE_CONTENT = 16 };
enum { NODE_INNER, NODE_LEAF };
enum { MOST_CHILDREN = 15, MOST_ENTRIES = 10 };
/* Nodes above one another: with 7 children each, more than memory holds. */
#define MAX_DEPTH 24

/* A node of the tree. */
struct node {
	uint64_t avma;
	uint32_t count;
	uint32_t type;
};

static bool read_node(struct fathom_registered_work *w, uint64_t avma, struct node *ret)
{
	uint64_t word;

	if (!avma || !fathom_registered_count(w) ||
	    !fathom_registered_word(w, avma + NODE_COUNT, &word))
		return false;
	*ret = (struct node){ avma, (uint32_t)word, (uint32_t)(word >> 32) };
	return (ret->type == NODE_INNER && ret->count && ret->count <= MOST_CHILDREN) ||
	       (ret->type == NODE_LEAF && ret->count <= MOST_ENTRIES);
}

/* Adds the objects of the leaf @n, whose entries must be sorted. */
static bool read_leaf(struct fathom_registered_work *w, const struct node *n)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < n->count && !w->err; i++) {
		const uint64_t at = n->avma + NODE_CONTENT + 24 * (uint64_t)i;
		uint64_t base, size, object;

		if (!fathom_registered_word(w, at, &base) ||
		    !fathom_registered_word(w, at + 8, &size) ||
		    !fathom_registered_word(w, at + 16, &object) || base < end ||
		    __builtin_add_overflow(base, size, &end) || !read_object(w, object))
			return false;
	}
	return true;
}

/* Adds the objects below the node at @avma; returns whether there is such a tree. */
static bool read_tree(struct fathom_registered_work *w, uint64_t avma)
{
	struct {
		struct node node;
		uint32_t next;
	} stack[MAX_DEPTH];
	unsigned n = 1;

	stack[0].next = 0;
	if (!read_node(w, avma, &stack[0].node))
		return false;
	while (n && !w->err) {
		const struct node *top = &stack[n - 1].node;
		const uint32_t i = stack[n - 1].next++;
		uint64_t child;

		if (top->type == NODE_LEAF && !read_leaf(w, top))
			return false;
		if (top->type == NODE_LEAF || i == top->count) {
			n--;
			continue;
		}
		if (n == MAX_DEPTH ||
		    !fathom_registered_word(w, top->avma + NODE_CONTENT + 16 * (uint64_t)i + 8,
					    &child) ||
		    !read_node(w, child, &stack[n].node))
			return false;
		stack[n++].next = 0;
	}
	return true;
}

static void read_root(struct fathom_registered_work *w, uint64_t first)
{
	if (!read_tree(w, first))
		read_list(w, first);
}

void fathom_libgcc_read(struct fathom_registered_work *w, const struct fathom_module_at *at)
{
	static const char *const functions[] = { "__register_frame_info_bases",
						 "__deregister_frame_info_bases",
						 "_Unwind_Find_FDE" };
	struct fathom_code_roots roots = { .n = 0 };
	bool is_libgcc = true;

	for (unsigned i = 0; i < sizeof functions / sizeof *functions && is_libgcc; i++)
		is_libgcc = fathom_code_roots_find(at, functions[i], &roots);
	if (!is_libgcc)
		return;
	for (unsigned i = 0; i < roots.n && !w->err; i++)
		fathom_registered_follow(w, roots.avma[i], read_root);
}
