/* SPDX-License-Identifier: MIT */
/*
 * Snapshots: what has to be known of a process to name its addresses when it is gone. The format is
 * fathom's own, little-endian:
 *
 *	header	"FATHOMSN", u32 version, u32 CRC-32 (of gzip) of the body,
 *		u64 bytes of the body
 *	body	records: u32 type, u32 zero, u64 bytes, those bytes,
 *		zeros up to a multiple of 8
 *
 * Types of records; others are passed over, so that more can be added:
 *
 *	1 PROCESS	u64 pid, u64 page size, u64 AT_ENTRY, 16 bytes of name
 *	2 FILE		u64 device, inode, size, ctime in ns (0: not known),
 *			u32 flags (1: deleted), u32 bytes of the path, the path
 *	3 MAPPINGS	for each u64 start, u64 end, u64 offset,
 *			u32 number of its file, or 0,
 *			u32 rights (1 read, 2 write, 4 execute)
 *	4 MEMORY	u64 address, the bytes there
 *	5 CODE		u64 start, u64 end, u64 start and u64 size of its symbol,
 *			u32 where that stood (1 jitdump, 2 perf map),
 *			u32 bytes of the name, the name
 *
 * Files are counted from 1; one with inode 0 is a name of the kernel's, as "[vdso]". Memory is that
 * of [vdso]; of each ELF file the first page and the notes, by which it is known again; and of the
 * lists of GDB's JIT interface with their symbol files. Code is what jitdumps and perf maps say, in
 * the order of addresses.
 */
#ifndef FATHOM_TARGET_SPACE_SNAPSHOT_FORMAT_H
#define FATHOM_TARGET_SPACE_SNAPSHOT_FORMAT_H

#include "host/base/array.h"
#include "host/base/memory.h"
#include "host/target/space/dump.h"
#include "safe/base/cursor.h"

#define FATHOM_SNAPSHOT_MAGIC   "FATHOMSN"
#define FATHOM_SNAPSHOT_VERSION 1
#define FATHOM_SNAPSHOT_HEADER  24 /* bytes */
#define FATHOM_SNAPSHOT_MAPPING 32 /* bytes of one */

/* The format is little-endian. */
#define FATHOM_SNAPSHOT_SWAP (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

enum fathom_snapshot_record {
	FATHOM_SNAPSHOT_PROCESS = 1,
	FATHOM_SNAPSHOT_FILE = 2,
	FATHOM_SNAPSHOT_MAPPINGS = 3,
	FATHOM_SNAPSHOT_MEMORY = 4,
	FATHOM_SNAPSHOT_CODE = 5
};

/*
 * What a snapshot is written to or read from. Each function below describes one part of the format,
 * for both: it writes what it is given, or reads it. What lies beyond the end is read as zeros, and
 * cur_ok() says so; texts stay where they are.
 */
struct fathom_snapshot {
	struct fathom_bytes_array *to; /* NULL: it is read */
	struct fathom_cursor from;     /* when it is read */
	bool failed;                   /* when it is written: no memory */
};

struct fathom_snapshot_header {
	char magic[8];
	uint32_t version;
	uint32_t crc;
	uint64_t size; /* of the body */
};

struct fathom_snapshot_process {
	uint64_t pid;
	uint64_t page;
	uint64_t entry;
	char command[16];
};

/* Adds room for @size bytes of zeros to what is written; NULL without memory. */
uint8_t *fathom_snapshot_reserve(struct fathom_snapshot *s, size_t size);

void fathom_snapshot_u64(struct fathom_snapshot *s, uint64_t *value);
void fathom_snapshot_header(struct fathom_snapshot *s, struct fathom_snapshot_header *h);
void fathom_snapshot_process(struct fathom_snapshot *s, struct fathom_snapshot_process *p);
void fathom_snapshot_file(struct fathom_snapshot *s, struct fathom_dump_file *f);
/* One mapping, of file @file, counted from 1; of a mapping that is read, the file is not known. */
void fathom_snapshot_mapping(struct fathom_snapshot *s, struct fathom_mapping *m, uint32_t *file);
/* A source that is not known is read as 0. */
void fathom_snapshot_code(struct fathom_snapshot *s, struct fathom_dump_code *c);

/* Begins a record; returns where it stands. */
size_t fathom_snapshot_begin(struct fathom_snapshot *s, enum fathom_snapshot_record type);
/* Ends the record that stands at @record: fills its size in, and up to a multiple of 8. */
void fathom_snapshot_end(struct fathom_snapshot *s, size_t record);
/* Reads the next record of @s to *@ret; false if it reaches past the end. */
bool fathom_snapshot_next(struct fathom_snapshot *s, uint32_t *ret_type,
			  struct fathom_snapshot *ret);

#endif
