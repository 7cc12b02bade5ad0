/* SPDX-License-Identifier: MIT */
/*
 * Directories of perf record --threads (Linux, tools/perf/util/data.c): a file "data" as other
 * files of perf record, and "data.0", "data.1" and so on with the records of each thread of perf.
 */
#ifndef FATHOM_EXCHANGE_PERF_DIRECTORY_H
#define FATHOM_EXCHANGE_PERF_DIRECTORY_H

#include "host/base/context.h"
#include "host/file/file.h"

/* Returns whether @path is a directory with a file "data". */
bool fathom_is_perf_directory(const char *path);

/*
 * Makes one file, in memory, of those in the directory @path: "data" with the records of all, each
 * file's begun by a record FATHOM_PERF_PART. FATHOM_E_LIMIT over the memory budget;
 * FATHOM_E_CORRUPT; FATHOM_E_OS.
 */
fathom_err fathom_perf_directory_open(struct fathom *session, const char *path,
				      struct fathom_file **ret, struct fathom_errinfo *reterr);

#endif
