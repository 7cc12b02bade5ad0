/* SPDX-License-Identifier: MIT */
/* Structs of the public headers that begin with their size. */
#ifndef FATHOM_BASE_OPTION_STRUCT_H
#define FATHOM_BASE_OPTION_STRUCT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reads options, a struct that begins with its size: copies @from, of the caller's header, to @to,
 * of ours. Members that the caller's lacks become zero. Returns false if the caller's has more
 * members than ours and sets one, if a reserved one is not zero, or if flags has more than @known.
 */
#define FATHOM_OPTIONS_READ(from, to, known)                                             \
	fathom_options_read((from), (to), sizeof *(to), &(to)->flags, (uint32_t)(known), \
			    (to)->reserved, sizeof(to)->reserved / sizeof *(to)->reserved)
/* As FATHOM_OPTIONS_READ, for structs without flags. */
#define FATHOM_STRUCT_READ(from, to)                                             \
	fathom_options_read((from), (to), sizeof *(to), NULL, 0, (to)->reserved, \
			    sizeof(to)->reserved / sizeof *(to)->reserved)
bool fathom_options_read(const void *from, void *to, size_t size, const uint32_t *flags,
			 uint32_t known, const uint64_t *reserved, size_t n_reserved);

/*
 * Returns whether the size that the struct @from begins with can be one: false if the caller forgot
 * to set it.
 */
bool fathom_size_is_set(const void *from);

#endif
