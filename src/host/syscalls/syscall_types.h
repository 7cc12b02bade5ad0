/* SPDX-License-Identifier: MIT */
/*
 * The types of arguments of system calls and of what they point to: rows that
 * tools/syscall_tables.py makes of syscalls.txt, which describes the types. Offsets and sizes are
 * stated twice: [0] for LP64 (x86-64, aarch64), [1] for i386, whose greatest alignment is 4.
 */
#ifndef FATHOM_SYSCALLS_SYSCALL_TYPES_H
#define FATHOM_SYSCALLS_SYSCALL_TYPES_H

#include "safe/base/bytes.h"

enum fathom_kind {
	FATHOM_KIND_NONE,
	FATHOM_KIND_SIGNED,
	FATHOM_KIND_UNSIGNED,
	FATHOM_KIND_HEX,
	FATHOM_KIND_OCTAL,
	FATHOM_KIND_SIZE,
	FATHOM_KIND_ADDRESS,
	FATHOM_KIND_DESCRIPTOR,
	FATHOM_KIND_DIRECTORY, /* a descriptor, or AT_FDCWD */
	FATHOM_KIND_PID,
	FATHOM_KIND_UID,
	FATHOM_KIND_SIGNAL,
	FATHOM_KIND_MODE, /* with the type of the file */
	FATHOM_KIND_PERMISSIONS,
	FATHOM_KIND_FLAGS,              /* a: table of constants */
	FATHOM_KIND_ENUM,               /* likewise; up to here types are plain numbers */
	FATHOM_KIND_PATH,               /* a C string, shown whole */
	FATHOM_KIND_STRING,             /* a C string, shown up to the limit */
	FATHOM_KIND_POINTER,            /* a: type of what it points to, read before the call */
	FATHOM_KIND_POINTER_OUT,        /* read after the call, if it did not fail */
	FATHOM_KIND_POINTER_OUT_ALWAYS, /* read after the call */
	FATHOM_KIND_POINTER_BOTH, /* a: type after a call that did not fail; n: before it, or if it
				     failed; with FATHOM_TYPE_ARROW both are shown */
	FATHOM_KIND_ARRAY, /* width: enum fathom_count; a: type of the elements; n: their number */
	FATHOM_KIND_STRUCT,
	FATHOM_KIND_PADDING,
	FATHOM_KIND_FUNCTION,      /* a: function; n: argument that counts, or size in a struct */
	FATHOM_KIND_FUNCTION_OUT,  /* called after the call */
	FATHOM_KIND_FUNCTION_BOTH, /* likewise; also before it, to read memory */
	FATHOM_KIND_IF,            /* width: argument; a: type if it has bits of n */
	FATHOM_KIND_CASES,         /* a: group of cases */
};

/* Where a count comes from: an argument, below these, or: */
enum fathom_count { FATHOM_COUNT_RESULT = 6, FATHOM_COUNT_FIXED = 7 };

/* A bit of FATHOM_KIND_POINTER_BOTH's n, above the type. */
#define FATHOM_TYPE_ARROW 0x10000

/* A width in bytes that is that of a long. */
#define FATHOM_WIDTH_WORD 0xff

struct fathom_type {
	uint8_t kind;
	uint8_t width;
	uint16_t a;
	uint32_t n;
};

struct fathom_type_struct {
	uint16_t first; /* field */
	uint16_t n;
	uint16_t size[2];
	uint8_t is_abbreviated; /* some fields are shown only if all are asked for */
};

struct fathom_type_field {
	uint16_t name; /* offset in fathom_syscall_names */
	uint16_t type;
	uint16_t off[2];
	uint8_t shown; /* 0: only if all are asked for; 2: of struct statx, if its mask has the
			  birth */
};

/* The arguments after one that has this value. */
struct fathom_case {
	uint32_t value;
	uint16_t types; /* place in fathom_type_lists */
	uint16_t result;
	uint8_t n;
	uint8_t arches; /* bits, as of struct fathom_constant */
};

struct fathom_case_group {
	uint16_t first;
	uint16_t n;
	uint16_t types; /* for other values */
	uint8_t n_types;
	uint16_t result;
	uint32_t mask; /* of the value */
};

struct fathom_decoder;
struct fathom_operand;

/* Prints one argument or field, or reads what that needs. */
typedef void fathom_decode_fn(struct fathom_decoder *d, const struct fathom_operand *o);

extern const struct fathom_type fathom_types[];
extern const uint16_t fathom_type_sizes[][2];
extern const uint16_t fathom_type_lists[];
extern const struct fathom_type_struct fathom_type_structs[];
extern const struct fathom_type_field fathom_type_fields[];
extern const struct fathom_case fathom_cases[];
extern const struct fathom_case_group fathom_case_groups[];
extern fathom_decode_fn *const fathom_decode_functions[];

#endif
