/* SPDX-License-Identifier: MIT */
/* For programs that open liblzma when it is needed. */
#include "host/file/codec.h"
#include "host/file/codec_lzma.h"

static const struct fathom_library_symbol lzma_symbols[] = { FATHOM_LZMA_FUNCTIONS(
	FATHOM_LIBRARY_SYMBOL) };

const struct fathom_library fathom_lzma_library = {
	.soname = "liblzma.so.5",
	.missing = FATHOM_CODEC_MISSING("liblzma.so.5"),
	.symbols = lzma_symbols,
	.n = sizeof lzma_symbols / sizeof *lzma_symbols,
	.place = FATHOM_LIBRARY_LZMA,
};
