/* SPDX-License-Identifier: MIT */
/*
 * The address spaces of processes that are recorded: samples are walked in them, and each frame is
 * given its location.
 *
 * A space is looked at as it is now (the live process), and anew when code was mapped since. Of a
 * process that has ended before it was looked at, the maps that the kernel has reported serve. A
 * child that has not become another program shares the space of its parent.
 */
#ifndef FATHOM_PROFILE_RECORD_SPACE_H
#define FATHOM_PROFILE_RECORD_SPACE_H

#include "fathom/target.h"
#include "host/interpreters/interpreters.h"
#include "host/profile/perf_event.h"
#include "host/profile/stack_table.h"
#include "host/stack/walk.h"

struct fathom_capture;
struct fathom_record_space;

/* A map of code, as the kernel has reported it. */
struct fathom_record_map {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	char *path;
	uint8_t build_id[20];
	uint8_t build_id_size;
};

/*
 * Returns a space of process @pid with one user; NULL without memory. It is looked at when used.
 * @has_all_maps: all maps of code will be noted, from exec() on.
 */
struct fathom_record_space *fathom_record_space_create(struct fathom *session, int32_t pid,
						       bool has_all_maps);
/* Says that the process is of a file: whatever has its number now is another one. */
void fathom_record_space_set_past(struct fathom_record_space *s);
/*
 * Finds the JIT code that was at @pc when the sample was taken that is located. What *@ret points
 * to is valid until the next call.
 */
typedef bool (*fathom_record_jit_fn)(void *data, uint64_t pc, struct fathom_profile_symbol *ret);
/* Names the JIT code of a process of a file by @find; what shares or splits the space, too. */
void fathom_record_space_set_jit(struct fathom_record_space *s, fathom_record_jit_fn find,
				 void *data);
/* Adds a user: a child of the process. */
struct fathom_record_space *fathom_record_space_share(struct fathom_record_space *s);
/* Returns whether a child shares it. */
bool fathom_record_space_is_shared(const struct fathom_record_space *s);
/* Drops a user; the last one frees the space, which may be NULL. */
void fathom_record_space_drop(struct fathom_record_space *s);

/* Returns a space of process @pid with the maps of @s, for a child that maps code of its own. */
struct fathom_record_space *fathom_record_space_split(const struct fathom_record_space *s,
						      int32_t pid);

/* Notes that code was mapped. False without memory. */
bool fathom_record_space_map(struct fathom_record_space *s, const struct fathom_perf_record *r);

/* Descriptors that a space keeps while it is open, of a live process. */
#define FATHOM_RECORD_SPACE_DESCRIPTORS 5

/* Returns whether it is open, and when it was used last: by the monotonic clock, in ns. */
bool fathom_record_space_opened(const struct fathom_record_space *s);
int64_t fathom_record_space_used(const struct fathom_record_space *s);
/* Closes it until it is used again. */
void fathom_record_space_close(struct fathom_record_space *s);

/* Returns whether it was made for process @pid, and not for its parent. */
bool fathom_record_space_is_of(const struct fathom_record_space *s, int32_t pid);

/*
 * Returns what copies threads of the live process, as it is now; NULL: it cannot be looked at. It
 * is valid until the next call with @s.
 */
struct fathom_capture *fathom_record_space_capture(struct fathom_record_space *s);

/* Returns whether the process runs another program than when it was opened, or has ended. */
bool fathom_record_space_has_gone(const struct fathom_record_space *s);

/* Returns the view of the live process that the last call has used; NULL: none. */
struct fathom_view *fathom_record_space_view(struct fathom_record_space *s);

/*
 * Returns whether the word at @avma is of a lock that an interpreter has for all its threads; if
 * so, writes what is said of it to @to (host/interpreters/interpreters.h).
 */
bool fathom_record_space_lock(const struct fathom_record_space *s, int32_t tid, uint64_t avma,
			      char to[FATHOM_SCRIPT_LOCK]);

/* The result of walking a sample. */
struct fathom_record_stack {
	uint32_t node;    /* the innermost frame; 0: none */
	uint8_t stop;     /* enum fathom_stop */
	bool has_runtime; /* a frame is of an interpreter, whose frames can be read */
	bool has_script;  /* and they were: they are among the others */
	uint64_t shape;   /* of the native frames: equal where these are equal */
};

/*
 * Walks the stack of @r, a sample, and writes its frames to @table. FATHOM_E_MEMORY; whatever else
 * fails only shortens the stack.
 */
fathom_err fathom_record_space_walk(struct fathom_record_space *s,
				    const struct fathom_perf_record *r,
				    struct fathom_stack_table *table,
				    struct fathom_record_stack *ret);

/*
 * Returns the location of @pc, of @kind (enum fathom_pc_kind), a frame of a walk that the kernel
 * has made. FATHOM_E_MEMORY.
 */
fathom_err fathom_record_space_locate(struct fathom_record_space *s, uint64_t pc, uint8_t kind,
				      uint8_t trust, struct fathom_stack_table *table,
				      uint32_t *ret);

/* Returns whether the function at @pc, of @kind, is known to have no caller. @pc was located. */
bool fathom_record_space_is_outermost(const struct fathom_record_space *s, uint64_t pc,
				      uint8_t kind);

/* Copies of a thread's stacks, made a moment ago. */
struct fathom_record_copies {
	const struct fathom_registers *registers;
	const struct fathom_stack_piece *pieces; /* n of them */
	uint8_t n;
	bool is_running; /* it was stopped for it; else it sleeps */
	bool is_watched; /* mappings of code are noted by fathom_record_space_map() */
	bool is_again;   /* for the second time, as *@ret_again has asked for */
};

/*
 * Walks over @copies of a thread of the live process, and writes the frames to @table.
 * *@ret_outside is set if the walk has come to memory that was not copied. *@ret_again is set, and
 * nothing written, if other code may have been mapped meanwhile: the thread is to be copied again,
 * by fathom_record_space_capture(). FATHOM_E_MEMORY.
 */
fathom_err fathom_record_space_walk_copies(struct fathom_record_space *s,
					   const struct fathom_record_copies *copies,
					   struct fathom_stack_table *table,
					   struct fathom_record_stack *ret, uint64_t *ret_outside,
					   bool *ret_again);

/*
 * Returns whether the last walk has found an interpreter: the frames of its script were not read
 * when the thread was copied.
 */
bool fathom_record_space_has_new_script(const struct fathom_record_space *s);

#endif
