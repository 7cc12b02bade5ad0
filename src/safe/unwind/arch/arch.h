/* SPDX-License-Identifier: MIT */
/*
 * The machines: numbers of registers, frames of signal handlers, calls.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_UNWIND_ARCH_H
#define FATHOM_UNWIND_ARCH_H

#include "safe/unwind/registers.h"

extern const struct fathom_unwind_arch fathom_unwind_x86_64;
extern const struct fathom_unwind_arch fathom_unwind_i386;
extern const struct fathom_unwind_arch fathom_unwind_aarch64;

#endif
