/* SPDX-License-Identifier: MIT */
/* For programs that are linked with liblzma. */
#include "host/file/codec_lzma.h"

static const struct fathom_lzma lzma_table = { FATHOM_LZMA_FUNCTIONS(FATHOM_LIBRARY_LINKED) };

const struct fathom_library fathom_lzma_library = {
	.linked = &lzma_table,
	.n = sizeof lzma_table / sizeof(void (*)(void)),
};
