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
#ifndef FATHOM_TARGET_SPACE_SNAPSHOT_READ_H
#define FATHOM_TARGET_SPACE_SNAPSHOT_READ_H

#include "host/target/space/dump.h"

#define FATHOM_SNAPSHOT_MAGIC   "FATHOMSN"
#define FATHOM_SNAPSHOT_VERSION 1
#define FATHOM_SNAPSHOT_HEADER  24 /* bytes */

enum fathom_snapshot_record {
	FATHOM_SNAPSHOT_PROCESS = 1,
	FATHOM_SNAPSHOT_FILE = 2,
	FATHOM_SNAPSHOT_MAPPINGS = 3,
	FATHOM_SNAPSHOT_MEMORY = 4,
	FATHOM_SNAPSHOT_CODE = 5
};

/* Whether the bytes start as a snapshot of any version does. */
bool fathom_snapshot_file_is(struct fathom_bytes bytes);

/*
 * Reads the snapshot @file, which is taken over, also on failure. FATHOM_E_CORRUPT,
 * FATHOM_E_UNSUPPORTED for a version that is not known, FATHOM_E_LIMIT, FATHOM_E_MEMORY.
 */
fathom_err fathom_snapshot_file_read(struct fathom_file *file, struct fathom_dump *ret,
				     struct fathom_errinfo *reterr);

#endif
