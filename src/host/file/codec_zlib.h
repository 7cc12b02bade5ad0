/* SPDX-License-Identifier: MIT */
/*
 * Functions of libdeflate and zlib. They are called by these tables, which zlib_linked.c and
 * zlib_opened.c have.
 */
#ifndef FATHOM_FILE_CODEC_ZLIB_H
#define FATHOM_FILE_CODEC_ZLIB_H

#include <libdeflate.h>
#include <zlib.h>

#include "host/base/library.h"

#define FATHOM_DEFLATE_FUNCTIONS(F)                      \
	F(fathom_deflate, libdeflate_alloc_decompressor) \
	F(fathom_deflate, libdeflate_zlib_decompress)    \
	F(fathom_deflate, libdeflate_free_decompressor)

struct fathom_deflate {
	FATHOM_DEFLATE_FUNCTIONS(FATHOM_LIBRARY_MEMBER)
};

extern const struct fathom_library fathom_deflate_library;

#define FATHOM_ZLIB_FUNCTIONS(F)      \
	F(fathom_zlib, inflateInit2_) \
	F(fathom_zlib, inflate)       \
	F(fathom_zlib, inflateReset)  \
	F(fathom_zlib, inflateEnd)    \
	F(fathom_zlib, deflateInit2_) \
	F(fathom_zlib, deflate)       \
	F(fathom_zlib, deflateEnd)

struct fathom_zlib {
	FATHOM_ZLIB_FUNCTIONS(FATHOM_LIBRARY_MEMBER)
};

extern const struct fathom_library fathom_zlib_library;

#endif
