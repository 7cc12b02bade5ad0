/* SPDX-License-Identifier: MIT */
/*
 * Names in llvm-symbolizer's spelling. libfathom demangles with libiberty, whose spelling differs
 * from that of LLVM's demangler in a few regular ways, which are rewritten here.
 * docs/reports/oracle-llvm-symbolizer.md lists the remaining differences.
 */
#ifndef FATHOM_CLI_COMPAT_LLVM_SPELLED_H
#define FATHOM_CLI_COMPAT_LLVM_SPELLED_H

#include <fathom/compat.h>

#include "cli/out.h"

/* Writes the name of @f to @o, demangled if @f was demangled. */
void llvm_name(struct out *o, const struct fathom_compat_name *f);

#endif
