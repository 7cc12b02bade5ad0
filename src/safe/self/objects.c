/* SPDX-License-Identifier: MIT */
#include "safe/self/objects.h"

#include "safe/base/limits.h"
#include "safe/base/peek.h"

/* Reads the link map at @at; false if it is not there. */
static bool read_link(uintptr_t at, struct fathom_link_map *ret)
{
	return at && fathom_peek(at, ret, sizeof *ret) == sizeof *ret;
}

void fathom_self_each_object(fathom_object_fn *fn, void *data)
{
	struct fathom_self_object o;
	struct fathom_link_map link;
	uintptr_t at;

	if (!fathom_self_object_at((uintptr_t)fathom_self_each_object, &o))
		return;
	at = o.link_map;
	for (uint32_t i = 0; i < FATHOM_MAX_LINK_MAPS && read_link(at, &link) && link.previous; i++)
		at = link.previous;
	for (uint32_t i = 0; i < FATHOM_MAX_LINK_MAPS && read_link(at, &link); i++) {
		if (fathom_self_object_at(link.dynamic, &o) && o.link_map == at)
			fn(&o, &link, data);
		at = link.next;
	}
}
