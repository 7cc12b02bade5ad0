/* SPDX-License-Identifier: MIT */
#include "safe/self/loader.h"

/*
 * glibc's struct dl_find_object (dlfcn.h); other C libraries lack it. What follows the named fields
 * differs between processors, and is not read.
 */
struct found {
	unsigned long long flags;
	void *start;
	void *end;
	void *link_map;
	void *header;
	unsigned long long rest[15];
};

/* The C library's name for it. */
__attribute__((weak)) int _dl_find_object(void *address, struct found *ret);

bool fathom_self_has_loader(void)
{
	return _dl_find_object != NULL;
}

bool fathom_self_object_at(uintptr_t avma, struct fathom_self_object *ret)
{
	struct found f;

	if (!_dl_find_object || _dl_find_object((void *)avma, &f))
		return false;
	*ret = (struct fathom_self_object){ (uintptr_t)f.start, (uintptr_t)f.end,
					    (uintptr_t)f.link_map, (uintptr_t)f.header };
	return true;
}
