/* SPDX-License-Identifier: MIT */
/*
 * Optional libraries. Each is tried: a build without it has a file that stands in for it, which
 * cannot do what the library does.
 */
#include <stdio.h>

#include "fathom/limits.h"
#include "host/base/demangle.h"
#include "host/base/option_struct.h"
#include "host/disasm/code.h"
#include "host/events/writer.h"
#include "host/file/codec.h"
#include "host/file/debuginfod.h"

/* Tries the library. FATHOM_E_UNSUPPORTED: it is missing. */
typedef fathom_err try_fn(struct fathom_errinfo *reterr);

struct row {
	const char *name;
	const char *library;
	const char *use;
	try_fn *try_it;
};

/* Files need zlib itself; sections, too, but where libdeflate is. */
static fathom_err try_zlib(struct fathom_errinfo *reterr)
{
	const fathom_err err = fathom_codec_gzip.open(NULL, reterr);

	return err ? err : fathom_codec_zlib.open(NULL, reterr);
}

static fathom_err try_zstd(struct fathom_errinfo *reterr)
{
	return fathom_codec_zstd.open(NULL, reterr);
}

static fathom_err try_lzma(struct fathom_errinfo *reterr)
{
	return fathom_codec_xz.open(NULL, reterr);
}

static fathom_err try_lz4(struct fathom_errinfo *reterr)
{
	return fathom_codec_lz4.open(NULL, reterr);
}

static fathom_err try_demangling(struct fathom_errinfo *reterr)
{
	static const char name[] = "_Z1fv";
	struct fathom_bytes_array text = { 0 };
	const fathom_err err =
		fathom_demangle((struct fathom_str){ name, sizeof name - 1 }, false, &text);

	(void)reterr;
	fathom_array_free(&text);
	return err == FATHOM_END ? FATHOM_E_UNSUPPORTED : err;
}

static fathom_err try_perfetto(struct fathom_errinfo *reterr)
{
	(void)reterr;
	return fathom_writer_perfetto.begin ? FATHOM_OK : FATHOM_E_UNSUPPORTED;
}

static fathom_err try_decoder(fathom_err err, struct fathom_code_decoder *decoder)
{
	if (!err)
		decoder->close(decoder);
	return err;
}

static fathom_err try_x86(struct fathom_errinfo *reterr)
{
	struct fathom_code_decoder *decoder = NULL;
	const fathom_err err = fathom_x86_open(true, false, &decoder, reterr);

	return try_decoder(err, decoder);
}

static fathom_err try_aarch64(struct fathom_errinfo *reterr)
{
	struct fathom_code_decoder *decoder = NULL;
	const fathom_err err = fathom_aarch64_open(&decoder, reterr);

	return try_decoder(err, decoder);
}

static const struct row rows[] = {
	{ "zlib", "libdeflate, zlib", "zlib sections, .gz files", try_zlib },
	{ "zstd", "libzstd", "zstd sections, .zst files", try_zstd },
	{ "lzma", "liblzma", "MiniDebugInfo, .xz files", try_lzma },
	{ "lz4", "liblz4", ".lz4 files", try_lz4 },
	{ "iberty", "libiberty", "names as in the source", try_demangling },
	{ "nanopb", "nanopb", "traces for Perfetto", try_perfetto },
	{ "zydis", "libZydis", "x86 code", try_x86 },
	{ "capstone", "libcapstone", "aarch64 code", try_aarch64 },
	{ "debuginfod", "libdebuginfod", "debug files from servers", fathom_debuginfod_open },
};

int fathom_feature_get(size_t i, struct fathom_feature *ret)
{
	struct fathom_errinfo info = { .cause = FATHOM_CAUSE_NONE };
	const struct row *row = &rows[i];

	if (i >= sizeof rows / sizeof *rows || ret->size != sizeof *ret)
		return 0;
	*ret = (struct fathom_feature){ .size = sizeof *ret, .name = row->name, .use = row->use };
	if (row->try_it(&info) == FATHOM_E_UNSUPPORTED)
		ret->state = info.cause == FATHOM_CAUSE_NOT_INSTALLED ? FATHOM_FEATURE_NOT_INSTALLED
								      : FATHOM_FEATURE_LEFT_OUT;
	(void)snprintf(ret->library, sizeof ret->library, "%.31s",
		       ret->state == FATHOM_FEATURE_NOT_INSTALLED && info.file[0] ? info.file
										  : row->library);
	return 1;
}
