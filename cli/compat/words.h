/* SPDX-License-Identifier: MIT */
/* Words of a command line that come from a file: "@FILE" stands for what is written there. */
#ifndef FATHOM_CLI_COMPAT_WORDS_H
#define FATHOM_CLI_COMPAT_WORDS_H

#include <stddef.h>

struct words {
	char **word; /* each, and the array, to be freed with free() */
	size_t n;
	size_t cap;
};

/* Adds a copy of the @size bytes at @text; exits without memory. */
void words_add(struct words *w, const char *text, size_t size);
void words_deinit(struct words *w);

/*
 * Adds the words of @text, as GNU programs split such files: blanks part words, quotes of both
 * kinds join what is between them, a backslash takes the next character as it is, everywhere.
 */
void words_split(struct words *w, const char *text);

/*
 * Puts in the place of each argument "@FILE" what is written in FILE, where such words may stand
 * again. A file that cannot be read leaves its argument as it is. Exits with status 1 after 2,000
 * files, and when FILE is a directory. The words are followed by NULL, as in argv.
 */
void words_expand(struct words *w, int argc, char **argv);

#endif
