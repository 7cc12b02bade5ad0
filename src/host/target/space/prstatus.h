/* SPDX-License-Identifier: MIT */
/*
 * NT_PRSTATUS, the note of a core for each thread: struct elf_prstatus (Linux,
 * include/linux/elfcore.h), in which the general registers stand as the machine's ptrace interface
 * has them: struct user_regs_struct of <sys/user.h> (x86), struct user_pt_regs of <asm/ptrace.h>
 * (aarch64).
 *
 * Not handled: floating point and vector registers; other machines, of which only the number of the
 * thread is read.
 */
#ifndef FATHOM_TARGET_SPACE_PRSTATUS_H
#define FATHOM_TARGET_SPACE_PRSTATUS_H

#include "host/target/target.h"
#include "safe/elf/image.h"

/* Returns the number of the thread that @desc, a note of the core @image, is of; 0: it is cut. */
int32_t fathom_prstatus_tid(const struct fathom_image *image, struct fathom_bytes desc);

/* Reads the registers; false if they are cut, or of a machine that is not known. */
bool fathom_prstatus_registers(const struct fathom_image *image, struct fathom_bytes desc,
			       struct fathom_registers *ret);

#endif
