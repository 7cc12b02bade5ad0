/* SPDX-License-Identifier: MIT */
/*
 * Where the modules of a report were in memory, as its lines tell: maps, and lines that have one
 * place both in memory and in its module. With it, the addresses in memory of the same report are
 * in modules, also those of earlier lines that were read together with it.
 *
 * A report ends where the head of another one is, where a line tells that it is of another process,
 * where nothing has told of modules for 64 KiB, and where a line contradicts the ones before. Of
 * the addresses between two that contradict each other nobody knows which is right: they have none.
 */
#ifndef FATHOM_FILTER_LOG_CONTEXT_H
#define FATHOM_FILTER_LOG_CONTEXT_H

#include "host/filter/log_modules.h"

/* Places of one process, sorted: they do not overlap. */
struct fathom_log_places {
	FATHOM_ARRAY_OF(struct fathom_log_place);
};

/* The places of a report that may go on. */
struct fathom_log_report {
	struct fathom_log_places places;
	uint64_t process; /* of its lines; 0: they do not say */
	size_t distance;  /* bytes of the log since its last line that told a place */
	bool is_listing;  /* that line is of a map */
	bool is_full;     /* it has told too much to keep */
};

/* The reports of earlier calls. All zero, there are none. */
struct fathom_log_context {
	struct fathom_log_report reports[FATHOM_LOG_PROCESSES]; /* the last one is the latest */
	size_t n;
	struct fathom_arena texts;        /* of these */
	struct fathom_arena former_texts; /* that numbers of the last call point to */
};

/*
 * Places the numbers of @s, the @size bytes at @text, that are addresses in memory: they get a
 * module, and FATHOM_LOG_MAPPED. A module without a path gets the path that the report tells.
 * @modules has the index of each number's module, and is kept so. FATHOM_E_MEMORY,
 * FATHOM_E_CANCELLED.
 */
fathom_err fathom_log_context_apply(struct fathom_log_context *c, struct fathom_log_scan *s,
				    struct fathom_log_modules *modules, uint32_t *of_numbers,
				    const char *text, size_t size, struct fathom_errinfo *reterr);
void fathom_log_context_deinit(struct fathom_log_context *c);

#endif
