/* SPDX-License-Identifier: MIT */
/*
 * Names, files and lines of Lua's functions. A function has no name of its own: one that a library
 * or the global table has is called after that, as in Lua's own tracebacks; others by where they
 * are written.
 */
#include <stdio.h>
#include <string.h>

#include "host/interpreters/lua.h"
#include "host/interpreters/script_text.h"
#include "safe/base/sort.h"

/* clang-format off */
static const struct fathom_lua_offsets rows[] = {
	{ .minor = 3,
	  .patch = 3,
	  .status = 12,
	  .ci = 32,
	  .stack_last = 48,
	  .stack = 56,
	  .jump = 88,
	  .base_ci = 96,
	  .main_thread = 200,
	  .registry = 64,
	  .saved_pc = 40,
	  .call_status = 66,
	  .is_fresh = 8,
	  .op_number = 24,
	  .line_number = 28,
	  .first_line = 40,
	  .op_codes = 56,
	  .lines = 72,
	  .base_number = 0,
	  .base_lines = 0,
	  .source = 104,
	  .text = 24,
	  .node_size = 32,
	  .key = 16,
	  .key_type = 24,
	  .node = 24 },
	{ .minor = 4,
	  .patch = 2,
	  .status = 10,
	  .ci = 32,
	  .stack_last = 40,
	  .stack = 48,
	  .jump = 80,
	  .base_ci = 88,
	  .main_thread = 264,
	  .registry = 64,
	  .saved_pc = 32,
	  .call_status = 62,
	  .is_fresh = 4,
	  .op_number = 24,
	  .line_number = 28,
	  .first_line = 44,
	  .op_codes = 64,
	  .lines = 88,
	  .base_number = 40,
	  .base_lines = 96,
	  .source = 112,
	  .text = 24,
	  .node_size = 24,
	  .key = 16,
	  .key_type = 9,
	  .node = 24 },
	{ .minor = 4,
	  .patch = 4,
	  .status = 10,
	  .ci = 32,
	  .stack_last = 40,
	  .stack = 48,
	  .jump = 88,
	  .base_ci = 96,
	  .main_thread = 264,
	  .registry = 64,
	  .saved_pc = 32,
	  .call_status = 62,
	  .is_fresh = 4,
	  .op_number = 24,
	  .line_number = 28,
	  .first_line = 44,
	  .op_codes = 64,
	  .lines = 88,
	  .base_number = 40,
	  .base_lines = 96,
	  .source = 112,
	  .text = 24,
	  .node_size = 24,
	  .key = 16,
	  .key_type = 9,
	  .node = 24 },
};
/* clang-format on */

/* The last patch of each row. */
static const uint8_t last_patches[] = { 6, 2, 9 };
_Static_assert(sizeof last_patches == sizeof rows / sizeof *rows, "one for each");

/* Of strings and tables; bits of a table's size. */
enum { SHORT_SIZE = 11, LONG_SIZE = 16, TABLE_BITS = 11, MOST_BITS = 24 };

/* The most places of tables that are looked at for one name; bytes of lines, instructions. */
enum { MOST_NODES = 1 << 16, MOST_LINES = 1 << 24, PIECE = 4096 };

/* Bytes of an instruction; of a line that is not relative: its instruction's number, the line. */
enum { OP_SIZE = 4, BASE_SIZE = 8, BASE_LINE = 4 };

/* The most characters that are shown of a source which is no file (LUA_IDSIZE). */
enum { MOST_TEXT = 44 };

const struct fathom_lua_offsets *fathom_lua_find_offsets(uint32_t minor, uint32_t patch)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].minor == minor && patch >= rows[i].patch && patch <= last_patches[i])
			return &rows[i];
	return NULL;
}

bool fathom_lua_has_op(const struct fathom_runtime_found *f, uint64_t code, uint64_t avma)
{
	const struct fathom_lua *l = f->own;
	uint64_t first;
	uint64_t n;

	return fathom_lua_word(f, code + l->offsets->op_codes, &first) &&
	       fathom_lua_number(f, code + l->offsets->op_number, 4, &n) && n <= INT32_MAX &&
	       avma >= first && (avma - first) % OP_SIZE == 0 && (avma - first) / OP_SIZE < n;
}

uint64_t fathom_lua_mark(const struct fathom_runtime_found *f, uint64_t code, uint64_t closure)
{
	const struct fathom_lua *l = f->own;
	uint64_t words[4] = { code, closure };
	uint64_t mark = 0;

	if (closure != LUA_TAIL_CALLS && fathom_lua_is(f, closure, LUA_FUNCTION)) {
		(void)fathom_lua_word(f, code + l->offsets->source, &words[2]);
		(void)fathom_lua_word(f, code + l->offsets->op_codes, &words[3]);
	}
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		/* Multiplied by a fraction of the golden ratio. */
		mark = (mark ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
	return mark;
}

static void put_words(struct fathom_script_text *t, const char *words)
{
	fathom_script_text_put(t, words, strlen(words));
}

/* Appends the string at @avma; false if it is none, or too long. */
static bool put_string(const struct fathom_runtime_found *f, struct fathom_script_text *t,
		       uint64_t avma)
{
	const struct fathom_lua *l = f->own;
	uint64_t size;

	if (fathom_lua_is(f, avma, LUA_SHORT)) {
		if (!fathom_lua_number(f, avma + SHORT_SIZE - 3, 4, &size))
			return false;
		size >>= 24;
	} else if (!fathom_lua_is(f, avma, LUA_LONG) ||
		   !fathom_lua_word(f, avma + LONG_SIZE, &size)) {
		return false;
	}
	return fathom_script_text_read(t, f, avma + l->offsets->text, size);
}

/* The search for a function in a table of tables. */
struct search {
	const struct fathom_runtime_found *f;
	uint64_t closure;
	uint32_t n_left; /* places that may still be looked at */
};

/* A table whose places are passed. */
struct places {
	uint64_t node;
	uint64_t n;
};

static bool open_table(const struct search *s, uint64_t table, struct places *ret)
{
	const struct fathom_lua *l = s->f->own;
	uint64_t bits;

	if (!fathom_lua_is(s->f, table, LUA_TABLE) ||
	    !fathom_lua_number(s->f, table + TABLE_BITS - 3, 4, &bits) ||
	    !fathom_lua_word(s->f, table + l->offsets->node, &ret->node))
		return false;
	bits >>= 24;
	ret->n = (uint64_t)1 << (bits < MOST_BITS ? bits : MOST_BITS);
	return true;
}

/*
 * Goes on to the next place with a string as its key; false at the end. *@ret_key: the string;
 * *@ret_type, *@ret_value: of the value.
 */
static bool next_place(struct search *s, struct places *p, uint64_t *ret_key, unsigned *ret_type,
		       uint64_t *ret_value)
{
	const struct fathom_lua *l = s->f->own;
	const struct fathom_lua_offsets *o = l->offsets;

	for (; p->n && s->n_left; s->n_left--) {
		const uint64_t at = p->node;
		uint64_t key_type;
		uint64_t type;

		p->n--;
		p->node += o->node_size;
		if (!fathom_lua_number(s->f, (at + o->key_type) & ~UINT64_C(3), 4, &key_type) ||
		    !fathom_lua_number(s->f, at + LUA_VALUE_TYPE, 4, &type) ||
		    !fathom_lua_word(s->f, at + o->key, ret_key) ||
		    !fathom_lua_word(s->f, at, ret_value))
			return false;
		key_type = key_type >> (8 * (o->key_type % 4)) & LUA_TYPE;
		*ret_type = type & LUA_TYPE;
		if (key_type == LUA_SHORT || key_type == LUA_LONG)
			return true;
	}
	return false;
}

/* Returns whether the value is the function that is looked for. */
static bool is_wanted(const struct search *s, unsigned type, uint64_t value)
{
	return value == s->closure &&
	       (type == LUA_FUNCTION || type == LUA_C || type == LUA_C_CLOSURE);
}

/* Finds the table of all libraries in the registry of @global. */
static bool find_loaded(struct search *s, uint64_t global, struct places *ret)
{
	const struct fathom_lua *l = s->f->own;
	struct fathom_script_text text;
	struct places p;
	uint64_t key;
	uint64_t value;
	unsigned type;

	if (!fathom_lua_word(s->f, global + l->offsets->registry, &value) ||
	    !open_table(s, value, &p))
		return false;
	while (next_place(s, &p, &key, &type, &value)) {
		text.n = 0;
		text.bad = false;
		if (type == LUA_TABLE && put_string(s->f, &text, key) && text.n == 7 &&
		    memcmp(text.bytes, "_LOADED", 7) == 0)
			return open_table(s, value, ret);
	}
	return false;
}

/* Appends "library.name", or "name" of the global table. */
static bool put_names(const struct search *s, struct fathom_script_text *t, uint64_t library,
		      uint64_t name)
{
	if (!put_string(s->f, t, library))
		return false;
	if (t->n == 2 && memcmp(t->bytes, "_G", 2) == 0)
		t->n = 0;
	else
		put_words(t, ".");
	return put_string(s->f, t, name);
}

/* Appends the name that a library of @global has for the function; false: none has one. */
static bool put_global_name(struct search *s, struct fathom_script_text *t, uint64_t global)
{
	struct places libraries;
	struct places p;
	uint64_t library;
	uint64_t key;
	uint64_t value;
	unsigned type;

	if (!find_loaded(s, global, &libraries))
		return false;
	while (next_place(s, &libraries, &library, &type, &value)) {
		if (is_wanted(s, type, value))
			return put_string(s->f, t, library);
		if (type != LUA_TABLE || !open_table(s, value, &p))
			continue;
		while (next_place(s, &p, &key, &type, &value))
			if (is_wanted(s, type, value))
				return put_names(s, t, library, key);
	}
	return false;
}

/* Appends where the Proto at @code is written: a file, or the first line of its text. */
static bool put_file(const struct fathom_runtime_found *f, struct fathom_script_text *t,
		     uint64_t code)
{
	const struct fathom_lua *l = f->own;
	struct fathom_script_text source = { .n = 0 };
	uint64_t at;
	size_t n = 0;

	if (!fathom_lua_word(f, code + l->offsets->source, &at))
		return false;
	/* A text that load() has compiled may be of any size. */
	if (!put_string(f, &source, at)) {
		put_words(t, "[string]");
		return true;
	}
	if (source.n && (source.bytes[0] == '@' || source.bytes[0] == '=')) {
		fathom_script_text_put(t, source.bytes + 1, source.n - 1);
		return !t->bad;
	}
	while (n < source.n && n < MOST_TEXT && source.bytes[n] != '\n')
		n++;
	put_words(t, "[string \"");
	fathom_script_text_put(t, source.bytes, n);
	put_words(t, n < source.n ? "...\"]" : "\"]");
	return !t->bad;
}

/*
 * Finds the last line that is not relative, of an instruction up to @op: that in which the function
 * begins is of none. False if it is damaged.
 */
static bool find_base_line(const struct fathom_runtime_found *f, uint64_t code, uint64_t op,
			   uint64_t *ret_op, uint64_t *ret_line)
{
	const struct fathom_lua *l = f->own;
	const struct fathom_lua_offsets *o = l->offsets;
	uint64_t bases;
	uint64_t n;
	uint64_t at;
	size_t i;

	if (!fathom_lua_number(f, code + o->base_number, 4, &n) || n > MOST_LINES ||
	    !fathom_lua_word(f, code + o->base_lines, &bases))
		return false;
	i = FATHOM_BISECT(
		n, k, fathom_lua_number(f, bases + BASE_SIZE * (uint64_t)k, 4, &at) && at <= op);
	*ret_op = UINT64_MAX;
	if (!i)
		return fathom_lua_number(f, code + o->first_line, 4, ret_line);
	bases += BASE_SIZE * (uint64_t)(i - 1);
	return fathom_lua_number(f, bases, 4, ret_op) &&
	       fathom_lua_number(f, bases + BASE_LINE, 4, ret_line);
}

/* Finds the line of instruction @op since 5.4; 0: not known. */
static uint32_t find_relative_line(const struct fathom_runtime_found *f, uint64_t code,
				   uint64_t lines, uint64_t op)
{
	int8_t steps[PIECE];
	uint64_t at;
	uint64_t line;

	if (!find_base_line(f, code, op, &at, &line) || op - at > PIECE ||
	    !fathom_reader_read(f->memory, lines + at + 1, steps, (size_t)(op - at)))
		return 0;
	for (uint64_t i = 0; i < op - at; i++)
		line += (uint64_t)(int64_t)steps[i];
	return line > INT32_MAX ? 0 : (uint32_t)line;
}

/* Finds the line of the instruction at @pc of the Proto at @code; 0: not known. */
static uint32_t find_line(const struct fathom_runtime_found *f, uint64_t code, uint64_t pc)
{
	const struct fathom_lua *l = f->own;
	const struct fathom_lua_offsets *o = l->offsets;
	uint64_t first;
	uint64_t lines;
	uint64_t n;
	uint64_t line;

	if (!fathom_lua_has_op(f, code, pc) || !fathom_lua_word(f, code + o->op_codes, &first) ||
	    !fathom_lua_word(f, code + o->lines, &lines) ||
	    !fathom_lua_number(f, code + o->line_number, 4, &n) || (pc - first) / OP_SIZE >= n)
		return 0;
	if (o->base_lines)
		return find_relative_line(f, code, lines, (pc - first) / OP_SIZE);
	return fathom_lua_number(f, lines + (pc - first), 4, &line) && line <= INT32_MAX
		       ? (uint32_t)line
		       : 0;
}

/* Appends the name of @frame's function, which is written at @file; false if it is no longer. */
static bool put_name(const struct fathom_runtime_found *f, struct fathom_script_text *t,
		     const struct fathom_script_frame *frame, const struct fathom_script_text *file)
{
	const struct fathom_lua *l = f->own;
	struct search s = { .f = f, .closure = frame->method };
	uint64_t line;
	char number[24];

	if (file && (!fathom_lua_number(f, frame->code + l->offsets->first_line, 4, &line) ||
		     line > INT32_MAX))
		return false;
	if (file && !line) {
		put_words(t, "main chunk");
		return true;
	}
	for (uint32_t i = 0; i < l->n_globals; i++) {
		s.n_left = MOST_NODES;
		if (put_global_name(&s, t, l->globals[i]))
			return true;
		t->n = 0;
		t->bad = false;
	}
	if (!file) {
		put_words(t, "?");
		return true;
	}
	put_words(t, "function <");
	fathom_script_text_put(t, file->bytes, file->n);
	(void)snprintf(number, sizeof number, ":%u>", (unsigned)line);
	put_words(t, number);
	return !t->bad;
}

fathom_err fathom_lua_name(struct fathom_runtime_found *f, const struct fathom_script_frame *frame,
			   struct fathom_arena *arena, struct fathom_script_name *ret)
{
	struct fathom_lua *l = f->own;
	struct fathom_script_text text = { .n = 0 };
	struct fathom_script_text file = { .n = 0 };
	bool is_code;

	fathom_runtime_forget(l->pages);
	if (frame->method == LUA_TAIL_CALLS) {
		put_words(&text, "(...tail calls...)");
		return fathom_script_text_copy(&text, arena, &ret->function);
	}
	if (fathom_lua_mark(f, frame->code, frame->method) != frame->mark)
		return FATHOM_E_CHANGED;
	is_code = frame->method != frame->code && fathom_lua_is(f, frame->method, LUA_FUNCTION);
	if ((is_code && !put_file(f, &file, frame->code)) ||
	    !put_name(f, &text, frame, is_code ? &file : NULL))
		return FATHOM_E_CHANGED;
	FATHOM_TRY(fathom_script_text_copy(&text, arena, &ret->function));
	if (!is_code)
		return FATHOM_OK;
	FATHOM_TRY(fathom_script_text_copy(&file, arena, &ret->file));
	ret->line = find_line(f, frame->code, frame->pc);
	return FATHOM_OK;
}
