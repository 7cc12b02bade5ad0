/* SPDX-License-Identifier: MIT */
#include "host/store/asked_in_turn.h"

#include <errno.h>
#include <stdlib.h>

#include "host/module/cache_read.h"
#include "host/module/module.h"
#include "host/space/target.h"
#include "safe/base/error.h"

#define MAX_STORES 64

#define DEFAULT_MS 10000

fathom_err fathom_store_list_open(struct fathom *session, const char *const *places,
				  struct fathom_store_list *ret, struct fathom_errinfo *reterr)
{
	size_t n = 0;

	while (places && places[n])
		n++;
	if (n > MAX_STORES)
		return fathom_fail_options(reterr);
	ret->items = calloc(n + 1, sizeof(struct fathom_store *));
	if (!ret->items)
		return fathom_fail_memory(reterr);
	for (; ret->n < n; ret->n++)
		FATHOM_TRY(fathom_store_open(session, places[ret->n], NULL, &ret->items[ret->n],
					     reterr));
	return FATHOM_OK;
}

void fathom_store_list_close(struct fathom_store_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		fathom_store_close(list->items[i]);
	free(list->items);
}

void fathom_store_list_begin_call(const struct fathom_store_list *list, uint32_t timeout_ms)
{
	for (size_t i = 0; i < list->n; i++)
		fathom_store_begin_call(list->items[i], timeout_ms ? timeout_ms : DEFAULT_MS);
}

/* Returns why a store has not served. */
static enum fathom_reason reason_of(fathom_err err, const struct fathom_errinfo *info)
{
	switch (err) {
	case FATHOM_E_NOT_FOUND:
		return FATHOM_REASON_NO_FILE;
	case FATHOM_E_TIMEOUT:
		return FATHOM_REASON_TIMEOUT;
	case FATHOM_E_OS:
		return info->os_errno == EACCES || info->os_errno == EPERM
			       ? FATHOM_REASON_NO_PERMISSION
			       : FATHOM_REASON_NO_FILE;
	case FATHOM_E_LIMIT:
		return FATHOM_REASON_LIMIT;
	default:
		return FATHOM_REASON_CORRUPT;
	}
}

fathom_err fathom_store_list_find(const struct fathom_store_list *list,
				  struct fathom_search_paths *paths, struct fathom_bytes build_id,
				  bool needs_file, struct fathom_target **ret,
				  enum fathom_reason *reason, struct fathom_errinfo *reterr)
{
	*ret = NULL;
	for (size_t i = 0; i < list->n && !*ret; i++) {
		struct fathom_errinfo info = { 0 };
		struct fathom_target *t;
		const fathom_err err =
			fathom_stored_index_open(list->items[i], paths, build_id, &t, &info);

		if (!err && (!needs_file || t->stated->cache->pages->has_file)) {
			*ret = t;
		} else if (!err) {
			fathom_target_release(t);
		} else if (err == FATHOM_E_MEMORY || err == FATHOM_E_CANCELLED) {
			if (reterr)
				*reterr = info;
			return err;
		} else if (*reason <= FATHOM_REASON_NO_FILE) {
			*reason = reason_of(err, &info);
		}
	}
	return FATHOM_OK;
}
