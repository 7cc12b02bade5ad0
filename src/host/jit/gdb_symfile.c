/* SPDX-License-Identifier: MIT */
#include "host/jit/gdb_symfile.h"

#include <elf.h>

#include "safe/base/text.h"

/* The smallest page size. */
#define PAGE 4096

fathom_err fathom_gdb_symfile_wrap(struct fathom_memory *m, const struct fathom_gdb_entry *entry,
				   uint8_t *pages, struct fathom_object **ret)
{
	const uint64_t size = entry->size;
	char name[64];
	struct fathom_text t = text_init(name, sizeof name);
	struct fathom_file *file;

	fathom_text_cstr(&t, "[jit ");
	fathom_text_hex(&t, entry->symfile);
	fathom_text_char(&t, ']');
	fathom_text_end(&t);
	/* Many are smaller than a page. */
	if (fathom_file_wrap(m, name, pages, size, (size + PAGE - 1) / PAGE * PAGE, &file)) {
		fathom_pages_free(pages, size);
		return FATHOM_E_MEMORY;
	}
	file->is_placed = true;
	return fathom_object_create(m, file, ret, NULL);
}

/* Adds [low, low + size), which may overflow. */
static bool add_code(struct fathom_gdb_code *code, uint64_t low, uint64_t size)
{
	struct fathom_range r = { low, 0 };

	if (__builtin_add_overflow(low, size, &r.high))
		r.high = UINT64_MAX;
	if (!fathom_array_push(code, r))
		return false;
	return true;
}

bool fathom_gdb_symfile_code(const struct fathom_image *image, struct fathom_gdb_code *code)
{
	const uint64_t flags = SHF_ALLOC | SHF_EXECINSTR;
	struct fathom_section section;
	struct fathom_segment segment;

	if (!fathom_array_room(code, 1))
		return false;
	for (uint32_t i = 0; i < image->shnum && fathom_image_section(image, i, &section); i++)
		if ((section.flags & flags) == flags && !add_code(code, section.addr, section.size))
			return false;
	for (uint32_t i = 0; !image->shnum && i < image->phnum; i++)
		if (fathom_image_segment(image, i, &segment) && segment.type == PT_LOAD &&
		    (segment.flags & PF_X) && !add_code(code, segment.vaddr, segment.memsz))
			return false;
	return true;
}
