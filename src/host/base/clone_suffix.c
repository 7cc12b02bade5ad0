/* SPDX-License-Identifier: MIT */
#include "host/base/demangle.h"

/* Suffixes that gcc and clang append to the names of copies and parts of a function. */
static const char *const suffixes[] = {
	".cold",   ".part.",   ".constprop.", ".isra.",        ".localalias", ".lto_priv",
	".llvm.",  ".hot",     ".unlikely",   ".startup",      ".exit",       ".resolver",
	".clone.", ".__uniq.", ".warm",       ".specialized.",
};

uint32_t fathom_clone_suffix(struct fathom_str name)
{
	const char *end = name.data + name.size;
	const char *at = name.size > 1 ? name.data : end;

	while (at < end && (at = memchr(at + 1, '.', (size_t)(end - at - 1))) != NULL) {
		const struct fathom_str rest = { at, (uint32_t)(end - at) };

		/* Each suffix starts with one of these. */
		if (rest.size < 2 ||
		    !((rest.data[1] >= 'a' && rest.data[1] <= 'w') || rest.data[1] == '_'))
			continue;
		for (size_t s = 0; s < sizeof suffixes / sizeof *suffixes; s++)
			if (str_starts(rest, suffixes[s]))
				return name.size - rest.size;
	}
	return name.size;
}
