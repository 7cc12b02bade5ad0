/* SPDX-License-Identifier: MIT */
/* For builds without libzstd. */
#include "host/file/codec.h"

const struct fathom_codec fathom_codec_zstd = { .open = fathom_codec_refuse };
