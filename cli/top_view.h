/* SPDX-License-Identifier: MIT */
/* The rows of fathom top at one moment: sums of the samples, as copies that need no lock. */
#ifndef FATHOM_CLI_TOP_VIEW_H
#define FATHOM_CLI_TOP_VIEW_H

#include "cli/top_samples.h"

/* A kind of rows. */
enum top_list { TOP_FUNCTIONS, TOP_THREADS, TOP_WAITS, TOP_PATHS, TOP_N_LISTS };

/* Times that functions are summed up by. */
enum top_time { TOP_RUNNING, TOP_WAITING, TOP_BOTH, TOP_N_TIMES };

/* Keys by which rows are sorted; by time: what a list has as its first time. */
enum top_sort { TOP_BY_SELF, TOP_BY_TOTAL, TOP_BY_READY, TOP_BY_NAME, TOP_N_SORTS };

/*
 * A row. Functions have the time in them and with what they call, threads the time on a processor
 * as self, reasons of waits the time that was waited as self.
 */
struct top_row {
	const char *name;         /* never NULL */
	const char *linkage_name; /* NULL: none */
	const char *module;       /* path, "": none; of threads the process */
	const char *reason;       /* what a thread has waited for most; "": nothing */
	uint64_t self;            /* ns; so are the others */
	uint64_t total;
	uint64_t waited; /* of threads */
	uint64_t ready;  /* of threads: they waited for a processor */
	int32_t pid;
	int32_t tid;
	uint32_t depth;     /* of paths; 0: the function itself */
	uint32_t n_threads; /* of reasons: that have waited for it */
};

/* A choice of samples, and how rows are sorted. */
struct top_choice {
	uint64_t until; /* of samples up to this, monotonic; 0: to now */
	bool is_all;    /* since the recording began; else of the window */
	uint32_t time;  /* enum top_time */
	uint32_t sort[TOP_N_LISTS];
	int32_t pid; /* of the one thread; 0: of all */
	int32_t tid;
	/* The function of the paths; NULL: none are made. */
	const char *module;
	const char *key; /* its linkage name, or name */
	bool is_down;    /* to what it calls; else to its callers */
};

struct top_rows {
	struct top_row *items;
	size_t n;
	size_t room;
};

struct top_view {
	struct top_rows lists[TOP_N_LISTS];
	uint64_t span_ns; /* the time that it is of */
	uint64_t running; /* ns, of all threads together; so are the others */
	uint64_t waited;
	uint64_t ready;
	uint64_t shown;       /* of the time that functions are summed up by */
	uint64_t paths_total; /* of the function of the paths */
	size_t n_unnamed;     /* places whose names are not known yet */
	struct top_text_block {
		struct top_text_block *next;
		size_t n;
		char text[4096];
	} *texts;
};

/*
 * Makes *@ret_view of the samples up to @until, monotonic ns. Names of threads and functions are
 * copied. Free it by top_view_deinit().
 */
void top_view_make(const struct top_samples *s, const struct top_choice *choice, uint64_t until,
		   struct top_view *ret_view);
void top_view_deinit(struct top_view *v);

#endif
