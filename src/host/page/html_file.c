/* SPDX-License-Identifier: MIT */
#include "host/page/html_file.h"

/* Groups of three bytes that are encoded at once. */
#define GROUPS ((size_t)4096)

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Encodes three bytes of @from: RFC 4648, section 4. */
static void encode(char to[4], const unsigned char from[3])
{
	const uint32_t group = (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2];

	for (unsigned i = 0; i < 4; i++)
		to[i] = digits[group >> (18 - 6 * i) & 63];
}

/* fathom_profile_write_fn: passes @n bytes on as base64, all but the last few. */
static int write_base64(void *data, const void *bytes, size_t n)
{
	struct fathom_page_file *f = data;
	const unsigned char *from = bytes;
	char out[4 * GROUPS];
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		f->left[f->n_left++] = from[i];
		if (f->n_left < 3)
			continue;
		encode(out + used, f->left);
		f->n_left = 0;
		used += 4;
		if (used == sizeof out) {
			if (!f->write(f->data, out, used))
				return 0;
			used = 0;
		}
	}
	return !used || f->write(f->data, out, used);
}

/* Passes on the last bytes; returns false if that failed. */
static bool write_last(struct fathom_page_file *f)
{
	char out[4];

	if (!f->n_left)
		return true;
	for (size_t i = f->n_left; i < 3; i++)
		f->left[i] = 0;
	encode(out, f->left);
	for (size_t i = f->n_left + 1; i < 4; i++)
		out[i] = '=';
	return f->write(f->data, out, sizeof out);
}

void fathom_page_file_begin(struct fathom_page_file *f)
{
	f->gzip = (struct fathom_gzip){ .write = write_base64, .data = f };
	f->gzip.has_failed = !f->write(f->data, fathom_page_head, fathom_page_head_size);
	if (!f->gzip.has_failed)
		fathom_gzip_begin(&f->gzip);
}

void fathom_page_file_put(struct fathom_page_file *f, const struct fathom_page_column *c)
{
	struct fathom_page_column n = { .n = 0 };

	fathom_page_put(&n, c->n);
	f->gzip.no_memory |= n.no_memory || c->no_memory;
	if (!f->gzip.no_memory && !f->gzip.has_failed) {
		fathom_gzip_put(&f->gzip, n.bytes.items, n.bytes.n);
		if (c->bytes.n)
			fathom_gzip_put(&f->gzip, c->bytes.items, c->bytes.n);
	}
	fathom_page_column_deinit(&n);
}

void fathom_page_file_end(struct fathom_page_file *f)
{
	fathom_gzip_end(&f->gzip);
	if (f->gzip.has_failed || f->gzip.no_memory)
		return;
	f->gzip.has_failed =
		!write_last(f) || !f->write(f->data, fathom_page_tail, fathom_page_tail_size);
}
