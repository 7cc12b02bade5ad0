/* SPDX-License-Identifier: MIT */
/*
 * The text that glibc wrote before it called abort().
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_CRASH_ABORT_TEXT_H
#define FATHOM_CRASH_ABORT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longest text of a report, with its NUL. */
#define FATHOM_CRASH_TEXT 2048

/*
 * Reads the text to which the pointer at @avma leads, glibc's __abort_msg, without its last
 * newline. Returns false if there is none.
 */
bool fathom_abort_text_read(uint64_t avma, char to[FATHOM_CRASH_TEXT], size_t *ret_size,
			    bool *ret_cut);

#endif
