/* SPDX-License-Identifier: MIT */
#include "safe/jit/gdb_layout.h"

#include <elf.h>

struct fathom_gdb_layout fathom_gdb_layout(bool is64, uint16_t machine, bool swap)
{
	const bool is_packed = machine == EM_386 || machine == EM_68K;

	if (is64)
		return (struct fathom_gdb_layout){ 8, 24, 32, 24, swap };
	return is_packed ? (struct fathom_gdb_layout){ 4, 12, 20, 16, swap }
			 : (struct fathom_gdb_layout){ 4, 16, 24, 16, swap };
}

static uint64_t load_word(const struct fathom_gdb_layout *l, const uint8_t *p)
{
	return l->word == 8 ? load_u64(p, l->swap) : load_u32(p, l->swap);
}

void fathom_gdb_descriptor_read(const struct fathom_gdb_layout *l, const uint8_t *from,
				struct fathom_gdb_descriptor *ret)
{
	ret->version = load_u32(from, l->swap);
	ret->action = load_u32(from + 4, l->swap);
	ret->relevant = load_word(l, from + 8);
	ret->first = load_word(l, from + 8 + l->word);
}

void fathom_gdb_entry_read(const struct fathom_gdb_layout *l, const uint8_t *from,
			   struct fathom_gdb_entry *ret)
{
	ret->next = load_word(l, from);
	ret->prev = load_word(l, from + l->word);
	ret->symfile = load_word(l, from + 2 * l->word);
	ret->size = load_u64(from + l->size_off, l->swap);
}
