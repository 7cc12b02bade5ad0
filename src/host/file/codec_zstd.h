/* SPDX-License-Identifier: MIT */
/*
 * Functions of libzstd. They are called by these tables, which zstd_linked.c and zstd_opened.c
 * have.
 */
#ifndef FATHOM_FILE_CODEC_ZSTD_H
#define FATHOM_FILE_CODEC_ZSTD_H

#include <zstd.h>
#include <zstd_errors.h>

#include "host/base/library.h"

#define FATHOM_ZSTD_FUNCTIONS(F)              \
	F(fathom_zstd, ZSTD_compress)         \
	F(fathom_zstd, ZSTD_decompress)       \
	F(fathom_zstd, ZSTD_isError)          \
	F(fathom_zstd, ZSTD_getErrorCode)     \
	F(fathom_zstd, ZSTD_createDStream)    \
	F(fathom_zstd, ZSTD_decompressStream) \
	F(fathom_zstd, ZSTD_freeDStream)

struct fathom_zstd {
	FATHOM_ZSTD_FUNCTIONS(FATHOM_LIBRARY_MEMBER)
};

extern const struct fathom_library fathom_zstd_library;

#endif
