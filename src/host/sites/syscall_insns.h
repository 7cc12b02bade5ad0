/* SPDX-License-Identifier: MIT */
/*
 * The instructions of a module that call the kernel, and how each can lead elsewhere without harm
 * to anybody who jumps to an instruction near it. They are found by decoding functions from their
 * starts.
 *
 * aarch64: `svc #0` becomes a branch.
 *
 * x86-64: the two bytes of `syscall` become a short jump to five bytes of padding between
 * functions, where a long one has room; or an instruction of five bytes or more before it becomes
 * the long jump, and the instructions from that one on are moved, while all others stay. Where
 * there is neither, several shorter instructions may become the jump (syscall_lines.h).
 */
#ifndef FATHOM_SITES_SYSCALL_INSNS_H
#define FATHOM_SITES_SYSCALL_INSNS_H

#include "host/base/array.h"
#include "host/module/module.h"

/* The most bytes of instructions before `syscall` that are moved. */
#define FATHOM_SYSCALL_MOVED_MAX 37

struct fathom_site_work;

struct fathom_syscall_insn {
	uint64_t svma;
	uint64_t padding;   /* svma of five bytes that are its own; 0: none is needed, or near */
	uint8_t moved_size; /* bytes of the instructions before it that are moved */
	bool is_line;       /* the jump takes the place of more than one of these */
	/* Bit i: the four moved bytes from i on are a displacement from what is after them. */
	uint64_t displacements;
};

struct fathom_syscall_insns {
	FATHOM_ARRAY_OF(struct fathom_syscall_insn); /* sorted by svma */
};

/*
 * Finds those of @m in its file; none but for x86-64 and aarch64. Of aarch64 those are left out
 * whose place in the code counts: calls of rt_sigreturn(), those of a thread that has unmapped its
 * stack, and those at which the C library looks whether a thread was cancelled just before.
 * FATHOM_E_MEMORY, FATHOM_E_UNSUPPORTED.
 */
fathom_err fathom_syscall_insns_find(struct fathom_module *m, struct fathom_syscall_insns *ret);

/*
 * Adjusts the displacements in @code, the bytes of @c, which have moved by @distance bytes; returns
 * false if one does not reach that far.
 */
bool fathom_syscall_insn_move(const struct fathom_syscall_insn *c, uint64_t distance,
			      uint8_t *code);

/* Adds those of a module for aarch64 (syscall_insns_aarch64.c). FATHOM_E_MEMORY. */
fathom_err fathom_syscall_insns_find_arm(struct fathom_site_work *w,
					 struct fathom_syscall_insns *to);

#endif
