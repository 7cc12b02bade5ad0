/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Reads the value at an address, of a type that a text describes.
 *
 *	TYPE   = { HOP } VALUE
 *	HOP    = "*" [OFFSET ":"]      follow the pointer that is here, then go on by OFFSET
 *	       | "ptr->" [OFFSET ":"]  the same
 *	       | OFFSET ":"            go on by OFFSET from here
 *	OFFSET = ("+" | "-") NUMBER    bytes, decimal or 0x and hexadecimal
 *	VALUE  = SCALAR ["[" COUNT "]"]
 *	       | "str" [":" MOST]      bytes up to a NUL, MOST at most (default 4,096)
 *	       | "bytes:" COUNT
 *	SCALAR = i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 ptr
 *
 * So `u32[4]` is an array; `*str` and `ptr->str` dereference a pointer to a text; `*+16:*u64`
 * dereferences the pointer here, then the pointer 16 bytes into that object. Numbers and pointers
 * have the target's byte order, and pointers its size.
 */
#ifndef FATHOM_VALUE_H
#define FATHOM_VALUE_H

#include <fathom/error.h>
#include <fathom/symbolize.h>
#include <fathom/target.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Kinds of items of a value. */
enum fathom_value_kind {
	FATHOM_VALUE_UNSIGNED = 0, /**< uint64_t */
	FATHOM_VALUE_SIGNED = 1,   /**< int64_t */
	FATHOM_VALUE_FLOAT = 2,    /**< double */
	FATHOM_VALUE_POINTER = 3,  /**< uint64_t: addresses */
	FATHOM_VALUE_TEXT = 4,     /**< bytes without the NUL */
	FATHOM_VALUE_BYTES = 5
};

/** Maximum bytes of one value in memory. */
#define FATHOM_VALUE_MAX 65536
/** Maximum hops of one type. */
#define FATHOM_VALUE_HOPS 16

/** A value, or the reason why there is none. Zero-fill it before its first use. */
struct fathom_value {
	uint64_t address; /**< of the value, or of the memory that could not be read */
	/**
	 * count items of the type that kind gives; text and bytes: the bytes. The library's memory.
	 */
	const void *items;
	uint32_t count;
	uint8_t kind;   /**< enum fathom_value_kind */
	uint8_t reason; /**< enum fathom_reason; FATHOM_REASON_NONE: there is a value */
	uint8_t is_cut; /**< text: no NUL was found within the limit */
	uint8_t reserved[9];
};

/**
 * Reads the value of type @type at @address of @target; @address is as for fathom_symbolize().
 * Values of a file are those when it is loaded, before relocation.
 *
 * Reads the whole chain of pointers and the value again until two reads agree; if they never do,
 * the reason is FATHOM_REASON_CHANGED. FATHOM_REASON_UNMAPPED: the memory at the value's address
 * cannot be read.
 *
 * Safety: mt-safe
 * Memory: *@ret_value is to be freed with fathom_value_free()
 * Returns: FATHOM_OK, also if the value has a reason; FATHOM_E_ARGUMENT when @type does not parse,
 *	with the place in it as the offset; FATHOM_E_LIMIT when it exceeds the constants above;
 *	FATHOM_E_MEMORY; for the kernel also what fathom_target_read() returns when none of its
 *	memory can be read
 */
FATHOM_API fathom_err fathom_value_read(struct fathom_target *target, const char *type,
					uint64_t address, struct fathom_value *ret_value,
					struct fathom_errinfo *reterr);

/**
 * Reads values of type @type at @n @addresses, with the shared work done once: in a process, the
 * map is read once for all. Each value existed at some moment of the call, but not all at the same
 * one.
 *
 * Safety: mt-safe
 * Memory: each of the @n @ret_values is to be freed with fathom_value_free()
 * Returns: as fathom_value_read(); after a failure there are no values
 */
FATHOM_API fathom_err fathom_values_read(struct fathom_target *target, const char *type,
					 const uint64_t *addresses, size_t n,
					 struct fathom_value *ret_values,
					 struct fathom_errinfo *reterr);

/**
 * Checks that @type parses. fathom_value_read() reports the same errors.
 *
 * Safety: mt-safe
 * Memory: none
 * Returns: as fathom_value_read()
 */
FATHOM_API fathom_err fathom_value_check(const char *type, struct fathom_errinfo *reterr);

/**
 * Safety: neither
 * Memory: frees what @value, which may be NULL or zero, points to
 * Returns: nothing
 */
FATHOM_API void fathom_value_free(struct fathom_value *value);

#ifdef __cplusplus
}
#endif

#endif
