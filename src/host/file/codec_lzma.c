/* SPDX-License-Identifier: MIT */
#include "host/file/codec_lzma.h"

#include "host/file/codec.h"

/* Debian's largest preset needs 65 MiB. */
#define MEMORY_LIMIT (UINT64_C(256) << 20)

static fathom_err open_lzma(struct fathom_memory *m, struct fathom_errinfo *reterr)
{
	struct fathom_lzma f;

	return fathom_codec_library(&fathom_lzma_library, m, &f, reterr);
}

static fathom_err unpack_stream(struct fathom_memory *m, struct fathom_bytes from,
				struct fathom_sink *sink)
{
	struct fathom_lzma f;
	lzma_stream z = LZMA_STREAM_INIT;
	lzma_ret result;
	fathom_err err;

	FATHOM_TRY(fathom_codec_library(&fathom_lzma_library, m, &f, NULL));
	result = f.lzma_stream_decoder(&z, MEMORY_LIMIT, LZMA_CONCATENATED);
	err = result == LZMA_OK ? FATHOM_OK : FATHOM_E_MEMORY;
	z.next_in = from.data;
	z.avail_in = (size_t)from.size;
	while (err == FATHOM_OK && result != LZMA_STREAM_END) {
		err = fathom_sink_grow(sink);
		if (err)
			break;
		z.next_out = sink->data + sink->size;
		z.avail_out = (size_t)(sink->cap - sink->size);
		result = f.lzma_code(&z, LZMA_FINISH);
		sink->size = sink->cap - z.avail_out;
		sink->is_short = result == LZMA_BUF_ERROR;
		if (result == LZMA_MEM_ERROR)
			err = FATHOM_E_MEMORY;
		else if (result == LZMA_MEMLIMIT_ERROR)
			err = FATHOM_E_LIMIT;
		else if (result != LZMA_OK && result != LZMA_STREAM_END)
			err = FATHOM_E_CORRUPT;
	}
	f.lzma_end(&z);
	return err;
}

const struct fathom_codec fathom_codec_xz = { .open = open_lzma, .stream = unpack_stream };
