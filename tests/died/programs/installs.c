/* SPDX-License-Identifier: MIT */
/* Installs the crash handler in the program that it is linked into, before main() runs. */
#include <fathom/crash.h>

__attribute__((constructor)) static void install(void)
{
	const struct fathom_crash_options o = { .size = sizeof o, .flags = FATHOM_CRASH_NAMES_ONLY };

	if (fathom_crash_install(NULL, &o, NULL))
		__builtin_trap();
}
