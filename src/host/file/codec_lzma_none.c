/* SPDX-License-Identifier: MIT */
/* For builds without liblzma. */
#include "host/file/codec.h"

const struct fathom_codec fathom_codec_xz = { .open = fathom_codec_refuse };
