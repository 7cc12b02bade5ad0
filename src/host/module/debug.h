/* SPDX-License-Identifier: MIT */
/*
 * The debug information of a module, ready to be read: views of the sections of its file and of its
 * supplementary file, and the split files opened so far.
 */
#ifndef FATHOM_MODULE_DEBUG_H
#define FATHOM_MODULE_DEBUG_H

#include "host/base/context.h"
#include "host/base/notes.h"
#include "host/file/object.h"
#include "host/module/units.h"
#include "safe/dwarf/unit.h"

struct fathom_module;
struct fathom_variables;

/* A .dwo or .dwp file, kept open until the module is closed. */
struct fathom_split_file {
	struct fathom_split_file *next; /* in its bucket */
	struct fathom_object *object;   /* NULL if the file is missing, which is remembered, too */
	struct fathom_dwarf view;
	char *path;
};

/* A large program has some ten thousand .dwo files. */
#define FATHOM_SPLIT_BUCKETS 1024

struct fathom_debug {
	struct fathom_debug *next; /* in the session's list */
	struct fathom_module *module;
	struct fathom_object *object; /* borrowed from the module, or made */
	struct fathom_object *made;   /* of Go's own table; owned, or NULL */
	struct fathom_object *sup;    /* owned; NULL without one */
	bool lacks_sup;               /* the supplementary file that it names was not found */
	struct fathom_dwarf view;
	struct fathom_dwarf sup_view;
	struct fathom_units units;                                        /* of view */
	struct fathom_units sup_units;                                    /* of sup_view */
	_Atomic(struct fathom_variables *) variables;                     /* made on first use */
	_Atomic(struct fathom_split_file *) splits[FATHOM_SPLIT_BUCKETS]; /* by path */
};

/*
 * Loads the sections called ".debug_NAME" + @suffix (also ".zdebug_NAME") of @o into @ret,
 * decompressing on the session's threads. Leaves sections that cannot be read empty, and notes
 * them. Returns the first error of a section that the others are of no use without.
 */
fathom_err fathom_dwarf_load(struct fathom *session, struct fathom_object *o, const char *suffix,
			     struct fathom_notes *notes, struct fathom_dwarf *ret);

/* Opens the debug information of @module, or returns why it cannot be read. */
fathom_err fathom_debug_create(struct fathom_module *module, struct fathom_debug **ret);
/* Returns the supplementary or split file that was cut (mapped.h), or NULL. */
const struct fathom_file *fathom_debug_cut_file(const struct fathom_debug *d);
void fathom_debug_destroy(struct fathom_debug *d);

#endif
