/* SPDX-License-Identifier: MIT */
/*
 * Functions of liblz4. They are called by these tables, which lz4_linked.c and lz4_opened.c have.
 */
#ifndef FATHOM_FILE_CODEC_LZ4_H
#define FATHOM_FILE_CODEC_LZ4_H

#include <lz4frame.h>

#include "host/base/library.h"

#define FATHOM_LZ4_FUNCTIONS(F)                        \
	F(fathom_lz4, LZ4F_createDecompressionContext) \
	F(fathom_lz4, LZ4F_isError)                    \
	F(fathom_lz4, LZ4F_decompress)                 \
	F(fathom_lz4, LZ4F_freeDecompressionContext)

struct fathom_lz4 {
	FATHOM_LZ4_FUNCTIONS(FATHOM_LIBRARY_MEMBER)
};

extern const struct fathom_library fathom_lz4_library;

#endif
