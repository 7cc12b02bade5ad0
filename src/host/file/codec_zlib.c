/* SPDX-License-Identifier: MIT */
/*
 * zlib sections by libdeflate, which is faster, or where it is missing by zlib; streams by zlib:
 * libdeflate has no streams.
 */
#include "host/file/codec_zlib.h"

#include "host/file/codec.h"

/* avail_in and avail_out are 32 bits wide. */
static uInt window(uint64_t left)
{
	return left < (UINT64_C(1) << 30) ? (uInt)left : (uInt)1 << 30;
}

/* Window bits, and with gzip headers only. */
#define ZLIB_WINDOW 15
#define GZIP_WINDOW (ZLIB_WINDOW + 16)

static fathom_err inflate_stream(struct fathom_memory *m, struct fathom_bytes from,
				 struct fathom_sink *sink, int bits)
{
	struct fathom_zlib f;
	z_stream z = { 0 };
	uint64_t done = 0;
	fathom_err err = FATHOM_OK;
	int result = Z_OK;

	FATHOM_TRY(fathom_codec_library(&fathom_zlib_library, m, &f, NULL));
	if (f.inflateInit2_(&z, bits, ZLIB_VERSION, (int)sizeof z) != Z_OK)
		return FATHOM_E_MEMORY;
	while (err == FATHOM_OK && result != Z_STREAM_END) {
		uInt in = window(from.size - done);
		uInt out;

		err = fathom_sink_grow(sink);
		if (err)
			break;
		out = window(sink->cap - sink->size);
		z.next_in = (Bytef *)(uintptr_t)(from.data + done);
		z.avail_in = in;
		z.next_out = sink->data + sink->size;
		z.avail_out = out;
		result = f.inflate(&z, Z_NO_FLUSH);
		done += in - z.avail_in;
		sink->size += out - z.avail_out;
		if (result != Z_OK && result != Z_STREAM_END)
			err = FATHOM_E_CORRUPT;
		sink->is_short = result == Z_BUF_ERROR && done == from.size;
		if (result == Z_STREAM_END && bits == GZIP_WINDOW && from.size - done > 2 &&
		    from.data[done] == 0x1f && from.data[done + 1] == 0x8b)
			result = f.inflateReset(&z); /* another member follows */
	}
	(void)f.inflateEnd(&z);
	return err;
}

static fathom_err gzip_stream(struct fathom_memory *m, struct fathom_bytes from,
			      struct fathom_sink *sink)
{
	return inflate_stream(m, from, sink, GZIP_WINDOW);
}

static fathom_err zlib_stream(struct fathom_memory *m, struct fathom_bytes from,
			      struct fathom_sink *sink)
{
	return inflate_stream(m, from, sink, ZLIB_WINDOW);
}

/* Decompresses a section without libdeflate. */
static fathom_err unpack_stream(struct fathom_memory *m, struct fathom_bytes from, uint8_t *to,
				uint64_t size)
{
	struct fathom_sink sink = { .data = to, .limit = size, .is_fixed = true };

	FATHOM_TRY(zlib_stream(m, from, &sink));
	return sink.size == size ? FATHOM_OK : FATHOM_E_CORRUPT;
}

static fathom_err unpack(struct fathom_memory *m, struct fathom_bytes from, uint8_t *to,
			 uint64_t size)
{
	struct fathom_deflate f;
	struct libdeflate_decompressor *d;
	enum libdeflate_result result;
	size_t got = 0;

	if (fathom_codec_library(&fathom_deflate_library, m, &f, NULL))
		return unpack_stream(m, from, to, size);
	d = f.libdeflate_alloc_decompressor();
	if (!d)
		return FATHOM_E_MEMORY;
	result = f.libdeflate_zlib_decompress(d, from.data, (size_t)from.size, to, (size_t)size,
					      &got);
	f.libdeflate_free_decompressor(d);
	return result == LIBDEFLATE_SUCCESS && got == size ? FATHOM_OK : FATHOM_E_CORRUPT;
}

static fathom_err open_zlib(struct fathom_memory *m, struct fathom_errinfo *reterr)
{
	struct fathom_zlib f;

	return fathom_codec_library(&fathom_zlib_library, m, &f, reterr);
}

/* Either will do. */
static fathom_err open_either(struct fathom_memory *m, struct fathom_errinfo *reterr)
{
	struct fathom_deflate f;

	return fathom_codec_library(&fathom_deflate_library, m, &f, NULL) ? open_zlib(m, reterr)
									  : FATHOM_OK;
}

const struct fathom_codec fathom_codec_zlib = { open_either, unpack, zlib_stream };
const struct fathom_codec fathom_codec_gzip = { .open = open_zlib, .stream = gzip_stream };
