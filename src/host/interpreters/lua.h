/* SPDX-License-Identifier: MIT */
/* Types that the parts which read Lua share. */
#ifndef FATHOM_INTERPRETERS_LUA_H
#define FATHOM_INTERPRETERS_LUA_H

#include "host/interpreters/provider.h"

/*
 * Where members of Lua's structs are, in bytes (lstate.h, lobject.h), by
 * tools/interpreter_rows.py, which sees to it that no version has changed the constants below.
 */
struct fathom_lua_offsets {
	uint8_t minor;
	uint8_t patch;   /* the first one */
	uint16_t status; /* of lua_State */
	uint16_t ci;     /* the call that is executed */
	uint16_t stack_last;
	uint16_t stack;
	uint16_t jump;        /* where errors jump to */
	uint16_t base_ci;     /* the outermost call */
	uint16_t main_thread; /* of global_State */
	uint16_t registry;
	uint16_t saved_pc; /* of CallInfo */
	uint16_t call_status;
	uint16_t is_fresh;  /* the bit that says that the call has a loop of its own */
	uint16_t op_number; /* of Proto */
	uint16_t line_number;
	uint16_t first_line;
	uint16_t op_codes;
	uint16_t lines;
	uint16_t base_number; /* of lines that are not relative; both 0: all are */
	uint16_t base_lines;
	uint16_t source;
	uint16_t text; /* of TString */
	uint16_t node_size;
	uint16_t key; /* of Node */
	uint16_t key_type;
	uint16_t node; /* of Table */
};

/* Types of values, without the bit of those that are collected. */
enum {
	LUA_TABLE = 5,
	LUA_FUNCTION = 6,
	LUA_C = 22,
	LUA_C_CLOSURE = 38,
	LUA_SHORT = 4,
	LUA_LONG = 20,
	LUA_THREAD = 8,
	LUA_TYPE = 0x3f,
};

/* Of a value; of an object: its type; of a closure: its Proto, or function of C. */
enum { LUA_VALUE_TYPE = 8, LUA_OBJECT_TYPE = 8, LUA_CLOSURE_CODE = 24 };

/* In place of a closure: calls that are no more, as their functions have ended by a tail call. */
enum { LUA_TAIL_CALLS = 1 };

/* The most universes, each with a main thread, that are remembered. */
enum { FATHOM_LUA_GLOBALS = 16 };

/* One module with Lua. */
struct fathom_lua {
	const struct fathom_lua_offsets *offsets;
	struct fathom_script_loop loop;
	uint64_t globals[FATHOM_LUA_GLOBALS]; /* avmas of global_States that were seen */
	uint32_t n_globals;
	struct fathom_runtime_page pages[FATHOM_RUNTIME_PAGES]; /* of the call under way */
};

/* Returns the row of version 5.@minor.@patch; NULL: there is none. */
const struct fathom_lua_offsets *fathom_lua_find_offsets(uint32_t minor, uint32_t patch);

/* Returns a number that depends on the Proto at @code and what the frame has as its closure. */
uint64_t fathom_lua_mark(const struct fathom_runtime_found *f, uint64_t code, uint64_t closure);

/* Returns whether the Proto at @code has the instruction at @avma. */
bool fathom_lua_has_op(const struct fathom_runtime_found *f, uint64_t code, uint64_t avma);

/* As fathom_interpreters_name(). */
fathom_err fathom_lua_name(struct fathom_runtime_found *f, const struct fathom_script_frame *frame,
			   struct fathom_arena *arena, struct fathom_script_name *ret);

/* Reads a number of @size bytes, 4 or 8, of the pages that were read in this call. */
static inline bool fathom_lua_number(const struct fathom_runtime_found *f, uint64_t avma,
				     uint8_t size, uint64_t *ret)
{
	struct fathom_lua *l = f->own;

	return fathom_runtime_paged(f, l->pages, avma, size, ret);
}

static inline bool fathom_lua_word(const struct fathom_runtime_found *f, uint64_t avma,
				   uint64_t *ret)
{
	return fathom_lua_number(f, avma, 8, ret);
}

/* Returns whether the object at @avma is of @type. */
static inline bool fathom_lua_is(const struct fathom_runtime_found *f, uint64_t avma, unsigned type)
{
	uint64_t word;

	return avma && avma % 8 == 0 && fathom_lua_number(f, avma + LUA_OBJECT_TYPE, 4, &word) &&
	       (word & 0xff) == type;
}

#endif
