/* SPDX-License-Identifier: MIT */
/*
 * A worker is what one thread decodes with: the compiled abbreviations of the units it read last,
 * and the scratch memory of each step, which that step declares and which keeps its size from one
 * unit to the next. A thread takes a worker from the session for one batch and gives it back.
 */
#ifndef FATHOM_MODULE_WORKER_H
#define FATHOM_MODULE_WORKER_H

#include "host/base/context.h"
#include "host/base/progress.h"
#include "host/module/decode.h"
#include "host/module/lines.h"
#include "host/module/origin.h"
#include "host/module/unit_data.h"
#include "safe/dwarf/unit.h"

#define FATHOM_ABBREV_SLOTS 32

/* One compiled table. A unit that is being read pins it. */
struct fathom_abbrev_slot {
	struct fathom_abbrevs table;
	uint64_t serial; /* of the view; 0: the slot is empty, or holds a part of a table */
	uint64_t used;   /* time of use: the least recently used one is replaced */
	uint32_t pins;
};

struct fathom_worker {
	struct fathom *session;
	struct fathom_abbrev_slot slot[FATHOM_ABBREV_SLOTS];
	uint64_t clock;
	struct fathom_pace pace;   /* of loops over entries and rows */
	struct fathom_wants wants; /* what fathom_decode() makes blocks of */
	struct fathom_lines lines;
	struct fathom_function_scratch functions;
	struct fathom_origins origins;
	struct fathom_block_scratch blocks;
	struct fathom_bytes_array pool; /* the strings of a block, or a path */
};

/* Returns an idle worker of the session, or a new one; NULL if out of memory. */
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
/* Does the same for the root only: no other entry can be read then. */
fathom_err fathom_worker_open_root(struct fathom_worker *w, const struct fathom_dwarf *dwarf,
				   uint64_t off, struct fathom_unit *ret_unit,
				   struct fathom_die *ret_root, struct fathom_errinfo *reterr);
void fathom_worker_close_unit(struct fathom_worker *w, const struct fathom_unit *unit);

#endif
