/* SPDX-License-Identifier: MIT */
/* For builds without liblz4. */
#include "host/file/codec.h"

fathom_err fathom_codec_lz4_stream(struct fathom_bytes from, struct fathom_sink *sink)
{
	(void)from;
	(void)sink;
	return FATHOM_E_UNSUPPORTED;
}
