/* SPDX-License-Identifier: MIT */
#include "safe/self/memory_notes.h"

#include <elf.h>
#include <string.h>

#include "safe/base/limits.h"
#include "safe/base/peek.h"
#include "safe/self/native_elf.h"

/* The longest owner that is looked for, with its NUL. */
#define MAX_OWNER 16

/* Finds the note among those of @size bytes at @avma. */
static bool find_in(uint64_t avma, uint64_t size, const char *owner, size_t owner_size,
		    uint32_t type, struct fathom_memory_note *ret)
{
	Elf32_Nhdr note; /* the same in both classes */
	char found[MAX_OWNER];

	for (uint32_t i = 0; i < FATHOM_MAX_MEMORY_NOTES && size >= sizeof note; i++) {
		const uint64_t at = avma + sizeof note;
		uint64_t names;
		uint64_t step;

		if (fathom_peek(avma, &note, sizeof note) != sizeof note)
			return false;
		names = (note.n_namesz + UINT64_C(3)) & ~UINT64_C(3);
		step = sizeof note + names + ((note.n_descsz + UINT64_C(3)) & ~UINT64_C(3));
		if (step > size)
			return false;
		if (note.n_type == type && note.n_namesz == owner_size &&
		    owner_size <= sizeof found &&
		    fathom_peek(at, found, owner_size) == owner_size &&
		    memcmp(found, owner, owner_size) == 0) {
			*ret = (struct fathom_memory_note){ at + names, note.n_descsz };
			return true;
		}
		avma += step;
		size -= step;
	}
	return false;
}

bool fathom_memory_note_find(uintptr_t start, uint64_t bias, const char *owner, size_t owner_size,
			     uint32_t type, struct fathom_memory_note *ret)
{
	FATHOM_NATIVE(Ehdr) header;
	FATHOM_NATIVE(Phdr) s;

	if (fathom_peek(start, &header, sizeof header) != sizeof header ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof s)
		return false;
	for (uint32_t i = 0; i < header.e_phnum && i < FATHOM_MAX_MEMORY_SEGMENTS; i++) {
		if (fathom_peek(start + header.e_phoff + i * sizeof s, &s, sizeof s) != sizeof s)
			return false;
		if (s.p_type == PT_NOTE &&
		    find_in((uintptr_t)(bias + s.p_vaddr), s.p_memsz, owner, owner_size, type, ret))
			return true;
	}
	return false;
}
