/* SPDX-License-Identifier: MIT */
#include "host/publish/switches.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const struct {
	const char *word;
	uint32_t consumers;
} words[] = {
	{ "gdb", FATHOM_JIT_GDB },
	{ "libgcc", FATHOM_JIT_LIBGCC },
	{ "llvm", FATHOM_JIT_LLVM },
	{ "nongnu", FATHOM_JIT_NONGNU },
	{ "unwinders", FATHOM_JIT_UNWINDERS },
	{ "registry", FATHOM_JIT_REGISTRY },
	{ "perf-map", FATHOM_JIT_PERF_MAP },
	{ "jitdump", FATHOM_JIT_JITDUMP },
	{ "files", FATHOM_JIT_FILES },
	{ "all", FATHOM_JIT_ALL },
};

static uint32_t consumers_of(const char *word, size_t n)
{
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strlen(words[i].word) == n && !memcmp(words[i].word, word, n))
			return words[i].consumers;
	return 0;
}

uint32_t fathom_jit_switch(uint32_t on, const char *text, struct fathom_str *ret_unknown)
{
	*ret_unknown = (struct fathom_str){ 0 };
	if (!on)
		on = FATHOM_JIT_USUAL;
	on &= ~(uint32_t)FATHOM_JIT_NOBODY;
	while (text && *text) {
		const size_t n = strcspn(text, ",");
		const bool off = *text == '-';
		const bool is_none = n == 4 && !memcmp(text, "none", 4);
		const uint32_t named = consumers_of(text + off, n - off);

		if (is_none)
			on = 0;
		else if (off)
			on &= ~named;
		else
			on |= named;
		if (n && !is_none && !named && !ret_unknown->size)
			*ret_unknown = (struct fathom_str){ text, (uint32_t)n };
		text += n + (text[n] == ',');
	}
	return on;
}
