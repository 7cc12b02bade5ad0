/* SPDX-License-Identifier: MIT */
/* For builds without libdeflate and zlib. */
#include "host/file/codec.h"

const struct fathom_codec fathom_codec_zlib = { .open = fathom_codec_refuse };
const struct fathom_codec fathom_codec_gzip = { .open = fathom_codec_refuse };
