/* SPDX-License-Identifier: MIT */
#include "host/symbol/bounds.h"

#include "safe/base/sort.h"

size_t fathom_bounds_list_upto(const struct fathom_bounds_list *l, uint64_t svma)
{
	return FATHOM_BISECT(l->n, i, l->ranges[i].key <= svma);
}

size_t fathom_bounds_list_at(const struct fathom_bounds_list *l, uint64_t svma)
{
	const size_t n = fathom_bounds_list_upto(l, svma);

	return n && l->ranges[n - 1].value > svma ? n - 1 : l->n;
}

uint64_t fathom_bounds_list_end(const struct fathom_bounds_list *l, uint64_t svma)
{
	const size_t n = fathom_bounds_list_upto(l, svma);

	if (n && l->ranges[n - 1].value > svma)
		return l->ranges[n - 1].value;
	return n < l->n ? l->ranges[n].key : UINT64_MAX;
}
