/* SPDX-License-Identifier: MIT */
/* Stands in for perfetto.c in builds without nanopb. */
#include "host/events/writer.h"

const struct fathom_writer_format fathom_writer_perfetto = { NULL, NULL, NULL, NULL, false };
