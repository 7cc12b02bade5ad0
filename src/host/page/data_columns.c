/* SPDX-License-Identifier: MIT */
#include "host/page/data_columns.h"

#include <string.h>

#include "host/events/escape.h"

/* The most bytes of a number. */
#define LEB_SIZE 10

void fathom_page_put(struct fathom_page_column *c, uint64_t value)
{
	if (!fathom_array_room(&c->bytes, LEB_SIZE)) {
		c->no_memory = true;
		return;
	}
	for (; value > 0x7f; value >>= 7)
		c->bytes.items[c->bytes.n++] = (char)(value | 0x80);
	c->bytes.items[c->bytes.n++] = (char)value;
	c->n++;
}

void fathom_page_put_delta(struct fathom_page_column *c, uint64_t value)
{
	const uint64_t difference = value - c->last;

	c->last = value;
	fathom_page_put(c, difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0));
}

void fathom_page_column_deinit(struct fathom_page_column *c)
{
	fathom_array_free(&c->bytes);
}

uint32_t fathom_page_text(struct fathom_page_texts *t, const char *s)
{
	const size_t before = t->names.n;
	uint32_t number;

	if (!t->names.n && fathom_name_table_add(&t->names, "") == FATHOM_KEY_NEW)
		t->no_memory = true;
	if (!s || !*s || t->no_memory)
		return 0;
	if (!fathom_escape_utf8(&t->clean, s)) {
		t->no_memory = true;
		return 0;
	}
	number = fathom_name_table_add(&t->names, t->clean.items);
	if (t->names.n > before)
		t->bytes += t->clean.n;
	if (number != FATHOM_KEY_NEW)
		return number;
	t->no_memory = true;
	return 0;
}

void fathom_page_put_texts(struct fathom_page_column *c, const struct fathom_page_texts *t)
{
	for (size_t i = 0; i < t->names.n && !c->no_memory; i++) {
		const char *s = t->names.items[i].text;
		const size_t n = strlen(s);

		fathom_page_put(c, n);
		if (c->no_memory || !fathom_array_room(&c->bytes, n)) {
			c->no_memory = true;
			return;
		}
		memcpy(c->bytes.items + c->bytes.n, s, n);
		c->bytes.n += n;
	}
}

void fathom_page_texts_deinit(struct fathom_page_texts *t)
{
	fathom_name_table_deinit(&t->names);
	fathom_array_free(&t->clean);
}
