/* SPDX-License-Identifier: MIT */
#include "host/jit/code_roots.h"

#include <elf.h>

#include "host/code/x86_64/x86_instructions.h"
#include "host/module/module.h"
#include "host/symbol/dynsym.h"

/* Bytes of a function whose size is not stated, of any function, and of one that is called. */
enum { GUESSED_SIZE = 64, MOST_SIZE = 8192, CALLED_SIZE = 256 };

/* Returns whether @svma is in a segment of @image that is written. */
static bool is_data(const struct fathom_image *image, uint64_t svma)
{
	struct fathom_segment s;

	for (uint32_t i = 0; i < image->phnum; i++)
		if (fathom_image_segment(image, i, &s) && s.type == PT_LOAD && s.flags & PF_W &&
		    svma - s.vaddr < s.memsz)
			return true;
	return false;
}

static void add(struct fathom_code_roots *roots, uint64_t avma)
{
	for (unsigned i = 0; i < roots->n; i++)
		if (roots->avma[i] == avma)
			return;
	if (roots->n < FATHOM_MAX_CODE_REFERENCES)
		roots->avma[roots->n++] = avma;
}

/* Bytes of "mov r64, [rip + x]", "mov [rip + x], r64" and "lea r64, [rip + x]". */
#define REFERENCE_SIZE 7

/* Reads where the instruction at @p refers to, from its end; false if it is none of these. */
static bool read_reference(const uint8_t *p, int32_t *ret)
{
	const bool is_wide = (p[0] & 0xfb) == 0x48; /* REX.W, perhaps with REX.R */
	const bool is_known = p[1] == 0x8b || p[1] == 0x89 || p[1] == 0x8d;

	*ret = (int32_t)load_u32(p + 3, false);
	return is_wide && is_known && (p[2] & 0xc7) == 0x05;
}

/* Adds what the @size bytes of code at @svma refer to. */
static void find_in(const struct fathom_module_at *at, uint64_t svma, uint64_t size,
		    struct fathom_code_roots *ret)
{
	const struct fathom_image *image = &at->module->main->image;
	const struct fathom_bytes code = fathom_image_loaded_bytes(image, svma, size);
	int32_t distance;

	for (size_t i = 0; i + REFERENCE_SIZE <= code.size; i++) {
		uint64_t to = svma + i + REFERENCE_SIZE;

		if (!read_reference(code.data + i, &distance))
			continue;
		to += (uint64_t)(int64_t)distance;
		if (to % 8 == 0 && is_data(image, to))
			add(ret, to + at->bias);
	}
}

/* Finds the exported function @name of @at; false if there is none, or if it cannot be read. */
static bool find_function(const struct fathom_module_at *at, const char *name,
			  struct fathom_symbol *ret)
{
	const struct fathom_image *image = &at->module->main->image;
	const struct fathom_str wanted = { name, (uint32_t)strlen(name) };
	const struct fathom_dynsym *d;

	if (image->machine != EM_X86_64 || !image->is64)
		return false;
	d = fathom_module_dynsym(at->module);
	if (!d || !fathom_dynsym_find(d, wanted, ret))
		return false;
	ret->size = !ret->size ? GUESSED_SIZE : ret->size < MOST_SIZE ? ret->size : MOST_SIZE;
	return true;
}

bool fathom_code_roots_find(const struct fathom_module_at *at, const char *name,
			    struct fathom_code_roots *ret)
{
	struct fathom_symbol s;

	if (!find_function(at, name, &s))
		return false;
	find_in(at, s.value, s.size, ret);
	return true;
}

bool fathom_code_roots_find_called(const struct fathom_module_at *at, const char *name,
				   struct fathom_code_roots *ret)
{
	const struct fathom_image *image = &at->module->main->image;
	struct fathom_symbol s;
	struct fathom_bytes code;

	if (!find_function(at, name, &s))
		return false;
	code = fathom_image_loaded_bytes(image, s.value, s.size);
	for (size_t i = 0; i + FATHOM_X86_BRANCH_SIZE <= code.size; i++)
		if (code.data[i] == FATHOM_X86_CALL)
			find_in(at,
				fathom_x86_target(s.value + i, code.data + i,
						  FATHOM_X86_BRANCH_SIZE),
				CALLED_SIZE, ret);
	return true;
}
