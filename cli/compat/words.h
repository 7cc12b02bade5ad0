/* SPDX-License-Identifier: MIT */
/* Response files: "@FILE" on a command line stands for the words in FILE. */
#ifndef FATHOM_CLI_COMPAT_WORDS_H
#define FATHOM_CLI_COMPAT_WORDS_H

#include <stddef.h>

struct words {
	char **word; /* free() each word and the array */
	size_t n;
	size_t cap;
};

/* Adds a copy of the @size bytes at @text; exits if memory is short. */
void words_add(struct words *w, const char *text, size_t size);
void words_deinit(struct words *w);

/*
 * Adds the words of @text, split as GNU programs do: blanks separate words, both kinds of quotes
 * join their contents, and a backslash escapes the next character everywhere.
 */
void words_split(struct words *w, const char *text);

/*
 * Replaces each argument "@FILE" by the words in FILE, recursively. Keeps the argument if FILE
 * cannot be read. Exits with status 1 after 2,000 files, or if FILE is a directory. NULL follows
 * the words, as in argv.
 */
void words_expand(struct words *w, int argc, char **argv);

#endif
