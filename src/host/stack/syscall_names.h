/* SPDX-License-Identifier: MIT */
/* Names of the system calls of x86-64, i386 and aarch64. */
#ifndef FATHOM_STACK_SYSCALL_NAMES_H
#define FATHOM_STACK_SYSCALL_NAMES_H

#include <stddef.h>
#include <stdint.h>

/*
 * Returns the name of system call @number of @machine, an EM_ value, as the kernel's headers have
 * it; NULL if it is unknown. The name is static.
 */
const char *fathom_syscall_name(uint32_t machine, int64_t number);

#endif
