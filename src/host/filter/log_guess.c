/* SPDX-License-Identifier: MIT */
#include "host/filter/log_guess.h"

#include <elf.h>

#include "host/file/bias.h"
#include "host/filter/log_evidence.h"

#define PAGE UINT64_C(4096)

/* Different return addresses that must agree. */
#define LEAST_CALLS 4

/* Calls that must lead to the frame before where another place explains the stack, too. */
#define LEAST_LINKS 2

/* Frames of one stack that are looked at. */
#define MAX_FRAMES 256

/* Stacks in a row that no distance of a module explains: it is not tried again. */
#define MAX_FAILURES 256

/* As near to a program are only others like it: libraries, stacks and vDSO are further. */
#define NEAR (UINT64_C(1) << 42)

/* The frames of one stack in one module, from the inner ones on. */
struct stack {
	const struct fathom_log_module *module;
	const struct fathom_log_code *code;
	const struct fathom_image *image;
	struct fathom_log_number *numbers[MAX_FRAMES];
	uint32_t n;
	/* The first return address, from which places in the file are tried. */
	uint64_t first_return;
};

static bool is_call(const struct fathom_log_number *n)
{
	return n->kind != FATHOM_LOG_EXACT;
}

/* Finds segment @i of the stack's file, if it has code: as much of it as is in the file. */
static bool find_code(const struct stack *s, uint32_t i, uint64_t *ret_start, uint64_t *ret_size)
{
	struct fathom_segment segment;

	if (!fathom_image_segment(s->image, i, &segment) || segment.type != PT_LOAD ||
	    !(segment.flags & PF_X))
		return false;
	*ret_start = segment.vaddr;
	*ret_size = fathom_image_loaded_from(s->image, segment.vaddr).size;
	return true;
}

/* Returns whether @address is in the code of the stack's file. */
static bool is_code(const struct stack *s, uint64_t address)
{
	for (uint32_t i = 0; i < s->image->phnum; i++) {
		uint64_t start;
		uint64_t size;

		if (find_code(s, i, &start, &size) && address - start < size)
			return true;
	}
	return false;
}

/* Returns whether frame @i has a return address that no frame before it has. */
static bool is_distinct(const struct stack *s, uint32_t i)
{
	for (uint32_t k = 0; k < i; k++)
		if (is_call(s->numbers[k]) && s->numbers[k]->value == s->numbers[i]->value)
			return false;
	return is_call(s->numbers[i]);
}

/* Returns how the call of frame @i goes with the frame inside of it, if the file is @bias below. */
static enum fathom_log_link link_of(const struct stack *s, uint64_t bias, uint32_t i)
{
	const struct fathom_log_number *n = s->numbers[i];
	const struct fathom_log_number *inner = i ? s->numbers[i - 1] : NULL;

	if (!inner || !is_call(n) || !fathom_log_is_around(inner, n))
		return FATHOM_LOG_LINK_UNKNOWN;
	return fathom_log_link(s->module, s->code, fathom_log_raise(n, s->code, n->value) - bias,
			       fathom_log_inside(inner, inner->value) - bias);
}

/*
 * Returns whether the stack can be if the file is @bias below its memory; counts the different
 * calls that lead to the frame before in *@ret_links.
 */
static bool explains(const struct stack *s, uint64_t bias, uint32_t *ret_links)
{
	*ret_links = 0;
	for (uint32_t i = 0; i < s->n; i++) {
		const struct fathom_log_number *n = s->numbers[i];
		const uint64_t address = fathom_log_raise(n, s->code, n->value) - bias;

		/* A return address can be where the code ends. */
		if (!is_code(s, address - is_call(n)) ||
		    (is_call(n) &&
		     !fathom_step_is_behind_call(s->code->arch, &s->code->memory, address)))
			return false;
	}
	for (uint32_t i = 0; i < s->n; i++) {
		const enum fathom_log_link link = link_of(s, bias, i);

		if (link == FATHOM_LOG_NOT_LINKED)
			return false;
		*ret_links += link == FATHOM_LOG_LINKED && is_distinct(s, i);
	}
	return true;
}

/* Places of the file that explain a stack. */
struct explanations {
	uint32_t n;
	uint32_t n_linked; /* of those, with calls that lead to the frame before */
	uint32_t links;    /* of the last such one */
	uint64_t bias;     /* its */
};

/* Tries all places in the @size bytes of code at @start. */
static void try_code(const struct stack *s, uint64_t start, uint64_t size, struct explanations *e)
{
	/* A return address can be where the code ends. The file has all of it. */
	for (uint64_t at = (s->first_return - start) % PAGE; at <= size; at += PAGE) {
		const uint64_t bias = s->first_return - (start + at);
		uint32_t links;

		if (!explains(s, bias, &links))
			continue;
		e->n++;
		if (!links)
			continue;
		e->n_linked++;
		e->links = links;
		e->bias = bias;
	}
}

/*
 * Finds the distance that explains the stack: the only one, if a call leads to the frame before; or
 * the only one that has such calls, if it has several.
 */
static bool find_bias(const struct stack *s, uint64_t *ret)
{
	struct explanations e = { .n = 0 };

	for (uint32_t i = 0; i < s->image->phnum; i++) {
		uint64_t start;
		uint64_t size;

		if (find_code(s, i, &start, &size))
			try_code(s, start, size, &e);
	}
	*ret = e.bias;
	return e.n_linked == 1 && (e.n == 1 || e.links >= LEAST_LINKS);
}

/* Returns whether @n is of a stack whose module nobody has placed, as that of @first. */
static bool is_of_stack(const struct fathom_log_number *n, const struct fathom_log_number *first)
{
	return n->is_frame && n->base == FATHOM_LOG_LIVE && !n->from.size &&
	       n->format == first->format && str_equal(n->module, first->module);
}

/* Returns the bytes of memory that @image takes. */
static uint64_t span_of(const struct fathom_image *image)
{
	uint64_t low = UINT64_MAX;
	uint64_t high = 0;

	for (uint32_t i = 0; i < image->phnum; i++) {
		struct fathom_segment s;

		if (!fathom_image_segment(image, i, &s) || s.type != PT_LOAD)
			continue;
		low = s.vaddr < low ? s.vaddr : low;
		high = s.vaddr + s.memsz > high ? s.vaddr + s.memsz : high;
	}
	return high > low ? high - low : 0;
}

/*
 * Takes the frames of [@first, @end) that are as near to @first as one module is large. Returns
 * whether these are enough, and no other program is among them.
 */
static bool take_frames(struct stack *s, struct fathom_log_number *first,
			struct fathom_log_number *end)
{
	const uint64_t span = span_of(s->image);
	bool is_mixed = false;
	uint32_t calls = 0;

	s->n = 0;
	for (struct fathom_log_number *n = first; n < end && s->n < MAX_FRAMES; n++) {
		const uint64_t distance =
			n->value < first->value ? first->value - n->value : n->value - first->value;

		if (!is_of_stack(n, first) || distance >= NEAR)
			continue;
		is_mixed |= distance > span;
		n->is_tried = true;
		s->numbers[s->n++] = n;
		if (!is_distinct(s, s->n - 1))
			continue;
		if (!calls++)
			s->first_return = fathom_log_raise(n, s->code, n->value);
	}
	return calls >= LEAST_CALLS && !is_mixed;
}

/* Places the frames of [@first, @end) that are near @first, of @m, if that can be. */
static void guess_module(struct fathom_log_module *m, struct fathom_log_number *first,
			 struct fathom_log_number *end)
{
	struct fathom_log_code code;
	struct stack stack = { .module = m, .code = &code, .image = fathom_log_image_of(m) };
	uint64_t bias;

	/* Stated addresses of the file need no guess. */
	if (!stack.image || stack.image->type != ET_DYN || m->n_unexplained >= MAX_FAILURES ||
	    (!first->module.size && fathom_bias_covers(stack.image, 0, first->value)))
		return;
	fathom_log_code_of(m, &code);
	if (!code.arch || !take_frames(&stack, first, end))
		return;
	if (!find_bias(&stack, &bias)) {
		m->n_unexplained++;
		return;
	}
	m->n_unexplained = 0;
	for (uint32_t i = 0; i < stack.n; i++) {
		struct fathom_log_number *n = stack.numbers[i];

		n->base = FATHOM_LOG_MAPPED;
		n->raised = 0 - bias;
		n->is_placed = n->is_guessed = true;
	}
}

void fathom_log_guess(struct fathom_log_scan *s, struct fathom_log_modules *modules,
		      const uint32_t *of_numbers)
{
	struct fathom_log_number *const items = s->numbers.items;
	size_t end;

	for (size_t first = 0; first < s->numbers.n; first = end) {
		end = fathom_log_stack_end(s, first);
		if (end - first < LEAST_CALLS)
			continue;
		for (size_t i = first; i < end; i++)
			if (is_of_stack(&items[i], &items[i]) && !items[i].is_tried)
				guess_module(&modules->modules.items[of_numbers[i]], &items[i],
					     &items[end]);
	}
}
