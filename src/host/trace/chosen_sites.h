/* SPDX-License-Identifier: MIT */
/* Which sites a run records, and what their numbers stand for: whoever changes the text. */
#ifndef FATHOM_TRACE_CHOSEN_SITES_H
#define FATHOM_TRACE_CHOSEN_SITES_H

#include "fathom/trace.h"
#include "host/events/named_choices.h"
#include "host/sites/list.h"
#include "host/trace/patch.h"
#include "host/trace/select.h"
#include "host/trace/site_ranges.h"
#include "host/trace/injected_code.h"

struct fathom_syscall_rewriter;

/* Refusals of struct fathom_trace_result. */
#define FATHOM_LOADER_REFUSALS 8

/* The loader of all processes of a run. Its caller sees that one thread uses it. */
struct fathom_loader {
	struct fathom *session;
	const struct fathom_trace_options *options;
	struct fathom_choices choices;
	struct fathom_selection chosen[FATHOM_CHOICES];
	struct fathom_named_choices named;
	struct fathom_sites_memo memo;
	struct fathom_syscall_rewriter *rewriter; /* of system calls; NULL: none are rewritten */
	struct fathom_self_trace_link insider;
	/* Takes over @span, whose numbers the program may record from now on. */
	void (*loaded)(void *data, struct fathom_site_range *span);
	void *data;
	uint64_t next; /* number of a site that is free */
	uint32_t n_functions;
	uint64_t n_sites;
	uint64_t n_returns;    /* of these */
	uint64_t n_unrecorded; /* programs */
	uint64_t n_calls;      /* of libraries, that are recorded */
	uint64_t n_refused[FATHOM_LOADER_REFUSALS];
};

/* Makes @l, all of whose other members are zero. FATHOM_E_MEMORY; what the choices are wrong in. */
fathom_err fathom_loader_init(struct fathom_loader *l, struct fathom *session,
			      const struct fathom_trace_options *options,
			      struct fathom_errinfo *reterr);
void fathom_loader_deinit(struct fathom_loader *l);

/*
 * Lists the sites in @target that @choice wants, which gets the loader's memo, and finds what is
 * chosen. Fails as fathom_find() and fathom_trace_sites() do.
 */
fathom_err fathom_loader_list(struct fathom_loader *l, struct fathom_target *target,
			      struct fathom_sites_choice *choice, struct fathom_sites **ret,
			      struct fathom_errinfo *reterr);

/* Returns whether @s is to be recorded. */
bool fathom_loader_wants(struct fathom_loader *l, const struct fathom_site *s);

/* Counts a site that cannot be. */
void fathom_loader_refuse(struct fathom_loader *l, enum fathom_patch_refusal why);

/*
 * Adds @site, of which number and what its record has are known, to @span, as that of @s in @m.
 * FATHOM_E_MEMORY.
 */
fathom_err fathom_loader_add(struct fathom_loader *l, struct fathom_site_range *span,
			     const struct fathom_site_module *m, const struct fathom_site *s,
			     struct fathom_site_range_site *site);

/*
 * Adds where the functions of @m, which has sites, are to @span. @above: words from where the stack
 * pointer is recorded to the CFA.
 */
bool fathom_loader_add_code(const struct fathom_sites *sites, const struct fathom_site_module *m,
			    uint32_t above, struct fathom_site_range *span);

#endif
