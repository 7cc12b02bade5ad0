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
#define FUZZ_CODE (FUZZ_BASE + 0x2040)

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

/* Uses @frame and its name. */
static void fuzz_use_frame(struct fathom_runtime_found *f, const struct fathom_script_frame *frame)
{
	struct fathom_arena arena = { 0 };
	struct fathom_script_name name = { 0 };

	fuzz_use(frame->anchor);
	for (size_t k = 0; k < FATHOM_SCRIPT_SLOTS; k++)
		fuzz_use(frame->slots[k]);
	if (!f->provider->name(f, frame, &arena, &name)) {
		fuzz_use_str(name.function);
		fuzz_use_str(name.file);
		fuzz_use(name.line);
	}
	fathom_arena_deinit(&arena);
}

/*
 * Reads the frames of thread 1 of @f, whose stack is @stack, and names them. Those in place are
 * frames of JIT code at FUZZ_CODE, too.
 */
static void fuzz_use_runtime(struct fathom_runtime_found *f, struct fathom_script_stack stack)
{
	const struct fathom_place place = { .is_code = true };
	struct fathom_script_frames frames = { 0 };
	bool has_called = false;

	if (f->provider->read(f, 1, stack, &frames))
		frames.n = 0;
	for (size_t i = 0; i < frames.n && i < FUZZ_MAX_NAMED; i++) {
		struct fathom_script_frame *frame = &frames.items[i];

		fuzz_use_frame(f, frame);
		if (f->provider->executes &&
		    f->provider->executes(f, &place, FUZZ_CODE, frame, &has_called))
			fuzz_use_frame(f, frame);
	}
	fathom_array_free(&frames);
}

#endif
