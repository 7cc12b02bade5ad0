/* SPDX-License-Identifier: MIT */
/* For what functions are chosen by queries: the same for a run and for the reading of a file. */
#ifndef FATHOM_EVENTS_CHOICES_H
#define FATHOM_EVENTS_CHOICES_H

#include "fathom/trace.h"
#include "host/base/array.h"

/* All flags that this version knows. */
#define FATHOM_TRACE_FLAGS                                                                         \
	(FATHOM_TRACE_LOSSY | FATHOM_TRACE_NO_CHILDREN | FATHOM_TRACE_EXITS |                      \
	 FATHOM_TRACE_NO_FOLD | FATHOM_TRACE_LATEST | FATHOM_TRACE_CALLS | FATHOM_TRACE_NO_CALLS | \
	 FATHOM_TRACE_HOLD_ENDS | FATHOM_TRACE_SCOPES | FATHOM_TRACE_NO_WAIT)

enum fathom_choice {
	FATHOM_CHOICE_ONLY,
	FATHOM_CHOICE_EXCEPT,
	FATHOM_CHOICE_UNDER,
	FATHOM_CHOICE_AT /* the first of one for each action, in their bits' order */
};

#define FATHOM_TRACE_ACTIONS 4
#define FATHOM_CHOICES       (FATHOM_CHOICE_AT + FATHOM_TRACE_ACTIONS)

/* The queries of each choice. */
struct fathom_choices {
	struct {
		FATHOM_ARRAY_OF(const char *);
	} queries[FATHOM_CHOICES];
};

/* Collects the queries of @options, which must outlive it. False without memory. */
bool fathom_choices_init(struct fathom_choices *c, const struct fathom_trace_options *options);
void fathom_choices_deinit(struct fathom_choices *c);

/* Tells whether a function, known to @data, is selected by the queries of choice @i. */
typedef bool (*fathom_choice_fn)(void *data, size_t i);

/* Returns whether the function is to be reported. */
bool fathom_choices_want(const struct fathom_choices *c, fathom_choice_fn has, void *data);
/* Returns for what else the function is chosen: FATHOM_TRACE_AT_, FATHOM_SELECT_UNDER. */
uint8_t fathom_choices_selection(const struct fathom_choices *c, fathom_choice_fn has, void *data);

#endif
