/* SPDX-License-Identifier: MIT */
#include "cli/compat/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/characters.h"
#include "cli/common.h"

/* Limits files that include each other. */
#define MAX_FILES 2000

static void reserve(struct words *w, size_t more)
{
	if (w->cap - w->n >= more)
		return;
	w->cap = 2 * w->cap + more;
	w->word = must(realloc(w->word, w->cap * sizeof *w->word));
}

void words_add(struct words *w, const char *text, size_t size)
{
	reserve(w, 1);
	w->word[w->n++] = must(strndup(text, size));
}

void words_deinit(struct words *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->word[i]);
	free(w->word);
}

/* Reads one word at *@text into @word, which has room for all of it, and moves *@text after it. */
static size_t take_word(const char **text, char *word)
{
	const char *p = *text;
	char quote = '\0';
	size_t n = 0;

	for (; *p && (quote || !is_space(*p)); p++) {
		if (*p == '\\') {
			if (p[1])
				word[n++] = *++p;
		} else if (quote ? *p == quote : (*p == '"' || *p == '\'')) {
			quote = quote ? '\0' : *p;
		} else {
			word[n++] = *p;
		}
	}
	*text = p;
	return n;
}

void words_split(struct words *w, const char *text)
{
	char *word = must(malloc(strlen(text) + 1));

	for (;;) {
		while (is_space(*text))
			text++;
		if (!*text)
			break;
		words_add(w, word, take_word(&text, word));
	}
	free(word);
}

/* Returns all of the file as text, to be freed with free(); NULL if it cannot be read. */
static char *read_file(const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t size = 0;

	if (!file)
		return NULL;
	if (getdelim(&text, &size, '\0', file) < 0) {
		free(text);
		text = ferror(file) ? NULL : calloc(1, 1);
	}
	(void)fclose(file);
	return text;
}

/* Reads the words of the file that @argument names; returns false if there is no readable file. */
static bool read_words(const char *program, const char *argument, struct words *ret)
{
	struct stat st;
	char *text;

	if (argument[0] != '@' || stat(argument + 1, &st) != 0)
		return false;
	if (S_ISDIR(st.st_mode)) {
		fprintf(stderr, "%s: error: @-file refers to a directory\n", program);
		exit(1);
	}
	text = read_file(argument + 1);
	if (!text)
		return false;
	words_split(ret, text);
	free(text);
	return true;
}

/* Replaces word @i of @w by the words @in. */
static void replace_word(struct words *w, size_t i, struct words *in)
{
	const size_t rest = w->n - i - 1;

	free(w->word[i]);
	reserve(w, in->n);
	memmove(w->word + i + in->n, w->word + i + 1, rest * sizeof *w->word);
	if (in->n)
		memcpy(w->word + i, in->word, in->n * sizeof *w->word);
	w->n += in->n - 1;
	free(in->word);
}

void words_expand(struct words *w, int argc, char **argv)
{
	unsigned files = 0;

	for (int i = 0; i < argc; i++)
		words_add(w, argv[i], strlen(argv[i]));
	for (size_t i = 1; i < w->n; i++) {
		struct words in = { 0 };

		if (!read_words(argv[0], w->word[i], &in))
			continue;
		if (++files >= MAX_FILES) {
			fprintf(stderr, "%s: error: too many @-files encountered\n", argv[0]);
			exit(1);
		}
		/* Look at the replacement next. */
		replace_word(w, i--, &in);
	}
	reserve(w, 1);
	w->word[w->n] = NULL;
}
