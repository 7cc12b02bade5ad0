/* SPDX-License-Identifier: MIT */
/* Constants of ELF: <elf.h>, and those that it lacks in some C library (glibc 2.36, musl 1.2.3). */
#ifndef FATHOM_ELF_CONSTANTS_H
#define FATHOM_ELF_CONSTANTS_H

#include <elf.h>

/* Machines: e_machine. */
#ifndef EM_HEXAGON
#define EM_HEXAGON 164
#endif
#ifndef EM_LANAI
#define EM_LANAI 244
#endif
#ifndef EM_VE
#define EM_VE 251
#endif
#ifndef EM_LOONGARCH
#define EM_LOONGARCH 258
#endif

/* Sections. */
#ifndef SHT_RELR
#define SHT_RELR 19
#endif
#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

/* Relocations, per the psABI of each machine. */
#ifndef R_AARCH64_IRELATIVE
#define R_AARCH64_IRELATIVE 1032
#endif
#ifndef R_390_IRELATIVE
#define R_390_IRELATIVE 61
#endif
#ifndef R_LARCH_32
#define R_LARCH_32 1
#endif
#ifndef R_LARCH_64
#define R_LARCH_64 2
#endif
#ifndef R_LARCH_ADD8
#define R_LARCH_ADD8  47
#define R_LARCH_ADD16 48
#define R_LARCH_ADD32 50
#define R_LARCH_ADD64 51
#endif
#ifndef R_LARCH_SUB8
#define R_LARCH_SUB8  52
#define R_LARCH_SUB16 53
#define R_LARCH_SUB32 55
#define R_LARCH_SUB64 56
#endif

#endif
