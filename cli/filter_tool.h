/* SPDX-License-Identifier: MIT */
/* Lines of a log as the tool of their format prints them: fathom filter --style=tool. */
#ifndef FATHOM_CLI_FILTER_TOOL_H
#define FATHOM_CLI_FILTER_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <fathom/filter.h>

#include "cli/out.h"

/* The state after the lines before. All zero, there were none. */
struct tool_style {
	uint64_t frame; /* the number of the next frame of a stack */
};

/* Returns whether there is a tool for the lines of @format. */
bool tool_style_has(const char *format);

/*
 * Writes the line of the @n addresses from @first on, without its line break. @text is what the
 * addresses point into.
 */
void tool_style_print(struct tool_style *s, struct out *o, const char *text,
		      const struct fathom_log_addresses *addresses, size_t first, size_t n);

#endif
