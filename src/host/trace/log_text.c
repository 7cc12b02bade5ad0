/* SPDX-License-Identifier: MIT */
#include "host/trace/log_text.h"

#include <string.h>

/* Columns that numbers are right-aligned in. */
enum { TID_WIDTH = 5, NS_WIDTH = 13, STACK_WIDTH = 7 };

/* The deepest indentation, in calls. */
#define MOST_INDENTED 60

/* Bytes of a line without its text: three numbers, the indentation and a count. */
#define MOST_ROUND 256

/* The digits of a number of 64 bits with a mark between each three. */
#define MOST_DIGITS 27

void fathom_log_text_init(struct fathom_log_text *t, fathom_log_write_fn write, void *data)
{
	t->write = write;
	t->data = data;
	t->n = 0;
	t->has_failed = false;
}

void fathom_log_text_flush(struct fathom_log_text *t)
{
	if (t->n && !t->has_failed)
		t->has_failed = !t->write(t->data, t->buffer, t->n);
	t->n = 0;
}

/* Makes room for @size bytes, which are fewer than the buffer has. */
static void make_room(struct fathom_log_text *t, size_t size)
{
	if (size > sizeof t->buffer - t->n)
		fathom_log_text_flush(t);
}

/* Puts @size bytes, however many. */
static void put(struct fathom_log_text *t, const char *text, size_t size)
{
	while (size) {
		size_t part = sizeof t->buffer - t->n;

		if (!part) {
			fathom_log_text_flush(t);
			continue;
		}
		if (part > size)
			part = size;
		memcpy(t->buffer + t->n, text, part);
		t->n += part;
		text += part;
		size -= part;
	}
}

static void put_spaces(struct fathom_log_text *t, size_t n)
{
	memset(t->buffer + t->n, ' ', n);
	t->n += n;
}

/* Writes the digits of @value, grouped, up to @end; returns where they begin. */
static char *grouped(uint64_t value, char *end)
{
	while (value >= 1000) {
		const unsigned low = (unsigned)(value % 1000);

		value /= 1000;
		*--end = (char)('0' + low % 10);
		*--end = (char)('0' + low / 10 % 10);
		*--end = (char)('0' + low / 100);
		*--end = '\'';
	}
	do
		*--end = (char)('0' + value % 10);
	while (value /= 10);
	return end;
}

/* Puts @value behind a space, in @width columns at least. */
static void put_number(struct fathom_log_text *t, uint64_t value, size_t width)
{
	char digits[MOST_DIGITS];
	char *end = digits + sizeof digits;
	const char *begin = grouped(value, end);
	const size_t n = (size_t)(end - begin);

	put_spaces(t, 1 + (n < width ? width - n : 0));
	memcpy(t->buffer + t->n, begin, n);
	t->n += n;
}

/* Puts @value behind a space, in the columns of a tid, ungrouped. */
static void put_tid(struct fathom_log_text *t, int32_t tid)
{
	char digits[MOST_DIGITS];
	char *end = digits + sizeof digits;
	char *begin = end;
	uint32_t value = (uint32_t)tid;

	do
		*--begin = (char)('0' + value % 10);
	while (value /= 10);
	put_spaces(t, 1 + (end - begin < TID_WIDTH ? (size_t)(TID_WIDTH - (end - begin)) : 0));
	memcpy(t->buffer + t->n, begin, (size_t)(end - begin));
	t->n += (size_t)(end - begin);
}

void fathom_log_text_head(struct fathom_log_text *t)
{
	static const char head[] = "#     tid   nanoseconds   stack symbol\n";

	put(t, head, sizeof head - 1);
}

void fathom_log_text_line(struct fathom_log_text *t, const struct fathom_log_line *line)
{
	static const char times[] = " \xc3\x97"; /* × */

	make_room(t, MOST_ROUND);
	memcpy(t->buffer + t->n, line->kind, 3);
	t->n += 3;
	put_tid(t, line->tid);
	put_number(t, line->ns, NS_WIDTH);
	put_number(t, line->stack, STACK_WIDTH);
	put_spaces(t, 1 + 2 * (size_t)(line->depth < MOST_INDENTED ? line->depth : MOST_INDENTED));
	put(t, line->what, line->size);
	make_room(t, MOST_DIGITS + sizeof times + 1);
	if (line->count > 1) {
		char digits[MOST_DIGITS];
		const char *begin = grouped(line->count, digits + sizeof digits);

		put(t, times, sizeof times - 1);
		put(t, begin, (size_t)(digits + sizeof digits - begin));
	}
	put(t, "\n", 1);
}
