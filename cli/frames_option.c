/* SPDX-License-Identifier: MIT */
#include "cli/frames_option.h"

#include <stdlib.h>
#include <string.h>

#include "cli/common.h"

enum frames_option parse_frames(const char *text)
{
	static const char *const names[] = { [FRAMES_MERGED] = "merged",
					     [FRAMES_SCRIPT] = "script",
					     [FRAMES_NATIVE] = "native",
					     [FRAMES_ALL] = "all" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(text, names[i]) == 0)
			return (enum frames_option)i;
	complain(text, "not a kind of frames", "--frames takes merged, script, native or all");
	exit(EXIT_USAGE);
}
