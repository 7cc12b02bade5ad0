/* SPDX-License-Identifier: MIT */
/* Values in the memory of a target. */
#include "fathom/value.h"

#include <stdlib.h>
#include <string.h>

#include "../target/target.h"
#include "value_type.h"

/* Readings of one value until two agree. */
#define MAX_READINGS 8

/* One way from the address to the value, as it was read: what two readings are compared by. */
struct reading {
	uint64_t hop[FATHOM_VALUE_HOPS]; /* where each hop led to */
	uint8_t *bytes;                  /* of the value; FATHOM_VALUE_MAX are there */
	size_t size;
	uint64_t address; /* of the value, or of what cannot be read */
	bool is_there;
};

/* What pointers and numbers in the target look like. */
struct layout {
	struct fathom_target *target;
	uint8_t word;
	bool swap;
};

static size_t read_bytes(const struct layout *l, uint64_t address, uint8_t *to, size_t size)
{
	size_t got;

	return fathom_target_read(l->target, address, to, size, &got, NULL) ? 0 : got;
}

static bool read_word(const struct layout *l, uint64_t address, uint64_t *ret)
{
	uint8_t bytes[8];

	if (read_bytes(l, address, bytes, l->word) != l->word)
		return false;
	*ret = l->word == 8 ? load_u64(bytes, l->swap) : load_u32(bytes, l->swap);
	return true;
}

/* Reads text up to its NUL, with it; a stretch at a time: what follows need not be there. */
static size_t read_text(const struct layout *l, uint64_t address, uint8_t *to, size_t most)
{
	size_t n = 0;

	while (n < most) {
		const size_t stretch = 256 - (address + n) % 256;
		const size_t wanted = stretch < most - n ? stretch : most - n;
		const size_t got = read_bytes(l, address + n, to + n, wanted);

		if (got && memchr(to + n, '\0', got))
			return (size_t)((uint8_t *)memchr(to + n, '\0', got) - to) + 1;
		n += got;
		if (got < wanted)
			break;
	}
	return n;
}

static void read_once(const struct layout *l, const struct fathom_value_type *t, uint64_t address,
		      struct reading *r)
{
	const size_t wanted = (size_t)t->count * (t->size ? t->size : l->word);

	r->is_there = false;
	r->address = address;
	for (uint32_t i = 0; i < t->n_hops; i++) {
		if (t->hop[i].is_pointer && !read_word(l, r->address, &r->address))
			return;
		r->address += t->hop[i].offset;
		r->hop[i] = r->address;
	}
	if (t->kind == FATHOM_VALUE_TEXT) {
		r->size = read_text(l, r->address, r->bytes, wanted);
		/* Text that goes on into what cannot be read is no text. */
		r->is_there = r->size == wanted || (r->size && !r->bytes[r->size - 1]);
	} else {
		r->size = read_bytes(l, r->address, r->bytes, wanted);
		r->is_there = r->size == wanted;
	}
}

static bool is_same(const struct fathom_value_type *t, const struct reading *a,
		    const struct reading *b)
{
	if (!a->is_there || !b->is_there)
		return a->is_there == b->is_there && a->address == b->address;
	return memcmp(a->hop, b->hop, t->n_hops * sizeof *a->hop) == 0 && a->size == b->size &&
	       memcmp(a->bytes, b->bytes, a->size) == 0;
}

static uint64_t load_number(const uint8_t *p, uint8_t size, bool swap)
{
	switch (size) {
	case 1:
		return *p;
	case 2:
		return load_u16(p, swap);
	case 4:
		return load_u32(p, swap);
	default:
		return load_u64(p, swap);
	}
}

static double load_float(const uint8_t *p, uint8_t size, bool swap)
{
	const uint32_t half = size == 4 ? load_u32(p, swap) : 0;
	const uint64_t whole = size == 8 ? load_u64(p, swap) : 0;
	float f;
	double d;

	memcpy(&f, &half, sizeof f);
	memcpy(&d, &whole, sizeof d);
	return size == 4 ? (double)f : d;
}

/* The items of a value that was read; NULL without memory. */
static void *make_items(const struct layout *l, const struct fathom_value_type *t,
			const struct reading *r)
{
	const uint8_t size = t->size ? t->size : l->word;
	uint64_t *items = calloc(t->count, sizeof *items);

	for (uint32_t i = 0; items && i < t->count; i++) {
		const uint8_t *p = r->bytes + (size_t)i * size;
		const double d = t->kind == FATHOM_VALUE_FLOAT ? load_float(p, size, l->swap) : 0;
		uint64_t v = load_number(p, size, l->swap);

		if (t->kind == FATHOM_VALUE_SIGNED && size < 8 && v >> (8 * size - 1))
			v |= UINT64_MAX << 8 * size;
		if (t->kind == FATHOM_VALUE_FLOAT)
			memcpy(&v, &d, sizeof v);
		items[i] = v;
	}
	return items;
}

static fathom_err take_reading(const struct layout *l, const struct fathom_value_type *t,
			       const struct reading *r, struct fathom_value *ret)
{
	struct fathom_value v = { .address = r->address, .kind = t->kind };

	if (!r->is_there) {
		v.reason = FATHOM_REASON_UNMAPPED;
	} else if (t->kind == FATHOM_VALUE_TEXT || t->kind == FATHOM_VALUE_BYTES) {
		v.is_cut = t->kind == FATHOM_VALUE_TEXT && r->bytes[r->size - 1];
		v.count = (uint32_t)r->size - (t->kind == FATHOM_VALUE_TEXT && !v.is_cut);
		v.items = malloc(r->size);
		if (v.items)
			memcpy((void *)v.items, r->bytes, r->size);
	} else {
		v.count = t->count;
		v.items = make_items(l, t, r);
	}
	if (!v.reason && !v.items)
		return FATHOM_E_MEMORY;
	*ret = v;
	return FATHOM_OK;
}

static fathom_err find_kernel_layout(struct fathom_kernel *kernel, struct layout *ret,
				     struct fathom_errinfo *reterr)
{
	const struct fathom_kcore *memory;

	FATHOM_TRY(fathom_kernel_memory(kernel, &memory, reterr));
	ret->word = fathom_kcore_layout(memory).word;
	ret->swap = fathom_kcore_layout(memory).swap;
	return FATHOM_OK;
}

static fathom_err find_layout(struct fathom_target *target, struct layout *ret,
			      struct fathom_errinfo *reterr)
{
	struct fathom_space_layout program;

	*ret = (struct layout){ .target = target, .word = sizeof(void *) };
	if (target->kernel)
		return find_kernel_layout(target->kernel, ret, reterr);
	if (target->space) {
		FATHOM_TRY(fathom_space_layout(target->space, &program, reterr));
		ret->word = program.word;
		ret->swap = program.swap;
		return FATHOM_OK;
	}
	ret->word = fathom_image_address_size(&target->module->main->image);
	ret->swap = target->module->main->image.swap;
	return FATHOM_OK;
}

fathom_err fathom_value_read(struct fathom_target *target, const char *type, uint64_t address,
			     struct fathom_value *ret_value, struct fathom_errinfo *reterr)
{
	struct reading r[2] = { { .bytes = NULL } };
	struct fathom_value_type t;
	struct layout l;
	fathom_err err = FATHOM_OK;
	int i = 0;

	FATHOM_TRY(fathom_value_type_parse(type, &t, reterr));
	FATHOM_TRY(find_layout(target, &l, reterr));
	r[0].bytes = malloc(FATHOM_VALUE_MAX);
	r[1].bytes = malloc(FATHOM_VALUE_MAX);
	if (r[0].bytes && r[1].bytes) {
		read_once(&l, &t, address, &r[0]);
		do
			read_once(&l, &t, address, &r[++i & 1]);
		while (!is_same(&t, &r[0], &r[1]) && i < MAX_READINGS);
		if (is_same(&t, &r[0], &r[1]))
			err = take_reading(&l, &t, &r[0], ret_value);
		else
			*ret_value = (struct fathom_value){ .address = address,
							    .kind = t.kind,
							    .reason = FATHOM_REASON_CHANGED };
	} else {
		err = FATHOM_E_MEMORY;
	}
	free(r[0].bytes);
	free(r[1].bytes);
	return err ? fathom_fail(reterr, err, "", 0, "out of memory") : FATHOM_OK;
}

fathom_err fathom_value_check(const char *type, struct fathom_errinfo *reterr)
{
	struct fathom_value_type t;

	return fathom_value_type_parse(type, &t, reterr);
}

void fathom_value_free(struct fathom_value *value)
{
	if (!value)
		return;
	free((void *)value->items);
	value->items = NULL;
	value->count = 0;
}
