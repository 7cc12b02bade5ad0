/* SPDX-License-Identifier: MIT */
#include "host/trace/hook_image.h"

#include <string.h>

#include "safe/dwarf/cfi.h"
#include "trace/copied.h"

/* The image, as tools/runtime_image has made it. */
extern const uint8_t fathom_trace_image[];
extern const uint8_t fathom_trace_image_end[];

/* The table at its start: offsets in it (src/trace/image.S). */
struct image_table {
	uint32_t hooks[3 * FATHOM_HOOK_PLACES + 1]; /* for each clock and place; their end */
	uint32_t slow_entry;
	uint32_t loaded_entry;
	uint32_t loaded_stub;
	uint32_t loaded_stub_end;
	uint32_t call_entry;
	uint32_t call_made;
	uint32_t load;
	uint32_t load_fault;
	uint32_t eh_frame;
	uint32_t eh_frame_end;
};

static struct image_table table(void)
{
	struct image_table t;

	memcpy(&t, fathom_trace_image, sizeof t);
	return t;
}

const uint8_t *fathom_image_bytes(void)
{
	return fathom_trace_image;
}

uint64_t fathom_image_size(void)
{
	return (uint64_t)(fathom_trace_image_end - fathom_trace_image);
}

struct fathom_image_calls fathom_image_calls(void)
{
	const struct image_table t = table();

	return (struct fathom_image_calls){ t.call_entry, t.call_made, t.load, t.load_fault };
}

static void put_words(const struct fathom_hook_words *w, uint64_t fn, uint8_t *to)
{
	const uint64_t words[FATHOM_TRACE_WORDS / sizeof(uint64_t)] = { w->process, fn, w->base };

	memcpy(to, words, sizeof words);
}

void fathom_image_hook(enum fathom_trace_clock clock, const struct fathom_hook_words *words,
		       uint8_t to[FATHOM_HOOK_SLOT], uint32_t ret_off[FATHOM_HOOK_PLACES])
{
	const struct image_table t = table();
	const uint32_t *hook = t.hooks + FATHOM_HOOK_PLACES * (size_t)clock;
	const uint32_t begin = hook[0] - FATHOM_TRACE_WORDS;

	/* The words before each belong to it. */
	memcpy(to, fathom_trace_image + begin, hook[FATHOM_HOOK_PLACES] - begin);
	for (size_t i = 0; i < FATHOM_HOOK_PLACES; i++) {
		ret_off[i] = hook[i] - begin;
		put_words(words, words->image + t.slow_entry, to + ret_off[i] - FATHOM_TRACE_WORDS);
	}
}

uint32_t fathom_image_loaded(const struct fathom_hook_words *words, uint8_t to[FATHOM_HOOK_SLOT])
{
	const struct image_table t = table();

	memcpy(to, fathom_trace_image + t.loaded_stub - FATHOM_TRACE_WORDS,
	       t.loaded_stub_end - t.loaded_stub + FATHOM_TRACE_WORDS);
	put_words(words, words->image + t.loaded_entry, to);
	return FATHOM_TRACE_WORDS;
}

/* Adds the function that FDE @e is of; the image is where it is in this library. */
static void add_function(struct fathom_image_functions *f, const struct fathom_cfi *cfi,
			 const struct fathom_cfi_entry *e)
{
	const uint64_t image = (uintptr_t)fathom_trace_image;
	struct fathom_image_function function = {
		.rule = { .size = sizeof function.rule,
			  .kind = FATHOM_JIT_EH_FRAME,
			  .eh_frame = cfi->section.data,
			  .eh_frame_size = (size_t)cfi->section.size },
	};
	struct fathom_cie cie;
	struct fathom_fde fde;

	if (fathom_cie_read(cfi, e->cie_off, &cie) || fathom_fde_read(e, &cie, &fde))
		return;
	function.off = fde.low - image;
	function.size = fde.high - fde.low;
	function.rule.eh_frame_code = fde.low;
	(void)fathom_array_push(f, function);
}

void fathom_image_functions_init(struct fathom_image_functions *ret)
{
	const struct image_table t = table();
	const struct fathom_cfi cfi = {
		.section = { fathom_trace_image + t.eh_frame, t.eh_frame_end - t.eh_frame },
		.svma = (uintptr_t)(fathom_trace_image + t.eh_frame),
		.address_size = sizeof(uint64_t),
		.is_eh = true,
	};
	struct fathom_cfi_reader reader;
	struct fathom_cfi_entry e;

	*ret = (struct fathom_image_functions){ 0 };
	fathom_cfi_reader_init(&reader, &cfi);
	while (fathom_cfi_next(&reader, &e, NULL) == FATHOM_OK)
		if (!e.is_cie)
			add_function(ret, &cfi, &e);
}

uint64_t fathom_image_copied(int what, uint64_t *ret_end)
{
	const struct image_table t = table();

	*ret_end = what == FATHOM_IMAGE_LOADED ? t.loaded_stub_end
					       : t.hooks[FATHOM_HOOK_PLACES * (what + 1)];
	return (what == FATHOM_IMAGE_LOADED ? t.loaded_stub : t.hooks[FATHOM_HOOK_PLACES * what]) -
	       FATHOM_TRACE_WORDS;
}
