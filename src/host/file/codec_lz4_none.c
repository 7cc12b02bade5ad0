/* SPDX-License-Identifier: MIT */
/* For builds without liblz4. */
#include "host/file/codec.h"

const struct fathom_codec fathom_codec_lz4 = { .open = fathom_codec_refuse };
