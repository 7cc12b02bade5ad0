/* SPDX-License-Identifier: MIT */
/* zlib sections by libdeflate, which is faster; streams by zlib: libdeflate has no streams. */
#include <libdeflate.h>
#include <zlib.h>

#include "host/file/codec.h"

fathom_err fathom_codec_zlib(struct fathom_bytes from, uint8_t *to, uint64_t size)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	enum libdeflate_result result;
	size_t got = 0;

	if (!d)
		return FATHOM_E_MEMORY;
	result =
		libdeflate_zlib_decompress(d, from.data, (size_t)from.size, to, (size_t)size, &got);
	libdeflate_free_decompressor(d);
	return result == LIBDEFLATE_SUCCESS && got == size ? FATHOM_OK : FATHOM_E_CORRUPT;
}

/* avail_in and avail_out are 32 bits wide. */
static uInt window(uint64_t left)
{
	return left < (UINT64_C(1) << 30) ? (uInt)left : (uInt)1 << 30;
}

/* Window bits, and with gzip headers only. */
#define ZLIB_WINDOW 15
#define GZIP_WINDOW (ZLIB_WINDOW + 16)

static fathom_err inflate_stream(struct fathom_bytes from, struct fathom_sink *sink, int bits)
{
	z_stream z = { 0 };
	uint64_t done = 0;
	fathom_err err = FATHOM_OK;
	int result = Z_OK;

	if (inflateInit2(&z, bits) != Z_OK)
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
		result = inflate(&z, Z_NO_FLUSH);
		done += in - z.avail_in;
		sink->size += out - z.avail_out;
		if (result != Z_OK && result != Z_STREAM_END)
			err = FATHOM_E_CORRUPT;
		sink->is_short = result == Z_BUF_ERROR && done == from.size;
		if (result == Z_STREAM_END && bits == GZIP_WINDOW && from.size - done > 2 &&
		    from.data[done] == 0x1f && from.data[done + 1] == 0x8b)
			result = inflateReset(&z); /* another member follows */
	}
	(void)inflateEnd(&z);
	return err;
}

fathom_err fathom_codec_gzip_stream(struct fathom_bytes from, struct fathom_sink *sink)
{
	return inflate_stream(from, sink, GZIP_WINDOW);
}

fathom_err fathom_codec_zlib_stream(struct fathom_bytes from, struct fathom_sink *sink)
{
	return inflate_stream(from, sink, ZLIB_WINDOW);
}

uint32_t fathom_codec_crc32(struct fathom_bytes bytes)
{
	return libdeflate_crc32(0, bytes.data, (size_t)bytes.size);
}
