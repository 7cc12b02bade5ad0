/* SPDX-License-Identifier: MIT */
/*
 * The files that perf reads: /tmp/perf-PID.map, lines of text, and jit-PID.dump, records with code
 * (tools/perf/Documentation/jit-interface.txt and jitdump-specification.txt of Linux). Each commit
 * is one write. Under the registry's lock.
 */
#ifndef FATHOM_PUBLISH_PERF_FILES_H
#define FATHOM_PUBLISH_PERF_FILES_H

#include "host/publish/publish.h"

/* Code that came, or that moved from somewhere. */
struct fathom_jit_news {
	struct fathom_jit_entry *entry;
	uint64_t from; /* 0: it is new */
};

struct fathom_jit_news_array {
	FATHOM_ARRAY_OF(struct fathom_jit_news);
};

/*
 * Opens the files of the consumers @on for this process, or for the child that it has become; false
 * if they were open. What fails is a note.
 */
bool fathom_jit_files_open(struct fathom_jit_registry *r, uint32_t on);

void fathom_jit_perf_map_write(struct fathom_jit_registry *r,
			       const struct fathom_jit_news_array *news);
void fathom_jit_dump_write(struct fathom_jit_registry *r, const struct fathom_jit_news_array *news);

#endif
