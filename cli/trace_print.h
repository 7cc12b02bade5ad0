/* SPDX-License-Identifier: MIT */
/* Sites as text for people, and as JSON Lines. */
#ifndef FATHOM_CLI_TRACE_PRINT_H
#define FATHOM_CLI_TRACE_PRINT_H

#include <fathom/fathom.h>

#include "cli/out.h"

/* The sites that were printed. */
struct trace_summary {
	size_t count;
	size_t n_kind[FATHOM_SITE_KINDS];
	bool has_slots; /* those of calls were printed, too */
};

/* Print one site; @query: that it answers, or NULL. */
void trace_print_text(struct out *o, const struct fathom_sites *sites, const struct fathom_site *s);
void trace_print_json(struct out *o, const char *query, const struct fathom_sites *sites,
		      const struct fathom_site *s);

/* Print a slot of calls. */
void trace_print_slot(struct out *o, const struct fathom_sites *sites,
		      const struct fathom_call_slot *s);
void trace_print_slot_json(struct out *o, const struct fathom_sites *sites,
			   const struct fathom_call_slot *s);

/* Print why @query has no site. */
void trace_print_missing(struct out *o, const char *query, const char *reason);
void trace_print_missing_json(struct out *o, const char *query, const char *reason);

/*
 * Prints how many sites of each kind were printed, how many records are not believed, and which
 * modules have none.
 */
void trace_print_summary(struct out *o, const struct fathom_sites *sites,
			 const struct trace_summary *summary);

/* Prints a line for each module. */
void trace_print_modules_json(struct out *o, const struct fathom_sites *sites);

#endif
