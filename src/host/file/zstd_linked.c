/* SPDX-License-Identifier: MIT */
/* For programs that are linked with libzstd. */
#include "host/file/codec_zstd.h"

static const struct fathom_zstd zstd_table = { FATHOM_ZSTD_FUNCTIONS(FATHOM_LIBRARY_LINKED) };

const struct fathom_library fathom_zstd_library = {
	.linked = &zstd_table,
	.n = sizeof zstd_table / sizeof(void (*)(void)),
};
