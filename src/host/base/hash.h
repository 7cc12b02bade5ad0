/* SPDX-License-Identifier: MIT */
#ifndef FATHOM_BASE_HASH_H
#define FATHOM_BASE_HASH_H

#include "safe/base/bytes.h"

/* Returns a hash of @size bytes at @data that goes on from @hash. Not for what is hostile. */
static inline uint64_t fathom_hash_bytes(uint64_t hash, const char *data, size_t size)
{
	while (size >= 8) {
		hash = (hash ^ load_u64((const uint8_t *)data, false)) *
		       UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
		data += 8;
		size -= 8;
	}
	while (size--)
		hash = (hash ^ (uint8_t)*data++) * UINT64_C(0x100000001b3);
	/* Once more: the last bytes of a word have changed only the high bits. */
	hash = (hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

#endif
