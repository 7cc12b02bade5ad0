/* SPDX-License-Identifier: MIT */
/* Functions without a symbol, of which the debug information has inlined copies. */
#include "cli/inlined.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/common.h"
#include "cli/json.h"

/* Copies that a message names. */
#define NAMED_COPIES 4

struct fathom_matches *inlined_find(struct fathom_target *target, uint32_t flags,
				    const char *const *names, size_t n)
{
	const struct fathom_find_options o = { .size = sizeof o,
					       .flags = flags | FATHOM_FIND_INLINED };
	struct fathom_matches *matches;

	return fathom_find(target, &o, names, n, &matches, NULL) ? NULL : matches;
}

static void write_copy(FILE *to, const struct fathom_match *m)
{
	const struct fathom_frame *call = m->frame ? m->frame->outer : NULL;

	if (m->flags & FATHOM_MATCH_ADDRESS)
		(void)fprintf(to, "0x%llx", (unsigned long long)m->address);
	if (call && call->function)
		(void)fprintf(to, " in %s", call->function);
	if (call && call->file)
		(void)fprintf(to, " %s:%u", call->file, call->line);
}

/* Finds the copies of @name, which no symbol has; NULL if there is none. */
static struct fathom_matches *copies_of(struct fathom_target *target, const char *name)
{
	struct fathom_matches *matches = inlined_find(target, FATHOM_FIND_LITERAL, &name, 1);

	if (matches && fathom_matches_count(matches) &&
	    fathom_matches_get(matches, 0)->kind == FATHOM_MATCH_INLINED)
		return matches;
	fathom_matches_free(matches);
	return NULL;
}

static void write_json(struct out *o, const struct fathom_match *m)
{
	const struct fathom_frame *call = m->frame ? m->frame->outer : NULL;

	out_char(o, '{');
	json_address_or_null(o, "address", m->flags & FATHOM_MATCH_ADDRESS, m->address);
	out_char(o, ',');
	json_string(o, "inlined_into", call ? call->function : NULL);
	out_char(o, ',');
	json_string(o, "file", call ? call->file : NULL);
	out_char(o, ',');
	json_count(o, "line", call ? call->line : 0);
	out_char(o, '}');
}

void inlined_json(struct out *o, struct fathom_target *target, const char *name)
{
	struct fathom_matches *matches = copies_of(target, name);

	if (!matches)
		return;
	out_str(o, ",\"inlined_copies\":[");
	for (size_t i = 0; i < fathom_matches_count(matches); i++) {
		if (i)
			out_char(o, ',');
		write_json(o, fathom_matches_get(matches, i));
	}
	out_char(o, ']');
	fathom_matches_free(matches);
}

bool inlined_complain(struct fathom_target *target, const char *name)
{
	struct fathom_matches *matches = copies_of(target, name);
	const size_t n = matches ? fathom_matches_count(matches) : 0;
	char *why = NULL;
	size_t size;
	FILE *to = matches ? open_memstream(&why, &size) : NULL;

	if (to) {
		(void)fprintf(to, "it is only inlined: ");
		for (size_t i = 0; i < n && i < NAMED_COPIES; i++) {
			(void)fputs(i ? ", " : "", to);
			write_copy(to, fathom_matches_get(matches, i));
		}
		if (n > NAMED_COPIES)
			(void)fprintf(to, " and %zu more", n - NAMED_COPIES);
		if (!fclose(to))
			complain(name, why, n > NAMED_COPIES ? "fathom find has all" : NULL);
	}
	free(why);
	fathom_matches_free(matches);
	return n != 0;
}
