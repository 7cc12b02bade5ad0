/* SPDX-License-Identifier: MIT */
#include <cpuid.h>

#include "host/hook/dispatch.h"

/* CPUID (Intel SDM volume 2, "CPUID"): leaf 1, ECX; leaf 0Dh, sub-leaf 1, EAX; others, ECX. */
enum { OSXSAVE = 1 << 27, LEAF_XSAVE = 0xd, XSAVEC = 1 << 1, ALIGNED = 1 << 1 };

/* State components (SDM volume 1, 13.1): 9 is PKRU, 17 and 18 are AMX. */
#define NOT_SAVED (UINT64_C(1) << 9 | UINT64_C(1) << 17 | UINT64_C(1) << 18)

/* Bytes of the legacy area and the header (SDM volume 1, 13.4). */
enum { LEGACY = 512, HEADER = 64, ALIGNMENT = 64, COMPONENTS = 63 };

/* Layout of the stack in dispatch_x86_64.S. */
struct fathom_hook_frame {
	uint64_t registers[FATHOM_HOOK_REGISTERS]; /* by their DWARF numbers; rsp is not set */
	uint64_t flags;
	uint64_t stub;   /* return address into the stub */
	uint64_t caller; /* the function's own return address, unless it is after a prologue */
};

FATHOM_IN_HOOK void fathom_hook_describe(struct fathom_hook_frame *f,
					 const struct fathom_hooked_site *s,
					 struct fathom_hook_call *call)
{
	f->registers[7] = (uint64_t)(uintptr_t)&f->caller;
	/* After a prologue the return address is above the saved frame pointer. */
	call->stack = s->is_behind_prologue ? f->registers[6] + sizeof(uint64_t) : f->registers[7];
	call->caller = *(const uint64_t *)(uintptr_t)call->stack;
	call->registers = f->registers;
}

/* Returns the components that the kernel has enabled. */
static uint64_t enabled(void)
{
	uint32_t low, high;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (uint64_t)high << 32 | low;
}

/* Returns the bytes of the area for @mask. */
static uint32_t area(uint64_t mask, bool is_compacted)
{
	uint32_t size = LEGACY + HEADER;

	for (unsigned i = 2; i < COMPONENTS; i++) {
		uint32_t bytes, offset, flags, unused;

		if (!(mask >> i & 1))
			continue;
		__cpuid_count(LEAF_XSAVE, i, bytes, offset, flags, unused);
		(void)unused;
		if (is_compacted && (flags & ALIGNED))
			size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
		if (is_compacted)
			size += bytes;
		else if (offset + bytes > size)
			size = offset + bytes;
	}
	return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

void fathom_hook_vectors(struct fathom_hooked_site *s)
{
	uint32_t a, b, c, d;

	s->vectors_mask = 0;
	s->is_compacted = 0;
	s->vectors_size = LEGACY;
	__cpuid(1, a, b, c, d);
	if (!(c & OSXSAVE))
		return;
	__cpuid_count(LEAF_XSAVE, 1, a, b, c, d);
	s->is_compacted = (a & XSAVEC) != 0;
	s->vectors_mask = enabled() & ~NOT_SAVED;
	s->vectors_size = area(s->vectors_mask, s->is_compacted);
}
