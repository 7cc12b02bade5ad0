/* SPDX-License-Identifier: MIT */
/* Stands in for codec_lz4.c in builds without the library. */
#include "host/file/codec.h"

fathom_err fathom_codec_lz4_stream(struct fathom_bytes from, struct fathom_sink *sink)
{
	(void)from;
	(void)sink;
	return FATHOM_E_UNSUPPORTED;
}
