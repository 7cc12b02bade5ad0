/* SPDX-License-Identifier: MIT */
/* For programs that open liblz4 when it is needed. */
#include "host/file/codec.h"
#include "host/file/codec_lz4.h"

static const struct fathom_library_symbol lz4_symbols[] = { FATHOM_LZ4_FUNCTIONS(
	FATHOM_LIBRARY_SYMBOL) };

const struct fathom_library fathom_lz4_library = {
	.soname = "liblz4.so.1",
	.missing = FATHOM_CODEC_MISSING("liblz4.so.1"),
	.symbols = lz4_symbols,
	.n = sizeof lz4_symbols / sizeof *lz4_symbols,
	.place = FATHOM_LIBRARY_LZ4,
};
