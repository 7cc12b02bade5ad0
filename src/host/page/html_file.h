/* SPDX-License-Identifier: MIT */
/*
 * A page: the viewer, which page/ has the source of, and in its middle the data, as gzip has them
 * and then as base64. Nothing of the data is markup. In a build without zlib they are not
 * compressed; the viewer tells these apart by their first bytes.
 */
#ifndef FATHOM_PAGE_HTML_FILE_H
#define FATHOM_PAGE_HTML_FILE_H

#include "host/exchange/gzip_writer.h"
#include "host/page/data_columns.h"

/* The viewer's text, made by page/put_together.py. */
extern const unsigned char fathom_page_head[];
extern const size_t fathom_page_head_size;
extern const unsigned char fathom_page_tail[];
extern const size_t fathom_page_tail_size;

struct fathom_page_file {
	fathom_profile_write_fn write;
	void *data; /* of write */
	struct fathom_gzip gzip;
	unsigned char left[3]; /* bytes that are no group of three yet */
	size_t n_left;
};

/* Writes all before the data. @f is all zero but write and data. */
void fathom_page_file_begin(struct fathom_page_file *f);
/* Appends @c to the data, unless gzip has failed. */
void fathom_page_file_put(struct fathom_page_file *f, const struct fathom_page_column *c);
/* Writes the rest. f->gzip says whether something has failed. */
void fathom_page_file_end(struct fathom_page_file *f);

#endif
