/* SPDX-License-Identifier: MIT */
#include <zstd.h>
#include <zstd_errors.h>

#include "host/file/codec.h"

static fathom_err error_of(size_t result)
{
	return ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation ? FATHOM_E_MEMORY
									 : FATHOM_E_CORRUPT;
}

fathom_err fathom_codec_zstd(struct fathom_bytes from, uint8_t *to, uint64_t size)
{
	const size_t got = ZSTD_decompress(to, (size_t)size, from.data, (size_t)from.size);

	if (ZSTD_isError(got))
		return error_of(got);
	return got == size ? FATHOM_OK : FATHOM_E_CORRUPT;
}

fathom_err fathom_codec_zstd_stream(struct fathom_bytes from, struct fathom_sink *sink)
{
	ZSTD_DStream *z = ZSTD_createDStream();
	ZSTD_inBuffer in = { from.data, (size_t)from.size, 0 };
	fathom_err err = z ? FATHOM_OK : FATHOM_E_MEMORY;
	size_t left = 1;

	/* Frames may follow each other: input that was compressed in pieces has many. */
	while (err == FATHOM_OK && (left || in.pos < in.size)) {
		ZSTD_outBuffer out;
		const size_t before = in.pos;

		err = fathom_sink_grow(sink);
		if (err)
			break;
		out = (ZSTD_outBuffer){ sink->data, (size_t)sink->cap, (size_t)sink->size };
		left = ZSTD_decompressStream(z, &out, &in);
		if (ZSTD_isError(left))
			err = error_of(left);
		else if (left && in.pos == before && out.pos == sink->size)
			sink->is_short = true;
		if (sink->is_short)
			err = FATHOM_E_CORRUPT;
		sink->size = out.pos;
	}
	(void)ZSTD_freeDStream(z);
	return err;
}
