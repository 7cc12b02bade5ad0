/* SPDX-License-Identifier: MIT */
#include "host/hook/dispatch.h"

#include <cpuid.h>

#include "host/hook/gate.h"

/* CPUID (Intel SDM volume 2, "CPUID"): leaf 1, ECX; leaf 0Dh, sub-leaf 1, EAX; others, ECX. */
enum { OSXSAVE = 1 << 27, LEAF_XSAVE = 0xd, XSAVEC = 1 << 1, ALIGNED = 1 << 1 };

/* State components (SDM volume 1, 13.1): 9 is PKRU, 17 and 18 are AMX. */
#define NOT_SAVED (UINT64_C(1) << 9 | UINT64_C(1) << 17 | UINT64_C(1) << 18)

/* Bytes of the legacy area and the header (SDM volume 1, 13.4). */
enum { LEGACY = 512, HEADER = 64, ALIGNMENT = 64, COMPONENTS = 63 };

/* The gate that the thread is in: hook functions do not nest. */
static _Thread_local struct fathom_gate *fathom_hook_inside
	__attribute__((tls_model("initial-exec")));

FATHOM_IN_HOOK void fathom_hook_dispatch(struct fathom_hook_frame *f, struct fathom_hooked_site *s)
{
	struct fathom_hook_call call = { .function = s->function, .site = s->avma };
	struct fathom_gate *g;

	if (fathom_hook_inside)
		return;
	g = fathom_gate_enter(&s->gate, &fathom_hook_inside);
	if (!g)
		return;
	fathom_hook_inside = g;
	f->registers[7] = (uint64_t)(uintptr_t)&f->caller;
	/* Behind a prologue the return address is above the saved frame pointer. */
	call.stack = s->is_behind_prologue ? f->registers[6] + sizeof(uint64_t) : f->registers[7];
	call.caller = *(const uint64_t *)(uintptr_t)call.stack;
	call.registers = f->registers;
	call.place = s->place;
	g->fn(g->data, &call);
	fathom_hook_inside = NULL;
	fathom_gate_leave(g, &fathom_hook_inside);
}

struct fathom_gate *fathom_hook_within(const void **ret_thread)
{
	*ret_thread = &fathom_hook_inside;
	return fathom_hook_inside;
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
