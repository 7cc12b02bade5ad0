/* SPDX-License-Identifier: MIT */
/* Which consumers are on. */
#ifndef FATHOM_PUBLISH_SWITCHES_H
#define FATHOM_PUBLISH_SWITCHES_H

#include <stdint.h>

#include "fathom/jit.h"
#include "safe/base/bytes.h"

#define FATHOM_JIT_UNWINDERS (FATHOM_JIT_LIBGCC | FATHOM_JIT_LLVM | FATHOM_JIT_NONGNU)
#define FATHOM_JIT_FILES     (FATHOM_JIT_PERF_MAP | FATHOM_JIT_JITDUMP)
#define FATHOM_JIT_USUAL     (FATHOM_JIT_GDB | FATHOM_JIT_UNWINDERS | FATHOM_JIT_REGISTRY)
#define FATHOM_JIT_ALL       (FATHOM_JIT_USUAL | FATHOM_JIT_FILES)

/* All words of FATHOM_JIT, for a message. */
#define FATHOM_JIT_WORDS                                                                        \
	"gdb, libgcc, llvm, nongnu, unwinders, registry, perf-map, jitdump, files, all, none, " \
	"or one of them after a -"

/*
 * Returns the consumers @on as the words of @text, FATHOM_JIT's value or NULL, change them.
 * *@ret_unknown: the first word that is none, empty if all are; it changes nothing.
 */
uint32_t fathom_jit_switch(uint32_t on, const char *text, struct fathom_str *ret_unknown);

#endif
