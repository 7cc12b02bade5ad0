/* SPDX-License-Identifier: MIT */
#include "host/syscalls/constant_names.h"

const char *fathom_constant_name(enum fathom_constant_table table, uint8_t arch, uint64_t value)
{
	const struct fathom_constant_place *place = &fathom_constant_places[table];
	const struct fathom_constant *c = &fathom_constant_rows[place->first];

	for (uint32_t i = 0; i < place->n; i++)
		if (c[i].value == value && c[i].arches & arch)
			return fathom_constant_names + c[i].name;
	return NULL;
}

/* Returns the place of the first row of a sorted table whose value is not below @value. */
static uint32_t first_at_least(const struct fathom_constant *c, uint32_t n, uint64_t value)
{
	uint32_t low = 0;

	for (uint32_t high = n; low < high;) {
		const uint32_t middle = low + (high - low) / 2;

		if (c[middle].value < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const char *fathom_constant_find(enum fathom_constant_table table, uint8_t arch, uint64_t value,
				 uint32_t *at)
{
	const struct fathom_constant_place *place = &fathom_constant_places[table];
	const struct fathom_constant *c = &fathom_constant_rows[place->first];
	uint32_t i = *at ? *at : first_at_least(c, place->n, value);

	for (; i < place->n && c[i].value == value; i++)
		if (c[i].arches & arch) {
			*at = i + 1;
			return fathom_constant_names + c[i].name;
		}
	return NULL;
}

const char *fathom_constant_take(enum fathom_constant_table table, uint8_t arch, uint64_t *value,
				 uint32_t *from)
{
	const struct fathom_constant_place *place = &fathom_constant_places[table];
	const struct fathom_constant *c = &fathom_constant_rows[place->first];

	for (uint32_t i = *from; i < place->n && *value; i++) {
		/* Bit 31 of an int of the headers is negative. */
		const uint64_t bits =
			c[i].value >> 31 == UINT64_MAX >> 31 ? (uint32_t)c[i].value : c[i].value;

		if (bits && (*value & bits) == bits && c[i].arches & arch) {
			*value &= ~bits;
			*from = i + 1;
			return fathom_constant_names + c[i].name;
		}
	}
	return NULL;
}

const char *fathom_constant_unknown(enum fathom_constant_table table)
{
	return fathom_constant_names + fathom_constant_places[table].unknown;
}
