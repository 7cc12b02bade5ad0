/* SPDX-License-Identifier: MIT */
/* Text in the cells of a terminal. */
#ifndef FATHOM_CLI_TOP_CELLS_H
#define FATHOM_CLI_TOP_CELLS_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/out.h"

/*
 * Appends untrusted text to @o, which is kept, in at most @cells cells, escaped as out_text() does
 * it. Of a longer one the last cell is "~". Characters that the terminal's character set lacks, or
 * that have no cells of their own, are "?". Returns how many cells it takes.
 */
size_t top_cells_put(struct out *o, const char *text, size_t cells, bool is_utf8);

/* Returns whether the locale's character set is UTF-8, once setlocale() was called. */
bool top_cells_is_utf8(void);

#endif
