/* SPDX-License-Identifier: MIT */
/*
 * A CPython whose structures are any bytes: byte 0 chooses the version, the rest is its memory from
 * BASE on, in which the types are at fixed places.
 */
#include "fuzz.h"

#include <stdlib.h>

#include "host/interpreters/python.h"

#define BASE UINT64_C(0x10000)

/* Bytes before the types, as tests/fuzz/seeds.py lays them out; _PyRuntime is at the start. */
enum { CODE_TYPE = 0x800, TEXT_TYPE = 0xa00, BYTES_TYPE = 0xa40 };

/* The most frames whose names are looked for. */
#define MAX_NAMED 256

struct memory {
	const uint8_t *data;
	size_t size;
};

static size_t read_memory(void *data, uint64_t avma, void *to, size_t size)
{
	const struct memory *m = data;
	const uint64_t off = avma - BASE;

	if (off >= m->size)
		return 0;
	if (size > m->size - off)
		size = m->size - (size_t)off;
	memcpy(to, m->data + off, size);
	return size;
}

static void use_str(struct fathom_str s)
{
	for (uint32_t i = 0; s.data && i < s.size; i++)
		fuzz_use((uint8_t)s.data[i]);
}

static void use_frames(struct fathom_runtime_found *f, const struct fathom_script_frames *frames)
{
	for (size_t i = 0; i < frames->n && i < MAX_NAMED; i++) {
		struct fathom_arena arena = { 0 };
		struct fathom_script_name name = { 0 };

		if (!fathom_python.name(f, &frames->items[i], &arena, &name)) {
			use_str(name.function);
			use_str(name.file);
			fuzz_use(name.line);
		}
		fathom_arena_deinit(&arena);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memory memory = { data + 1, size ? size - 1 : 0 };
	const struct fathom_reader reader = { .read = read_memory, .data = &memory };
	struct fathom_python *p = calloc(1, sizeof *p);
	struct fathom_runtime_found f = { .memory = &reader, .own = p };
	const struct fathom_script_stack stack = { BASE, BASE + size };
	struct fathom_script_frames frames = { 0 };
	const char *lock;
	int32_t owner;

	if (!p || !size) {
		free(p);
		return 0;
	}
	p->runtime = BASE;
	p->code_type = BASE + CODE_TYPE;
	p->text_type = BASE + TEXT_TYPE;
	p->bytes_type = BASE + BYTES_TYPE;
	if (fathom_python_find_offsets(&f, 0x030b02f0 + (uint32_t)(data[0] % 4) * 0x10000)) {
		if (!fathom_python.read(&f, 1, stack, &frames))
			use_frames(&f, &frames);
		if (fathom_python.lock(&f, BASE + 0x200, &lock, &owner))
			fuzz_use((uint64_t)owner);
	}
	fathom_array_free(&frames);
	fathom_python.forget(&f);
	return 0;
}
