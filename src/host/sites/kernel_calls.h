/* SPDX-License-Identifier: MIT */
/*
 * The instructions of a module that call the kernel, `syscall` (x86-64), and how each can lead
 * elsewhere without harm to anybody who jumps to an instruction near it: the two bytes of the
 * instruction become a short jump to five bytes of padding between functions, where a long one has
 * room; or a constant's load of five bytes or more right before it becomes the long jump, and the
 * instruction stays where it is. Instructions are found by decoding functions from their starts.
 */
#ifndef FATHOM_SITES_KERNEL_CALLS_H
#define FATHOM_SITES_KERNEL_CALLS_H

#include "host/base/array.h"
#include "host/module/module.h"

/* Bytes of `syscall`, and of the longest load of a constant before it that is moved. */
#define FATHOM_KERNEL_CALL_SIZE 2
#define FATHOM_KERNEL_LOAD_MAX  7

struct fathom_kernel_call {
	uint64_t svma;
	uint64_t padding;  /* svma of five bytes that are its own; 0: none is near */
	uint8_t load_size; /* bytes of the load before it; 0: there is none */
};

struct fathom_kernel_calls {
	FATHOM_ARRAY_OF(struct fathom_kernel_call); /* sorted by svma */
};

/* Finds those of @m in its file; none but for x86-64. FATHOM_E_MEMORY, FATHOM_E_UNSUPPORTED. */
fathom_err fathom_kernel_calls_find(struct fathom_module *m, struct fathom_kernel_calls *ret);

#endif
