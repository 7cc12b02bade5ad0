/* SPDX-License-Identifier: MIT */
/* CRC-32 (ISO 3309), as .gnu_debuglink, gzip and snapshots use it. */
#ifndef FATHOM_BASE_CRC32_H
#define FATHOM_BASE_CRC32_H

#include <stdint.h>

#include "safe/base/bytes.h"

uint32_t fathom_crc32(struct fathom_bytes bytes);

#endif
