/* SPDX-License-Identifier: MIT */
#include "host/interpreters/stack_words.h"

#include <stdlib.h>

/* Bytes of a stack that are looked through at most, and at a time. */
#define MOST_STACK (UINT64_C(1) << 24)
enum { PIECE = 1 << 16 };

fathom_err fathom_stack_words_each(const struct fathom_runtime_found *f,
				   const struct fathom_script_stack *stack,
				   void (*fn)(void *data, uint64_t avma, uint64_t word), void *data)
{
	const struct fathom_registers *r = stack->registers;
	const uint64_t all = stack->end > stack->sp ? stack->end - stack->sp : 0;
	const uint64_t size = all < MOST_STACK ? all : MOST_STACK;
	uint8_t *piece = malloc(PIECE);

	if (!piece)
		return FATHOM_E_MEMORY;
	for (uint8_t i = 0; r && i < FATHOM_REGISTERS; i++)
		if (fathom_register_known(r, i))
			fn(data, stack->sp, r->value[i]);
	for (uint64_t at = 0; at < size; at += PIECE) {
		const size_t n = size - at < PIECE ? (size_t)(size - at) : PIECE;
		const size_t got = f->memory->read(f->memory->data, stack->sp + at, piece, n);

		for (size_t i = 0; i + 8 <= got; i += 8)
			fn(data, stack->sp + at + i, load_u64(piece + i, f->swap));
		if (got < n)
			break;
	}
	free(piece);
	return FATHOM_OK;
}

void fathom_stack_words_slot(struct fathom_script_frame *frame, uint64_t avma)
{
	size_t k = 0;

	while (k < FATHOM_SCRIPT_SLOTS && frame->slots[k])
		k++;
	if (k < FATHOM_SCRIPT_SLOTS)
		frame->slots[k] = avma;
}

/* Frames by the numbers of their addresses. */
struct numbered {
	const struct fathom_key_map *by_avma;
	struct fathom_script_frame *frames;
};

static void note(void *data, uint64_t avma, uint64_t word)
{
	const struct numbered *n = data;
	const uint32_t number = fathom_key_map_find(n->by_avma, word);

	if (number != FATHOM_KEY_NEW)
		fathom_stack_words_slot(&n->frames[number], avma);
}

fathom_err fathom_stack_words_slots(const struct fathom_runtime_found *f,
				    const struct fathom_script_stack *stack,
				    const struct fathom_key_map *by_avma,
				    struct fathom_script_frame *frames)
{
	struct numbered n = { by_avma, frames };

	return fathom_stack_words_each(f, stack, note, &n);
}
