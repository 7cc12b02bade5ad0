/* SPDX-License-Identifier: MIT */
/* Some stores, which are asked in their order. */
#ifndef FATHOM_STORE_ASKED_IN_TURN_H
#define FATHOM_STORE_ASKED_IN_TURN_H

#include "host/store/indexes.h"

struct fathom_store_list {
	struct fathom_store **items;
	size_t n;
};

/*
 * Opens the stores at @places, NULL-terminated, or NULL: none. *@ret is to be closed, after a
 * failure, too. FATHOM_E_ARGUMENT: there are more than 64; as fathom_store_open().
 */
fathom_err fathom_store_list_open(struct fathom *session, const char *const *places,
				  struct fathom_store_list *ret, struct fathom_errinfo *reterr);

void fathom_store_list_close(struct fathom_store_list *list);

/* Begins a call, which has @timeout_ms to ask all of them; 0: 10,000. */
void fathom_store_list_begin_call(const struct fathom_store_list *list, uint32_t timeout_ms);

/*
 * Opens the index of @build_id in the first store that has one, as fathom_stored_index_open();
 * NULL: none has. With @needs_file one of a debug file alone does not serve: where a file's parts
 * are in memory is not in it. *@reason tells why a store has not served, unless it tells more
 * already than that there is no file. FATHOM_E_MEMORY, FATHOM_E_CANCELLED.
 */
fathom_err fathom_store_list_find(const struct fathom_store_list *list,
				  struct fathom_search_paths *paths, struct fathom_bytes build_id,
				  bool needs_file, struct fathom_target **ret,
				  enum fathom_reason *reason, struct fathom_errinfo *reterr);

#endif
