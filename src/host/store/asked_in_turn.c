/* SPDX-License-Identifier: MIT */
#include "host/store/asked_in_turn.h"

#include <errno.h>
#include <stdlib.h>

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

enum fathom_reason fathom_store_reason(fathom_err err, const struct fathom_errinfo *info)
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
