/* SPDX-License-Identifier: MIT */
/* The rest of a line of a log, from which formats take what they know. */
#ifndef FATHOM_FILTER_LINE_H
#define FATHOM_FILTER_LINE_H

#include "safe/base/hex.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct fathom_log_line {
	const char *at;
	const char *end;
};

static inline size_t fathom_line_left(const struct fathom_log_line *l)
{
	return (size_t)(l->end - l->at);
}

/* Takes @word if the line goes on with it. */
static inline bool fathom_line_take(struct fathom_log_line *l, const char *word)
{
	const size_t n = strlen(word);

	if (fathom_line_left(l) < n || memcmp(l->at, word, n) != 0)
		return false;
	l->at += n;
	return true;
}

static inline void fathom_line_skip_blanks(struct fathom_log_line *l)
{
	while (l->at < l->end && (*l->at == ' ' || *l->at == '\t'))
		l->at++;
}

/* Returns whether a word begins at @at of the line from @start: also after a terminal's colour. */
bool fathom_line_is_word(const char *start, const char *at);

/* Takes a hexadecimal number without 0x, of up to 16 digits; one with more is not taken. */
bool fathom_line_take_hex(struct fathom_log_line *l, uint64_t *ret);

/* Takes 0x and such a number. */
bool fathom_line_take_0x(struct fathom_log_line *l, uint64_t *ret);

/* Takes a decimal number of up to 9 digits. */
bool fathom_line_take_decimal(struct fathom_log_line *l, uint32_t *ret);

/* Goes to the first, or the last, @word; returns false, and stays, if there is none. */
bool fathom_line_find(struct fathom_log_line *l, const char *word);
bool fathom_line_find_last(struct fathom_log_line *l, const char *word);

/*
 * Returns a number for the process that the line [@from, @to) names in its prefix, by "==PID==" or
 * "NAME[PID]:"; 0: it names none.
 */
uint64_t fathom_line_process(const char *from, const char *to);

#endif
