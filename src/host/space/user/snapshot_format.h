/* SPDX-License-Identifier: MIT */
/*
 * Snapshots: all that is needed to name addresses of a process after it is gone. The format is
 * fathom's own, little-endian:
 *
 *	header	"FATHOMSN", u32 version, u32 CRC-32 (of gzip) of the body,
 *		u64 bytes of the body
 *	body	records: u32 type, u32 zero, u64 bytes, those bytes,
 *		zeros up to a multiple of 8
 *
 * Types of records; readers skip others, so that more can be added:
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
 *	6 THREAD	u32 pid, u32 TID, u32 state as a letter, u32 signal,
 *			u32 its si_code, u32 TID or PID that it waits for,
 *			u32 why it has no registers (enum fathom_reason),
 *			u32 flags (1: its system call was restarted),
 *			u64 system call (2^64 - 1: none), u64 fault address
 *			(2^64 - 1: none), u64 bits that sign a return address,
 *			u64 ns that it was stopped, u32 machine (EM_; 0: no registers),
 *			u32 number of registers, u64 set of those that are known,
 *			u64 each register by DWARF's number; four texts, each u32
 *			bytes and the bytes: name, system call, what it waits for,
 *			why it was not read; u32 number of pieces of its stacks, u32 0;
 *			of each piece u64 address, u64 bytes; the bytes of all
 *
 * Files are numbered from 1; one with inode 0 is a name made by the kernel, such as "[vdso]".
 * Memory holds [vdso]; the first page and the notes of each ELF file, to recognize it; and the
 * lists of GDB's JIT interface with their symbol files; with threads, also the pages in no file
 * that lead from frame to frame. Code holds what jitdumps and perf maps say, in address order.
 */
#ifndef FATHOM_USER_SNAPSHOT_FORMAT_H
#define FATHOM_USER_SNAPSHOT_FORMAT_H

#include "host/base/array.h"
#include "host/base/memory.h"
#include "host/space/user/dump.h"
#include "safe/base/cursor.h"

#define FATHOM_SNAPSHOT_MAGIC   "FATHOMSN"
#define FATHOM_SNAPSHOT_VERSION 1
#define FATHOM_SNAPSHOT_HEADER  24 /* bytes */
#define FATHOM_SNAPSHOT_MAPPING 32 /* bytes of one mapping */

/* Returns whether numbers must be swapped: the format is little-endian. */
#define FATHOM_SNAPSHOT_SWAP (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

enum fathom_snapshot_record {
	FATHOM_SNAPSHOT_PROCESS = 1,
	FATHOM_SNAPSHOT_FILE = 2,
	FATHOM_SNAPSHOT_MAPPINGS = 3,
	FATHOM_SNAPSHOT_MEMORY = 4,
	FATHOM_SNAPSHOT_CODE = 5,
	FATHOM_SNAPSHOT_THREAD = 6
};

/*
 * Writes or reads a snapshot. Each function below describes one part of the format and does both:
 * it writes its argument, or reads into it. Bytes beyond the end read as zeros, and cur_ok() then
 * fails; texts are not copied.
 */
struct fathom_snapshot {
	struct fathom_bytes_array *to; /* NULL when reading */
	struct fathom_cursor from;     /* when reading */
	bool failed;                   /* when writing: out of memory */
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

/* Appends @size zero bytes when writing; returns NULL if out of memory. */
uint8_t *fathom_snapshot_reserve(struct fathom_snapshot *s, size_t size);

void fathom_snapshot_u64(struct fathom_snapshot *s, uint64_t *value);
void fathom_snapshot_header(struct fathom_snapshot *s, struct fathom_snapshot_header *h);
void fathom_snapshot_process(struct fathom_snapshot *s, struct fathom_snapshot_process *p);
void fathom_snapshot_file(struct fathom_snapshot *s, struct fathom_dump_file *f);
/* Writes or reads one mapping, of file number @file; reading does not set the mapping's file. */
void fathom_snapshot_mapping(struct fathom_snapshot *s, struct fathom_mapping *m, uint32_t *file);
/* Writes or reads JIT code. Reads an unknown source as 0. */
void fathom_snapshot_code(struct fathom_snapshot *s, struct fathom_dump_code *c);

/*
 * Writes or reads a thread but for the bytes of its stacks. Reads an unknown machine as EM_NONE.
 * Returns false if it is malformed.
 */
bool fathom_snapshot_thread(struct fathom_snapshot *s, struct fathom_stored_thread *t);

/* Begins a record; returns its offset. */
size_t fathom_snapshot_begin(struct fathom_snapshot *s, enum fathom_snapshot_record type);
/* Ends the record at @record: fills in its size and pads it to a multiple of 8. */
void fathom_snapshot_end(struct fathom_snapshot *s, size_t record);
/* Reads the next record of @s to *@ret; returns false if it reaches past the end. */
bool fathom_snapshot_next(struct fathom_snapshot *s, uint32_t *ret_type,
			  struct fathom_snapshot *ret);

#endif
