/* SPDX-License-Identifier: MIT */
/* For programs that are linked with libdeflate and zlib. */
#include "host/file/codec_zlib.h"

static const struct fathom_deflate deflate_table = { FATHOM_DEFLATE_FUNCTIONS(
	FATHOM_LIBRARY_LINKED) };

const struct fathom_library fathom_deflate_library = {
	.linked = &deflate_table,
	.n = sizeof deflate_table / sizeof(void (*)(void)),
};

static const struct fathom_zlib zlib_table = { FATHOM_ZLIB_FUNCTIONS(FATHOM_LIBRARY_LINKED) };

const struct fathom_library fathom_zlib_library = {
	.linked = &zlib_table,
	.n = sizeof zlib_table / sizeof(void (*)(void)),
};
