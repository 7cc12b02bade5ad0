/* SPDX-License-Identifier: MIT */
#include "host/exchange/gzip_writer.h"

#include <stdlib.h>

#include "host/file/codec.h"
#include "host/file/codec_zlib.h"

/* Bytes that are passed on at once. */
#define PIECE ((size_t)64 << 10)
/* Window of 32 KiB, with a header of gzip: zlib.h, deflateInit2(). */
#define GZIP_WINDOW (15 + 16)
#define LEVEL       6
#define MEMORY      8

struct deflating {
	struct fathom_zlib f;
	z_stream z;
	unsigned char out[PIECE];
};

void fathom_gzip_begin(struct fathom_gzip *g)
{
	struct deflating *d = calloc(1, sizeof *d);

	g->no_memory |= !d;
	if (d && fathom_codec_library(&fathom_zlib_library, NULL, &d->f, NULL)) {
		free(d);
		d = NULL;
	}
	if (d && d->f.deflateInit2_(&d->z, LEVEL, Z_DEFLATED, GZIP_WINDOW, MEMORY,
				    Z_DEFAULT_STRATEGY, ZLIB_VERSION, (int)sizeof d->z) != Z_OK) {
		g->no_memory = true;
		free(d);
		d = NULL;
	}
	g->state = d;
}

/* Compresses what zlib was given, and passes it on. */
static void deflate_all(struct fathom_gzip *g, int flush)
{
	struct deflating *d = g->state;

	do {
		d->z.next_out = d->out;
		d->z.avail_out = PIECE;
		(void)d->f.deflate(&d->z, flush);
		if (d->z.avail_out < PIECE && !g->has_failed)
			g->has_failed = !g->write(g->data, d->out, PIECE - d->z.avail_out);
	} while (!d->z.avail_out && !g->has_failed);
}

void fathom_gzip_put(struct fathom_gzip *g, const void *bytes, size_t n)
{
	struct deflating *d = g->state;
	const unsigned char *at = bytes;

	if (!d && !g->no_memory && !g->has_failed)
		g->has_failed = !g->write(g->data, bytes, n);
	while (d && n && !g->no_memory && !g->has_failed) {
		const size_t size = n < PIECE ? n : PIECE;

		d->z.next_in = (unsigned char *)at;
		d->z.avail_in = (uInt)size;
		deflate_all(g, Z_NO_FLUSH);
		at += size;
		n -= size;
	}
}

void fathom_gzip_end(struct fathom_gzip *g)
{
	struct deflating *d = g->state;

	if (!d)
		return;
	if (!g->no_memory && !g->has_failed)
		deflate_all(g, Z_FINISH);
	(void)d->f.deflateEnd(&d->z);
	free(d);
	g->state = NULL;
}
