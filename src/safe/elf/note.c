/* SPDX-License-Identifier: MIT */
#include "safe/elf/note.h"

/* Three words stand before the name. */
#define HEADER_SIZE 12

bool fathom_note_next(struct fathom_cursor *c, uint64_t align, struct fathom_note *ret)
{
	const uint64_t mask = (align == 8 ? 8 : 4) - 1;
	const uint32_t name_size = cur_u32(c);
	const uint32_t desc_size = cur_u32(c);
	const uint32_t type = cur_u32(c);
	const uint8_t *name = cur_take(c, name_size);
	const uint8_t *desc;

	cur_skip(c, (0 - (HEADER_SIZE + (uint64_t)name_size)) & mask);
	desc = cur_take(c, desc_size);
	if (!cur_ok(c))
		return false;
	*ret = (struct fathom_note){ { name, name_size }, { desc, desc_size }, type };
	/* The last note may lack its padding. */
	cur_skip(c, (0 - (uint64_t)desc_size) & mask);
	return true;
}

bool fathom_note_is(const struct fathom_note *n, uint32_t type, const char *owner)
{
	uint64_t size = 1;

	while (owner[size - 1])
		size++;
	if (n->type != type || n->name.size < size ||
	    memcmp(n->name.data, owner, (size_t)size) != 0)
		return false;
	/* Go's linker counts the padding, too. */
	while (size < n->name.size && !n->name.data[size])
		size++;
	return size == n->name.size;
}
