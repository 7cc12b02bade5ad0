/* SPDX-License-Identifier: MIT */
#include "demangle.h"

/* What gcc and clang append to the names of the copies and parts they make of a function. */
static const char *const suffixes[] = {
	".cold",   ".part.",   ".constprop.", ".isra.",        ".localalias", ".lto_priv",
	".llvm.",  ".hot",     ".unlikely",   ".startup",      ".exit",       ".resolver",
	".clone.", ".__uniq.", ".warm",       ".specialized.",
};

uint32_t fathom_clone_suffix(struct fathom_str name)
{
	for (uint32_t i = 1; i < name.size; i++) {
		const struct fathom_str rest = { name.data + i, name.size - i };

		if (name.data[i] != '.')
			continue;
		for (size_t s = 0; s < sizeof suffixes / sizeof *suffixes; s++)
			if (str_starts(rest, suffixes[s]))
				return i;
	}
	return name.size;
}
