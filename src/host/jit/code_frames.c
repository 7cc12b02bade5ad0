/* SPDX-License-Identifier: MIT */
#include "host/jit/code_frames.h"

#include <stdlib.h>

#include "safe/base/limits.h"

/* A copy of a section, or of a part of one. */
struct fathom_jit_code_section {
	struct fathom_cfi cfi;
	uint8_t *bytes;
	uint64_t avma;
	size_t size;
	bool is_used;   /* a frame was asked for */
	bool is_memory; /* it is a copy of memory */
	bool is_whole;  /* up to the terminator */
	bool is_there;  /* it was found again */
};

struct fathom_jit_code_frame {
	struct fathom_fde fde;
	struct fathom_cie cie;
};

void fathom_jit_code_frames_clear(struct fathom_jit_code_frames *f)
{
	for (size_t i = 0; i < f->sections.n; i++) {
		free(f->sections.items[i]->bytes);
		free(f->sections.items[i]);
	}
	for (size_t i = 0; i < f->frames.n; i++)
		free(f->frames.items[i]);
	fathom_array_free(&f->sections);
	fathom_array_free(&f->frames);
	if (f->counted)
		fathom_memory_uncount(f->memory, f->counted);
	f->counted = 0;
}

/* Keeps @bytes, of @size bytes, which are taken over also on failure. */
static fathom_err keep(struct fathom_jit_code_frames *f,
		       const struct fathom_jit_code_layout *layout, uint8_t *bytes, size_t size,
		       uint64_t avma, struct fathom_jit_code_section **ret)
{
	const bool fits = fathom_memory_fits(f->memory, size + sizeof **ret);
	struct fathom_jit_code_section *s = fits ? calloc(1, sizeof *s) : NULL;

	if (!s || !fathom_array_push(&f->sections, s)) {
		free(s);
		free(bytes);
		return fits ? FATHOM_E_MEMORY : FATHOM_E_LIMIT;
	}
	s->bytes = bytes;
	s->avma = avma;
	s->size = size;
	s->is_memory = true;
	s->cfi = (struct fathom_cfi){ .section = { bytes, size },
				      .svma = avma,
				      .address_size = layout->address_size,
				      .is_eh = true,
				      .is_open = true,
				      .swap = layout->swap };
	fathom_memory_count(f->memory, size + sizeof *s);
	f->counted += size + sizeof *s;
	*ret = s;
	return FATHOM_OK;
}

/* Bytes that a section is read in at first: many hold one function. */
#define FIRST_READ 256

/* State of the search for the end of a section. */
struct growing {
	uint8_t *bytes;
	size_t n;   /* bytes read */
	size_t cap; /* bytes */
	size_t at;  /* of the first entry that was not looked at */
};

/* Reads more of the section at @avma; false at the end of memory or without any. */
static bool grow(struct growing *g, const struct fathom_reader *r, uint64_t avma,
		 fathom_err *reterr)
{
	const size_t cap = g->cap ? 2 * g->cap : FIRST_READ;
	uint8_t *larger;
	size_t got;

	*reterr = FATHOM_E_LIMIT;
	if (cap > FATHOM_MAX_REGISTERED_FRAMES)
		return false;
	*reterr = FATHOM_E_MEMORY;
	larger = realloc(g->bytes, cap);
	if (!larger)
		return false;
	g->bytes = larger;
	g->cap = cap;
	*reterr = FATHOM_E_CORRUPT;
	got = r->read(r->data, avma + g->n, g->bytes + g->n, cap - g->n);
	g->n += got < cap - g->n ? got : cap - g->n;
	return got != 0;
}

/* Goes on to the terminator as far as bytes are there; false if that needs more. */
static bool find_end(struct growing *g, bool swap)
{
	while (g->n - g->at >= 4) {
		const uint64_t length = load_u32(g->bytes + g->at, swap);

		if (!length) {
			g->n = g->at + 4;
			return true;
		}
		/* 64-bit entries, which no .eh_frame has, end the search. */
		if (length > g->n - g->at - 4)
			return false;
		g->at += 4 + (size_t)length;
	}
	return false;
}

fathom_err fathom_jit_code_frames_copy(struct fathom_jit_code_frames *f,
				       const struct fathom_reader *r,
				       const struct fathom_jit_code_layout *layout, uint64_t avma,
				       const struct fathom_cfi **ret)
{
	struct growing g = { 0 };
	struct fathom_jit_code_section *s;
	fathom_err err = FATHOM_OK;
	uint8_t *fitting;

	while (!find_end(&g, layout->swap))
		if (!grow(&g, r, avma, &err)) {
			free(g.bytes);
			return err;
		}
	fitting = realloc(g.bytes, g.n);
	FATHOM_TRY(keep(f, layout, fitting ? fitting : g.bytes, g.n, avma, &s));
	s->is_whole = true;
	*ret = &s->cfi;
	return FATHOM_OK;
}

/* The first bytes of an FDE or CIE in 32-bit DWARF: its length, and where its CIE is. */
#define HEAD_SIZE 8

/* Reads the head of the entry at @avma; false if it cannot be one. */
static bool read_head(const struct fathom_reader *r, bool swap, uint64_t avma, uint64_t *ret_end,
		      uint32_t *ret_id)
{
	uint8_t head[HEAD_SIZE];
	uint32_t length;

	if (!fathom_reader_read(r, avma, head, sizeof head))
		return false;
	length = load_u32(head, swap);
	*ret_id = load_u32(head + 4, swap);
	*ret_end = avma + 4 + length;
	return length >= 4 && length <= FATHOM_MAX_JIT_FRAMES;
}

fathom_err fathom_jit_code_frames_copy_fde(struct fathom_jit_code_frames *f,
					   const struct fathom_reader *r,
					   const struct fathom_jit_code_layout *layout,
					   uint64_t avma, const struct fathom_fde **ret)
{
	struct fathom_jit_code_section *s;
	uint64_t end, cie_end, cie, low, high;
	uint32_t id, none;
	uint8_t *bytes;

	if (!read_head(r, layout->swap, avma, &end, &id))
		return FATHOM_E_CORRUPT;
	cie = avma + 4 - (uint64_t)(int64_t)(int32_t)id;
	if (!id || !read_head(r, layout->swap, cie, &cie_end, &none))
		return FATHOM_E_CORRUPT;
	low = cie < avma ? cie : avma;
	high = cie_end > end ? cie_end : end;
	if (high < low || high - low > FATHOM_MAX_JIT_FRAMES)
		return FATHOM_E_LIMIT;
	bytes = malloc((size_t)(high - low) + 1);
	if (!bytes)
		return FATHOM_E_MEMORY;
	if (!fathom_reader_read(r, low, bytes, (size_t)(high - low))) {
		free(bytes);
		return FATHOM_E_CORRUPT;
	}
	FATHOM_TRY(keep(f, layout, bytes, (size_t)(high - low), low, &s));
	return fathom_jit_code_frames_read(f, &s->cfi, avma - low, ret);
}

/* Reads the FDE at @off of @cfi into a frame of its own. */
static fathom_err read_frame(struct fathom_jit_code_frames *f, const struct fathom_cfi *cfi,
			     uint64_t off, struct fathom_jit_code_frame **ret)
{
	struct fathom_jit_code_frame *frame = calloc(1, sizeof *frame);
	struct fathom_cfi_entry e;
	fathom_err err;

	if (!frame || !fathom_array_push(&f->frames, frame)) {
		free(frame);
		return FATHOM_E_MEMORY;
	}
	err = fathom_cfi_at(cfi, off, &e);
	if (err || e.is_cie)
		return FATHOM_E_CORRUPT;
	FATHOM_TRY(fathom_cie_read(cfi, e.cie_off, &frame->cie));
	FATHOM_TRY(fathom_fde_read(&e, &frame->cie, &frame->fde));
	if (frame->fde.is_damaged)
		return FATHOM_E_CORRUPT;
	*ret = frame;
	return FATHOM_OK;
}

fathom_err fathom_jit_code_frames_read(struct fathom_jit_code_frames *f,
				       const struct fathom_cfi *cfi, uint64_t off,
				       const struct fathom_fde **ret)
{
	struct fathom_jit_code_section *s = (struct fathom_jit_code_section *)(uintptr_t)cfi;
	struct fathom_jit_code_frame *frame;

	FATHOM_TRY(read_frame(f, cfi, off, &frame));
	s->is_used = true;
	*ret = &frame->fde;
	return FATHOM_OK;
}

/* Finds the only FDE of @cfi. */
static fathom_err find_only(const struct fathom_cfi *cfi, uint64_t *ret_off)
{
	struct fathom_cfi_reader r;
	struct fathom_cfi_entry e;
	fathom_err err;
	size_t n = 0;

	fathom_cfi_reader_init(&r, cfi);
	while (!(err = fathom_cfi_next(&r, &e, NULL)))
		if (!e.is_cie) {
			*ret_off = e.off;
			n++;
		}
	return err == FATHOM_END && n == 1 ? FATHOM_OK : FATHOM_E_CORRUPT;
}

fathom_err fathom_jit_code_frames_take(struct fathom_jit_code_frames *f,
				       const struct fathom_jit_code_layout *layout, uint8_t *bytes,
				       size_t n_bytes, uint64_t start, uint64_t size,
				       const struct fathom_fde **ret)
{
	struct fathom_jit_code_section *s;
	struct fathom_jit_code_frame *frame;
	uint64_t off = 0;

	FATHOM_TRY(keep(f, layout, bytes, n_bytes, start, &s));
	s->is_memory = false;
	FATHOM_TRY(find_only(&s->cfi, &off));
	FATHOM_TRY(read_frame(f, &s->cfi, off, &frame));
	frame->fde.low = start;
	frame->fde.high = start + size;
	*ret = &frame->fde;
	return FATHOM_OK;
}

bool fathom_jit_code_frames_unmark(struct fathom_jit_code_frames *f)
{
	f->n_used = 0;
	for (size_t i = 0; i < f->sections.n; i++) {
		struct fathom_jit_code_section *s = f->sections.items[i];

		s->is_there = false;
		if (!s->is_used || !s->is_whole)
			continue;
		f->sections.items[i] = f->sections.items[f->n_used];
		f->sections.items[f->n_used++] = s;
	}
	return f->n_used != 0;
}

void fathom_jit_code_frames_mark(struct fathom_jit_code_frames *f, uint64_t avma)
{
	for (size_t i = 0; i < f->n_used; i++)
		f->sections.items[i]->is_there |= f->sections.items[i]->avma == avma;
}

/* Returns whether @s equals the memory that it was made of. */
static bool is_equal(const struct fathom_jit_code_section *s, const struct fathom_reader *r)
{
	uint8_t piece[4096];

	for (size_t at = 0, n; at < s->size; at += n) {
		n = s->size - at < sizeof piece ? s->size - at : sizeof piece;
		if (!fathom_reader_read(r, s->avma + at, piece, n) ||
		    memcmp(piece, s->bytes + at, n) != 0)
			return false;
	}
	return true;
}

bool fathom_jit_code_frames_stayed(const struct fathom_jit_code_frames *f,
				   const struct fathom_reader *r)
{
	for (size_t i = 0; i < f->sections.n; i++) {
		const struct fathom_jit_code_section *s = f->sections.items[i];

		if (s->is_used && s->is_memory &&
		    ((s->is_whole && !s->is_there) || !is_equal(s, r)))
			return false;
	}
	return true;
}
