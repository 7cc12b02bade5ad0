/* SPDX-License-Identifier: MIT */
/* Parsed types of values; fathom/value.h defines their syntax. */
#ifndef FATHOM_VALUE_TYPE_H
#define FATHOM_VALUE_TYPE_H

#include "fathom/value.h"
#include "safe/base/bytes.h"
#include "safe/base/error.h"

struct fathom_hop {
	bool is_pointer; /* follow the pointer first */
	uint64_t offset; /* added, modulo 2^64 */
};

struct fathom_value_type {
	struct fathom_hop hop[FATHOM_VALUE_HOPS];
	uint32_t n_hops;
	uint32_t count; /* items; text and bytes: bytes */
	uint8_t kind;   /* enum fathom_value_kind */
	uint8_t size;   /* bytes of an item; 0: pointer size */
};

/* Parses @text; the offset of an error is its position in @text. */
fathom_err fathom_value_type_parse(const char *text, struct fathom_value_type *ret,
				   struct fathom_errinfo *reterr);

#endif
