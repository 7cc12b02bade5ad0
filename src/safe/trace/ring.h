/* SPDX-License-Identifier: MIT */
/*
 * The memory that the runtime of a traced program and its reader share: one file (memfd_create(2)),
 * mapped by both. It begins with struct fathom_trace_head, then has the heads of all rings, then,
 * from the next page on, the records of each ring.
 *
 * One thread at a time writes a ring. It fills each record's other words, then stores the first
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
#define FATHOM_TRACE_VERSION 4

/* The memory's name for memfd_create(2), and that of its mapping; its pages are in no core. */
#define FATHOM_TRACE_MEMORY_NAME  "fathom-trace"
#define FATHOM_TRACE_MAPPING_NAME "/memfd:" FATHOM_TRACE_MEMORY_NAME

/* Records of a ring: as the hook has it (hook_x86_64.S, hook_aarch64.S). */
#define FATHOM_TRACE_RECORDS_LOG2 16
#define FATHOM_TRACE_RECORDS      (UINT64_C(1) << FATHOM_TRACE_RECORDS_LOG2)

/* Records that handlers of signals may write beyond the limit, one for each within another. */
#define FATHOM_TRACE_SLACK 64

/* The bit of a record's first word that tells its lap. */
#define FATHOM_TRACE_LAP (UINT64_C(1) << 63)

/* The bit of a record's first word that tells that it goes on with the event before it. */
#define FATHOM_TRACE_MORE (UINT64_C(1) << 62)

/* One event. */
struct fathom_trace_record {
	uint64_t time;   /* clock of the processor (TSC, CNTVCT_EL0); 0: none was read */
	uint32_t site;   /* low bits of where the site's call of the hook returns to */
	uint32_t sp;     /* low bits of (stack pointer at the function's entry) / 8 */
	uint32_t caller; /* low bits of where the function returns to */
	/*
	 * low bits of the caller's frame pointer, if it has one; at a call that the program makes
	 * itself, of the function that it reports
	 */
	uint32_t fp;
};

/* Modes of a thread whose ring is full. */
enum fathom_trace_ring_full {
	FATHOM_TRACE_WAIT = 0,     /* waits while the reader takes records of any ring */
	FATHOM_TRACE_LOSE = 1,     /* counts the events that are lost */
	FATHOM_TRACE_OVERWRITE = 2 /* the newest records stay */
};

/* A program asks its reader to look at what was loaded: states of the question. */
enum fathom_trace_mail {
	FATHOM_TRACE_MAIL_FREE = 0,
	FATHOM_TRACE_MAIL_TAKEN = 1,    /* a thread of the program writes its question */
	FATHOM_TRACE_MAIL_ASKED = 2,    /* and waits */
	FATHOM_TRACE_MAIL_READ = 3,     /* the reader is at it */
	FATHOM_TRACE_MAIL_ANSWERED = 4, /* the thread goes on */
};

struct fathom_trace_head {
	uint64_t magic;
	uint32_t version;
	uint32_t n_rings;
	uint64_t rings_off;    /* of the first ring's records in the file */
	uint64_t wait_ticks;   /* as long as a thread waits for a reader that takes nothing: 1 s */
	_Atomic uint64_t lost; /* events of threads that have no ring */
	_Atomic uint32_t full; /* enum fathom_trace_ring_full */
	_Atomic uint32_t is_late; /* 1: the reader has taken nothing for a second */
	_Atomic uint32_t mail;    /* enum fathom_trace_mail; a futex */
	_Atomic uint32_t asker;   /* number of the process that asks, as its reader has given it */
	/*
	 * The tid of a thread that lives as long as the reader; 0: there is none. It is a robust
	 * futex of that thread's: when the thread ends, however it does, the kernel sets
	 * FUTEX_OWNER_DIED (get_robust_list(2)).
	 */
	_Atomic uint32_t reader;
	_Atomic int32_t asker_tid; /* of the thread that asks; 0: unknown */
	/* 1: the reader has seen that no filter of that thread forbids it to sleep (futex) */
	_Atomic uint32_t may_sleep;
	/* Grows as long as the reader takes records, of any ring: it is not late then. */
	_Atomic uint32_t n_given;
	/* Address of struct fathom_trace_mappings in each process; 0: nothing is mapped yet. */
	uint64_t mappings;
	uint64_t reserved[6];
};

/* head.mappings of a runtime that is linked into the program. */
#define FATHOM_TRACE_LINKED_IN 1

/* Kinds of mappings that a tracer has made in a process. */
enum fathom_trace_mapped {
	FATHOM_TRACE_MAPPED_DATA = 0,
	FATHOM_TRACE_MAPPED_CODE = 1,
	FATHOM_TRACE_MAPPED_WORDS = 2 /* into which the dynamic linker may write */
};

/* A list of them, in the process's private memory. */
#define FATHOM_TRACE_MAPPINGS       12
#define FATHOM_TRACE_MAPPINGS_MAGIC UINT64_C(0x7370616d72746661)

struct fathom_trace_mappings {
	uint64_t magic;
	uint64_t head;     /* address of the shared memory, which maps show by its name */
	uint64_t n_places; /* places of text and data that lead to the runtime, at least */
	uint64_t n;
	struct {
		uint64_t start;
		uint64_t size; /* 0: it is not there any more */
		uint64_t kind; /* enum fathom_trace_mapped */
	} items[FATHOM_TRACE_MAPPINGS];
};

/* Values of ring.waits. */
enum fathom_trace_waits {
	FATHOM_TRACE_WAITS_NOT = 0,
	FATHOM_TRACE_WAITS_AWAKE = 1, /* it must not call the kernel: that may be forbidden */
	FATHOM_TRACE_WAITS_ASLEEP = 2 /* the reader has seen that it may: it sleeps on this word */
};

/* A ring. */
struct fathom_trace_ring {
	_Atomic int32_t tid;      /* of the thread that writes it; 0: free */
	_Atomic int32_t pid;      /* of its process */
	_Atomic uint64_t taken;   /* records that the reader has taken; only it writes this */
	_Atomic uint64_t lost;    /* events that did not find room */
	_Atomic uint32_t waits;   /* enum fathom_trace_waits: the thread waits for room (futex) */
	_Atomic uint32_t is_left; /* 1: the thread is recorded no more, because of its filter */
	/* When the thread has taken it itself, by the processor's clock; 0: it was given to it. */
	_Atomic uint64_t begin;
	uint64_t reserved[3];
};

_Static_assert(sizeof(struct fathom_trace_record) == 24, "as the hook writes it");
_Static_assert(sizeof(struct fathom_trace_head) == 128, "");
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
