/* SPDX-License-Identifier: MIT */
/*
 * Jitdump: what code a program has made, with names, lines and times (Linux,
 * tools/perf/Documentation/jitdump-specification.txt, version 1).
 *
 * A header, then records; a record's size leads to the next, so that kinds which are not known are
 * passed over. The file only grows, in the order in which things happened: what a later record says
 * of an address holds from then on. A record counts when all of it has been written. The code
 * itself, and unwind descriptions, are not read.
 *
 * V8 states the addresses of lines too high by 0x40, the size of the ELF header in the file that
 * perf will make of the code; others do not. Which it is shows in the lowest of them all.
 */
#ifndef FATHOM_JIT_JITDUMP_H
#define FATHOM_JIT_JITDUMP_H

#include "host/base/array.h"
#include "host/jit/code_table.h"

/* What is kept of records; jitdump.c has what is in them. */
struct fathom_jitdump_event;
struct fathom_jitdump_function;
struct fathom_jitdump_line;

struct fathom_jitdump_events {
	FATHOM_ARRAY_OF(struct fathom_jitdump_event);
};

struct fathom_jitdump_functions {
	FATHOM_ARRAY_OF(struct fathom_jitdump_function);
};

struct fathom_jitdump_lines {
	FATHOM_ARRAY_OF(struct fathom_jitdump_line);
};

struct fathom_jitdump {
	struct fathom_memory *memory;
	struct fathom_code_table table;      /* orders: numbers of events, plus 1 */
	struct fathom_jitdump_events events; /* in file order */
	struct fathom_jitdump_functions functions;
	struct fathom_jitdump_lines lines;
	struct fathom_bytes_array names;   /* bytes of functions' and files' names */
	struct fathom_claim_array claims;  /* not yet in the table */
	struct fathom_bytes_array scratch; /* part of the file */
	uint64_t counted;                  /* of memory's budget */
	uint64_t next;                     /* offset in the file of what has not been read */
	uint64_t lowest_line;              /* of all lines: how far from the start of their code */
	uint8_t header[40];
	bool swap;
	bool has_header;
	struct { /* of the last record: they are for the next code at that address */
		uint64_t code;
		size_t first;
		size_t n;
	} lines_of;
};

struct fathom_jitdump_hit {
	uint64_t start; /* avma */
	uint64_t size;  /* bytes */
	struct fathom_str name;
	struct fathom_str file; /* data is NULL where no line is known */
	uint32_t line;
};

/* Prepares @d, all zero. */
void fathom_jitdump_init(struct fathom_jitdump *d, struct fathom_memory *m);
/* Forgets all that was read. */
void fathom_jitdump_clear(struct fathom_jitdump *d);

/*
 * Reads what @fd, whose size is @size, has beyond what was read before; all of it, when it is
 * another file by now. FATHOM_E_OS; FATHOM_E_MEMORY; FATHOM_E_LIMIT when it does not fit the memory
 * budget; FATHOM_E_FORMAT; FATHOM_E_CORRUPT: what comes before the damage is there. *@ret_damage is
 * where it is then.
 */
fathom_err fathom_jitdump_read(struct fathom_jitdump *d, int fd, uint64_t size,
			       uint64_t *ret_damage);

/*
 * Reads the records in @bytes, which stand in the file at d->next; with what follows there are
 * @left of them. d->next moves behind what was read. *@ret_wanted is how many bytes the next record
 * needs at least, 0 when it is not there as a whole. FATHOM_E_MEMORY, _LIMIT, _FORMAT, _CORRUPT.
 */
fathom_err fathom_jitdump_parse(struct fathom_jitdump *d, struct fathom_bytes bytes, uint64_t left,
				uint64_t *ret_wanted);

/* What was at @avma at the end of what was read; false when nothing was. Names lie in @d. */
bool fathom_jitdump_at(const struct fathom_jitdump *d, uint64_t avma,
		       struct fathom_jitdump_hit *ret);

/* The same at @time, in the file's own clock. Looks at each event. */
bool fathom_jitdump_at_time(const struct fathom_jitdump *d, uint64_t avma, uint64_t time,
			    struct fathom_jitdump_hit *ret);

#endif
