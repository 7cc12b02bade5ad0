/* SPDX-License-Identifier: MIT */
/*
 * Perf maps: the names of a program's JIT code, in /tmp/perf-PID.map (Linux,
 * tools/perf/Documentation/jit-interface.txt).
 *
 * One line for each function: START SIZE NAME, numbers in hex with or without 0x; the name reaches
 * to the end of the line, blanks included. The file is append-only and does not tell when code is
 * freed: where lines overlap, the last one holds. A line without a name, or of size 0, names
 * nothing; a line without a name still ends earlier code there. Malformed lines are skipped.
 *
 * The text after the last line break may be half a line. It counts once nobody writes the file any
 * more (fathom_perf_map_end()), unless the file ends at a page boundary: buffered writers write
 * whole pages, so the line is most likely truncated.
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
	struct fathom_code_table table; /* orders: offsets of lines in text, plus 1 */
	char *text;                     /* the part of the file that was read */
	uint64_t size;                  /* bytes of text */
	uint64_t parsed;                /* bytes of text in whole lines */
	uint64_t cap;
	struct fathom_perf_symbol tail; /* the unfinished last line, if it counts; size 0: none */
};

/* Prepares @map, all zero. */
void fathom_perf_map_init(struct fathom_perf_map *map, struct fathom_memory *m);
/* Forgets all that was read. */
void fathom_perf_map_clear(struct fathom_perf_map *map);

/*
 * Reads the part of @fd, of @size bytes, beyond the last reading; all of it if the earlier part has
 * changed. A file that keeps being rewritten meanwhile has no lines. FATHOM_E_OS; FATHOM_E_MEMORY;
 * FATHOM_E_LIMIT over the memory budget.
 */
fathom_err fathom_perf_map_read(struct fathom_perf_map *map, int fd, uint64_t size);

/* Ends the file, as nobody writes it: text after the last line break counts as a line, too. */
void fathom_perf_map_end(struct fathom_perf_map *map);

/* Finds the function at @avma; returns false if no line names it. The name points into @map. */
bool fathom_perf_map_at(const struct fathom_perf_map *map, uint64_t avma,
			struct fathom_perf_symbol *ret);

#endif
