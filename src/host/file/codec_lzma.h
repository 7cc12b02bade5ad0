/* SPDX-License-Identifier: MIT */
/*
 * Functions of liblzma. They are called by these tables, which lzma_linked.c and lzma_opened.c
 * have.
 */
#ifndef FATHOM_FILE_CODEC_LZMA_H
#define FATHOM_FILE_CODEC_LZMA_H

#include <lzma.h>

#include "host/base/library.h"

#define FATHOM_LZMA_FUNCTIONS(F)            \
	F(fathom_lzma, lzma_stream_decoder) \
	F(fathom_lzma, lzma_code)           \
	F(fathom_lzma, lzma_end)

struct fathom_lzma {
	FATHOM_LZMA_FUNCTIONS(FATHOM_LIBRARY_MEMBER)
};

extern const struct fathom_library fathom_lzma_library;

#endif
