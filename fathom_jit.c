/* SPDX-License-Identifier: MIT */
/* Made by tools/vendor_jit.py of fathom 0e0924909786: change it there. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "fathom_jit.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <stdatomic.h>
#include <elf.h>
#include <pthread.h>
#include <sys/uio.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>
#pragma GCC visibility push(hidden)
#pragma GCC diagnostic ignored "-Wunused-function"

/* src/safe/base/text.c */
/* SPDX-License-Identifier: MIT */
/* SPDX-License-Identifier: MIT */
/* Writes text into a caller's buffer, where snprintf is forbidden: it is not async-signal-safe. */
#ifndef FATHOM_BASE_TEXT_H
#define FATHOM_BASE_TEXT_H

/* SPDX-License-Identifier: MIT */
/*
 * Borrowed ranges of bytes, and loads from them.
 *
 * All loads go through memcpy, so alignment never matters. They take the byte order as an argument,
 * so one reader serves little- and big-endian input.
 */
#ifndef FATHOM_BASE_BYTES_H
#define FATHOM_BASE_BYTES_H


/* A borrowed range; data may be NULL when size is 0. */
struct fathom_copy_bytes {
	const uint8_t *data;
	uint64_t size;
};

/* A borrowed string, not NUL-terminated; data is NULL for "no string". */
struct fathom_copy_str {
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
static inline struct fathom_copy_bytes bytes_slice(struct fathom_copy_bytes b, uint64_t off, uint64_t size)
{
	if (!range_inside(off, size, b.size) || !b.data)
		return (struct fathom_copy_bytes){ NULL, 0 };
	return (struct fathom_copy_bytes){ b.data + off, size };
}

/* Returns the part of @b that starts at @off; an empty range if @off is past the end. */
static inline struct fathom_copy_bytes bytes_from(struct fathom_copy_bytes b, uint64_t off)
{
	if (off > b.size || !b.data)
		return (struct fathom_copy_bytes){ NULL, 0 };
	return (struct fathom_copy_bytes){ b.data + off, b.size - off };
}

/* Returns whether both have the same bytes; empty ranges are equal. */
static inline bool bytes_equal(struct fathom_copy_bytes a, struct fathom_copy_bytes b)
{
	return a.size == b.size && (!a.size || memcmp(a.data, b.data, (size_t)a.size) == 0);
}

static inline bool str_equal(struct fathom_copy_str a, struct fathom_copy_str b)
{
	return a.size == b.size && (!a.size || memcmp(a.data, b.data, a.size) == 0);
}

/* Compares two numbers: below 0, 0 or above 0. */
static inline int u64_compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* Compares two strings by their bytes. A prefix comes before the longer string. */
static inline int str_compare(struct fathom_copy_str a, struct fathom_copy_str b)
{
	const uint32_t shorter = a.size < b.size ? a.size : b.size;
	const int order = shorter ? memcmp(a.data, b.data, shorter) : 0;

	return order ? order : u64_compare(a.size, b.size);
}

/* Returns whether @s is exactly the C string @c. */
static inline bool str_is(struct fathom_copy_str s, const char *c)
{
	uint32_t i = 0;

	while (i < s.size && c[i] && s.data[i] == c[i])
		i++;
	return i == s.size && !c[i];
}

/* Returns whether @s starts with the C string @c. */
static inline bool str_starts(struct fathom_copy_str s, const char *c)
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
struct fathom_copy_str fathom_copy_bytes_str(struct fathom_copy_bytes b, uint64_t off);

/* Returns the index of the first @c in @s at or behind @from; the size of @s if there is none. */
uint32_t fathom_copy_str_find(struct fathom_copy_str s, uint32_t from, char c);

#endif

/*
 * A buffer that is being filled. len counts all characters written, so a caller learns how much
 * room the whole text needs; only the first cap - 1 are stored.
 */
struct fathom_copy_text {
	char *buf;
	size_t cap;
	size_t len;
};

static inline struct fathom_copy_text text_init(char *buf, size_t cap)
{
	return (struct fathom_copy_text){ buf, cap, 0 };
}

void fathom_copy_text_char(struct fathom_copy_text *t, char c);
void fathom_copy_text_cstr(struct fathom_copy_text *t, const char *s);
void fathom_copy_text_dec(struct fathom_copy_text *t, uint64_t value);
void fathom_copy_text_hex(struct fathom_copy_text *t, uint64_t value); /* with 0x */
/* Ends the stored text with a NUL. */
void fathom_copy_text_end(struct fathom_copy_text *t);

/* Copies the C string @s to the array @to of @cap bytes, cut to fit. Always ends it with a NUL. */
void fathom_copy_copy_cstr(char *to, size_t cap, const char *s);

#endif

#pragma push_macro("FATHOM_API")
#undef FATHOM_API
#define FATHOM_API
/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Formats numbers and checks characters, fast and without locale: for programs that print many
 * addresses, and for signal handlers, which must not call snprintf().
 */
#ifndef FATHOM_FORMAT_PUBLIC_H
#define FATHOM_FORMAT_PUBLIC_H


#ifdef __cplusplus
extern "C" {
#endif

/** Bytes that hold any number: "0x" and 16 digits, or 20 digits. */
#define FATHOM_NUMBER_SIZE 20

/**
 * Writes @value as "0x" and lower-case hexadecimal digits. No NUL is added.
 *
 * Safety: as-safe
 * Memory: writes at most FATHOM_NUMBER_SIZE bytes to @buf
 * Returns: the number of bytes written
 */
FATHOM_API size_t fathom_copy_format_hex(char *buf, uint64_t value);

/**
 * Writes @value as decimal digits. No NUL is added.
 *
 * Safety: as-safe
 * Memory: writes at most FATHOM_NUMBER_SIZE bytes to @buf
 * Returns: the number of bytes written
 */
FATHOM_API size_t fathom_copy_format_dec(char *buf, uint64_t value);

/** Bytes that hold any number in groups of three digits. */
#define FATHOM_GROUPED_SIZE 26

/**
 * Writes @value as decimal digits with a ' between each three: 1'234'567. No NUL is added.
 *
 * Safety: as-safe
 * Memory: writes at most FATHOM_GROUPED_SIZE bytes to @buf
 * Returns: the number of bytes written
 */
FATHOM_API size_t fathom_copy_format_grouped(char *buf, uint64_t value);

/**
 * Returns whether a character must not be written to a terminal as it is, because it would control
 * the terminal or be invisible: controls (C0, DEL, C1), line and paragraph separators, and what
 * Unicode calls default ignorable: bidirectional marks, joiners and other zero-width characters,
 * byte order marks, tags. Names may hold any of them; two names that differ only in such characters
 * would look the same.
 *
 * Safety: as-safe
 * Memory: none
 * Returns: 1 or 0; 1 for numbers that are not characters
 */
FATHOM_API int fathom_copy_point_is_hidden(uint32_t point);

/** Stands for bytes that are not UTF-8. */
#define FATHOM_NO_POINT UINT32_MAX

/**
 * Decodes one UTF-8 character (RFC 3629, section 4) at @s, of @n bytes, at least 1, into
 * *@ret_point; FATHOM_NO_POINT if it is invalid.
 *
 * Safety: as-safe
 * Memory: none
 * Returns: its length; if it is invalid, that of the longest valid start of a character (Unicode
 *	15.1, 3.9: U+FFFD substitution of maximal subparts)
 */
FATHOM_API size_t fathom_copy_point_take(const char *s, size_t n, uint32_t *ret_point);

#ifdef __cplusplus
}
#endif

#endif
#pragma pop_macro("FATHOM_API")

void fathom_copy_text_char(struct fathom_copy_text *t, char c)
{
	if (t->len + 1 < t->cap)
		t->buf[t->len] = c;
	t->len++;
}

void fathom_copy_text_cstr(struct fathom_copy_text *t, const char *s)
{
	while (*s)
		fathom_copy_text_char(t, *s++);
}

size_t fathom_copy_format_hex(char *buf, uint64_t value)
{
	const unsigned digits = value ? (67 - (unsigned)__builtin_clzll(value)) / 4 : 1;

	buf[0] = '0';
	buf[1] = 'x';
	for (unsigned i = digits; i; i--, value >>= 4)
		buf[1 + i] = "0123456789abcdef"[value & 15];
	return 2 + digits;
}

size_t fathom_copy_format_dec(char *buf, uint64_t value)
{
	char reversed[FATHOM_NUMBER_SIZE];
	size_t n = 0;

	do {
		reversed[n++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	for (size_t i = 0; i < n; i++)
		buf[i] = reversed[n - 1 - i];
	return n;
}

size_t fathom_copy_format_grouped(char *buf, uint64_t value)
{
	char reversed[FATHOM_GROUPED_SIZE];
	size_t n = 0;

	while (value >= 1000) {
		const unsigned low = (unsigned)(value % 1000);

		value /= 1000;
		reversed[n++] = (char)('0' + low % 10);
		reversed[n++] = (char)('0' + low / 10 % 10);
		reversed[n++] = (char)('0' + low / 100);
		reversed[n++] = '\'';
	}
	do {
		reversed[n++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	for (size_t i = 0; i < n; i++)
		buf[i] = reversed[n - 1 - i];
	return n;
}

int fathom_copy_point_is_hidden(uint32_t point)
{
	/*
	 * Unicode 15.1, sorted: Default_Ignorable_Code_Point (DerivedCoreProperties.txt), the
	 * categories Zl, Zp and Cs, and the marks of interlinear annotations (Cf).
	 */
	static const struct {
		uint32_t first;
		uint32_t last;
	} ranges[] = {
		{ 0x00ad, 0x00ad },   { 0x034f, 0x034f },   { 0x061c, 0x061c },
		{ 0x115f, 0x1160 },   { 0x17b4, 0x17b5 },   { 0x180b, 0x180f },
		{ 0x200b, 0x200f },   { 0x2028, 0x202e },   { 0x2060, 0x206f },
		{ 0x3164, 0x3164 },   { 0xd800, 0xdfff },   { 0xfe00, 0xfe0f },
		{ 0xfeff, 0xfeff },   { 0xffa0, 0xffa0 },   { 0xfff0, 0xfffb },
		{ 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
	};

	if (point < 0xa0)
		return point < 0x20 || point >= 0x7f;
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges && point >= ranges[i].first; i++)
		if (point <= ranges[i].last)
			return 1;
	return point > 0x10ffff;
}

size_t fathom_copy_point_take(const char *s, size_t n, uint32_t *ret_point)
{
	const unsigned char *p = (const unsigned char *)s;
	const unsigned char c = p[0];
	const size_t size = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
	unsigned char low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
	unsigned char high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
	uint32_t point = size == 1 ? c : c & (0x7fu >> size);

	*ret_point = FATHOM_NO_POINT;
	if (c >= 0x80 && (c < 0xc2 || c > 0xf4))
		return 1;
	for (size_t i = 1; i < size; i++) {
		if (i == n || p[i] < low || p[i] > high)
			return i;
		point = point << 6 | (p[i] & 0x3f);
		low = 0x80;
		high = 0xbf;
	}
	*ret_point = point;
	return size;
}

static void text_bytes(struct fathom_copy_text *t, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fathom_copy_text_char(t, bytes[i]);
}

void fathom_copy_text_dec(struct fathom_copy_text *t, uint64_t value)
{
	char digits[FATHOM_NUMBER_SIZE];

	text_bytes(t, digits, fathom_copy_format_dec(digits, value));
}

void fathom_copy_text_hex(struct fathom_copy_text *t, uint64_t value)
{
	char digits[FATHOM_NUMBER_SIZE];

	text_bytes(t, digits, fathom_copy_format_hex(digits, value));
}

void fathom_copy_text_end(struct fathom_copy_text *t)
{
	if (t->cap)
		t->buf[t->len < t->cap ? t->len : t->cap - 1] = '\0';
}

void fathom_copy_copy_cstr(char *to, size_t cap, const char *s)
{
	struct fathom_copy_text t = text_init(to, cap);

	fathom_copy_text_cstr(&t, s);
	fathom_copy_text_end(&t);
}

/* src/safe/base/error.c */
/* SPDX-License-Identifier: MIT */
/* SPDX-License-Identifier: MIT */
/* Fills in the public struct fathom_errinfo. */
#ifndef FATHOM_BASE_ERROR_H
#define FATHOM_BASE_ERROR_H


/* Internal, beside the public values: the end was reached, or nothing is there. Not an error. */
enum { FATHOM_END = 1 };

#define FATHOM_TRY(expr)                        \
	do {                                    \
		const fathom_err err_ = (expr); \
		if (err_ < 0)                   \
			return err_;            \
	} while (0)

/*
 * Notes a failure in @info (which may be NULL) and returns @err, so that callers can write
 * `return fathom_copy_fail(...)`. @section and @what are static texts.
 */
fathom_err fathom_copy_fail(struct fathom_errinfo *info, fathom_err err, const char *section,
		       uint64_t offset, const char *what);

/* As fathom_copy_fail(), for a failure that has a cause but no place in a file. */
fathom_err fathom_copy_fail_by(struct fathom_errinfo *info, fathom_err err, enum fathom_cause cause,
			  const char *what);

/* Fails for lack of memory: FATHOM_E_MEMORY. */
fathom_err fathom_copy_fail_memory(struct fathom_errinfo *info);

/* Refuses options that hold what this version does not know: FATHOM_E_ARGUMENT. */
fathom_err fathom_copy_fail_options(struct fathom_errinfo *info);

#endif


const char *fathom_err_name(fathom_err err)
{
	switch (err) {
	case FATHOM_OK:
		return "success";
	case FATHOM_E_ARGUMENT:
		return "invalid argument";
	case FATHOM_E_MEMORY:
		return "out of memory";
	case FATHOM_E_OS:
		return "system error";
	case FATHOM_E_FORMAT:
		return "not a file that fathom reads";
	case FATHOM_E_CORRUPT:
		return "corrupt data";
	case FATHOM_E_LIMIT:
		return "limit reached";
	case FATHOM_E_UNSUPPORTED:
		return "unsupported";
	case FATHOM_E_MISMATCH:
		return "belongs to another file";
	case FATHOM_E_NOT_FOUND:
		return "not found";
	case FATHOM_E_TIMEOUT:
		return "timed out";
	case FATHOM_E_CANCELLED:
		return "cancelled";
	case FATHOM_E_CHANGED:
		return "changed while it was being read";
	default:
		return "unknown error";
	}
}

fathom_err fathom_copy_fail(struct fathom_errinfo *info, fathom_err err, const char *section,
		       uint64_t offset, const char *what)
{
	if (info) {
		info->err = err;
		info->os_errno = 0;
		info->offset = offset;
		info->what = what;
		fathom_copy_copy_cstr(info->section, sizeof info->section, section);
		info->file[0] = '\0';
		info->cause = FATHOM_CAUSE_NONE;
		info->part = 0;
	}
	return err;
}

fathom_err fathom_copy_fail_by(struct fathom_errinfo *info, fathom_err err, enum fathom_cause cause,
			  const char *what)
{
	(void)fathom_copy_fail(info, err, "", 0, what);
	if (info)
		info->cause = cause;
	return err;
}

/* Appends the part of a change that is wrong. Returns false if the cause is another. */
static bool add_change(struct fathom_copy_text *t, const struct fathom_errinfo *info)
{
	static const char *const parts[] = { NULL, ", event ", ", line ", ", inline " };
	const char *part;

	if (info->cause < FATHOM_CAUSE_CHANGE || info->cause > FATHOM_CAUSE_INLINE)
		return false;
	part = parts[info->cause - FATHOM_CAUSE_CHANGE];
	fathom_copy_text_cstr(t, "change ");
	fathom_copy_text_dec(t, info->offset);
	if (part) {
		fathom_copy_text_cstr(t, part);
		fathom_copy_text_dec(t, info->part);
	}
	fathom_copy_text_cstr(t, ": ");
	return true;
}

/* Returns whether the offset of @info, which names no section, is an offset in the file. */
static bool has_file_offset(const struct fathom_errinfo *info)
{
	return info->offset && (info->err == FATHOM_E_CORRUPT ||
				info->err == FATHOM_E_UNSUPPORTED || info->err == FATHOM_E_LIMIT);
}

size_t fathom_errinfo_format(const struct fathom_errinfo *info, char *buf, size_t cap)
{
	struct fathom_copy_text t = text_init(buf, cap);

	if (info->file[0]) {
		fathom_copy_text_cstr(&t, info->file);
		fathom_copy_text_cstr(&t, ": ");
	}
	if (info->section[0]) {
		fathom_copy_text_cstr(&t, info->section);
		fathom_copy_text_char(&t, '+');
		fathom_copy_text_hex(&t, info->offset);
		fathom_copy_text_cstr(&t, ": ");
	} else if (!add_change(&t, info) && has_file_offset(info)) {
		fathom_copy_text_cstr(&t, "at ");
		fathom_copy_text_hex(&t, info->offset);
		fathom_copy_text_cstr(&t, ": ");
	}
	fathom_copy_text_cstr(&t, info->what ? info->what : fathom_err_name(info->err));
	fathom_copy_text_end(&t);
	return t.len;
}

fathom_err fathom_copy_fail_memory(struct fathom_errinfo *info)
{
	return fathom_copy_fail(info, FATHOM_E_MEMORY, "", 0, "out of memory");
}

fathom_err fathom_copy_fail_options(struct fathom_errinfo *info)
{
	return fathom_copy_fail(info, FATHOM_E_ARGUMENT, "", 0,
			   "options that this version does not know");
}

/* src/host/base/array.c */
/* SPDX-License-Identifier: MIT */
/* SPDX-License-Identifier: MIT */
/*
 * Arrays that grow. A struct that is one is declared as
 *
 *	struct fathom_copy_claims {
 *		FATHOM_ARRAY_OF(struct fathom_copy_claim);
 *	};
 *
 * All zero, it is empty. The macros evaluate the array's expression more than once.
 */
#ifndef FATHOM_BASE_ARRAY_H
#define FATHOM_BASE_ARRAY_H


/* SPDX-License-Identifier: MIT */
/* Sorting without a heap, and bisection. */
#ifndef FATHOM_BASE_SORT_H
#define FATHOM_BASE_SORT_H


struct fathom_copy_keyed {
	uint64_t key;
	uint64_t value;
};

/*
 * Sorts @n items by key, stably: least-significant-digit radix sort over the digits in which the
 * keys differ. @scratch has room for another @n items. Input that is already in order costs one
 * pass.
 */
void fathom_copy_sort_keyed(struct fathom_copy_keyed *items, struct fathom_copy_keyed *scratch, size_t n);

/*
 * Bisects: returns the number of items, of @count, that satisfy @before, an expression in the item
 * number @i. The items that satisfy it must come first, as in a sorted array. Both results of a
 * step are conditional moves: a branch would be mispredicted half of the time.
 */
#define FATHOM_BISECT(count, i, before)                              \
	__extension__({                                              \
		size_t first_ = 0;                                   \
		size_t left_ = (size_t)(count);                      \
                                                                     \
		while (left_) {                                      \
			const size_t half_ = left_ / 2;              \
			const size_t i = first_ + half_;             \
			const bool before_ = (before);               \
                                                                     \
			first_ = before_ ? i + 1 : first_;           \
			left_ = before_ ? left_ - half_ - 1 : half_; \
		}                                                    \
		first_;                                              \
	})

#endif

/* The members of an array of @type: the items, their number, and how many there is room for. */
#define FATHOM_ARRAY_OF(type) \
	type *items;          \
	size_t n;             \
	size_t cap

/*
 * Makes room for @more items at the end; false without memory. If true, items is not NULL, even if
 * there are none: it can be passed to the C library.
 */
#define fathom_copy_array_room(a, more)                              \
	(((a)->items && (size_t)(more) <= (a)->cap - (a)->n) || \
	 fathom_copy_array_enlarge(&(a)->items, &(a)->cap, (a)->n, (more), sizeof *(a)->items))

/* Appends an item; false without memory. */
#define fathom_copy_array_push(a, ...) \
	(fathom_copy_array_room((a), 1) && ((a)->items[(a)->n++] = (__VA_ARGS__), true))

/* Frees the items and empties the array. */
#define fathom_copy_array_free(a) fathom_copy_array_clear(&(a)->items, &(a)->n, &(a)->cap)

/*
 * The functions behind the macros. @items is the address of a pointer to items of any type; @size
 * is the bytes of one item.
 */
bool fathom_copy_array_enlarge(void *items, size_t *cap, size_t n, size_t more, size_t size);
void fathom_copy_array_clear(void *items, size_t *n, size_t *cap);

/* Arrays of common types. */
struct fathom_copy_bytes_array {
	FATHOM_ARRAY_OF(char);
};

struct fathom_copy_keyed_array {
	FATHOM_ARRAY_OF(struct fathom_copy_keyed);
};

struct fathom_copy_u32_array {
	FATHOM_ARRAY_OF(uint32_t);
};

struct fathom_copy_size_array {
	FATHOM_ARRAY_OF(size_t);
};

struct fathom_copy_u64_array {
	FATHOM_ARRAY_OF(uint64_t);
};

#endif


#define FIRST_CAP 64

bool fathom_copy_array_enlarge(void *items, size_t *cap, size_t n, size_t more, size_t size)
{
	size_t larger = *cap ? *cap : FIRST_CAP;
	size_t bytes;
	void *p;

	while (larger - n < more) {
		if (larger > SIZE_MAX / 2)
			return false;
		larger *= 2;
	}
	/* *items has the caller's type: only its bytes may be copied. */
	memcpy(&p, items, sizeof p);
	if (__builtin_mul_overflow(larger, size, &bytes) || !(p = realloc(p, bytes)))
		return false;
	memcpy(items, &p, sizeof p);
	*cap = larger;
	return true;
}

void fathom_copy_array_clear(void *items, size_t *n, size_t *cap)
{
	void *p;

	memcpy(&p, items, sizeof p);
	free(p);
	p = NULL;
	memcpy(items, &p, sizeof p);
	*n = 0;
	*cap = 0;
}

/* src/host/base/clock.c */
/* SPDX-License-Identifier: MIT */
/* SPDX-License-Identifier: MIT */
/* Clocks, and when machine and processes have started. */
#ifndef FATHOM_BASE_CLOCK_H
#define FATHOM_BASE_CLOCK_H


/* Returns @clock in nanoseconds; 0 if the kernel lacks it. */
int64_t fathom_copy_clock_ns(clockid_t clock);

/* Returns the monotonic clock in nanoseconds. */
int64_t fathom_copy_now_ns(void);

/* Returns when the machine was booted: seconds since the epoch. */
int64_t fathom_copy_boot_time(void);

/*
 * Returns when the process whose /proc/PID/stat has the text @stat was started: seconds since the
 * epoch; 0 if the text does not say.
 */
int64_t fathom_copy_start_time(const char *stat);

#endif


#define NS_PER_SECOND INT64_C(1000000000)

int64_t fathom_copy_clock_ns(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now))
		return 0;
	return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

int64_t fathom_copy_now_ns(void)
{
	return fathom_copy_clock_ns(CLOCK_MONOTONIC);
}

int64_t fathom_copy_boot_time(void)
{
	return fathom_copy_clock_ns(CLOCK_REALTIME) / NS_PER_SECOND -
	       fathom_copy_clock_ns(CLOCK_BOOTTIME) / NS_PER_SECOND;
}

/* Field 22 of stat counts ticks since boot (proc_pid_stat(5)). */
int64_t fathom_copy_start_time(const char *stat)
{
	const long ticks = sysconf(_SC_CLK_TCK);
	/* Only the name, field 2, can contain a parenthesis. */
	const char *at = strrchr(stat, ')');

	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (!at || ticks <= 0)
		return 0;
	return fathom_copy_boot_time() + (int64_t)(strtoull(at, NULL, 10) / (unsigned long)ticks);
}

/* src/host/base/option_struct.c */
/* SPDX-License-Identifier: MIT */
/* SPDX-License-Identifier: MIT */
/* Structs of the public headers that begin with their size. */
#ifndef FATHOM_BASE_OPTION_STRUCT_H
#define FATHOM_BASE_OPTION_STRUCT_H


/*
 * Reads options, a struct that begins with its size: copies @from, of the caller's header, to @to,
 * of ours. Members that the caller's lacks become zero. Returns false if the caller's has more
 * members than ours and sets one, if a reserved one is not zero, or if flags has more than @known.
 */
#define FATHOM_OPTIONS_READ(from, to, known)                                             \
	fathom_copy_options_read((from), (to), sizeof *(to), &(to)->flags, (uint32_t)(known), \
			    (to)->reserved, sizeof(to)->reserved / sizeof *(to)->reserved)
/* As FATHOM_OPTIONS_READ, for structs without flags. */
#define FATHOM_STRUCT_READ(from, to)                                             \
	fathom_copy_options_read((from), (to), sizeof *(to), NULL, 0, (to)->reserved, \
			    sizeof(to)->reserved / sizeof *(to)->reserved)
bool fathom_copy_options_read(const void *from, void *to, size_t size, const uint32_t *flags,
			 uint32_t known, const uint64_t *reserved, size_t n_reserved);

/*
 * Returns whether the size that the struct @from begins with can be one: false if the caller forgot
 * to set it.
 */
bool fathom_copy_size_is_set(const void *from);

#endif


bool fathom_copy_options_read(const void *from, void *to, size_t size, const uint32_t *flags,
			 uint32_t known, const uint64_t *reserved, size_t n_reserved)
{
	const uint8_t *bytes = from;
	size_t theirs;

	memcpy(&theirs, from, sizeof theirs);
	if (theirs < sizeof theirs)
		return false;
	memset(to, 0, size);
	memcpy(to, from, theirs < size ? theirs : size);
	for (size_t i = size; i < theirs; i++)
		if (bytes[i])
			return false;
	for (size_t i = 0; i < n_reserved; i++)
		if (reserved[i])
			return false;
	return !flags || !(*flags & ~known);
}

/* Bytes of the smallest and of the largest such struct. */
#define LEAST_SIZE 16
#define MOST_SIZE  4096

bool fathom_copy_size_is_set(const void *from)
{
	size_t size;

	memcpy(&size, from, sizeof size);
	return size >= LEAST_SIZE && size <= MOST_SIZE;
}

/* src/safe/jit/registry.c */
/* SPDX-License-Identifier: MIT */
/* SPDX-License-Identifier: MIT */
/*
 * The registry of published code, version 1: what <fathom/jit.h> has published in a process, for
 * its own signal handlers, for other processes, and in cores. All numbers are in the byte order of
 * the process; addresses are its own. Only programs of 64 bits have one.
 *
 * The head is a variable of the object that publishes. It is found by its dynamic symbol,
 * `__fathom_jit_published`, or by an ELF note of the object: owner "fathom", type 1, whose
 * descriptor is the distance, 8 bytes, signed, from the descriptor itself to the head.
 *
 * The head leads to a table, and each row of the table to a symbol file, an ELF file as for GDB's
 * JIT interface, with one section more: FATHOM_REGISTRY_SECTION has an element for each symbol but
 * the first. What a table leads to does not change. A commit makes a new table beside the old one
 * and then stores its address in the head: at every instant, also in the middle of a commit, that
 * address is of a whole table.
 *
 * A reader outside cannot stop the process. Memory of old tables and files is used again, at the
 * earliest some commits later; before that its serial number is set to 0. Serial numbers are never
 * used twice. So what was read of a file is right if it still had its serial number afterwards,
 * that of its row. What was read of a table is right if its first words were the same afterwards,
 * and say that it is a table: `check` is serial ^ address ^ FATHOM_REGISTRY_MAGIC. Otherwise the
 * reader begins again with the head.
 *
 * A reader inside counts itself in one of readers[], number `epoch & 1`, before it loads the
 * address of the table: nothing that it can reach is freed then.
 */
#ifndef FATHOM_JIT_REGISTRY_H
#define FATHOM_JIT_REGISTRY_H



#define FATHOM_REGISTRY_MAGIC   UINT64_C(0x72746a6d6f687466) /* "fthomjtr" */
#define FATHOM_REGISTRY_VERSION 1
#define FATHOM_REGISTRY_SYMBOL  "__fathom_jit_published"
#define FATHOM_REGISTRY_OWNER   "fathom"
#define FATHOM_REGISTRY_NOTE    1
#define FATHOM_REGISTRY_SECTION ".fathom.functions"

struct fathom_copy_registry_head {
	uint64_t magic;
	uint32_t version;
	uint32_t head_size; /* bytes of this struct */
	uint32_t row_size;  /* bytes of a row */
	uint32_t reserved;
	_Atomic uint64_t sequence; /* odd while it changes; rises with each commit */
	_Atomic uint64_t table;    /* address; 0: nothing was published, or the registry is off */
	/* Of this process alone. */
	_Atomic uint64_t low; /* no code was ever published outside of [low, high) */
	_Atomic uint64_t high;
	_Atomic uint32_t epoch;
	_Atomic uint32_t readers[2];
};

/* What is published of the code in [low, high). */
struct fathom_copy_registry_row {
	uint64_t low;
	uint64_t high;
	uint64_t file; /* address of the symbol file; the 8 bytes before it are its serial number */
	uint64_t size; /* of the symbol file, bytes */
	uint64_t serial; /* of the symbol file */
};

struct fathom_copy_registry_table {
	_Atomic uint64_t serial;
	_Atomic uint64_t check;
	uint64_t n;
	struct fathom_copy_registry_row rows[]; /* sorted; they do not overlap */
};

/* An element of FATHOM_REGISTRY_SECTION. */
struct fathom_copy_registry_function {
	/* When it was published: nanoseconds of CLOCK_MONOTONIC. No two functions have the same. */
	uint64_t since;
	uint32_t fde; /* offset of its FDE in .eh_frame; FATHOM_REGISTRY_NO_FDE: it has none */
	uint32_t name_size; /* bytes of its name, without the NUL */
};
#define FATHOM_REGISTRY_NO_FDE UINT32_MAX

/* Indices of the sections of a symbol file that this version writes. */
enum {
	FATHOM_REGISTRY_TEXT = 1,
	FATHOM_REGISTRY_FRAMES,
	FATHOM_REGISTRY_SYMBOLS,
	FATHOM_REGISTRY_STRINGS,
	FATHOM_REGISTRY_FUNCTIONS,
	FATHOM_REGISTRY_N
};

/* The head of this library. */
extern struct fathom_copy_registry_head fathom_copy_registry_own;

/* A published function. It stays until fathom_copy_registry_leave(). */
struct fathom_copy_registry_code {
	uint64_t low;
	uint64_t size; /* bytes */
	uint64_t since;
	struct fathom_copy_str name;     /* ends with a NUL */
	struct fathom_copy_bytes frames; /* .eh_frame */
	uint32_t fde;               /* as fathom_copy_registry_function.fde */
};

/*
 * Counts the calling thread as a reader of @h, its own, if code was published around @avma; returns
 * false if none ever was. *@ret_place is for fathom_copy_registry_leave().
 */
bool fathom_copy_registry_enter(struct fathom_copy_registry_head *h, uint64_t avma, uint32_t *ret_place);
void fathom_copy_registry_leave(struct fathom_copy_registry_head *h, uint32_t place);

/* Finds the function whose code is at @avma; false if there is none. Within enter and leave. */
bool fathom_copy_registry_find(const struct fathom_copy_registry_head *h, uint64_t avma,
			  struct fathom_copy_registry_code *ret);

#endif



struct fathom_copy_registry_head fathom_copy_registry_own = {
	.magic = FATHOM_REGISTRY_MAGIC,
	.version = FATHOM_REGISTRY_VERSION,
	.head_size = sizeof(struct fathom_copy_registry_head),
	.row_size = sizeof(struct fathom_copy_registry_row),
	.low = UINT64_MAX,
};

#if UINTPTR_MAX > UINT32_MAX
/* Exported whatever FATHOM_API is, by a name of its own: another object may publish, too. */
extern struct fathom_copy_registry_head __fathom_jit_published
	__attribute__((alias("fathom_copy_registry_own"), visibility("default")));

/* The note; its descriptor needs no relocation. */
__asm__(".pushsection .note.fathom, \"a\"\n"
	"\t.balign 4\n"
	"\t.long 7, 8, 1\n"
	"\t.asciz \"fathom\"\n"
	"\t.balign 4\n"
	"\t.quad fathom_copy_registry_own - .\n"
	".popsection\n");
#endif

bool fathom_copy_registry_enter(struct fathom_copy_registry_head *h, uint64_t avma, uint32_t *ret_place)
{
	if (avma < atomic_load_explicit(&h->low, memory_order_relaxed) ||
	    avma >= atomic_load_explicit(&h->high, memory_order_relaxed))
		return false;
	*ret_place = atomic_load_explicit(&h->epoch, memory_order_relaxed) & 1;
	/* Sequentially consistent, as the load of the table and what frees it. */
	(void)atomic_fetch_add(&h->readers[*ret_place], 1);
	return true;
}

void fathom_copy_registry_leave(struct fathom_copy_registry_head *h, uint32_t place)
{
	(void)atomic_fetch_sub(&h->readers[place], 1);
}

/* Finds the function at @avma in the symbol file @file. */
static bool find_in(const uint8_t *file, uint64_t avma, struct fathom_copy_registry_code *ret)
{
	const Elf64_Ehdr *e = (const void *)file;
	const Elf64_Shdr *s = (const void *)(file + e->e_shoff);
	/* The first symbol is none. */
	const Elf64_Sym *symbols =
		(const Elf64_Sym *)(const void *)(file + s[FATHOM_REGISTRY_SYMBOLS].sh_offset) + 1;
	const struct fathom_copy_registry_function *functions =
		(const void *)(file + s[FATHOM_REGISTRY_FUNCTIONS].sh_offset);
	const uint64_t n = s[FATHOM_REGISTRY_SYMBOLS].sh_size / sizeof *symbols - 1;
	const uint64_t i = FATHOM_BISECT(n, k, symbols[k].st_value <= avma);
	const char *name;

	if (!i || avma - symbols[i - 1].st_value >= symbols[i - 1].st_size)
		return false;
	name = (const char *)file + s[FATHOM_REGISTRY_STRINGS].sh_offset + symbols[i - 1].st_name;
	*ret = (struct fathom_copy_registry_code){
		.low = symbols[i - 1].st_value,
		.size = symbols[i - 1].st_size,
		.since = functions[i - 1].since,
		.name = { name, functions[i - 1].name_size },
		.frames = { file + s[FATHOM_REGISTRY_FRAMES].sh_offset,
			    s[FATHOM_REGISTRY_FRAMES].sh_size },
		.fde = functions[i - 1].fde,
	};
	return true;
}

bool fathom_copy_registry_find(const struct fathom_copy_registry_head *h, uint64_t avma,
			  struct fathom_copy_registry_code *ret)
{
	/* Only the own process's: addresses are pointers. */
	const struct fathom_copy_registry_table *t = (const void *)(uintptr_t)atomic_load(&h->table);
	uint64_t n;

	if (!t)
		return false;
	n = FATHOM_BISECT(t->n, i, t->rows[i].low <= avma);
	return n && avma < t->rows[n - 1].high &&
	       find_in((const void *)(uintptr_t)t->rows[n - 1].file, avma, ret);
}

/* src/safe/dwarf/cfi.c */
/* SPDX-License-Identifier: MIT */
/* SPDX-License-Identifier: MIT */
/*
 * Call frame information: .eh_frame, .eh_frame_hdr (LSB 5.0, 10.6) and .debug_frame (DWARF 5, 6.4).
 *
 * A pull iterator over one section: it keeps nothing, and its state has a fixed size. Reads 32- and
 * 64-bit DWARF, CIE versions 1, 3 and 4, all pointer encodings, and the augmentation letters of
 * GCC, LLVM and aarch64. Not handled: the instructions, of which only the bytes are returned.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_DWARF_CFI_H
#define FATHOM_DWARF_CFI_H

/* SPDX-License-Identifier: MIT */
/*
 * The cursor through which every byte from outside is read.
 *
 * A read past the end yields 0, remembers where that happened, and moves the cursor to its end, so
 * every loop that runs "while bytes are left" ends by itself. Failure sticks: check cur_ok() once
 * per record, before any value read is used as a size, an index or a pointer. cur_sub() gives an
 * inner record a cursor of its own, which cannot leave the record; a failed parent gives a failed
 * child.
 *
 * Safety: as-safe. The functions are inline so that the cursor stays in registers.
 */
#ifndef FATHOM_BASE_CURSOR_H
#define FATHOM_BASE_CURSOR_H


struct fathom_copy_cursor {
	const uint8_t *p;
	const uint8_t *end;
	const uint8_t *bad; /* first byte that could not be read; NULL while all could */
	bool swap;          /* the input's byte order is not this machine's */
};

static inline struct fathom_copy_cursor cur_init(struct fathom_copy_bytes b, bool swap)
{
	static const uint8_t nothing[1];
	const uint8_t *data = b.data ? b.data : nothing;

	return (struct fathom_copy_cursor){ data, data + (b.data ? b.size : 0), NULL, swap };
}

static inline bool cur_ok(const struct fathom_copy_cursor *c)
{
	return !c->bad;
}

static inline void cur_fail(struct fathom_copy_cursor *c)
{
	if (!c->bad)
		c->bad = c->p;
	c->p = c->end;
}

static inline uint64_t cur_left(const struct fathom_copy_cursor *c)
{
	return (uint64_t)(c->end - c->p);
}

/* Returns the next @n bytes, or NULL. After this one check, plain loads from them are safe. */
static inline const uint8_t *cur_take(struct fathom_copy_cursor *c, uint64_t n)
{
	const uint8_t *p = c->p;

	if (n > cur_left(c)) {
		cur_fail(c);
		return NULL;
	}
	c->p += n;
	return p;
}

static inline void cur_skip(struct fathom_copy_cursor *c, uint64_t n)
{
	(void)cur_take(c, n);
}

static inline uint8_t cur_u8(struct fathom_copy_cursor *c)
{
	const uint8_t *p = cur_take(c, 1);

	return p ? *p : 0;
}

/* Skips one byte, which must be @wanted. */
static inline void cur_expect(struct fathom_copy_cursor *c, char wanted)
{
	if (cur_u8(c) != (uint8_t)wanted)
		cur_fail(c);
}

static inline uint16_t cur_u16(struct fathom_copy_cursor *c)
{
	const uint8_t *p = cur_take(c, 2);

	return p ? load_u16(p, c->swap) : 0;
}

static inline uint32_t cur_u24(struct fathom_copy_cursor *c)
{
	const uint8_t *p = cur_take(c, 3);

	return p ? load_u24(p, c->swap) : 0;
}

static inline uint32_t cur_u32(struct fathom_copy_cursor *c)
{
	const uint8_t *p = cur_take(c, 4);

	return p ? load_u32(p, c->swap) : 0;
}

static inline uint64_t cur_u64(struct fathom_copy_cursor *c)
{
	const uint8_t *p = cur_take(c, 8);

	return p ? load_u64(p, c->swap) : 0;
}

/* Reads an unsigned value of 1, 2, 4 or 8 bytes; any other size fails the cursor. */
static inline uint64_t cur_uint(struct fathom_copy_cursor *c, unsigned size)
{
	switch (size) {
	case 1:
		return cur_u8(c);
	case 2:
		return cur_u16(c);
	case 4:
		return cur_u32(c);
	case 8:
		return cur_u64(c);
	default:
		cur_fail(c);
		return 0;
	}
}

/*
 * Reads an unsigned LEB128 (DWARF 5, 7.6). Padding (0x80 0x80 ... 0x00) of any length is valid; a
 * value that does not fit 64 bits is not. 98 % of those in .debug_info are one byte, hence the
 * first test.
 */
static inline uint64_t cur_uleb(struct fathom_copy_cursor *c)
{
	uint64_t value = 0;
	unsigned shift = 0;

	if (c->p < c->end && *c->p < 0x80)
		return *c->p++;
	while (c->p < c->end) {
		const uint8_t byte = *c->p++;
		const uint64_t bits = byte & 0x7f;

		if (shift < 64)
			value |= bits << shift;
		if (bits && (shift >= 64 || (shift == 63 && bits > 1))) {
			c->p--;
			cur_fail(c);
			return 0;
		}
		if (byte < 0x80)
			return value;
		shift += shift < 64 ? 7 : 0;
	}
	cur_fail(c);
	return 0;
}

static inline int64_t cur_sleb(struct fathom_copy_cursor *c)
{
	uint64_t value = 0;
	unsigned shift = 0;

	while (c->p < c->end) {
		const uint8_t byte = *c->p++;

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += shift < 64 ? 7 : 0;
		if (byte < 0x80) {
			if (shift < 64 && (byte & 0x40))
				value |= UINT64_MAX << shift;
			return (int64_t)value;
		}
	}
	cur_fail(c);
	return 0;
}

static inline void cur_skip_leb(struct fathom_copy_cursor *c)
{
	while (c->p < c->end)
		if (*c->p++ < 0x80)
			return;
	cur_fail(c);
}

/* Skips a NUL-terminated string. */
static inline void cur_skip_str(struct fathom_copy_cursor *c)
{
	while (c->p < c->end)
		if (!*c->p++)
			return;
	cur_fail(c);
}

/* Returns a NUL-terminated string, borrowed from the input. */
static inline struct fathom_copy_str cur_str(struct fathom_copy_cursor *c)
{
	const uint8_t *start = c->p;

	cur_skip_str(c);
	if (!cur_ok(c) || (uint64_t)(c->p - start) > UINT32_MAX)
		return (struct fathom_copy_str){ NULL, 0 };
	return (struct fathom_copy_str){ (const char *)start, (uint32_t)(c->p - start - 1) };
}

/* Splits off the next @n bytes as a cursor of their own and moves past them. */
static inline struct fathom_copy_cursor cur_sub(struct fathom_copy_cursor *c, uint64_t n)
{
	struct fathom_copy_cursor sub = *c;
	const uint8_t *p = cur_take(c, n);

	if (p) {
		sub.p = p;
		sub.end = p + n;
	} else {
		sub = *c;
	}
	return sub;
}

/*
 * Reads an initial length (DWARF 5, 7.4): sets @ret_offset_size to 4 or 8 and returns the length
 * that follows. The reserved values 0xfffffff0 to 0xfffffffe fail the cursor.
 */
static inline uint64_t cur_initial_length(struct fathom_copy_cursor *c, uint8_t *ret_offset_size)
{
	const uint64_t length = cur_u32(c);

	*ret_offset_size = 4;
	if (length < 0xfffffff0)
		return length;
	if (length != 0xffffffff) {
		cur_fail(c);
		return 0;
	}
	*ret_offset_size = 8;
	return cur_u64(c);
}

#endif
/* SPDX-License-Identifier: MIT */
/*
 * What the readers of DWARF share: constants (DWARF 5, chapter 7, and the GNU extensions of DWARF
 * 4), and the set of sections that refer to each other.
 *
 * Readers here are pull iterators over byte ranges with fixed state: they never open, allocate or
 * decompress. Offsets into a section are uint64_t and named for it (die_off, abbrev_off).
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_DWARF_DWARF_H
#define FATHOM_DWARF_DWARF_H


enum {
	DW_TAG_array_type = 0x01,
	DW_TAG_class_type = 0x02,
	DW_TAG_entry_point = 0x03,
	DW_TAG_enumeration_type = 0x04,
	DW_TAG_lexical_block = 0x0b,
	DW_TAG_compile_unit = 0x11,
	DW_TAG_structure_type = 0x13,
	DW_TAG_union_type = 0x17,
	DW_TAG_inlined_subroutine = 0x1d,
	DW_TAG_module = 0x1e,
	DW_TAG_with_stmt = 0x22,
	DW_TAG_catch_block = 0x25,
	DW_TAG_subprogram = 0x2e,
	DW_TAG_try_block = 0x32,
	DW_TAG_variable = 0x34,
	DW_TAG_interface_type = 0x38,
	DW_TAG_namespace = 0x39,
	DW_TAG_partial_unit = 0x3c,
	DW_TAG_type_unit = 0x41,
	DW_TAG_skeleton_unit = 0x4a,
};

enum {
	DW_AT_sibling = 0x01,
	DW_AT_location = 0x02,
	DW_AT_name = 0x03,
	DW_AT_stmt_list = 0x10,
	DW_AT_low_pc = 0x11,
	DW_AT_high_pc = 0x12,
	DW_AT_language = 0x13,
	DW_AT_comp_dir = 0x1b,
	DW_AT_abstract_origin = 0x31,
	DW_AT_decl_file = 0x3a,
	DW_AT_decl_line = 0x3b,
	DW_AT_specification = 0x47,
	DW_AT_entry_pc = 0x52,
	DW_AT_ranges = 0x55,
	DW_AT_call_column = 0x57,
	DW_AT_call_file = 0x58,
	DW_AT_call_line = 0x59,
	DW_AT_linkage_name = 0x6e,
	DW_AT_str_offsets_base = 0x72,
	DW_AT_addr_base = 0x73,
	DW_AT_rnglists_base = 0x74,
	DW_AT_dwo_name = 0x76,
	DW_AT_MIPS_linkage_name = 0x2007,
	DW_AT_GNU_dwo_name = 0x2130,
	DW_AT_GNU_dwo_id = 0x2131,
	DW_AT_GNU_ranges_base = 0x2132,
	DW_AT_GNU_addr_base = 0x2133,
	DW_AT_GNU_discriminator = 0x2136,
};

enum {
	DW_FORM_addr = 0x01,
	DW_FORM_block2 = 0x03,
	DW_FORM_block4 = 0x04,
	DW_FORM_data2 = 0x05,
	DW_FORM_data4 = 0x06,
	DW_FORM_data8 = 0x07,
	DW_FORM_string = 0x08,
	DW_FORM_block = 0x09,
	DW_FORM_block1 = 0x0a,
	DW_FORM_data1 = 0x0b,
	DW_FORM_flag = 0x0c,
	DW_FORM_sdata = 0x0d,
	DW_FORM_strp = 0x0e,
	DW_FORM_udata = 0x0f,
	DW_FORM_ref_addr = 0x10,
	DW_FORM_ref1 = 0x11,
	DW_FORM_ref2 = 0x12,
	DW_FORM_ref4 = 0x13,
	DW_FORM_ref8 = 0x14,
	DW_FORM_ref_udata = 0x15,
	DW_FORM_indirect = 0x16,
	DW_FORM_sec_offset = 0x17,
	DW_FORM_exprloc = 0x18,
	DW_FORM_flag_present = 0x19,
	DW_FORM_strx = 0x1a,
	DW_FORM_addrx = 0x1b,
	DW_FORM_ref_sup4 = 0x1c,
	DW_FORM_strp_sup = 0x1d,
	DW_FORM_data16 = 0x1e,
	DW_FORM_line_strp = 0x1f,
	DW_FORM_ref_sig8 = 0x20,
	DW_FORM_implicit_const = 0x21,
	DW_FORM_loclistx = 0x22,
	DW_FORM_rnglistx = 0x23,
	DW_FORM_ref_sup8 = 0x24,
	DW_FORM_strx1 = 0x25,
	DW_FORM_strx2 = 0x26,
	DW_FORM_strx3 = 0x27,
	DW_FORM_strx4 = 0x28,
	DW_FORM_addrx1 = 0x29,
	DW_FORM_addrx2 = 0x2a,
	DW_FORM_addrx3 = 0x2b,
	DW_FORM_addrx4 = 0x2c,
	DW_FORM_GNU_addr_index = 0x1f01,
	DW_FORM_GNU_str_index = 0x1f02,
	DW_FORM_GNU_ref_alt = 0x1f20,
	DW_FORM_GNU_strp_alt = 0x1f21,
};

enum {
	DW_OP_addr = 0x03,
	DW_OP_deref = 0x06,
	DW_OP_const1u = 0x08,
	DW_OP_const1s = 0x09,
	DW_OP_const2u = 0x0a,
	DW_OP_const2s = 0x0b,
	DW_OP_const4u = 0x0c,
	DW_OP_const4s = 0x0d,
	DW_OP_const8u = 0x0e,
	DW_OP_const8s = 0x0f,
	DW_OP_constu = 0x10,
	DW_OP_consts = 0x11,
	DW_OP_dup = 0x12,
	DW_OP_drop = 0x13,
	DW_OP_over = 0x14,
	DW_OP_pick = 0x15,
	DW_OP_swap = 0x16,
	DW_OP_rot = 0x17,
	DW_OP_abs = 0x19,
	DW_OP_and = 0x1a,
	DW_OP_div = 0x1b,
	DW_OP_minus = 0x1c,
	DW_OP_mod = 0x1d,
	DW_OP_mul = 0x1e,
	DW_OP_neg = 0x1f,
	DW_OP_not = 0x20,
	DW_OP_or = 0x21,
	DW_OP_plus = 0x22,
	DW_OP_plus_uconst = 0x23,
	DW_OP_shl = 0x24,
	DW_OP_shr = 0x25,
	DW_OP_shra = 0x26,
	DW_OP_xor = 0x27,
	DW_OP_bra = 0x28,
	DW_OP_eq = 0x29,
	DW_OP_ge = 0x2a,
	DW_OP_gt = 0x2b,
	DW_OP_le = 0x2c,
	DW_OP_lt = 0x2d,
	DW_OP_ne = 0x2e,
	DW_OP_skip = 0x2f,
	DW_OP_lit0 = 0x30,
	DW_OP_lit31 = 0x4f,
	DW_OP_breg0 = 0x70,
	DW_OP_breg31 = 0x8f,
	DW_OP_bregx = 0x92,
	DW_OP_deref_size = 0x94,
	DW_OP_nop = 0x96,
	DW_OP_addrx = 0xa1,
	DW_OP_GNU_addr_index = 0xfb,
};

enum {
	DW_UT_compile = 0x01,
	DW_UT_type = 0x02,
	DW_UT_partial = 0x03,
	DW_UT_skeleton = 0x04,
	DW_UT_split_compile = 0x05,
	DW_UT_split_type = 0x06,
};

enum {
	DW_RLE_end_of_list = 0x00,
	DW_RLE_base_addressx = 0x01,
	DW_RLE_startx_endx = 0x02,
	DW_RLE_startx_length = 0x03,
	DW_RLE_offset_pair = 0x04,
	DW_RLE_base_address = 0x05,
	DW_RLE_start_end = 0x06,
	DW_RLE_start_length = 0x07,
};

enum {
	DW_LNS_extended_op = 0x00,
	DW_LNS_copy = 0x01,
	DW_LNS_advance_pc = 0x02,
	DW_LNS_advance_line = 0x03,
	DW_LNS_set_file = 0x04,
	DW_LNS_set_column = 0x05,
	DW_LNS_negate_stmt = 0x06,
	DW_LNS_set_basic_block = 0x07,
	DW_LNS_const_add_pc = 0x08,
	DW_LNS_fixed_advance_pc = 0x09,
	DW_LNS_set_prologue_end = 0x0a,
	DW_LNS_set_epilogue_begin = 0x0b,
	DW_LNS_set_isa = 0x0c,

	DW_LNE_end_sequence = 0x01,
	DW_LNE_set_address = 0x02,
	DW_LNE_define_file = 0x03,
	DW_LNE_set_discriminator = 0x04,

	DW_LNCT_path = 0x1,
	DW_LNCT_directory_index = 0x2,
	DW_LNCT_LLVM_source = 0x2001,
};

enum {
	DW_LANG_C89 = 0x0001,
	DW_LANG_C = 0x0002,
	DW_LANG_Ada83 = 0x0003,
	DW_LANG_C_plus_plus = 0x0004,
	DW_LANG_C99 = 0x000c,
	DW_LANG_Ada95 = 0x000d,
	DW_LANG_C_plus_plus_03 = 0x0019,
	DW_LANG_C_plus_plus_11 = 0x001a,
	DW_LANG_Rust = 0x001c,
	DW_LANG_C11 = 0x001d,
	DW_LANG_C_plus_plus_14 = 0x0021,
	DW_LANG_C_plus_plus_17 = 0x002a,
	DW_LANG_C_plus_plus_20 = 0x002b,
	DW_LANG_C17 = 0x002c,
	DW_LANG_Ada2005 = 0x002e,
	DW_LANG_Ada2012 = 0x002f,
	DW_LANG_Mips_Assembler = 0x8001,
};

/* The sections of one DWARF file, in the order in which errors and tests list them. */
enum fathom_copy_dwarf_section {
	FATHOM_DEBUG_INFO,
	FATHOM_DEBUG_ABBREV,
	FATHOM_DEBUG_LINE,
	FATHOM_DEBUG_STR,
	FATHOM_DEBUG_LINE_STR,
	FATHOM_DEBUG_STR_OFFSETS,
	FATHOM_DEBUG_ADDR,
	FATHOM_DEBUG_RANGES,
	FATHOM_DEBUG_RNGLISTS,
	FATHOM_DEBUG_ARANGES,
	FATHOM_DEBUG_NAMES,
	FATHOM_GDB_INDEX,
	FATHOM_DEBUG_CU_INDEX, /* package files (.dwp) only */
	FATHOM_DWARF_SECTIONS
};

/* Returns the section's name without dot and without ".dwo", such as "debug_info". */
const char *fathom_copy_dwarf_section_name(enum fathom_copy_dwarf_section section);

/* Views of the sections of one file; absent ones are empty. */
struct fathom_copy_dwarf {
	struct fathom_copy_bytes section[FATHOM_DWARF_SECTIONS];
	const struct fathom_copy_dwarf *sup; /* the supplementary (dwz) file, or NULL */
	uint64_t serial; /* unique among views of the session: a key for what is kept by view */
	uint64_t bias;   /* see fathom_copy_dwarf_address(); not 0 if prelink has moved the program */
	bool swap;
};

/*
 * Returns the program's address for @address of its debug information: prelink moves libraries but
 * not their debug files. 0 and 1 are tombstones and stay.
 */
static inline uint64_t fathom_copy_dwarf_address(const struct fathom_copy_dwarf *d, uint64_t address)
{
	return address > 1 ? address + d->bias : address;
}

#endif

/* Pointer encodings (LSB 5.0, 10.5.1): a format, a base and a flag. */
enum {
	DW_EH_PE_absptr = 0x00,
	DW_EH_PE_uleb128 = 0x01,
	DW_EH_PE_udata2 = 0x02,
	DW_EH_PE_udata4 = 0x03,
	DW_EH_PE_udata8 = 0x04,
	DW_EH_PE_signed = 0x08,
	DW_EH_PE_sleb128 = 0x09,
	DW_EH_PE_sdata2 = 0x0a,
	DW_EH_PE_sdata4 = 0x0b,
	DW_EH_PE_sdata8 = 0x0c,
	DW_EH_PE_pcrel = 0x10,
	DW_EH_PE_textrel = 0x20,
	DW_EH_PE_datarel = 0x30,
	DW_EH_PE_funcrel = 0x40,
	DW_EH_PE_aligned = 0x50,
	DW_EH_PE_indirect = 0x80,
	DW_EH_PE_omit = 0xff,
};

/* One section of call frame information. Addresses are svma. */
struct fathom_copy_cfi {
	struct fathom_copy_bytes section;
	uint64_t svma;      /* of the section's first byte, for DW_EH_PE_pcrel */
	uint64_t text_svma; /* of .text, for DW_EH_PE_textrel; 0 if unknown */
	uint64_t data_svma; /* of .got, for DW_EH_PE_datarel; 0 if unknown */
	uint8_t address_size;
	bool is_eh;   /* .eh_frame, not .debug_frame */
	bool is_open; /* the section's size is unknown: its first terminator ends it */
	bool swap;
};

/* A common information entry. Strings and instructions are borrowed from the section. */
struct fathom_copy_cie {
	struct fathom_copy_cfi cfi; /* the section, with the address size of this CIE */
	uint64_t off;          /* in the section */
	uint64_t code_alignment;
	int64_t data_alignment;
	uint64_t return_register;
	uint64_t personality; /* svma of the routine or, with DW_EH_PE_indirect, of a pointer to it
			       */
	struct fathom_copy_str augmentation;
	struct fathom_copy_bytes instructions; /* the initial ones */
	uint8_t version;
	uint8_t segment_size;
	uint8_t pointer_encoding;     /* of the bounds of FDEs */
	uint8_t lsda_encoding;        /* DW_EH_PE_omit: no FDE has an LSDA */
	uint8_t personality_encoding; /* DW_EH_PE_omit: there is no personality routine */
	bool has_data;                /* 'z': FDEs state the size of their augmentation data */
	bool is_signal_frame;         /* 'S': the caller's pc is exact */
	bool uses_b_key;              /* 'B': return addresses are signed with aarch64's key B */
	bool has_tagged_stack;        /* 'G': the frame has memory tags (aarch64's MTE) */
	bool is_unknown; /* the augmentation was read up to a letter or a base that is unknown */
};

/* A frame description entry: how to unwind one range of code. */
struct fathom_copy_fde {
	const struct fathom_copy_cie *cie;
	uint64_t off; /* in the section */
	uint64_t low;
	uint64_t high;
	uint64_t lsda; /* svma of it or, with DW_EH_PE_indirect, of a pointer to it */
	struct fathom_copy_bytes instructions;
	bool has_lsda;
	bool is_damaged; /* the augmentation data cannot be read: only the bounds are known */
};

/* The head of a CIE or FDE. */
struct fathom_copy_cfi_entry {
	uint64_t off;     /* in the section */
	uint64_t cie_off; /* of an FDE's CIE, or of the CIE itself */
	struct fathom_copy_cursor body;
	bool is_cie;
};

/* A walk over all entries. */
struct fathom_copy_cfi_reader {
	const struct fathom_copy_cfi *cfi;
	struct fathom_copy_cursor c;
};

void fathom_copy_cfi_reader_init(struct fathom_copy_cfi_reader *r, const struct fathom_copy_cfi *cfi);

/* Reads the next entry: FATHOM_OK, FATHOM_END, or an error. Skips terminators before the end. */
fathom_err fathom_copy_cfi_next(struct fathom_copy_cfi_reader *r, struct fathom_copy_cfi_entry *ret,
			   struct fathom_errinfo *reterr);

/* Reads the entry at @off: FATHOM_OK, FATHOM_END if it is a terminator, or an error. */
fathom_err fathom_copy_cfi_at(const struct fathom_copy_cfi *cfi, uint64_t off, struct fathom_copy_cfi_entry *ret);

/*
 * Reads the CIE at @off. Returns FATHOM_E_UNSUPPORTED if its version, its address or segment size,
 * or the encoding of its FDEs' bounds is unknown: its FDEs cannot be read then. Other errors are
 * damage.
 */
fathom_err fathom_copy_cie_read(const struct fathom_copy_cfi *cfi, uint64_t off, struct fathom_copy_cie *ret);

/* Reads the FDE @e, whose CIE is @cie. An FDE without code has a low that is not below its high. */
fathom_err fathom_copy_fde_read(const struct fathom_copy_cfi_entry *e, const struct fathom_copy_cie *cie,
			   struct fathom_copy_fde *ret);

/*
 * Reads the svma of .eh_frame from the head of @header (.eh_frame_hdr at @header_svma). @cfi is of
 * the same file; only its sizes and bases are used. Returns an error if it is unknown.
 */
fathom_err fathom_copy_cfi_section(const struct fathom_copy_cfi *cfi, struct fathom_copy_bytes header,
			      uint64_t header_svma, uint64_t *ret_svma);

/*
 * Reads an address as the bounds of FDEs are encoded, at @c in the section of @cie, as
 * DW_CFA_set_loc has one. FATHOM_E_CORRUPT if it is cut off.
 */
fathom_err fathom_copy_cie_pointer(const struct fathom_copy_cie *cie, struct fathom_copy_cursor *c,
			      uint64_t *ret_svma);

/* Where the sorted table of an .eh_frame_hdr is. Its rows are two words (fathom_copy_cfi_table_word()).
 */
struct fathom_copy_cfi_table {
	uint64_t off;   /* in the header */
	uint64_t count; /* rows */
};

/*
 * Finds the sorted table behind the head of @header (.eh_frame_hdr at @header_svma), of which
 * FATHOM_CFI_HEAD bytes are enough. FATHOM_E_UNSUPPORTED if there is none, or one of another kind
 * than all linkers write.
 */
fathom_err fathom_copy_cfi_find_table(const struct fathom_copy_cfi *cfi, struct fathom_copy_bytes header,
				 uint64_t header_svma, struct fathom_copy_cfi_table *ret);

/* Bytes of the longest head of an .eh_frame_hdr: four encodings, an address, a number. */
#define FATHOM_CFI_HEAD 20

/* Bytes of a row of the sorted table: where a function starts, and where its FDE is. */
#define FATHOM_CFI_TABLE_ROW 8

/* Returns the svma in word @i of @table, of the header at @header_svma. */
uint64_t fathom_copy_cfi_table_word(const struct fathom_copy_cfi *cfi, const uint8_t *table,
			       uint64_t header_svma, uint64_t i);

/*
 * Searches the sorted table of @header (.eh_frame_hdr at @header_svma) for @pc. Returns the offset
 * of the FDE that starts last at or before @pc; FATHOM_END if none does; or an error if there is no
 * table, if it is not of the kind that all linkers write, or if it is another section's.
 */
fathom_err fathom_copy_cfi_search(const struct fathom_copy_cfi *cfi, struct fathom_copy_bytes header,
			     uint64_t header_svma, uint64_t pc, uint64_t *ret_off);

#endif


static const char *section_name(const struct fathom_copy_cfi *cfi)
{
	return cfi->is_eh ? ".eh_frame" : ".debug_frame";
}

static uint64_t truncate_address(const struct fathom_copy_cfi *cfi, uint64_t address)
{
	return cfi->address_size == 8 ? address
				      : address & ((UINT64_C(1) << (8 * cfi->address_size)) - 1);
}

/* The offset of @c in the section of @cfi. */
static uint64_t offset_of(const struct fathom_copy_cursor *c, const struct fathom_copy_cfi *cfi)
{
	return (uint64_t)(c->p - cfi->section.data);
}

/* Reads an encoded pointer without adding its base. */
static uint64_t read_value(struct fathom_copy_cursor *c, const struct fathom_copy_cfi *cfi, uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_signed: /* differs only in bits that no address has */
		return cur_uint(c, cfi->address_size);
	case DW_EH_PE_uleb128:
		return cur_uleb(c);
	case DW_EH_PE_udata2:
		return cur_u16(c);
	case DW_EH_PE_udata4:
		return cur_u32(c);
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return cur_u64(c);
	case DW_EH_PE_sleb128:
		return (uint64_t)cur_sleb(c);
	case DW_EH_PE_sdata2:
		return (uint64_t)(int16_t)cur_u16(c);
	case DW_EH_PE_sdata4:
		return (uint64_t)(int32_t)cur_u32(c);
	default:
		cur_fail(c);
		return 0;
	}
}

/* Reads an absolute pointer that stands at the next multiple of its size. */
static uint64_t read_aligned(struct fathom_copy_cursor *c, const struct fathom_copy_cfi *cfi)
{
	const uint64_t here = cfi->svma + offset_of(c, cfi);

	cur_skip(c, -here & (cfi->address_size - 1u));
	return cur_uint(c, cfi->address_size);
}

/*
 * Returns what is added to a pointer of @encoding at address @here, of the FDE of the function at
 * @function (0: of none). UINT64_MAX means that it is unknown.
 */
static uint64_t base_of(const struct fathom_copy_cfi *cfi, uint8_t encoding, uint64_t here,
			uint64_t function)
{
	uint64_t base;

	switch (encoding & 0x70) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_aligned:
		return 0;
	case DW_EH_PE_pcrel:
		return here;
	case DW_EH_PE_textrel:
		base = cfi->text_svma;
		break;
	case DW_EH_PE_datarel:
		base = cfi->data_svma;
		break;
	case DW_EH_PE_funcrel:
		base = function;
		break;
	default:
		base = 0;
	}
	return base ? base : UINT64_MAX;
}

/* Returns whether the bounds of FDEs can be read with @encoding. */
static bool is_readable(const struct fathom_copy_cfi *cfi, uint8_t encoding)
{
	const uint8_t format = encoding & 0x0f;

	/* A pointer to the bounds is in memory, not in the section. */
	return !(encoding & DW_EH_PE_indirect) &&
	       (format <= DW_EH_PE_udata8 ||
		(format >= DW_EH_PE_signed && format <= DW_EH_PE_sdata8)) &&
	       base_of(cfi, encoding, 0, 0) != UINT64_MAX;
}

/* An encoded pointer that was read. */
struct pointer {
	uint64_t address;
	bool is_null;    /* 0 before the base is added: it leads nowhere */
	bool is_unknown; /* its base is unknown */
};

static struct pointer read_pointer(struct fathom_copy_cursor *c, const struct fathom_copy_cfi *cfi,
				   uint8_t encoding, uint64_t function)
{
	const uint64_t here = cfi->svma + offset_of(c, cfi);
	const uint64_t base = base_of(cfi, encoding, here, function);
	const uint64_t value = (encoding & 0x70) == DW_EH_PE_aligned ? read_aligned(c, cfi)
								     : read_value(c, cfi, encoding);

	return (struct pointer){ .address = truncate_address(cfi, base + value),
				 .is_null = !value,
				 .is_unknown = base == UINT64_MAX };
}

/* Reads the encoding of the personality routine and its address. */
static void read_personality(struct fathom_copy_cursor *c, struct fathom_copy_cie *cie)
{
	struct pointer p;

	cie->personality_encoding = cur_u8(c);
	if (cie->personality_encoding == DW_EH_PE_omit)
		return;
	p = read_pointer(c, &cie->cfi, cie->personality_encoding, 0);
	cie->is_unknown |= p.is_unknown;
	cie->personality = p.is_unknown ? 0 : p.address;
}

/*
 * Reads the augmentation data of @letters, up to an unknown one: the size of its data is unknown.
 * Returns false if the encoding of the bounds of FDEs stands behind it.
 */
static bool read_augmentation(struct fathom_copy_cursor *c, struct fathom_copy_str letters,
			      struct fathom_copy_cie *cie)
{
	for (uint32_t i = 0; i < letters.size && cur_ok(c); i++) {
		switch (letters.data[i]) {
		case 'L':
			cie->lsda_encoding = cur_u8(c);
			break;
		case 'R':
			cie->pointer_encoding = cur_u8(c);
			break;
		case 'P':
			read_personality(c, cie);
			break;
		case 'S':
			cie->is_signal_frame = true;
			break;
		case 'B':
			cie->uses_b_key = true;
			break;
		case 'G':
			cie->has_tagged_stack = true;
			break;
		default:
			cie->is_unknown = true;
			for (; i < letters.size; i++)
				if (letters.data[i] == 'R')
					return false;
		}
	}
	return true;
}

/* Reads the alignments and the return address register. */
static void read_factors(struct fathom_copy_cursor *c, struct fathom_copy_cie *cie)
{
	cie->code_alignment = cur_uleb(c);
	cie->data_alignment = cur_sleb(c);
	cie->return_register = cie->version == 1 ? cur_u8(c) : cur_uleb(c);
}

/* Reads the sizes that version 4 adds; returns false if no machine has them. */
static bool read_sizes(struct fathom_copy_cursor *c, struct fathom_copy_cie *cie)
{
	cie->cfi.address_size = cur_u8(c);
	cie->segment_size = cur_u8(c);
	return (cie->cfi.address_size == 8 || cie->cfi.address_size == 4 ||
		cie->cfi.address_size == 2) &&
	       cie->segment_size <= 8;
}

fathom_err fathom_copy_cie_read(const struct fathom_copy_cfi *cfi, uint64_t off, struct fathom_copy_cie *ret)
{
	struct fathom_copy_cfi_entry e;
	struct fathom_copy_cursor data;
	struct fathom_copy_str letters;
	bool known;

	if (fathom_copy_cfi_at(cfi, off, &e) || !e.is_cie)
		return FATHOM_E_CORRUPT;
	*ret = (struct fathom_copy_cie){ .cfi = *cfi,
				    .off = off,
				    .pointer_encoding = DW_EH_PE_absptr,
				    .lsda_encoding = DW_EH_PE_omit,
				    .personality_encoding = DW_EH_PE_omit };
	ret->version = cur_u8(&e.body);
	if (ret->version != 1 && ret->version != 3 && ret->version != 4)
		return FATHOM_E_UNSUPPORTED;
	ret->augmentation = letters = cur_str(&e.body);
	if (str_starts(letters, "eh")) { /* g++ 2 put a pointer to its own table here */
		cur_skip(&e.body, cfi->address_size);
		letters = (struct fathom_copy_str){ letters.data + 2, letters.size - 2 };
	}
	if (ret->version == 4 && !read_sizes(&e.body, ret))
		return FATHOM_E_UNSUPPORTED;
	read_factors(&e.body, ret);
	ret->has_data = str_starts(letters, "z");
	if (ret->has_data) {
		data = cur_sub(&e.body, cur_uleb(&e.body));
		letters = (struct fathom_copy_str){ letters.data + 1, letters.size - 1 };
		known = read_augmentation(&data, letters, ret);
		if (!cur_ok(&data))
			return FATHOM_E_CORRUPT;
	} else {
		known = read_augmentation(&e.body, letters, ret);
	}
	if (!cur_ok(&e.body))
		return FATHOM_E_CORRUPT;
	if (ret->has_data || !ret->is_unknown) /* else where they start is unknown */
		ret->instructions = (struct fathom_copy_bytes){ e.body.p, cur_left(&e.body) };
	return known && is_readable(cfi, ret->pointer_encoding) ? FATHOM_OK : FATHOM_E_UNSUPPORTED;
}

/* Reads the head of the entry at @c and moves @c past the entry. */
static fathom_err read_entry(const struct fathom_copy_cfi *cfi, struct fathom_copy_cursor *c,
			     struct fathom_copy_cfi_entry *ret)
{
	const uint64_t off = offset_of(c, cfi);
	uint8_t offset_size;
	const uint64_t length = cur_initial_length(c, &offset_size);
	struct fathom_copy_cursor body = cur_sub(c, length);
	const uint64_t here = offset_of(&body, cfi);
	uint64_t id;

	if (!cur_ok(c))
		return FATHOM_E_CORRUPT;
	if (!length) /* crtend.o ends .eh_frame with one, but more may follow */
		return FATHOM_END;
	id = cfi->is_eh ? cur_u32(&body) : cur_uint(&body, offset_size);
	if (!cur_ok(&body))
		return FATHOM_E_CORRUPT;
	ret->off = off;
	ret->is_cie = cfi->is_eh ? !id : id == (offset_size == 8 ? UINT64_MAX : UINT32_MAX);
	if (ret->is_cie)
		ret->cie_off = off;
	else /* in .eh_frame a distance, which is negative if the CIE comes later */
		ret->cie_off = cfi->is_eh ? here - (uint64_t)(int32_t)id : id;
	ret->body = body;
	return FATHOM_OK;
}

fathom_err fathom_copy_cfi_at(const struct fathom_copy_cfi *cfi, uint64_t off, struct fathom_copy_cfi_entry *ret)
{
	struct fathom_copy_cursor c = cur_init(cfi->section, cfi->swap);

	cur_skip(&c, off);
	return cur_ok(&c) ? read_entry(cfi, &c, ret) : FATHOM_E_CORRUPT;
}

void fathom_copy_cfi_reader_init(struct fathom_copy_cfi_reader *r, const struct fathom_copy_cfi *cfi)
{
	r->cfi = cfi;
	r->c = cur_init(cfi->section, cfi->swap);
}

fathom_err fathom_copy_cfi_next(struct fathom_copy_cfi_reader *r, struct fathom_copy_cfi_entry *ret,
			   struct fathom_errinfo *reterr)
{
	while (cur_left(&r->c)) {
		const uint64_t at = offset_of(&r->c, r->cfi);
		const fathom_err err = read_entry(r->cfi, &r->c, ret);

		if (err < 0) {
			cur_fail(&r->c);
			return fathom_copy_fail(reterr, err, section_name(r->cfi), at,
					   "damaged call frame description");
		}
		if (err == FATHOM_OK)
			return err;
		if (r->cfi->is_open)
			r->c.p = r->c.end;
	}
	return FATHOM_END;
}

/* Reads the pointer to the LSDA of @fde from its augmentation data. */
static void read_lsda(struct fathom_copy_cursor *c, const struct fathom_copy_cie *cie, struct fathom_copy_fde *fde)
{
	struct pointer p;

	if (cie->lsda_encoding == DW_EH_PE_omit || cie->is_unknown || !cur_left(c))
		return;
	p = read_pointer(c, &cie->cfi, cie->lsda_encoding, fde->low);
	if (p.is_unknown)
		cur_fail(c);
	fde->has_lsda = cur_ok(c) && !p.is_null;
	fde->lsda = fde->has_lsda ? p.address : 0;
}

fathom_err fathom_copy_fde_read(const struct fathom_copy_cfi_entry *e, const struct fathom_copy_cie *cie,
			   struct fathom_copy_fde *ret)
{
	struct fathom_copy_cursor c = e->body;
	struct fathom_copy_cursor data;

	ret->cie = cie;
	ret->off = e->off;
	ret->lsda = 0;
	ret->has_lsda = false;
	cur_skip(&c, cie->segment_size);
	ret->low = read_pointer(&c, &cie->cfi, cie->pointer_encoding, 0).address;
	/* Lengths are encoded like addresses, but have no base. */
	ret->high = ret->low + read_value(&c, &cie->cfi, cie->pointer_encoding);
	if (!cur_ok(&c))
		return FATHOM_E_CORRUPT;
	if (cie->has_data) {
		data = cur_sub(&c, cur_uleb(&c));
		read_lsda(&data, cie, ret);
		ret->is_damaged = !cur_ok(&data);
	} else {
		read_lsda(&c, cie, ret);
		ret->is_damaged = !cur_ok(&c);
	}
	ret->instructions = (struct fathom_copy_bytes){ c.p, cur_left(&c) };
	return FATHOM_OK;
}

fathom_err fathom_copy_cie_pointer(const struct fathom_copy_cie *cie, struct fathom_copy_cursor *c,
			      uint64_t *ret_svma)
{
	const struct pointer p = read_pointer(c, &cie->cfi, cie->pointer_encoding, 0);

	if (!cur_ok(c))
		return FATHOM_E_CORRUPT;
	*ret_svma = p.address;
	return FATHOM_OK;
}

/* The sorted table: pairs of a function and its FDE, both sdata4 relative to the header. */
#define HEADER_SIZE    4
#define TABLE_ENCODING (DW_EH_PE_datarel | DW_EH_PE_sdata4)

/* The parts of .eh_frame_hdr before its table. */
struct header {
	struct fathom_copy_cursor c; /* what is behind them */
	uint64_t section;       /* svma of .eh_frame */
	uint64_t count;         /* of the table's pairs */
	uint8_t table_encoding;
	bool has_count;
};

/* Reads the head of @bytes, .eh_frame_hdr at @svma of the kind of file that @cfi is in. */
static fathom_err read_header(const struct fathom_copy_cfi *cfi, struct fathom_copy_bytes bytes,
			      uint64_t svma, struct header *ret)
{
	struct fathom_copy_cfi view = *cfi;
	struct pointer section;
	const uint8_t *h;

	ret->c = cur_init(bytes, cfi->swap);
	h = cur_take(&ret->c, HEADER_SIZE);
	if (!h || h[0] != 1 || h[1] & DW_EH_PE_indirect)
		return FATHOM_E_UNSUPPORTED;
	view.section = bytes;
	view.svma = view.data_svma = svma;
	section = read_pointer(&ret->c, &view, h[1], 0);
	if (!cur_ok(&ret->c) || section.is_unknown)
		return FATHOM_E_CORRUPT;
	ret->section = section.address;
	ret->table_encoding = h[3];
	ret->has_count = h[2] != DW_EH_PE_omit;
	ret->count = ret->has_count ? read_value(&ret->c, &view, h[2]) : 0;
	return FATHOM_OK;
}

fathom_err fathom_copy_cfi_section(const struct fathom_copy_cfi *cfi, struct fathom_copy_bytes header,
			      uint64_t header_svma, uint64_t *ret_svma)
{
	struct header h;

	FATHOM_TRY(read_header(cfi, header, header_svma, &h));
	*ret_svma = h.section;
	return FATHOM_OK;
}

/* A word is a distance from the header. */
uint64_t fathom_copy_cfi_table_word(const struct fathom_copy_cfi *cfi, const uint8_t *table,
			       uint64_t header_svma, uint64_t i)
{
	const int32_t distance = (int32_t)load_u32(table + 4 * i, cfi->swap);

	return truncate_address(cfi, header_svma + (uint64_t)distance);
}

fathom_err fathom_copy_cfi_find_table(const struct fathom_copy_cfi *cfi, struct fathom_copy_bytes header,
				 uint64_t header_svma, struct fathom_copy_cfi_table *ret)
{
	struct header h;

	FATHOM_TRY(read_header(cfi, header, header_svma, &h));
	if (!h.has_count || h.table_encoding != TABLE_ENCODING)
		return FATHOM_E_UNSUPPORTED;
	if (!cur_ok(&h.c))
		return FATHOM_E_CORRUPT;
	*ret = (struct fathom_copy_cfi_table){ (uint64_t)(h.c.p - header.data), h.count };
	return FATHOM_OK;
}

fathom_err fathom_copy_cfi_search(const struct fathom_copy_cfi *cfi, struct fathom_copy_bytes header,
			     uint64_t header_svma, uint64_t pc, uint64_t *ret_off)
{
	struct header h;
	uint64_t upto;
	uint64_t svma;

	FATHOM_TRY(read_header(cfi, header, header_svma, &h));
	if (!h.has_count || h.table_encoding != TABLE_ENCODING)
		return FATHOM_E_UNSUPPORTED;
	if (!cur_ok(&h.c) || h.section != cfi->svma || h.count > cur_left(&h.c) / 8)
		return FATHOM_E_CORRUPT;
	upto = FATHOM_BISECT(h.count, i,
			     fathom_copy_cfi_table_word(cfi, h.c.p, header_svma, 2 * i) <= pc);
	if (!upto)
		return FATHOM_END;
	svma = fathom_copy_cfi_table_word(cfi, h.c.p, header_svma, 2 * upto - 1);
	if (svma < cfi->svma || svma - cfi->svma >= cfi->section.size)
		return FATHOM_END;
	*ret_off = svma - cfi->svma;
	return FATHOM_OK;
}

/* src/safe/dwarf/cfi_write.c */
/* SPDX-License-Identifier: MIT */
/* SPDX-License-Identifier: MIT */
/*
 * Writes call frame information: CIEs and FDEs of an .eh_frame (LSB 5.0, 10.6.1), 32-bit DWARF,
 * addresses as they are (DW_EH_PE_absptr), or relative to where they stand (DW_EH_PE_pcrel |
 * DW_EH_PE_sdata4) for files, for machines with words of 64 bits and our byte order.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_DWARF_CFI_WRITE_H
#define FATHOM_DWARF_CFI_WRITE_H

/* SPDX-License-Identifier: MIT */
/* The numbers of call frame instructions: DWARF's, GNU's and those of processors. */
#ifndef FATHOM_DWARF_CFA_H
#define FATHOM_DWARF_CFA_H

/* Instructions (DWARF 5, 7.24); the first three have an operand in their low six bits. */
enum {
	DW_CFA_advance_loc = 0x40,
	DW_CFA_offset = 0x80,
	DW_CFA_restore = 0xc0,
	DW_CFA_nop = 0x00,
	DW_CFA_set_loc = 0x01,
	DW_CFA_advance_loc1 = 0x02,
	DW_CFA_advance_loc2 = 0x03,
	DW_CFA_advance_loc4 = 0x04,
	DW_CFA_offset_extended = 0x05,
	DW_CFA_restore_extended = 0x06,
	DW_CFA_undefined = 0x07,
	DW_CFA_same_value = 0x08,
	DW_CFA_register = 0x09,
	DW_CFA_remember_state = 0x0a,
	DW_CFA_restore_state = 0x0b,
	DW_CFA_def_cfa = 0x0c,
	DW_CFA_def_cfa_register = 0x0d,
	DW_CFA_def_cfa_offset = 0x0e,
	DW_CFA_def_cfa_expression = 0x0f,
	DW_CFA_expression = 0x10,
	DW_CFA_offset_extended_sf = 0x11,
	DW_CFA_def_cfa_sf = 0x12,
	DW_CFA_def_cfa_offset_sf = 0x13,
	DW_CFA_val_offset = 0x14,
	DW_CFA_val_offset_sf = 0x15,
	DW_CFA_val_expression = 0x16,
	DW_CFA_MIPS_advance_loc8 = 0x1d,
	DW_CFA_AARCH64_negate_ra_state_with_pc = 0x2c,
	DW_CFA_AARCH64_negate_ra_state = 0x2d, /* of SPARC: DW_CFA_GNU_window_save */
	DW_CFA_GNU_args_size = 0x2e,
	DW_CFA_GNU_negative_offset_extended = 0x2f,
};

#endif

/* Bytes behind each other. What does not fit is counted, not written: with cap 0 it measures. */
struct fathom_copy_out {
	uint8_t *at;
	size_t n;
	size_t cap;
	size_t origin; /* offset that alignment counts from */
};

static inline void fathom_copy_out_bytes(struct fathom_copy_out *o, const void *bytes, size_t size)
{
	if (size && range_inside(o->n, size, o->cap))
		memcpy(o->at + o->n, bytes, size);
	o->n += size;
}

/* Appends @bytes, of this process. */
static inline void fathom_copy_out_range(struct fathom_copy_out *o, struct fathom_copy_bytes bytes)
{
	fathom_copy_out_bytes(o, bytes.data, (size_t)bytes.size);
}

void fathom_copy_out_u8(struct fathom_copy_out *o, uint8_t value);
void fathom_copy_out_u16(struct fathom_copy_out *o, uint16_t value);
void fathom_copy_out_u32(struct fathom_copy_out *o, uint32_t value);
void fathom_copy_out_u64(struct fathom_copy_out *o, uint64_t value);
void fathom_copy_out_uleb(struct fathom_copy_out *o, uint64_t value);
void fathom_copy_out_sleb(struct fathom_copy_out *o, int64_t value);

/* Appends zeros until the bytes from the origin on are a multiple of @alignment, a power of 2. */
void fathom_copy_out_align(struct fathom_copy_out *o, size_t alignment);

/* Writes @value over 4 bytes at @off, if they were written. */
void fathom_copy_out_patch(struct fathom_copy_out *o, size_t off, uint32_t value);

/* Appends a rule from the place @delta bytes further on: nothing for 0. */
void fathom_copy_cfa_advance(struct fathom_copy_out *o, uint32_t delta);

/* Appends that @reg is saved @words words below the CFA, of CIEs whose data alignment is -8. */
void fathom_copy_cfa_saved(struct fathom_copy_out *o, uint16_t reg, uint32_t words);

/* Appends that @reg has the rule of its CIE again. */
void fathom_copy_cfa_restore(struct fathom_copy_out *o, uint16_t reg);

/* What a CIE says. */
struct fathom_copy_cie_form {
	struct fathom_copy_bytes instructions; /* the initial ones */
	uint64_t personality;             /* address; 0: none */
	uint64_t code_alignment;
	int64_t data_alignment;
	uint64_t return_register;
	uint8_t has_lsda;
	uint8_t is_signal_frame;
	uint8_t uses_b_key;
	/* addresses of code are of 4 bytes, relative to where they stand; then no personality */
	uint8_t is_relative;
};

/* Appends the CIE, padded to 8 bytes. Returns its offset. */
size_t fathom_copy_cie_write(struct fathom_copy_out *o, const struct fathom_copy_cie_form *cie);

/*
 * Appends an FDE, padded to 8 bytes, of the CIE at offset @cie_off. @low is an address, or relative
 * to the field that has it; @lsda is written if @cie has one. Returns its offset.
 */
size_t fathom_copy_fde_write(struct fathom_copy_out *o, const struct fathom_copy_cie_form *cie, size_t cie_off,
			uint64_t low, uint64_t size, uint64_t lsda,
			struct fathom_copy_bytes instructions);

#endif

void fathom_copy_out_u8(struct fathom_copy_out *o, uint8_t value)
{
	fathom_copy_out_bytes(o, &value, sizeof value);
}

void fathom_copy_out_u16(struct fathom_copy_out *o, uint16_t value)
{
	fathom_copy_out_bytes(o, &value, sizeof value);
}

void fathom_copy_out_u32(struct fathom_copy_out *o, uint32_t value)
{
	fathom_copy_out_bytes(o, &value, sizeof value);
}

void fathom_copy_out_u64(struct fathom_copy_out *o, uint64_t value)
{
	fathom_copy_out_bytes(o, &value, sizeof value);
}

void fathom_copy_out_uleb(struct fathom_copy_out *o, uint64_t value)
{
	while (value > 0x7f) {
		fathom_copy_out_u8(o, (uint8_t)(value | 0x80));
		value >>= 7;
	}
	fathom_copy_out_u8(o, (uint8_t)value);
}

void fathom_copy_out_sleb(struct fathom_copy_out *o, int64_t value)
{
	while (value < -0x40 || value > 0x3f) {
		fathom_copy_out_u8(o, (uint8_t)((value & 0x7f) | 0x80));
		value >>= 7;
	}
	fathom_copy_out_u8(o, (uint8_t)(value & 0x7f));
}

void fathom_copy_out_align(struct fathom_copy_out *o, size_t alignment)
{
	while ((o->n - o->origin) & (alignment - 1))
		fathom_copy_out_u8(o, 0);
}

void fathom_copy_out_patch(struct fathom_copy_out *o, size_t off, uint32_t value)
{
	if (range_inside(off, sizeof value, o->cap))
		memcpy(o->at + off, &value, sizeof value);
}

void fathom_copy_cfa_advance(struct fathom_copy_out *o, uint32_t delta)
{
	if (!delta)
		return;
	if (delta < 0x40) {
		fathom_copy_out_u8(o, (uint8_t)(DW_CFA_advance_loc | delta));
	} else if (delta <= UINT8_MAX) {
		fathom_copy_out_u8(o, DW_CFA_advance_loc1);
		fathom_copy_out_u8(o, (uint8_t)delta);
	} else if (delta <= UINT16_MAX) {
		fathom_copy_out_u8(o, DW_CFA_advance_loc2);
		fathom_copy_out_u16(o, (uint16_t)delta);
	} else {
		fathom_copy_out_u8(o, DW_CFA_advance_loc4);
		fathom_copy_out_u32(o, delta);
	}
}

void fathom_copy_cfa_saved(struct fathom_copy_out *o, uint16_t reg, uint32_t words)
{
	if (reg < 0x40) {
		fathom_copy_out_u8(o, (uint8_t)(DW_CFA_offset | reg));
	} else {
		fathom_copy_out_u8(o, DW_CFA_offset_extended);
		fathom_copy_out_uleb(o, reg);
	}
	fathom_copy_out_uleb(o, words);
}

void fathom_copy_cfa_restore(struct fathom_copy_out *o, uint16_t reg)
{
	if (reg < 0x40) {
		fathom_copy_out_u8(o, (uint8_t)(DW_CFA_restore | reg));
	} else {
		fathom_copy_out_u8(o, DW_CFA_restore_extended);
		fathom_copy_out_uleb(o, reg);
	}
}

/* Writes the length of the entry at @off: entries end at multiples of 8 bytes. */
static void end_entry(struct fathom_copy_out *o, size_t off)
{
	/* Zeros are DW_CFA_nop. */
	fathom_copy_out_align(o, 8);
	fathom_copy_out_patch(o, off, (uint32_t)(o->n - off - 4));
}

/* The augmentation: z with the encodings that are not the usual ones. */
static void put_augmentation(struct fathom_copy_out *o, const struct fathom_copy_cie_form *cie)
{
	fathom_copy_out_u8(o, 'z');
	if (cie->personality)
		fathom_copy_out_u8(o, 'P');
	if (cie->has_lsda)
		fathom_copy_out_u8(o, 'L');
	fathom_copy_out_u8(o, 'R');
	if (cie->is_signal_frame)
		fathom_copy_out_u8(o, 'S');
	if (cie->uses_b_key)
		fathom_copy_out_u8(o, 'B');
	fathom_copy_out_u8(o, 0);
}

size_t fathom_copy_cie_write(struct fathom_copy_out *o, const struct fathom_copy_cie_form *cie)
{
	const size_t off = o->n;

	fathom_copy_out_u32(o, 0);
	fathom_copy_out_u32(o, 0);
	fathom_copy_out_u8(o, 1); /* version */
	put_augmentation(o, cie);
	fathom_copy_out_uleb(o, cie->code_alignment);
	fathom_copy_out_sleb(o, cie->data_alignment);
	fathom_copy_out_u8(o, (uint8_t)cie->return_register);
	/* DW_EH_PE_absptr is 0. */
	fathom_copy_out_uleb(o, (cie->personality ? 9u : 0) + (cie->has_lsda ? 1u : 0) + 1u);
	if (cie->personality) {
		fathom_copy_out_u8(o, 0);
		fathom_copy_out_u64(o, cie->personality);
	}
	if (cie->has_lsda)
		fathom_copy_out_u8(o, 0);
	fathom_copy_out_u8(o, cie->is_relative ? 0x1b : 0); /* DW_EH_PE_pcrel | DW_EH_PE_sdata4 */
	fathom_copy_out_range(o, cie->instructions);
	end_entry(o, off);
	return off;
}

size_t fathom_copy_fde_write(struct fathom_copy_out *o, const struct fathom_copy_cie_form *cie, size_t cie_off,
			uint64_t low, uint64_t size, uint64_t lsda,
			struct fathom_copy_bytes instructions)
{
	const size_t off = o->n;

	fathom_copy_out_u32(o, 0);
	fathom_copy_out_u32(o, (uint32_t)(off + 4 - cie_off));
	if (cie->is_relative) {
		fathom_copy_out_u32(o, (uint32_t)low);
		fathom_copy_out_u32(o, (uint32_t)size);
	} else {
		fathom_copy_out_u64(o, low);
		fathom_copy_out_u64(o, size);
	}
	fathom_copy_out_uleb(o, cie->has_lsda ? 8 : 0);
	if (cie->has_lsda)
		fathom_copy_out_u64(o, lsda);
	fathom_copy_out_range(o, instructions);
	end_entry(o, off);
	return off;
}

/* src/safe/unwind/row.c */
/* SPDX-License-Identifier: MIT */
/* SPDX-License-Identifier: MIT */
/*
 * Rows: what call frame instructions (DWARF 5, 6.4.2; LSB 5.0, 10.6) say about the registers of a
 * caller at one range of code. Reads the instructions of DWARF 5, of GNU (args_size,
 * negative_offset_extended), MIPS (advance_loc8) and aarch64 (negate_ra_state). Not handled: those
 * of SPARC and AMD GPUs.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_UNWIND_ROW_H
#define FATHOM_UNWIND_ROW_H

/* SPDX-License-Identifier: MIT */
/*
 * Every bound that fathom puts on its input, by name. Input beyond a bound is FATHOM_E_LIMIT (or
 * the reason "limit" of a single answer), never a crash, a hang or unbounded memory.
 */
#ifndef FATHOM_BASE_LIMITS_H
#define FATHOM_BASE_LIMITS_H


/* Section headers of one ELF file; the kernel's largest modules have some 100,000. */
#define FATHOM_MAX_SECTIONS (1u << 24)
/* Longest name of a section: many sections may share one string. */
#define FATHOM_MAX_SECTION_NAME (1u << 14)
/* Symbol tables that the relocations of one section may refer to; usually one. */
#define FATHOM_MAX_RELOCATION_SYMTABS 16
/* Program headers of one ELF file: cores with PN_XNUM hold more than 65,535. */
#define FATHOM_MAX_SEGMENTS (1u << 24)
/* Mappings of a core or a snapshot: most systems allow 65,530, some a million. */
#define FATHOM_MAX_DUMP_MAPPINGS (1u << 21)
/* Ranges of a compressed core that are kept if all does not fit the memory budget. */
#define FATHOM_MAX_CORE_KEEPS (1u << 20)
/* Entries of the dynamic linker's link map. */
#define FATHOM_MAX_LINK_MAPS (1u << 16)
/* Abbreviations of one table. */
#define FATHOM_MAX_ABBREVS (1u << 20)
/* Attributes in one abbreviation table, after joining those that are only skipped. */
#define FATHOM_MAX_ABBREV_STEPS (1u << 22)
/* Depth of the tree of debugging entries. */
#define FATHOM_MAX_DIE_DEPTH 4096
/* Abstract origins and specifications followed from one entry to its name. */
#define FATHOM_MAX_ORIGIN_CHAIN 16
/* Inlined calls nested in one function, as served in one answer. */
#define FATHOM_MAX_INLINE_DEPTH 512
/*
 * Bytes of an entry that is read attribute by attribute, and bytes of its abbreviation's attribute
 * list: many entries may share one list, so reading it for each must stay cheap. Compilers stay
 * below 100.
 */
#define FATHOM_MAX_ENTRY_BYTES     4096
#define FATHOM_MAX_ATTRIBUTE_BYTES 256
/* DW_FORM_indirect that leads to another DW_FORM_indirect. */
#define FATHOM_MAX_INDIRECT 4
/* Entry formats, directories and files in one line table header. */
#define FATHOM_MAX_LINE_FORMATS 64
#define FATHOM_MAX_LINE_FILES   (1u << 20)
/* Entries of range lists read in one walk, plus one for each byte of their sections. */
#define FATHOM_MAX_RANGES (1u << 20)
/* Longest name that is demangled; longer ones are shown as they are. */
#define FATHOM_MAX_MANGLED 16384
/* Longest demangled name; beyond it the mangled one is shown. */
#define FATHOM_MAX_DEMANGLED (1u << 16)
/* Bytes that demangling one name may hold at a time: a few D texts in buffers twice their size. */
#define FATHOM_MAX_DEMANGLE_MEMORY (1u << 20)
/* Longest name of JIT code in a jitdump; bytes of line entries that are read for one function. */
#define FATHOM_MAX_JIT_NAME      (1u << 16)
#define FATHOM_MAX_JITDUMP_LINES (1u << 26)
/*
 * Call frame information of JIT code: bytes of .eh_frame of one function, or of what is between an
 * FDE and its CIE; sections that a program has registered, bytes of each and of all.
 */
#define FATHOM_MAX_JIT_FRAMES        (1u << 20)
#define FATHOM_MAX_REGISTERED        (1u << 18)
#define FATHOM_MAX_REGISTERED_FRAMES (1u << 26)
#define FATHOM_MAX_REGISTERED_BYTES  (UINT64_C(1) << 28)
/* Words of a library's code that may refer to where its lists start. */
#define FATHOM_MAX_CODE_REFERENCES 64
/* GDB's JIT interface: entries of one list, bytes of one symbol file, bytes of all symbol files. */
#define FATHOM_MAX_GDB_ENTRIES (1u << 18)
#define FATHOM_MAX_GDB_SYMFILE (UINT64_C(1) << 28)
#define FATHOM_MAX_GDB_BYTES   (UINT64_C(1) << 30)
/* GDB JIT lists in one process: each library may have one. */
#define FATHOM_MAX_GDB_LISTS 64
/* GDB JIT symbol files that stay open from batch to batch. */
#define FATHOM_MAX_GDB_MODULES 1024
/* How often answers about JIT code are made anew because the code changed meanwhile. */
#define FATHOM_MAX_JIT_ROUNDS 8
/* Jitdumps of one process: it writes one, and has it mapped. */
#define FATHOM_MAX_JITDUMPS 8
/*
 * Modules that a signal handler reads from this process's own memory: entries of the dynamic
 * section, symbols, program headers and notes.
 */
#define FATHOM_MAX_DYNAMIC         1024
#define FATHOM_MAX_DYNAMIC_SYMBOLS (1u << 22)
#define FATHOM_MAX_MEMORY_SEGMENTS 256
#define FATHOM_MAX_MEMORY_NOTES    64
/* Objects of this process that have a registry of published code of their own. */
#define FATHOM_MAX_REGISTRIES 32
/* Overlapping FDEs that are looked at for one address. */
#define FATHOM_MAX_FDE_OVERLAP 64
/*
 * Call frame instructions: states of one FDE that are kept at a time, the CIE's included, and rules
 * of registers in them. Compilers keep two, and at most 12 rules in each.
 */
#define FATHOM_ROW_STATES      8
#define FATHOM_ROW_SAVED_RULES 96
/* One expression of call frame information: operations that are run, and values on its stack. */
#define FATHOM_EXPRESSION_STEPS 1000
#define FATHOM_EXPRESSION_DEPTH 64
/*
 * Call frame information that is read from this process's own memory: bytes of a CIE and of an FDE,
 * in which larger ones are cut off; rows of a table of FDEs; frames that are walked again because a
 * rule needs a register that rules do not follow.
 */
#define FATHOM_MAX_OWN_CIE     256
#define FATHOM_MAX_OWN_FDE     1024
#define FATHOM_MAX_TABLE_ROWS  (1u << 26)
#define FATHOM_MAX_WALKED_ANEW 64
/* Times that a walk may go to another stack below, as fibers and signal stacks do. */
#define FATHOM_MAX_STACK_FALLS 64
/* Code units (bytes, or wider) that one directive of the signal-safe formatter reads. */
#define FATHOM_MAX_FORMAT_TEXT (1u << 16)
/*
 * What threads wait for: threads and children of one process, bytes of a table of sockets, bytes
 * of what the kernel says of an epoll descriptor, descriptors of a call of poll() or select().
 */
#define FATHOM_MAX_WAIT_TASKS       (1u << 16)
#define FATHOM_MAX_SOCKET_TEXT      (1u << 24)
#define FATHOM_MAX_EPOLL_TEXT       (1u << 22)
#define FATHOM_MAX_WAIT_DESCRIPTORS (1u << 16)
/* Bytes of /proc/PID/task/TID/status: a process may be in 65,536 groups. */
#define FATHOM_MAX_TASK_STATUS (1 << 20)
/* Threads of one process: the kernel's own limit of PIDs. */
#define FATHOM_MAX_THREADS_LISTED (1u << 22)
/* How often the threads of a process are listed to stop those that appeared meanwhile. */
#define FATHOM_MAX_LISTINGS 16
/* Frames of all threads of one core; behind them each thread has one. */
#define FATHOM_MAX_STORED_FRAMES (1u << 22)
/* Pages that a snapshot keeps because walks have read them; their bytes. */
#define FATHOM_MAX_KEPT_PAGES (1u << 14)
#define FATHOM_KEPT_PAGE      4096
/* Bytes of a stack that are copied by default, and if no mapping tells where it ends. */
#define FATHOM_MAX_STACK_COPY  (UINT64_C(1) << 24)
#define FATHOM_MAX_STACK_GUESS (UINT64_C(1) << 18)
/*
 * Code that is followed to its return: different instructions; steps, as one is followed again when
 * less is known of its registers; ways that were not followed yet; words that were stored on
 * the ways; looks at these words. Bytes of stack in which saved registers are believed to be.
 */
#define FATHOM_MAX_FOLLOWED       2000
#define FATHOM_MAX_FOLLOW_STEPS   4000
#define FATHOM_MAX_FOLLOW_PENDING 256
#define FATHOM_MAX_FOLLOW_STORES  8000
#define FATHOM_MAX_FOLLOW_LOOKS   (1u << 20)
#define FATHOM_MAX_FOLLOW_FRAME   (1u << 24)
/* The same for one stack: steps, and looks of which FATHOM_FOLLOW_LOOKS_PER_STEP cost as one. */
#define FATHOM_MAX_FOLLOW_COST       (1u << 20)
#define FATHOM_FOLLOW_LOOKS_PER_STEP 64
/* A crash: frames that are walked, and of these printed, bytes of the map, reports of one process.
 */
#define FATHOM_MAX_CRASH_FRAMES  (1u << 18)
#define FATHOM_MAX_CRASH_PRINTED 512
#define FATHOM_MAX_CRASH_MAPS    (1u << 22)
#define FATHOM_MAX_CRASH_REPORTS 16

/* Frames of an interpreter that replace one run of native frames. */
#define FATHOM_MAX_INTERPRETER_FRAMES (1u << 20)

#endif
/* SPDX-License-Identifier: MIT */
/*
 * The general registers of one frame, by the DWARF numbers of the machine's psABI, each known or
 * unknown; and what is particular to a machine.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_UNWIND_REGISTERS_H
#define FATHOM_UNWIND_REGISTERS_H


/* The largest number of registers with a DWARF number: that of aarch64. */
#define FATHOM_REGISTERS 33

struct fathom_copy_registers {
	uint32_t machine; /* EM_ */
	uint64_t pc;
	uint64_t sp;
	uint64_t known;                   /* bit i is set if value[i] is valid */
	uint64_t value[FATHOM_REGISTERS]; /* by the psABI's DWARF number */
};

/* No register: of fathom_copy_unwind_arch.link, and of a slot in a signal frame. */
#define FATHOM_NO_REGISTER 0xff

/* Registers that the kernel saves in a row when it calls a signal handler; the most of a machine.
 */
#define FATHOM_SIGNAL_SLOTS 33

/* Bytes of the longest call of any machine, without prefixes. */
#define FATHOM_MAX_CALL 7

/* A place in the code by which a signal handler returns. */
struct fathom_copy_signal_place {
	uint8_t at;         /* of pc: bytes from the start of the code */
	uint16_t registers; /* of the saved registers: bytes from sp, when pc is here */
};

/* Code by which signal handlers return, and where the kernel has saved the registers. */
struct fathom_copy_signal_return {
	uint8_t size; /* bytes of code */
	uint8_t code[9];
	uint8_t n_places;
	struct fathom_copy_signal_place places[3];
};

/* What unwinding needs to know of a machine. */
struct fathom_copy_unwind_arch {
	uint32_t machine; /* EM_ */
	uint8_t word;     /* bytes in a register */
	uint8_t n;        /* registers with a number below it */
	uint8_t pc;       /* DWARF numbers */
	uint8_t sp;
	uint8_t fp;
	uint8_t link; /* holds the return address after a call; FATHOM_NO_REGISTER: the stack */
	uint64_t callee_saved; /* bit i: register i keeps its value if no rule says otherwise */
	uint64_t pac_mask;     /* bits of a signed return address that are no address; 0: none */
	const struct fathom_copy_signal_return *signal_returns;
	uint8_t n_signal_returns;
	uint8_t n_signal_slots;
	uint8_t signal_slots[FATHOM_SIGNAL_SLOTS]; /* DWARF numbers, in the order of saving */
	uint8_t code_alignment; /* bytes that an instruction's address is a multiple of */
	uint8_t max_call;       /* bytes of the longest call */
	/* Returns whether a call ends at the end of the @size bytes of @code, up to max_call. */
	bool (*ends_with_call)(const uint8_t *code, size_t size);
};

extern const struct fathom_copy_unwind_arch fathom_copy_unwind_x86_64;
extern const struct fathom_copy_unwind_arch fathom_copy_unwind_i386;
extern const struct fathom_copy_unwind_arch fathom_copy_unwind_aarch64;

/*
 * Returns the description of @machine, an EM_ value; NULL if it is not supported. Who knows the
 * pac_mask of a process (NT_ARM_PAC_MASK) puts it into a copy.
 */
const struct fathom_copy_unwind_arch *fathom_copy_unwind_arch(uint32_t machine);

/* Returns @address without its signature: each bit of it is as bit 55, which is no part of one. */
static inline uint64_t fathom_copy_unwind_unsigned(const struct fathom_copy_unwind_arch *arch,
					      uint64_t address)
{
	return address >> 55 & 1 ? address | arch->pac_mask : address & ~arch->pac_mask;
}

/*
 * Returns whether register @number is known. pc and sp are known if their numbers are; they equal
 * value[] there.
 */
static inline bool fathom_copy_register_known(const struct fathom_copy_registers *r, uint64_t number)
{
	return number < FATHOM_REGISTERS && (r->known >> number & 1);
}

static inline void fathom_copy_register_set(struct fathom_copy_registers *r, uint8_t number, uint64_t value)
{
	r->value[number] = value;
	r->known |= UINT64_C(1) << number;
}

#endif

enum fathom_copy_rule_kind {
	FATHOM_RULE_UNSPECIFIED = 0,   /* the psABI's default: kept if callee-saved, else unknown */
	FATHOM_RULE_UNDEFINED = 1,     /* not to be recovered */
	FATHOM_RULE_SAME = 2,          /* keeps its value */
	FATHOM_RULE_AT_OFFSET = 3,     /* saved at CFA + offset */
	FATHOM_RULE_OFFSET = 4,        /* is CFA + offset */
	FATHOM_RULE_REGISTER = 5,      /* is register + offset (offset: of the CFA only) */
	FATHOM_RULE_AT_EXPRESSION = 6, /* saved at the expression's value */
	FATHOM_RULE_EXPRESSION = 7     /* is the expression's value */
};

struct fathom_copy_rule {
	uint8_t kind;   /* enum fathom_copy_rule_kind */
	uint8_t number; /* of the other register */
	uint32_t size;  /* of the expression, in bytes */
	union {
		int64_t offset;
		const uint8_t *expression; /* in the section */
	};
};

struct fathom_copy_row {
	uint64_t low; /* svma of the code that the row is about */
	uint64_t high;
	struct fathom_copy_rule cfa; /* REGISTER or EXPRESSION; UNSPECIFIED: no rule was stated */
	uint64_t stated; /* bit i: rule[i] is stated; else it is UNSPECIFIED, rule[i] stale */
	struct fathom_copy_rule rule[FATHOM_REGISTERS]; /* read it by fathom_copy_row_rule() */
	uint8_t return_register;
	bool is_ra_signed;    /* aarch64: DW_CFA_AARCH64_negate_ra_state */
	bool is_signal_frame; /* its caller is what a signal interrupted, which may be at 0 */
};

/* Returns the rule of register @number, below FATHOM_REGISTERS. */
static inline struct fathom_copy_rule fathom_copy_row_rule(const struct fathom_copy_row *row, uint8_t number)
{
	return row->stated >> number & 1 ? row->rule[number] : (struct fathom_copy_rule){ .kind = 0 };
}

/* What DW_CFA_remember_state keeps of a row. Its stated rules stand in the reader's pool. */
struct fathom_copy_row_state {
	struct fathom_copy_rule cfa;
	uint64_t stated;
	uint8_t first; /* index of its rules in the pool */
	bool is_ra_signed;
};

/* A walk over the rows of one FDE. */
struct fathom_copy_row_reader {
	const struct fathom_copy_fde *fde;
	const struct fathom_copy_unwind_arch *arch;
	struct fathom_copy_cursor c;
	uint64_t location; /* svma that the instructions have come to */
	struct fathom_copy_row now;
	/* Number 0 is the state after the CIE's instructions; then those that were remembered. */
	struct fathom_copy_row_state state[FATHOM_ROW_STATES];
	struct fathom_copy_rule pool[FATHOM_ROW_SAVED_RULES];
	uint8_t n_states;
	uint8_t n_pool;
	fathom_err err; /* that ended the walk */
};

/*
 * Runs the CIE's instructions. Returns FATHOM_E_CORRUPT; FATHOM_E_UNSUPPORTED (an instruction, a
 * return address register or an augmentation that is unknown); or FATHOM_E_LIMIT (more than
 * FATHOM_ROW_STATES states, or FATHOM_ROW_SAVED_RULES rules in them).
 */
fathom_err fathom_copy_row_reader_init(struct fathom_copy_row_reader *r, const struct fathom_copy_fde *fde,
				  const struct fathom_copy_unwind_arch *arch);

/*
 * Reads the next row into r->now, in address order: FATHOM_OK, FATHOM_END behind the last, or an
 * error as above; no row follows an error. Rows without code are passed over. Rules of registers
 * that
 * @r's arch does not have are dropped.
 */
fathom_err fathom_copy_row_next(struct fathom_copy_row_reader *r);

/*
 * Finds the row of @svma; afterwards it is r->now. Call it once, on a new reader. FATHOM_END if
 * @svma is outside @r's FDE; errors as above.
 */
fathom_err fathom_copy_row_find(struct fathom_copy_row_reader *r, uint64_t svma);

#endif



/* Returns @value, a factored offset, in bytes. */
static int64_t factored(const struct fathom_copy_row_reader *r, uint64_t value)
{
	return (int64_t)(value * (uint64_t)r->fde->cie->data_alignment);
}

static int64_t read_factored(struct fathom_copy_row_reader *r)
{
	return factored(r, cur_uleb(&r->c));
}

static int64_t read_factored_signed(struct fathom_copy_row_reader *r)
{
	return factored(r, (uint64_t)cur_sleb(&r->c));
}

static void set_rule_row(struct fathom_copy_row_reader *r, uint64_t number, struct fathom_copy_rule rule)
{
	if (number >= r->arch->n)
		return;
	r->now.rule[number] = rule;
	r->now.stated |= UINT64_C(1) << number;
}

static void set_kind(struct fathom_copy_row_reader *r, uint64_t number, uint8_t kind)
{
	set_rule_row(r, number, (struct fathom_copy_rule){ .kind = kind });
}

static void set_offset(struct fathom_copy_row_reader *r, uint64_t number, uint8_t kind, int64_t offset)
{
	set_rule_row(r, number, (struct fathom_copy_rule){ .kind = kind, .offset = offset });
}

/* Sets a register to be another one; one that the machine does not have is lost with it. */
static void set_register(struct fathom_copy_row_reader *r, uint64_t number, uint64_t other)
{
	if (other < r->arch->n)
		set_rule_row(r, number,
			 (struct fathom_copy_rule){ .kind = FATHOM_RULE_REGISTER,
					       .number = (uint8_t)other });
	else
		set_kind(r, number, FATHOM_RULE_UNDEFINED);
}

/* Reads an expression as the rule of @kind. */
static struct fathom_copy_rule read_expression(struct fathom_copy_row_reader *r, uint8_t kind)
{
	const uint64_t size = cur_uleb(&r->c);
	const uint8_t *p = cur_take(&r->c, size);

	if (size > UINT32_MAX)
		cur_fail(&r->c);
	return (struct fathom_copy_rule){ .kind = kind, .size = (uint32_t)size, .expression = p };
}

static fathom_err set_cfa(struct fathom_copy_row_reader *r, uint64_t number, int64_t offset)
{
	if (number >= r->arch->n)
		return FATHOM_E_UNSUPPORTED;
	r->now.cfa = (struct fathom_copy_rule){ .kind = FATHOM_RULE_REGISTER,
					   .number = (uint8_t)number,
					   .offset = offset };
	return FATHOM_OK;
}

/* Changes the CFA's register or offset. If it is no register + offset, no rule is left. */
static fathom_err set_cfa_register(struct fathom_copy_row_reader *r, uint64_t number)
{
	if (r->now.cfa.kind == FATHOM_RULE_REGISTER)
		return set_cfa(r, number, r->now.cfa.offset);
	r->now.cfa.kind = FATHOM_RULE_UNSPECIFIED;
	return FATHOM_OK;
}

static void set_cfa_offset(struct fathom_copy_row_reader *r, int64_t offset)
{
	if (r->now.cfa.kind == FATHOM_RULE_REGISTER)
		r->now.cfa.offset = offset;
	else
		r->now.cfa.kind = FATHOM_RULE_UNSPECIFIED;
}

/* Moves on to @svma, which is not behind the FDE's end. CIEs have no place to move from. */
static fathom_err move_to(struct fathom_copy_row_reader *r, uint64_t svma)
{
	if (!r->n_states || svma < r->location || svma > r->fde->high)
		return FATHOM_E_CORRUPT;
	r->location = svma;
	return FATHOM_OK;
}

static fathom_err advance(struct fathom_copy_row_reader *r, uint64_t delta)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(delta, r->fde->cie->code_alignment, &bytes) ||
	    bytes > r->fde->high - r->location)
		return FATHOM_E_CORRUPT;
	return move_to(r, r->location + bytes);
}

static fathom_err set_location(struct fathom_copy_row_reader *r)
{
	uint64_t svma;

	FATHOM_TRY(fathom_copy_cie_pointer(r->fde->cie, &r->c, &svma));
	return move_to(r, svma);
}

/* Removes the lowest register from @left, which is not empty, and returns its number. */
static unsigned next_register(uint64_t *left)
{
	const unsigned number = (unsigned)__builtin_ctzll(*left);

	*left &= *left - 1;
	return number;
}

static fathom_err push_state(struct fathom_copy_row_reader *r)
{
	struct fathom_copy_row_state *s = &r->state[r->n_states];

	if (r->n_states == FATHOM_ROW_STATES)
		return FATHOM_E_LIMIT;
	*s = (struct fathom_copy_row_state){ .cfa = r->now.cfa,
					.stated = r->now.stated,
					.first = r->n_pool,
					.is_ra_signed = r->now.is_ra_signed };
	for (uint64_t left = s->stated; left;) {
		if (r->n_pool == FATHOM_ROW_SAVED_RULES)
			return FATHOM_E_LIMIT;
		r->pool[r->n_pool++] = r->now.rule[next_register(&left)];
	}
	r->n_states++;
	return FATHOM_OK;
}

/* Takes the state that was remembered last; the CIE's stays. */
static fathom_err pop_state(struct fathom_copy_row_reader *r)
{
	const struct fathom_copy_row_state *s;
	const struct fathom_copy_rule *rule;

	if (r->n_states < 2)
		return FATHOM_E_CORRUPT;
	s = &r->state[--r->n_states];
	r->now.cfa = s->cfa;
	r->now.stated = s->stated;
	r->now.is_ra_signed = s->is_ra_signed;
	r->n_pool = s->first;
	rule = &r->pool[s->first];
	for (uint64_t left = s->stated; left;)
		r->now.rule[next_register(&left)] = *rule++;
	return FATHOM_OK;
}

/* Gives register @number the rule that it has after the CIE's instructions. */
static fathom_err restore_row(struct fathom_copy_row_reader *r, uint64_t number)
{
	const struct fathom_copy_rule *rule = r->pool;
	uint64_t bit;

	if (!r->n_states)
		return FATHOM_E_CORRUPT;
	if (number >= r->arch->n)
		return FATHOM_OK;
	bit = UINT64_C(1) << number;
	if (!(r->state[0].stated & bit)) {
		r->now.stated &= ~bit;
		return FATHOM_OK;
	}
	for (uint64_t before = r->state[0].stated & (bit - 1); before; rule++)
		(void)next_register(&before);
	set_rule_row(r, number, *rule);
	return FATHOM_OK;
}

static fathom_err negate_ra_state(struct fathom_copy_row_reader *r)
{
	if (r->arch->machine != EM_AARCH64)
		return FATHOM_E_UNSUPPORTED;
	r->now.is_ra_signed = !r->now.is_ra_signed;
	return FATHOM_OK;
}

/* Runs the instruction @op, which has no operand in itself. */
static fathom_err run_extended(struct fathom_copy_row_reader *r, uint8_t op)
{
	struct fathom_copy_cursor *c = &r->c;
	uint64_t n;

	switch (op) {
	case DW_CFA_nop:
		return FATHOM_OK;
	case DW_CFA_set_loc:
		return set_location(r);
	case DW_CFA_advance_loc1:
		return advance(r, cur_u8(c));
	case DW_CFA_advance_loc2:
		return advance(r, cur_u16(c));
	case DW_CFA_advance_loc4:
		return advance(r, cur_u32(c));
	case DW_CFA_MIPS_advance_loc8:
		return advance(r, cur_u64(c));
	case DW_CFA_remember_state:
		return r->n_states ? push_state(r) : FATHOM_E_CORRUPT;
	case DW_CFA_restore_state:
		return pop_state(r);
	case DW_CFA_restore_extended:
		return restore_row(r, cur_uleb(c));
	case DW_CFA_def_cfa:
		n = cur_uleb(c);
		return set_cfa(r, n, (int64_t)cur_uleb(c));
	case DW_CFA_def_cfa_sf:
		n = cur_uleb(c);
		return set_cfa(r, n, read_factored_signed(r));
	case DW_CFA_def_cfa_register:
		return set_cfa_register(r, cur_uleb(c));
	case DW_CFA_def_cfa_offset:
		set_cfa_offset(r, (int64_t)cur_uleb(c));
		return FATHOM_OK;
	case DW_CFA_def_cfa_offset_sf:
		set_cfa_offset(r, read_factored_signed(r));
		return FATHOM_OK;
	case DW_CFA_def_cfa_expression:
		r->now.cfa = read_expression(r, FATHOM_RULE_EXPRESSION);
		return FATHOM_OK;
	case DW_CFA_GNU_args_size: /* bytes of arguments that landing pads drop */
		cur_skip_leb(c);
		return FATHOM_OK;
	case DW_CFA_AARCH64_negate_ra_state:
	case DW_CFA_AARCH64_negate_ra_state_with_pc:
		return negate_ra_state(r);
	default:
		break;
	}
	n = cur_uleb(c); /* the others are rules of register n */
	switch (op) {
	case DW_CFA_offset_extended:
		set_offset(r, n, FATHOM_RULE_AT_OFFSET, read_factored(r));
		return FATHOM_OK;
	case DW_CFA_offset_extended_sf:
		set_offset(r, n, FATHOM_RULE_AT_OFFSET, read_factored_signed(r));
		return FATHOM_OK;
	case DW_CFA_GNU_negative_offset_extended:
		set_offset(r, n, FATHOM_RULE_AT_OFFSET, factored(r, -cur_uleb(c)));
		return FATHOM_OK;
	case DW_CFA_val_offset:
		set_offset(r, n, FATHOM_RULE_OFFSET, read_factored(r));
		return FATHOM_OK;
	case DW_CFA_val_offset_sf:
		set_offset(r, n, FATHOM_RULE_OFFSET, read_factored_signed(r));
		return FATHOM_OK;
	case DW_CFA_undefined:
		set_kind(r, n, FATHOM_RULE_UNDEFINED);
		return FATHOM_OK;
	case DW_CFA_same_value:
		set_kind(r, n, FATHOM_RULE_SAME);
		return FATHOM_OK;
	case DW_CFA_register:
		set_register(r, n, cur_uleb(c));
		return FATHOM_OK;
	case DW_CFA_expression:
		set_rule_row(r, n, read_expression(r, FATHOM_RULE_AT_EXPRESSION));
		return FATHOM_OK;
	case DW_CFA_val_expression:
		set_rule_row(r, n, read_expression(r, FATHOM_RULE_EXPRESSION));
		return FATHOM_OK;
	default:
		return FATHOM_E_UNSUPPORTED;
	}
}

/* Runs the next instruction. One that is cut off is damage, whatever its zeros would mean. */
static fathom_err run_row(struct fathom_copy_row_reader *r)
{
	const uint8_t op = cur_u8(&r->c);
	const uint8_t low = op & 0x3f;
	fathom_err err = FATHOM_OK;

	switch (op & 0xc0) {
	case DW_CFA_advance_loc:
		err = advance(r, low);
		break;
	case DW_CFA_offset:
		set_offset(r, low, FATHOM_RULE_AT_OFFSET, read_factored(r));
		break;
	case DW_CFA_restore:
		err = restore_row(r, low);
		break;
	default:
		err = run_extended(r, op);
	}
	return cur_ok(&r->c) ? err : FATHOM_E_CORRUPT;
}

static fathom_err run_cie(struct fathom_copy_row_reader *r)
{
	const struct fathom_copy_cie *cie = r->fde->cie;

	/* Where instructions are is known only if the augmentation is, or states its size. */
	if ((cie->is_unknown && !cie->has_data) || cie->return_register >= r->arch->n)
		return FATHOM_E_UNSUPPORTED;
	if (r->fde->is_damaged)
		return FATHOM_E_CORRUPT;
	r->now.return_register = (uint8_t)cie->return_register;
	r->c = cur_init(cie->instructions, cie->cfi.swap);
	while (cur_left(&r->c))
		FATHOM_TRY(run_row(r));
	return push_state(r);
}

fathom_err fathom_copy_row_reader_init(struct fathom_copy_row_reader *r, const struct fathom_copy_fde *fde,
				  const struct fathom_copy_unwind_arch *arch)
{
	r->fde = fde;
	r->arch = arch;
	r->location = fde->low;
	r->now.cfa = (struct fathom_copy_rule){ .kind = FATHOM_RULE_UNSPECIFIED };
	r->now.stated = 0;
	r->now.is_ra_signed = false;
	r->now.is_signal_frame = fde->cie->is_signal_frame;
	r->n_states = 0;
	r->n_pool = 0;
	r->err = run_cie(r);
	r->c = cur_init(fde->instructions, fde->cie->cfi.swap);
	return r->err;
}

fathom_err fathom_copy_row_next(struct fathom_copy_row_reader *r)
{
	if (r->err)
		return r->err;
	if (r->location >= r->fde->high)
		return FATHOM_END;
	r->now.low = r->location;
	while (cur_left(&r->c)) {
		r->err = run_row(r);
		if (r->err)
			return r->err;
		if (r->location != r->now.low) {
			r->now.high = r->location;
			return FATHOM_OK;
		}
	}
	r->now.high = r->location = r->fde->high;
	return FATHOM_OK;
}

fathom_err fathom_copy_row_find(struct fathom_copy_row_reader *r, uint64_t svma)
{
	fathom_err err;

	if (svma < r->location)
		return FATHOM_END;
	do
		err = fathom_copy_row_next(r);
	while (!err && svma >= r->now.high);
	return err;
}

/* src/safe/unwind/arch/x86_call.c */
/* SPDX-License-Identifier: MIT */
/* SPDX-License-Identifier: MIT */
/*
 * Calls of x86-64 and i386, by their bytes.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_UNWIND_ARCH_X86_CALL_H
#define FATHOM_UNWIND_ARCH_X86_CALL_H


/*
 * Returns whether a near call ends at the end of the @size bytes of @code: e8 with 4 bytes, or
 * ff /2 of each length (Intel SDM, volume 2, 2.1). Prefixes stand before it and do not matter.
 */
bool fathom_copy_x86_ends_with_call(const uint8_t *code, size_t size);

#endif

/* Returns the length of ff /2 with the byte @modrm and what follows; 0 if it is another one. */
static size_t indirect_size(uint8_t modrm, uint8_t sib)
{
	const bool has_sib = (modrm & 7) == 4;

	if ((modrm >> 3 & 7) != 2)
		return 0;
	switch (modrm >> 6) {
	case 0: /* without displacement, but for pc + 4 bytes and a SIB without base */
		if ((modrm & 7) == 5)
			return 6;
		return has_sib ? (sib & 7) == 5 ? 7 : 3 : 2;
	case 1:
		return has_sib ? 4 : 3;
	case 2:
		return has_sib ? 7 : 6;
	default:
		return 2;
	}
}

bool fathom_copy_x86_ends_with_call(const uint8_t *code, size_t size)
{
	if (size >= 5 && code[size - 5] == 0xe8)
		return true;
	for (size_t n = 2; n <= size && n <= FATHOM_MAX_CALL; n++) {
		const uint8_t *p = code + size - n;

		if (p[0] == 0xff && indirect_size(p[1], n > 2 ? p[2] : 0) == n)
			return true;
	}
	return false;
}

/* src/safe/unwind/arch/x86_64.c */
/* SPDX-License-Identifier: MIT */
/* Numbers: x86-64 psABI, figure 3.36. Frames of signals: Linux, struct sigcontext_64. */


#define BIT(i) (UINT64_C(1) << (i))

/* At the code, sp is at the ucontext; its general registers begin 40 bytes into it. */
static const struct fathom_copy_signal_return signal_returns_x86_64[] = {
	/* mov $15,%rax; syscall */
	{ .size = 9,
	  .code = { 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05 },
	  .n_places = 2,
	  .places = { { 0, 40 }, { 7, 40 } } },
	/* mov $15,%eax; syscall */
	{ .size = 7,
	  .code = { 0xb8, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05 },
	  .n_places = 2,
	  .places = { { 0, 40 }, { 5, 40 } } },
};

const struct fathom_copy_unwind_arch fathom_copy_unwind_x86_64 = {
	.machine = EM_X86_64,
	.word = 8,
	.n = 17,
	.pc = 16,
	.sp = 7,
	.fp = 6,
	.link = FATHOM_NO_REGISTER,
	.callee_saved = BIT(3) | BIT(6) | BIT(12) | BIT(13) | BIT(14) | BIT(15),
	.signal_returns = signal_returns_x86_64,
	.n_signal_returns = sizeof signal_returns_x86_64 / sizeof *signal_returns_x86_64,
	.n_signal_slots = 17,
	/* r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip */
	.signal_slots = { 8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16 },
	.code_alignment = 1,
	.max_call = FATHOM_MAX_CALL,
	.ends_with_call = fathom_copy_x86_ends_with_call,
};

/* src/safe/unwind/arch/aarch64.c */
/* SPDX-License-Identifier: MIT */
/*
 * Numbers: DWARF for the Arm 64-bit Architecture, 4.1. Frames of signals: Linux, struct rt_sigframe
 * and struct sigcontext of arch/arm64. Code is little-endian whatever data are.
 */


static const struct fathom_copy_signal_return signal_returns_aarch64[] = {
	/*
	 * mov x8, #139; svc #0. At sp: 128 bytes of siginfo and the ucontext, whose sigcontext
	 * begins 176 bytes into it with the address of a fault.
	 */
	{ .size = 8,
	  .code = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 },
	  .n_places = 2,
	  .places = { { 0, 128 + 176 + 8 }, { 4, 128 + 176 + 8 } } },
};

/* bl, blr, and those that authenticate the address: blraa, blrab, blraaz, blrabz. */
static bool ends_with_call(const uint8_t *code, size_t size)
{
	const bool swap = __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__;
	uint32_t op;

	if (size < 4)
		return false;
	op = load_u32(code + size - 4, swap);
	return (op & 0xfc000000) == 0x94000000 || (op & 0xfffffc1f) == 0xd63f0000 ||
	       (op & 0xfefff800) == 0xd63f0800;
}

const struct fathom_copy_unwind_arch fathom_copy_unwind_aarch64 = {
	.machine = EM_AARCH64,
	.word = 8,
	.n = 33,
	.pc = 32,
	.sp = 31,
	.fp = 29,
	.link = 30,
	.callee_saved = UINT64_C(0x3ff80000), /* x19 to x29 */
	.pac_mask = UINT64_C(0xff7f000000000000),
	.signal_returns = signal_returns_aarch64,
	.n_signal_returns = sizeof signal_returns_aarch64 / sizeof *signal_returns_aarch64,
	.n_signal_slots = 33,
	.signal_slots = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
			  17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32 },
	.code_alignment = 4,
	.max_call = 4,
	.ends_with_call = ends_with_call,
};

/* src/host/publish/body.c */
/* SPDX-License-Identifier: MIT */
/* SPDX-License-Identifier: MIT */
/* What is kept of a function that is published. */
#ifndef FATHOM_PUBLISH_BODY_H
#define FATHOM_PUBLISH_BODY_H

/* SPDX-License-Identifier: MIT */
/*
 * What is published of the code that this process makes.
 *
 * All functions of all arenas stand in one index, sorted by address, in leaves of neighbours. A
 * leaf is what debuggers and old unwinders are told of: one symbol file, one image of call frame
 * information; so their ranges never interleave, and there are few of them. A commit makes the
 * leaves that it changes anew beside the old ones, tells everybody of the new, then withdraws the
 * old: what both have in common is known all the time. Nothing that can fail comes after the first
 * consumer was told.
 */
#ifndef FATHOM_PUBLISH_PUBLISH_H
#define FATHOM_PUBLISH_PUBLISH_H


/* SPDX-License-Identifier: MIT */
/* Descriptions of how stacks go through code (<fathom/jit.h>), as call frame instructions. */
#ifndef FATHOM_PUBLISH_FRAME_H
#define FATHOM_PUBLISH_FRAME_H


struct fathom_copy_unwind_arch;

/* What a processor's ABI says of frames. Registers have the numbers of DWARF. */
struct fathom_copy_jit_machine {
	const struct fathom_copy_unwind_arch *arch;
	uint64_t code_alignment;
	uint16_t elf; /* EM_ of elf.h */
	uint16_t sp;
	uint16_t fp;
	uint16_t return_register;
	uint8_t entry;      /* bytes on the stack above the stack pointer when a function begins */
	uint8_t set_frame;  /* bytes of the instruction that sets the frame pointer */
	uint8_t initial[8]; /* the instructions of its CIEs */
	uint8_t n_initial;
};

extern const struct fathom_copy_jit_machine fathom_copy_jit_x86_64;
extern const struct fathom_copy_jit_machine fathom_copy_jit_aarch64;

/* Returns the machine that this library was built for; NULL: its code cannot be published. */
const struct fathom_copy_jit_machine *fathom_copy_jit_own_machine(void);

/* A description that was read. Its bytes belong to it, or are those of the caller's eh_frame. */
struct fathom_copy_jit_frame {
	struct fathom_copy_cie_form cie;
	struct fathom_copy_bytes instructions;
	uint64_t size; /* bytes of code that it is of; UINT64_MAX: all */
	uint64_t lsda;
	uint8_t *owned; /* freed by fathom_copy_jit_frame_deinit() */
};

/* What is wrong with a change. */
struct fathom_copy_jit_blame {
	const char *what;        /* static text */
	enum fathom_cause cause; /* FATHOM_CAUSE_CHANGE, or of which part */
	size_t part;             /* its number */
};

/*
 * Reads @from, the rule of a function of @size bytes at @code. FATHOM_END if it says nothing;
 * FATHOM_E_ARGUMENT if it contradicts itself; FATHOM_E_CORRUPT and FATHOM_E_UNSUPPORTED for an
 * eh_frame; FATHOM_E_MEMORY. On errors *ret is untouched, and @ret_blame says why.
 */
fathom_err fathom_copy_jit_frame_read(const struct fathom_jit_unwind *from,
				 const struct fathom_copy_jit_machine *m, uint64_t code, uint64_t size,
				 struct fathom_copy_jit_frame *ret, struct fathom_copy_jit_blame *ret_blame);
void fathom_copy_jit_frame_deinit(struct fathom_copy_jit_frame *f);

#endif

/* Symbol files that gdb is told of at most. */
#define FATHOM_JIT_MOST_LEAVES 256

/* A source file, once however many functions come from it. */
struct fathom_copy_jit_file {
	struct fathom_copy_jit_file *next; /* with the same hash */
	size_t uses;                  /* by bodies */
	uint32_t stamp;               /* of the symbol file that `number` is of */
	uint32_t number;
	char name[];
};

/* A line, as fathom_jit_line. */
struct fathom_copy_jit_row {
	struct fathom_copy_jit_file *file;
	uint32_t offset;
	uint32_t line;
	uint32_t column;
};

struct fathom_copy_jit_copy {
	struct fathom_copy_jit_file *file;
	const char *name;
	uint32_t begin;
	uint32_t end;
	uint32_t line;
};

/* A CIE, once however many functions have it. */
struct fathom_copy_jit_cie {
	struct fathom_copy_jit_cie *next;
	struct fathom_copy_cie_form form;
	uint32_t stamp; /* of the image that `off` is of */
	uint32_t off;
	uint8_t bytes[];
};

/* What is known of a function wherever it is. Its arrays and texts lie behind it. */
struct fathom_copy_jit_body {
	const struct fathom_copy_jit_cie *cie; /* NULL: nothing is said, or the arena says it */
	const uint8_t *instructions;
	const char *name;
	const struct fathom_copy_jit_row *rows;
	const struct fathom_copy_jit_copy *copies;
	struct fathom_copy_jit_file *file; /* NULL: unknown */
	uint64_t size;                /* bytes of code */
	uint64_t framed;              /* bytes of it that the CIE is of */
	uint64_t lsda;
	uint32_t n_instructions;
	uint32_t n_name; /* bytes, without the NUL */
	uint32_t n_rows;
	uint32_t n_copies;
	uint32_t uses; /* functions: two while one moves */
};

/* Words of libgcc's struct object, whose size is a part of its ABI (6), and a reserve. */
#define FATHOM_JIT_OBJECT_WORDS 8

/*
 * libgcc's struct object. Up to version 12, libgcc reads it after it has given back its lock, when
 * it may have been deregistered: it is used again only after a while.
 */
struct fathom_copy_jit_object {
	struct fathom_copy_jit_object *next;
	uint64_t gone; /* when it was deregistered; nanoseconds */
	uint64_t words[FATHOM_JIT_OBJECT_WORDS];
};

/* What an unwinder keeps of an image. */
struct fathom_copy_jit_token {
	struct fathom_copy_jit_token *next;
	struct fathom_copy_jit_object *object; /* libgcc's; else NULL */
	uint8_t unwinder;                 /* its index */
	bool is_told; /* it knows the image, and must be told before that goes */
	uint64_t room[];
};

/*
 * Call frame information that unwinders are told of: of a leaf, in whose file its bytes lie, or of
 * a function or an arena, whose bytes lie behind it.
 */
struct fathom_copy_jit_image {
	struct fathom_copy_jit_token *tokens;
	uint8_t *bytes; /* CIEs, FDEs, a terminator */
	size_t fde;     /* offset of the first FDE */
	size_t n_fde;   /* their number */
	uint64_t low;
	uint64_t high;
};

/* A function where it is. */
struct fathom_copy_jit_entry {
	uint64_t low;
	struct fathom_copy_jit_body *body;
	struct fathom_jit_arena *arena;
	/*
	 * What unwinders are given of it. They read it without a lock after they have found it, so
	 * it stays where it is until the function goes. NULL: nobody wants it, or nothing is said.
	 */
	struct fathom_copy_jit_image *image;
	uint64_t since; /* as fathom_copy_registry_function.since */
	uint64_t index; /* in jitdumps: rises */
	bool leaves;    /* in the commit at hand */
};

static inline uint64_t fathom_copy_jit_high(const struct fathom_copy_jit_entry *e)
{
	return e->low + e->body->size;
}

/* An entry of GDB's list. */
struct fathom_copy_jit_gdb_entry {
	struct fathom_copy_jit_gdb_entry *next;
	struct fathom_copy_jit_gdb_entry *prev;
	const void *symbol_file;
	uint64_t size;
};

/* Neighbours. */
struct fathom_copy_jit_leaf {
	struct fathom_copy_jit_leaf *next; /* of those that are gone */
	struct fathom_copy_jit_gdb_entry gdb;
	struct fathom_copy_jit_image image; /* its bytes lie in `block` */
	/* A serial number, then the symbol file, or the image alone; NULL: nobody wants it. */
	uint64_t *block;
	uint64_t serial;
	size_t n;
	uint64_t commit; /* number of the one that made it, or that replaced it */
	bool in_list;    /* of gdb's */
	struct fathom_copy_jit_entry *entries[];
};

/* Returns the symbol file of @l. */
static inline uint8_t *fathom_copy_jit_file_of(const struct fathom_copy_jit_leaf *l)
{
	return (uint8_t *)(l->block + 1);
}

struct fathom_copy_jit_leaves {
	FATHOM_ARRAY_OF(struct fathom_copy_jit_leaf *);
};

struct fathom_copy_jit_entries {
	FATHOM_ARRAY_OF(struct fathom_copy_jit_entry *);
};

struct fathom_jit_arena {
	struct fathom_jit_arena *next;
	uint64_t low;
	uint64_t high;
	const struct fathom_copy_jit_cie *cie; /* NULL: each function has its own rule */
	uint8_t *instructions;
	uint32_t n_instructions;
	uint64_t lsda;
	struct fathom_copy_jit_image *image; /* NULL: each function has its own rule */
};

/* A kind of unwinder. */
enum fathom_copy_jit_unwinder_kind {
	FATHOM_JIT_LIST = 0,  /* libgcc up to 12: arrays of images in a list, searched one by one */
	FATHOM_JIT_TREE = 1,  /* libgcc from 13 on: a tree of ranges that do not overlap */
	FATHOM_JIT_CACHE = 2, /* LLVM: all FDEs in one array */
	FATHOM_JIT_TABLES = 3 /* nongnu: a list of sorted tables */
};

/* An unwinder in the process: the calls that it exports. */
struct fathom_copy_jit_unwinder {
	uint32_t consumer; /* enum fathom_jit_consumer */
	uint8_t kind;      /* enum fathom_copy_jit_unwinder_kind */
	void *handle;      /* keeps it loaded; NULL: it is the program's own */
	void *add;
	void *add_array; /* libgcc: of images */
	void *remove;
	void *find;  /* libgcc: _Unwind_Find_FDE */
	void *flush; /* nongnu: of its caches */
	void *space; /* nongnu: unw_local_addr_space */
};

#define FATHOM_JIT_MOST_UNWINDERS 8

/* What a libgcc is asked with, which of its kinds it is. It keeps a part of it for ever. */
struct fathom_copy_jit_probe {
	uint64_t objects[2][FATHOM_JIT_OBJECT_WORDS];
	uint8_t code[64];
	_Alignas(8) uint8_t bytes[2][128];
};

/* Files of perf's, of this process. */
struct fathom_copy_jit_dump {
	int fd; /* 0: not open */
	void *mark;
	size_t mark_size;
};

/* Everything that is published: one of the three pieces of file-scope state. */
struct fathom_copy_jit_registry {
	pthread_mutex_t mutex;
	const struct fathom_copy_jit_machine *machine;
	struct fathom_copy_jit_leaves leaves;
	struct fathom_jit_arena *arenas;
	struct fathom_jit_arena *gone_arenas; /* the newest first */
	size_t capacity;                      /* functions of a leaf */
	uint64_t n_commits;
	struct fathom_copy_jit_cie *cies;
	struct fathom_copy_jit_file *files[256];
	uint32_t stamp; /* of the last image or symbol file */
	struct fathom_copy_bytes_array scratch;
	/* Replaced, the newest first: unwinders and readers of the registry may still read them. */
	struct fathom_copy_jit_leaf *gone;
	size_t gone_bytes;
	struct fathom_copy_jit_table *table;       /* that readers are led to; NULL: none yet */
	struct fathom_copy_jit_table *gone_tables; /* replaced, the oldest first */
	struct fathom_copy_jit_table *last_gone_table;
	size_t n_gone_tables;
	size_t gone_table_bytes;
	uint64_t serial;  /* the last one given */
	uint64_t since;   /* the last one given */
	uint64_t idle[2]; /* number of the last commit at whose end the readers were none */
	/* Offsets of FDEs in the image of a leaf that was written last, one for each function. */
	struct fathom_copy_u32_array fdes;
	struct fathom_copy_jit_object *objects; /* that are gone, the oldest first */
	struct fathom_copy_jit_object *last_object;
	struct fathom_copy_jit_unwinder unwinders[FATHOM_JIT_MOST_UNWINDERS];
	size_t n_unwinders;
	struct fathom_copy_jit_probe probe;
	uint64_t loaded; /* what the dynamic linker had loaded and unloaded when unwinders were
			    looked for */
	int perf_map;    /* descriptor; 0: not open */
	struct fathom_copy_jit_dump dump;
	uint64_t next_index;
	int32_t files_pid; /* whose files are open; 0: nobody's */
	char folder[256];
	char unknown[256]; /* note of a word of FATHOM_JIT that is none */
	const char *notes[16];
	size_t n_notes;
	bool is_set_up;
};

extern struct fathom_copy_jit_registry fathom_copy_jit_registry;

/* The consumers that are on: bits. Read without the lock. */
extern _Atomic uint32_t fathom_copy_jit_on;

/* Says @text once. */
void fathom_copy_jit_say(struct fathom_copy_jit_registry *r, const char *text);

/*
 * Writes what @put makes of @data to the scratch, in as many tries as its growth takes. Returns it;
 * no data without memory.
 */
struct fathom_copy_bytes fathom_copy_jit_scratch_write(struct fathom_copy_jit_registry *r,
					     void (*put)(struct fathom_copy_jit_registry *r,
							 struct fathom_copy_out *o, const void *data),
					     const void *data);

#endif

/*
 * Checks @from and copies it. FATHOM_E_ARGUMENT, FATHOM_E_LIMIT or those of its rule, of which
 * @ret_blame says why; FATHOM_E_MEMORY.
 */
fathom_err fathom_copy_jit_body_make(struct fathom_copy_jit_registry *r, const struct fathom_jit_arena *arena,
				const struct fathom_jit_function *from,
				struct fathom_copy_jit_body **ret, struct fathom_copy_jit_blame *ret_blame);

/* Frees @b when its last function goes. */
void fathom_copy_jit_body_release(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_body *b);

/* Returns the CIE that says what @form says; NULL without memory. */
const struct fathom_copy_jit_cie *fathom_copy_jit_cie_find(struct fathom_copy_jit_registry *r,
						 const struct fathom_copy_cie_form *form);

#endif



/* A function of this size would not fit a table with offsets of 32 bits. */
#define MOST_CODE INT32_MAX

static bool same_bytes(struct fathom_copy_bytes a, struct fathom_copy_bytes b)
{
	return a.size == b.size && (!a.size || !memcmp(a.data, b.data, (size_t)a.size));
}

static bool same_form(const struct fathom_copy_cie_form *a, const struct fathom_copy_cie_form *b)
{
	return a->personality == b->personality && a->code_alignment == b->code_alignment &&
	       a->data_alignment == b->data_alignment && a->return_register == b->return_register &&
	       a->has_lsda == b->has_lsda && a->is_signal_frame == b->is_signal_frame &&
	       a->uses_b_key == b->uses_b_key && same_bytes(a->instructions, b->instructions);
}

const struct fathom_copy_jit_cie *fathom_copy_jit_cie_find(struct fathom_copy_jit_registry *r,
						 const struct fathom_copy_cie_form *form)
{
	struct fathom_copy_jit_cie *c;

	for (c = r->cies; c; c = c->next)
		if (same_form(&c->form, form))
			return c;
	c = calloc(1, sizeof *c + (size_t)form->instructions.size);
	if (!c)
		return NULL;
	c->form = *form;
	if (form->instructions.size)
		memcpy(c->bytes, form->instructions.data, (size_t)form->instructions.size);
	c->form.instructions.data = c->bytes;
	c->next = r->cies;
	r->cies = c;
	return c;
}

/* Returns the chain of @name: its hash is that of FNV-1a (draft-eastlake-fnv). */
static struct fathom_copy_jit_file **files_of(struct fathom_copy_jit_registry *r, const char *name)
{
	uint32_t hash = UINT32_C(0x811c9dc5);

	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * UINT32_C(0x01000193);
	return &r->files[(hash ^ hash >> 16) % (sizeof r->files / sizeof *r->files)];
}

/* Finds the file @name, or makes it; NULL without memory. */
static struct fathom_copy_jit_file *look_up_file(struct fathom_copy_jit_registry *r, const char *name)
{
	struct fathom_copy_jit_file **chain = files_of(r, name);
	struct fathom_copy_jit_file *f;

	for (f = *chain; f; f = f->next)
		if (!strcmp(f->name, name))
			return f;
	f = calloc(1, sizeof *f + strlen(name) + 1);
	if (!f)
		return NULL;
	memcpy(f->name, name, strlen(name));
	f->next = *chain;
	*chain = f;
	return f;
}

/* Uses the file @name, or @other without a name; *ret is NULL without either. */
static bool find_file(struct fathom_copy_jit_registry *r, const char *name,
		      struct fathom_copy_jit_file *other, struct fathom_copy_jit_file **ret)
{
	/* Lines of one function mostly come from one file. */
	if (name && !(other && !strcmp(other->name, name)))
		other = look_up_file(r, name);
	*ret = other;
	if (!other)
		return !name;
	other->uses++;
	return true;
}

/* Gives back @f, which may be NULL. */
static void release_file(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_file *f)
{
	struct fathom_copy_jit_file **link;

	if (!f || --f->uses)
		return;
	link = files_of(r, f->name);
	while (*link != f)
		link = &(*link)->next;
	*link = f->next;
	free(f);
}

static bool refuse_body(struct fathom_copy_jit_blame *b, enum fathom_cause cause, size_t part,
		   const char *what)
{
	*b = (struct fathom_copy_jit_blame){ .what = what, .cause = cause, .part = part };
	return false;
}

static bool check_lines(const struct fathom_jit_function *f, struct fathom_copy_jit_blame *b)
{
	for (size_t i = 0; i < f->n_lines; i++)
		if (f->lines[i].reserved)
			return refuse_body(b, FATHOM_CAUSE_LINE, i, "lines: reserved is not 0");
		else if (f->lines[i].offset > f->code_size ||
			 (i && f->lines[i].offset < f->lines[i - 1].offset))
			return refuse_body(b, FATHOM_CAUSE_LINE, i,
				      "lines: not in order, or behind the end of the code");
		else if (!f->file && !f->lines[i].file)
			return refuse_body(b, FATHOM_CAUSE_LINE, i, "lines: of no file");
	return true;
}

static bool check_inlines(const struct fathom_jit_function *f, struct fathom_copy_jit_blame *b)
{
	for (size_t i = 0; i < f->n_inlines; i++)
		if (f->inlines[i].reserved)
			return refuse_body(b, FATHOM_CAUSE_INLINE, i, "inlines: reserved is not 0");
		else if (f->inlines[i].begin >= f->inlines[i].end ||
			 f->inlines[i].end > f->code_size || !f->inlines[i].function)
			return refuse_body(
				b, FATHOM_CAUSE_INLINE, i,
				"inlines: empty, behind the end of the code, or without a name");
	return true;
}

static bool check_function(const struct fathom_jit_arena *arena,
			   const struct fathom_jit_function *f, struct fathom_copy_jit_blame *b)
{
	const uint64_t low = (uintptr_t)f->code;

	if (!f->name || !*f->name)
		return refuse_body(b, FATHOM_CAUSE_CHANGE, 0, "function: without a name");
	if (!f->code_size || low < arena->low || low >= arena->high ||
	    f->code_size > arena->high - low)
		return refuse_body(b, FATHOM_CAUSE_CHANGE, 0,
			      "function: empty, or outside of its arena");
	if (f->unwind && arena->cie)
		return refuse_body(b, FATHOM_CAUSE_CHANGE, 0,
			      "function: has a rule, and so has its arena");
	return check_lines(f, b) && check_inlines(f, b);
}

/* Where the parts of a body lie behind it. */
struct body_layout {
	size_t rows;
	size_t copies;
	size_t instructions;
	size_t name;
	size_t copy_names;
	size_t size;
};

static struct body_layout lay_out(const struct fathom_jit_function *f, size_t n_instructions)
{
	struct body_layout l;

	l.rows = sizeof(struct fathom_copy_jit_body);
	l.copies = l.rows + f->n_lines * sizeof(struct fathom_copy_jit_row);
	l.instructions = l.copies + f->n_inlines * sizeof(struct fathom_copy_jit_copy);
	l.name = l.instructions + n_instructions;
	l.copy_names = l.name + strlen(f->name) + 1;
	l.size = l.copy_names;
	for (size_t i = 0; i < f->n_inlines; i++)
		l.size += strlen(f->inlines[i].function) + 1;
	return l;
}

static bool copy_lines(struct fathom_copy_jit_registry *r, const struct fathom_jit_function *f,
		       struct fathom_copy_jit_body *b, struct fathom_copy_jit_row *to)
{
	struct fathom_copy_jit_file *last = b->file;

	for (size_t i = 0; i < f->n_lines; i++) {
		const struct fathom_jit_line *l = &f->lines[i];

		if (!find_file(r, l->file, l->file ? last : b->file, &last))
			return false;
		to[i] = (struct fathom_copy_jit_row){ last, l->offset, l->line, l->column };
		b->n_rows++;
	}
	return true;
}

static bool copy_inlines(struct fathom_copy_jit_registry *r, const struct fathom_jit_function *f,
			 struct fathom_copy_jit_body *b, struct fathom_copy_jit_copy *to, char *names)
{
	for (size_t i = 0; i < f->n_inlines; i++) {
		const struct fathom_jit_inline *from = &f->inlines[i];
		const size_t size = strlen(from->function) + 1;

		if (!find_file(r, from->call_file, b->file, &to[i].file))
			return false;
		to[i].begin = from->begin;
		to[i].end = from->end;
		to[i].line = from->call_line;
		b->n_copies++;
		to[i].name = memcpy(names, from->function, size);
		names += size;
	}
	return true;
}

static fathom_err copy_function(struct fathom_copy_jit_registry *r, const struct fathom_jit_function *f,
				const struct fathom_copy_jit_frame *frame, struct fathom_copy_jit_body **ret)
{
	const struct body_layout l = lay_out(f, (size_t)frame->instructions.size);
	uint8_t *at = malloc(l.size);
	struct fathom_copy_jit_body *b = (void *)at;

	if (!b)
		return FATHOM_E_MEMORY;
	*b = (struct fathom_copy_jit_body){
		.instructions = at + l.instructions,
		.name = (char *)at + l.name,
		.rows = (void *)(at + l.rows),
		.copies = (void *)(at + l.copies),
		.size = f->code_size,
		.framed = frame->size < f->code_size ? frame->size : f->code_size,
		.lsda = frame->lsda,
		.n_instructions = (uint32_t)frame->instructions.size,
		.n_name = (uint32_t)(l.copy_names - l.name - 1),
		.uses = 1,
	};
	if (frame->instructions.size)
		memcpy(at + l.instructions, frame->instructions.data,
		       (size_t)frame->instructions.size);
	memcpy(at + l.name, f->name, b->n_name + 1);
	if (frame->size)
		b->cie = fathom_copy_jit_cie_find(r, &frame->cie);
	if ((frame->size && !b->cie) || !find_file(r, f->file, NULL, &b->file) ||
	    !copy_lines(r, f, b, (void *)(at + l.rows)) ||
	    !copy_inlines(r, f, b, (void *)(at + l.copies), (char *)at + l.copy_names)) {
		fathom_copy_jit_body_release(r, b);
		return FATHOM_E_MEMORY;
	}
	*ret = b;
	return FATHOM_OK;
}

fathom_err fathom_copy_jit_body_make(struct fathom_copy_jit_registry *r, const struct fathom_jit_arena *arena,
				const struct fathom_jit_function *from,
				struct fathom_copy_jit_body **ret, struct fathom_copy_jit_blame *ret_blame)
{
	struct fathom_copy_jit_frame frame = { .size = 0 };
	struct fathom_jit_function known = { .size = 0 };
	const struct fathom_jit_function *f = &known;
	fathom_err err = FATHOM_OK;

	(void)refuse_body(ret_blame, FATHOM_CAUSE_CHANGE, 0,
		     fathom_copy_size_is_set(from)
			     ? "function: this version does not know it"
			     : "function: .size is not sizeof(struct fathom_jit_function)");
	if (!FATHOM_STRUCT_READ(from, &known) || !check_function(arena, f, ret_blame))
		return FATHOM_E_ARGUMENT;
	if (f->code_size > MOST_CODE || f->n_lines > UINT32_MAX || f->n_inlines > UINT32_MAX ||
	    strlen(f->name) > UINT16_MAX) {
		ret_blame->what = "function: 2 GiB of code, or a name of 64 KiB";
		return FATHOM_E_LIMIT;
	}
	if (f->unwind)
		err = fathom_copy_jit_frame_read(f->unwind, r->machine, (uintptr_t)f->code, f->code_size,
					    &frame, ret_blame);
	if (err < 0)
		return err;
	err = copy_function(r, f, &frame, ret);
	fathom_copy_jit_frame_deinit(&frame);
	return err;
}

void fathom_copy_jit_body_release(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_body *b)
{
	if (--b->uses)
		return;
	release_file(r, b->file);
	for (uint32_t i = 0; i < b->n_rows; i++)
		release_file(r, b->rows[i].file);
	for (uint32_t i = 0; i < b->n_copies; i++)
		release_file(r, b->copies[i].file);
	free(b);
}

/* src/host/publish/commit.c */
/* SPDX-License-Identifier: MIT */

/* SPDX-License-Identifier: MIT */
/* GDB's list of symbol files. Under the registry's lock. */
#ifndef FATHOM_PUBLISH_GDB_INTERFACE_H
#define FATHOM_PUBLISH_GDB_INTERFACE_H


/* Puts @e, whose symbol file is complete, in front of the list, and tells debuggers. */
void fathom_copy_jit_gdb_add(struct fathom_copy_jit_gdb_entry *e);

/* Takes @e out. */
void fathom_copy_jit_gdb_remove(struct fathom_copy_jit_gdb_entry *e);

#endif
/* SPDX-License-Identifier: MIT */
/* Images of call frame information, and the symbol files of leaves. */
#ifndef FATHOM_PUBLISH_FRAME_IMAGE_H
#define FATHOM_PUBLISH_FRAME_IMAGE_H



/* Where .eh_frame begins in symbol files. */
#define FATHOM_JIT_FRAMES_OFF sizeof(Elf64_Ehdr)

/*
 * Makes the image of @e alone, if something is said of it and it has none, or of all of @arena.
 * False without memory.
 */
bool fathom_copy_jit_image_of_entry(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_entry *e);
bool fathom_copy_jit_image_of_arena(struct fathom_copy_jit_registry *r, struct fathom_jit_arena *arena);

/* Frees @image, which may be NULL. No unwinder may know it. */
void fathom_copy_jit_image_free(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_image *image);

/*
 * Makes what consumers are told of @leaf: the image and, if @symbols, the symbol file around it.
 * False without memory.
 */
bool fathom_copy_jit_leaf_build(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_leaf *leaf,
			   bool symbols);
void fathom_copy_jit_leaf_free(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_leaf *leaf);

/* Appends CIEs and FDEs of the functions of @leaf, and a terminator. */
void fathom_copy_jit_image_write(struct fathom_copy_jit_registry *r, struct fathom_copy_out *o,
			    const struct fathom_copy_jit_leaf *leaf, struct fathom_copy_jit_image *image);

/*
 * Appends the symbol file of @leaf: an ELF file (System V ABI, chapter 4) whose .text is where the
 * code is, without bytes, with .eh_frame, .symtab, FATHOM_REGISTRY_SECTION
 * and, if there are lines, DWARF 4 (.debug_info,
 * .debug_line, .debug_abbrev). *image is what .eh_frame has, which begins at FATHOM_JIT_FRAMES_OFF.
 */
void fathom_copy_jit_symbol_file_write(struct fathom_copy_jit_registry *r, struct fathom_copy_out *o,
				  const struct fathom_copy_jit_leaf *leaf,
				  struct fathom_copy_jit_image *image);

/* Returns whether a function of @leaf has lines or inlined calls. */
bool fathom_copy_jit_leaf_has_lines(const struct fathom_copy_jit_leaf *leaf);

/* Appends .debug_abbrev, .debug_line and .debug_info of @leaf (DWARF 4, 7.5 and 6.2). */
void fathom_copy_jit_abbrevs_write(struct fathom_copy_out *o);
void fathom_copy_jit_lines_write(struct fathom_copy_jit_registry *r, struct fathom_copy_out *o,
			    const struct fathom_copy_jit_leaf *leaf);
void fathom_copy_jit_info_write(struct fathom_copy_out *o, const struct fathom_copy_jit_leaf *leaf);

#endif
/* SPDX-License-Identifier: MIT */
/*
 * The files that perf reads: /tmp/perf-PID.map, lines of text, and jit-PID.dump, records with code
 * (tools/perf/Documentation/jit-interface.txt and jitdump-specification.txt of Linux). Each commit
 * is one write. Under the registry's lock.
 */
#ifndef FATHOM_PUBLISH_PERF_FILES_H
#define FATHOM_PUBLISH_PERF_FILES_H


/* Code that came, or that moved from somewhere. */
struct fathom_copy_jit_news {
	struct fathom_copy_jit_entry *entry;
	uint64_t from; /* 0: it is new */
};

struct fathom_copy_jit_news_array {
	FATHOM_ARRAY_OF(struct fathom_copy_jit_news);
};

/*
 * Opens the files of the consumers @on for this process, or for the child that it has become; false
 * if they were open. What fails is a note.
 */
bool fathom_copy_jit_files_open(struct fathom_copy_jit_registry *r, uint32_t on);

void fathom_copy_jit_perf_map_write(struct fathom_copy_jit_registry *r,
			       const struct fathom_copy_jit_news_array *news);
void fathom_copy_jit_dump_write(struct fathom_copy_jit_registry *r, const struct fathom_copy_jit_news_array *news);

#endif
/* SPDX-License-Identifier: MIT */
/* What the index of all functions will be after a commit. */
#ifndef FATHOM_PUBLISH_PLAN_H
#define FATHOM_PUBLISH_PLAN_H


/* A function that comes, or one that goes (its `leaves` is set). */
struct fathom_copy_jit_change {
	struct fathom_copy_jit_entry *entry;
	size_t number; /* in the caller's array, for errors */
};

struct fathom_copy_jit_change_array {
	FATHOM_ARRAY_OF(struct fathom_copy_jit_change);
};

struct fathom_copy_jit_plan {
	struct fathom_copy_jit_leaves leaves; /* all, in order */
	struct fathom_copy_jit_leaves gone;   /* those of the index that are replaced */
	struct fathom_copy_jit_entries work;  /* the functions of one leaf and its changes */
	size_t capacity;
	uint64_t commit;  /* its number: leaves with it are new */
	bool last_is_new; /* of `leaves`, as they are made */
	size_t bad;       /* number of the change that failed */
};

/* Returns the function at @low, or NULL. */
struct fathom_copy_jit_entry *fathom_copy_jit_find(const struct fathom_copy_jit_registry *r, uint64_t low);

/* Returns where the next function behind @e begins, or the end of @e's arena if that comes first.
 */
uint64_t fathom_copy_jit_next(const struct fathom_copy_jit_registry *r, const struct fathom_copy_jit_entry *e);

/*
 * Sorts @changes and makes the leaves that they lead to, without consumers' images. The index stays
 * as it is. FATHOM_E_ARGUMENT if functions overlap; FATHOM_E_MEMORY.
 */
fathom_err fathom_copy_jit_plan_make(struct fathom_copy_jit_registry *r,
				struct fathom_copy_jit_change_array *changes,
				struct fathom_copy_jit_plan *ret);

/* Frees @p with the leaves that it has made: it is given up. */
void fathom_copy_jit_plan_cancel(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_plan *p);

/* Makes the leaves of @p the index, and frees those that it replaces. Their images are withdrawn.
 */
void fathom_copy_jit_plan_apply(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_plan *p);

#endif
/* SPDX-License-Identifier: MIT */
/* The publishing side of the registry (safe/jit/registry.h): its tables, and when memory is freed.
 */
#ifndef FATHOM_PUBLISH_REGISTRY_TABLE_H
#define FATHOM_PUBLISH_REGISTRY_TABLE_H


struct fathom_copy_jit_table;

/* Makes a table of @leaves, which have symbol files; NULL without memory. */
struct fathom_copy_jit_table *fathom_copy_jit_table_make(struct fathom_copy_jit_registry *r,
					       const struct fathom_copy_jit_leaves *leaves);
/* Frees @t, which was not published and may be NULL. */
void fathom_copy_jit_table_free(struct fathom_copy_jit_table *t);

/* Leads readers to @t instead of the table before, which is kept until fathom_copy_jit_tables_trim(). */
void fathom_copy_jit_table_publish(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_table *t);

/* Frees replaced tables that no reader inside can be reading, but for the newest. */
void fathom_copy_jit_tables_trim(struct fathom_copy_jit_registry *r);

/* Says that code may be published in [low, high). */
void fathom_copy_jit_table_widen(uint64_t low, uint64_t high);

/* Makes the sequence odd, or even again. */
void fathom_copy_jit_sequence_rise(struct fathom_copy_jit_registry *r);

/*
 * Returns the number of the last commit whose replaced tables and files no reader inside can be
 * reading. Call it after a commit has published its table, once.
 */
uint64_t fathom_copy_jit_last_unread(struct fathom_copy_jit_registry *r);

/* In a child of fork(): no other thread is reading. */
void fathom_copy_jit_table_forget_readers(void);

/* Frees @block, which begins with a serial number, and says so to readers outside before. */
void fathom_copy_jit_block_free(uint64_t *block);

#endif
/* SPDX-License-Identifier: MIT */
/* Which consumers are on. */
#ifndef FATHOM_PUBLISH_SWITCHES_H
#define FATHOM_PUBLISH_SWITCHES_H



#define FATHOM_JIT_UNWINDERS (FATHOM_JIT_LIBGCC | FATHOM_JIT_LLVM | FATHOM_JIT_NONGNU)
#define FATHOM_JIT_FILES     (FATHOM_JIT_PERF_MAP | FATHOM_JIT_JITDUMP)
#define FATHOM_JIT_USUAL     (FATHOM_JIT_GDB | FATHOM_JIT_UNWINDERS | FATHOM_JIT_REGISTRY)
#define FATHOM_JIT_ALL       (FATHOM_JIT_USUAL | FATHOM_JIT_FILES)

/* All words of FATHOM_JIT, for a message. */
#define FATHOM_JIT_WORDS                                                                        \
	"gdb, libgcc, llvm, nongnu, unwinders, registry, perf-map, jitdump, files, all, none, " \
	"or one of them behind a -"

/*
 * Returns the consumers @on as the words of @text, FATHOM_JIT's value or NULL, change them.
 * *@ret_unknown: the first word that is none, empty if all are; it changes nothing.
 */
uint32_t fathom_copy_jit_switch(uint32_t on, const char *text, struct fathom_copy_str *ret_unknown);

#endif
/* SPDX-License-Identifier: MIT */
/*
 * The unwinders in this process: libgcc, LLVM's and nongnu's libunwind. They are found in all
 * loaded objects by what they export, and called as they document it.
 */
#ifndef FATHOM_PUBLISH_UNWINDERS_H
#define FATHOM_PUBLISH_UNWINDERS_H


/* Objects that are loaded, and the unwinders that were found in them. Handles are counted. */
struct fathom_copy_jit_found {
	struct fathom_copy_jit_unwinder unwinders[FATHOM_JIT_MOST_UNWINDERS];
	size_t n;
	uint64_t loaded; /* as fathom_copy_jit_registry.loaded */
	struct fathom_copy_bytes_array paths;
};

/*
 * Loads libgcc, as glibc does at the first backtrace() or pthread_cancel(): afterwards nobody would
 * tell it of code that is there already.
 */
void fathom_copy_jit_open_libgcc(void);

/*
 * Lists what is loaded; false if nothing has changed since the last time. Under the registry's
 * lock: fork() waits for it, and a child that was forked within dl_iterate_phdr() could never call
 * that again.
 */
bool fathom_copy_jit_list_objects(const struct fathom_copy_jit_registry *r, struct fathom_copy_jit_found *found);

/*
 * Looks in these objects for unwinders of the consumers @on. Takes the dynamic linker's lock: the
 * registry's must not be held.
 */
void fathom_copy_jit_find_unwinders(uint32_t on, struct fathom_copy_jit_found *found);

/*
 * Keeps those of @found that are not known yet; the others stay in @found. Returns the number of
 * the first new one.
 */
size_t fathom_copy_jit_keep_unwinders(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_found *found);

/* Gives back what stayed in @found. Takes the dynamic linker's lock, as above. */
void fathom_copy_jit_close_unwinders(struct fathom_copy_jit_found *found);

/* Returns whether an unwinder is told of tables, of which each leaf has one. */
bool fathom_copy_jit_wants_tables(const struct fathom_copy_jit_registry *r);

/* Returns whether an unwinder is given the images of functions. */
bool fathom_copy_jit_wants_images(const struct fathom_copy_jit_registry *r);

/*
 * Make what unwinders from number @first on need to be told of a function, an arena or a leaf,
 * whose functions have images; false without memory.
 */
bool fathom_copy_jit_entry_prepare(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_entry *e,
			      size_t first);
bool fathom_copy_jit_arena_prepare(struct fathom_copy_jit_registry *r, struct fathom_jit_arena *arena,
			      size_t first);
bool fathom_copy_jit_leaf_prepare(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_leaf *leaf,
			     size_t first);

/* Tells unwinders of @image, which may be NULL, or takes it back. It was prepared: nothing can
 * fail. */
void fathom_copy_jit_image_tell(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_image *image);
void fathom_copy_jit_image_withdraw(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_image *image);

/* Frees what unwinders needed of @image. None of them may know it. */
void fathom_copy_jit_tokens_free(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_image *image);

/* Makes unwinders forget what they have cached of [low, high). */
void fathom_copy_jit_flush(struct fathom_copy_jit_registry *r, uint64_t low, uint64_t high);

#endif

/* Functions of a leaf at first. Small, because a commit makes the leaves anew that it changes. */
#define FIRST_CAPACITY 64

struct fathom_copy_jit_registry fathom_copy_jit_registry = {
	.mutex = PTHREAD_MUTEX_INITIALIZER,
	.capacity = FIRST_CAPACITY,
};
_Atomic uint32_t fathom_copy_jit_on = 0;

static void lock(void)
{
	(void)pthread_mutex_lock(&fathom_copy_jit_registry.mutex);
}

static void unlock(void)
{
	(void)pthread_mutex_unlock(&fathom_copy_jit_registry.mutex);
}

void fathom_copy_jit_say(struct fathom_copy_jit_registry *r, const char *text)
{
	for (size_t i = 0; i < r->n_notes; i++)
		if (r->notes[i] == text)
			return;
	if (r->n_notes < sizeof r->notes / sizeof *r->notes)
		r->notes[r->n_notes++] = text;
}

/* Bytes of scratch that stay after a large commit. */
#define MOST_SCRATCH ((size_t)16 << 20)

struct fathom_copy_bytes fathom_copy_jit_scratch_write(struct fathom_copy_jit_registry *r,
					     void (*put)(struct fathom_copy_jit_registry *r,
							 struct fathom_copy_out *o, const void *data),
					     const void *data)
{
	for (;;) {
		struct fathom_copy_out o = { .at = (uint8_t *)r->scratch.items, .cap = r->scratch.cap };

		put(r, &o, data);
		if (o.n <= o.cap)
			return (struct fathom_copy_bytes){ o.at, o.n };
		if (!fathom_copy_array_room(&r->scratch, o.n + o.n / 2))
			return (struct fathom_copy_bytes){ 0 };
	}
}

static bool is_on(uint32_t consumer)
{
	return atomic_load(&fathom_copy_jit_on) & consumer;
}

static bool wants_symbols(void)
{
	return is_on(FATHOM_JIT_GDB | FATHOM_JIT_REGISTRY);
}

static bool wants_leaves(const struct fathom_copy_jit_registry *r)
{
	return wants_symbols() || fathom_copy_jit_wants_tables(r);
}

/* After fork(), in the child: what other threads were reading is not read any more. */
static void begin_child(void)
{
	fathom_copy_jit_table_forget_readers();
	unlock();
}

/* Says that @word of FATHOM_JIT is unknown, if it is not empty. */
static void say_unknown(struct fathom_copy_jit_registry *r, struct fathom_copy_str word)
{
	struct fathom_copy_text t = text_init(r->unknown, sizeof r->unknown);

	if (!word.size)
		return;
	fathom_copy_text_cstr(&t, "FATHOM_JIT: no consumer is called \"");
	for (uint32_t i = 0; i < word.size; i++)
		fathom_copy_text_char(&t, word.data[i]);
	fathom_copy_text_cstr(&t, "\": " FATHOM_JIT_WORDS);
	fathom_copy_text_end(&t);
	fathom_copy_jit_say(r, r->unknown);
}

/* The first arena decides who is told. Returns whether this is it. Under the lock. */
static bool set_up(struct fathom_copy_jit_registry *r, const struct fathom_jit_arena_options *options)
{
	const char *folder = options->folder ? options->folder : "/tmp";
	struct fathom_copy_str unknown;

	if (r->is_set_up)
		return false;
	r->is_set_up = true;
	r->machine = fathom_copy_jit_own_machine();
	/* Not those of the program that was here before exec(), maybe with the same addresses. */
	r->serial = (uint64_t)fathom_copy_now_ns();
	memcpy(r->folder, folder, strlen(folder) + 1);
	/* A child has the index as it was between two commits. */
	(void)pthread_atfork(lock, unlock, begin_child);
	atomic_store(&fathom_copy_jit_on,
		     fathom_copy_jit_switch(options->consumers, getenv("FATHOM_JIT"), &unknown));
	say_unknown(r, unknown);
	return true;
}

/* One commit. */
struct commit {
	struct fathom_copy_jit_registry *r;
	struct fathom_jit_arena *arena;
	struct fathom_copy_jit_change_array changes;
	struct fathom_copy_jit_news_array news;
	struct fathom_copy_jit_plan plan;
	struct fathom_copy_jit_table *table; /* NULL: none is wanted */
	/* Removes what has code in [low, high), if there are no changes. */
	uint64_t low;
	uint64_t high;
	struct fathom_copy_jit_blame blame; /* of the failure */
	size_t number;                 /* of the change that failed */
	uint64_t now;                  /* monotonic clock */
};

/* Says what is wrong with change @number, if nothing else is said. */
static void blame(struct commit *c, size_t number, const char *what)
{
	c->number = number;
	c->blame = (struct fathom_copy_jit_blame){ .what = what, .cause = FATHOM_CAUSE_CHANGE };
}

static struct fathom_copy_jit_entry *new_entry(struct commit *c, uint64_t low,
					  struct fathom_copy_jit_body *body, uint64_t index)
{
	struct fathom_copy_jit_entry *e = calloc(1, sizeof *e);

	if (!e)
		return NULL;
	e->low = low;
	e->body = body;
	e->arena = c->arena;
	e->since = c->r->since = c->now > c->r->since ? c->now : c->r->since + 1;
	e->index = index;
	return e;
}

static bool push_change(struct commit *c, struct fathom_copy_jit_entry *e, size_t number)
{
	return fathom_copy_array_push(&c->changes, (struct fathom_copy_jit_change){ e, number });
}

/* Marks the function at @low, of the arena, as one that goes. */
static fathom_err take_out(struct commit *c, const void *code, size_t number,
			   struct fathom_copy_jit_entry **ret)
{
	struct fathom_copy_jit_entry *e = fathom_copy_jit_find(c->r, (uintptr_t)code);

	blame(c, number, "remove, move: no function of the arena begins there");
	if (!e || e->arena != c->arena || e->leaves)
		return FATHOM_E_ARGUMENT;
	if (!push_change(c, e, number))
		return FATHOM_E_MEMORY;
	e->leaves = true;
	*ret = e;
	return FATHOM_OK;
}

/* Adds @e, which it owns, as one that comes. */
static fathom_err put_in(struct commit *c, struct fathom_copy_jit_entry *e, uint64_t from, size_t number)
{
	if (!e || !fathom_copy_array_room(&c->news, 1) || !push_change(c, e, number)) {
		free(e);
		return FATHOM_E_MEMORY;
	}
	c->news.items[c->news.n++] = (struct fathom_copy_jit_news){ e, from };
	return FATHOM_OK;
}

static fathom_err plan_move(struct commit *c, const struct fathom_jit_move *m, size_t number)
{
	const uint64_t to = (uintptr_t)m->to;
	struct fathom_copy_jit_entry *before;
	struct fathom_copy_jit_entry *e;

	FATHOM_TRY(take_out(c, m->from, number, &before));
	blame(c, number, "move: to a place outside of the arena");
	if (to < c->arena->low || to >= c->arena->high || before->body->size > c->arena->high - to)
		return FATHOM_E_ARGUMENT;
	e = new_entry(c, to, before->body, before->index);
	FATHOM_TRY(put_in(c, e, before->low, number));
	before->body->uses++;
	return FATHOM_OK;
}

static fathom_err plan_add(struct commit *c, const struct fathom_jit_function *f, size_t number)
{
	struct fathom_copy_jit_body *body;
	struct fathom_copy_jit_entry *e;
	fathom_err err;

	c->number = number;
	FATHOM_TRY(fathom_copy_jit_body_make(c->r, c->arena, f, &body, &c->blame));
	e = new_entry(c, (uintptr_t)f->code, body, c->r->next_index++);
	err = put_in(c, e, 0, number);
	if (err)
		fathom_copy_jit_body_release(c->r, body);
	return err;
}

static fathom_err plan_changes(struct commit *c, const struct fathom_jit_changes *changes)
{
	const uint8_t *add = (const void *)changes->add;
	struct fathom_copy_jit_entry *e;
	fathom_err err;

	for (size_t i = 0; i < changes->n_remove; i++)
		FATHOM_TRY(take_out(c, changes->remove[i], i, &e));
	for (size_t i = 0; i < changes->n_move; i++)
		FATHOM_TRY(plan_move(c, &changes->move[i], i));
	for (size_t i = 0; i < changes->n_add; i++)
		FATHOM_TRY(plan_add(c, (const void *)(add + i * changes->add->size), i));
	err = fathom_copy_jit_plan_make(c->r, &c->changes, &c->plan);
	if (err) {
		blame(c, c->plan.bad, "function: overlaps another");
	}
	return err;
}

/* Marks all functions of the arena that have code in the range as such that go. */
static fathom_err plan_range(struct commit *c)
{
	for (size_t i = 0; i < c->r->leaves.n; i++) {
		const struct fathom_copy_jit_leaf *l = c->r->leaves.items[i];

		for (size_t k = 0; k < l->n; k++) {
			struct fathom_copy_jit_entry *e = l->entries[k];

			if (e->arena != c->arena || e->low >= c->high ||
			    fathom_copy_jit_high(e) <= c->low)
				continue;
			if (!push_change(c, e, 0))
				return FATHOM_E_MEMORY;
			e->leaves = true;
		}
	}
	return fathom_copy_jit_plan_make(c->r, &c->changes, &c->plan);
}

/* Makes what consumers will be told of: the last that can fail. */
static bool build(struct commit *c)
{
	struct fathom_copy_jit_registry *r = c->r;
	const bool leaves = wants_leaves(r);
	const bool images = fathom_copy_jit_wants_images(r);

	for (size_t i = 0; images && i < c->news.n; i++) {
		struct fathom_copy_jit_entry *e = c->news.items[i].entry;

		if (!fathom_copy_jit_image_of_entry(r, e) || !fathom_copy_jit_entry_prepare(r, e, 0))
			return false;
	}
	for (size_t i = 0; i < c->plan.leaves.n; i++) {
		struct fathom_copy_jit_leaf *l = c->plan.leaves.items[i];

		if (l->commit != c->plan.commit)
			continue;
		if ((leaves && !fathom_copy_jit_leaf_build(r, l, wants_symbols())) ||
		    !fathom_copy_jit_leaf_prepare(r, l, 0))
			return false;
	}
	if (is_on(FATHOM_JIT_REGISTRY))
		c->table = fathom_copy_jit_table_make(r, &c->plan.leaves);
	return c->table || !is_on(FATHOM_JIT_REGISTRY);
}

static void free_entry(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_entry *e)
{
	fathom_copy_jit_image_free(r, e->image);
	fathom_copy_jit_body_release(r, e->body);
	free(e);
}

/* Undoes what plan_changes() and build() did. */
static void give_up(struct commit *c)
{
	fathom_copy_jit_plan_cancel(c->r, &c->plan);
	fathom_copy_jit_table_free(c->table);
	for (size_t i = 0; i < c->changes.n; i++)
		if (c->changes.items[i].entry->leaves)
			c->changes.items[i].entry->leaves = false;
		else
			free_entry(c->r, c->changes.items[i].entry);
}

static void tell_leaves(struct commit *c)
{
	for (size_t i = 0; i < c->plan.leaves.n; i++) {
		struct fathom_copy_jit_leaf *l = c->plan.leaves.items[i];

		if (l->commit != c->plan.commit)
			continue;
		fathom_copy_jit_image_tell(c->r, &l->image);
		if (is_on(FATHOM_JIT_GDB)) {
			l->in_list = true;
			fathom_copy_jit_gdb_add(&l->gdb);
		}
	}
	if (c->table)
		fathom_copy_jit_table_publish(c->r, c->table);
	for (size_t i = 0; i < c->plan.gone.n; i++) {
		struct fathom_copy_jit_leaf *l = c->plan.gone.items[i];

		fathom_copy_jit_image_withdraw(c->r, &l->image);
		if (l->in_list)
			fathom_copy_jit_gdb_remove(&l->gdb);
	}
}

/* Tells everybody, and makes the plan the index. Cannot fail. */
static void carry_out(struct commit *c)
{
	struct fathom_copy_jit_registry *r = c->r;

	fathom_copy_jit_sequence_rise(r);
	for (size_t i = 0; i < c->changes.n; i++) {
		struct fathom_copy_jit_entry *e = c->changes.items[i].entry;

		if (e->leaves)
			fathom_copy_jit_image_withdraw(r, e->image);
	}
	for (size_t i = 0; i < c->news.n; i++)
		fathom_copy_jit_image_tell(r, c->news.items[i].entry->image);
	tell_leaves(c);
	fathom_copy_jit_plan_apply(r, &c->plan);
	fathom_copy_jit_tables_trim(r);
	fathom_copy_jit_sequence_rise(r);
	for (size_t i = 0; i < c->changes.n; i++) {
		struct fathom_copy_jit_entry *e = c->changes.items[i].entry;

		if (!e->leaves)
			continue;
		fathom_copy_jit_flush(r, e->low, fathom_copy_jit_high(e));
		free_entry(r, e);
	}
}

/* All code, for files that begin. */
static void write_all(struct fathom_copy_jit_registry *r)
{
	struct fathom_copy_jit_news_array all = { 0 };

	for (size_t i = 0; i < r->leaves.n; i++) {
		const struct fathom_copy_jit_leaf *l = r->leaves.items[i];

		for (size_t k = 0; k < l->n; k++)
			if (!fathom_copy_array_push(&all,
					       (struct fathom_copy_jit_news){ l->entries[k], 0 })) {
				fathom_copy_jit_say(r, "files: they lack code of before, for lack of "
						  "memory");
				goto out;
			}
	}
	fathom_copy_jit_perf_map_write(r, &all);
	fathom_copy_jit_dump_write(r, &all);
out:
	fathom_copy_array_free(&all);
}

static void write_files(struct fathom_copy_jit_registry *r, const struct fathom_copy_jit_news_array *news)
{
	if (fathom_copy_jit_files_open(r, atomic_load(&fathom_copy_jit_on))) {
		write_all(r);
	} else {
		fathom_copy_jit_perf_map_write(r, news);
		fathom_copy_jit_dump_write(r, news);
	}
}

static fathom_err run_commit(struct commit *c, const struct fathom_jit_changes *changes)
{
	fathom_err err;

	c->now = (uint64_t)fathom_copy_now_ns();
	err = changes ? plan_changes(c, changes) : plan_range(c);
	if (!err && !build(c))
		err = FATHOM_E_MEMORY;
	if (err) {
		give_up(c);
	} else {
		carry_out(c);
		if (changes)
			write_files(c->r, &c->news);
	}
	if (c->r->scratch.cap > MOST_SCRATCH)
		fathom_copy_array_free(&c->r->scratch);
	fathom_copy_array_free(&c->changes);
	fathom_copy_array_free(&c->news);
	return err;
}

/* Tells unwinders from number @first on of leaf @l; false without memory. */
static bool tell_leaf(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_leaf *l, size_t first)
{
	const bool images = fathom_copy_jit_wants_images(r);

	for (size_t k = 0; images && k < l->n; k++) {
		struct fathom_copy_jit_entry *e = l->entries[k];

		if (!fathom_copy_jit_image_of_entry(r, e) || !fathom_copy_jit_entry_prepare(r, e, first))
			return false;
		fathom_copy_jit_image_tell(r, e->image);
	}
	if ((wants_leaves(r) && !l->block && !fathom_copy_jit_leaf_build(r, l, wants_symbols())) ||
	    !fathom_copy_jit_leaf_prepare(r, l, first))
		return false;
	fathom_copy_jit_image_tell(r, &l->image);
	return true;
}

/* Tells unwinders from number @first on of what is published already; false without memory. */
static bool tell_all(struct fathom_copy_jit_registry *r, size_t first)
{
	for (struct fathom_jit_arena *a = r->arenas; a; a = a->next) {
		if (!fathom_copy_jit_arena_prepare(r, a, first))
			return false;
		fathom_copy_jit_image_tell(r, a->image);
	}
	for (size_t i = 0; i < r->leaves.n; i++)
		if (!tell_leaf(r, r->leaves.items[i], first))
			return false;
	return true;
}

/*
 * Looks for unwinders, if anything was loaded since the last time, and takes the lock: never the
 * dynamic linker's within it, because a library that is being loaded may commit.
 */
static void refresh_and_lock(void)
{
	struct fathom_copy_jit_registry *r = &fathom_copy_jit_registry;
	const uint32_t on = atomic_load(&fathom_copy_jit_on);
	struct fathom_copy_jit_found found = { .n = 0 };
	size_t first;

	lock();
	if (!(on & FATHOM_JIT_UNWINDERS) || !fathom_copy_jit_list_objects(r, &found))
		return;
	unlock();
	fathom_copy_jit_find_unwinders(on, &found);
	lock();
	first = fathom_copy_jit_keep_unwinders(r, &found);
	if (first < r->n_unwinders && !tell_all(r, first))
		fathom_copy_jit_say(r, "unwinders: one that was loaded later is not told of all code, "
				  "for lack of memory");
	unlock();
	fathom_copy_jit_close_unwinders(&found);
	lock();
}

/* Returns whether nobody is told of anything, ever. */
static bool is_off(void)
{
	return !atomic_load_explicit(&fathom_copy_jit_on, memory_order_relaxed);
}

/* Fails as @c says, or with @err alone for lack of memory. */
static fathom_err fail(const struct commit *c, fathom_err err, struct fathom_errinfo *reterr)
{
	if (err == FATHOM_E_MEMORY)
		return fathom_copy_fail_memory(reterr);
	(void)fathom_copy_fail(reterr, err, "", c->number, c->blame.what);
	if (reterr) {
		reterr->cause = c->blame.cause;
		reterr->part = (uint32_t)c->blame.part;
	}
	return err;
}

/* Not inlined: its frame is large, and costs more than all else where nobody is told. */
__attribute__((noinline)) static fathom_err commit(struct fathom_jit_arena *arena,
						   const struct fathom_jit_changes *changes,
						   struct fathom_errinfo *reterr)
{
	struct commit c = { .r = &fathom_copy_jit_registry, .arena = arena };
	struct fathom_jit_changes known = { .size = 0 };
	fathom_err err = FATHOM_OK;

	if (changes && !FATHOM_STRUCT_READ(changes, &known))
		return fathom_copy_size_is_set(changes)
			       ? fathom_copy_fail_options(reterr)
			       : fathom_copy_fail(
					 reterr, FATHOM_E_ARGUMENT, "", 0,
					 "changes: .size is not sizeof(struct fathom_jit_changes)");
	refresh_and_lock();
	if (changes)
		err = run_commit(&c, &known);
	unlock();
	return err ? fail(&c, err, reterr) : FATHOM_OK;
}

fathom_err fathom_jit_commit(struct fathom_jit_arena *arena,
			     const struct fathom_jit_changes *changes,
			     struct fathom_errinfo *reterr)
{
	return is_off() ? FATHOM_OK : commit(arena, changes, reterr);
}

fathom_err fathom_jit_remove_range(struct fathom_jit_arena *arena, const void *low, size_t size,
				   struct fathom_errinfo *reterr)
{
	const uint64_t from = (uintptr_t)low;
	struct commit c = { .r = &fathom_copy_jit_registry, .arena = arena, .low = from };
	fathom_err err;

	if (is_off())
		return FATHOM_OK;
	c.high = size > UINT64_MAX - from ? UINT64_MAX : from + size;
	refresh_and_lock();
	err = run_commit(&c, NULL);
	unlock();
	return err ? fail(&c, err, reterr) : FATHOM_OK;
}

fathom_err fathom_jit_add(struct fathom_jit_arena *arena,
			  const struct fathom_jit_function *function, struct fathom_errinfo *reterr)
{
	struct fathom_jit_changes c;

	if (is_off())
		return FATHOM_OK;
	c = (struct fathom_jit_changes){ .size = sizeof c, .add = function, .n_add = 1 };
	return commit(arena, &c, reterr);
}

fathom_err fathom_jit_remove(struct fathom_jit_arena *arena, const void *code,
			     struct fathom_errinfo *reterr)
{
	struct fathom_jit_changes c;

	if (is_off())
		return FATHOM_OK;
	c = (struct fathom_jit_changes){ .size = sizeof c, .remove = &code, .n_remove = 1 };
	return commit(arena, &c, reterr);
}

/* Takes over the rule of @options for all of @a. */
static fathom_err set_rule_commit(struct fathom_copy_jit_registry *r, struct fathom_jit_arena *a,
			   const struct fathom_jit_arena_options *options,
			   struct fathom_copy_jit_blame *blamed)
{
	struct fathom_copy_jit_frame f;
	fathom_err err;

	if (!options->unwind)
		return FATHOM_OK;
	err = fathom_copy_jit_frame_read(options->unwind, r->machine, a->low, a->high - a->low, &f,
				    blamed);
	if (err)
		return err < 0 ? err : FATHOM_OK;
	if (options->unwind->kind != FATHOM_JIT_RESERVED &&
	    options->unwind->kind != FATHOM_JIT_PUSHED) {
		fathom_copy_jit_frame_deinit(&f);
		blamed->what = "unwind: a rule for an arena is RESERVED or PUSHED";
		return FATHOM_E_ARGUMENT;
	}
	a->cie = fathom_copy_jit_cie_find(r, &f.cie);
	a->instructions = f.owned;
	a->n_instructions = (uint32_t)f.instructions.size;
	a->lsda = f.lsda;
	if (a->cie && fathom_copy_jit_image_of_arena(r, a) && fathom_copy_jit_arena_prepare(r, a, 0))
		return FATHOM_OK;
	return FATHOM_E_MEMORY;
}

static void free_arena(struct fathom_copy_jit_registry *r, struct fathom_jit_arena *a)
{
	fathom_copy_jit_image_free(r, a->image);
	free(a->instructions);
	free(a);
}

/* Puts @a among the arenas, unless one that it overlaps has a rule for all of it, or @a has. */
static fathom_err insert(struct fathom_copy_jit_registry *r, struct fathom_jit_arena *a,
			 struct fathom_copy_jit_blame *blamed)
{
	for (const struct fathom_jit_arena *o = r->arenas; o; o = o->next)
		if (a->low < o->high && o->low < a->high && (a->cie || o->cie)) {
			blamed->what = "arena: overlaps one, and a rule is for all of an arena";
			return FATHOM_E_ARGUMENT;
		}
	a->next = r->arenas;
	r->arenas = a;
	fathom_copy_jit_table_widen(a->low, a->high);
	fathom_copy_jit_image_tell(r, a->image);
	return FATHOM_OK;
}

static fathom_err make_arena(const void *memory, size_t size,
			     const struct fathom_jit_arena_options *options,
			     struct fathom_jit_arena **ret, struct fathom_copy_jit_blame *blamed)
{
	struct fathom_copy_jit_registry *r = &fathom_copy_jit_registry;
	struct fathom_jit_arena *a = calloc(1, sizeof *a);
	fathom_err err;

	if (!a)
		return FATHOM_E_MEMORY;
	a->low = (uintptr_t)memory;
	a->high = a->low + size;
	err = set_rule_commit(r, a, options, blamed);
	if (!err)
		err = insert(r, a, blamed);
	if (err)
		free_arena(r, a);
	else
		*ret = a;
	return err;
}

fathom_err fathom_jit_arena_create(const void *memory, size_t size,
				   const struct fathom_jit_arena_options *options,
				   struct fathom_jit_arena **ret_arena,
				   struct fathom_errinfo *reterr)
{
	struct fathom_copy_jit_registry *r = &fathom_copy_jit_registry;
	struct fathom_jit_arena_options o = { .size = sizeof o };
	struct fathom_copy_jit_blame blamed = { .what = "" };
	bool is_first;
	fathom_err err;

	if (options && !FATHOM_OPTIONS_READ(options, &o, 0))
		return fathom_copy_size_is_set(options)
			       ? fathom_copy_fail_options(reterr)
			       : fathom_copy_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
					     "options: .size is not sizeof(struct "
					     "fathom_jit_arena_options)");
	if (o.consumers & ~(uint32_t)(FATHOM_JIT_ALL | FATHOM_JIT_NOBODY) ||
	    (o.folder && strlen(o.folder) >= sizeof fathom_copy_jit_registry.folder))
		return fathom_copy_fail_options(reterr);
	if (!fathom_copy_jit_own_machine())
		return fathom_copy_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
				   "code of this machine cannot be published");
	if (!size || size > UINTPTR_MAX - (uintptr_t)memory)
		return fathom_copy_fail(reterr, FATHOM_E_ARGUMENT, "", 0, "the arena is empty");
	lock();
	is_first = set_up(r, &o);
	unlock();
	if (is_first && atomic_load(&fathom_copy_jit_on) & FATHOM_JIT_LIBGCC)
		fathom_copy_jit_open_libgcc();
	refresh_and_lock();
	err = make_arena(memory, size, &o, ret_arena, &blamed);
	unlock();
	if (err == FATHOM_E_MEMORY)
		return fathom_copy_fail_memory(reterr);
	return err ? fathom_copy_fail(reterr, err, "", 0, blamed.what) : FATHOM_OK;
}

/* Removes all functions of @a; false without memory. */
static bool empty(struct fathom_copy_jit_registry *r, struct fathom_jit_arena *a)
{
	struct commit c = { .r = r, .arena = a, .high = UINT64_MAX };

	return run_commit(&c, NULL) == FATHOM_OK;
}

/* Arenas that are kept after they were destroyed. */
#define MOST_GONE_ARENAS 64

/*
 * Frees @a, or keeps it for a while: nongnu's libunwind walks its list, which @a was in, without a
 * lock.
 */
static void retire_arena(struct fathom_copy_jit_registry *r, struct fathom_jit_arena *a)
{
	struct fathom_jit_arena **last = &r->gone_arenas;
	size_t n = 0;

	if (!fathom_copy_jit_wants_tables(r)) {
		free_arena(r, a);
		return;
	}
	a->next = r->gone_arenas;
	r->gone_arenas = a;
	for (; *last && n < MOST_GONE_ARENAS; n++)
		last = &(*last)->next;
	while (*last) {
		struct fathom_jit_arena *next = (*last)->next;

		free_arena(r, *last);
		*last = next;
	}
}

void fathom_jit_arena_destroy(struct fathom_jit_arena *arena)
{
	struct fathom_copy_jit_registry *r = &fathom_copy_jit_registry;
	struct fathom_jit_arena **link = &r->arenas;

	if (!arena)
		return;
	lock();
	if (!empty(r, arena)) {
		/* Without memory its functions stay known, and so does the arena. */
		fathom_copy_jit_say(r, "an arena could not be emptied, for lack of memory");
		unlock();
		return;
	}
	while (*link != arena)
		link = &(*link)->next;
	*link = arena->next;
	fathom_copy_jit_image_withdraw(r, arena->image);
	fathom_copy_jit_flush(r, arena->low, arena->high);
	retire_arena(r, arena);
	unlock();
}

const char *fathom_jit_note(size_t i)
{
	const struct fathom_copy_jit_registry *r = &fathom_copy_jit_registry;
	const char *note;

	lock();
	note = i < r->n_notes ? r->notes[i] : NULL;
	unlock();
	return note;
}

uint32_t fathom_jit_consumers(void)
{
	const struct fathom_copy_jit_registry *r = &fathom_copy_jit_registry;
	uint32_t found;

	lock();
	found = atomic_load(&fathom_copy_jit_on) & (FATHOM_JIT_GDB | FATHOM_JIT_REGISTRY);
	for (size_t i = 0; i < r->n_unwinders; i++)
		found |= r->unwinders[i].consumer;
	found |= r->perf_map ? FATHOM_JIT_PERF_MAP : 0u;
	found |= r->dump.fd ? FATHOM_JIT_JITDUMP : 0u;
	unlock();
	return found;
}

/* src/host/publish/frame.c */
/* SPDX-License-Identifier: MIT */



enum { WORD = 8 };

const struct fathom_copy_jit_machine fathom_copy_jit_x86_64 = {
	.arch = &fathom_copy_unwind_x86_64,
	.elf = EM_X86_64,
	.code_alignment = 1,
	.sp = 7,
	.fp = 6,
	.return_register = 16,
	.entry = WORD,
	.set_frame = 3,
	.initial = { DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1 },
	.n_initial = 5,
};

const struct fathom_copy_jit_machine fathom_copy_jit_aarch64 = {
	.arch = &fathom_copy_unwind_aarch64,
	.elf = EM_AARCH64,
	.code_alignment = 1,
	.sp = 31,
	.fp = 29,
	.return_register = 30,
	.entry = 0,
	.set_frame = 4,
	.initial = { DW_CFA_def_cfa, 31, 0 },
	.n_initial = 3,
};

const struct fathom_copy_jit_machine *fathom_copy_jit_own_machine(void)
{
#if defined(__x86_64__)
	return &fathom_copy_jit_x86_64;
#elif defined(__aarch64__)
	return &fathom_copy_jit_aarch64;
#else
	return NULL;
#endif
}

/* Registers of which it is known where they are saved. */
#define MOST_REGISTERS  128
#define MOST_REMEMBERED 8
/* Bytes of the largest frame that events describe. */
#define MOST_BYTES (1 << 30)

/* What holds at an instruction. */
struct frame_state {
	int64_t depth;                 /* of the stack pointer below the CFA, bytes */
	int64_t frame_depth;           /* of the frame pointer, likewise */
	int64_t saved[MOST_REGISTERS]; /* where below the CFA; 0: not saved */
	bool by_frame;                 /* the CFA is told by the frame pointer */
	bool is_signed;
	bool is_popped; /* the return address is in a register */
};

/* The writing of a rule. */
struct frame_writer {
	const struct fathom_copy_jit_machine *m;
	const struct fathom_jit_unwind *u;
	struct fathom_copy_out *o;
	uint32_t at; /* offset of the instruction that was described last */
	struct fathom_copy_jit_blame blame;
	struct frame_state now;
	struct frame_state remembered[MOST_REMEMBERED];
	size_t n_remembered;
};

static bool refuse_frame(struct frame_writer *w, const char *what)
{
	w->blame.what = what;
	return false;
}

static void go_to(struct frame_writer *w, uint32_t offset)
{
	fathom_copy_cfa_advance(w->o, offset - w->at);
	w->at = offset;
}

/* Says that the CFA is @bytes above @reg; less than 0: below it. */
static void put_cfa(struct frame_writer *w, uint16_t reg, int64_t bytes)
{
	fathom_copy_out_u8(w->o, bytes < 0 ? DW_CFA_def_cfa_sf : DW_CFA_def_cfa);
	fathom_copy_out_uleb(w->o, reg);
	if (bytes < 0)
		fathom_copy_out_sleb(w->o, bytes / -WORD);
	else
		fathom_copy_out_uleb(w->o, (uint64_t)bytes);
}

static void put_depth(struct frame_writer *w)
{
	fathom_copy_out_u8(w->o, w->now.depth < 0 ? DW_CFA_def_cfa_offset_sf : DW_CFA_def_cfa_offset);
	if (w->now.depth < 0)
		fathom_copy_out_sleb(w->o, w->now.depth / -WORD);
	else
		fathom_copy_out_uleb(w->o, (uint64_t)w->now.depth);
}

/* The frame record: the frame pointer and, on machines with a link register, that above it. */
static void put_record_frame(struct frame_writer *w, uint32_t below)
{
	fathom_copy_cfa_saved(w->o, w->m->fp, below / WORD);
	if (!w->m->entry)
		fathom_copy_cfa_saved(w->o, w->m->return_register, below / WORD - 1);
}

static void put_negated(struct frame_writer *w)
{
	fathom_copy_out_u8(w->o, DW_CFA_AARCH64_negate_ra_state);
}

/* Returns the bytes between the frame pointer and the CFA. */
static uint32_t frame_size(const struct fathom_jit_unwind *u)
{
	return u->frame ? u->frame : 2 * WORD;
}

/* Checks what the frame's size can be, where the frame pointer is saved at its end. */
static bool check_frame(struct frame_writer *w)
{
	const uint32_t frame = frame_size(w->u);

	if (frame % WORD || frame < 2 * WORD || frame > MOST_BYTES)
		return refuse_frame(w, "frame: not a multiple of 8, less than 16, or too large");
	if (w->m->entry && frame != 2 * WORD)
		return refuse_frame(w, "frame: the frame pointer is 16 bytes below the CFA");
	if (w->u->record % WORD || w->u->record > frame - 2 * WORD || (w->m->entry && w->u->record))
		return refuse_frame(w, "record: does not lie in the frame");
	return true;
}

static bool write_reserved(struct frame_writer *w)
{
	if (!check_frame(w))
		return false;
	if (w->u->flags & FATHOM_JIT_SIGNED)
		put_negated(w);
	put_cfa(w, w->m->fp, frame_size(w->u));
	put_record_frame(w, frame_size(w->u) - w->u->record);
	return true;
}

static bool write_pushed(struct frame_writer *w)
{
	if (w->u->frame % WORD || w->u->frame > MOST_BYTES)
		return refuse_frame(w, "frame: not a multiple of 8, or too large");
	w->now.depth += w->u->frame;
	put_depth(w);
	return true;
}

/* The return: the frame pointer is the caller's. */
static void write_popped(struct frame_writer *w, bool is_signed)
{
	if (is_signed && !(w->u->flags & FATHOM_JIT_SIGNED_RETURN)) {
		/* The instruction before the return authenticates. */
		go_to(w, w->u->until - WORD / 2);
		put_cfa(w, w->m->sp, w->m->entry);
		fathom_copy_cfa_restore(w->o, w->m->fp);
		fathom_copy_cfa_restore(w->o, w->m->return_register);
		go_to(w, w->u->until);
		put_negated(w);
		return;
	}
	go_to(w, w->u->until);
	put_cfa(w, w->m->sp, w->m->entry);
	fathom_copy_cfa_restore(w->o, w->m->fp);
	if (!w->m->entry)
		fathom_copy_cfa_restore(w->o, w->m->return_register);
}

static bool write_frame_pointer(struct frame_writer *w, uint64_t size)
{
	const bool is_signed = w->u->flags & FATHOM_JIT_SIGNED;
	const uint32_t pushed = w->u->from - w->m->set_frame;
	const uint32_t before_set = w->m->entry ? 1 : is_signed ? WORD : WORD / 2;
	const uint32_t prologue = w->m->set_frame + before_set;
	const uint32_t epilogue = is_signed ? WORD / 2 : 1;

	if (!check_frame(w))
		return false;
	if (w->u->record)
		return refuse_frame(w, "record: this kind of frame has it at the frame pointer");
	if (w->u->from < prologue || w->u->from > size)
		return refuse_frame(w, "from: not behind a prologue in the function");
	if (w->u->until && (w->u->until < w->u->from + epilogue || w->u->until > size))
		return refuse_frame(w, "until: not behind the prologue in the function");
	if (is_signed) {
		go_to(w, pushed - WORD / 2);
		put_negated(w);
	}
	go_to(w, pushed);
	fathom_copy_out_u8(w->o, DW_CFA_def_cfa_offset);
	fathom_copy_out_uleb(w->o, frame_size(w->u));
	put_record_frame(w, frame_size(w->u));
	go_to(w, w->u->from);
	fathom_copy_out_u8(w->o, DW_CFA_def_cfa_register);
	fathom_copy_out_uleb(w->o, w->m->fp);
	if (w->u->until)
		write_popped(w, is_signed);
	return true;
}

/* Says that @reg is saved @below bytes below the CFA, unless it is known to be saved already. */
static bool save(struct frame_writer *w, uint16_t reg, int64_t below)
{
	if (reg >= MOST_REGISTERS || below <= 0 || below % WORD)
		return refuse_frame(w, "events: no such register, or no such place for it");
	if (!w->now.saved[reg]) {
		w->now.saved[reg] = below;
		fathom_copy_cfa_saved(w->o, reg, (uint32_t)(below / WORD));
	}
	return true;
}

static bool restore_frame(struct frame_writer *w, uint16_t reg)
{
	if (reg >= MOST_REGISTERS)
		return refuse_frame(w, "events: no such register");
	if (w->now.saved[reg]) {
		w->now.saved[reg] = 0;
		fathom_copy_cfa_restore(w->o, reg);
	}
	/* It is the caller's: from now on the stack pointer alone tells the CFA. */
	if (reg == w->m->fp && w->now.by_frame) {
		w->now.by_frame = false;
		put_cfa(w, w->m->sp, w->now.depth);
	}
	return true;
}

/* Returns whether the stack pointer can be where it is: what is above the CFA is the caller's. */
static bool is_in_frame(const struct frame_writer *w)
{
	if (w->now.is_popped)
		return w->now.depth >= -MOST_BYTES &&
		       (w->now.depth > 0 || w->now.depth % WORD == 0);
	return w->now.depth >= w->m->entry && w->now.depth <= MOST_BYTES;
}

/* Moves the stack pointer @bytes down. */
static bool lower(struct frame_writer *w, int64_t bytes)
{
	w->now.depth += bytes;
	if (!is_in_frame(w))
		return refuse_frame(w, "events: the stack pointer leaves the frame");
	if (!w->now.by_frame)
		put_depth(w);
	return true;
}

static bool pop(struct frame_writer *w, uint16_t reg)
{
	const int64_t top = w->now.depth;

	if (!lower(w, -WORD))
		return false;
	return reg >= MOST_REGISTERS || w->now.saved[reg] != top || restore_frame(w, reg);
}

static bool push(struct frame_writer *w, uint16_t reg)
{
	return lower(w, WORD) && (reg == FATHOM_JIT_NO_REGISTER || save(w, reg, w->now.depth));
}

static bool set_frame(struct frame_writer *w, int32_t value)
{
	w->now.frame_depth = w->now.depth - value;
	if (w->now.frame_depth < 0)
		return refuse_frame(w, "events: the frame pointer is above the frame");
	w->now.by_frame = true;
	put_cfa(w, w->m->fp, w->now.frame_depth);
	return true;
}

static bool end_frame(struct frame_writer *w, int32_t value)
{
	if (!w->now.by_frame)
		return refuse_frame(w, "events: the frame pointer was not set");
	w->now.by_frame = false;
	w->now.depth = w->now.frame_depth + value;
	if (!is_in_frame(w))
		return refuse_frame(w, "events: the stack pointer leaves the frame");
	put_cfa(w, w->m->sp, w->now.depth);
	return true;
}

static bool remember(struct frame_writer *w)
{
	if (w->n_remembered == MOST_REMEMBERED)
		return refuse_frame(w, "events: too much is remembered");
	w->remembered[w->n_remembered++] = w->now;
	fathom_copy_out_u8(w->o, DW_CFA_remember_state);
	return true;
}

static bool recall(struct frame_writer *w)
{
	if (!w->n_remembered)
		return refuse_frame(w, "events: nothing was remembered");
	w->now = w->remembered[--w->n_remembered];
	fathom_copy_out_u8(w->o, DW_CFA_restore_state);
	return true;
}

static bool change_signed(struct frame_writer *w, bool is_signed)
{
	if (w->m->entry || w->now.is_signed == is_signed)
		return refuse_frame(w, "events: the return address cannot be signed here");
	w->now.is_signed = is_signed;
	put_negated(w);
	return true;
}

static bool pop_return(struct frame_writer *w, uint16_t reg)
{
	if (!w->m->entry || w->now.is_popped || w->now.depth != w->m->entry)
		return refuse_frame(w, "events: the return address is not on the top of the stack");
	if (reg >= MOST_REGISTERS || reg == w->m->sp)
		return refuse_frame(w, "events: no such register");
	w->now.is_popped = true;
	if (!lower(w, -WORD))
		return false;
	fathom_copy_out_u8(w->o, DW_CFA_register);
	fathom_copy_out_uleb(w->o, w->m->return_register);
	fathom_copy_out_uleb(w->o, reg);
	return true;
}

static bool push_return(struct frame_writer *w)
{
	if (!w->now.is_popped)
		return refuse_frame(w, "events: the return address was not popped");
	w->now.is_popped = false;
	if (!lower(w, WORD))
		return false;
	if (w->now.depth % WORD)
		return refuse_frame(w, "events: no such place for the return address");
	fathom_copy_cfa_saved(w->o, w->m->return_register, (uint32_t)(w->now.depth / WORD));
	return true;
}

static bool write_event(struct frame_writer *w, const struct fathom_jit_event *e)
{
	if (e->value > MOST_BYTES || e->value < -MOST_BYTES)
		return refuse_frame(w, "events: a value is too large");
	switch (e->kind) {
	case FATHOM_JIT_PUSH:
		return push(w, e->reg);
	case FATHOM_JIT_POP:
		return pop(w, e->reg);
	case FATHOM_JIT_SUB:
		return lower(w, e->value);
	case FATHOM_JIT_ADD:
		return lower(w, -(int64_t)e->value);
	case FATHOM_JIT_SAVE:
		return save(w, e->reg, w->now.depth - e->value);
	case FATHOM_JIT_RESTORE:
		return restore_frame(w, e->reg);
	case FATHOM_JIT_SET_FRAME:
		return set_frame(w, e->value);
	case FATHOM_JIT_END_FRAME:
		return end_frame(w, e->value);
	case FATHOM_JIT_REMEMBER:
		return remember(w);
	case FATHOM_JIT_RECALL:
		return recall(w);
	case FATHOM_JIT_SIGN:
		return change_signed(w, true);
	case FATHOM_JIT_AUTHENTICATE:
		return change_signed(w, false);
	case FATHOM_JIT_POP_RETURN:
		return pop_return(w, e->reg);
	case FATHOM_JIT_PUSH_RETURN:
		return push_return(w);
	default:
		return refuse_frame(w, "events: one of an unknown kind");
	}
}

static bool write_events(struct frame_writer *w, uint64_t size)
{
	for (size_t i = 0; i < w->u->n_events; i++) {
		const struct fathom_jit_event *e = &w->u->events[i];

		w->blame.part = i;
		w->blame.cause = FATHOM_CAUSE_EVENT;
		if (e->reserved)
			return refuse_frame(w, "events: reserved is not 0");
		if (e->offset < w->at || e->offset > size)
			return refuse_frame(w, "events: not in order, or behind the end of the code");
		go_to(w, e->offset);
		if (!write_event(w, e))
			return false;
	}
	return true;
}

/* Writes the rule to @o, or measures it. Returns false if it is wrong. */
static bool write_rule(struct fathom_copy_out *o, const struct fathom_jit_unwind *u,
		       const struct fathom_copy_jit_machine *m, uint64_t size,
		       struct fathom_copy_jit_blame *ret_blame)
{
	struct frame_writer w = { .m = m,
				  .u = u,
				  .o = o,
				  .now.depth = m->entry,
				  .blame = { .cause = FATHOM_CAUSE_CHANGE } };
	bool ok = false;

	if (u->kind == FATHOM_JIT_RESERVED)
		ok = write_reserved(&w);
	else if (u->kind == FATHOM_JIT_PUSHED)
		ok = write_pushed(&w);
	else if (u->kind == FATHOM_JIT_FRAME_POINTER)
		ok = write_frame_pointer(&w, size);
	else if (u->kind == FATHOM_JIT_EVENTS)
		ok = write_events(&w, size);
	else
		(void)refuse_frame(&w, "unwind: of an unknown kind");
	if (!ok)
		*ret_blame = w.blame;
	return ok;
}

/* Makes the instructions of a rule that is not an eh_frame's. */
static fathom_err describe(const struct fathom_jit_unwind *u, const struct fathom_copy_jit_machine *m,
			   uint64_t size, struct fathom_copy_jit_frame *f,
			   struct fathom_copy_jit_blame *ret_blame)
{
	struct fathom_copy_out o = { 0 };

	if (!write_rule(&o, u, m, size, ret_blame))
		return FATHOM_E_ARGUMENT;
	o = (struct fathom_copy_out){ .at = malloc(o.n + 1), .cap = o.n };
	if (!o.at)
		return FATHOM_E_MEMORY;
	(void)write_rule(&o, u, m, size, ret_blame);
	f->owned = o.at;
	f->instructions = (struct fathom_copy_bytes){ o.at, o.n };
	f->cie.instructions = (struct fathom_copy_bytes){ m->initial, m->n_initial };
	f->cie.code_alignment = m->code_alignment;
	f->cie.data_alignment = -WORD;
	f->cie.return_register = m->return_register;
	f->cie.is_signal_frame = (u->flags & FATHOM_JIT_SIGNAL_FRAME) != 0;
	f->cie.uses_b_key = (u->flags & FATHOM_JIT_B_KEY) != 0;
	return FATHOM_OK;
}

/* Returns the address of @value, encoded as @encoding, in an eh_frame that was linked for @linked.
 */
static fathom_err pointed_to(uint8_t encoding, uint64_t value, uint64_t linked, uint64_t *ret)
{
	if (encoding != DW_EH_PE_omit && encoding & DW_EH_PE_indirect) {
		const struct iovec from = { (void *)(uintptr_t)value, sizeof value };
		const struct iovec to = { &value, sizeof value };

		/*
		 * The pointer may lead anywhere: the kernel reads it. Where the bytes are a copy
		 * of others, it is not where they say.
		 */
		if (linked ||
		    process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)sizeof value)
			return FATHOM_E_UNSUPPORTED;
	}
	*ret = value;
	return FATHOM_OK;
}

/*
 * Reads all rows of @fde as if it were of @code. Instructions that name addresses, which a copy
 * does not have, lead out of it.
 */
static bool has_rows(const struct fathom_copy_fde *fde, const struct fathom_copy_jit_machine *m,
		     uint64_t code)
{
	struct fathom_copy_fde moved = *fde;
	struct fathom_copy_row_reader reader;
	fathom_err err;

	moved.low = code;
	moved.high = code + (fde->high - fde->low);
	err = fathom_copy_row_reader_init(&reader, &moved, m->arch);
	while (!err)
		err = fathom_copy_row_next(&reader);
	return err == FATHOM_END;
}

/* Takes what @fde says. */
static fathom_err adopt(const struct fathom_jit_unwind *u, const struct fathom_copy_jit_machine *m,
			uint64_t code, const struct fathom_copy_fde *fde, struct fathom_copy_jit_frame *f,
			struct fathom_copy_jit_blame *ret_blame)
{
	const struct fathom_copy_cie *cie = fde->cie;

	ret_blame->what = "eh_frame: what its entry says is unknown";
	if (cie->is_unknown || fde->is_damaged || cie->has_tagged_stack)
		return FATHOM_E_UNSUPPORTED;
	ret_blame->what = "eh_frame: its instructions cannot be read";
	if (!has_rows(fde, m, code))
		return FATHOM_E_CORRUPT;
	ret_blame->what =
		"eh_frame: a pointer that cannot be read here; personality and lsda say it";
	f->cie.personality = u->personality;
	f->lsda = u->lsda;
	if (!f->cie.personality && cie->personality_encoding != DW_EH_PE_omit)
		FATHOM_TRY(pointed_to(cie->personality_encoding, cie->personality,
				      u->eh_frame_address, &f->cie.personality));
	if (!f->lsda && fde->has_lsda)
		FATHOM_TRY(
			pointed_to(cie->lsda_encoding, fde->lsda, u->eh_frame_address, &f->lsda));
	f->cie.instructions = cie->instructions;
	f->cie.code_alignment = cie->code_alignment;
	f->cie.data_alignment = cie->data_alignment;
	f->cie.return_register = cie->return_register;
	f->cie.is_signal_frame = cie->is_signal_frame;
	f->cie.uses_b_key = cie->uses_b_key;
	f->instructions = fde->instructions;
	f->size = fde->high - fde->low;
	return FATHOM_OK;
}

/* Finds the FDE of the code in the bytes of a compiler. */
static fathom_err find_foreign(const struct fathom_jit_unwind *u,
			       const struct fathom_copy_jit_machine *m, uint64_t code,
			       struct fathom_copy_jit_frame *f, struct fathom_copy_jit_blame *ret_blame)
{
	const uint64_t wanted = u->eh_frame_code ? u->eh_frame_code : code;
	const struct fathom_copy_cfi cfi = {
		.section = { u->eh_frame, u->eh_frame_size },
		.svma = u->eh_frame_address ? u->eh_frame_address : (uintptr_t)u->eh_frame,
		.address_size = WORD,
		.is_eh = true,
		.is_open = true,
	};
	struct fathom_copy_cfi_reader reader;
	struct fathom_copy_cfi_entry e;
	struct fathom_copy_cie cie;
	struct fathom_copy_fde fde;
	fathom_err err;

	fathom_copy_cfi_reader_init(&reader, &cfi);
	while ((err = fathom_copy_cfi_next(&reader, &e, NULL)) == FATHOM_OK) {
		if (e.is_cie)
			continue;
		ret_blame->what = "eh_frame: its entries cannot be read";
		FATHOM_TRY(fathom_copy_cie_read(&cfi, e.cie_off, &cie));
		FATHOM_TRY(fathom_copy_fde_read(&e, &cie, &fde));
		if (fde.low == wanted && fde.high > fde.low)
			return adopt(u, m, code, &fde, f, ret_blame);
	}
	ret_blame->what = err == FATHOM_END ? "eh_frame: no entry is of the code"
					    : "eh_frame: its entries cannot be read";
	return err == FATHOM_END ? FATHOM_E_ARGUMENT : err;
}

#define ALL_FLAGS \
	(FATHOM_JIT_SIGNED | FATHOM_JIT_B_KEY | FATHOM_JIT_SIGNAL_FRAME | FATHOM_JIT_SIGNED_RETURN)

fathom_err fathom_copy_jit_frame_read(const struct fathom_jit_unwind *from,
				 const struct fathom_copy_jit_machine *m, uint64_t code, uint64_t size,
				 struct fathom_copy_jit_frame *ret, struct fathom_copy_jit_blame *ret_blame)
{
	struct fathom_copy_jit_frame f = { .size = UINT64_MAX };
	struct fathom_jit_unwind known = { .size = 0 };
	const struct fathom_jit_unwind *u = &known;
	fathom_err err;

	*ret_blame = (struct fathom_copy_jit_blame){
		.what = fathom_copy_size_is_set(from)
				? "unwind: this version does not know it"
				: "unwind: .size is not sizeof(struct fathom_jit_unwind)",
		.cause = FATHOM_CAUSE_CHANGE,
	};
	if (!FATHOM_OPTIONS_READ(from, &known, ALL_FLAGS))
		return FATHOM_E_ARGUMENT;
	if (u->kind == FATHOM_JIT_NONE)
		return FATHOM_END;
	ret_blame->what = "unwind: return addresses are not signed on this machine";
	if (m->entry && u->flags & (FATHOM_JIT_SIGNED | FATHOM_JIT_B_KEY))
		return FATHOM_E_ARGUMENT;
	ret_blame->what = "out of memory";
	if (u->kind == FATHOM_JIT_EH_FRAME) {
		err = find_foreign(u, m, code, &f, ret_blame);
	} else {
		f.cie.personality = u->personality;
		f.lsda = u->lsda;
		err = describe(u, m, size, &f, ret_blame);
	}
	if (err)
		return err;
	f.cie.has_lsda = f.lsda != 0;
	*ret = f;
	return FATHOM_OK;
}

void fathom_copy_jit_frame_deinit(struct fathom_copy_jit_frame *f)
{
	free(f->owned);
}

/* src/host/publish/frame_image.c */
/* SPDX-License-Identifier: MIT */



/* The CIE of an image that is being written: once in each. */
static size_t put_cie(struct fathom_copy_jit_registry *r, struct fathom_copy_out *o,
		      const struct fathom_copy_jit_cie *cie, size_t start)
{
	/* The registry owns it: what others have of it does not change. */
	struct fathom_copy_jit_cie *c = (struct fathom_copy_jit_cie *)(uintptr_t)cie;

	if (c->stamp != r->stamp) {
		c->stamp = r->stamp;
		c->off = (uint32_t)(fathom_copy_cie_write(o, &c->form) - start);
	}
	return start + c->off;
}

/* Notes that an FDE was written at @off, of @n functions of a leaf. */
static void count_fde(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_image *image, size_t off,
		      size_t n)
{
	if (!image->n_fde++)
		image->fde = off;
	/* There is room in leaves; images of one FDE need none. */
	while (n-- && r->fdes.n < r->fdes.cap)
		r->fdes.items[r->fdes.n++] = (uint32_t)off;
}

static void put_entry(struct fathom_copy_jit_registry *r, struct fathom_copy_out *o, size_t start,
		      const struct fathom_copy_jit_entry *e, struct fathom_copy_jit_image *image)
{
	const struct fathom_copy_jit_body *b = e->body;
	const size_t cie = put_cie(r, o, b->cie, start);

	count_fde(r, image,
		  fathom_copy_fde_write(o, &b->cie->form, cie, e->low, b->framed, b->lsda,
				   (struct fathom_copy_bytes){ b->instructions, b->n_instructions }) -
			  start,
		  1);
}

static void put_arena(struct fathom_copy_jit_registry *r, struct fathom_copy_out *o, size_t start,
		      const struct fathom_jit_arena *a, uint64_t low, uint64_t high, size_t n,
		      struct fathom_copy_jit_image *image)
{
	const size_t cie = put_cie(r, o, a->cie, start);

	count_fde(r, image,
		  fathom_copy_fde_write(o, &a->cie->form, cie, low, high - low, a->lsda,
				   (struct fathom_copy_bytes){ a->instructions, a->n_instructions }) -
			  start,
		  n);
}

void fathom_copy_jit_image_write(struct fathom_copy_jit_registry *r, struct fathom_copy_out *o,
			    const struct fathom_copy_jit_leaf *leaf, struct fathom_copy_jit_image *image)
{
	const size_t start = o->n;

	r->stamp++;
	r->fdes.n = 0;
	image->n_fde = 0;
	for (size_t i = 0; i < leaf->n; i++) {
		const struct fathom_copy_jit_entry *e = leaf->entries[i];
		size_t end = i;

		if (e->body->cie)
			put_entry(r, o, start, e, image);
		if (!e->body->cie && !e->arena->cie && r->fdes.n < r->fdes.cap)
			r->fdes.items[r->fdes.n++] = FATHOM_REGISTRY_NO_FDE;
		if (!e->arena->cie)
			continue;
		/* One for all neighbours of an arena that has one rule. */
		while (end + 1 < leaf->n && leaf->entries[end + 1]->arena == e->arena)
			end++;
		put_arena(r, o, start, e->arena, e->low, fathom_copy_jit_high(leaf->entries[end]),
			  end - i + 1, image);
		i = end;
	}
	fathom_copy_out_u32(o, 0);
}

/*
 * Bytes before an image. libgcc up to 12 takes an array of images for an empty one if the low half
 * of its first pointer is 0, and then does not deregister it: an image never begins at a multiple
 * of 4 GiB, where some allocators put what they give.
 */
#define BEFORE_IMAGE 8

/* Makes an image of one FDE: of @e, or of all of @a if that is NULL; NULL without memory. */
static struct fathom_copy_jit_image *make_image(struct fathom_copy_jit_registry *r,
					   const struct fathom_copy_jit_entry *e,
					   const struct fathom_jit_arena *a)
{
	struct fathom_copy_jit_image *image = NULL;
	struct fathom_copy_jit_image counts;
	struct fathom_copy_out o = { 0 };

	for (;;) {
		r->stamp++;
		counts.n_fde = 0;
		if (e)
			put_entry(r, &o, 0, e, &counts);
		else
			put_arena(r, &o, 0, a, a->low, a->high, 0, &counts);
		fathom_copy_out_u32(&o, 0);
		if (image)
			break;
		image = malloc(sizeof *image + BEFORE_IMAGE + o.n);
		if (!image)
			return NULL;
		o = (struct fathom_copy_out){ .at = (uint8_t *)(image + 1) + BEFORE_IMAGE, .cap = o.n };
	}
	*image = (struct fathom_copy_jit_image){ .bytes = o.at,
					    .fde = counts.fde,
					    .n_fde = 1,
					    .low = e ? e->low : a->low,
					    .high = e ? e->low + e->body->framed : a->high };
	return image;
}

bool fathom_copy_jit_image_of_entry(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_entry *e)
{
	if (e->body->cie && !e->image)
		e->image = make_image(r, e, NULL);
	return e->image || !e->body->cie;
}

bool fathom_copy_jit_image_of_arena(struct fathom_copy_jit_registry *r, struct fathom_jit_arena *arena)
{
	arena->image = make_image(r, NULL, arena);
	return arena->image != NULL;
}

void fathom_copy_jit_image_free(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_image *image)
{
	if (image)
		fathom_copy_jit_tokens_free(r, image);
	free(image);
}

static void put_file_frame_image(struct fathom_copy_jit_registry *r, struct fathom_copy_out *o, const void *leaf)
{
	struct fathom_copy_jit_leaf *l = (struct fathom_copy_jit_leaf *)(uintptr_t)leaf;

	fathom_copy_jit_symbol_file_write(r, o, l, &l->image);
}

static void put_image(struct fathom_copy_jit_registry *r, struct fathom_copy_out *o, const void *leaf)
{
	struct fathom_copy_jit_leaf *l = (struct fathom_copy_jit_leaf *)(uintptr_t)leaf;

	fathom_copy_jit_image_write(r, o, l, &l->image);
}

bool fathom_copy_jit_leaf_build(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_leaf *leaf,
			   bool symbols)
{
	struct fathom_copy_bytes b;

	r->fdes.n = 0;
	if (!fathom_copy_array_room(&r->fdes, leaf->n))
		return false;
	b = fathom_copy_jit_scratch_write(r, symbols ? put_file_frame_image : put_image, leaf);
	leaf->block = b.data ? malloc(sizeof *leaf->block + (size_t)b.size) : NULL;
	if (!leaf->block)
		return false;
	leaf->serial = ++r->serial;
	*leaf->block = leaf->serial;
	leaf->gdb.symbol_file = memcpy(leaf->block + 1, b.data, (size_t)b.size);
	leaf->gdb.size = b.size;
	leaf->image.bytes = fathom_copy_jit_file_of(leaf) + (symbols ? FATHOM_JIT_FRAMES_OFF : 0);
	leaf->image.low = leaf->entries[0]->low;
	leaf->image.high = fathom_copy_jit_high(leaf->entries[leaf->n - 1]);
	return true;
}

void fathom_copy_jit_leaf_free(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_leaf *leaf)
{
	fathom_copy_jit_tokens_free(r, &leaf->image);
	if (leaf->block)
		fathom_copy_jit_block_free(leaf->block);
	free(leaf);
}

/* src/host/publish/gdb_interface.c */
/* SPDX-License-Identifier: MIT */

/* SPDX-License-Identifier: MIT */
/*
 * GDB's JIT interface (GDB manual, "JIT Compilation Interface", version 1), by which a program
 * tells a debugger of the code that it makes. A descriptor, the variable __jit_debug_descriptor of
 * any module, leads to a list of entries, each with an ELF file in memory, the symbol file:
 *
 *	struct jit_descriptor { u32 version, action_flag; entry *relevant_entry, *first_entry; };
 *	struct jit_code_entry { entry *next, *prev; const char *symfile_addr; u64 symfile_size; };
 *
 * These functions read both from bytes that were copied from a process, of any class and byte
 * order. A 64-bit integer is aligned to 8 bytes, but on 32-bit x86 to 4 and on m68k to 2 (System V
 * ABI); its offset there, 12, is a multiple of both.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_JIT_GDB_LAYOUT_H
#define FATHOM_JIT_GDB_LAYOUT_H


#define FATHOM_GDB_VERSION 1

/* Bytes of the largest entry or descriptor. */
#define FATHOM_GDB_MAX_SIZE 32

struct fathom_copy_gdb_layout {
	uint8_t word;       /* bytes of a pointer */
	uint8_t size_off;   /* offset of symfile_size */
	uint8_t entry;      /* bytes of an entry */
	uint8_t descriptor; /* bytes of a descriptor */
	bool swap;
};

struct fathom_copy_gdb_descriptor {
	uint64_t relevant; /* avma of the entry that changed last, or 0 */
	uint64_t first;    /* avma; 0 if the list is empty */
	uint32_t version;
	uint32_t action;
};

struct fathom_copy_gdb_entry {
	uint64_t next; /* avma */
	uint64_t prev;
	uint64_t symfile;
	uint64_t size; /* bytes of the symbol file */
};

/* Returns the layout in programs of @machine (EM_). */
struct fathom_copy_gdb_layout fathom_copy_gdb_layout(bool is64, uint16_t machine, bool swap);

/* Reads l->descriptor bytes at @from. */
void fathom_copy_gdb_descriptor_read(const struct fathom_copy_gdb_layout *l, const uint8_t *from,
				struct fathom_copy_gdb_descriptor *ret);

/* Reads l->entry bytes at @from. */
void fathom_copy_gdb_entry_read(const struct fathom_copy_gdb_layout *l, const uint8_t *from,
			   struct fathom_copy_gdb_entry *ret);

#endif

/* What debuggers look for by name, in each loaded object (GDB manual, "JIT Compilation Interface").
 */
enum { JIT_NOACTION = 0, JIT_REGISTER_FN = 1, JIT_UNREGISTER_FN = 2 };

struct jit_descriptor {
	uint32_t version;
	uint32_t action_flag;
	struct fathom_copy_jit_gdb_entry *relevant_entry;
	struct fathom_copy_jit_gdb_entry *first_entry;
};

/*
 * The library's own, by names that no other object can take: LLVM and others export the same names,
 * and the dynamic linker would let us write into theirs.
 */
static struct jit_descriptor descriptor = { .version = FATHOM_GDB_VERSION };

/* Debuggers stop here; it must not be inlined, nor left out. */
static __attribute__((noinline)) void register_code(void)
{
	__asm__ volatile("" ::: "memory");
}

/* Exported whatever FATHOM_API is. */
#define EXPORTED_ALIAS(name) __attribute__((alias(name), visibility("default")))
extern struct jit_descriptor __jit_debug_descriptor EXPORTED_ALIAS("descriptor");
extern void __jit_debug_register_code(void) EXPORTED_ALIAS("register_code");

static void tell_gdb_interface(struct fathom_copy_jit_gdb_entry *e, uint32_t action)
{
	descriptor.relevant_entry = e;
	descriptor.action_flag = action;
	register_code();
	descriptor.action_flag = JIT_NOACTION;
	descriptor.relevant_entry = NULL;
}

/*
 * Whoever copies the list while it changes must find it whole: what an entry says is written before
 * the entry can be reached.
 */
static void link_to(struct fathom_copy_jit_gdb_entry **from, struct fathom_copy_jit_gdb_entry *to)
{
	__atomic_store_n(from, to, __ATOMIC_RELEASE);
}

void fathom_copy_jit_gdb_add(struct fathom_copy_jit_gdb_entry *e)
{
	e->prev = NULL;
	e->next = descriptor.first_entry;
	if (e->next)
		link_to(&e->next->prev, e);
	link_to(&descriptor.first_entry, e);
	tell_gdb_interface(e, JIT_REGISTER_FN);
}

void fathom_copy_jit_gdb_remove(struct fathom_copy_jit_gdb_entry *e)
{
	link_to(e->prev ? &e->prev->next : &descriptor.first_entry, e->next);
	if (e->next)
		link_to(&e->next->prev, e->prev);
	tell_gdb_interface(e, JIT_UNREGISTER_FN);
}

/* src/host/publish/lines_write.c */
/* SPDX-License-Identifier: MIT */
/* The DWARF of symbol files: lines and inlined calls, version 4 (all debuggers read it). */

/* What is only written (DWARF 4, 7.5); the rest stands with the readers. */
enum {
	DW_AT_inline = 0x20,
	DW_AT_producer = 0x25,
	DW_AT_external = 0x3f,
	DW_INL_inlined = 0x01,
};

/*
 * gdb takes rules of gcc's units (4.5 and later) as they are. In others it takes, at a return, the
 * return address from the stack: that of code with a reserved frame pointer is the shim's, a frame
 * too many.
 */
static const char producer[] = "GNU JIT 12.2";

enum { UNIT = 1, FUNCTION, FUNCTION_WITH_CALLS, INLINED, CALL };

static const uint8_t abbrevs[] = {
	UNIT,
	DW_TAG_compile_unit,
	1,
	DW_AT_producer,
	DW_FORM_string,
	DW_AT_language,
	DW_FORM_data1,
	DW_AT_name,
	DW_FORM_string,
	DW_AT_stmt_list,
	DW_FORM_sec_offset,
	DW_AT_low_pc,
	DW_FORM_addr,
	DW_AT_high_pc,
	DW_FORM_data4,
	0,
	0,
	FUNCTION,
	DW_TAG_subprogram,
	0,
	DW_AT_name,
	DW_FORM_string,
	DW_AT_external,
	DW_FORM_flag_present,
	DW_AT_low_pc,
	DW_FORM_addr,
	DW_AT_high_pc,
	DW_FORM_data4,
	0,
	0,
	FUNCTION_WITH_CALLS,
	DW_TAG_subprogram,
	1,
	DW_AT_name,
	DW_FORM_string,
	DW_AT_external,
	DW_FORM_flag_present,
	DW_AT_low_pc,
	DW_FORM_addr,
	DW_AT_high_pc,
	DW_FORM_data4,
	0,
	0,
	INLINED,
	DW_TAG_subprogram,
	0,
	DW_AT_name,
	DW_FORM_string,
	DW_AT_inline,
	DW_FORM_data1,
	0,
	0,
	CALL,
	DW_TAG_inlined_subroutine,
	1,
	DW_AT_abstract_origin,
	DW_FORM_ref4,
	DW_AT_low_pc,
	DW_FORM_addr,
	DW_AT_high_pc,
	DW_FORM_data4,
	DW_AT_call_file,
	DW_FORM_udata,
	DW_AT_call_line,
	DW_FORM_udata,
	0,
	0,
	0,
};

void fathom_copy_jit_abbrevs_write(struct fathom_copy_out *o)
{
	fathom_copy_out_bytes(o, abbrevs, sizeof abbrevs);
}

bool fathom_copy_jit_leaf_has_lines(const struct fathom_copy_jit_leaf *leaf)
{
	for (size_t i = 0; i < leaf->n; i++)
		if (leaf->entries[i]->body->n_rows || leaf->entries[i]->body->n_copies)
			return true;
	return false;
}

/* The special opcodes of the line program (DWARF 4, 6.2.5.1). */
enum { LINE_BASE = -5, LINE_RANGE = 14, OPCODE_BASE = 13 };
/* Gives @f the next number, if it has none in this symbol file, and writes its name. */
static void put_file_lines_write(struct fathom_copy_out *o, struct fathom_copy_jit_file *f, uint32_t stamp, uint32_t *n)
{
	if (!f || f->stamp == stamp)
		return;
	f->stamp = stamp;
	f->number = ++*n;
	fathom_copy_out_bytes(o, f->name, strlen(f->name) + 1);
	/* No folder, no time, no size. */
	fathom_copy_out_bytes(o, "\0\0", 3);
}

static void put_files(struct fathom_copy_out *o, const struct fathom_copy_jit_leaf *leaf, uint32_t stamp)
{
	uint32_t n = 0;

	for (size_t i = 0; i < leaf->n; i++) {
		const struct fathom_copy_jit_body *b = leaf->entries[i]->body;

		put_file_lines_write(o, b->file, stamp, &n);
		for (uint32_t k = 0; k < b->n_rows; k++)
			put_file_lines_write(o, b->rows[k].file, stamp, &n);
		for (uint32_t k = 0; k < b->n_copies; k++)
			put_file_lines_write(o, b->copies[k].file, stamp, &n);
	}
	fathom_copy_out_u8(o, 0);
}

/* The registers of the line program. */
struct line_state {
	uint32_t offset;
	uint32_t file;
	uint32_t line;
	uint32_t column;
};

static void put_row(struct fathom_copy_out *o, struct line_state *s, const struct fathom_copy_jit_row *row)
{
	const uint32_t file = row->file->number;
	const uint32_t forward = row->offset - s->offset;
	const int64_t down = (int64_t)row->line - s->line;
	int64_t special;

	if (file != s->file) {
		fathom_copy_out_u8(o, DW_LNS_set_file);
		fathom_copy_out_uleb(o, file);
	}
	if (row->column != s->column) {
		fathom_copy_out_u8(o, DW_LNS_set_column);
		fathom_copy_out_uleb(o, row->column);
	}
	special = down - LINE_BASE + (int64_t)LINE_RANGE * forward + OPCODE_BASE;
	if (down < LINE_BASE || down >= LINE_BASE + LINE_RANGE || special > UINT8_MAX) {
		fathom_copy_out_u8(o, DW_LNS_advance_pc);
		fathom_copy_out_uleb(o, forward);
		fathom_copy_out_u8(o, DW_LNS_advance_line);
		fathom_copy_out_sleb(o, down);
		special = DW_LNS_copy;
	}
	fathom_copy_out_u8(o, (uint8_t)special);
	*s = (struct line_state){ row->offset, file, row->line, row->column };
}

static void put_sequence(struct fathom_copy_out *o, const struct fathom_copy_jit_entry *e)
{
	const struct fathom_copy_jit_body *b = e->body;
	struct line_state s = { .file = 1, .line = 1 };

	if (!b->n_rows)
		return;
	fathom_copy_out_u8(o, 0);
	fathom_copy_out_uleb(o, 9);
	fathom_copy_out_u8(o, DW_LNE_set_address);
	fathom_copy_out_u64(o, e->low);
	for (uint32_t i = 0; i < b->n_rows; i++)
		put_row(o, &s, &b->rows[i]);
	fathom_copy_out_u8(o, DW_LNS_advance_pc);
	fathom_copy_out_uleb(o, b->size - s.offset);
	fathom_copy_out_bytes(o, "\0\1", 2);
	fathom_copy_out_u8(o, DW_LNE_end_sequence);
}

void fathom_copy_jit_lines_write(struct fathom_copy_jit_registry *r, struct fathom_copy_out *o,
			    const struct fathom_copy_jit_leaf *leaf)
{
	/* Operands of the standard opcodes. */
	static const uint8_t lengths[OPCODE_BASE - 1] = { 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1 };
	const size_t unit = o->n;
	size_t header;

	r->stamp++;
	fathom_copy_out_u32(o, 0);
	fathom_copy_out_u16(o, 4);
	fathom_copy_out_u32(o, 0);
	header = o->n;
	/* The shortest instruction, operations in one, is_stmt. */
	fathom_copy_out_bytes(o, "\1\1\1", 3);
	fathom_copy_out_u8(o, (uint8_t)LINE_BASE);
	fathom_copy_out_u8(o, LINE_RANGE);
	fathom_copy_out_u8(o, OPCODE_BASE);
	fathom_copy_out_bytes(o, lengths, sizeof lengths);
	fathom_copy_out_u8(o, 0); /* no folders */
	put_files(o, leaf, r->stamp);
	fathom_copy_out_patch(o, header - 4, (uint32_t)(o->n - header));
	for (size_t i = 0; i < leaf->n; i++)
		put_sequence(o, leaf->entries[i]);
	fathom_copy_out_patch(o, unit, (uint32_t)(o->n - unit - 4));
}

static void put_text(struct fathom_copy_out *o, const char *text)
{
	fathom_copy_out_bytes(o, text, strlen(text) + 1);
}

/* The functions that were inlined; where the first of them stands. They are of equal interest. */
static void put_inlined(struct fathom_copy_out *o, const struct fathom_copy_jit_body *b)
{
	for (uint32_t i = 0; i < b->n_copies; i++) {
		fathom_copy_out_u8(o, INLINED);
		put_text(o, b->copies[i].name);
		fathom_copy_out_u8(o, DW_INL_inlined);
	}
}

#define MOST_DEPTH 64

/* The calls, each within the one that its range lies in. @origin is where put_inlined() began. */
static void put_calls(struct fathom_copy_out *o, const struct fathom_copy_jit_entry *e, size_t origin)
{
	const struct fathom_copy_jit_body *b = e->body;
	uint32_t ends[MOST_DEPTH];
	size_t depth = 0;

	for (uint32_t i = 0; i < b->n_copies; i++) {
		const struct fathom_copy_jit_copy *c = &b->copies[i];

		while (depth && (c->begin >= ends[depth - 1] || c->end > ends[depth - 1] ||
				 depth == MOST_DEPTH)) {
			fathom_copy_out_u8(o, 0);
			depth--;
		}
		fathom_copy_out_u8(o, CALL);
		fathom_copy_out_u32(o, (uint32_t)origin);
		fathom_copy_out_u64(o, e->low + c->begin);
		fathom_copy_out_u32(o, c->end - c->begin);
		fathom_copy_out_uleb(o, c->file ? c->file->number : 0);
		fathom_copy_out_uleb(o, c->line);
		ends[depth++] = c->end;
		origin += 1 + strlen(c->name) + 1 + 1;
	}
	while (depth--)
		fathom_copy_out_u8(o, 0);
}

static void put_function(struct fathom_copy_out *o, const struct fathom_copy_jit_entry *e, size_t unit)
{
	const struct fathom_copy_jit_body *b = e->body;
	const size_t origin = o->n - unit;

	if (!b->n_rows && !b->n_copies)
		return;
	put_inlined(o, b);
	fathom_copy_out_u8(o, b->n_copies ? FUNCTION_WITH_CALLS : FUNCTION);
	put_text(o, b->name);
	fathom_copy_out_u64(o, e->low);
	fathom_copy_out_u32(o, (uint32_t)b->size);
	if (!b->n_copies)
		return;
	put_calls(o, e, origin);
	fathom_copy_out_u8(o, 0);
}

/* Returns the source that the unit is called after: the first that has a name. */
static const char *name_of_unit(const struct fathom_copy_jit_leaf *leaf)
{
	for (size_t i = 0; i < leaf->n; i++) {
		const struct fathom_copy_jit_body *b = leaf->entries[i]->body;

		if (b->file)
			return b->file->name;
		if (b->n_rows && b->rows[0].file)
			return b->rows[0].file->name;
	}
	return "?";
}

void fathom_copy_jit_info_write(struct fathom_copy_out *o, const struct fathom_copy_jit_leaf *leaf)
{
	const uint64_t low = leaf->entries[0]->low;
	const size_t unit = o->n;

	fathom_copy_out_u32(o, 0);
	fathom_copy_out_u16(o, 4);
	fathom_copy_out_u32(o, 0); /* of .debug_abbrev */
	fathom_copy_out_u8(o, 8);
	fathom_copy_out_u8(o, UNIT);
	put_text(o, producer);
	fathom_copy_out_u8(o, DW_LANG_C99);
	put_text(o, name_of_unit(leaf));
	fathom_copy_out_u32(o, 0); /* of .debug_line */
	fathom_copy_out_u64(o, low);
	fathom_copy_out_u32(o, (uint32_t)(fathom_copy_jit_high(leaf->entries[leaf->n - 1]) - low));
	for (size_t i = 0; i < leaf->n; i++)
		put_function(o, leaf->entries[i], unit);
	fathom_copy_out_u8(o, 0);
	fathom_copy_out_patch(o, unit, (uint32_t)(o->n - unit - 4));
}

/* src/host/publish/perf_files.c */
/* SPDX-License-Identifier: MIT */



/* Records of a jitdump. */
enum { JIT_CODE_LOAD = 0, JIT_CODE_MOVE = 1, JIT_CODE_DEBUG_INFO = 2, JIT_CODE_UNWINDING_INFO = 4 };
#define JITDUMP_MAGIC  UINT32_C(0x4A695444)
#define JITDUMP_HEADER 40

/* The .eh_frame_hdr of one FDE: its head, and one row of its table. */
#define EH_FRAME_HDR 20

/*
 * Opens @path for appending, as ours: not through a link, not another user's file, not one with
 * another name. Returns the descriptor, or 0.
 */
static int open_own(const char *path, int flags)
{
	const int fd =
		open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | flags, 0644);
	struct stat s;

	if (fd < 0)
		return 0;
	if (fd && !fstat(fd, &s) && S_ISREG(s.st_mode) && s.st_uid == geteuid() && s.st_nlink == 1)
		return fd;
	(void)close(fd);
	return 0;
}

/* Seconds by which files may seem older than they are: their clock is coarse. */
#define CLOCK_SLACK 2

/* Returns whether the file @fd was last written before this process was started. */
static bool is_of_another(int fd)
{
	const int stat_fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	char text[1024];
	struct stat s;
	ssize_t n;

	if (stat_fd < 0)
		return false;
	n = read(stat_fd, text, sizeof text - 1);
	(void)close(stat_fd);
	text[n > 0 ? n : 0] = '\0';
	return !fstat(fd, &s) && s.st_mtim.tv_sec + CLOCK_SLACK < fathom_copy_start_time(text);
}

static void open_perf_map(struct fathom_copy_jit_registry *r)
{
	char path[64];

	(void)snprintf(path, sizeof path, "/tmp/perf-%ld.map", (long)getpid());
	r->perf_map = open_own(path, 0);
	if (r->perf_map && is_of_another(r->perf_map) && ftruncate(r->perf_map, 0)) {
		(void)close(r->perf_map);
		r->perf_map = 0;
	}
	if (!r->perf_map)
		fathom_copy_jit_say(r, "perf-map: its file cannot be opened, or belongs to somebody "
				  "else");
}

/* Writes all of @b, or nothing. */
static bool write_whole(int fd, struct fathom_copy_bytes b)
{
	size_t done = 0;

	while (done < b.size) {
		const ssize_t n = write(fd, b.data + done, (size_t)b.size - done);

		if (n > 0) {
			done += (size_t)n;
		} else if (n < 0 && errno != EINTR) {
			const off_t end = lseek(fd, 0, SEEK_END);

			if (done && end >= (off_t)done)
				(void)!ftruncate(fd, end - (off_t)done);
			return false;
		}
	}
	return true;
}

static void put_header(struct fathom_copy_out *o, const struct fathom_copy_jit_registry *r)
{
	fathom_copy_out_u32(o, JITDUMP_MAGIC);
	fathom_copy_out_u32(o, 1);
	fathom_copy_out_u32(o, JITDUMP_HEADER);
	fathom_copy_out_u32(o, r->machine->elf);
	fathom_copy_out_u32(o, 0);
	fathom_copy_out_u32(o, (uint32_t)getpid());
	fathom_copy_out_u64(o, (uint64_t)fathom_copy_now_ns());
	fathom_copy_out_u64(o, 0);
}

static void close_dump(struct fathom_copy_jit_registry *r)
{
	if (r->dump.mark)
		(void)munmap(r->dump.mark, r->dump.mark_size);
	if (r->dump.fd)
		(void)close(r->dump.fd);
	r->dump = (struct fathom_copy_jit_dump){ 0 };
}

static void open_dump(struct fathom_copy_jit_registry *r)
{
	char path[sizeof r->folder + 32];
	uint8_t bytes[JITDUMP_HEADER];
	struct fathom_copy_out o = { .at = bytes, .cap = sizeof bytes };

	(void)snprintf(path, sizeof path, "%s/jit-%ld.dump", r->folder, (long)getpid());
	/* One of an earlier process with our number would be continued: only a new file is ours. */
	if (unlink(path) && errno != ENOENT)
		goto failed;
	r->dump.fd = open_own(path, O_EXCL);
	put_header(&o, r);
	if (!r->dump.fd || write(r->dump.fd, bytes, sizeof bytes) != (ssize_t)sizeof bytes)
		goto failed;
	/* perf records that the file is mapped as code, and so finds it. */
	r->dump.mark_size = (size_t)sysconf(_SC_PAGESIZE);
	r->dump.mark =
		mmap(NULL, r->dump.mark_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, r->dump.fd, 0);
	if (r->dump.mark != MAP_FAILED)
		return;
	r->dump.mark = NULL;
failed:
	close_dump(r);
	fathom_copy_jit_say(r, "jitdump: its file cannot be made, or belongs to somebody else");
}

bool fathom_copy_jit_files_open(struct fathom_copy_jit_registry *r, uint32_t on)
{
	const int32_t pid = (int32_t)getpid();

	if (!(on & (FATHOM_JIT_PERF_MAP | FATHOM_JIT_JITDUMP)) || r->files_pid == pid)
		return false;
	if (r->perf_map)
		(void)close(r->perf_map);
	r->perf_map = 0;
	close_dump(r);
	r->files_pid = pid;
	if (on & FATHOM_JIT_PERF_MAP)
		open_perf_map(r);
	if (on & FATHOM_JIT_JITDUMP)
		open_dump(r);
	return true;
}

/* Appends a name in a line: what would end or bend it is escaped as C does. */
static void put_escaped(struct fathom_copy_out *o, const struct fathom_copy_jit_body *b)
{
	static const char digits[] = "0123456789abcdef";

	for (uint32_t i = 0; i < b->n_name; i++) {
		const uint8_t c = (uint8_t)b->name[i];

		if (c == '\n') {
			fathom_copy_out_bytes(o, "\\n", 2);
		} else if (c < ' ' || c == 0x7f) {
			fathom_copy_out_bytes(o, "\\x", 2);
			fathom_copy_out_u8(o, (uint8_t)digits[c >> 4]);
			fathom_copy_out_u8(o, (uint8_t)digits[c & 15]);
		} else {
			fathom_copy_out_u8(o, c);
		}
	}
}

static void put_line(struct fathom_copy_out *o, const struct fathom_copy_jit_entry *e)
{
	char numbers[48];
	const int n = snprintf(numbers, sizeof numbers, "%" PRIx64 " %" PRIx64 " ", e->low,
			       e->body->size);

	fathom_copy_out_bytes(o, numbers, (size_t)n);
	put_escaped(o, e->body);
	fathom_copy_out_u8(o, '\n');
}

/* Writes what @put makes of @news to @fd, at once. */
static bool write_news(struct fathom_copy_jit_registry *r, int fd,
		       const struct fathom_copy_jit_news_array *news,
		       void (*put)(struct fathom_copy_jit_registry *r, struct fathom_copy_out *o,
				   const void *news))
{
	const struct fathom_copy_bytes b = fathom_copy_jit_scratch_write(r, put, news);

	return b.data && write_whole(fd, b);
}

static void put_map_lines(struct fathom_copy_jit_registry *r, struct fathom_copy_out *o, const void *data)
{
	const struct fathom_copy_jit_news_array *news = data;

	(void)r;
	for (size_t i = 0; i < news->n; i++)
		put_line(o, news->items[i].entry);
}

void fathom_copy_jit_perf_map_write(struct fathom_copy_jit_registry *r,
			       const struct fathom_copy_jit_news_array *news)
{
	if (r->perf_map && news->n && !write_news(r, r->perf_map, news, put_map_lines))
		fathom_copy_jit_say(r, "perf-map: its file cannot be written");
}

/* The head of a record; its size follows when it ends. */
static size_t begin_record(struct fathom_copy_out *o, uint32_t id)
{
	const size_t at = o->n;

	fathom_copy_out_u32(o, id);
	fathom_copy_out_u32(o, 0);
	fathom_copy_out_u64(o, (uint64_t)fathom_copy_now_ns());
	return at;
}

static void end_record(struct fathom_copy_out *o, size_t at)
{
	fathom_copy_out_patch(o, at + 4, (uint32_t)(o->n - at));
}

static void put_debug_info(struct fathom_copy_out *o, const struct fathom_copy_jit_entry *e)
{
	const struct fathom_copy_jit_body *b = e->body;
	const size_t at = begin_record(o, JIT_CODE_DEBUG_INFO);

	fathom_copy_out_u64(o, e->low);
	fathom_copy_out_u64(o, b->n_rows);
	for (uint32_t i = 0; i < b->n_rows; i++) {
		const struct fathom_copy_jit_row *row = &b->rows[i];

		fathom_copy_out_u64(o, e->low + row->offset);
		fathom_copy_out_u32(o, row->line);
		fathom_copy_out_u32(o, 0);
		/* The mark for "the same as before" is a name to perf 6.1. */
		fathom_copy_out_bytes(o, row->file->name, strlen(row->file->name) + 1);
	}
	end_record(o, at);
}

/*
 * Returns how much of @size bytes of unwinding information is to be mapped behind the code of @e:
 * all, which perf needs to unwind, or nothing if other code is there. It would lose its name.
 */
static uint64_t mapped_size(const struct fathom_copy_jit_registry *r, const struct fathom_copy_jit_entry *e,
			    uint64_t size)
{
	const uint64_t end = ((fathom_copy_jit_high(e) + 7) & ~UINT64_C(7)) + size;

	return end <= fathom_copy_jit_next(r, e) ? size : 0;
}

/* Writes the sizes of unwinding information, which were unknown when they were to be written. */
static void patch_sizes(struct fathom_copy_out *o, size_t at, uint64_t all, uint64_t mapped)
{
	const uint64_t sizes[] = { all, EH_FRAME_HDR, mapped };

	if (range_inside(at, sizeof sizes, o->cap))
		memcpy(o->at + at, sizes, sizeof sizes);
}

/*
 * Unwinding information: .eh_frame, then .eh_frame_hdr, as perf puts them behind the code in the
 * file that it makes, at the next multiple of 8. Addresses are relative to that.
 */
static void put_unwinding(const struct fathom_copy_jit_registry *r, struct fathom_copy_out *o,
			  const struct fathom_copy_jit_entry *e)
{
	const struct fathom_jit_arena *a = e->arena;
	const struct fathom_copy_jit_body *b = e->body;
	const struct fathom_copy_jit_cie *cie = a->cie ? a->cie : b->cie;
	const struct fathom_copy_bytes rule =
		a->cie ? (struct fathom_copy_bytes){ a->instructions, a->n_instructions }
		       : (struct fathom_copy_bytes){ b->instructions, b->n_instructions };
	const size_t at = begin_record(o, JIT_CODE_UNWINDING_INFO);
	const size_t sizes = o->n;
	/* perf takes neither personality nor LSDA. */
	struct fathom_copy_cie_form form = cie->form;
	const uint64_t code = (b->size + 7) & ~UINT64_C(7);
	uint64_t low;
	size_t start;
	size_t cie_off;
	size_t fde;
	size_t size;

	form.personality = 0;
	form.has_lsda = 0;
	form.is_relative = 1;
	fathom_copy_out_bytes(o, (const uint64_t[3]){ 0 }, 3 * sizeof(uint64_t));
	start = o->n;
	o->origin = start;
	cie_off = fathom_copy_cie_write(o, &form);
	/* From the field that says it back to the code. */
	low = (uint64_t)0 - code - (o->n + 8 - start);
	fde = fathom_copy_fde_write(o, &form, cie_off, low, a->cie ? b->size : b->framed, 0, rule);
	fathom_copy_out_u32(o, 0);
	fathom_copy_out_align(o, 8);
	size = o->n - start;
	fathom_copy_out_bytes(o, "\1\x1b\3\x3b", 4);
	fathom_copy_out_u32(o, -(uint32_t)(size + 4));
	fathom_copy_out_u32(o, 1);
	fathom_copy_out_u32(o, -(uint32_t)(code + size));
	fathom_copy_out_u32(o, -(uint32_t)(size - (fde - start)));
	fathom_copy_out_align(o, 8);
	/* The header is the last of the data; what pads it is not a part of that. */
	patch_sizes(o, sizes, size + EH_FRAME_HDR, mapped_size(r, e, o->n - start));
	o->origin = 0;
	end_record(o, at);
}

static void put_ids(struct fathom_copy_out *o)
{
	fathom_copy_out_u32(o, (uint32_t)getpid());
	fathom_copy_out_u32(o, (uint32_t)syscall(SYS_gettid));
}

static void put_load(struct fathom_copy_out *o, const struct fathom_copy_jit_entry *e)
{
	const struct fathom_copy_jit_body *b = e->body;
	const size_t at = begin_record(o, JIT_CODE_LOAD);

	put_ids(o);
	fathom_copy_out_u64(o, e->low);
	fathom_copy_out_u64(o, e->low);
	fathom_copy_out_u64(o, b->size);
	fathom_copy_out_u64(o, e->index);
	fathom_copy_out_bytes(o, b->name, b->n_name + 1);
	fathom_copy_out_bytes(o, (const void *)(uintptr_t)e->low, (size_t)b->size);
	end_record(o, at);
}

static void put_move(struct fathom_copy_out *o, const struct fathom_copy_jit_news *n)
{
	const size_t at = begin_record(o, JIT_CODE_MOVE);

	put_ids(o);
	fathom_copy_out_u64(o, n->entry->low);
	fathom_copy_out_u64(o, n->from);
	fathom_copy_out_u64(o, n->entry->low);
	fathom_copy_out_u64(o, n->entry->body->size);
	fathom_copy_out_u64(o, n->entry->index);
	end_record(o, at);
}

static void put_record_perf_files(struct fathom_copy_jit_registry *r, struct fathom_copy_out *o,
		       const struct fathom_copy_jit_news *n)
{
	const struct fathom_copy_jit_entry *e = n->entry;

	if (n->from) {
		put_move(o, n);
		return;
	}
	if (e->body->n_rows)
		put_debug_info(o, e);
	if (e->arena->cie || e->body->cie)
		put_unwinding(r, o, e);
	put_load(o, e);
}

static void put_records(struct fathom_copy_jit_registry *r, struct fathom_copy_out *o, const void *data)
{
	const struct fathom_copy_jit_news_array *news = data;

	for (size_t i = 0; i < news->n; i++)
		put_record_perf_files(r, o, &news->items[i]);
}

void fathom_copy_jit_dump_write(struct fathom_copy_jit_registry *r, const struct fathom_copy_jit_news_array *news)
{
	if (r->dump.fd && news->n && !write_news(r, r->dump.fd, news, put_records))
		fathom_copy_jit_say(r, "jitdump: its file cannot be written");
}

/* src/host/publish/plan.c */
/* SPDX-License-Identifier: MIT */



/* Offsets within an image have 32 bits: the code of a leaf spans less. */
#define MOST_SPAN (UINT64_C(1) << 30)
/* Functions of a leaf. */
#define MOST_CAPACITY ((size_t)1 << 24)

static uint64_t low_of(const struct fathom_copy_jit_leaf *l)
{
	return l->entries[0]->low;
}

/* Returns the number of the leaf that @low belongs to: the last that begins at or before it, or 0.
 */
static size_t leaf_of(const struct fathom_copy_jit_registry *r, uint64_t low)
{
	const size_t n = FATHOM_BISECT(r->leaves.n, i, low_of(r->leaves.items[i]) <= low);

	return n ? n - 1 : 0;
}

struct fathom_copy_jit_entry *fathom_copy_jit_find(const struct fathom_copy_jit_registry *r, uint64_t low)
{
	const struct fathom_copy_jit_leaf *l;
	size_t i;

	if (!r->leaves.n)
		return NULL;
	l = r->leaves.items[leaf_of(r, low)];
	i = FATHOM_BISECT(l->n, k, l->entries[k]->low < low);
	return i < l->n && l->entries[i]->low == low ? l->entries[i] : NULL;
}

uint64_t fathom_copy_jit_next(const struct fathom_copy_jit_registry *r, const struct fathom_copy_jit_entry *e)
{
	const size_t leaf = leaf_of(r, e->low);
	const struct fathom_copy_jit_leaf *l = r->leaves.items[leaf];
	const size_t i = FATHOM_BISECT(l->n, k, l->entries[k]->low <= e->low);
	uint64_t next = e->arena->high;

	if (i < l->n)
		next = l->entries[i]->low;
	else if (leaf + 1 < r->leaves.n)
		next = low_of(r->leaves.items[leaf + 1]);
	return next < e->arena->high ? next : e->arena->high;
}

/* By address; what goes before what comes. */
static int compare_changes(const void *a, const void *b)
{
	const struct fathom_copy_jit_entry *x = ((const struct fathom_copy_jit_change *)a)->entry;
	const struct fathom_copy_jit_entry *y = ((const struct fathom_copy_jit_change *)b)->entry;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return (int)y->leaves - (int)x->leaves;
}

/* Mostly they are sorted already: a compiler's memory grows. */
static void sort_changes(struct fathom_copy_jit_change_array *c)
{
	for (size_t i = 1; i < c->n; i++)
		if (compare_changes(&c->items[i - 1], &c->items[i]) > 0) {
			qsort(c->items, c->n, sizeof *c->items, compare_changes);
			return;
		}
}

/* Appends a leaf of @n functions. */
static bool push_leaf(struct fathom_copy_jit_plan *p, struct fathom_copy_jit_entry *const *entries, size_t n)
{
	struct fathom_copy_jit_leaf *l = calloc(1, sizeof *l + n * sizeof *entries);

	if (!l || !fathom_copy_array_push(&p->leaves, l)) {
		free(l);
		return false;
	}
	l->commit = p->commit;
	l->n = n;
	memcpy(l->entries, entries, n * sizeof *entries);
	return true;
}

/* Returns how many of the @n functions at @entries, @wanted or fewer, one leaf may span. */
static size_t within_span(struct fathom_copy_jit_entry *const *entries, size_t n, size_t wanted)
{
	size_t i = 1;

	while (i < n && i < wanted && fathom_copy_jit_high(entries[i]) - entries[0]->low < MOST_SPAN)
		i++;
	return i;
}

/*
 * Cuts the functions of p->work into leaves. Where all that is new is at the end, as with memory
 * that grows, leaves are left full; elsewhere in equal parts, with room for more.
 */
static bool cut(struct fathom_copy_jit_plan *p, bool grows)
{
	const size_t n = p->work.n;
	const size_t parts = (n + p->capacity - 1) / p->capacity;
	const size_t wanted = !parts || grows ? p->capacity : (n + parts - 1) / parts;
	size_t some;

	for (size_t i = 0; i < n; i += some) {
		some = within_span(p->work.items + i, n - i, wanted);
		if (!push_leaf(p, p->work.items + i, some))
			return false;
	}
	return true;
}

/* Appends @e to p->work; false if it overlaps the function before. */
static bool append(struct fathom_copy_jit_plan *p, struct fathom_copy_jit_entry *e)
{
	const struct fathom_copy_jit_entry *before = NULL;

	if (p->work.n) {
		before = p->work.items[p->work.n - 1];
	} else if (p->leaves.n) {
		const struct fathom_copy_jit_leaf *l = p->leaves.items[p->leaves.n - 1];

		before = l->entries[l->n - 1];
	}
	if (before && fathom_copy_jit_high(before) > e->low)
		return false;
	p->work.items[p->work.n++] = e;
	return true;
}

/* Merges the changes [from, to) with leaf @l, which may be NULL. */
static fathom_err merge(struct fathom_copy_jit_plan *p, struct fathom_copy_jit_leaf *l,
			const struct fathom_copy_jit_change_array *c, size_t from, size_t to)
{
	const size_t n = l ? l->n : 0;
	size_t k = 0;
	bool grows = true;

	p->work.n = 0;
	if (!fathom_copy_array_room(&p->work, n + to - from) || (l && !fathom_copy_array_push(&p->gone, l)))
		return FATHOM_E_MEMORY;
	for (size_t i = from; i < to || k < n;) {
		struct fathom_copy_jit_entry *e;

		/* What is in the leaf stands before what comes at the same address. */
		if (k < n && (i == to || c->items[i].entry->leaves ||
			      l->entries[k]->low <= c->items[i].entry->low)) {
			e = l->entries[k++];
			if (e->leaves) {
				i += i < to && c->items[i].entry == e;
				grows = false;
				continue;
			}
		} else {
			e = c->items[i].entry;
			p->bad = c->items[i].number;
			i++;
			grows = grows && k == n;
		}
		if (!append(p, e))
			return FATHOM_E_ARGUMENT;
	}
	p->last_is_new = true;
	return cut(p, grows) ? FATHOM_OK : FATHOM_E_MEMORY;
}

/* Appends leaf @l as it is; FATHOM_E_ARGUMENT if a new one reaches into it. */
static fathom_err keep_plan(struct fathom_copy_jit_plan *p, struct fathom_copy_jit_leaf *l)
{
	if (p->last_is_new && p->leaves.n) {
		const struct fathom_copy_jit_leaf *before = p->leaves.items[p->leaves.n - 1];

		if (fathom_copy_jit_high(before->entries[before->n - 1]) > low_of(l))
			return FATHOM_E_ARGUMENT;
	}
	p->last_is_new = false;
	return fathom_copy_array_push(&p->leaves, l) ? FATHOM_OK : FATHOM_E_MEMORY;
}

/* Withdraws leaf @l of the plan: its functions are in another one. */
static bool replace(struct fathom_copy_jit_plan *p, struct fathom_copy_jit_leaf *l)
{
	if (l->commit != p->commit)
		return fathom_copy_array_push(&p->gone, l);
	free(l);
	return true;
}

/* Makes one leaf of two neighbours where both fit; in place. */
static bool join_neighbours(struct fathom_copy_jit_plan *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->leaves.n; i++) {
		struct fathom_copy_jit_leaf *a = kept ? p->leaves.items[kept - 1] : NULL;
		struct fathom_copy_jit_leaf *b = p->leaves.items[i];
		struct fathom_copy_jit_leaf *both;

		if (!a || a->n + b->n > p->capacity ||
		    fathom_copy_jit_high(b->entries[b->n - 1]) - low_of(a) >= MOST_SPAN) {
			p->leaves.items[kept++] = b;
			continue;
		}
		both = calloc(1, sizeof *both + (a->n + b->n) * sizeof *both->entries);
		if (!both || !fathom_copy_array_room(&p->gone, 2)) {
			free(both);
			memmove(p->leaves.items + kept, p->leaves.items + i,
				(p->leaves.n - i) * sizeof *p->leaves.items);
			p->leaves.n -= i - kept;
			return false;
		}
		both->commit = p->commit;
		both->n = a->n + b->n;
		memcpy(both->entries, a->entries, a->n * sizeof *a->entries);
		memcpy(both->entries + a->n, b->entries, b->n * sizeof *b->entries);
		(void)replace(p, a);
		(void)replace(p, b);
		p->leaves.items[kept - 1] = both;
	}
	p->leaves.n = kept;
	return true;
}

/*
 * Merges leaves until there are few enough, and makes room for more. Code that is far apart cannot
 * be merged: a limit ends the search for it.
 */
static bool limit_leaves(struct fathom_copy_jit_plan *p)
{
	while (p->leaves.n > FATHOM_JIT_MOST_LEAVES && p->capacity < MOST_CAPACITY) {
		if (!join_neighbours(p))
			return false;
		if (p->leaves.n > FATHOM_JIT_MOST_LEAVES * 3 / 4)
			p->capacity *= 2;
	}
	return true;
}

/* Returns where the changes that belong to leaf @leaf end. */
static size_t end_of_group(const struct fathom_copy_jit_registry *r,
			   const struct fathom_copy_jit_change_array *c, size_t from, size_t leaf)
{
	size_t to = from + 1;

	if (leaf + 1 >= r->leaves.n)
		return c->n;
	while (to < c->n && c->items[to].entry->low < low_of(r->leaves.items[leaf + 1]))
		to++;
	return to;
}

static fathom_err make_leaves(const struct fathom_copy_jit_registry *r,
			      const struct fathom_copy_jit_change_array *c, struct fathom_copy_jit_plan *p)
{
	size_t next = 0;
	size_t to;

	for (size_t i = 0; i < c->n; i = to) {
		const size_t leaf = leaf_of(r, c->items[i].entry->low);

		p->bad = c->items[i].number;
		to = end_of_group(r, c, i, leaf);
		while (next < leaf)
			FATHOM_TRY(keep_plan(p, r->leaves.items[next++]));
		FATHOM_TRY(merge(p, leaf < r->leaves.n ? r->leaves.items[leaf] : NULL, c, i, to));
		next = leaf + 1;
	}
	while (next < r->leaves.n)
		FATHOM_TRY(keep_plan(p, r->leaves.items[next++]));
	return limit_leaves(p) ? FATHOM_OK : FATHOM_E_MEMORY;
}

fathom_err fathom_copy_jit_plan_make(struct fathom_copy_jit_registry *r,
				struct fathom_copy_jit_change_array *changes,
				struct fathom_copy_jit_plan *ret)
{
	fathom_err err;

	*ret = (struct fathom_copy_jit_plan){ .capacity = r->capacity, .commit = r->n_commits + 1 };
	sort_changes(changes);
	err = make_leaves(r, changes, ret);
	if (err)
		fathom_copy_jit_plan_cancel(r, ret);
	return err;
}

static void free_plan(struct fathom_copy_jit_plan *p)
{
	fathom_copy_array_free(&p->leaves);
	fathom_copy_array_free(&p->gone);
	fathom_copy_array_free(&p->work);
}

void fathom_copy_jit_plan_cancel(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_plan *p)
{
	for (size_t i = 0; i < p->leaves.n; i++)
		if (p->leaves.items[i]->commit == p->commit)
			fathom_copy_jit_leaf_free(r, p->leaves.items[i]);
	free_plan(p);
}

/* Bytes of replaced leaves that are kept: with nongnu's libunwind, and for our own readers. */
#define MOST_GONE_TABLES ((size_t)16 << 20)
#define MOST_GONE        ((size_t)256 << 10)

static size_t bytes_of(const struct fathom_copy_jit_leaf *l)
{
	return sizeof *l + l->n * sizeof *l->entries + (size_t)l->gdb.size;
}

/*
 * Frees replaced leaves, the oldest first, if there are many. nongnu's libunwind reads tables
 * without a lock, so a thread may be about to read what has just been replaced; so do readers of
 * the registry, of whom those inside say that they read.
 */
static void trim_gone(struct fathom_copy_jit_registry *r)
{
	const size_t most = fathom_copy_jit_wants_tables(r) ? MOST_GONE_TABLES
			    : r->table                 ? MOST_GONE
						       : 0;
	const uint64_t unread = fathom_copy_jit_last_unread(r);
	struct fathom_copy_jit_leaf **link = &r->gone;
	size_t kept = 0;

	if (most && r->gone_bytes <= most)
		return;
	while (*link && (kept < most / 2 || (*link)->commit > unread)) {
		kept += bytes_of(*link);
		link = &(*link)->next;
	}
	r->gone_bytes = kept;
	for (struct fathom_copy_jit_leaf *l = *link, *next; l; l = next) {
		next = l->next;
		fathom_copy_jit_leaf_free(r, l);
	}
	*link = NULL;
}

/* Takes @l, which was replaced, out of use. */
static void retire_plan(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_leaf *l)
{
	l->commit = r->n_commits;
	l->next = r->gone;
	r->gone = l;
	r->gone_bytes += bytes_of(l);
}

void fathom_copy_jit_plan_apply(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_plan *p)
{
	const struct fathom_copy_jit_leaves before = r->leaves;

	r->n_commits = p->commit;
	for (size_t i = 0; i < p->gone.n; i++)
		retire_plan(r, p->gone.items[i]);
	trim_gone(r);
	r->leaves = p->leaves;
	r->capacity = p->capacity;
	p->leaves = before;
	free_plan(p);
}

/* src/host/publish/registry_table.c */
/* SPDX-License-Identifier: MIT */



/*
 * Bytes of replaced tables that are kept for readers outside, and how many at least. A reader of
 * another process may wait for a processor between two reads.
 */
#define MOST_GONE_BYTES ((size_t)256 << 10)
#define FEWEST_GONE     64

struct fathom_copy_jit_table {
	struct fathom_copy_jit_table *next;
	uint64_t commit; /* that replaced it */
	struct fathom_copy_registry_table published;
};

static struct fathom_copy_registry_head *head(void)
{
	return &fathom_copy_registry_own;
}

/* Returns the bytes of a table of @n rows. */
static size_t size_of(uint64_t n)
{
	return sizeof(struct fathom_copy_jit_table) + (size_t)n * sizeof(struct fathom_copy_registry_row);
}

static struct fathom_copy_registry_row row_of(const struct fathom_copy_jit_leaf *l)
{
	return (struct fathom_copy_registry_row){
		.low = l->image.low,
		.high = l->image.high,
		.file = (uintptr_t)fathom_copy_jit_file_of(l),
		.size = l->gdb.size,
		.serial = l->serial,
	};
}

/*
 * Writes the rows of @leaves. Those at both ends that are in the table before, too, are copied from
 * it: a commit changes few leaves, and looking at each would cost more than the rest of it.
 */
static void put_rows(const struct fathom_copy_jit_registry *r, const struct fathom_copy_jit_leaves *leaves,
		     struct fathom_copy_registry_row *to)
{
	const struct fathom_copy_jit_leaves *old = &r->leaves;
	const size_t most = !r->table ? 0 : leaves->n < old->n ? leaves->n : old->n;
	size_t first = 0;
	size_t last = 0;

	while (first < most && leaves->items[first] == old->items[first])
		first++;
	while (last < most - first &&
	       leaves->items[leaves->n - 1 - last] == old->items[old->n - 1 - last])
		last++;
	if (first)
		memcpy(to, r->table->published.rows, first * sizeof *to);
	for (size_t i = first; i < leaves->n - last; i++)
		to[i] = row_of(leaves->items[i]);
	if (last)
		memcpy(to + leaves->n - last, r->table->published.rows + old->n - last,
		       last * sizeof *to);
}

struct fathom_copy_jit_table *fathom_copy_jit_table_make(struct fathom_copy_jit_registry *r,
					       const struct fathom_copy_jit_leaves *leaves)
{
	struct fathom_copy_jit_table *t = malloc(size_of(leaves->n));

	if (!t)
		return NULL;
	t->next = NULL;
	t->commit = 0;
	atomic_init(&t->published.serial, ++r->serial);
	atomic_init(&t->published.check,
		    r->serial ^ (uintptr_t)&t->published ^ FATHOM_REGISTRY_MAGIC);
	t->published.n = leaves->n;
	put_rows(r, leaves, t->published.rows);
	return t;
}

void fathom_copy_jit_table_free(struct fathom_copy_jit_table *t)
{
	free(t);
}

/* Keeps @t, which was replaced in this commit, for a while. */
static void retire_registry_table(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_table *t)
{
	t->commit = r->n_commits + 1;
	if (r->n_gone_tables++)
		r->last_gone_table->next = t;
	else
		r->gone_tables = t;
	r->last_gone_table = t;
	r->gone_table_bytes += size_of(t->published.n);
}

void fathom_copy_jit_table_publish(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_table *t)
{
	/* Sequentially consistent: a reader that was not seen in readers[] is led to the new one.
	 */
	atomic_store(&head()->table, (uintptr_t)&t->published);
	if (r->table)
		retire_registry_table(r, r->table);
	r->table = t;
}

void fathom_copy_jit_tables_trim(struct fathom_copy_jit_registry *r)
{
	const uint64_t unread = r->idle[0] < r->idle[1] ? r->idle[0] : r->idle[1];
	struct fathom_copy_jit_table *t;

	while (r->n_gone_tables > FEWEST_GONE && r->gone_table_bytes > MOST_GONE_BYTES &&
	       r->gone_tables->commit <= unread) {
		t = r->gone_tables;
		r->gone_tables = t->next;
		r->n_gone_tables--;
		r->gone_table_bytes -= size_of(t->published.n);
		atomic_store(&t->published.serial, 0);
		atomic_store(&t->published.check, 0);
		/* Before whatever the next owner of the memory writes. */
		atomic_thread_fence(memory_order_release);
		free(t);
	}
}

void fathom_copy_jit_table_widen(uint64_t low, uint64_t high)
{
	if (low < atomic_load(&head()->low))
		atomic_store(&head()->low, low);
	if (high > atomic_load(&head()->high))
		atomic_store(&head()->high, high);
}

void fathom_copy_jit_sequence_rise(struct fathom_copy_jit_registry *r)
{
	(void)r;
	(void)atomic_fetch_add(&head()->sequence, 1);
}

uint64_t fathom_copy_jit_last_unread(struct fathom_copy_jit_registry *r)
{
	struct fathom_copy_registry_head *h = head();
	const uint32_t other = (atomic_load(&h->epoch) & 1) ^ 1;

	for (uint32_t i = 0; i < 2; i++)
		if (!atomic_load(&h->readers[i]))
			r->idle[i] = r->n_commits;
	/* New readers count themselves in the other one, so that this one comes to 0. */
	if (r->idle[other] == r->n_commits)
		(void)atomic_fetch_add(&h->epoch, 1);
	return r->idle[0] < r->idle[1] ? r->idle[0] : r->idle[1];
}

void fathom_copy_jit_table_forget_readers(void)
{
	atomic_store(&head()->readers[0], 0);
	atomic_store(&head()->readers[1], 0);
}

void fathom_copy_jit_block_free(uint64_t *block)
{
	__atomic_store_n(block, 0, __ATOMIC_RELEASE);
	/* Before whatever the next owner of the memory writes. */
	atomic_thread_fence(memory_order_release);
	free(block);
}

/* src/host/publish/switches.c */
/* SPDX-License-Identifier: MIT */


static const struct {
	const char *word;
	uint32_t consumers;
} words[] = {
	{ "gdb", FATHOM_JIT_GDB },
	{ "libgcc", FATHOM_JIT_LIBGCC },
	{ "llvm", FATHOM_JIT_LLVM },
	{ "nongnu", FATHOM_JIT_NONGNU },
	{ "unwinders", FATHOM_JIT_UNWINDERS },
	{ "registry", FATHOM_JIT_REGISTRY },
	{ "perf-map", FATHOM_JIT_PERF_MAP },
	{ "jitdump", FATHOM_JIT_JITDUMP },
	{ "files", FATHOM_JIT_FILES },
	{ "all", FATHOM_JIT_ALL },
};

static uint32_t consumers_of(const char *word, size_t n)
{
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strlen(words[i].word) == n && !memcmp(words[i].word, word, n))
			return words[i].consumers;
	return 0;
}

uint32_t fathom_copy_jit_switch(uint32_t on, const char *text, struct fathom_copy_str *ret_unknown)
{
	*ret_unknown = (struct fathom_copy_str){ 0 };
	if (!on)
		on = FATHOM_JIT_USUAL;
	on &= ~(uint32_t)FATHOM_JIT_NOBODY;
	while (text && *text) {
		const size_t n = strcspn(text, ",");
		const bool off = *text == '-';
		const bool is_none = n == 4 && !memcmp(text, "none", 4);
		const uint32_t named = consumers_of(text + off, n - off);

		if (is_none)
			on = 0;
		else if (off)
			on &= ~named;
		else
			on |= named;
		if (n && !is_none && !named && !ret_unknown->size)
			*ret_unknown = (struct fathom_copy_str){ text, (uint32_t)n };
		text += n + (text[n] == ',');
	}
	return on;
}

/* src/host/publish/symbol_file_write.c */
/* SPDX-License-Identifier: MIT */


/* Sections, in their order. The last three are there if there are lines. */
enum {
	TEXT = FATHOM_REGISTRY_TEXT,
	EH_FRAME = FATHOM_REGISTRY_FRAMES,
	SYMTAB = FATHOM_REGISTRY_SYMBOLS,
	STRTAB = FATHOM_REGISTRY_STRINGS,
	FUNCTIONS = FATHOM_REGISTRY_FUNCTIONS,
	SHSTRTAB = FATHOM_REGISTRY_N,
	N_WITHOUT_LINES,
	DEBUG_ABBREV = N_WITHOUT_LINES,
	DEBUG_LINE,
	DEBUG_INFO,
	N_WITH_LINES
};

static const char *const section_names[] = {
	"",
	".text",
	".eh_frame",
	".symtab",
	".strtab",
	FATHOM_REGISTRY_SECTION,
	".shstrtab",
	".debug_abbrev",
	".debug_line",
	".debug_info",
};

/* Where a section was written. */
static void note(Elf64_Shdr *s, const struct fathom_copy_out *o, size_t from)
{
	s->sh_offset = from;
	s->sh_size = o->n - from;
}

/* Appends the names of all sections, and says where they stand. */
static void put_section_names(struct fathom_copy_out *o, Elf64_Shdr *s)
{
	const size_t from = o->n;

	for (size_t i = 0; i < N_WITH_LINES; i++) {
		s[i].sh_name = (uint32_t)(o->n - from);
		fathom_copy_out_bytes(o, section_names[i], strlen(section_names[i]) + 1);
	}
	note(&s[SHSTRTAB], o, from);
}

static void put_symbols(struct fathom_copy_out *o, const struct fathom_copy_jit_leaf *leaf)
{
	Elf64_Sym sym = { 0 };
	uint32_t name = 1;

	fathom_copy_out_bytes(o, &sym, sizeof sym);
	sym.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
	sym.st_shndx = TEXT;
	for (size_t i = 0; i < leaf->n; i++) {
		const struct fathom_copy_jit_entry *e = leaf->entries[i];

		sym.st_name = name;
		sym.st_value = e->low;
		sym.st_size = e->body->size;
		fathom_copy_out_bytes(o, &sym, sizeof sym);
		name += e->body->n_name + 1;
	}
}

static void put_names(struct fathom_copy_out *o, const struct fathom_copy_jit_leaf *leaf)
{
	fathom_copy_out_u8(o, 0);
	for (size_t i = 0; i < leaf->n; i++)
		fathom_copy_out_bytes(o, leaf->entries[i]->body->name,
				 leaf->entries[i]->body->n_name + 1);
}

static void put_functions(const struct fathom_copy_jit_registry *r, struct fathom_copy_out *o,
			  const struct fathom_copy_jit_leaf *leaf)
{
	for (size_t i = 0; i < leaf->n; i++) {
		const struct fathom_copy_jit_entry *e = leaf->entries[i];
		const struct fathom_copy_registry_function f = { e->since, r->fdes.items[i],
							    e->body->n_name };

		fathom_copy_out_bytes(o, &f, sizeof f);
	}
}

static void put_debug(struct fathom_copy_jit_registry *r, struct fathom_copy_out *o,
		      const struct fathom_copy_jit_leaf *leaf, Elf64_Shdr *s)
{
	size_t from = o->n;

	fathom_copy_jit_abbrevs_write(o);
	note(&s[DEBUG_ABBREV], o, from);
	from = o->n;
	fathom_copy_jit_lines_write(r, o, leaf);
	note(&s[DEBUG_LINE], o, from);
	from = o->n;
	fathom_copy_jit_info_write(o, leaf);
	note(&s[DEBUG_INFO], o, from);
}

static void put_sections(struct fathom_copy_jit_registry *r, struct fathom_copy_out *o,
			 const struct fathom_copy_jit_leaf *leaf, struct fathom_copy_jit_image *image,
			 Elf64_Shdr *s, bool lines)
{
	size_t from = o->n;

	fathom_copy_jit_image_write(r, o, leaf, image);
	note(&s[EH_FRAME], o, from);
	fathom_copy_out_align(o, 8);
	from = o->n;
	put_symbols(o, leaf);
	note(&s[SYMTAB], o, from);
	from = o->n;
	put_functions(r, o, leaf);
	note(&s[FUNCTIONS], o, from);
	from = o->n;
	put_names(o, leaf);
	note(&s[STRTAB], o, from);
	put_section_names(o, s);
	if (lines)
		put_debug(r, o, leaf, s);
	fathom_copy_out_align(o, 8);
}

static void describe_sections(Elf64_Shdr *s, size_t n, const struct fathom_copy_jit_leaf *leaf,
			      const struct fathom_copy_out *o)
{
	const uint64_t low = leaf->entries[0]->low;

	for (size_t i = 1; i < n; i++) {
		s[i].sh_type = SHT_PROGBITS;
		s[i].sh_addralign = 1;
	}
	s[TEXT].sh_type = SHT_NOBITS;
	s[TEXT].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	s[TEXT].sh_addr = low;
	s[TEXT].sh_size = fathom_copy_jit_high(leaf->entries[leaf->n - 1]) - low;
	s[TEXT].sh_offset = o->n;
	s[EH_FRAME].sh_addralign = 8;
	s[SYMTAB].sh_type = SHT_SYMTAB;
	s[SYMTAB].sh_link = STRTAB;
	s[SYMTAB].sh_info = 1;
	s[SYMTAB].sh_entsize = sizeof(Elf64_Sym);
	s[SYMTAB].sh_addralign = 8;
	s[STRTAB].sh_type = SHT_STRTAB;
	s[FUNCTIONS].sh_entsize = sizeof(struct fathom_copy_registry_function);
	s[FUNCTIONS].sh_addralign = 8;
	s[SHSTRTAB].sh_type = SHT_STRTAB;
}

void fathom_copy_jit_symbol_file_write(struct fathom_copy_jit_registry *r, struct fathom_copy_out *o,
				  const struct fathom_copy_jit_leaf *leaf,
				  struct fathom_copy_jit_image *image)
{
	const bool lines = fathom_copy_jit_leaf_has_lines(leaf);
	const size_t n = lines ? N_WITH_LINES : N_WITHOUT_LINES;
	Elf64_Shdr s[N_WITH_LINES] = { 0 };
	Elf64_Ehdr e = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
			     __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = r->machine->elf,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof e,
		.e_shentsize = sizeof *s,
		.e_shnum = (Elf64_Half)n,
		.e_shstrndx = SHSTRTAB,
	};

	fathom_copy_out_bytes(o, &e, sizeof e);
	put_sections(r, o, leaf, image, s, lines);
	describe_sections(s, n, leaf, o);
	e.e_shoff = o->n;
	fathom_copy_out_bytes(o, s, n * sizeof *s);
	if (o->n <= o->cap)
		memcpy(o->at, &e, sizeof e);
}

/* src/host/publish/unwinders.c */
/* SPDX-License-Identifier: MIT */



/* What the unwinders export. */
typedef void register_info_fn(const void *begin, void *object);
typedef void *deregister_info_fn(const void *begin);
typedef void fde_fn(uint64_t fde);
typedef void dyn_fn(void *info);
typedef void flush_fn(void *space, uint64_t low, uint64_t high);

/* struct dwarf_eh_bases of libgcc's unwind-dw2-fde.h. */
struct found_bases {
	void *text;
	void *data;
	void *function;
};
typedef const void *find_fn(void *pc, struct found_bases *bases);

/* unw_dyn_info_t of libunwind-dynamic.h, with the third member of its union. */
struct dyn_info {
	struct dyn_info *next;
	struct dyn_info *prev;
	uint64_t start_ip;
	uint64_t end_ip;
	uint64_t gp;
	int32_t format;
	int32_t pad;
	uint64_t load_offset;
	uint64_t name;
	uint64_t segbase;
	uint64_t table_len; /* in words, each as large as a pair */
	uint64_t table;
	uint64_t reserve[8]; /* the union's first member is larger */
	int32_t pairs[];     /* start of code from start_ip, FDE from segbase */
};
enum { UNW_INFO_FORMAT_IP_OFFSET = 4 };

/* The linked-in libgcc of a static program, of which no object tells. */
extern void __register_frame_info(const void *begin, void *object) __attribute__((weak));
extern void __register_frame_info_table(void *array, void *object) __attribute__((weak));
extern void *__deregister_frame_info(const void *begin) __attribute__((weak));
extern const void *_Unwind_Find_FDE(void *pc, struct found_bases *bases) __attribute__((weak));

/* Calls through pointers that dlsym() gave (POSIX, dlsym, "Application usage"). */
#define CALL(type, pointer) ((type *)(uintptr_t)(pointer))

static int count_loaded(struct dl_phdr_info *info, size_t size, void *to)
{
	(void)size;
	/* Never 0, which means that nothing was counted yet: musl counts what is loaded later only.
	 */
	*(uint64_t *)to = 1 + info->dlpi_adds + (info->dlpi_subs << 32);
	return 1;
}

static int add_name(struct dl_phdr_info *info, size_t size, void *to)
{
	struct fathom_copy_jit_found *names = to;
	/* The program has no name in glibc, and its path in musl. */
	const bool is_program = (uintptr_t)info->dlpi_phdr == getauxval(AT_PHDR);
	const char *name = is_program ? "" : info->dlpi_name;
	const size_t n = strlen(name) + 1;

	(void)size;
	if (!fathom_copy_array_room(&names->paths, n))
		return 1;
	memcpy(names->paths.items + names->paths.n, name, n);
	names->paths.n += n;
	return 0;
}

bool fathom_copy_jit_list_objects(const struct fathom_copy_jit_registry *r, struct fathom_copy_jit_found *found)
{
	found->loaded = 0;
	(void)dl_iterate_phdr(count_loaded, &found->loaded);
	if (found->loaded == r->loaded)
		return false;
	/* Without memory for all of them, the next commit looks again. */
	if (dl_iterate_phdr(add_name, found))
		found->loaded = 0;
	return true;
}

/*
 * Returns @name of the object @handle itself, not of one that it needs. The program's own symbols
 * have no path.
 */
static void *own_symbol(void *handle, const char *path, const char *name)
{
	void *at = dlsym(handle, name);
	Dl_info info;

	if (!at || !dladdr(at, &info))
		return NULL;
	return !*path || !strcmp(info.dli_fname, path) ? at : NULL;
}

/*
 * Finds out which kind of libgcc has @u. Up to version 12 a later registration of the same code is
 * found first; from 13 on it is refused. Both entries stay where they are: a refused one must not
 * be deregistered. False if neither is found: another library has its calls.
 */
static bool find_libgcc_kind(struct fathom_copy_jit_unwinder *u, struct fathom_copy_jit_registry *r)
{
	struct fathom_copy_jit_probe *p = &r->probe;
	const struct fathom_copy_cie_form cie = {
		.instructions = { r->machine->initial, r->machine->n_initial },
		.code_alignment = r->machine->code_alignment,
		.data_alignment = -8,
		.return_register = r->machine->return_register,
	};
	struct found_bases bases;
	const void *found;
	size_t fde = 0;

	for (size_t i = 0; i < 2; i++) {
		struct fathom_copy_out o = { .at = p->bytes[i], .cap = sizeof p->bytes[i] };
		const size_t at = fathom_copy_cie_write(&o, &cie);

		fde = fathom_copy_fde_write(&o, &cie, at, (uintptr_t)p->code, sizeof p->code, 0,
				       (struct fathom_copy_bytes){ 0 });
		fathom_copy_out_u32(&o, 0);
		CALL(register_info_fn, u->add)(p->bytes[i], p->objects[i]);
	}
	/* A search of another thread may have moved either one to the front. */
	found = CALL(find_fn, u->find)(p->code + 1, &bases);
	if (found != p->bytes[0] + fde && found != p->bytes[1] + fde)
		return false;
	(void)CALL(deregister_info_fn, u->remove)(p->bytes[0]);
	found = CALL(find_fn, u->find)(p->code + 1, &bases);
	u->kind = found == p->bytes[1] + fde ? FATHOM_JIT_LIST : FATHOM_JIT_TREE;
	if (u->kind == FATHOM_JIT_LIST)
		(void)CALL(deregister_info_fn, u->remove)(p->bytes[1]);
	return true;
}

/*
 * Its call for a whole section reads on behind the terminator (LLVM issue 76957): it is told of
 * each FDE.
 */
static bool is_llvm(void *handle, const char *path, struct fathom_copy_jit_unwinder *u)
{
	u->consumer = FATHOM_JIT_LLVM;
	u->kind = FATHOM_JIT_CACHE;
	u->add = own_symbol(handle, path, "__unw_add_dynamic_fde");
	u->remove = own_symbol(handle, path, "__unw_remove_dynamic_fde");
	return u->add && u->remove;
}

static bool is_nongnu(void *handle, const char *path, struct fathom_copy_jit_unwinder *u)
{
	u->consumer = FATHOM_JIT_NONGNU;
	u->kind = FATHOM_JIT_TABLES;
	u->add = own_symbol(handle, path, "_U_dyn_register");
	u->remove = own_symbol(handle, path, "_U_dyn_cancel");
#if defined(__x86_64__)
	u->flush = dlsym(handle, "_Ux86_64_flush_cache");
	u->space = dlsym(handle, "_ULx86_64_local_addr_space");
#elif defined(__aarch64__)
	u->flush = dlsym(handle, "_Uaarch64_flush_cache");
	u->space = dlsym(handle, "_ULaarch64_local_addr_space");
#endif
	return u->add && u->remove;
}

static bool is_libgcc(void *handle, const char *path, struct fathom_copy_jit_unwinder *u)
{
	u->consumer = FATHOM_JIT_LIBGCC;
	u->kind = FATHOM_JIT_LIST;
	u->add = own_symbol(handle, path, "__register_frame_info");
	u->add_array = own_symbol(handle, path, "__register_frame_info_table");
	u->remove = own_symbol(handle, path, "__deregister_frame_info");
	u->find = own_symbol(handle, path, "_Unwind_Find_FDE");
	return u->add && u->add_array && u->remove && u->find;
}

static bool is_found(const struct fathom_copy_jit_unwinder *in, size_t n, const void *add)
{
	for (size_t i = 0; i < n; i++)
		if (in[i].add == add)
			return true;
	return false;
}

/* Keeps @u, if it is wanted. */
static bool keep_unwinders(struct fathom_copy_jit_found *found, const struct fathom_copy_jit_unwinder *u, uint32_t on)
{
	if (!(u->consumer & on) || found->n == FATHOM_JIT_MOST_UNWINDERS ||
	    is_found(found->unwinders, found->n, u->add))
		return false;
	found->unwinders[found->n++] = *u;
	return true;
}

/* Looks into the object of @path, "" for the program. */
static void look_into(const char *path, uint32_t on, struct fathom_copy_jit_found *found)
{
	void *handle = dlopen(*path ? path : NULL, RTLD_LAZY | RTLD_NOLOAD);
	struct fathom_copy_jit_unwinder u = { .handle = handle };

	if (!handle)
		return;
	/* LLVM's libunwind has libgcc's names, too. */
	if ((is_llvm(handle, path, &u) || is_libgcc(handle, path, &u)) && keep_unwinders(found, &u, on))
		return;
	u = (struct fathom_copy_jit_unwinder){ .handle = handle };
	if (is_nongnu(handle, path, &u) && keep_unwinders(found, &u, on))
		return;
	(void)dlclose(handle);
}

/* Returns whether @at lies in an object that was looked into. */
static bool is_listed(const struct fathom_copy_jit_found *found, const void *at)
{
	const char *paths = found->paths.items;
	Dl_info info;

	if (!dladdr(at, &info))
		return false;
	for (size_t i = 0; i < found->paths.n; i += strlen(paths + i) + 1)
		if (!strcmp(paths + i, info.dli_fname))
			return true;
	return false;
}

void fathom_copy_jit_open_libgcc(void)
{
	if (!__register_frame_info)
		(void)dlopen("libgcc_s.so.1", RTLD_LAZY);
}

void fathom_copy_jit_find_unwinders(uint32_t on, struct fathom_copy_jit_found *found)
{
	const struct fathom_copy_jit_unwinder linked = {
		.consumer = FATHOM_JIT_LIBGCC,
		.kind = FATHOM_JIT_LIST,
		.add = (void *)(uintptr_t)__register_frame_info,
		.add_array = (void *)(uintptr_t)__register_frame_info_table,
		.remove = (void *)(uintptr_t)__deregister_frame_info,
		.find = (void *)(uintptr_t)_Unwind_Find_FDE,
	};

	for (size_t i = 0; i < found->paths.n; i += strlen(found->paths.items + i) + 1)
		if (found->paths.items[i])
			look_into(found->paths.items + i, on, found);
	look_into("", on, found);
	if (linked.add && linked.add_array && linked.remove && linked.find &&
	    !is_listed(found, linked.add))
		(void)keep_unwinders(found, &linked, on);
	fathom_copy_array_free(&found->paths);
}

/* Returns whether @u is to be told of code, and finds out how. */
static bool is_usable(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_unwinder *u)
{
	if (r->n_unwinders == FATHOM_JIT_MOST_UNWINDERS ||
	    is_found(r->unwinders, r->n_unwinders, u->add))
		return false;
	if (u->consumer != FATHOM_JIT_LIBGCC || find_libgcc_kind(u, r))
		return true;
	fathom_copy_jit_say(r, "libgcc: another library stands before it, with functions of the same "
			  "names");
	return false;
}

size_t fathom_copy_jit_keep_unwinders(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_found *found)
{
	const size_t first = r->n_unwinders;
	size_t left = 0;

	r->loaded = found->loaded;
	for (size_t i = 0; i < found->n; i++) {
		struct fathom_copy_jit_unwinder *u = &found->unwinders[i];

		if (is_usable(r, u))
			r->unwinders[r->n_unwinders++] = *u;
		else
			found->unwinders[left++] = *u;
	}
	found->n = left;
	return first;
}

void fathom_copy_jit_close_unwinders(struct fathom_copy_jit_found *found)
{
	for (size_t i = 0; i < found->n; i++)
		if (found->unwinders[i].handle)
			(void)dlclose(found->unwinders[i].handle);
	found->n = 0;
}

static bool has_kind(const struct fathom_copy_jit_registry *r, bool tables)
{
	for (size_t i = 0; i < r->n_unwinders; i++)
		if ((r->unwinders[i].kind == FATHOM_JIT_TABLES) == tables)
			return true;
	return false;
}

bool fathom_copy_jit_wants_tables(const struct fathom_copy_jit_registry *r)
{
	return has_kind(r, true);
}

bool fathom_copy_jit_wants_images(const struct fathom_copy_jit_registry *r)
{
	return has_kind(r, false);
}

/* How long an object is not used again. */
#define WHILE_NS UINT64_C(2000000000)

static uint64_t coarse_now(void)
{
	return (uint64_t)fathom_copy_clock_ns(CLOCK_MONOTONIC_COARSE);
}

/* Takes an object that went long ago, or makes one. */
static struct fathom_copy_jit_object *take_object(struct fathom_copy_jit_registry *r)
{
	struct fathom_copy_jit_object *o = r->objects;

	if (!o || coarse_now() - o->gone < WHILE_NS)
		return calloc(1, sizeof *o);
	r->objects = o->next;
	memset(o, 0, sizeof *o);
	return o;
}

static void give_object(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_object *o)
{
	o->gone = coarse_now();
	o->next = NULL;
	if (r->objects)
		r->last_object->next = o;
	else
		r->objects = o;
	r->last_object = o;
}

void fathom_copy_jit_tokens_free(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_image *image)
{
	struct fathom_copy_jit_token *next;

	for (struct fathom_copy_jit_token *t = image->tokens; t; t = next) {
		next = t->next;
		if (t->object)
			give_object(r, t->object);
		free(t);
	}
	image->tokens = NULL;
}

/* Adds a token of unwinder @i with room for @size bytes. */
static struct fathom_copy_jit_token *add_token(struct fathom_copy_jit_image *image, size_t i, size_t size)
{
	struct fathom_copy_jit_token *t = calloc(1, sizeof *t + size);

	if (!t)
		return NULL;
	t->unwinder = (uint8_t)i;
	t->next = image->tokens;
	image->tokens = t;
	return t;
}

/* Adds a token with libgcc's object, and an array of @n images that a NULL ends. */
static struct fathom_copy_jit_token *add_array(struct fathom_copy_jit_registry *r,
					  struct fathom_copy_jit_image *image, size_t i, size_t n)
{
	struct fathom_copy_jit_object *object = take_object(r);
	struct fathom_copy_jit_token *t =
		object ? add_token(image, i, (n + 1) * sizeof(uint64_t)) : NULL;

	if (t)
		t->object = object;
	else if (object)
		give_object(r, object);
	return t;
}

/* Writes the pairs of those of @image's FDEs that lie in @d: they stand in the order of their code.
 */
static void fill_pairs(struct dyn_info *d, const struct fathom_copy_jit_image *image)
{
	uint32_t size;
	uint32_t cie;
	uint64_t low;

	for (size_t at = image->fde, n = 0; n < image->n_fde; at += 4 + size) {
		memcpy(&size, image->bytes + at, sizeof size);
		memcpy(&cie, image->bytes + at + 4, sizeof cie);
		if (!cie)
			continue;
		n++;
		memcpy(&low, image->bytes + at + 8, sizeof low);
		if (low < d->start_ip || low >= d->end_ip)
			continue;
		d->pairs[2 * d->table_len] = (int32_t)(low - d->start_ip);
		d->pairs[2 * d->table_len + 1] = (int32_t)at;
		d->table_len++;
	}
}

/* Adds a token with nongnu's table of the code in [low, high), which has @n FDEs. */
static bool add_table(struct fathom_copy_jit_image *image, size_t i, uint64_t low, uint64_t high,
		      size_t n)
{
	struct fathom_copy_jit_token *t =
		add_token(image, i, sizeof(struct dyn_info) + n * 2 * sizeof(int32_t));
	struct dyn_info *d;

	if (!t)
		return false;
	d = (void *)t->room;
	d->start_ip = low;
	d->end_ip = high;
	d->format = UNW_INFO_FORMAT_IP_OFFSET;
	d->segbase = (uintptr_t)image->bytes;
	d->table = (uintptr_t)d->pairs;
	fill_pairs(d, image);
	return true;
}

static bool prepare_single(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_image *image, size_t i)
{
	const uint8_t kind = r->unwinders[i].kind;
	struct fathom_copy_jit_token *t;

	if (kind == FATHOM_JIT_TABLES)
		return add_table(image, i, image->low, image->high, image->n_fde);
	if (kind == FATHOM_JIT_CACHE)
		return add_token(image, i, 0) != NULL;
	t = add_array(r, image, i, 1);
	if (t)
		t->room[0] = (uintptr_t)image->bytes;
	return t != NULL;
}

bool fathom_copy_jit_arena_prepare(struct fathom_copy_jit_registry *r, struct fathom_jit_arena *arena,
			      size_t first)
{
	if (!arena->image)
		return true;
	for (size_t i = first; i < r->n_unwinders; i++)
		if (!prepare_single(r, arena->image, i))
			return false;
	return true;
}

bool fathom_copy_jit_entry_prepare(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_entry *e,
			      size_t first)
{
	if (!e->image)
		return true;
	for (size_t i = first; i < r->n_unwinders; i++) {
		const uint8_t kind = r->unwinders[i].kind;

		if ((kind == FATHOM_JIT_TREE || kind == FATHOM_JIT_CACHE) &&
		    !prepare_single(r, e->image, i))
			return false;
	}
	return true;
}

/*
 * Neighbours in a leaf with rules of their own: what arenas say, unwinders know already. Searches
 * of libgcc and nongnu end at the first range that may have an address, so a range must not reach
 * over another arena, which may have a range of its own.
 */
struct run_unwinders {
	struct fathom_copy_jit_entry *const *entries;
	size_t n;
	size_t own; /* those of which something is said */
};

static bool is_apart(const struct fathom_jit_arena *a, const struct fathom_jit_arena *b)
{
	return a->high <= b->low || b->high <= a->low;
}

/* Takes the run_unwinders of @l that begins at @from; returns where it ends. */
static size_t take_run(const struct fathom_copy_jit_leaf *l, size_t from, struct run_unwinders *ret)
{
	size_t i = from;

	*ret = (struct run_unwinders){ .entries = l->entries + from };
	do
		ret->own += l->entries[i++]->body->cie != NULL;
	while (i < l->n && !is_apart(l->entries[i - 1]->arena, l->entries[i]->arena));
	ret->n = i - from;
	return i;
}

static bool prepare_array(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_image *image, size_t i,
			  const struct run_unwinders *run_unwinders)
{
	struct fathom_copy_jit_token *t = add_array(r, image, i, run_unwinders->own);
	uint64_t *to;

	if (!t)
		return false;
	to = t->room;
	for (size_t k = 0; k < run_unwinders->n; k++)
		if (run_unwinders->entries[k]->image)
			*to++ = (uintptr_t)run_unwinders->entries[k]->image->bytes;
	return true;
}

static bool prepare_run(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_image *image, size_t i,
			const struct run_unwinders *run_unwinders)
{
	const uint8_t kind = r->unwinders[i].kind;

	if (!run_unwinders->own)
		return true;
	if (kind == FATHOM_JIT_LIST)
		return prepare_array(r, image, i, run_unwinders);
	return kind != FATHOM_JIT_TABLES ||
	       add_table(image, i, run_unwinders->entries[0]->low, fathom_copy_jit_high(run_unwinders->entries[run_unwinders->n - 1]),
			 run_unwinders->own);
}

bool fathom_copy_jit_leaf_prepare(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_leaf *leaf,
			     size_t first)
{
	struct run_unwinders run_unwinders;

	for (size_t i = first; i < r->n_unwinders; i++)
		for (size_t k = 0; k < leaf->n;) {
			k = take_run(leaf, k, &run_unwinders);
			if (!prepare_run(r, &leaf->image, i, &run_unwinders))
				return false;
		}
	return true;
}

/* Returns the address of the first FDE. */
static uint64_t fde_of(const struct fathom_copy_jit_image *image)
{
	return (uintptr_t)image->bytes + image->fde;
}

/* Returns whether libgcc knows @image: a tree refuses code that it has already. */
static bool is_known(const struct fathom_copy_jit_unwinder *u, const struct fathom_copy_jit_image *image)
{
	struct found_bases bases;

	return CALL(find_fn, u->find)((void *)(uintptr_t)image->low, &bases) ==
	       (const void *)(uintptr_t)fde_of(image);
}

static void tell_unwinders(struct fathom_copy_jit_registry *r, const struct fathom_copy_jit_image *image,
		 struct fathom_copy_jit_token *t)
{
	const struct fathom_copy_jit_unwinder *u = &r->unwinders[t->unwinder];

	t->is_told = true;
	switch (u->kind) {
	case FATHOM_JIT_TABLES:
		CALL(dyn_fn, u->add)(t->room);
		break;
	case FATHOM_JIT_CACHE:
		CALL(fde_fn, u->add)(fde_of(image));
		break;
	case FATHOM_JIT_LIST:
		CALL(register_info_fn, u->add_array)(t->room, t->object->words);
		break;
	default:
		/* One image at a time: libgcc 13 and 14 cannot deregister an array. */
		CALL(register_info_fn, u->add)(image->bytes, t->object->words);
		t->is_told = is_known(u, image);
		if (!t->is_told)
			fathom_copy_jit_say(r, "libgcc: it has refused code that somebody else has "
					  "registered, too");
		break;
	}
}

void fathom_copy_jit_image_tell(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_image *image)
{
	for (struct fathom_copy_jit_token *t = image ? image->tokens : NULL; t; t = t->next)
		if (!t->is_told)
			tell_unwinders(r, image, t);
}

void fathom_copy_jit_image_withdraw(struct fathom_copy_jit_registry *r, struct fathom_copy_jit_image *image)
{
	for (struct fathom_copy_jit_token *t = image ? image->tokens : NULL; t; t = t->next) {
		const struct fathom_copy_jit_unwinder *u = &r->unwinders[t->unwinder];

		if (!t->is_told)
			continue;
		t->is_told = false;
		if (u->kind == FATHOM_JIT_TABLES)
			CALL(dyn_fn, u->remove)(t->room);
		else if (u->kind == FATHOM_JIT_CACHE)
			CALL(fde_fn, u->remove)(fde_of(image));
		else
			(void)CALL(deregister_info_fn, u->remove)(
				u->kind == FATHOM_JIT_LIST ? (const void *)t->room : image->bytes);
	}
}

void fathom_copy_jit_flush(struct fathom_copy_jit_registry *r, uint64_t low, uint64_t high)
{
	for (size_t i = 0; i < r->n_unwinders; i++) {
		const struct fathom_copy_jit_unwinder *u = &r->unwinders[i];

		if (u->flush && u->space)
			CALL(flush_fn, u->flush)(*(void **)u->space, low, high);
	}
}

#pragma GCC visibility pop
