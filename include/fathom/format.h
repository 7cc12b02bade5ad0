/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Formats numbers and checks characters, fast and without locale: for programs that print many
 * addresses, and for signal handlers, which must not call snprintf().
 */
#ifndef FATHOM_FORMAT_PUBLIC_H
#define FATHOM_FORMAT_PUBLIC_H

#include <fathom/error.h>

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
FATHOM_API size_t fathom_format_hex(char *buf, uint64_t value);

/**
 * Writes @value as decimal digits. No NUL is added.
 *
 * Safety: as-safe
 * Memory: writes at most FATHOM_NUMBER_SIZE bytes to @buf
 * Returns: the number of bytes written
 */
FATHOM_API size_t fathom_format_dec(char *buf, uint64_t value);

/** Bytes that hold any number in groups of three digits. */
#define FATHOM_GROUPED_SIZE 26

/**
 * Writes @value as decimal digits with a ' between each three: 1'234'567. No NUL is added.
 *
 * Safety: as-safe
 * Memory: writes at most FATHOM_GROUPED_SIZE bytes to @buf
 * Returns: the number of bytes written
 */
FATHOM_API size_t fathom_format_grouped(char *buf, uint64_t value);

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
FATHOM_API int fathom_point_is_hidden(uint32_t point);

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
FATHOM_API size_t fathom_point_take(const char *s, size_t n, uint32_t *ret_point);

/** Bytes that any escape of a character in JSON has at most. */
#define FATHOM_JSON_ESCAPE_SIZE 12

/**
 * Writes the escape of a character in a JSON string (RFC 8259, section 7): \" \\ \n \t \r, else
 * \u with four digits, twice for a character above U+FFFF. No NUL is added.
 *
 * Safety: as-safe
 * Memory: writes at most FATHOM_JSON_ESCAPE_SIZE bytes to @buf
 * Returns: the number of bytes written
 */
FATHOM_API size_t fathom_point_escape_json(uint32_t point, char *buf);

/**
 * Returns the escape of the first character of @s, of @n bytes, at least 1, in a name of a line of
 * collapsed stacks, "NAME;NAME WEIGHT": a semicolon parts names, and a weight is a space with
 * digits after it at the end of the line. So a semicolon is \x3b, and a space at the end of @s, or
 * with a digit after it, is \x20.
 *
 * Safety: as-safe
 * Memory: the text is static
 * Returns: NULL: the character stands for itself
 */
FATHOM_API const char *fathom_point_escape_collapsed(const char *s, size_t n);

#ifdef __cplusplus
}
#endif

#endif
