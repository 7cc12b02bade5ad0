/* SPDX-License-Identifier: MIT */
#include "host/file/codec.h"

#include <sys/mman.h>

#include "host/base/progress.h"

#define FIRST_CAP (UINT64_C(1) << 20)

/* Pages are added without a copy: not so many at a time that nobody is asked for long. */
#define MOST_MORE (UINT64_C(16) << 20)

/* Room that a fixed sink gives at a time: less than 10 ms of work for zlib. */
#define FIXED_STEP (UINT64_C(1) << 20)

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static fathom_err grow_fixed(struct fathom_sink *sink)
{
	if (sink->session &&
	    !fathom_goes_on(sink->session, FATHOM_PHASE_OPEN, sink->size, sink->limit))
		return FATHOM_E_CANCELLED;
	sink->cap += least(sink->limit - sink->cap, FIXED_STEP);
	return FATHOM_OK;
}

static fathom_err pass_on(struct fathom_sink *sink)
{
	if (sink->session && !fathom_goes_on(sink->session, FATHOM_PHASE_OPEN, 0, 0))
		return FATHOM_E_CANCELLED;
	FATHOM_TRY(sink->take(sink));
	sink->size = 0;
	return FATHOM_OK;
}

fathom_err fathom_sink_grow(struct fathom_sink *sink)
{
	uint64_t cap = sink->cap < FIRST_CAP ? FIRST_CAP : sink->cap + least(sink->cap, MOST_MORE);
	uint8_t *data;

	if (sink->size < sink->cap)
		return FATHOM_OK;
	if (sink->take)
		return pass_on(sink);
	if (sink->is_fixed)
		return grow_fixed(sink);
	if (sink->cap >= sink->limit)
		return FATHOM_E_LIMIT;
	if (sink->session && !fathom_goes_on(sink->session, FATHOM_PHASE_OPEN, sink->size, 0))
		return FATHOM_E_CANCELLED;
	if (cap > sink->limit)
		cap = sink->limit;
	data = fathom_pages_grow(sink->data, sink->cap, cap);
	if (!data)
		return FATHOM_E_MEMORY;
	sink->data = data;
	sink->cap = cap;
	return FATHOM_OK;
}

void fathom_sink_deinit(struct fathom_sink *sink)
{
	fathom_pages_free(sink->data, sink->cap);
	*sink = (struct fathom_sink){ .data = NULL };
}

static bool starts_with(struct fathom_bytes b, const char *magic, size_t size)
{
	return b.size >= size && memcmp(b.data, magic, size) == 0;
}

const struct fathom_codec *fathom_codec_for_file(struct fathom_bytes bytes)
{
	if (starts_with(bytes, "\x1f\x8b", 2))
		return &fathom_codec_gzip;
	if (starts_with(bytes,
			"\xfd"
			"7zXZ",
			6))
		return &fathom_codec_xz;
	if (starts_with(bytes, "\x28\xb5\x2f\xfd", 4))
		return &fathom_codec_zstd;
	if (starts_with(bytes, "\x04\x22\x4d\x18", 4))
		return &fathom_codec_lz4;
	return NULL;
}

fathom_err fathom_codec_library(const struct fathom_library *l, struct fathom_memory *m,
				void *table, struct fathom_errinfo *reterr)
{
	return fathom_library_get(l, m ? m->libraries : NULL, table, reterr);
}

fathom_err fathom_codec_refuse(struct fathom_memory *m, struct fathom_errinfo *reterr)
{
	(void)m;
	return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
			   "compressed, and this build lacks the library to read it");
}
