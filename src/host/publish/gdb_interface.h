/* SPDX-License-Identifier: MIT */
/* GDB's list of symbol files. Under the registry's lock. */
#ifndef FATHOM_PUBLISH_GDB_INTERFACE_H
#define FATHOM_PUBLISH_GDB_INTERFACE_H

#include "host/publish/publish.h"

/* Puts @e, whose symbol file is complete, in front of the list, and tells debuggers. */
void fathom_jit_gdb_add(struct fathom_jit_gdb_entry *e);

/* Takes @e out. */
void fathom_jit_gdb_remove(struct fathom_jit_gdb_entry *e);

#endif
