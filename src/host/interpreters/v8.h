/* SPDX-License-Identifier: MIT */
/* Types that the parts which read V8, node's JavaScript, share. */
#ifndef FATHOM_INTERPRETERS_V8_H
#define FATHOM_INTERPRETERS_V8_H

#include "host/interpreters/provider.h"

/*
 * Where members of V8's objects are, in bytes, and numbers of types (objects/instance-type.h). Most
 * of them the program states in variables called v8dbg_...; a row has them for each version, and
 * those that it does not state. What no version has changed is a constant below.
 */
struct fathom_v8_offsets {
	uint8_t major;
	uint8_t minor;
	uint8_t node;             /* the version of node that has it */
	uint16_t function_shared; /* of JSFunction: its SharedFunctionInfo */
	uint16_t bytecode_lines;  /* of BytecodeArray: source_position_table */
	uint16_t bytecode_data;
	uint16_t baseline_code;     /* of BaselineData: its Code; 0: the function has that itself */
	uint16_t baseline_bytecode; /* of BaselineData, or Code: the BytecodeArray */
	uint16_t code_positions;    /* of Code: bytecode_offset_table */
	uint16_t code_start;        /* of Code: instruction_start, or its instructions */
	uint16_t code_is_inside;    /* 1: these */
	uint16_t code_size;         /* of Code: instruction_size */
	uint16_t scope_receiver;    /* 1: a ScopeInfo says where "this" is, before its name */
	uint16_t scope_inlined;     /* the most variables that a ScopeInfo lists itself, and one */
	uint16_t more_functions;    /* types after JSFunction's that are functions, too */
	uint16_t type_function;
	uint16_t type_shared;
	uint16_t type_script;
	uint16_t type_scope;
	uint16_t type_bytecode;
	uint16_t type_bytes; /* of position tables */
	uint16_t type_code;
	uint16_t type_baseline; /* 0: there is none */
	uint16_t type_array;
	uint16_t first_context;
	uint16_t last_context;
	uint16_t exit_frame;    /* kind of the frames of built-ins of C++ */
	uint16_t runtime_frame; /* and of other calls of C++ */
};

/* Of all versions: tags, and members of Map, JSFunction, SharedFunctionInfo, Script. */
enum {
	V8_TAG = 1,
	V8_TAG_MASK = 3,
	V8_SMI_SHIFT = 32,
	MAP_TYPE = 12,
	SHARED_DATA = 8,
	SHARED_NAME = 16,
	SHARED_SCRIPT = 32,
	SCRIPT_SOURCE = 8,
	SCRIPT_NAME = 16,
	SCRIPT_FIRST_LINE = 24,
	SCRIPT_LINE_ENDS = 56,
	SCRIPT_EVAL_FROM = 72,
	ARRAY_LENGTH = 8,
	ARRAY_DATA = 16,
};

/* Of an array of bytes, at most this many are read. */
#define FATHOM_V8_MOST_BYTES ((uint64_t)1 << 22)

/* One V8. */
struct fathom_v8 {
	struct fathom_v8_offsets offsets;
	uint64_t builtins; /* svma of the code of all built-ins, and its size */
	uint64_t builtins_size;
	uint8_t sizes[3][256]; /* of bytecodes, in bytes, by the width of their operands */
	uint32_t n_sizes;
	struct fathom_runtime_page pages[FATHOM_RUNTIME_PAGES];
};

/* Takes the row of the version; returns false if it is not known. */
bool fathom_v8_take_row(struct fathom_v8 *v, uint32_t major, uint32_t minor);

/* Finds the offsets of version @major.@minor; else sets f->why. */
void fathom_v8_find_offsets(struct fathom_runtime_found *f, uint32_t major, uint32_t minor);

/* Returns the node that has version @major.@minor; 0: it is not known. */
unsigned fathom_v8_node(uint32_t major, uint32_t minor);

/* Returns a number that depends on where the function at @shared has its names. */
uint64_t fathom_v8_mark(const struct fathom_runtime_found *f, uint64_t shared);

/* Returns the type of the object that @tagged points to; -1: it points to none. */
int fathom_v8_type(const struct fathom_runtime_found *f, uint64_t tagged);

/* Reads the member at @offset of the object that @tagged points to. */
bool fathom_v8_member(const struct fathom_runtime_found *f, uint64_t tagged, uint64_t offset,
		      uint64_t *ret);

/* Reads an unsigned number of 4 bytes there. */
bool fathom_v8_u32(const struct fathom_runtime_found *f, uint64_t tagged, uint64_t offset,
		   uint32_t *ret);

/* Reads a small integer there. */
bool fathom_v8_smi(const struct fathom_runtime_found *f, uint64_t tagged, uint64_t offset,
		   int32_t *ret);

/* As fathom_interpreters_name(). */
fathom_err fathom_v8_name(struct fathom_runtime_found *f, const struct fathom_script_frame *frame,
			  struct fathom_arena *arena, struct fathom_script_name *ret);

/* Text of which not all is in one piece: a view of characters. */
struct fathom_v8_text {
	uint64_t avma;
	uint32_t length;
	bool is_wide; /* characters have two bytes */
};

/* Finds the characters of the string @tagged; false if it is none, or not in one piece. */
bool fathom_v8_flat_text(const struct fathom_runtime_found *f, uint64_t tagged,
			 struct fathom_v8_text *ret);

/* Finds the line that @frame, of @script, executes. 0: not known. FATHOM_E_MEMORY. */
fathom_err fathom_v8_line(const struct fathom_runtime_found *f,
			  const struct fathom_script_frame *frame, uint64_t script, uint32_t *ret);

/*
 * Finds the position in the source of the bytecode at @offset, as @table, a source position table,
 * has it; -1: it has none.
 */
int64_t fathom_v8_position(struct fathom_bytes table, uint64_t offset);

#endif
