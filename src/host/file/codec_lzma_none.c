/* SPDX-License-Identifier: MIT */
/* For builds without liblzma. */
#include "host/file/codec.h"

fathom_err fathom_codec_xz_stream(struct fathom_bytes from, struct fathom_sink *sink)
{
	(void)from;
	(void)sink;
	return FATHOM_E_UNSUPPORTED;
}
