/* SPDX-License-Identifier: MIT */
/*
 * The builds that a resolver knows: those whose file is open, and those whose file is missing. Each
 * kind is a list, the one used last first, and both are found by one hash table.
 *
 * Open ones are bounded by the session's budget, by what mapped files take of the process's memory,
 * and by mappings; missing ones by their number and the bytes of their names. Before a build is
 * closed, the index of what was decoded of it is stored.
 */
#ifndef FATHOM_FLEET_OPEN_BUILDS_H
#define FATHOM_FLEET_OPEN_BUILDS_H

#include <stdatomic.h>

#include "host/fleet/build_search.h"

struct fathom_open_build {
	struct fathom_build key; /* its texts stand after the struct; the module has a NUL */
	uint64_t hash;
	struct fathom_target *target; /* NULL: the file is missing */
	enum fathom_reason reason;    /* why it is */
	int64_t looked_ns;            /* when its file was looked for */
	uint64_t turn;                /* of its last use */
	uint64_t stored_ns;           /* cost of decoding that the stored index saves */
	uint64_t counted_ns;          /* cost of decoding that the counts have */
	struct fathom_open_build *next;
	struct fathom_open_build *newer;
	struct fathom_open_build *older;
};

struct fathom_build_list {
	struct fathom_open_build *newest;
	struct fathom_open_build *oldest;
	size_t n;
	size_t n_bytes; /* of all entries */
};

/* Written by the thread that has rows answered, read by any. */
struct fathom_fleet_counts {
	_Atomic uint64_t rows;
	_Atomic uint64_t equal_rows;
	_Atomic uint64_t opened;
	_Atomic uint64_t open;
	_Atomic uint64_t evicted;
	_Atomic uint64_t hits;
	_Atomic uint64_t misses;
	_Atomic uint64_t known_missing;
	_Atomic uint64_t missing;
	_Atomic uint64_t open_ns;
	_Atomic uint64_t answer_ns;
	_Atomic uint64_t store_ns;
	_Atomic uint64_t decode_ns;
	_Atomic uint64_t from_stores;
	_Atomic uint64_t put;
};

struct fathom_open_builds {
	struct fathom_build_places places;
	struct fathom_open_build **buckets;
	size_t n_buckets; /* a power of two */
	struct fathom_build_list open;
	struct fathom_build_list missing;
	uint64_t turn;             /* builds used in this turn are not closed */
	int64_t missing_ns;        /* after so long, missing files are looked for again */
	uint64_t store_ns;         /* that storing an index takes, as measured */
	uint64_t first_file_bytes; /* of mapped files, when the resolver was created */
	struct fathom_fleet_counts counts;
};

/* Sets @b up, whose places are filled in, and belong to it. FATHOM_E_MEMORY. */
fathom_err fathom_open_builds_init(struct fathom_open_builds *b, uint32_t missing_ms,
				   struct fathom_errinfo *reterr);
/* Closes all builds and stores; also after a failure, and if only a part of the places is there. */
void fathom_open_builds_deinit(struct fathom_open_builds *b);

/*
 * Finds @build if it is known, with the results of fathom_open_builds_find(); returns false if its
 * file has to be looked for.
 */
bool fathom_open_builds_look(struct fathom_open_builds *b, const struct fathom_build *build,
			     struct fathom_open_build **ret, enum fathom_reason *ret_reason);

/*
 * Finds the target of @build, opening it if need be: it belongs to @b, until the next turn. Sets
 * *@ret to NULL if its file is missing, and @ret_reason; and if there is no room before the next
 * turn, with FATHOM_REASON_NONE. FATHOM_E_CANCELLED, FATHOM_E_MEMORY.
 */
fathom_err fathom_open_builds_find(struct fathom_open_builds *b, const struct fathom_build *build,
				   struct fathom_open_build **ret, enum fathom_reason *ret_reason,
				   struct fathom_errinfo *reterr);

/* Closes @build, whose file has changed. Nothing is stored of it. */
void fathom_open_builds_drop(struct fathom_open_builds *b, struct fathom_open_build *build);

/* Begins the next turn: closes builds that there is no room for, and stores expensive indexes. */
void fathom_open_builds_end_turn(struct fathom_open_builds *b);

#endif
