/* SPDX-License-Identifier: MIT */
/* For builds without zlib: nothing is compressed. */
#include "host/exchange/gzip_writer.h"

void fathom_gzip_begin(struct fathom_gzip *g)
{
	(void)g;
}

void fathom_gzip_put(struct fathom_gzip *g, const void *bytes, size_t n)
{
	if (!g->has_failed)
		g->has_failed = !g->write(g->data, bytes, n);
}

void fathom_gzip_end(struct fathom_gzip *g)
{
	(void)g;
}
