/* SPDX-License-Identifier: MIT */
#include <lz4frame.h>

#include "host/file/codec.h"

fathom_err fathom_codec_lz4_stream(struct fathom_bytes from, struct fathom_sink *sink)
{
	LZ4F_dctx *z = NULL;
	uint64_t done = 0;
	fathom_err err = FATHOM_OK;
	size_t left = 1;

	if (LZ4F_isError(LZ4F_createDecompressionContext(&z, LZ4F_VERSION)))
		return FATHOM_E_MEMORY;
	/* Frames may follow each other. */
	while (left || done < from.size) {
		size_t in = (size_t)(from.size - done);
		size_t out;

		err = fathom_sink_grow(sink);
		if (err)
			break;
		out = (size_t)(sink->cap - sink->size);
		left = LZ4F_decompress(z, sink->data + sink->size, &out, from.data + done, &in,
				       NULL);
		done += in;
		sink->size += out;
		sink->is_short = !LZ4F_isError(left) && left && !in && !out;
		if (LZ4F_isError(left) || sink->is_short) {
			err = FATHOM_E_CORRUPT;
			break;
		}
	}
	(void)LZ4F_freeDecompressionContext(z);
	return err;
}
