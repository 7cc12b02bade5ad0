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
	const struct fathom_codec *codec = fathom_codec_for_file(rest);
	struct fathom_sink sink = { .limit = 1 << 20 };

	if (!rest.size)
		return 0;
	if (!fathom_codec_zlib.open(NULL, NULL))
		(void)fathom_codec_zlib.unpack(NULL, rest, out, claimed);
	if (!fathom_codec_zstd.open(NULL, NULL))
		(void)fathom_codec_zstd.unpack(NULL, rest, out, claimed);
	if (codec && !codec->open(NULL, NULL))
		(void)codec->stream(NULL, rest, &sink);
	if (sink.size > sink.limit)
		abort();
	fathom_sink_deinit(&sink);
	return 0;
}
