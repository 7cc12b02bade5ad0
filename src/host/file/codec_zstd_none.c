/* SPDX-License-Identifier: MIT */
/* For builds without libzstd. */
#include "host/file/codec.h"

const struct fathom_codec fathom_codec_zstd = { .open = fathom_codec_refuse };

fathom_err fathom_zstd_pack(struct fathom_memory *m, struct fathom_bytes from, int level,
			    uint8_t *to, uint64_t cap, uint64_t *ret_size)
{
	(void)m;
	(void)from;
	(void)level;
	(void)to;
	(void)cap;
	(void)ret_size;
	return FATHOM_E_UNSUPPORTED;
}
