/* SPDX-License-Identifier: MIT */
/*
 * The skeleton of an ELF file: its headers without content, as an ELF file. It says where code is
 * and what is mapped, as the file does, so that an index can answer without the file.
 */
#ifndef FATHOM_MODULE_SKELETON_H
#define FATHOM_MODULE_SKELETON_H

#include "host/file/object.h"

/*
 * Makes the skeleton of @o; *@ret is the caller's to free(). The same headers make the same bytes.
 * FATHOM_E_LIMIT: it has too many headers.
 */
fathom_err fathom_skeleton_make(const struct fathom_object *o, struct fathom_bytes *ret);

#endif
