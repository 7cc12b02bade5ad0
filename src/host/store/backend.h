/* SPDX-License-Identifier: MIT */
/*
 * Where a store keeps its files: in a directory, on an HTTP server, behind a command of the user's.
 * Each kind has a file of its own (*_backend.c), with a struct that begins with struct
 * fathom_store_backend, and one table of operations.
 */
#ifndef FATHOM_STORE_BACKEND_H
#define FATHOM_STORE_BACKEND_H

#include "host/store/container.h"

struct fathom_store_backend_ops;

struct fathom_store_backend {
	const struct fathom_store_backend_ops *ops;
	struct fathom *session;
	char *place;                /* as the caller has named it */
	bool is_remote;             /* what was read is worth keeping on local disk */
	_Atomic bool has_no_ranges; /* each read costs the whole file: read all at once */
};

/* Many threads may call them at once. @deadline_ns is of the monotonic clock. */
struct fathom_store_backend_ops {
	/*
	 * Reads up to @size bytes at @off of @key; fewer only where the file ends.
	 * FATHOM_E_NOT_FOUND, FATHOM_E_TIMEOUT, FATHOM_E_CORRUPT, FATHOM_E_OS, FATHOM_E_MEMORY.
	 */
	fathom_err (*read)(struct fathom_store_backend *b, const char *key, uint64_t off, void *to,
			   size_t size, int64_t deadline_ns, size_t *ret_size,
			   struct fathom_errinfo *reterr);
	/*
	 * Stores @bytes, whose header is @h, as @key, unless what is there is as complete;
	 * *@ret_stored says which. Nobody ever reads a part of it.
	 */
	fathom_err (*put)(struct fathom_store_backend *b, const char *key,
			  struct fathom_bytes bytes, const struct fathom_container_header *h,
			  int64_t deadline_ns, bool *ret_stored, struct fathom_errinfo *reterr);
	/* As fathom_store_each(). NULL: it cannot tell. */
	fathom_err (*each)(struct fathom_store_backend *b, fathom_build_id_fn fn, void *data,
			   struct fathom_errinfo *reterr);
	/* Frees what the kind owns, and @b itself. */
	void (*close)(struct fathom_store_backend *b);
};

/* Open the store at @place, whose backend is allocated and filled in. */
fathom_err fathom_store_directory_open(struct fathom *session, const char *place,
				       struct fathom_store_backend **ret,
				       struct fathom_errinfo *reterr);
fathom_err fathom_store_http_open(struct fathom *session, const char *place,
				  struct fathom_store_backend **ret, struct fathom_errinfo *reterr);
fathom_err fathom_store_command_open(struct fathom *session, const char *place,
				     struct fathom_store_backend **ret,
				     struct fathom_errinfo *reterr);

/*
 * Reads the header of @key. *@ret_is_there is false if nothing is there, or what nobody can use and
 * anything may replace.
 */
fathom_err fathom_store_read_header(struct fathom_store_backend *b, const char *key,
				    int64_t deadline_ns, struct fathom_container_header *ret,
				    bool *ret_is_there, struct fathom_errinfo *reterr);

/* Returns @err, with @what and the name of @key in @reterr. */
fathom_err fathom_store_fail(const struct fathom_store_backend *b, const char *key, fathom_err err,
			     const char *what, struct fathom_errinfo *reterr);

#endif
