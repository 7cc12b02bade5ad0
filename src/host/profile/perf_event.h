/* SPDX-License-Identifier: MIT */
/*
 * Events that the kernel counts and samples (perf_event_open(2)), and the rings that it writes
 * records of them to.
 *
 * One ring for each processor: an event that threads inherit can have no other. Records of one ring
 * are in the order of time, those of different rings are not. All times are those of the monotonic
 * clock.
 */
#ifndef FATHOM_PROFILE_PERF_EVENT_H
#define FATHOM_PROFILE_PERF_EVENT_H

#include <linux/perf_event.h>
#include <sys/types.h>

#include "host/base/key_map.h"
#include "safe/base/cursor.h"
#include "safe/base/error.h"

/* The event that is counted and sampled, alike for all threads of a recording. */
struct fathom_perf_setup {
	bool is_cycles;      /* else task-clock */
	uint32_t frequency;  /* samples a second */
	uint32_t stack_size; /* bytes of the stack that a sample copies at most, a multiple of 8 */
	bool is_kernel_hidden; /* no samples in the kernel: the user may not have them */
	bool has_counts;       /* each sample has the count of its thread; since Linux 6.13 */
	bool has_build_ids;    /* maps have build-ids; since Linux 5.12 */
	bool has_switches;     /* records say when threads leave a processor, and get one */
	bool is_on_exec;       /* begins when the thread becomes another program */
	bool is_all;           /* of whatever the processor runs; tid is -1 then */
	/* Samples each switch to another thread instead, with at most stack_size bytes. */
	bool is_of_switches;
	bool is_of_wakings; /* records who wakes which thread instead; that needs rights */
	/* Of events of wakings: what they are of, and their ids if the ring has some; else NULL. */
	const struct fathom_perf_tracepoint *wakings;
	const struct fathom_key_map *waking_ids;
};

/* The kernel's tracepoint sched:sched_waking, in the thread or interrupt that wakes another. */
struct fathom_perf_tracepoint {
	uint64_t id;
	uint32_t flags_at; /* of its data: a byte, whether it is an interrupt that wakes */
	uint32_t tid_at;   /* of the thread that is woken: 4 bytes, numbered as the kernel does */
};

/* The type of a record of a waking: none of the kernel's. */
#define FATHOM_PERF_WAKING UINT32_C(0x10000)

/* Processors, one ring each. */
struct fathom_perf_ring {
	int cpu;
	int fd;            /* the event whose ring it is; -1: none yet */
	uint8_t *base;     /* its first page is struct perf_event_mmap_page; NULL: none yet */
	size_t size;       /* bytes of records, a power of two */
	uint64_t head;     /* as it was read last: what is before it can be read */
	uint64_t tail;     /* what is before it was read */
	uint8_t *straight; /* a record that goes around the end is copied here */
};

/* An event of one thread on one processor. */
struct fathom_perf_event {
	int fd;
	uint64_t id;      /* that its records and those of events inherited from it have */
	int32_t tid;      /* the thread that it was opened for */
	uint64_t counted; /* what was written of its count */
};

/* A record. What it points to lies in the ring, until the record is passed over. */
struct fathom_perf_record {
	uint32_t type; /* PERF_RECORD_ */
	uint16_t misc; /* PERF_RECORD_MISC_ */
	int32_t pid;
	int32_t tid;
	uint64_t ns; /* of the monotonic clock; 0: the record has none */
	union {
		struct {
			uint64_t id; /* of the event */
			uint64_t period;
			uint64_t count;        /* of the thread, with has_counts */
			const uint8_t *kernel; /* n_kernel addresses, the innermost first */
			uint64_t n_kernel;
			uint64_t abi;              /* enum perf_sample_regs_abi */
			const uint8_t *registers;  /* by the bits of fathom_perf_registers() */
			uint64_t missing;          /* of these, in their order, which are none */
			struct fathom_bytes stack; /* from its sp on */
		} sample;
		struct {
			int32_t tid;       /* the thread that is woken */
			bool is_interrupt; /* an interrupt wakes it, not the thread */
		} waking;                  /* FATHOM_PERF_WAKING */
		struct {
			int32_t parent_pid;
			int32_t parent_tid;
		} task; /* FORK, EXIT */
		struct {
			const char *name; /* ends with a NUL */
		} comm;
		struct {
			uint64_t start;
			uint64_t size;
			uint64_t offset;              /* in the file */
			const char *path;             /* ends with a NUL */
			struct fathom_bytes build_id; /* without data: not known */
		} map;                                /* MMAP and MMAP2, of code */
		uint64_t count;                       /* READ, of a thread that has ended */
		uint64_t lost;
	};
};

/*
 * Opens the event of thread @tid on the processor of @ring, and its ring of @ring_size bytes, a
 * power of two, if @ring has none yet. FATHOM_E_OS, with what errno said; FATHOM_E_UNSUPPORTED: not
 * on this machine; FATHOM_E_NOT_FOUND: no such thread; FATHOM_E_LIMIT: with EMFILE or ENFILE too
 * many open files, else no memory for the ring.
 */
fathom_err fathom_perf_open(const struct fathom_perf_setup *setup, struct fathom_perf_ring *ring,
			    size_t ring_size, int32_t tid, struct fathom_perf_event *ret,
			    struct fathom_errinfo *reterr);

/*
 * Finds the tracepoint of wakings. False: no tracefs is mounted where this user may read it, or
 * threads have other numbers here than the kernel's.
 */
bool fathom_perf_find_wakings(struct fathom_perf_tracepoint *ret);

/* Prepares a ring of processor @cpu. */
void fathom_perf_ring_init(struct fathom_perf_ring *r, int cpu);
void fathom_perf_ring_deinit(struct fathom_perf_ring *r);

/* Looks how far the kernel has written. */
void fathom_perf_ring_look(struct fathom_perf_ring *r);

/*
 * Reads the record at the tail; false if there is none before the head. A record that makes no
 * sense has type 0. fathom_perf_ring_pass() passes over it.
 */
bool fathom_perf_ring_peek(struct fathom_perf_ring *r, const struct fathom_perf_setup *setup,
			   struct fathom_perf_record *ret);
void fathom_perf_ring_pass(struct fathom_perf_ring *r);

/* Parses one record of @size bytes, as the ring has it. */
void fathom_perf_record_parse(const uint8_t *bytes, size_t size,
			      const struct fathom_perf_setup *setup,
			      struct fathom_perf_record *ret);

/*
 * Parses what stands between the header, whose facts *@ret has, and the last @trailer bytes of a
 * record that is no sample and does not depend on how the event was set up: MMAP, MMAP2, COMM,
 * FORK, EXIT, LOST, LOST_SAMPLES; of others nothing. @c fails if it is damaged.
 */
void fathom_perf_body_parse(struct fathom_cursor *c, size_t trailer,
			    struct fathom_perf_record *ret);

/* Reads the count of @e, with those of all that have inherited it; false if that fails. */
bool fathom_perf_read(const struct fathom_perf_event *e, uint64_t *ret);

/* Lets all events of @e's thread count from now on. */
void fathom_perf_enable(const struct fathom_perf_event *e);
void fathom_perf_disable(const struct fathom_perf_event *e);

#endif
