/* SPDX-License-Identifier: MIT */
/*
 * gcc sets apart what is executed rarely (.text.unlikely). That part has no symbol in .dynsym, but
 * call frame information of its own, and the loop jumps into its middle, which nothing does to
 * another function. Jumps of x86-64 are found by their bytes alone: one of them may be no jump, so
 * two have to agree.
 */
#include "host/interpreters/loop_code.h"

#include <elf.h>
#include <stdlib.h>

/* The most bytes of a loop's code; parts that are compared; jumps into the one that is it. */
enum { MOST_CODE = 1 << 20, MOST_PARTS = 8, LEAST_JUMPS = 2 };

/* Jumps of x86-64, before 4 bytes of their distance: always; on a condition, two bytes. */
enum { JUMP = 0xe9, CONDITIONAL = 0x0f, CONDITION = 0x80, CONDITIONS = 0xf0 };

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
	const uint64_t size = loop->size < MOST_CODE ? loop->size : MOST_CODE;
	struct parts parts = { .n = 0 };
	unsigned most = LEAST_JUMPS - 1;
	uint8_t *code;

	if (f->module->main->image.machine != EM_X86_64)
		return;
	code = malloc((size_t)size + 1);
	if (!code)
		return;
	list_jumps(f, code, fathom_object_read(f->module->main, svma, code, size), svma, &parts);
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
