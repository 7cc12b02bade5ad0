/* SPDX-License-Identifier: MIT */
/*
 * Samples that fathom top has taken: sums of each thread, stack and kind, and what came of them in
 * the last seconds. The recorder adds them, the view reads them, the naming thread names places:
 * whoever uses them holds the lock of struct top.
 *
 * All is bounded: top_samples_is_full() says when what is older than the window is to be forgotten.
 */
#ifndef FATHOM_CLI_TOP_SAMPLES_H
#define FATHOM_CLI_TOP_SAMPLES_H

#include <stdbool.h>

#include <fathom/profile.h>

#include "cli/frames_option.h"

#define TOP_NONE UINT32_MAX

/* A table from hashes to numbers of items, which the caller compares. */
struct top_index {
	struct top_slot {
		uint32_t hash;
		uint32_t number; /* of the item, plus 1; 0: the slot is free */
	} *slots;
	size_t n_slots; /* a power of two, or 0 */
	size_t n;
};

/* An array that grows. */
#define TOP_ARRAY_OF(type)   \
	struct {             \
		type *items; \
		size_t n;    \
		size_t room; \
	}

/* A module: a copy that outlives the recording. */
struct top_module {
	struct fathom_profile_module m;
	int32_t pid;  /* of a process that has it */
	uint64_t due; /* its places are not named before; monotonic */
};

/* A function, or what a thread waits for: rows of the view. */
struct top_function {
	char *name;
	char *linkage_name; /* NULL: none */
	uint32_t module;    /* TOP_NONE: none */
};

enum top_naming { TOP_TO_NAME, TOP_ASKED, TOP_NAMED };

/* A place in code, with its functions: more than one if calls are inlined, the innermost first. */
struct top_place {
	struct fathom_pc pc;
	uint32_t module;
	uint8_t naming; /* enum top_naming */
	uint32_t first; /* of its functions, in place_functions */
	uint32_t n_functions;
};

struct top_stack {
	uint32_t first; /* of its places, in frames; the innermost first */
	uint32_t n;
};

struct top_thread {
	int32_t pid;
	int32_t tid;
	char *name;
	char *process;
};

/* The sum of one thread, stack and part. */
struct top_cell {
	uint32_t thread;
	uint32_t stack;
	uint8_t part;    /* enum fathom_profile_part */
	uint32_t entry;  /* the last one, counted from the first that there was; TOP_NONE: none */
	uint64_t weight; /* since the recording began, in ns */
};

/* A time that a cell has taken. */
struct top_entry {
	uint32_t cell;
	uint64_t from; /* monotonic ns */
	uint64_t to;
	uint64_t weight; /* at most to - from */
};

/* A place as the recorder has it: by addresses that hold while it records. */
struct top_raw {
	const void *module;
	const void *name;
	struct fathom_pc pc;
	uint32_t place;
};

struct top_samples {
	enum frames_option shown;
	uint64_t window_ns;  /* how long entries are kept */
	uint64_t base;       /* monotonic time at which ns of samples are 0; 0: not known */
	uint64_t began;      /* since when weights of cells are summed up; monotonic */
	uint64_t generation; /* of numbers: all change when something is forgotten */
	uint64_t frozen;     /* entries are kept as if it were that time; 0: as it is now */
	uint64_t first_ns;   /* when the first recording began; monotonic */
	uint64_t
		whole_from; /* of earlier times, entries were dropped for lack of room; monotonic */
	size_t n_to_name;   /* places whose names are not known yet */
	/* Functions that stand for what has none. */
	uint32_t hidden;
	uint32_t unsampled;
	uint32_t unnamed;
	uint32_t no_reason;
	uint32_t no_processor;
	TOP_ARRAY_OF(struct top_module) modules;
	TOP_ARRAY_OF(struct top_function) functions;
	TOP_ARRAY_OF(struct top_place) places;
	TOP_ARRAY_OF(uint32_t) place_functions;
	TOP_ARRAY_OF(struct top_stack) stacks;
	TOP_ARRAY_OF(uint32_t) frames;
	TOP_ARRAY_OF(struct top_thread) threads;
	TOP_ARRAY_OF(struct top_cell) cells;
	TOP_ARRAY_OF(struct top_raw) raws;
	TOP_ARRAY_OF(uint32_t) scratch;
	struct top_entry *entries; /* a ring */
	size_t entries_room;       /* a power of two, or 0 */
	size_t first_entry;        /* counted from the first that there was */
	size_t n_entries;
	struct top_index by_module;
	struct top_index by_function;
	struct top_index by_place;
	struct top_index by_stack;
	struct top_index by_thread;
	struct top_index by_cell;
	struct top_index by_raw;
};

void top_samples_init(struct top_samples *s, uint64_t window_ns);
void top_samples_deinit(struct top_samples *s);

/* Returns the monotonic time in ns. */
uint64_t top_now(void);

/* Begins to take samples of a new recording: addresses of the last one are not used any more. */
void top_samples_begin(struct top_samples *s);

/* Takes a sample. */
void top_samples_add(struct top_samples *s, const struct fathom_record_sample *sample);

/* Returns whether it is time to forget what is older than the window. */
bool top_samples_is_full(const struct top_samples *s);

/* Forgets all that no entry of the window needs: sums begin anew. */
void top_samples_forget(struct top_samples *s);

/* Drops entries that ended before @ns. */
void top_samples_drop_before(struct top_samples *s, uint64_t ns);

static inline struct top_entry *top_entry_at(const struct top_samples *s, size_t i)
{
	return &s->entries[(s->first_entry + i) & (s->entries_room - 1)];
}

/* Returns the number of a function. @linkage_name may be NULL. */
uint32_t top_function_number(struct top_samples *s, uint32_t module, const char *name,
			     const char *linkage_name);

/* Returns the number of the function of that key, its linkage name or name; TOP_NONE: none. */
uint32_t top_function_find(const struct top_samples *s, const char *module, const char *key);

/* Gives place @number the functions of @answer; NULL: it has no names. */
void top_place_name(struct top_samples *s, uint32_t number, const struct fathom_answer *answer);

/* Returns the path of the module of @f, "" without one. */
const char *top_module_path(const struct top_samples *s, const struct top_function *f);

/* Returns the module kind of @f (enum fathom_profile_module_kind), 0 without one. */
uint8_t top_module_kind(const struct top_samples *s, const struct top_function *f);

/* Makes room for one more item of an array. */
void top_grow(void **items, size_t *room, size_t n, size_t size);

#define TOP_PUSH(array)                                                                   \
	((array)->n == (array)->room ? top_grow((void **)&(array)->items, &(array)->room, \
						(array)->n, sizeof *(array)->items)       \
				     : (void)0,                                           \
	 &(array)->items[(array)->n++])

#endif
