/* SPDX-License-Identifier: MIT */
/* Types that the parts which read PHP share. */
#ifndef FATHOM_INTERPRETERS_PHP_H
#define FATHOM_INTERPRETERS_PHP_H

#include "host/interpreters/provider.h"

/*
 * Where members of PHP's structs are, in bytes (zend_globals.h, zend_compile.h, zend_generators.h),
 * by tools/interpreter_rows.py, which sees to it that no version has changed the constants below.
 */
struct fathom_php_offsets {
	uint32_t api; /* ZEND_MODULE_API_NO, which tells versions apart */
	uint8_t major;
	uint8_t minor;
	uint16_t bailout;          /* of zend_executor_globals: where fatal errors jump to */
	uint16_t current;          /* the innermost frame */
	uint16_t before_exception; /* the instruction that has thrown */
	uint16_t op_codes;         /* of zend_op_array */
	uint16_t op_number;
	uint16_t file;
	uint16_t generator_frame; /* of zend_generator */
	uint16_t generator_parent;
	uint16_t generator_fake;
};

/* Of zend_function; its kinds. */
enum {
	PHP_FUNCTION_NAME = 8,
	PHP_FUNCTION_SCOPE = 16,
	PHP_INTERNAL = 1,
	PHP_USER = 2,
	PHP_EVAL = 4,
};

/* Of zend_op. */
enum { PHP_OP_VALUE = 20, PHP_OP_LINE = 24, PHP_OP_CODE = 28, PHP_OP_SIZE = 32 };

/*
 * How a frame is called, in place of its method: with an object; else by the instruction that has
 * included its file, whose numbers (ZEND_EVAL ...) these are.
 */
enum {
	PHP_PLAIN,
	PHP_BY_EVAL,
	PHP_BY_INCLUDE,
	PHP_BY_INCLUDE_ONCE = 4,
	PHP_BY_REQUIRE = 8,
	PHP_BY_REQUIRE_ONCE = 16,
	PHP_OF_OBJECT = 32,
};

/* One PHP. */
struct fathom_php {
	const struct fathom_php_offsets *offsets; /* NULL: not known yet */
	uint64_t globals;                         /* avma of executor_globals */
	uint64_t globals_size;
	uint64_t modules; /* avma of module_registry */
	struct fathom_script_loop loop;
	struct fathom_runtime_page frames; /* of the call under way */
	struct fathom_runtime_page functions;
};

/* A function, as far as it is read. */
struct fathom_php_function {
	uint8_t kind;
	uint64_t name; /* avma of a zend_string; 0: none */
	uint64_t scope;
	uint64_t file; /* 0: of C */
	uint64_t op_codes;
	uint32_t op_number;
};

/* Returns the row of module API @api; NULL: there is none. */
const struct fathom_php_offsets *fathom_php_find_offsets(uint32_t api);

/* Reads the function at @avma; false if it is none. */
bool fathom_php_read_function(const struct fathom_runtime_found *f, uint64_t avma,
			      struct fathom_php_function *ret);

/* Returns whether the instruction at @avma is one of @function. */
static inline bool fathom_php_has_op(const struct fathom_php_function *function, uint64_t avma)
{
	const uint64_t off = avma - function->op_codes;

	return function->file && off % PHP_OP_SIZE == 0 && off / PHP_OP_SIZE < function->op_number;
}

/* Returns a number that depends on where the names of @function are. */
uint64_t fathom_php_mark(const struct fathom_php_function *function);

/* As fathom_interpreters_name(). */
fathom_err fathom_php_name(struct fathom_runtime_found *f, const struct fathom_script_frame *frame,
			   struct fathom_arena *arena, struct fathom_script_name *ret);

#endif
