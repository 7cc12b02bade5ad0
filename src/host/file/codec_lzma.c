/* SPDX-License-Identifier: MIT */
#include <lzma.h>

#include "host/file/codec.h"

/* Debian's largest preset needs 65 MiB. */
#define MEMORY_LIMIT (UINT64_C(256) << 20)

fathom_err fathom_codec_xz_stream(struct fathom_bytes from, struct fathom_sink *sink)
{
	lzma_stream z = LZMA_STREAM_INIT;
	lzma_ret result = lzma_stream_decoder(&z, MEMORY_LIMIT, LZMA_CONCATENATED);
	fathom_err err = result == LZMA_OK ? FATHOM_OK : FATHOM_E_MEMORY;

	z.next_in = from.data;
	z.avail_in = (size_t)from.size;
	while (err == FATHOM_OK && result != LZMA_STREAM_END) {
		err = fathom_sink_grow(sink);
		if (err)
			break;
		z.next_out = sink->data + sink->size;
		z.avail_out = (size_t)(sink->cap - sink->size);
		result = lzma_code(&z, LZMA_FINISH);
		sink->size = sink->cap - z.avail_out;
		sink->is_short = result == LZMA_BUF_ERROR;
		if (result == LZMA_MEM_ERROR)
			err = FATHOM_E_MEMORY;
		else if (result == LZMA_MEMLIMIT_ERROR)
			err = FATHOM_E_LIMIT;
		else if (result != LZMA_OK && result != LZMA_STREAM_END)
			err = FATHOM_E_CORRUPT;
	}
	lzma_end(&z);
	return err;
}
