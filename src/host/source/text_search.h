/* SPDX-License-Identifier: MIT */
/* Searches the places where the text of a source file may be. */
#ifndef FATHOM_SOURCE_TEXT_SEARCH_H
#define FATHOM_SOURCE_TEXT_SEARCH_H

#include "fathom/source.h"
#include "host/base/context.h"
#include "host/base/md5.h"

/* Larger source files are not read. */
#define FATHOM_MAX_SOURCE (UINT64_C(64) << 20)

/* Longer build-ids are cut: no server has such files. */
#define FATHOM_MAX_SOURCE_ID 64

/* A source file that is wanted. */
struct fathom_source_query {
	struct fathom *session;
	char *const *dirs; /* of the options, NULL-terminated */
	const char *path;  /* as answers spell it */
	bool has_md5;
	uint8_t md5[FATHOM_MD5_SIZE];
	uint8_t build_id[FATHOM_MAX_SOURCE_ID]; /* of the module */
	size_t build_id_size;                   /* 0: unknown, or no server is to be asked */
};

/* A text that was found. The caller frees path and text. */
struct fathom_found_text {
	char *path;
	char *text;
	size_t size;
	int64_t mtime_ns;
	enum fathom_text_origin origin;
	bool is_proven;
};

/* Reads the file at @path, of any content. */
fathom_err fathom_source_read(struct fathom *session, const char *path,
			      struct fathom_found_text *ret, struct fathom_errinfo *reterr);

/* Tries each place in turn; fathom_source_files_find() says which, and which error is returned. */
fathom_err fathom_source_search(const struct fathom_source_query *q, struct fathom_found_text *ret,
				struct fathom_errinfo *reterr);

#endif
