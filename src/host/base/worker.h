/* SPDX-License-Identifier: MIT */
/*
 * The scratch memory of one thread that decodes: compiled abbreviations of the units it met last,
 * and arrays that keep their size from one unit to the next. Taken from the session for one batch
 * and given back; never shared while in use.
 */
#ifndef FATHOM_BASE_WORKER_H
#define FATHOM_BASE_WORKER_H

#include "host/base/context.h"
#include "safe/dwarf/line.h"
#include "safe/dwarf/unit.h"

#define FATHOM_ABBREV_SLOTS 32

/* One compiled table. A unit that is being read pins it. */
struct fathom_abbrev_slot {
	struct fathom_abbrevs table;
	uint64_t serial; /* of the view; 0: the slot is empty, or holds a part of a table */
	uint64_t used;   /* when, for replacing the one used longest ago */
	uint32_t pins;
};

struct fathom_worker {
	struct fathom *session;
	struct fathom_abbrev_slot slot[FATHOM_ABBREV_SLOTS];
	uint64_t clock;

	/* of lines.c */
	struct fathom_line_reader line_reader;
	struct fathom_line_program program; /* read last */
	uint32_t files_base;                /* number of the first file and directory: 0 or 1 */
	struct fathom_array files;          /* struct fathom_line_entry */
	bool defined;                       /* those that the program defines are among them */
	struct fathom_array dirs;           /* the same */
	struct fathom_array sequences;      /* struct fathom_line_sequence: those with rows */
	bool sequences_ordered;             /* their order is set */
	struct fathom_array rows;           /* struct fathom_want_row */
	struct fathom_array row_order;      /* the same, those of each want together */

	/* of unit_data.c */
	struct fathom_array ranges; /* struct fathom_function_range */
	struct fathom_array keyed;  /* struct fathom_keyed */

	/* of origin.c */
	struct fathom_array names;      /* struct fathom_names: by where they stand */
	struct fathom_array name_table; /* uint32_t: a hash table of numbers in names, plus 1 */

	/* of decode.c */
	struct fathom_array wants;         /* struct fathom_want */
	struct fathom_array intervals;     /* struct interval */
	struct fathom_array sorted;        /* struct interval */
	struct fathom_array active;        /* struct interval */
	struct fathom_array calls;         /* struct open_call */
	struct fathom_array nodes;         /* struct fathom_block_node */
	struct fathom_array folded;        /* uint64_t: functions that may as well be the one */
	struct fathom_array out_rows;      /* struct fathom_block_row */
	struct fathom_array local_nodes;   /* uint32_t */
	struct fathom_array local_names;   /* struct local */
	struct fathom_array local_files;   /* struct local */
	struct fathom_array out_functions; /* struct fathom_block_function */
	struct fathom_array out_declared;  /* struct fathom_block_declaration, where asked for */
	struct fathom_array out_files;     /* uint32_t */
	struct fathom_array pool;          /* char */
	uint32_t stamp;                    /* of the block being built, in struct local */
};

/* An idle worker of the session, or a new one; NULL without memory. */
struct fathom_worker *fathom_worker_acquire(struct fathom *session);
void fathom_worker_release(struct fathom_worker *w);
void fathom_worker_destroy(struct fathom_worker *w);

/*
 * Opens the unit at @off of @dwarf: header, abbreviations, root. Its abbreviations stay valid until
 * fathom_worker_close_unit().
 */
fathom_err fathom_worker_open_unit(struct fathom_worker *w, const struct fathom_dwarf *dwarf,
				   uint64_t off, struct fathom_unit *ret_unit,
				   struct fathom_die *ret_root, struct fathom_errinfo *reterr);
/* The same for whoever wants the root only: no other entry can be read then. */
fathom_err fathom_worker_open_root(struct fathom_worker *w, const struct fathom_dwarf *dwarf,
				   uint64_t off, struct fathom_unit *ret_unit,
				   struct fathom_die *ret_root, struct fathom_errinfo *reterr);
void fathom_worker_close_unit(struct fathom_worker *w, const struct fathom_unit *unit);

#endif
