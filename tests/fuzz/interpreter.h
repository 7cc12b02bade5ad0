/* SPDX-License-Identifier: MIT */
/*
 * What the fuzz targets of interpreters share: memory that is the input from FUZZ_BASE on, and the
 * use of all frames found in it.
 */
#ifndef FUZZ_INTERPRETER_H
#define FUZZ_INTERPRETER_H

#include "fuzz.h"

#include "host/interpreters/provider.h"

#define FUZZ_BASE UINT64_C(0x10000)

/* The most frames whose names are looked for. */
#define FUZZ_MAX_NAMED 256

/* The read of a reader whose data is a struct fathom_bytes. */
static size_t fuzz_read_memory(void *data, uint64_t avma, void *to, size_t size)
{
	const struct fathom_bytes *m = data;
	const uint64_t off = avma - FUZZ_BASE;

	if (off >= m->size)
		return 0;
	if (size > m->size - off)
		size = m->size - (size_t)off;
	memcpy(to, m->data + off, size);
	return size;
}

/* Reads the frames of thread 1 of @f, whose stack is @stack, and names them. */
static void fuzz_use_runtime(struct fathom_runtime_found *f, struct fathom_script_stack stack)
{
	struct fathom_script_frames frames = { 0 };

	if (f->provider->read(f, 1, stack, &frames))
		frames.n = 0;
	for (size_t i = 0; i < frames.n && i < FUZZ_MAX_NAMED; i++) {
		struct fathom_arena arena = { 0 };
		struct fathom_script_name name = { 0 };

		fuzz_use(frames.items[i].anchor);
		for (size_t k = 0; k < FATHOM_SCRIPT_SLOTS; k++)
			fuzz_use(frames.items[i].slots[k]);
		if (!f->provider->name(f, &frames.items[i], &arena, &name)) {
			fuzz_use_str(name.function);
			fuzz_use_str(name.file);
			fuzz_use(name.line);
		}
		fathom_arena_deinit(&arena);
	}
	fathom_array_free(&frames);
}

#endif
