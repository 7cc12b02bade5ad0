/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "fathom/source.h"

void fathom_source_lines_begin(const char *text, size_t size, uint64_t line, uint64_t n,
			       struct fathom_source_lines *ret_lines)
{
	const uint64_t first = line > n / 2 + 1 ? line - n / 2 : 1;

	*ret_lines = (struct fathom_source_lines){
		.first = first, .last = first + n - 1, .next = text, .end = text + size
	};
}

/* Steps to the next line of the text, whether it is to be shown or not. */
static void step(struct fathom_source_lines *l)
{
	const char *newline = memchr(l->next, '\n', (size_t)(l->end - l->next));
	const char *stop = newline ? newline : l->end;

	l->line = l->next;
	l->size = (size_t)(stop - l->next);
	if (l->size && stop[-1] == '\r')
		l->size--;
	l->number++;
	l->next = newline ? newline + 1 : l->end;
}

int fathom_source_lines_next(struct fathom_source_lines *l)
{
	while (l->number < l->last && l->next < l->end) {
		step(l);
		if (l->number >= l->first)
			return 1;
	}
	return 0;
}
