/* SPDX-License-Identifier: MIT */
/*
 * Names of C++ types without memory: those of classes, namespaces and fundamental types (Itanium
 * C++ ABI, 5.1), which is what exceptions have. Others, such as templates, are not demangled.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_CXX_TYPE_NAME_H
#define FATHOM_CXX_TYPE_NAME_H

#include "safe/base/bytes.h"

/* The longest name, with its NUL. */
#define FATHOM_TYPE_NAME 512

/* Demangles @mangled, the name of a type_info. Returns false if it is of another form, or long. */
bool fathom_type_name(struct fathom_str mangled, char to[FATHOM_TYPE_NAME]);

#endif
