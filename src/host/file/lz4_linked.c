/* SPDX-License-Identifier: MIT */
/* For programs that are linked with liblz4. */
#include "host/file/codec_lz4.h"

static const struct fathom_lz4 lz4_table = { FATHOM_LZ4_FUNCTIONS(FATHOM_LIBRARY_LINKED) };

const struct fathom_library fathom_lz4_library = {
	.linked = &lz4_table,
	.n = sizeof lz4_table / sizeof(void (*)(void)),
};
