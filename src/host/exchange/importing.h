/* SPDX-License-Identifier: MIT */
/*
 * Profiles of other programs. An importer writes fathom's own format into memory, and that is read
 * as any profile is.
 */
#ifndef FATHOM_EXCHANGE_IMPORTING_H
#define FATHOM_EXCHANGE_IMPORTING_H

#include "host/base/progress.h"
#include "host/file/codec.h"
#include "host/file/file.h"
#include "host/profile/samples_writer.h"
#include "host/profile/stack_table.h"

/* The most frames of a stack; of longer ones the innermost are kept. */
#define FATHOM_IMPORT_FRAMES 4096

/* A profile that is being imported. */
struct fathom_import {
	struct fathom *session;
	const struct fathom_file *file;
	struct fathom_profile_writer writer;
	struct fathom_stack_table table;
	struct fathom_sink sink; /* what was written */
	struct fathom_pace pace;
	fathom_err err; /* of the sink */
};

/* A format. */
struct fathom_import_format {
	bool (*is_it)(struct fathom_bytes file); /* by its first bytes, and what they hold */
	fathom_err (*read)(struct fathom_import *i, struct fathom_errinfo *reterr);
};

/*
 * Converts @file, a profile of another program, to *@ret, which the caller closes. FATHOM_E_FORMAT
 * if it is none.
 */
fathom_err fathom_import(struct fathom *session, const struct fathom_file *file,
			 struct fathom_file **ret, struct fathom_errinfo *reterr);

bool fathom_is_collapsed(struct fathom_bytes file);
fathom_err fathom_import_collapsed(struct fathom_import *i, struct fathom_errinfo *reterr);
bool fathom_is_cpuprofile(struct fathom_bytes file);
fathom_err fathom_import_cpuprofile(struct fathom_import *i, struct fathom_errinfo *reterr);
bool fathom_is_perf_file(struct fathom_bytes file);
fathom_err fathom_import_perf(struct fathom_import *i, struct fathom_errinfo *reterr);
bool fathom_is_pprof(struct fathom_bytes file);
fathom_err fathom_import_pprof(struct fathom_import *i, struct fathom_errinfo *reterr);

/* For importers. */

/* Fails because @what is wrong with the file at @off. */
fathom_err fathom_import_fail(const struct fathom_import *i, fathom_err err, uint64_t off,
			      const char *what, struct fathom_errinfo *reterr);
/* Fails because @what is wrong with line @line of the file, from 1. */
fathom_err fathom_import_fail_line(const struct fathom_import *i, uint64_t line, const char *what,
				   struct fathom_errinfo *reterr);

/*
 * Returns why the import cannot go on: the caller has given it up, or what it writes has failed.
 * To be asked once for each sample or so.
 */
fathom_err fathom_import_check(struct fathom_import *i, struct fathom_errinfo *reterr);

/* Ends the profile, @ns after it began, unless the file was cut: then more is missing. */
void fathom_import_end(struct fathom_import *i, uint64_t ns);

/* Fails because what is read does not fit the session's memory budget. */
fathom_err fathom_import_fail_budget(const struct fathom_import *i, struct fathom_errinfo *reterr);

/* Writes a fact about the recording, unless @text is empty. */
void fathom_import_about(struct fathom_import *i, const char *key, struct fathom_str text);
void fathom_import_about_number(struct fathom_import *i, const char *key, uint64_t value);

/*
 * These return numbers as those of stack_table.h do. Without memory, what they return is of no use,
 * and fathom_import_check() fails.
 */
uint32_t fathom_import_symbol(struct fathom_import *i, const struct fathom_profile_symbol *s);
uint32_t fathom_import_module(struct fathom_import *i, const struct fathom_profile_module *m);
uint32_t fathom_import_location(struct fathom_import *i, const struct fathom_profile_location *l,
				uint32_t symbol);
uint32_t fathom_import_node(struct fathom_import *i, uint32_t caller, uint32_t location);

/* Returns the text @s. */
static inline struct fathom_str fathom_import_str(const char *s)
{
	return (struct fathom_str){ s, (uint32_t)strlen(s) };
}

#endif
