/* SPDX-License-Identifier: MIT */
/*
 * Names, files and lines of Ruby's code, and names of methods of C: labels as Ruby's backtraces
 * have them (vm_backtrace.c, iseq.c, symbol.c of each version). Since 3.4 a label names the class
 * of its method, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/interpreters/ruby.h"
#include "host/interpreters/script_text.h"

/* Of strings and arrays; the size of a short string up to 3.1 is in its flags. */
enum { SIZE = 16, SHORT = 16, TEXT_AT = 24, ITEMS_AT = 32, SHORT_SHIFT = 14, SHORT_MASK = 0x1f };

/* Of insns_info, relative to it; of the body, what code is around it, relative to it, too. */
enum { LINES_POSITIONS = 8, LINES_NUMBER = 16, LINES_INDEX = 24, PARENT = 48, METHOD_CODE = 56 };

/*
 * The index of positions (struct succ_index_table): 6 words for the first 54, each with 9 numbers
 * of 7 bits, then blocks for 512 each: a number, a word with 7 numbers of 9 bits, 8 words of bits.
 */
enum {
	FIRST = 54,
	IN_WORD = 9,
	WORD_BITS = 7,
	HEAD = 48,
	BLOCK = 512,
	BLOCK_SIZE = 80,
	BLOCK_RANKS = 8,
	BLOCK_BITS = 16,
	RANK_BITS = 9,
};

/* The most positions and lines of one code; blocks in a block. */
enum { MOST_POSITIONS = 1 << 24, MOST_NESTED = 256, MOST_AROUND = 8 };

/* Of names: numbers of operators are below; bits beside the number; pairs in one array. */
enum { FIRST_NUMBERED = 1024, SCOPE_BITS = 4, PAIRS = 512 };

/* A symbol that is no object: its name's number, and this byte. */
enum { SYMBOL_SHIFT = 8, SYMBOL_MARK = 0xc };

int fathom_ruby_internal(const struct fathom_runtime_found *f, uint64_t object)
{
	uint64_t flags;

	if (!fathom_ruby_is(f, object, RUBY_INTERNAL, &flags))
		return -1;
	return (int)(flags >> RUBY_INTERNAL_SHIFT & 15);
}

uint64_t fathom_ruby_mark(const struct fathom_runtime_found *f, uint64_t code)
{
	uint64_t words[3] = { 0 };
	uint64_t mark = 0;

	if (fathom_ruby_internal(f, code) == RUBY_METHOD) {
		(void)fathom_ruby_word(f, code + METHOD_DEFINITION, &words[0]);
		(void)fathom_ruby_word(f, code + METHOD_OWNER, &words[1]);
		(void)fathom_ruby_word(f, words[0] + DEFINITION_ID, &words[2]);
	} else if (fathom_ruby_word(f, code + CODE_BODY, &words[0])) {
		(void)fathom_ruby_word(f, words[0] + BODY_PATH, &words[1]);
		(void)fathom_ruby_word(f, words[0] + BODY_LABEL, &words[2]);
	}
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		/* Multiplied by a fraction of the golden ratio. */
		mark = (mark ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
	return mark;
}

/* Finds where the bytes of the String @object are, and how many; false if it is none. */
static bool find_text(const struct fathom_runtime_found *f, uint64_t object, uint64_t *ret_at,
		      uint64_t *ret_size)
{
	const struct fathom_ruby *r = f->own;
	const uint16_t text = r->offsets->text;
	uint64_t flags;

	if (!fathom_ruby_is(f, object, RUBY_STRING, &flags))
		return false;
	*ret_at = object + text;
	/* Of a string the bit says that it is elsewhere. */
	if (flags & RUBY_EMBEDDED)
		return fathom_ruby_word(f, object + SIZE, ret_size) &&
		       fathom_ruby_word(f, object + TEXT_AT, ret_at);
	*ret_size = flags >> SHORT_SHIFT & SHORT_MASK;
	return text == SHORT || fathom_ruby_word(f, object + SIZE, ret_size);
}

/* Appends the String @object; false if it is none, or too long. */
static bool put_object(const struct fathom_runtime_found *f, struct fathom_script_text *t,
		       uint64_t object)
{
	uint64_t at;
	uint64_t size;

	return find_text(f, object, &at, &size) && fathom_script_text_read(t, f, at, size);
}

/* Reads word @i of the Array @object. */
static bool read_item(const struct fathom_runtime_found *f, uint64_t object, uint64_t i,
		      uint64_t *ret)
{
	uint64_t flags;
	uint64_t size;
	uint64_t items = object + SIZE;

	if (!fathom_ruby_is(f, object, RUBY_ARRAY, &flags))
		return false;
	if (!(flags & RUBY_EMBEDDED) && (!fathom_ruby_word(f, object + SIZE, &size) || i >= size ||
					 !fathom_ruby_word(f, object + ITEMS_AT, &items)))
		return false;
	return fathom_ruby_word(f, items + 8 * i, ret);
}

/* Appends the name with ID @id: the symbol beside it must be of that ID. */
static bool put_id(struct fathom_runtime_found *f, struct fathom_script_text *t, uint64_t id)
{
	const uint64_t number = id < FIRST_NUMBERED ? id : id >> SCOPE_BITS;
	uint64_t names;
	uint64_t part;
	uint64_t text;
	uint64_t symbol;
	uint64_t of;
	uint64_t flags;

	if (number >> 32 || !fathom_ruby_find_names(f, &names) ||
	    !read_item(f, names, number / PAIRS, &part) ||
	    !read_item(f, part, 2 * (number % PAIRS), &text) ||
	    !read_item(f, part, 2 * (number % PAIRS) + 1, &symbol))
		return false;
	if (symbol != (id << SYMBOL_SHIFT | SYMBOL_MARK) &&
	    (!fathom_ruby_is(f, symbol, RUBY_SYMBOL, &flags) ||
	     !fathom_ruby_word(f, symbol + SYMBOL_ID, &of) || of != id))
		return false;
	return put_object(f, t, text);
}

/* Appends "Class#", or "Class." for a method of the class itself, of the class @owner. */
static bool put_owner(const struct fathom_runtime_found *f, struct fathom_script_text *t,
		      uint64_t owner)
{
	const struct fathom_ruby *r = f->own;
	const struct fathom_ruby_offsets *o = r->offsets;
	const size_t n = t->n;
	uint64_t flags;
	uint64_t path;
	uint8_t bits;
	bool is_own;

	if (!fathom_ruby_is(f, owner, RUBY_CLASS, &flags) &&
	    !fathom_ruby_is(f, owner, RUBY_MODULE, &flags))
		return true;
	is_own = (flags & RUBY_TYPE) == RUBY_CLASS && flags & RUBY_EMBEDDED;
	if (is_own && (!fathom_ruby_word(f, owner + o->class_of, &owner) ||
		       (!fathom_ruby_is(f, owner, RUBY_CLASS, &flags) &&
			!fathom_ruby_is(f, owner, RUBY_MODULE, &flags))))
		return true;
	if (!fathom_reader_read(f->memory, owner + o->class_bits, &bits, 1) ||
	    !fathom_ruby_word(f, owner + o->class_path, &path))
		return false;
	/* Classes without a name of their own have none here. */
	if (!(bits & 1))
		return true;
	if (!put_object(f, t, path)) {
		t->n = n;
		return !t->bad;
	}
	fathom_script_text_put(t, is_own ? "." : "#", 1);
	return !t->bad;
}

/* Code and what is read of it. */
struct code {
	uint64_t at;
	uint64_t body;
	uint64_t type;
	uint64_t parent;
	uint64_t method; /* the code of the method, class or file around it */
};

static bool read_code(const struct fathom_runtime_found *f, uint64_t at, struct code *ret)
{
	const struct fathom_ruby *r = f->own;
	const uint16_t lines = r->offsets->lines;

	ret->at = at;
	return fathom_ruby_internal(f, at) == RUBY_CODE &&
	       fathom_ruby_word(f, at + CODE_BODY, &ret->body) &&
	       fathom_ruby_number(f, ret->body + BODY_TYPE, 4, &ret->type) &&
	       fathom_ruby_word(f, ret->body + lines + PARENT, &ret->parent) &&
	       fathom_ruby_word(f, ret->body + lines + METHOD_CODE, &ret->method);
}

/* Appends "block in " or "block (2 levels) in ", and goes on to the code around it. */
static bool pass_block(const struct fathom_runtime_found *f, struct fathom_script_text *t,
		       struct code *c)
{
	const uint64_t around = c->method;
	unsigned levels = 0;
	char words[32];

	for (int i = 0; c->at != around; i++) {
		levels += c->type == CODE_BLOCK;
		if (i == MOST_NESTED || !read_code(f, c->parent, c))
			return false;
	}
	if (levels <= 1)
		(void)snprintf(words, sizeof words, "block in ");
	else
		(void)snprintf(words, sizeof words, "block (%u levels) in ", levels);
	fathom_script_text_put(t, words, strlen(words));
	return !t->bad;
}

/* Appends the label of code @code of method @method, as since 3.4. */
static bool put_label(const struct fathom_runtime_found *f, struct fathom_script_text *t,
		      uint64_t code, uint64_t method)
{
	uint64_t owner;
	uint64_t label;
	struct code c;

	if (!read_code(f, code, &c))
		return false;
	for (int i = 0; i < MOST_AROUND; i++) {
		switch (c.type) {
		case CODE_METHOD:
			if (method && (!fathom_ruby_word(f, method + METHOD_OWNER, &owner) ||
				       !put_owner(f, t, owner)))
				return false;
			/* fallthrough */
		case CODE_TOP:
		case CODE_CLASS:
		case CODE_MAIN:
			return fathom_ruby_word(f, c.body + BODY_LABEL, &label) &&
			       put_object(f, t, label);
		case CODE_BLOCK:
		case CODE_PLAIN:
			if (!c.parent || !pass_block(f, t, &c))
				return false;
			break;
		default:
			if (!read_code(f, c.parent, &c))
				return false;
		}
	}
	return false;
}

uint32_t fathom_ruby_rank(const struct fathom_runtime_found *f, uint64_t index, uint32_t position)
{
	uint64_t word;
	uint64_t ranks;
	uint64_t rank;
	uint64_t block;
	uint32_t bit;

	if (position < FIRST) {
		if (!fathom_ruby_word(f, index + 8 * (uint64_t)(position / IN_WORD), &word))
			return 0;
		return word >> (position % IN_WORD * WORD_BITS) & 0x7f;
	}
	block = index + HEAD + (uint64_t)(position - FIRST) / BLOCK * BLOCK_SIZE;
	bit = (position - FIRST) % BLOCK;
	if (!fathom_ruby_number(f, block, 4, &rank) ||
	    !fathom_ruby_word(f, block + BLOCK_RANKS, &ranks) ||
	    !fathom_ruby_word(f, block + BLOCK_BITS + 8 * (uint64_t)(bit / 64), &word))
		return 0;
	if (bit >= 64)
		rank += ranks >> ((bit / 64 - 1) * RANK_BITS) & 0x1ff;
	return (uint32_t)rank + (uint32_t)__builtin_popcountll(word << (63 - bit % 64));
}

/* Finds the number of the line of @position in the sorted array of @n positions at @at, from 1. */
static uint32_t rank_in(const struct fathom_runtime_found *f, uint64_t at, uint32_t n,
			uint32_t position)
{
	uint64_t word;

	return (uint32_t)FATHOM_BISECT(
		n, i, fathom_ruby_number(f, at + 4 * (uint64_t)i, 4, &word) && word <= position);
}

/* Finds the line of the instruction before @pc of the code at @code; 0: it has none. */
static uint32_t find_line(const struct fathom_runtime_found *f, uint64_t code, uint64_t pc)
{
	const struct fathom_ruby *r = f->own;
	uint64_t body;
	uint64_t first;
	uint64_t size;
	uint64_t lines;
	uint64_t positions;
	uint64_t n;
	uint64_t index;
	uint64_t line;
	uint64_t at;
	uint32_t rank = 1;

	if (!fathom_ruby_word(f, code + CODE_BODY, &body) ||
	    !fathom_ruby_number(f, body + BODY_SIZE, 4, &size) || size > MOST_POSITIONS ||
	    !fathom_ruby_word(f, body + BODY_CODE, &first) || pc < first || pc - first > 8 * size)
		return 0;
	at = body + r->offsets->lines;
	if (!fathom_ruby_word(f, at, &lines) ||
	    !fathom_ruby_word(f, at + LINES_POSITIONS, &positions) ||
	    !fathom_ruby_number(f, at + LINES_NUMBER, 4, &n) ||
	    !fathom_ruby_word(f, at + LINES_INDEX, &index) || !n || n > MOST_POSITIONS)
		return 0;
	/* It is the next one that will be executed. */
	at = pc > first ? (pc - first) / 8 - 1 : 0;
	if (n > 1)
		rank = positions ? rank_in(f, positions, (uint32_t)n, (uint32_t)at)
				 : fathom_ruby_rank(f, index, (uint32_t)at);
	if (!rank || rank > n ||
	    !fathom_ruby_number(f, lines + (rank - 1) * (uint64_t)r->offsets->line_size, 4, &line))
		return 0;
	return (uint32_t)line;
}

/* Appends what the method of C at @method is called. */
static bool put_method(struct fathom_runtime_found *f, struct fathom_script_text *t,
		       uint64_t method)
{
	const struct fathom_ruby *r = f->own;
	uint64_t definition;
	uint64_t owner;
	uint64_t id;

	if (r->offsets->class_path &&
	    (!fathom_ruby_word(f, method + METHOD_OWNER, &owner) || !put_owner(f, t, owner)))
		return false;
	return fathom_ruby_word(f, method + METHOD_DEFINITION, &definition) &&
	       fathom_ruby_word(f, definition + DEFINITION_ID, &id) && put_id(f, t, id);
}

/* Appends the file of the code at @code: a String, or an Array of that and of its real path. */
static bool put_file(const struct fathom_runtime_found *f, struct fathom_script_text *t,
		     uint64_t code)
{
	uint64_t body;
	uint64_t path;
	uint64_t item;

	if (!fathom_ruby_word(f, code + CODE_BODY, &body) ||
	    !fathom_ruby_word(f, body + BODY_PATH, &path))
		return false;
	return put_object(f, t, read_item(f, path, 0, &item) ? item : path);
}

fathom_err fathom_ruby_name(struct fathom_runtime_found *f, const struct fathom_script_frame *frame,
			    struct fathom_arena *arena, struct fathom_script_name *ret)
{
	const struct fathom_ruby *r = f->own;
	struct fathom_script_text text = { .n = 0 };
	uint64_t at;
	bool is_there;
	int kind;

	fathom_ruby_refresh(f);
	kind = fathom_ruby_internal(f, frame->code);
	if ((kind != RUBY_METHOD && kind != RUBY_CODE) ||
	    (fathom_ruby_mark(f, frame->code) ^ frame->method) != frame->mark)
		return FATHOM_E_CHANGED;
	if (kind == RUBY_METHOD)
		is_there = put_method(f, &text, frame->code);
	else if (r->offsets->class_path)
		is_there = put_label(f, &text, frame->code, frame->method);
	else
		is_there = fathom_ruby_word(f, frame->code + CODE_BODY, &at) &&
			   fathom_ruby_word(f, at + BODY_LABEL, &at) && put_object(f, &text, at);
	if (!is_there)
		return FATHOM_E_CHANGED;
	FATHOM_TRY(fathom_script_text_copy(&text, arena, &ret->function));
	if (kind == RUBY_METHOD)
		return FATHOM_OK;
	text.n = 0;
	if (put_file(f, &text, frame->code))
		FATHOM_TRY(fathom_script_text_copy(&text, arena, &ret->file));
	ret->line = find_line(f, frame->code, frame->pc);
	return FATHOM_OK;
}
