/* SPDX-License-Identifier: MIT */
/*
 * Decompression of sections and of whole files. Each format has a file of its own (codec_*.c), and
 * a codec_*_none.c for builds without its library. What the command, libfathom.a and a library that
 * is to stand alone are linked with is in *_linked.c; libfathom.so opens each library when the
 * first bytes are met that it reads (*_opened.c).
 */
#ifndef FATHOM_FILE_CODEC_H
#define FATHOM_FILE_CODEC_H

#include "host/base/library.h"
#include "host/base/memory.h"
#include "safe/base/bytes.h"
#include "safe/base/error.h"

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

/* A format. All functions but open() need that open() has succeeded. */
struct fathom_codec {
	/*
	 * Opens the library, which @m keeps: then no other thread needs the loader for it. @m may
	 * be NULL, in all of these. FATHOM_E_UNSUPPORTED: the library is missing, or this build is
	 * without it; @reterr says which, and names the library as its file.
	 */
	fathom_err (*open)(struct fathom_memory *m, struct fathom_errinfo *reterr);
	/*
	 * Decompresses all of @from into the @size bytes at @to, which it must fill exactly. NULL
	 * for formats of files. Returns FATHOM_OK, FATHOM_E_CORRUPT or FATHOM_E_MEMORY.
	 */
	fathom_err (*unpack)(struct fathom_memory *m, struct fathom_bytes from, uint8_t *to,
			     uint64_t size);
	/*
	 * Decompresses a whole stream into @sink. Ignores what follows the stream.
	 * FATHOM_E_UNSUPPORTED: only unpack() can be done.
	 */
	fathom_err (*stream)(struct fathom_memory *m, struct fathom_bytes from,
			     struct fathom_sink *sink);
};

extern const struct fathom_codec fathom_codec_zlib;
extern const struct fathom_codec fathom_codec_zstd;
extern const struct fathom_codec fathom_codec_gzip;
extern const struct fathom_codec fathom_codec_xz;
extern const struct fathom_codec fathom_codec_lz4;

/*
 * Compresses @from to @to, of @cap bytes, as one frame of zstd at @level. *@ret_size is 0 if it
 * does not fit. FATHOM_E_UNSUPPORTED: there is no libzstd.
 */
fathom_err fathom_zstd_pack(struct fathom_memory *m, struct fathom_bytes from, int level,
			    uint8_t *to, uint64_t cap, uint64_t *ret_size);

/* Returns the format of a file that starts with @bytes; NULL if it is not compressed. */
const struct fathom_codec *fathom_codec_for_file(struct fathom_bytes bytes);

/* Gets the functions of library @l, which @m keeps unless it is NULL. Errors as of open(). */
fathom_err fathom_codec_library(const struct fathom_library *l, struct fathom_memory *m,
				void *table, struct fathom_errinfo *reterr);

/* Says that library @soname is missing. */
#define FATHOM_CODEC_MISSING(soname) "compressed, and " soname ", which reads it, is not installed"

/* The open() of builds without the library. */
fathom_err fathom_codec_refuse(struct fathom_memory *m, struct fathom_errinfo *reterr);

#endif
