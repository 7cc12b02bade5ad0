/* SPDX-License-Identifier: MIT */
#include "host/trace/hook_image.h"

#include <string.h>

#include "trace/copied.h"

/* The image, as tools/runtime_image has made it. */
extern const uint8_t fathom_trace_image[];
extern const uint8_t fathom_trace_image_end[];

/* What it begins with: offsets in it (src/trace/image.S). */
struct image_table {
	uint32_t hooks[7]; /* for each clock, as at an entry and behind a prologue; their end */
	uint32_t slow_entry;
	uint32_t loaded_entry;
	uint32_t loaded_stub;
	uint32_t loaded_stub_end;
	uint32_t reserved;
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

static void put_words(const struct fathom_hook_words *w, uint64_t fn, uint8_t *to)
{
	const uint64_t words[FATHOM_TRACE_WORDS / sizeof(uint64_t)] = { w->process, fn, w->base };

	memcpy(to, words, sizeof words);
}

void fathom_image_hook(enum fathom_trace_clock clock, const struct fathom_hook_words *words,
		       uint8_t to[FATHOM_HOOK_SLOT], uint32_t *ret_entry,
		       uint32_t *ret_behind_prologue)
{
	const struct image_table t = table();
	const uint32_t *hook = t.hooks + 2 * (size_t)clock;
	const uint64_t slow = words->image + t.slow_entry;

	/* The words before each belong to it. */
	memcpy(to, fathom_trace_image + hook[0] - FATHOM_TRACE_WORDS, hook[2] - hook[0]);
	*ret_entry = FATHOM_TRACE_WORDS;
	*ret_behind_prologue = FATHOM_TRACE_WORDS + hook[1] - hook[0];
	put_words(words, slow, to);
	put_words(words, slow, to + *ret_behind_prologue - FATHOM_TRACE_WORDS);
}

uint32_t fathom_image_loaded(const struct fathom_hook_words *words, uint8_t to[FATHOM_HOOK_SLOT])
{
	const struct image_table t = table();

	memcpy(to, fathom_trace_image + t.loaded_stub - FATHOM_TRACE_WORDS,
	       t.loaded_stub_end - t.loaded_stub + FATHOM_TRACE_WORDS);
	put_words(words, words->image + t.loaded_entry, to);
	return FATHOM_TRACE_WORDS;
}
