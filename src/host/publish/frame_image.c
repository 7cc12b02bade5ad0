/* SPDX-License-Identifier: MIT */
#include "host/publish/frame_image.h"

#include <stdlib.h>

#include "host/publish/registry_table.h"
#include "host/publish/unwinders.h"
#include "safe/jit/registry.h"

/* The CIE of an image that is being written: once in each. */
static size_t put_cie(struct fathom_jit_registry *r, struct fathom_out *o,
		      const struct fathom_jit_cie *cie, size_t start)
{
	/* The registry owns it: what others have of it does not change. */
	struct fathom_jit_cie *c = (struct fathom_jit_cie *)(uintptr_t)cie;

	if (c->stamp != r->stamp) {
		c->stamp = r->stamp;
		c->off = (uint32_t)(fathom_cie_write(o, &c->form) - start);
	}
	return start + c->off;
}

/* Notes that an FDE was written at @off, of @n functions of a leaf. */
static void count_fde(struct fathom_jit_registry *r, struct fathom_jit_image *image, size_t off,
		      size_t n)
{
	if (!image->n_fde++)
		image->fde = off;
	/* There is room in leaves; images of one FDE need none. */
	while (n-- && r->fdes.n < r->fdes.cap)
		r->fdes.items[r->fdes.n++] = (uint32_t)off;
}

static void put_entry(struct fathom_jit_registry *r, struct fathom_out *o, size_t start,
		      const struct fathom_jit_entry *e, struct fathom_jit_image *image)
{
	const struct fathom_jit_body *b = e->body;
	const size_t cie = put_cie(r, o, b->cie, start);

	count_fde(r, image,
		  fathom_fde_write(o, &b->cie->form, cie, e->low, b->framed, b->lsda,
				   (struct fathom_bytes){ b->instructions, b->n_instructions }) -
			  start,
		  1);
}

static void put_arena(struct fathom_jit_registry *r, struct fathom_out *o, size_t start,
		      const struct fathom_jit_arena *a, uint64_t low, uint64_t high, size_t n,
		      struct fathom_jit_image *image)
{
	const size_t cie = put_cie(r, o, a->cie, start);

	count_fde(r, image,
		  fathom_fde_write(o, &a->cie->form, cie, low, high - low, a->lsda,
				   (struct fathom_bytes){ a->instructions, a->n_instructions }) -
			  start,
		  n);
}

void fathom_jit_image_write(struct fathom_jit_registry *r, struct fathom_out *o,
			    const struct fathom_jit_leaf *leaf, struct fathom_jit_image *image)
{
	const size_t start = o->n;

	r->stamp++;
	r->fdes.n = 0;
	image->n_fde = 0;
	for (size_t i = 0; i < leaf->n; i++) {
		const struct fathom_jit_entry *e = leaf->entries[i];
		size_t end = i;

		if (e->body->cie)
			put_entry(r, o, start, e, image);
		if (!e->body->cie && !e->arena->cie && r->fdes.n < r->fdes.cap)
			r->fdes.items[r->fdes.n++] = FATHOM_REGISTRY_NO_FDE;
		if (!e->arena->cie)
			continue;
		/* One for all neighbours of an arena that has one rule. */
		while (end + 1 < leaf->n && leaf->entries[end + 1]->arena == e->arena)
			end++;
		put_arena(r, o, start, e->arena, e->low, fathom_jit_high(leaf->entries[end]),
			  end - i + 1, image);
		i = end;
	}
	fathom_out_u32(o, 0);
}

/*
 * Bytes before an image. libgcc up to 12 takes an array of images for an empty one if the low half
 * of its first pointer is 0, and then does not deregister it: an image never begins at a multiple
 * of 4 GiB, where some allocators put what they give.
 */
#define BEFORE_IMAGE 8

/* Makes an image of one FDE: of @e, or of all of @a if that is NULL; NULL without memory. */
static struct fathom_jit_image *make_image(struct fathom_jit_registry *r,
					   const struct fathom_jit_entry *e,
					   const struct fathom_jit_arena *a)
{
	struct fathom_jit_image *image = NULL;
	struct fathom_jit_image counts;
	struct fathom_out o = { 0 };

	for (;;) {
		r->stamp++;
		counts.n_fde = 0;
		if (e)
			put_entry(r, &o, 0, e, &counts);
		else
			put_arena(r, &o, 0, a, a->low, a->high, 0, &counts);
		fathom_out_u32(&o, 0);
		if (image)
			break;
		image = malloc(sizeof *image + BEFORE_IMAGE + o.n);
		if (!image)
			return NULL;
		o = (struct fathom_out){ .at = (uint8_t *)(image + 1) + BEFORE_IMAGE, .cap = o.n };
	}
	*image = (struct fathom_jit_image){ .bytes = o.at,
					    .fde = counts.fde,
					    .n_fde = 1,
					    .low = e ? e->low : a->low,
					    .high = e ? e->low + e->body->framed : a->high };
	return image;
}

bool fathom_jit_image_of_entry(struct fathom_jit_registry *r, struct fathom_jit_entry *e)
{
	if (e->body->cie && !e->image)
		e->image = make_image(r, e, NULL);
	return e->image || !e->body->cie;
}

bool fathom_jit_image_of_arena(struct fathom_jit_registry *r, struct fathom_jit_arena *arena)
{
	arena->image = make_image(r, NULL, arena);
	return arena->image != NULL;
}

void fathom_jit_image_free(struct fathom_jit_registry *r, struct fathom_jit_image *image)
{
	if (image)
		fathom_jit_tokens_free(r, image);
	free(image);
}

static void put_file(struct fathom_jit_registry *r, struct fathom_out *o, const void *leaf)
{
	struct fathom_jit_leaf *l = (struct fathom_jit_leaf *)(uintptr_t)leaf;

	fathom_jit_symbol_file_write(r, o, l, &l->image);
}

static void put_image(struct fathom_jit_registry *r, struct fathom_out *o, const void *leaf)
{
	struct fathom_jit_leaf *l = (struct fathom_jit_leaf *)(uintptr_t)leaf;

	fathom_jit_image_write(r, o, l, &l->image);
}

bool fathom_jit_leaf_build(struct fathom_jit_registry *r, struct fathom_jit_leaf *leaf,
			   bool symbols)
{
	struct fathom_bytes b;

	r->fdes.n = 0;
	if (!fathom_array_room(&r->fdes, leaf->n))
		return false;
	b = fathom_jit_scratch_write(r, symbols ? put_file : put_image, leaf);
	leaf->block = b.data ? malloc(sizeof *leaf->block + (size_t)b.size) : NULL;
	if (!leaf->block)
		return false;
	leaf->serial = ++r->serial;
	*leaf->block = leaf->serial;
	leaf->gdb.symbol_file = memcpy(leaf->block + 1, b.data, (size_t)b.size);
	leaf->gdb.size = b.size;
	leaf->image.bytes = fathom_jit_file_of(leaf) + (symbols ? FATHOM_JIT_FRAMES_OFF : 0);
	leaf->image.low = leaf->entries[0]->low;
	leaf->image.high = fathom_jit_high(leaf->entries[leaf->n - 1]);
	return true;
}

void fathom_jit_leaf_free(struct fathom_jit_registry *r, struct fathom_jit_leaf *leaf)
{
	fathom_jit_tokens_free(r, &leaf->image);
	if (leaf->block)
		fathom_jit_block_free(leaf->block);
	free(leaf);
}
