/* SPDX-License-Identifier: MIT */
/*
 * What the runtime of a traced program and its reader share: one file in memory (memfd_create(2)),
 * mapped by both. It begins with struct fathom_trace_head, then has the heads of all rings, then,
 * from the next page on, the records of each ring.
 *
 * One thread at a time writes a ring. It begins each record's second word, then stores the first
 * one, whose highest bit is 1 in odd laps (the first, the third ...) and 0 in even ones: the reader
 * sees by it, without a count that both would write, how far the ring is filled. Records so survive
 * the program, and also its end by SIGKILL.
 *
 * The reader trusts none of it.
 */
#ifndef FATHOM_TRACE_RING_H
#define FATHOM_TRACE_RING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define FATHOM_TRACE_MAGIC   UINT64_C(0x31656361727466) /* "ftrace1" */
#define FATHOM_TRACE_VERSION 1

/* Records of a ring: as the hook has it (hook_x86_64.S). */
#define FATHOM_TRACE_RECORDS_LOG2 16
#define FATHOM_TRACE_RECORDS      (UINT64_C(1) << FATHOM_TRACE_RECORDS_LOG2)

/* Records that handlers of signals may write beyond the limit, one for each within another. */
#define FATHOM_TRACE_SLACK 64

/* The bit of a record's first word that tells its lap. */
#define FATHOM_TRACE_LAP (UINT64_C(1) << 63)

/* One event. */
struct fathom_trace_record {
	uint64_t time; /* clock of the processor (TSC); 0: none was read */
	uint32_t site; /* low bits of where the site's call of the hook returns to */
	uint32_t sp;   /* low bits of (stack pointer at the function's entry) / 8 */
};

/* What a full ring's thread does. */
enum fathom_trace_full {
	FATHOM_TRACE_WAIT = 0,     /* waits for the reader, if that lives, 1 s at most */
	FATHOM_TRACE_LOSE = 1,     /* counts the events that are lost */
	FATHOM_TRACE_OVERWRITE = 2 /* the newest records stay */
};

struct fathom_trace_head {
	uint64_t magic;
	uint32_t version;
	uint32_t n_rings;
	uint64_t rings_off;          /* of the first ring's records in the file */
	_Atomic uint32_t full;       /* enum fathom_trace_full */
	_Atomic uint32_t reader_pid; /* 0: no reader lives */
	_Atomic uint64_t lost;       /* events of threads that have no ring */
	uint64_t reserved[3];
};

/* A ring. */
struct fathom_trace_ring {
	_Atomic int32_t tid;    /* of the thread that writes it; 0: free */
	_Atomic int32_t pid;    /* of its process */
	_Atomic uint64_t taken; /* records that the reader has taken; only it writes this */
	_Atomic uint64_t lost;  /* events that did not find room */
	_Atomic uint32_t waits; /* 1: the thread waits here for room (futex) */
	uint32_t reserved1;
	uint64_t reserved[4];
};

_Static_assert(sizeof(struct fathom_trace_record) == 16, "as the hook writes it");
_Static_assert(sizeof(struct fathom_trace_head) == 64, "");
_Static_assert(sizeof(struct fathom_trace_ring) == 64, "");

/* Returns the bytes of a file with @n rings, whose records begin at *@ret_off. */
static inline uint64_t fathom_trace_size(uint32_t n, uint64_t *ret_off)
{
	const uint64_t page = 4096;
	const uint64_t heads =
		sizeof(struct fathom_trace_head) + n * sizeof(struct fathom_trace_ring);

	*ret_off = (heads + page - 1) / page * page;
	return *ret_off + n * FATHOM_TRACE_RECORDS * sizeof(struct fathom_trace_record);
}

/* Returns the lap bit of record number @i, counted from 0. */
static inline uint64_t fathom_trace_lap(uint64_t i)
{
	return (~i >> FATHOM_TRACE_RECORDS_LOG2) << 63;
}

#endif
