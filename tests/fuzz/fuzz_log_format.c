/* SPDX-License-Identifier: MIT */
/*
 * Lines of each format of logs alone: the first byte chooses the format, the others are lines. Each
 * number must stand in its line as it is, and its texts be of its line or kept.
 */
#include "fuzz.h"

#include <stdlib.h>

#include "host/filter/formats.h"

static void fail(void)
{
	abort();
}

/* Touches all of @text, which may have no bytes. */
static unsigned touch(struct fathom_str text)
{
	unsigned sum = 0;

	for (uint32_t i = 0; i < text.size; i++)
		sum += (unsigned char)text.data[i];
	return sum;
}

/* Checks number @n of a line. */
static void check(const struct fathom_log_number *n)
{
	struct fathom_log_line l = { n->at, n->at + n->size };
	uint64_t value;

	if (n->at < n->line_start || !n->size || n->at + n->size > n->line_end)
		fail();
	if ((!fathom_line_take_0x(&l, &value) && !fathom_line_take_hex(&l, &value)) ||
	    value != n->value || l.at != n->at + n->size)
		fail();
	if (touch(n->module) + touch(n->build_id) + touch(n->from) + touch(n->symbol) == UINT32_MAX)
		fail();
	if (n->kind > FATHOM_LOG_LOWERED || n->base > FATHOM_LOG_MAPPED)
		fail();
}

/* Checks what a line tells of the memory of modules. */
static void check_fact(const struct fathom_log_fact *f)
{
	if (f->place.start > f->place.end || touch(f->place.module) == UINT32_MAX)
		fail();
}

/* Reads the lines of the @size bytes at @text as @format, one call of the scanner. */
static void read_lines(const struct fathom_log_format *format, const char *text, size_t size)
{
	struct fathom_log_scan scan = { .text = text };
	const char *const end = text + size;

	for (const char *at = text; at < end; scan.line++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		const size_t before = scan.numbers.n;
		bool is;

		stop = stop ? stop : end;
		scan.line_start = at;
		scan.line_end = stop;
		is = format->read(&scan, (struct fathom_log_line){ at, stop });
		if (!is && scan.numbers.n > before)
			fail();
		for (size_t i = before; i < scan.numbers.n; i++)
			check(&scan.numbers.items[i]);
		at = stop + 1;
	}
	for (size_t i = 0; i < scan.facts.n; i++)
		check_fact(&scan.facts.items[i]);
	fathom_log_scan_deinit(&scan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = 0;
	char *text;

	while (fathom_log_formats[n].name)
		n++;
	text = size > 1 ? malloc(size - 1) : NULL;
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	read_lines(&fathom_log_formats[data[0] % n], text, size - 1);
	free(text);
	return 0;
}
