/* SPDX-License-Identifier: MIT */
/* For builds without libdeflate and zlib. */
#include "host/file/codec.h"

fathom_err fathom_codec_zlib(struct fathom_bytes from, uint8_t *to, uint64_t size)
{
	(void)from;
	(void)to;
	(void)size;
	return FATHOM_E_UNSUPPORTED;
}

fathom_err fathom_codec_gzip_stream(struct fathom_bytes from, struct fathom_sink *sink)
{
	(void)from;
	(void)sink;
	return FATHOM_E_UNSUPPORTED;
}

fathom_err fathom_codec_zlib_stream(struct fathom_bytes from, struct fathom_sink *sink)
{
	return fathom_codec_gzip_stream(from, sink);
}

/* CRC-32 (ISO 3309), bit by bit: without the library, correct is enough. */
uint32_t fathom_codec_crc32(struct fathom_bytes bytes)
{
	uint32_t crc = UINT32_MAX;

	for (uint64_t i = 0; i < bytes.size; i++) {
		crc ^= bytes.data[i];
		for (int bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1)));
	}
	return ~crc;
}
