/* SPDX-License-Identifier: MIT */
/*
 * The instructions of a module that call the kernel, `syscall` (x86-64), and how each can lead
 * elsewhere without harm to anybody who jumps to an instruction near it: the two bytes of the
 * instruction become a short jump to five bytes of padding between functions, where a long one has
 * room; or an instruction of five bytes or more before it becomes the long jump, and all others
 * stay where they are: those from it on are moved. Instructions are found by decoding functions
 * from their starts.
 */
#ifndef FATHOM_SITES_KERNEL_CALLS_H
#define FATHOM_SITES_KERNEL_CALLS_H

#include "host/base/array.h"
#include "host/module/module.h"

/* Bytes of `syscall`, and the most bytes of instructions before it that are moved. */
#define FATHOM_KERNEL_CALL_SIZE 2
#define FATHOM_KERNEL_MOVED_MAX 21

struct fathom_kernel_call {
	uint64_t svma;
	uint64_t padding;   /* svma of five bytes that are its own; 0: none is needed, or near */
	uint8_t moved_size; /* bytes of the instructions before it that are moved */
};

struct fathom_kernel_calls {
	FATHOM_ARRAY_OF(struct fathom_kernel_call); /* sorted by svma */
};

/* Finds those of @m in its file; none but for x86-64. FATHOM_E_MEMORY, FATHOM_E_UNSUPPORTED. */
fathom_err fathom_kernel_calls_find(struct fathom_module *m, struct fathom_kernel_calls *ret);

#endif
