/* SPDX-License-Identifier: MIT */
/* Words on the stack of a thread that tell which native frame executes a frame of a script. */
#ifndef FATHOM_INTERPRETERS_STACK_WORDS_H
#define FATHOM_INTERPRETERS_STACK_WORDS_H

#include "host/base/key_map.h"
#include "host/interpreters/provider.h"

/*
 * Calls @fn for each word of @stack, up to 16 MiB of them, and of its registers that are known, as
 * if these were at its stack pointer. FATHOM_E_MEMORY.
 */
fathom_err fathom_stack_words_each(const struct fathom_runtime_found *f,
				   const struct fathom_script_stack *stack,
				   void (*fn)(void *data, uint64_t avma, uint64_t word),
				   void *data);

/* Notes that the word at @avma is a slot of @frame, unless it has as many as it may have. */
void fathom_stack_words_slot(struct fathom_script_frame *frame, uint64_t avma);

/* Notes where the addresses are that have numbers in @by_avma: slots of the frames so numbered. */
fathom_err fathom_stack_words_slots(const struct fathom_runtime_found *f,
				    const struct fathom_script_stack *stack,
				    const struct fathom_key_map *by_avma,
				    struct fathom_script_frame *frames);

#endif
