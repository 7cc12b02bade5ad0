/* SPDX-License-Identifier: MIT */
/* One thread's ring as it is read: its records and posts in their order, and the calls it is in. */
#ifndef FATHOM_TRACE_THREAD_STREAM_H
#define FATHOM_TRACE_THREAD_STREAM_H

#include "host/events/event_filter.h"
#include "host/trace/ring_syscalls.h"
#include "host/trace/rings.h"
#include "host/trace/spool.h"

/* A call that a thread is within. */
struct fathom_stream_call {
	uint64_t ns;                              /* when it began */
	uint32_t sp;                              /* stack pointer / 8, low bits */
	uint32_t size;                            /* bytes of the function; 0: unknown */
	uint64_t function;                        /* avma of its entry */
	uint32_t caller;                          /* low bits of where it returns to */
	bool has_caller;                          /* that is known */
	bool has_returns;                         /* each of its returns is recorded */
	const struct fathom_trace_function *slot; /* recorded where a slot leads to it; NULL: not */
};

/*
 * A stack that a thread runs on: its own, one of a handler's (sigaltstack(2)), a coroutine's. Where
 * each begins is learned from stack pointers.
 */
struct fathom_stream_lane {
	uint32_t highest; /* stack pointer / 8 that was seen first, or a little above */
	uint32_t base;    /* calls of the other stack from which this one was entered */
	struct {
		FATHOM_ARRAY_OF(struct fathom_stream_call);
	} calls;
};

/* The most stacks of one thread that are kept apart. */
#define FATHOM_STREAM_LANES 64

/* How often the name of a thread is read: many name themselves when they run already. */
#define FATHOM_STREAM_NAMES 3

/* A record, or a post. */
struct fathom_stream_item {
	const struct fathom_post *post; /* NULL: a record */
	uint64_t ticks;
	uint32_t site;
	uint32_t sp;
	uint32_t caller; /* of fathom_trace_record */
	uint32_t fp;
	bool has_caller; /* they are what they are called */
	bool has_fp;
	uint64_t number;    /* of the record */
	uint64_t n_records; /* that it takes */
};

struct fathom_stream {
	struct fathom_ring_name name;
	struct fathom_trace_ring *head;         /* NULL: posts only */
	const struct fathom_trace_record *ring; /* its records */
	/* Where the next record stands: the ring, or a copy of it. */
	const struct fathom_trace_record *records;
	struct fathom_trace_record *copy; /* NULL: there is none */
	struct fathom_spool *spool;       /* has the records before ring_begin; NULL: none yet */
	struct {
		FATHOM_ARRAY_OF(uint32_t);
		size_t first; /* has the next record, if ring_begin is after it */
	} laps;               /* of the spool */
	uint64_t ring_begin;  /* number of the first record that is only in the ring, or less */
	uint64_t records_end; /* of the first one that is not at records */
	bool is_overwritten;  /* the ring keeps the latest records: posts are in order by time */
	bool has_begun;       /* its beginning was told */
	bool is_over;         /* nobody writes it any more */
	bool is_silent;       /* nothing of it is told */
	int32_t pid;
	int32_t tid;
	uint64_t end; /* of what is there, in a ring that keeps the latest records */
	uint64_t taken;
	uint64_t given; /* taken, as the program knows it */
	uint64_t ticks; /* of the last record */
	uint64_t lost;  /* events that were told to be */
	uint64_t holes; /* records that were begun and never filled */
	uint32_t idle;  /* looks without a record */
	uint32_t lane;  /* that it is on */
	uint32_t n_lanes;
	struct fathom_stream_lane *lanes; /* the first is the one that the thread has begun with */
	struct {
		FATHOM_ARRAY_OF(struct fathom_post);
		size_t first;
	} posts;
	struct fathom_event_filter_thread event_filter;
	struct fathom_ring_syscalls system_calls; /* that it is in */
	/* Of its thread, each time that it was read: events point to them. */
	char thread_names[FATHOM_STREAM_NAMES][16];
	uint32_t n_names;
	uint32_t n_looks;       /* since it has begun */
	uint32_t n_early_looks; /* for its name, since the reader knows of it */
};

struct fathom_stream *fathom_stream_create(struct fathom_ring_name name);
void fathom_stream_destroy(struct fathom_stream *s);

/* Reads what is next, if there is something. */
bool fathom_stream_peek(struct fathom_stream *s, struct fathom_stream_item *ret);
/* Passes over what was read. */
void fathom_stream_pass(struct fathom_stream *s, const struct fathom_stream_item *item);

/*
 * Moves what the ring has to @spool if it is a quarter full, so that the thread finds room; it gets
 * no more than @most laps. Not of a ring that keeps the latest records. Of system calls, the events
 * of several records would be read wrongly: none may be recorded.
 */
void fathom_stream_spool(struct fathom_stream *s, struct fathom_spool *spool, uint64_t most);
/* Returns the number of the first record that is only in the ring. */
uint64_t fathom_stream_ring_begin(const struct fathom_stream *s);

/* Returns how many records are there, with those that are not filled before others that are. */
uint64_t fathom_stream_end(const struct fathom_stream *s);

/* Notes that the thread is another program from now on: its stacks begin anew. */
void fathom_stream_exec(struct fathom_stream *s);

/* Begins @s, whose thread has the stack pointer @sp; @from is whose copy it is, or NULL. */
void fathom_stream_begin(struct fathom_stream *s, uint64_t sp, uint64_t ticks,
			 const struct fathom_stream *from);

/*
 * Goes to the oldest record of a ring that keeps the latest ones, which is copied if its thread
 * may go on writing. What was known of calls is forgotten.
 */
void fathom_stream_rewind(struct fathom_stream *s);
/* Forgets the oldest posts but @n. */
void fathom_stream_forget_posts(struct fathom_stream *s, size_t n);

/*
 * Reads the name of the thread, unless that was done often enough. If the thread is gone, it has
 * that of @maker, which may be NULL.
 */
void fathom_stream_read_name(struct fathom_stream *s, const struct fathom_stream *maker);
/* Returns the name of the thread; "" if none was read. */
const char *fathom_stream_name(const struct fathom_stream *s);

/* Returns the bytes of stack in use at @sp, which an event was found at just now. */
uint64_t fathom_stream_stack(const struct fathom_stream *s, uint32_t sp);
/* Returns how many calls a thread is within that has the stack pointer @sp. */
uint32_t fathom_stream_depth(struct fathom_stream *s, uint32_t sp);
/*
 * Ends the calls whose return addresses have been overwritten since: @words are the low bits of @n
 * words of the thread's stack from @sp on. Returns whether that of the innermost call that is left
 * is among them.
 */
bool fathom_stream_end_returned(struct fathom_stream *s, uint32_t sp, const uint32_t *words,
				uint32_t n);
/*
 * Ends the calls that have no frame any more at a system call at @sp: @words, of which there are
 * @n, are those of frame records (FATHOM_TRACE_SYSCALL_FRAMES). Returns whether the innermost call
 * that is left has one.
 */
bool fathom_stream_end_unseen(struct fathom_stream *s, uint32_t sp, const uint32_t *words,
			      uint32_t n);
/*
 * Finds how deep @call is, which @item has recorded, and in *@ret_parent, enum fathom_trace_parent,
 * whether the innermost of the calls above it makes it. Those below it, and at its place, have
 * ended; so have those within the frame of the function that the return address names, as @spans
 * tell.
 */
uint32_t fathom_stream_enter(struct fathom_stream *s, const struct fathom_stream_call *call,
			     const struct fathom_stream_item *item,
			     struct fathom_site_ranges *spans, uint8_t *ret_parent);
/*
 * Returns whether @call, of @function, at a site of it, is one that was recorded before, where a
 * slot leads to it.
 */
bool fathom_stream_is_known(struct fathom_stream *s, const struct fathom_stream_call *call,
			    const struct fathom_trace_function *function);
/*
 * Ends the call at @sp, and those that it is in the middle of; returns how deep it was, and in
 * *@ret_ns when it began; false in *@ret_known if that was not recorded.
 */
uint32_t fathom_stream_leave(struct fathom_stream *s, uint32_t sp, uint64_t *ret_ns,
			     bool *ret_known);

/* Tells the program how far it was read, and wakes it if it waits. */
void fathom_stream_give_back(struct fathom_stream *s);
/* Shows the program that its reader takes records, maybe of others. */
void fathom_stream_show_reader(struct fathom_stream *s);
/* Lets a thread that waits for room sleep, if nothing forbids it. */
void fathom_stream_let_sleep(struct fathom_stream *s);
/* Returns how many events of it are lost. */
uint64_t fathom_stream_lost(const struct fathom_stream *s);
/* Frees the ring for another thread. */
void fathom_stream_free_ring(struct fathom_stream *s);

#endif
