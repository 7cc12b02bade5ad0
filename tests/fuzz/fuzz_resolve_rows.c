/* SPDX-License-Identifier: MIT */
/*
 * Rows of fathom resolve: the first byte chooses form and columns, the others are the input. It is
 * read at once, and in pieces of the size that the second byte states: both must give the same
 * rows. Texts must lie inside what was read.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "cli/resolve_rows.h"

static void fail(void)
{
	abort();
}

/* Returns a number that stands for @row, whose texts are within @text. */
static uint64_t sum_of(const struct row_reader *r, const struct row *row, const char *text,
		       size_t size)
{
	uint8_t id[FATHOM_BUILD_ID_MAX];
	uint64_t sum = row->error + 7u * row->kind + 31 * row->count;

	if (row->error >= ROW_ERRORS || row->kind > (r->form == ROW_BINARY ? UINT8_MAX : 1))
		fail();
	for (unsigned k = 0; k < ROW_KEYS; k++) {
		const struct row_text t = row->keys[k];

		if (t.data && (t.data < text || t.size > size - (size_t)(t.data - text)))
			fail();
		for (uint32_t i = 0; i < t.size; i++)
			sum = 1099511628211u * (sum ^ (uint8_t)t.data[i]);
	}
	if (!row->error && row_build_id(row, id) > FATHOM_BUILD_ID_MAX)
		fail();
	return row->error ? sum : sum + 3 * row->offset;
}

/* Reads @size bytes, of which @piece more are there each time; returns what stands for all rows. */
static uint64_t read_all(struct row_reader r, const uint8_t *data, size_t size, size_t piece)
{
	char *text = malloc(size + 1);
	size_t used = 0;
	size_t have = 0;
	uint64_t sum = 0;

	if (!text)
		return 0;
	memcpy(text, data, size);
	while (!r.is_lost) {
		struct row row;
		const struct row_step step =
			row_read(&r, text + used, have - used, have == size, &row);

		if (step.size > have - used || (step.has_row && !step.size))
			fail();
		if (step.has_row)
			sum = 31 * sum + sum_of(&r, &row, text + used, step.size);
		used += step.size;
		if (!step.size && have == size)
			break;
		if (!step.size)
			have = size - have < piece ? size : have + piece;
	}
	if (!r.is_lost && used != size)
		fail();
	free(text);
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t orders[4][ROW_KEYS] = {
		{ ROW_BUILD_ID, ROW_OFFSET },
		{ ROW_BUILD_ID, ROW_OFFSET, ROW_MODULE },
		{ ROW_MODULE, ROW_OFFSET, ROW_KIND },
		{ ROW_COUNT, ROW_KIND, ROW_MODULE, ROW_OFFSET, ROW_BUILD_ID },
	};
	static const uint8_t counts[4] = { 2, 3, 3, 5 };
	struct row_reader r = { 0 };
	uint64_t whole;

	if (size < 2)
		return 0;
	r.form = (enum row_form)(data[0] % 3);
	r.n_columns = counts[data[0] >> 2 & 3];
	memcpy(r.columns, orders[data[0] >> 2 & 3], sizeof r.columns);
	whole = read_all(r, data + 2, size - 2, size);
	/* In pieces, a row that is lost is lost before all of it was read. */
	if (r.form != ROW_BINARY && read_all(r, data + 2, size - 2, data[1] + 1u) != whole)
		fail();
	return 0;
}
