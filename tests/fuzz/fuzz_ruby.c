/* SPDX-License-Identifier: MIT */
/*
 * A Ruby whose structures are any bytes: byte 0 chooses the version, the rest is its memory from
 * BASE on. Without a module, all tags are of loops.
 */
#include "fuzz.h"

#include <stdlib.h>

#include "host/interpreters/ruby.h"

#define BASE UINT64_C(0x10000)

/* Bytes before rb_cThread and the array of names, as tests/fuzz/seeds.py lays them out. */
enum { THREAD_CLASS = 0x1000, NAMES = 0x1800 };

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

		fuzz_use(frames->items[i].anchor);
		if (!fathom_ruby.name(f, &frames->items[i], &arena, &name)) {
			use_str(name.function);
			use_str(name.file);
			fuzz_use(name.line);
		}
		fathom_arena_deinit(&arena);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t versions[][2] = { { 2, 7 }, { 3, 0 }, { 3, 1 },
					       { 3, 2 }, { 3, 3 }, { 3, 4 } };
	struct memory memory = { data + 1, size ? size - 1 : 0 };
	const struct fathom_reader reader = { .read = read_memory, .data = &memory };
	struct fathom_ruby *r = calloc(1, sizeof *r);
	struct fathom_runtime_found f = { .memory = &reader, .own = r };
	const struct fathom_script_stack stack = { BASE, BASE + size };
	struct fathom_script_frames frames = { 0 };
	const uint8_t *version;

	if (!r || !size) {
		free(r);
		return 0;
	}
	version = versions[data[0] % (sizeof versions / sizeof *versions)];
	r->thread_class = BASE + THREAD_CLASS;
	r->names = BASE + NAMES;
	r->has_looked = true;
	fathom_ruby_find_offsets(&f, version[0], version[1]);
	if (!f.why && !fathom_ruby.read(&f, 1, stack, &frames))
		use_frames(&f, &frames);
	fathom_array_free(&frames);
	fathom_ruby.forget(&f);
	return 0;
}
