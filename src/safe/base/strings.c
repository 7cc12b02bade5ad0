/* SPDX-License-Identifier: MIT */
/* The names of sources and reasons, and the version: static texts, usable anywhere. */
#include "fathom/answer.h"
#include "fathom/version.h"
#include "safe/base/pc.h"

#define TEXT(x)                      #x
#define VERSION(major, minor, patch) TEXT(major) "." TEXT(minor) "." TEXT(patch)

const char *fathom_version(void)
{
	return VERSION(FATHOM_VERSION_MAJOR, FATHOM_VERSION_MINOR, FATHOM_VERSION_PATCH);
}

const char *fathom_source_name(enum fathom_source source)
{
	static const char *const names[] = { "",         "symtab",   "dynsym",  "minidebuginfo",
					     "dwarf",    "fde",      "plt",     "vdso",
					     "kallsyms", "perf-map", "jitdump", "gdb-jit" };

	return (size_t)source < sizeof names / sizeof *names ? names[source] : "";
}

uint64_t fathom_pc_lookup(struct fathom_pc pc)
{
	return fathom_pc_subtract(pc.address, pc.kind);
}

const char *fathom_reason_name(enum fathom_reason reason)
{
	static const char *const names[] = {
		"",
		"unmapped",
		"build-id-mismatch",
		"no-symbols",
		"no-debug-info",
		"no-such-symbol",
		"bad-address",
		"timeout",
		"unsupported",
		"corrupt",
		"limit",
		"no-file",
		"no-permission",
		"changed",
		"not-prepared",
	};

	return (size_t)reason < sizeof names / sizeof *names ? names[reason] : "";
}
