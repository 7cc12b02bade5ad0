/* SPDX-License-Identifier: MIT */
/*
 * gcc sets apart what is executed rarely (.text.unlikely). That part has no symbol in .dynsym, but
 * call frame information of its own, and the loop jumps into its middle, which nothing does to
 * another function. Jumps and calls of x86-64 are found by their bytes alone: one of the jumps may
 * be none, so two have to agree.
 */
#include "host/interpreters/loop_code.h"

#include <elf.h>
#include <stdlib.h>

/* The most bytes of a loop's code; parts that are compared; jumps into the one that is it. */
enum { MOST_CODE = 1 << 20, MOST_PARTS = 8, LEAST_JUMPS = 2 };

/* Jumps of x86-64, before 4 bytes of their distance: always; on a condition, two bytes. */
enum { JUMP = 0xe9, CONDITIONAL = 0x0f, CONDITION = 0x80, CONDITIONS = 0xf0 };

/* A call; a jump to what a register has, but for the number of the register. */
enum { CALL = 0xe8, INDIRECT = 0xff, TO_REGISTER = 0xe0, REGISTERS = 7 };

/* The most functions that are looked at, calls in a row; the least bytes of a loop. */
enum { MOST_FUNCTIONS = 1024, MOST_CALLS = 3, LEAST_LOOP = 4096 };

/* Reads the code at @svma, which the caller frees; NULL: it is of another machine. */
static uint8_t *read_code(const struct fathom_runtime_found *f, uint64_t svma, uint64_t size,
			  uint64_t *ret_size)
{
	uint8_t *code;

	size = size < MOST_CODE ? size : MOST_CODE;
	if (f->module->main->image.machine != EM_X86_64)
		return NULL;
	code = malloc((size_t)size + 1);
	if (code)
		*ret_size = fathom_object_read(f->module->main, svma, code, size);
	return code;
}

/* Parts of other code into which there are jumps. */
struct parts {
	struct {
		uint64_t start;
		uint64_t size;
		unsigned n;
	} items[MOST_PARTS];
	size_t n;
};

static void add_jump(const struct fathom_runtime_found *f, uint64_t target, struct parts *p)
{
	struct fathom_symbol_hit hit;
	size_t i = 0;

	if (!fathom_object_has_code(f->module->main, target) ||
	    !fathom_symbols_fde(&f->module->symbols, target, &hit) || hit.start == target)
		return;
	while (i < p->n && p->items[i].start != hit.start)
		i++;
	if (i == MOST_PARTS)
		return;
	if (i == p->n) {
		p->items[p->n++].start = hit.start;
		p->items[i].size = hit.size;
		p->items[i].n = 0;
	}
	p->items[i].n++;
}

/* Lists the parts into which the @n bytes of @code, which are at @svma, jump. */
static void list_jumps(const struct fathom_runtime_found *f, const uint8_t *code, uint64_t n,
		       uint64_t svma, struct parts *p)
{
	for (uint64_t i = 0; i + 5 <= n; i++) {
		const bool is_conditional =
			i && code[i - 1] == CONDITIONAL && (code[i] & CONDITIONS) == CONDITION;
		const uint64_t next = svma + i + 5;
		const uint64_t target =
			next + (uint64_t)(int64_t)(int32_t)load_u32(code + i + 1, false);

		if ((code[i] == JUMP || is_conditional) && target - svma >= n)
			add_jump(f, target, p);
	}
}

void fathom_loop_code_find_cold(const struct fathom_runtime_found *f,
				struct fathom_script_loop *loop)
{
	const uint64_t svma = loop->code - f->bias;
	struct parts parts = { .n = 0 };
	unsigned most = LEAST_JUMPS - 1;
	uint64_t size;
	uint8_t *code = read_code(f, svma, loop->size, &size);

	if (!code)
		return;
	list_jumps(f, code, size, svma, &parts);
	free(code);
	for (size_t i = 0; i < parts.n; i++) {
		if (parts.items[i].n <= most || parts.items[i].size > UINT32_MAX)
			continue;
		most = parts.items[i].n;
		loop->cold = parts.items[i].start + f->bias;
		loop->cold_size = (uint32_t)parts.items[i].size;
	}
}

bool fathom_loop_code_named(const struct fathom_runtime_found *f, const char *name,
			    struct fathom_script_loop *ret)
{
	uint64_t size;

	if (!fathom_runtime_range(f, name, &ret->code, &size) || !size || size > UINT32_MAX)
		return false;
	ret->size = (uint32_t)size;
	fathom_loop_code_find_cold(f, ret);
	return true;
}

/* Functions that are called, in the order in which they are found. */
struct called {
	struct {
		uint64_t svma;
		uint64_t size;
		uint8_t calls; /* so many lead to it */
		bool has_table;
	} items[MOST_FUNCTIONS];
	size_t n;
};

/* Adds the function at @svma, unless it is there, or the address is not the start of one. */
static void add_function(const struct fathom_runtime_found *f, uint64_t svma, uint8_t calls,
			 struct called *c)
{
	struct fathom_symbol_hit hit;

	for (size_t i = 0; i < c->n; i++)
		if (c->items[i].svma == svma)
			return;
	if (c->n == MOST_FUNCTIONS || !fathom_object_has_code(f->module->main, svma) ||
	    !fathom_symbols_fde(&f->module->symbols, svma, &hit) || hit.start != svma)
		return;
	c->items[c->n].svma = svma;
	c->items[c->n].size = hit.size;
	c->items[c->n++].calls = calls;
}

/* Adds what function @i calls, also as its last act. */
static void add_called(const struct fathom_runtime_found *f, size_t i, struct called *c)
{
	const uint64_t svma = c->items[i].svma;
	uint64_t n;
	uint8_t *code = read_code(f, svma, c->items[i].size, &n);

	for (uint64_t k = 0; code && k + 5 <= n; k++) {
		c->items[i].has_table |=
			code[k] == INDIRECT && (code[k + 1] & ~REGISTERS) == TO_REGISTER;
		if ((code[k] == CALL || code[k] == JUMP) && c->items[i].calls < MOST_CALLS)
			add_function(
				f,
				svma + k + 5 +
					(uint64_t)(int64_t)(int32_t)load_u32(code + k + 1, false),
				c->items[i].calls + 1, c);
	}
	free(code);
}

bool fathom_loop_code_called(const struct fathom_runtime_found *f, const char *name,
			     struct fathom_script_loop *ret)
{
	struct called *c = calloc(1, sizeof *c);
	uint64_t second = 0;
	uint64_t avma;
	size_t at = 0;
	bool is = false;

	if (c && fathom_runtime_symbol(f, name, &avma))
		add_function(f, avma - f->bias, 0, c);
	for (size_t i = 0; c && i < c->n; i++) {
		add_called(f, i, c);
		if (c->items[i].size > c->items[at].size)
			at = i;
	}
	for (size_t i = 0; c && i < c->n; i++)
		if (i != at && c->items[i].size > second)
			second = c->items[i].size;
	if (c && c->n && c->items[at].size >= LEAST_LOOP && c->items[at].size <= UINT32_MAX &&
	    c->items[at].size / 2 >= second && c->items[at].has_table) {
		ret->code = c->items[at].svma + f->bias;
		ret->size = (uint32_t)c->items[at].size;
		fathom_loop_code_find_cold(f, ret);
		is = true;
	}
	free(c);
	return is;
}
