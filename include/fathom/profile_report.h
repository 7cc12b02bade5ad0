/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Reports of profiles: sums of the weights of their samples, by function and along stacks.
 *
 * A report has rows, what is summed up by (functions, lines, modules, threads, processes,
 * reasons of waits or cgroups), and a tree of what leads to what. A row's self weight is that of
 * the samples which were in it, its total weight that of the samples which were in it or in what it
 * has called; a function that calls itself counts once for each sample.
 *
 * Weights without a place have rows of their own, so that all is accounted for: see enum
 * fathom_report_row_kind.
 */
#ifndef FATHOM_PROFILE_REPORT_H
#define FATHOM_PROFILE_REPORT_H

#include <fathom/error.h>
#include <fathom/profile_record.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fathom_profile;
struct fathom_annotation_options;

/** A report. Opaque. */
struct fathom_report;

/** By what weights are summed up. Enumerators are never removed or renumbered. */
enum fathom_report_key {
	/** by linkage name within the path of a module; inlined functions are functions */
	FATHOM_REPORT_BY_FUNCTION = 0,
	FATHOM_REPORT_BY_LINE = 1,    /**< the same, and by file and line in it */
	FATHOM_REPORT_BY_MODULE = 2,  /**< by path */
	FATHOM_REPORT_BY_THREAD = 3,  /**< the tree has threads, and below them functions */
	FATHOM_REPORT_BY_PROCESS = 4, /**< likewise */
	/**
	 * by what threads wait for, likewise; all samples on a processor have one row. Reasons are
	 * whole texts, with the object that is waited for.
	 */
	FATHOM_REPORT_BY_REASON = 5,
	FATHOM_REPORT_BY_CGROUP = 6, /**< by that of the process, likewise */
	/** by who has ended the wait: a thread, or an interrupt; likewise, as by reason */
	FATHOM_REPORT_BY_WAKER = 7
};

/** Which tree is made. Enumerators are never removed or renumbered. */
enum fathom_report_shape {
	FATHOM_REPORT_TOP_DOWN = 0,  /**< from the outermost frame to what it calls */
	FATHOM_REPORT_BOTTOM_UP = 1, /**< from the innermost frame to its callers */
	/** from the functions of fathom_report_options.of to their callers */
	FATHOM_REPORT_CALLERS = 2,
	FATHOM_REPORT_CALLEES = 3 /**< from the functions of that to what they call */
};

/** Kinds of rows. Enumerators are never removed or renumbered. */
enum fathom_report_row_kind {
	FATHOM_REPORT_ROW_CODE = 0, /**< a function, line or module */
	FATHOM_REPORT_ROW_THREAD = 1,
	FATHOM_REPORT_ROW_PROCESS = 2,
	/** called by the stack: the kernel, where the recorder may not look */
	FATHOM_REPORT_ROW_KERNEL_HIDDEN = 3,
	FATHOM_REPORT_ROW_UNSAMPLED = 4,  /**< it was counted, but no sample says where */
	FATHOM_REPORT_ROW_INCOMPLETE = 5, /**< stands for the callers that stacks lack */
	FATHOM_REPORT_ROW_REASON = 6,
	FATHOM_REPORT_ROW_CGROUP = 7,
	FATHOM_REPORT_ROW_WAKER = 8 /**< a thread, with pid and tid, or what else ends waits */
};

/** A function, or whatever else weights are summed up by. Texts are NULL if they are not known. */
struct fathom_report_row {
	const char *name;         /**< such as "main", "??", "[not sampled]"; never NULL */
	const char *linkage_name; /**< NULL where only a plain name is known */
	const char *module;       /**< path */
	const char *file;         /**< by line only */
	uint32_t line;            /**< by line only; 0: none */
	int32_t pid;              /**< of threads, processes and wakers */
	int32_t tid;              /**< of threads and wakers */
	uint8_t kind;             /**< enum fathom_report_row_kind */
	uint8_t stop;             /**< of FATHOM_REPORT_ROW_INCOMPLETE: enum fathom_stop */
	uint8_t reserved[2];
	uint64_t self;  /**< weight; of threads and all that is around functions: all of it */
	uint64_t total; /**< weight */
	uint64_t self_samples;  /**< whose weight is self */
	uint64_t total_samples; /**< whose weight is total */
	const char *cgroup;     /**< of threads, processes and cgroups: the path, if it is known */
};

/** A node of the tree. */
struct fathom_report_node {
	const struct fathom_report_row *row; /**< NULL: node 0, which stands for all */
	uint32_t parent;                     /**< index */
	uint32_t depth;                      /**< of node 0: 0 */
	uint64_t self;                       /**< weight of stacks that end here */
	uint64_t total;                      /**< weight of stacks that lead here */
	uint64_t left_out;   /**< weight of the branches below it that are too light to be told */
	uint32_t n_left_out; /**< these branches */
	uint32_t reserved;
};

/** Sums of a report. */
struct fathom_report_sums {
	uint64_t weight;    /**< of all samples of the times that were asked for */
	uint64_t shown;     /**< of those that the choice of functions has left */
	uint64_t hidden;    /**< of weight: FATHOM_PROFILE_KERNEL_HIDDEN */
	uint64_t unsampled; /**< of weight: FATHOM_PROFILE_UNSAMPLED */
	uint64_t n_samples; /**< whose weight is weight */
	uint64_t n_stacks;  /**< of them, with a stack */
	uint64_t n_whole;   /**< of them, with a whole one; 0 if has_unknown_ends of the profile */
};

/** Times that are summed up. Enumerators are never removed or renumbered. */
enum fathom_report_time {
	FATHOM_REPORT_CPU = 0,     /**< on a processor, in the unit of the event */
	FATHOM_REPORT_WAITING = 1, /**< waiting, also for a processor; in nanoseconds */
	/** both: the time that all threads were there; of profiles whose unit is ns */
	FATHOM_REPORT_WALL = 2
};

/** Options of a report; as struct fathom_options. Queries are those of fathom_find(). */
struct fathom_report_options {
	size_t size;
	uint32_t key;   /**< enum fathom_report_key */
	uint32_t shape; /**< enum fathom_report_shape */
	/** Branches of less than so many millionths of all weight are left out of the tree. */
	uint32_t least_share;
	uint32_t time;    /**< enum fathom_report_time */
	uint64_t from_ns; /**< since the recording began */
	uint64_t to_ns;   /**< samples before it; default: all */
	/**
	 * These functions only: the weight of others is their callers', as if they were inlined.
	 * Samples in none of them are left out.
	 */
	const char *const *only;
	size_t n_only;
	const char *const *except; /**< not these: likewise */
	size_t n_except;
	const char *const *under; /**< samples in these only; stacks begin with them */
	size_t n_under;
	const char *of; /**< for the shapes that need it */
	/**
	 * For FATHOM_PROFILE_PAGE only: how its functions are annotated, or NULL; query, filters
	 * and limit have to be 0.
	 */
	const struct fathom_annotation_options *annotation;
	uint64_t reserved[3];
};

/**
 * Makes a report of @profile. Names are those that it has: fathom_profile_resolve() finds them.
 * @options may be NULL.
 *
 * Safety: mt-safe
 * Memory: *@ret_report is the caller's, to be freed with fathom_report_free(); it does not need
 *	@profile any more
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT; FATHOM_E_NOT_FOUND: the profile has none of the functions
 *	of only, under or of; FATHOM_E_UNSUPPORTED: a query for a file or line; FATHOM_E_LIMIT: the
 *	tree does not fit the session's memory budget, or is too deep; FATHOM_E_CHANGED;
 *	FATHOM_E_CANCELLED; FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_report_create(const struct fathom_profile *profile,
					   const struct fathom_report_options *options,
					   struct fathom_report **ret_report,
					   struct fathom_errinfo *reterr);

/**
 * Safety: mt-safe per object
 * Memory: frees @report, which may be NULL, and all that it has returned
 * Returns: nothing
 */
FATHOM_API void fathom_report_free(struct fathom_report *report);

/**
 * Returns the rows that have a weight: by self weight, then by total weight, the highest first,
 * then by name.
 *
 * Safety: mt-safe
 * Memory: the result belongs to @report
 * Returns: *@ret_n rows
 */
FATHOM_API const struct fathom_report_row *fathom_report_rows(const struct fathom_report *report,
							      size_t *ret_n);

/**
 * Returns the tree: each node is followed by those below it, of siblings that of the highest weight
 * first. By threads and all that is around functions, rows of functions are reached through nodes
 * only.
 *
 * Safety: mt-safe
 * Memory: the result belongs to @report
 * Returns: *@ret_n nodes, at least 1
 */
FATHOM_API const struct fathom_report_node *fathom_report_nodes(const struct fathom_report *report,
								size_t *ret_n);

/**
 * Safety: mt-safe
 * Memory: the result belongs to @report
 * Returns: never NULL
 */
FATHOM_API const struct fathom_report_sums *fathom_report_get_sums(
	const struct fathom_report *report);

/** Formats of other programs. Enumerators are never removed or renumbered. */
enum fathom_profile_format {
	/**
	 * Collapsed stacks, of flame graphs: "PROCESS;FUNCTION;FUNCTION WEIGHT" lines, the
	 * outermost function first, sorted by path. Functions of the kernel end in _[k]. Paths have
	 * at most 1,024 functions; the weight of what is deeper is that of the last one.
	 */
	FATHOM_PROFILE_COLLAPSED = 1,
	/** profile.proto of pprof, compressed by gzip where zlib is */
	FATHOM_PROFILE_PPROF = 2,
	/**
	 * JSON of speedscope: a profile for each thread, with its samples in the order of time; a
	 * function has a frame for each of its lines. Equal stacks that follow each other are one.
	 */
	FATHOM_PROFILE_SPEEDSCOPE = 3,
	/**
	 * JSON of the Firefox Profiler, the processed profile format of version 47: threads with
	 * samples and times, and waits as markers with their stacks
	 */
	FATHOM_PROFILE_FIREFOX = 4,
	/** a trace of Perfetto: samples of perf with times, and waits as slices of threads */
	FATHOM_PROFILE_PERFETTO = 5,
	/**
	 * A flame graph as an SVG picture of the paths of FATHOM_PROFILE_COLLAPSED, without script,
	 * for light and dark. Boxes below 0.2 px, or above 256 levels or 20,000 boxes, are summed.
	 */
	FATHOM_PROFILE_SVG = 6,
	FATHOM_PROFILE_SVG_BARS = 7, /**< the 20 functions of the most self weight, likewise */
	/**
	 * A page of HTML with a viewer, which needs nothing else; it has all times. Source lines
	 * and instructions are those of the functions that have 0.5 % of the weight on a processor
	 * or more, at most 200, and 2 MiB.
	 */
	FATHOM_PROFILE_PAGE = 8
};

/**
 * Passes @profile to @write in the format of another program. Each function has the weight that a
 * report by function shows. Of @options, which may be NULL, key, shape, least_share and of have to
 * be 0.
 *
 * Safety: mt-safe
 * Memory: none is kept
 * Returns: FATHOM_OK; FATHOM_E_UNSUPPORTED: this build does not write the format (it lacks nanopb),
 *	or a query for a file or line; FATHOM_E_OS: a failed write; the errors of
 *	fathom_report_create()
 */
FATHOM_API fathom_err fathom_profile_export(const struct fathom_profile *profile,
					    enum fathom_profile_format format,
					    const struct fathom_report_options *options,
					    fathom_profile_write_fn write, void *data,
					    struct fathom_errinfo *reterr);

/**
 * Passes a comparison of @a with @b to @write, in a format that has such: FATHOM_PROFILE_PAGE.
 * Functions of both are one as fathom_diff_create() says. Of @options, filters for both, which may
 * be NULL, key, shape, least_share and of have to be 0.
 *
 * Safety: mt-safe
 * Memory: none is kept
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT, also if the profiles have weights of different units, or
 *	the format compares nothing; the errors of fathom_profile_export()
 */
FATHOM_API fathom_err fathom_diff_export(const struct fathom_profile *a,
					 const struct fathom_profile *b,
					 enum fathom_profile_format format,
					 const struct fathom_report_options *options,
					 fathom_profile_write_fn write, void *data,
					 struct fathom_errinfo *reterr);

/** Divisors of the weights of two profiles. Enumerators are never removed or renumbered. */
enum fathom_diff_per {
	FATHOM_DIFF_PER_CPU = 0,  /**< all weight of the profile: rows have shares of it, up to 1 */
	FATHOM_DIFF_PER_WALL = 1, /**< the seconds that the recording took */
	FATHOM_DIFF_PER_COUNT = 2 /**< a number of the caller, such as of requests */
};

/** Options of a comparison; as struct fathom_options. */
struct fathom_diff_options {
	size_t size;
	uint32_t per; /**< enum fathom_diff_per */
	uint32_t reserved1;
	uint64_t counts[2]; /**< for FATHOM_DIFF_PER_COUNT: of A and B, not 0 */
	/** Filters for both, or NULL; key, shape, least_share and of have to be 0. */
	const struct fathom_report_options *filters;
	uint64_t reserved[4];
};

/** Verdicts of a comparison on a function. Enumerators are never removed or renumbered. */
enum fathom_diff_verdict {
	FATHOM_DIFF_NOT_SIGNIFICANT = 0, /**< chance may have made the change */
	FATHOM_DIFF_SLOWER = 1,          /**< it has more in B */
	FATHOM_DIFF_FASTER = 2,          /**< it has less in B */
	/** There are waits in the comparison, which are no samples: nothing is tested then. */
	FATHOM_DIFF_NOT_TESTED = 3
};

/** A function of two profiles, A and B. Arrays have A's value first. */
struct fathom_diff_row {
	const char *name;         /**< never NULL */
	const char *linkage_name; /**< NULL where only a plain name is known */
	/** the last part of its path or, if several modules have that, the path; or NULL */
	const char *module;
	uint64_t self[2]; /**< weights */
	uint64_t self_samples[2];
	double values[2]; /**< self weights, divided as options.per says */
	double change;    /**< values[1] - values[0] */
	/** the 95 % interval of change, of this row alone; of FATHOM_DIFF_NOT_TESTED: change */
	double low;
	double high;
	/**
	 * How probable a change is that is as large, if nothing has changed: for all rows together
	 * (Holm). Up to 0.05 the change is significant. Of FATHOM_DIFF_NOT_TESTED: 1.
	 */
	double chance;
	uint8_t verdict; /**< enum fathom_diff_verdict */
	uint8_t kind;    /**< enum fathom_report_row_kind */
	uint8_t reserved[6];
};

/** Sums of a comparison. Arrays have A's value first. */
struct fathom_diff_sums {
	uint64_t weight[2];    /**< of all samples in the time that was asked for */
	uint64_t n_samples[2]; /**< whose weight is weight */
	/**
	 * Samples of equal weight that would be as exact: (sum of weights)^2 / sum of their squares
	 */
	double effective[2];
	double divisors[2]; /**< of self weights, for values */
	uint64_t n_slower;  /**< rows */
	uint64_t n_faster;  /**< rows */
};

/** A comparison. Opaque. */
struct fathom_diff;

/**
 * Compares the self weights of the functions of @a and @b. Functions are one if they have the same
 * linkage name, and are in modules that match: of the same path or, if each profile has one only
 * of that name, of the same file name, or of names that differ in the version after ".so". So two
 * builds compare. @options may be NULL.
 *
 * Samples are taken for independent draws. A change is significant if an exact test (of Fisher for
 * shares, else the binomial one) of the effective numbers of samples says so for all functions
 * together: if nothing has changed, in 95 of 100 comparisons nothing is significant. Changes that
 * are not made by drawing samples, such as of a machine that other programs use, are changes.
 *
 * Waits are all measured, so their changes are not made by drawing samples: with a time that has
 * waits, no change is tested. Reasons of waits are one if they differ in addresses, numbers of
 * threads, processes, descriptors and inodes, or ports of clients only, which each run has anew;
 * their names have * for these.
 *
 * Safety: mt-safe
 * Memory: *@ret_diff is the caller's, to be freed with fathom_diff_free(); it does not need the
 *	profiles any more
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT, also if the profiles have weights of different units; the
 *	errors of fathom_report_create(), FATHOM_E_NOT_FOUND only if neither has such functions
 */
FATHOM_API fathom_err fathom_diff_create(const struct fathom_profile *a,
					 const struct fathom_profile *b,
					 const struct fathom_diff_options *options,
					 struct fathom_diff **ret_diff,
					 struct fathom_errinfo *reterr);

/**
 * Safety: mt-safe per object
 * Memory: frees @diff, which may be NULL, and all that it has returned
 * Returns: nothing
 */
FATHOM_API void fathom_diff_free(struct fathom_diff *diff);

/**
 * Returns the functions that have a self weight in either: those with a significant change first,
 * then those with the largest change.
 *
 * Safety: mt-safe
 * Memory: the result belongs to @diff
 * Returns: *@ret_n rows
 */
FATHOM_API const struct fathom_diff_row *fathom_diff_rows(const struct fathom_diff *diff,
							  size_t *ret_n);

/**
 * Safety: mt-safe
 * Memory: the result belongs to @diff
 * Returns: never NULL
 */
FATHOM_API const struct fathom_diff_sums *fathom_diff_get_sums(const struct fathom_diff *diff);

#ifdef __cplusplus
}
#endif

#endif
