/* SPDX-License-Identifier: MIT */
#include "host/file/codec_zstd.h"

#include "host/file/codec.h"

static fathom_err open_zstd(struct fathom_memory *m, struct fathom_errinfo *reterr)
{
	struct fathom_zstd z;

	return fathom_codec_library(&fathom_zstd_library, m, &z, reterr);
}

static fathom_err error_of(const struct fathom_zstd *f, size_t result)
{
	return f->ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation ? FATHOM_E_MEMORY
									    : FATHOM_E_CORRUPT;
}

static fathom_err unpack(struct fathom_memory *m, struct fathom_bytes from, uint8_t *to,
			 uint64_t size)
{
	struct fathom_zstd f;
	size_t got;

	FATHOM_TRY(fathom_codec_library(&fathom_zstd_library, m, &f, NULL));
	got = f.ZSTD_decompress(to, (size_t)size, from.data, (size_t)from.size);
	if (f.ZSTD_isError(got))
		return error_of(&f, got);
	return got == size ? FATHOM_OK : FATHOM_E_CORRUPT;
}

static fathom_err unpack_stream(struct fathom_memory *m, struct fathom_bytes from,
				struct fathom_sink *sink)
{
	struct fathom_zstd f;
	ZSTD_DStream *z;
	ZSTD_inBuffer in = { from.data, (size_t)from.size, 0 };
	fathom_err err;
	size_t left = 1;

	FATHOM_TRY(fathom_codec_library(&fathom_zstd_library, m, &f, NULL));
	z = f.ZSTD_createDStream();
	err = z ? FATHOM_OK : FATHOM_E_MEMORY;
	/* Frames may follow each other: input that was compressed in pieces has many. */
	while (err == FATHOM_OK && (left || in.pos < in.size)) {
		ZSTD_outBuffer out;
		const size_t before = in.pos;

		err = fathom_sink_grow(sink);
		if (err)
			break;
		out = (ZSTD_outBuffer){ sink->data, (size_t)sink->cap, (size_t)sink->size };
		left = f.ZSTD_decompressStream(z, &out, &in);
		if (f.ZSTD_isError(left))
			err = error_of(&f, left);
		else if (left && in.pos == before && out.pos == sink->size)
			sink->is_short = true;
		if (sink->is_short)
			err = FATHOM_E_CORRUPT;
		sink->size = out.pos;
	}
	(void)f.ZSTD_freeDStream(z);
	return err;
}

fathom_err fathom_zstd_pack(struct fathom_memory *m, struct fathom_bytes from, int level,
			    uint8_t *to, uint64_t cap, uint64_t *ret_size)
{
	struct fathom_zstd f;
	size_t got;

	FATHOM_TRY(fathom_codec_library(&fathom_zstd_library, m, &f, NULL));
	got = f.ZSTD_compress(to, (size_t)cap, from.data, (size_t)from.size, level);
	if (f.ZSTD_isError(got) && f.ZSTD_getErrorCode(got) != ZSTD_error_dstSize_tooSmall)
		return error_of(&f, got);
	*ret_size = f.ZSTD_isError(got) ? 0 : got;
	return FATHOM_OK;
}

const struct fathom_codec fathom_codec_zstd = { open_zstd, unpack, unpack_stream };
