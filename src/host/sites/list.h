/* SPDX-License-Identifier: MIT */
/* The sites of some modules of a target. */
#ifndef FATHOM_SITES_LIST_H
#define FATHOM_SITES_LIST_H

#include "fathom/trace.h"
#include "host/file/file.h"
#include "host/module/place.h"
#include "host/sites/sites.h"

/* Returns whether the sites of @m are wanted. */
typedef bool (*fathom_wants_module_fn)(void *data, const struct fathom_module_at *m);

struct fathom_sites_of_file {
	struct fathom_file_id file;
	struct fathom_module_sites sites;
};

/* The sites of files, which many processes may have. All zero, it is empty. */
struct fathom_sites_memo {
	FATHOM_ARRAY_OF(struct fathom_sites_of_file);
};

void fathom_sites_memo_deinit(struct fathom_sites_memo *memo);

/* Selects whether slots of calls are listed, too. */
enum fathom_lists_slots {
	FATHOM_LISTS_NO_SLOTS,
	FATHOM_LISTS_SLOTS,
	FATHOM_LISTS_SLOTS_WITHOUT_SITES /* if the first module has no sites */
};

/* Which modules' sites are listed, and how. */
struct fathom_sites_choice {
	fathom_wants_module_fn wants;   /* NULL: all modules */
	void *data;                     /* for wants */
	struct fathom_sites_memo *memo; /* to be used, and added to; NULL: none */
	bool with_rules;                /* unwind rules of modules with sites, too, in the memo */
	bool with_lines;                /* answers have lines, too */
	enum fathom_lists_slots slots;
};

/* fathom_trace_sites() of the modules that are chosen. */
fathom_err fathom_sites_list(struct fathom_target *target,
			     const struct fathom_sites_options *options,
			     const struct fathom_sites_choice *choice,
			     struct fathom_sites **ret_sites, struct fathom_errinfo *reterr);

/* Returns the unwind rules of module @i, which belong to the memo; NULL: they were not wanted. */
const struct fathom_unwind_table *fathom_sites_rules(const struct fathom_sites *sites, size_t i);

#endif
