/* SPDX-License-Identifier: MIT */
/*
 * Borrowed ranges of bytes, and loads from them.
 *
 * All loads go through memcpy, so alignment never matters. They take the byte order as an argument,
 * so one reader serves little- and big-endian input.
 */
#ifndef FATHOM_BASE_BYTES_H
#define FATHOM_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A borrowed range; data may be NULL when size is 0. */
struct fathom_bytes {
	const uint8_t *data;
	uint64_t size;
};

/* A borrowed string, not NUL-terminated; data is NULL for "no string". */
struct fathom_str {
	const char *data;
	uint32_t size;
};

/* Index of no item. */
#define FATHOM_NONE UINT32_MAX

static inline uint16_t load_u16(const uint8_t *p, bool swap)
{
	uint16_t v;

	memcpy(&v, p, sizeof v);
	return swap ? __builtin_bswap16(v) : v;
}

static inline uint32_t load_u32(const uint8_t *p, bool swap)
{
	uint32_t v;

	memcpy(&v, p, sizeof v);
	return swap ? __builtin_bswap32(v) : v;
}

static inline uint64_t load_u64(const uint8_t *p, bool swap)
{
	uint64_t v;

	memcpy(&v, p, sizeof v);
	return swap ? __builtin_bswap64(v) : v;
}

static inline uint32_t load_u24(const uint8_t *p, bool swap)
{
	const bool little = (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) != swap;

	return little ? (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16
		      : (uint32_t)p[2] | (uint32_t)p[1] << 8 | (uint32_t)p[0] << 16;
}

/* Returns whether [off, off + size) lies inside a range of @total bytes, without overflow. */
static inline bool range_inside(uint64_t off, uint64_t size, uint64_t total)
{
	return off <= total && size <= total - off;
}

/* Returns the part [off, off + size) of @b; an empty range if it does not lie inside. */
static inline struct fathom_bytes bytes_slice(struct fathom_bytes b, uint64_t off, uint64_t size)
{
	if (!range_inside(off, size, b.size) || !b.data)
		return (struct fathom_bytes){ NULL, 0 };
	return (struct fathom_bytes){ b.data + off, size };
}

/* Returns the part of @b that starts at @off; an empty range if @off is past the end. */
static inline struct fathom_bytes bytes_from(struct fathom_bytes b, uint64_t off)
{
	if (off > b.size || !b.data)
		return (struct fathom_bytes){ NULL, 0 };
	return (struct fathom_bytes){ b.data + off, b.size - off };
}

/* Returns whether both have the same bytes; empty ranges are equal. */
static inline bool bytes_equal(struct fathom_bytes a, struct fathom_bytes b)
{
	return a.size == b.size && (!a.size || memcmp(a.data, b.data, (size_t)a.size) == 0);
}

static inline bool str_equal(struct fathom_str a, struct fathom_str b)
{
	return a.size == b.size && (!a.size || memcmp(a.data, b.data, a.size) == 0);
}

/* Compares two numbers: below 0, 0 or above 0. */
static inline int u64_compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* Compares two strings by their bytes. A prefix comes before the longer string. */
static inline int str_compare(struct fathom_str a, struct fathom_str b)
{
	const uint32_t shorter = a.size < b.size ? a.size : b.size;
	const int order = shorter ? memcmp(a.data, b.data, shorter) : 0;

	return order ? order : u64_compare(a.size, b.size);
}

/* Returns whether @s is exactly the C string @c. */
static inline bool str_is(struct fathom_str s, const char *c)
{
	uint32_t i = 0;

	while (i < s.size && c[i] && s.data[i] == c[i])
		i++;
	return i == s.size && !c[i];
}

/* Returns whether @s starts with the C string @c. */
static inline bool str_starts(struct fathom_str s, const char *c)
{
	uint32_t i = 0;

	while (i < s.size && c[i] && s.data[i] == c[i])
		i++;
	return !c[i];
}

/*
 * Returns the NUL-terminated string at @off of a string section. data is NULL if @off is outside,
 * or if no NUL follows within @b: such a string is damaged and must not be served.
 */
struct fathom_str fathom_bytes_str(struct fathom_bytes b, uint64_t off);

/* Returns the index of the first @c in @s at or after @from; the size of @s if there is none. */
uint32_t fathom_str_find(struct fathom_str s, uint32_t from, char c);

#endif
