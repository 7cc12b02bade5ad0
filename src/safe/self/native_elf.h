/* SPDX-License-Identifier: MIT */
/* The structures of <elf.h> of this machine's class. */
#ifndef FATHOM_SELF_NATIVE_ELF_H
#define FATHOM_SELF_NATIVE_ELF_H

#include <elf.h>
#include <stdint.h>

#if UINTPTR_MAX > UINT32_MAX
#define FATHOM_NATIVE(type) Elf64_##type
#else
#define FATHOM_NATIVE(type) Elf32_##type
#endif

#endif
