/* SPDX-License-Identifier: MIT */
#include "host/events/instant.h"

#include <stdio.h>
#include <string.h>

bool fathom_instant_name(const struct fathom_trace_event *e, struct fathom_bytes_array *name)
{
	const char *type = fathom_trace_type_name((enum fathom_trace_type)e->type);
	const char *text = e->text ? e->text : "";
	const size_t most = strlen(type) + strlen(text) + sizeof " 18446744073709551615 ";

	name->n = 0;
	if (!fathom_array_room(name, most))
		return false;
	if (e->type == FATHOM_TRACE_LOST)
		(void)snprintf(name->items, most, "%s %ju %s", type, (uintmax_t)e->count, text);
	else
		(void)snprintf(name->items, most, "%s %s", type, text);
	return true;
}
