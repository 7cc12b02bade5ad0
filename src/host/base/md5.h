/* SPDX-License-Identifier: MIT */
/* MD5 (RFC 1321), with which line tables prove which text was compiled. Not for secrets. */
#ifndef FATHOM_BASE_MD5_H
#define FATHOM_BASE_MD5_H

#include <stdint.h>

#include "safe/base/bytes.h"

#define FATHOM_MD5_SIZE 16

void fathom_md5(struct fathom_bytes text, uint8_t ret[FATHOM_MD5_SIZE]);

#endif
