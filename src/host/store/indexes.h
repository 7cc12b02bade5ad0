/* SPDX-License-Identifier: MIT */
/* A store, and targets of its indexes. */
#ifndef FATHOM_STORE_INDEXES_H
#define FATHOM_STORE_INDEXES_H

#include <stdatomic.h>

#include "host/base/search_paths.h"
#include "host/store/backend.h"

struct fathom_store {
	struct fathom *session; /* acquired */
	struct fathom_store_backend *backend;
	uint32_t timeout_ms;
	uint32_t call_ms;            /* that the call under way has */
	bool is_late;                /* an index was not put in time: no more are in this call */
	_Atomic int64_t deadline_ns; /* of what is asked by the call under way */
};

/* Begins a call, which has @timeout_ms to ask @s; 0: the time of the store's options. */
void fathom_store_begin_call(struct fathom_store *s, uint32_t timeout_ms);

/*
 * Opens the index of @build_id as a target, which @s must outlive. FATHOM_E_NOT_FOUND: there is
 * none; as fathom_store_get().
 */
fathom_err fathom_stored_index_open(struct fathom_store *s, struct fathom_search_paths *paths,
				    struct fathom_bytes build_id, struct fathom_target **ret,
				    struct fathom_errinfo *reterr);

/*
 * Makes the index of @target and stores it; the target knows no index afterwards. *@ret_header is
 * of what was made. Storing it has the time of the call once more, as making it may take longer;
 * after a FATHOM_E_TIMEOUT the call stores no more.
 */
fathom_err fathom_store_add(struct fathom_store *s, struct fathom_target *target,
			    struct fathom_container_header *ret_header, bool *ret_stored,
			    struct fathom_errinfo *reterr);

#endif
