/* SPDX-License-Identifier: MIT */
/*
 * Jitdump: a program's log of its JIT code, with names, lines and times (Linux,
 * tools/perf/Documentation/jitdump-specification.txt, version 1).
 *
 * A header is followed by records; a record's size leads to the next, so unknown kinds are skipped.
 * The file is append-only and chronological: a later record about an address replaces earlier ones.
 * A record counts once it is completely written. The code itself is not read. Of descriptions how
 * to unwind the code only the places are kept: fathom_jitdump_read_unwinding() reads one.
 *
 * Such a description has the sections .eh_frame and .eh_frame_hdr. The specification lets the
 * latter come first, but CPython, V8 and perf write it last. It is about the code of the next
 * record of code, whatever addresses it states: these are of the ELF file that perf makes.
 *
 * V8 states the addresses of lines 0x40 too high, the size of the ELF header in the file that perf
 * makes of the code; others do not. The lowest of all line offsets shows which is the case.
 */
#ifndef FATHOM_JIT_JITDUMP_H
#define FATHOM_JIT_JITDUMP_H

#include "host/base/array.h"
#include "host/jit/code_table.h"

/* Contents of records, defined in jitdump.c. */
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
	struct fathom_code_table table;      /* orders: indices of events, plus 1 */
	struct fathom_jitdump_events events; /* in file order */
	struct fathom_jitdump_functions functions;
	struct fathom_jitdump_lines lines;
	struct fathom_bytes_array names;   /* names of functions and files */
	struct fathom_u64_array unwinding; /* file offsets of descriptions how to unwind */
	struct fathom_claim_array claims;  /* not yet in the table */
	struct fathom_bytes_array scratch; /* a part of the file being parsed */
	uint64_t counted;                  /* bytes counted in memory's budget */
	uint64_t next;                     /* file offset of the first unread byte */
	uint64_t lowest_line; /* lowest offset of any line from the start of its code */
	uint8_t header[40];
	bool swap;
	bool has_header;
	bool has_unwinding; /* the last of unwinding is for the next code */
	struct {            /* of the last record: for the next code at this address */
		uint64_t code;
		size_t first;
		size_t n;
	} lines_of;
};

struct fathom_jitdump_hit {
	uint64_t start; /* avma */
	uint64_t size;  /* bytes */
	struct fathom_str name;
	struct fathom_str file; /* data is NULL if no line is known */
	uint32_t line;
};

/* Prepares @d, all zero. */
void fathom_jitdump_init(struct fathom_jitdump *d, struct fathom_memory *m);
/* Forgets all that was read. */
void fathom_jitdump_clear(struct fathom_jitdump *d);

/*
 * Reads the part of @fd, of @size bytes, beyond the last reading; all of it if the file was
 * replaced. FATHOM_E_OS; FATHOM_E_MEMORY; FATHOM_E_LIMIT over the memory budget; FATHOM_E_FORMAT;
 * FATHOM_E_CORRUPT at offset *@ret_damage: records before it are kept.
 */
fathom_err fathom_jitdump_read(struct fathom_jitdump *d, int fd, uint64_t size,
			       uint64_t *ret_damage);

/*
 * Reads the records in @bytes, which are at file offset d->next; @left bytes remain from there to
 * the end of the file. Moves d->next past the records read. *@ret_wanted is how many bytes the next
 * record needs at least; 0 if the file does not have all of it. FATHOM_E_MEMORY, _LIMIT, _FORMAT,
 * _CORRUPT.
 */
fathom_err fathom_jitdump_parse(struct fathom_jitdump *d, struct fathom_bytes bytes, uint64_t left,
				uint64_t *ret_wanted);

/*
 * Finds the code at @avma at the end of the records; returns false if there is none. Names point
 * into @d.
 */
bool fathom_jitdump_at(const struct fathom_jitdump *d, uint64_t avma,
		       struct fathom_jitdump_hit *ret);

/* Where code is whose description how to unwind it has been found. */
struct fathom_jitdump_unwinding {
	uint64_t start; /* avma */
	uint64_t size;  /* bytes */
	uint64_t off;   /* of the record in the file */
};

/*
 * Finds the code at @avma at the end of the records; returns false if nothing tells how to unwind
 * it.
 */
bool fathom_jitdump_unwinding_at(const struct fathom_jitdump *d, uint64_t avma,
				 struct fathom_jitdump_unwinding *ret);

/*
 * Reads .eh_frame from the record at @off of @fd, which must be the file that @d was read from,
 * into
 * *@ret, which the caller frees. FATHOM_E_CHANGED if the file is another one by now;
 * FATHOM_E_CORRUPT; FATHOM_E_LIMIT over FATHOM_MAX_JIT_FRAMES; FATHOM_E_MEMORY.
 */
fathom_err fathom_jitdump_read_unwinding(const struct fathom_jitdump *d, int fd, uint64_t off,
					 uint8_t **ret, size_t *ret_size);

/* Returns the machine of the code, as EM_ of elf.h. */
uint32_t fathom_jitdump_machine(const struct fathom_jitdump *d);

#endif
