/* SPDX-License-Identifier: MIT */
/* For builds without libzstd. */
#include "host/file/codec.h"

fathom_err fathom_codec_zstd(struct fathom_bytes from, uint8_t *to, uint64_t size)
{
	(void)from;
	(void)to;
	(void)size;
	return FATHOM_E_UNSUPPORTED;
}

fathom_err fathom_codec_zstd_stream(struct fathom_bytes from, struct fathom_sink *sink)
{
	(void)from;
	(void)sink;
	return FATHOM_E_UNSUPPORTED;
}
