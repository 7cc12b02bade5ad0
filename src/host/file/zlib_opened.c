/* SPDX-License-Identifier: MIT */
/* For programs that open libdeflate and zlib when they are needed. */
#include "host/file/codec.h"
#include "host/file/codec_zlib.h"

static const struct fathom_library_symbol deflate_symbols[] = { FATHOM_DEFLATE_FUNCTIONS(
	FATHOM_LIBRARY_SYMBOL) };

const struct fathom_library fathom_deflate_library = {
	.soname = "libdeflate.so.0",
	.missing = FATHOM_CODEC_MISSING("libdeflate.so.0"),
	.symbols = deflate_symbols,
	.n = sizeof deflate_symbols / sizeof *deflate_symbols,
	.place = FATHOM_LIBRARY_DEFLATE,
};

static const struct fathom_library_symbol zlib_symbols[] = { FATHOM_ZLIB_FUNCTIONS(
	FATHOM_LIBRARY_SYMBOL) };

const struct fathom_library fathom_zlib_library = {
	.soname = "libz.so.1",
	.missing = FATHOM_CODEC_MISSING("libz.so.1"),
	.symbols = zlib_symbols,
	.n = sizeof zlib_symbols / sizeof *zlib_symbols,
	.place = FATHOM_LIBRARY_ZLIB,
};
