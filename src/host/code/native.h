/* SPDX-License-Identifier: MIT */
/* Code of the processor that this library runs on, in words that all processors share. */
#ifndef FATHOM_CODE_NATIVE_H
#define FATHOM_CODE_NATIVE_H

#include "host/code/stub_cfi.h"

/* Bytes that a branch leads, either way. */
extern const uint64_t fathom_native_reach;

/* Bytes of a jump that leads anywhere, with the address after it. */
#define FATHOM_NATIVE_FAR_SIZE 16

/* Writes one to @to, which has no frame, and changes no register that calls keep or pass. */
void fathom_native_put_far_jump(uint64_t to, uint8_t bytes[FATHOM_NATIVE_FAR_SIZE]);

extern const struct fathom_stub_registers fathom_native_registers;

#endif
