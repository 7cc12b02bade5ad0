/* SPDX-License-Identifier: MIT */
/* The runtime (src/trace) as the bytes that are put into programs. */
#ifndef FATHOM_TRACE_HOOK_IMAGE_H
#define FATHOM_TRACE_HOOK_IMAGE_H

#include "fathom/jit.h"
#include "fathom/trace.h"
#include "host/base/array.h"

/* Bytes that a copy of the hooks, or of the linker's stub, takes at most (src/trace/image.ld). */
#define FATHOM_HOOK_SLOT 1440

/* Words that a copy of a hook reads. Addresses are avma, of the program. */
struct fathom_hook_words {
	uint64_t process; /* struct fathom_trace_process */
	uint64_t image;
	uint64_t base; /* the number of a site is where its call returns to, less this */
};

const uint8_t *fathom_image_bytes(void);
uint64_t fathom_image_size(void);

/* Where in the image the hook of system calls is (src/trace/syscall_hook.h). */
struct fathom_image_calls {
	uint32_t entry;
	uint32_t made;       /* after the instruction that makes a call */
	uint32_t load;       /* what reads the program's memory, up to */
	uint32_t load_fault; /* where that goes on after a fault */
};

struct fathom_image_calls fathom_image_calls(void);

/* The hooks of one clock, by what is known where they are called (src/trace/recorder.h). */
enum fathom_hook_place {
	FATHOM_HOOK_AT_ENTRY,
	FATHOM_HOOK_BEHIND_PROLOGUE,
	FATHOM_HOOK_AT_OWN_CALL,
	FATHOM_HOOK_AT_OWN_CALL_BEHIND,
	FATHOM_HOOK_AT_CALL,
	FATHOM_HOOK_PLACES
};

/* Makes a copy of the hooks of @clock; offsets in it of where each is called. */
void fathom_image_hook(enum fathom_trace_clock clock, const struct fathom_hook_words *words,
		       uint8_t to[FATHOM_HOOK_SLOT], uint32_t ret_off[FATHOM_HOOK_PLACES]);

/* Makes a copy of the stub that _dl_debug_state() is to lead to; returns its offset. */
uint32_t fathom_image_loaded(const struct fathom_hook_words *words, uint8_t to[FATHOM_HOOK_SLOT]);

/* A function of the image, and how stacks go through it: the rule points to the image. */
struct fathom_image_function {
	uint64_t off; /* in the image */
	uint64_t size;
	struct fathom_jit_unwind rule;
};

struct fathom_image_functions {
	FATHOM_ARRAY_OF(struct fathom_image_function);
};

/* Lists the functions that have call frame information; without memory, fewer. */
void fathom_image_functions_init(struct fathom_image_functions *ret);

/* Selects the linker's stub to copy; values of enum fathom_trace_clock select hooks. */
#define FATHOM_IMAGE_LOADED (-1)
/* Returns the offset in the image of what a copy of @what begins with, and where that ends. */
uint64_t fathom_image_copied(int what, uint64_t *ret_end);

#endif
