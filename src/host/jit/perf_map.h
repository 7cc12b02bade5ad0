/* SPDX-License-Identifier: MIT */
/*
 * Perf maps: the names that a program gives to code that it makes, in /tmp/perf-PID.map (Linux,
 * tools/perf/Documentation/jit-interface.txt).
 *
 * One line for each function: START SIZE NAME, numbers in hex with or without 0x, the name to the
 * end of the line, blanks and all. The file only grows, and says nothing of code that is gone:
 * where lines overlap, the last one holds. A line without a name or of size 0 names nothing; the
 * first still says that what was there before is gone. Lines that are no such lines are left out.
 *
 * Behind the last line break a line may be half written. It counts when nobody writes the file any
 * more (fathom_perf_map_end()), unless the file ends where a page does: writers that collect their
 * output write whole pages of it, so that the line is most likely cut.
 */
#ifndef FATHOM_JIT_PERF_MAP_H
#define FATHOM_JIT_PERF_MAP_H

#include "host/jit/code_table.h"

struct fathom_perf_symbol {
	uint64_t start; /* avma */
	uint64_t size;  /* bytes */
	struct fathom_str name;
};

struct fathom_perf_map {
	struct fathom_memory *memory;
	struct fathom_code_table table; /* orders: where lines start in text, plus 1 */
	char *text;                     /* of the file, as far as it was read */
	uint64_t size;                  /* bytes of text */
	uint64_t parsed;                /* of them: whole lines */
	uint64_t cap;
	struct fathom_perf_symbol tail; /* the line behind those that counts; size 0: none */
};

/* Prepares @map, all zero. */
void fathom_perf_map_init(struct fathom_perf_map *map, struct fathom_memory *m);
/* Forgets all that was read. */
void fathom_perf_map_clear(struct fathom_perf_map *map);

/*
 * Reads what @fd, whose size is @size, has beyond what was read before; all of it, when what was
 * read is not there any more. A file that is written anew again and again meanwhile has no lines.
 * FATHOM_E_OS; FATHOM_E_MEMORY; FATHOM_E_LIMIT when it does not fit the
 * memory budget.
 */
fathom_err fathom_perf_map_read(struct fathom_perf_map *map, int fd, uint64_t size);

/* Adds @size bytes, which follow those that are there. FATHOM_E_MEMORY, FATHOM_E_LIMIT. */
fathom_err fathom_perf_map_add(struct fathom_perf_map *map, const char *text, uint64_t size);

/* Says that nobody is writing the file: what stands behind its last line break is a line, too. */
void fathom_perf_map_end(struct fathom_perf_map *map);

/* The function at @avma; false when no line names it. The name lies in @map. */
bool fathom_perf_map_at(const struct fathom_perf_map *map, uint64_t avma,
			struct fathom_perf_symbol *ret);

#endif
