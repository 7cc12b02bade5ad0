/* SPDX-License-Identifier: MIT */
/* For programs that open libzstd when it is needed. */
#include "host/file/codec.h"
#include "host/file/codec_zstd.h"

static const struct fathom_library_symbol zstd_symbols[] = { FATHOM_ZSTD_FUNCTIONS(
	FATHOM_LIBRARY_SYMBOL) };

const struct fathom_library fathom_zstd_library = {
	.soname = "libzstd.so.1",
	.missing = FATHOM_CODEC_MISSING("libzstd.so.1"),
	.symbols = zstd_symbols,
	.n = sizeof zstd_symbols / sizeof *zstd_symbols,
	.place = FATHOM_LIBRARY_ZSTD,
};
