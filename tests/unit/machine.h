/* SPDX-License-Identifier: MIT */
/* The machine that the tests run on. */
#ifndef MACHINE_H
#define MACHINE_H

#include <elf.h>

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_386
#endif

#endif
