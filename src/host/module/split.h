/* SPDX-License-Identifier: MIT */
/*
 * Split DWARF (DWARF 5, 7.3.2; GNU's extension of DWARF 4): finds the unit that a skeleton stands
 * for, in a .dwo file of its own or in a package (.dwp) beside the module.
 */
#ifndef FATHOM_MODULE_SPLIT_H
#define FATHOM_MODULE_SPLIT_H

#include "host/module/debug.h"
#include "host/module/worker.h"

struct fathom_open_unit;

/*
 * Finds the file and offset of the split unit of the skeleton in @u. Returns FATHOM_E_NOT_FOUND or
 * FATHOM_E_MISMATCH, which is noted, if it is not there; the skeleton's own lines still serve.
 * Returns FATHOM_E_CANCELLED if the call was given up meanwhile.
 */
fathom_err fathom_split_find(struct fathom_worker *w, struct fathom_debug *d,
			     const struct fathom_open_unit *u,
			     const struct fathom_split_file **ret_file, uint64_t *ret_off);

#endif
