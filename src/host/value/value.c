/* SPDX-License-Identifier: MIT */
/* Values in the memory of a target. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fathom/value.h"
#include "host/base/progress.h"
#include "host/space/target.h"
#include "host/value/type.h"

/* Most reads of one value until two agree. */
#define MAX_READINGS 8

/* One read of the chain of pointers and the value; two reads are compared. */
struct reading {
	uint64_t hop[FATHOM_VALUE_HOPS]; /* target of each hop */
	uint8_t *bytes;                  /* bytes of the value; room for FATHOM_VALUE_MAX */
	size_t size;
	uint64_t address; /* of the value, or of unreadable memory */
	bool is_there;
	bool is_silent; /* the file system of its memory does not answer */
};

/* Reads the values of one call, in one view. */
struct reader {
	struct fathom_view *view;
	struct fathom_layout program; /* its byte order and pointer size */
	struct reading r[2];
};

static size_t read_bytes(const struct reader *rd, uint64_t address, uint8_t *to, size_t size)
{
	return fathom_view_read(rd->view, address, to, size);
}

static bool read_word(struct reader *rd, uint64_t address, uint64_t *ret)
{
	const uint8_t word = rd->program.word;
	const bool swap = rd->program.swap;
	uint8_t bytes[8];

	if (read_bytes(rd, address, bytes, word) != word)
		return false;
	*ret = word == 8 ? load_u64(bytes, swap) : load_u32(bytes, swap);
	return true;
}

/* Reads text including its NUL, in steps, because memory after it may be unmapped. */
static size_t read_text(struct reader *rd, uint64_t address, uint8_t *to, size_t most)
{
	size_t n = 0;

	while (n < most) {
		const size_t stretch = 256 - (address + n) % 256;
		const size_t wanted = stretch < most - n ? stretch : most - n;
		const size_t got = read_bytes(rd, address + n, to + n, wanted);

		if (got && memchr(to + n, '\0', got))
			return (size_t)((uint8_t *)memchr(to + n, '\0', got) - to) + 1;
		n += got;
		if (got < wanted)
			break;
	}
	return n;
}

static void read_once(struct reader *rd, const struct fathom_value_type *t, uint64_t address,
		      struct reading *r)
{
	const size_t wanted = (size_t)t->count * (t->size ? t->size : rd->program.word);

	r->is_there = false;
	r->is_silent = false;
	r->address = address;
	errno = 0;
	for (uint32_t i = 0; i < t->n_hops; i++) {
		if (t->hop[i].is_pointer && !read_word(rd, r->address, &r->address)) {
			r->is_silent = errno == ETIMEDOUT;
			return;
		}
		r->address += t->hop[i].offset;
		r->hop[i] = r->address;
	}
	if (t->kind == FATHOM_VALUE_TEXT) {
		r->size = read_text(rd, r->address, r->bytes, wanted);
		/* Text that runs into unreadable memory is invalid. */
		r->is_there = r->size == wanted || (r->size && !r->bytes[r->size - 1]);
	} else {
		r->size = read_bytes(rd, r->address, r->bytes, wanted);
		r->is_there = r->size == wanted;
	}
	r->is_silent = !r->is_there && errno == ETIMEDOUT;
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

/* Makes the items of a value that was read; returns NULL without memory. */
static void *make_items(const struct reader *rd, const struct fathom_value_type *t,
			const struct reading *r)
{
	const uint8_t size = t->size ? t->size : rd->program.word;
	uint64_t *items = calloc(t->count, sizeof *items);

	for (uint32_t i = 0; items && i < t->count; i++) {
		const uint8_t *p = r->bytes + (size_t)i * size;
		const double d =
			t->kind == FATHOM_VALUE_FLOAT ? load_float(p, size, rd->program.swap) : 0;
		uint64_t v = load_number(p, size, rd->program.swap);

		if (t->kind == FATHOM_VALUE_SIGNED && size < 8 && v >> (8 * size - 1))
			v |= UINT64_MAX << 8 * size;
		if (t->kind == FATHOM_VALUE_FLOAT)
			memcpy(&v, &d, sizeof v);
		items[i] = v;
	}
	return items;
}

static fathom_err take_reading(const struct reader *rd, const struct fathom_value_type *t,
			       const struct reading *r, struct fathom_value *ret)
{
	struct fathom_value v = { .address = r->address, .kind = t->kind };

	if (!r->is_there) {
		v.reason = r->is_silent ? FATHOM_REASON_TIMEOUT : FATHOM_REASON_UNMAPPED;
	} else if (t->kind == FATHOM_VALUE_TEXT || t->kind == FATHOM_VALUE_BYTES) {
		v.is_cut = t->kind == FATHOM_VALUE_TEXT && r->bytes[r->size - 1];
		v.count = (uint32_t)r->size - (t->kind == FATHOM_VALUE_TEXT && !v.is_cut);
		v.items = malloc(r->size);
		if (v.items)
			memcpy((void *)v.items, r->bytes, r->size);
	} else {
		v.count = t->count;
		v.items = make_items(rd, t, r);
	}
	if (!v.reason && !v.items)
		return FATHOM_E_MEMORY;
	*ret = v;
	return FATHOM_OK;
}

static void reader_deinit(struct reader *rd)
{
	fathom_view_end(rd->view);
	free(rd->r[0].bytes);
	free(rd->r[1].bytes);
}

static fathom_err reader_init(struct reader *rd, struct fathom_target *target,
			      struct fathom_errinfo *reterr)
{
	fathom_err err;

	*rd = (struct reader){ .view = NULL };
	FATHOM_TRY(fathom_view_begin(target, FATHOM_VIEW_MEMORY, &rd->view, reterr));
	err = target->ops->layout(rd->view, &rd->program);
	if (err) {
		(void)fathom_view_fail(rd->view, err, reterr);
		reader_deinit(rd);
	}
	return err;
}

static fathom_err read_value(struct reader *rd, const struct fathom_value_type *t, uint64_t address,
			     struct fathom_value *ret)
{
	struct reading *r = rd->r;
	int i = 0;

	read_once(rd, t, address, &r[0]);
	do
		read_once(rd, t, address, &r[++i & 1]);
	while (!is_same(t, &r[0], &r[1]) && i < MAX_READINGS);
	if (is_same(t, &r[0], &r[1]))
		return take_reading(rd, t, &r[0], ret);
	*ret = (struct fathom_value){ .address = address,
				      .kind = t->kind,
				      .reason = FATHOM_REASON_CHANGED };
	return FATHOM_OK;
}

/* Values between two questions: 10 ms where each takes three reads of another process. */
#define VALUES_PER_QUESTION 2048

/* Bytes of values between two questions. */
#define BYTES_PER_QUESTION (UINT64_C(16) << 20)

/* Returns how many values @t are read between two questions. */
static size_t values_per_question(const struct reader *rd, const struct fathom_value_type *t)
{
	const uint64_t size = (uint64_t)t->count * (t->size ? t->size : rd->program.word);
	const uint64_t n = BYTES_PER_QUESTION / (size + 1);

	return n < VALUES_PER_QUESTION ? (size_t)n : VALUES_PER_QUESTION;
}

/* Reads all @n values; @values holds those that were read, even on failure. */
static fathom_err read_all(struct reader *rd, const struct fathom_value_type *t,
			   const uint64_t *addresses, size_t n, struct fathom_value *values)
{
	const size_t step = values_per_question(rd, t);
	fathom_err err = FATHOM_OK;

	rd->r[0].bytes = malloc(FATHOM_VALUE_MAX);
	rd->r[1].bytes = malloc(FATHOM_VALUE_MAX);
	if (!rd->r[0].bytes || !rd->r[1].bytes)
		return FATHOM_E_MEMORY;
	for (size_t i = 0; i < n && !err; i++) {
		if (i % step == 0 &&
		    !fathom_goes_on(rd->view->target->session, FATHOM_PHASE_READ, i, n))
			return FATHOM_E_CANCELLED;
		err = read_value(rd, t, addresses[i], &values[i]);
	}
	return err;
}

/* Reads all values from the target as it is now. Sets *@ret_good to false if exec() intervened. */
static fathom_err read_now(struct fathom_target *target, const struct fathom_value_type *t,
			   const uint64_t *addresses, size_t n, struct fathom_value *values,
			   bool *ret_good, struct fathom_errinfo *reterr)
{
	struct reader rd;
	fathom_err err;

	FATHOM_TRY(reader_init(&rd, target, reterr));
	err = read_all(&rd, t, addresses, n, values);
	*ret_good = !target->ops->has_stayed || target->ops->has_stayed(rd.view);
	reader_deinit(&rd);
	return err ? fathom_fail(reterr, err, "", 0, "out of memory") : FATHOM_OK;
}

static void free_values(struct fathom_value *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fathom_value_free(&values[i]);
}

fathom_err fathom_values_read(struct fathom_target *target, const char *type,
			      const uint64_t *addresses, size_t n, struct fathom_value *ret_values,
			      struct fathom_errinfo *reterr)
{
	struct fathom_value_type t;
	struct fathom_value *values;
	struct fathom_call call;
	bool good = false;
	fathom_err err;

	FATHOM_TRY(fathom_value_type_parse(type, &t, reterr));
	values = n <= SIZE_MAX / sizeof *values ? calloc(n + 1, sizeof *values) : NULL;
	if (!values)
		return fathom_fail_memory(reterr);
	fathom_call_begin(&call, target->session);
	err = read_now(target, &t, addresses, n, values, &good, reterr);
	for (int i = 1; !err && !good && i < MAX_READINGS; i++) {
		free_values(values, n);
		err = read_now(target, &t, addresses, n, values, &good, reterr);
	}
	err = fathom_call_end(&call, fathom_target_end_call(target, err, reterr), reterr);
	if (err || !good)
		free_values(values, n);
	for (size_t i = 0; !err && i < n; i++)
		ret_values[i] = good ? values[i]
				     : (struct fathom_value){ .address = addresses[i],
							      .kind = t.kind,
							      .reason = FATHOM_REASON_CHANGED };
	free(values);
	return err;
}

fathom_err fathom_value_read(struct fathom_target *target, const char *type, uint64_t address,
			     struct fathom_value *ret_value, struct fathom_errinfo *reterr)
{
	return fathom_values_read(target, type, &address, 1, ret_value, reterr);
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
