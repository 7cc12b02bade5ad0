/* SPDX-License-Identifier: MIT */
/*
 * Decompression of sections and of whole files. Each format has a file of its own (codec_*.c), and
 * a codec_*_none.c for builds without its library.
 */
#ifndef FATHOM_FILE_CODEC_H
#define FATHOM_FILE_CODEC_H

#include "safe/base/bytes.h"
#include "safe/base/error.h"

/*
 * Decompresses all of @from into the @size bytes at @to, which it must fill exactly. Returns
 * FATHOM_OK, FATHOM_E_CORRUPT, FATHOM_E_MEMORY, or FATHOM_E_UNSUPPORTED in a build without the
 * library.
 */
fathom_err fathom_codec_zlib(struct fathom_bytes from, uint8_t *to, uint64_t size);
fathom_err fathom_codec_zstd(struct fathom_bytes from, uint8_t *to, uint64_t size);

struct fathom;

/* The output of a stream, of unknown length unless it is fixed. */
struct fathom_sink {
	uint8_t *data; /* pages; fathom_pages_free(data, cap), unless fixed */
	uint64_t size;
	uint64_t cap;
	uint64_t limit;         /* greatest size; more is FATHOM_E_LIMIT */
	struct fathom *session; /* asked for progress; NULL: none is */
	bool is_fixed;          /* data is the caller's and has room for limit bytes */
	bool is_short;          /* the input ended early: FATHOM_E_CORRUPT, all before it is good */
	/*
	 * Takes the bytes of data each time when it is full, which is then filled anew; the caller
	 * takes the last ones. NULL: data grows. An error ends the stream.
	 */
	fathom_err (*take)(struct fathom_sink *sink);
	void *taker; /* for take() */
};

/*
 * Makes room for at least one more byte; in a full fixed sink for none, so that a stream can end.
 * Returns FATHOM_OK, FATHOM_E_LIMIT, FATHOM_E_CANCELLED or FATHOM_E_MEMORY.
 */
fathom_err fathom_sink_grow(struct fathom_sink *sink);
void fathom_sink_deinit(struct fathom_sink *sink);

/* Decompress a whole stream into @sink. They ignore what follows the stream. */
fathom_err fathom_codec_gzip_stream(struct fathom_bytes from, struct fathom_sink *sink);
fathom_err fathom_codec_zlib_stream(struct fathom_bytes from, struct fathom_sink *sink);
fathom_err fathom_codec_xz_stream(struct fathom_bytes from, struct fathom_sink *sink);
fathom_err fathom_codec_zstd_stream(struct fathom_bytes from, struct fathom_sink *sink);
fathom_err fathom_codec_lz4_stream(struct fathom_bytes from, struct fathom_sink *sink);

typedef fathom_err fathom_codec_stream_fn(struct fathom_bytes from, struct fathom_sink *sink);

/* Returns the decompressor for a file that starts with @bytes; NULL if it is not compressed. */
fathom_codec_stream_fn *fathom_codec_for_file(struct fathom_bytes bytes);

/* Returns the CRC-32 of @bytes, as .gnu_debuglink and gzip use it. */
uint32_t fathom_codec_crc32(struct fathom_bytes bytes);

#endif
