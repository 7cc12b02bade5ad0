/* SPDX-License-Identifier: MIT */
#include "safe/self/own_end.h"

#include <elf.h>

#include "safe/base/peek.h"
#include "safe/elf/image.h"
#include "safe/self/loader.h"
#include "safe/unwind/ends.h"

/* Bytes of an object that are looked at: its ELF header, and the program headers after it. */
#define HEADERS 1024

enum fathom_own_text fathom_own_find_text(uintptr_t avma)
{
	struct fathom_self_object o;
	uint8_t bytes[HEADERS];
	struct fathom_bytes head;
	struct fathom_image image;
	struct fathom_segment s;
	uint64_t bias = 0;
	bool has_bias = false;

	if (!fathom_self_object_at(avma, &o))
		return FATHOM_OWN_TEXT_UNKNOWN;
	head = (struct fathom_bytes){ bytes, fathom_peek(o.start, bytes, sizeof bytes) };
	if (fathom_image_init(head, &image, NULL))
		return FATHOM_OWN_TEXT_UNKNOWN;
	for (uint32_t i = 0; fathom_image_segment(&image, i, &s); i++) {
		if (s.type != PT_LOAD)
			continue;
		/* The first one has the header. */
		if (!has_bias)
			bias = o.start - (s.vaddr - s.off);
		has_bias = true;
		if (avma - bias - s.vaddr < s.memsz)
			return s.flags & PF_X ? FATHOM_OWN_TEXT_IN : FATHOM_OWN_TEXT_NOT;
	}
	return FATHOM_OWN_TEXT_UNKNOWN;
}

bool fathom_own_is_outermost(uintptr_t sp)
{
	const uintptr_t end = (sp + FATHOM_PEEK_PAGE - 1) & ~(uintptr_t)(FATHOM_PEEK_PAGE - 1);
	uint8_t byte;

	return end - sp < FATHOM_OUTERMOST_WORDS * sizeof(uintptr_t) &&
	       fathom_peek(end, &byte, sizeof byte) != sizeof byte;
}

/* Bytes of code in which a program, or the dynamic linker, makes its first calls. */
#define ENTRY_CODE 32
#define START_CODE 128

/* Returns whether @r is in the code that a program begins with. */
static bool is_start(const struct fathom_self *self, const struct fathom_unwind_arch *arch,
		     const struct fathom_registers *r)
{
	for (size_t i = 0; i < sizeof self->entries / sizeof *self->entries; i++) {
		const uint64_t off = r->pc - self->entries[i];

		/*
		 * The kernel clears the frame pointer when it starts a program (psABI x86-64,
		 * 3.4.1).
		 */
		if (self->entries[i] &&
		    (off < ENTRY_CODE || (off < START_CODE && fathom_register_known(r, arch->fp) &&
					  !r->value[arch->fp])))
			return true;
	}
	return false;
}

bool fathom_own_is_end(const struct fathom_self *self, const struct fathom_unwind_arch *arch,
		       const struct fathom_step_memory *m, const struct fathom_registers *r,
		       bool is_return)
{
	if (is_start(self, arch, r))
		return true;
	return is_return && (fathom_is_context_end(arch, m->code, r->pc) ||
			     (fathom_is_thread_end(arch, m->code, r->pc) &&
			      (fathom_register_known(r, arch->fp) ||
			       fathom_clears_frame_pointer(arch, m->code, r->pc))));
}
