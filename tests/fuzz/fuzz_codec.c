/* SPDX-License-Identifier: MIT */
/* Decompression: the size that a header states is a claim, and streams end where they like. */
#include "fuzz.h"

#include <stdlib.h>

#include "host/file/codec.h"
#include "host/base/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t out[1 << 16];
	struct fuzz f = fuzz_init(data, size);
	const size_t claimed = fuzz_number(&f) % sizeof out;
	const struct fathom_bytes rest = fuzz_rest(&f);
	fathom_codec_stream_fn *stream = fathom_codec_for_file(rest);
	struct fathom_sink sink = { .limit = 1 << 20 };

	if (!rest.size)
		return 0;
	(void)fathom_codec_zlib(rest, out, claimed);
	(void)fathom_codec_zstd(rest, out, claimed);
	if (stream)
		(void)stream(rest, &sink);
	if (sink.size > sink.limit)
		abort();
	fathom_sink_deinit(&sink);
	return 0;
}
