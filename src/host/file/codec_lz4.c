/* SPDX-License-Identifier: MIT */
#include "host/file/codec_lz4.h"

#include "host/file/codec.h"

static fathom_err open_lz4(struct fathom_memory *m, struct fathom_errinfo *reterr)
{
	struct fathom_lz4 f;

	return fathom_codec_library(&fathom_lz4_library, m, &f, reterr);
}

static fathom_err unpack_stream(struct fathom_memory *m, struct fathom_bytes from,
				struct fathom_sink *sink)
{
	struct fathom_lz4 f;
	LZ4F_dctx *z = NULL;
	uint64_t done = 0;
	fathom_err err = FATHOM_OK;
	size_t left = 1;

	FATHOM_TRY(fathom_codec_library(&fathom_lz4_library, m, &f, NULL));
	if (f.LZ4F_isError(f.LZ4F_createDecompressionContext(&z, LZ4F_VERSION)))
		return FATHOM_E_MEMORY;
	/* Frames may follow each other. */
	while (left || done < from.size) {
		size_t in = (size_t)(from.size - done);
		size_t out;

		err = fathom_sink_grow(sink);
		if (err)
			break;
		out = (size_t)(sink->cap - sink->size);
		left = f.LZ4F_decompress(z, sink->data + sink->size, &out, from.data + done, &in,
					 NULL);
		done += in;
		sink->size += out;
		sink->is_short = !f.LZ4F_isError(left) && left && !in && !out;
		if (f.LZ4F_isError(left) || sink->is_short) {
			err = FATHOM_E_CORRUPT;
			break;
		}
	}
	(void)f.LZ4F_freeDecompressionContext(z);
	return err;
}

const struct fathom_codec fathom_codec_lz4 = { .open = open_lz4, .stream = unpack_stream };
