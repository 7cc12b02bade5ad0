/* SPDX-License-Identifier: MIT */
/* Maps for unit tests, written as the kernel writes them. */
#ifndef FATHOM_UNIT_MAPS_H
#define FATHOM_UNIT_MAPS_H

#include <string.h>

#include "host/file/maps.h"

static inline struct fathom_maps parse(const char *text)
{
	struct fathom_maps maps;

	assert_int_equal(fathom_maps_parse(strdup(text), strlen(text), &maps), 0);
	return maps;
}

#endif
