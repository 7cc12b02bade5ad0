/* SPDX-License-Identifier: MIT */
/*
 * The data of a page, whatever is in it: facts, functions, the tree of what calls what, threads,
 * what happened in them (samples of a profile, or calls of a trace), and source. The columns stand
 * in the order in which page/data.js reads them.
 */
#ifndef FATHOM_PAGE_VIEWER_DATA_H
#define FATHOM_PAGE_VIEWER_DATA_H

#include "host/page/data_columns.h"
#include "host/page/merged_tree.h"
#include "host/page/summed_samples.h"

/* The columns, in the order of the file; texts are the last one. */
enum {
	FATHOM_PAGE_FACT_SIDE,
	FATHOM_PAGE_FACT_KEY,
	FATHOM_PAGE_FACT_TEXT,
	FATHOM_PAGE_FUNCTION_NAME,
	FATHOM_PAGE_FUNCTION_LINKAGE,
	FATHOM_PAGE_FUNCTION_MODULE,
	FATHOM_PAGE_FUNCTION_KIND,
	FATHOM_PAGE_PLACE_FILE,
	FATHOM_PAGE_PLACE_LINE,
	FATHOM_PAGE_PLACE_SPOT,
	FATHOM_PAGE_NODE_PARENT,
	FATHOM_PAGE_NODE_FUNCTION,
	FATHOM_PAGE_THREAD_SIDE,
	FATHOM_PAGE_THREAD_PID,
	FATHOM_PAGE_THREAD_TID,
	FATHOM_PAGE_THREAD_NAME,
	FATHOM_PAGE_THREAD_PROCESS,
	FATHOM_PAGE_SAMPLE_NS,
	FATHOM_PAGE_SAMPLE_WEIGHT,
	FATHOM_PAGE_SAMPLE_THREAD,
	FATHOM_PAGE_SAMPLE_NODE,
	FATHOM_PAGE_SAMPLE_PLACE,
	FATHOM_PAGE_SAMPLE_PART,
	FATHOM_PAGE_SAMPLE_COUNT,
	FATHOM_PAGE_SAMPLE_MORE,
	/* Of functions with source; their lines and instructions end before these numbers. */
	FATHOM_PAGE_SOURCE_FUNCTION,
	FATHOM_PAGE_SOURCE_SIDE,
	FATHOM_PAGE_SOURCE_WHY,
	FATHOM_PAGE_SOURCE_LINES,
	FATHOM_PAGE_SOURCE_CODE,
	FATHOM_PAGE_LINE_FILE,
	FATHOM_PAGE_LINE_NUMBER,
	FATHOM_PAGE_LINE_TEXT,
	FATHOM_PAGE_CODE_ADDRESS,
	FATHOM_PAGE_CODE_TEXT,
	FATHOM_PAGE_CODE_LINE, /* among those of its function, from 1 on; 0: it has none */
	FATHOM_PAGE_CODE_HEAD, /* what is inlined there, and into what */
	FATHOM_PAGE_CODE_SPOT,
	FATHOM_PAGE_TEXTS,
	FATHOM_PAGE_COLUMNS
};

/* Kinds of functions: those of modules (enum fathom_profile_module_kind), and what is no code. */
enum { FATHOM_PAGE_NO_CODE = 8 };

/* All zero but what the tree and the samples say, it is empty. */
struct fathom_page_data {
	struct fathom_page_texts texts;
	struct fathom_page_column columns[FATHOM_PAGE_COLUMNS];
	struct fathom_page_tree tree;
	struct fathom_page_samples samples;
	struct fathom_key_map by_name; /* functions by name and module */
	uint32_t n_functions;
	bool no_memory;
};

/* A function, as the page shows it. */
struct fathom_page_function {
	const char *name;
	const char *linkage_name;
	const char *module;
	uint32_t module_key; /* functions of one name are one if this is the same */
	uint32_t kind;
};

void fathom_page_fact(struct fathom_page_data *d, size_t side, const char *key, const char *format,
		      ...) __attribute__((format(printf, 4, 5)));
/* Returns the number of @f; 0 without memory. */
uint32_t fathom_page_function(struct fathom_page_data *d, const struct fathom_page_function *f);
void fathom_page_thread(struct fathom_page_data *d, size_t side, int32_t pid, int32_t tid,
			const char *name, const char *process);
/* Makes the columns of nodes, samples and texts: all else stands in its columns. */
void fathom_page_data_end(struct fathom_page_data *d);
/* Returns the error of what was collected. */
fathom_err fathom_page_data_check(const struct fathom_page_data *d, struct fathom_errinfo *reterr);
/* Writes the page. */
fathom_err fathom_page_data_write(const struct fathom_page_data *d,
				  int (*write)(void *data, const void *bytes, size_t n), void *data,
				  struct fathom_errinfo *reterr);
void fathom_page_data_deinit(struct fathom_page_data *d);

#endif
