/* SPDX-License-Identifier: MIT */
#include "host/space/kernel/loaded_modules.h"

#include <stdlib.h>

#include "host/file/kernel_text.h"
#include "safe/base/hex.h"
#include "safe/base/sort.h"

/* Usual are some hundred lines of 60 bytes. */
#define MAX_TEXT ((size_t)16 << 20)

#define FIELDS 6

/* Splits @line at blanks; returns how many of the first FIELDS fields it has. */
static size_t split(const char *line, size_t size, struct fathom_str fields[FIELDS])
{
	size_t n = 0;

	for (size_t i = 0; i < size && n < FIELDS;) {
		const size_t start = i;

		while (i < size && line[i] != ' ')
			i++;
		fields[n++] = (struct fathom_str){ line + start, (uint32_t)(i - start) };
		i++;
	}
	return n;
}

/* Parses all of @s as digits of @base, 10 or 16; returns 0 if it is no number. */
static uint64_t number_of(struct fathom_str s, unsigned base)
{
	uint64_t value = 0;

	for (uint32_t i = 0; i < s.size; i++) {
		const unsigned digit = fathom_hex_lower(s.data[i]);

		if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return 0;
	}
	return value;
}

static bool parse_line(const char *line, size_t size, struct fathom_kernel_range *ret)
{
	struct fathom_str fields[FIELDS];
	uint64_t end;

	if (split(line, size, fields) < FIELDS || !fields[0].size || !str_starts(fields[5], "0x"))
		return false;
	fields[5].data += 2;
	fields[5].size -= 2;
	ret->name = fields[0];
	ret->size = number_of(fields[1], 10);
	ret->start = number_of(fields[5], 16);
	return ret->start && ret->size && !__builtin_add_overflow(ret->start, ret->size, &end);
}

/* Makes by_start and ends. */
static bool sort_starts(struct fathom_kernel_modules *m)
{
	uint64_t last = 0;

	m->by_start = malloc((2 * m->n + 1) * sizeof *m->by_start);
	m->ends = malloc((m->n + 1) * sizeof *m->ends);
	if (!m->by_start || !m->ends)
		return false;
	for (size_t i = 0; i < m->n; i++)
		m->by_start[i] = (struct fathom_keyed){ m->items[i].start, i };
	fathom_sort_keyed(m->by_start, m->by_start + m->n, m->n);
	for (size_t i = 0; i < m->n; i++) {
		const struct fathom_kernel_range *r = &m->items[m->by_start[i].value];

		last = r->start + r->size > last ? r->start + r->size : last;
		m->ends[i] = last;
	}
	return true;
}

size_t fathom_kernel_modules_at(const struct fathom_kernel_modules *m, uint64_t avma, uint32_t *ret,
				size_t cap)
{
	size_t i = FATHOM_BISECT(m->n, k, m->by_start[k].key <= avma);
	size_t n = 0;

	while (i-- > 0 && m->ends[i] > avma && n < cap) {
		const uint32_t number = (uint32_t)m->by_start[i].value;
		size_t at = n;

		if (avma - m->items[number].start >= m->items[number].size)
			continue;
		for (; at && ret[at - 1] > number; at--)
			ret[at] = ret[at - 1];
		ret[at] = number;
		n++;
	}
	return n;
}

fathom_err fathom_kernel_modules_parse(char *text, size_t size, struct fathom_kernel_modules *ret)
{
	struct fathom_kernel_modules m = { .text = text };
	const char *end = text + size;
	const char *stop;

	m.items = malloc(fathom_text_count_lines(text, size) * sizeof *m.items);
	if (!m.items) {
		free(text);
		return FATHOM_E_MEMORY;
	}
	for (const char *line = text; line < end; line = stop + 1) {
		stop = memchr(line, '\n', (size_t)(end - line));
		stop = stop ? stop : end;
		m.n += parse_line(line, (size_t)(stop - line), &m.items[m.n]);
	}
	if (!sort_starts(&m)) {
		fathom_kernel_modules_deinit(&m);
		return FATHOM_E_MEMORY;
	}
	*ret = m;
	return FATHOM_OK;
}

fathom_err fathom_kernel_modules_read(const char *path, struct fathom_kernel_modules *ret)
{
	size_t size;
	char *text;
	const fathom_err err = fathom_text_read(path, MAX_TEXT, NULL, NULL, &text, &size, NULL);

	*ret = (struct fathom_kernel_modules){ .text = NULL };
	if (err)
		return err == FATHOM_E_MEMORY ? err : FATHOM_OK;
	return fathom_kernel_modules_parse(text, size, ret);
}

void fathom_kernel_modules_deinit(struct fathom_kernel_modules *m)
{
	free(m->items);
	free(m->by_start);
	free(m->ends);
	free(m->text);
}
