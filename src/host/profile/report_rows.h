/* SPDX-License-Identifier: MIT */
/*
 * The rows of a report. Names and paths are numbered, so that equal ones are equal numbers; a
 * location becomes a chain of frames, each of which has a row.
 */
#ifndef FATHOM_PROFILE_REPORT_ROWS_H
#define FATHOM_PROFILE_REPORT_ROWS_H

#include "fathom/profile_report.h"
#include "host/base/array.h"
#include "host/base/key_map.h"
#include "host/base/name_table.h"
#include "host/events/named_choices.h"
#include "host/profile/in_memory.h"

/* For what a function was chosen. */
enum { FATHOM_REPORT_WANTED = 1u << 0, FATHOM_REPORT_UNDER = 1u << 1, FATHOM_REPORT_OF = 1u << 2 };

/* A frame of a location. */
struct fathom_report_frame {
	uint32_t row;
	uint32_t chosen; /* FATHOM_REPORT_ bits of its function */
};

/* Stops that have a row: those of enum fathom_stop, and one for all that are not known. */
#define FATHOM_REPORT_STOPS (FATHOM_STOP_LIMIT + 2)

struct fathom_report_function {
	uint32_t row; /* by function; else FATHOM_KEY_NEW */
	uint32_t chosen;
};

/* All zero but profile and options, there are none. */
struct fathom_report_rows {
	const struct fathom_profile *profile;
	const struct fathom_report_options *options;
	FATHOM_ARRAY_OF(struct fathom_report_row);
	struct fathom_name_table texts;
	struct fathom_key_map by_pointer; /* numbers of texts */
	struct fathom_key_map by_name;    /* functions by name and module */
	struct fathom_key_map by_file;    /* places by file and line */
	struct fathom_key_map by_place;   /* rows by function and place */
	struct fathom_key_map by_module;  /* rows */
	struct fathom_key_map by_number;  /* identities of threads by PID and TID */
	struct fathom_key_map by_thread;  /* rows by identity and name */
	struct fathom_key_map by_group;   /* rows of reasons or cgroups by name */
	struct {
		FATHOM_ARRAY_OF(struct fathom_report_function);
	} functions;
	struct {
		FATHOM_ARRAY_OF(struct fathom_report_frame);
	} frames;         /* of all locations, each the innermost first */
	uint32_t *chains; /* index in frames by location, and the end */
	/* Groups are rows around all functions: at most one of these is not NULL. */
	uint32_t *groups;  /* by thread: rows of threads, processes or cgroups */
	uint32_t *reasons; /* by location: rows of waits for it; FATHOM_NONE: it is code */
	uint32_t *wakers;  /* by thread: rows of waits that it has ended */
	uint32_t running;  /* row of samples on a processor, by reason or waker; so are these */
	uint32_t ready;
	uint32_t interrupt;
	uint32_t not_known;
	uint32_t hidden; /* row; so are these */
	uint32_t unsampled;
	uint32_t incomplete[FATHOM_REPORT_STOPS];
	bool has_own; /* rows that are no functions are shown */
	bool has_only;
	bool has_under;
	bool has_choice;  /* functions have to be compared with queries */
	uint32_t matched; /* bits 1 << enum fathom_choice that chose a function */
	struct fathom_choices choices;
	struct fathom_named_choices named;
	bool no_memory;
};

/* Makes the rows of all locations and groups. @r is all zero but profile and options. */
fathom_err fathom_report_rows_init(struct fathom_report_rows *r, struct fathom_errinfo *reterr);
/* Frees all but rows and texts, which a report needs. */
void fathom_report_rows_trim(struct fathom_report_rows *r);
void fathom_report_rows_deinit(struct fathom_report_rows *r);

/* Returns the row of the group that @s is in, with @part; FATHOM_NONE: there are no groups. */
uint32_t fathom_report_group_of(const struct fathom_report_rows *r,
				const struct fathom_profile_sample *s, uint8_t part);

/* Returns whether rows of @kind, enum fathom_report_row_kind, are groups. */
static inline bool fathom_report_is_group(uint8_t kind)
{
	return kind == FATHOM_REPORT_ROW_THREAD || kind == FATHOM_REPORT_ROW_PROCESS ||
	       kind == FATHOM_REPORT_ROW_REASON || kind == FATHOM_REPORT_ROW_CGROUP ||
	       kind == FATHOM_REPORT_ROW_WAKER;
}

/* Returns whether there are groups. */
static inline bool fathom_report_has_groups(const struct fathom_report_rows *r)
{
	return r->groups || r->reasons || r->wakers;
}

/* For report_rows.c and report_groups.c. */

/* Returns the number of @s plus 1; 0 if it is NULL or "". */
uint32_t fathom_report_number_text(struct fathom_report_rows *r, const char *s);
/* Returns a copy of @s that lives as long as @r; NULL if it is NULL or "". */
const char *fathom_report_keep_text(struct fathom_report_rows *r, const char *s);
/* Appends @row; returns its number. */
uint32_t fathom_report_add_row(struct fathom_report_rows *r, const struct fathom_report_row *row);
/* Returns where the number for @key is stored; @spare without memory. */
uint32_t *fathom_report_number_at(struct fathom_report_rows *r, struct fathom_key_map *map,
				  uint64_t key, uint32_t *spare);
/* Makes the groups that the options ask for; false without memory. */
bool fathom_report_add_groups(struct fathom_report_rows *r);

/* Returns the frames of location @i, the innermost first, and their number in *@ret_n. */
static inline const struct fathom_report_frame *fathom_report_chain(
	const struct fathom_report_rows *r, uint32_t i, uint32_t *ret_n)
{
	*ret_n = r->chains[i + 1] - r->chains[i];
	return r->frames.items + r->chains[i];
}

#endif
