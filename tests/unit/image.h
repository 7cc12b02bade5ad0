/* SPDX-License-Identifier: MIT */
/* This program's own image, copied to an array with a list of its segments: as a dump has them. */
#ifndef FATHOM_UNIT_IMAGE_H
#define FATHOM_UNIT_IMAGE_H

#include <fathom/fathom.h>
#include <link.h>
#include <string.h>

extern const uint8_t __ehdr_start[]; /* by the linker */

static uint8_t image[16 << 20]; /* with a sanitizer the program is larger than some MB */
static struct fathom_mapping_info segments[8];

/* Copies @n bytes; between variables, too, where a sanitizer lets nobody read. */
__attribute__((no_sanitize("address"))) static void copy_bytes(uint8_t *to,
							       const volatile uint8_t *from,
							       size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = from[i];
}

/* Fills both; returns how many segments there are. */
static size_t copy_image(void)
{
	const uintptr_t base = (uintptr_t)__ehdr_start;
	const ElfW(Ehdr) *e = (const void *)__ehdr_start;
	const ElfW(Phdr) *h = (const void *)(__ehdr_start + e->e_phoff);
	size_t n = 0;

	for (int i = 0; i < e->e_phnum; i++) {
		const uintptr_t start = (base + h[i].p_vaddr) & ~4095ul;
		const uintptr_t end = (base + h[i].p_vaddr + h[i].p_filesz + 4095) & ~4095ul;

		if (h[i].p_type != PT_LOAD)
			continue;
		segments[n++] = (struct fathom_mapping_info){
			start, end, h[i].p_offset & ~4095ul, "/gone", NULL, 0, h[i].p_flags
		};
		copy_bytes(image + (start - base), (const void *)start, end - start);
	}
	return n;
}

#endif
