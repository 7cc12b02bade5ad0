/* SPDX-License-Identifier: MIT */
/* The cache of LLVM's libunwind, to which its __register_frame() adds single FDEs. */
#include "host/jit/registered.h"

/*
 * struct entry { uintptr_t module, ip_start, ip_end, fde; };
 * struct entry *buffer, *buffer_used, *buffer_end; one after the other
 */
enum { ENTRY_SIZE = 32, IP_START = 8, IP_END = 16, ENTRY_FDE = 24 };
enum { USED = 8, CAPACITY = 16 };

/* Adds the entry at @avma; returns whether it is one. */
static bool read_entry(struct fathom_registered_work *w, uint64_t avma)
{
	struct fathom_registered_fde f = { .entry = avma + ENTRY_FDE };

	if (!fathom_registered_count(w) || !fathom_registered_word(w, avma + IP_START, &f.low) ||
	    !fathom_registered_word(w, avma + IP_END, &f.high) ||
	    !fathom_reader_uint(&w->p->memory, f.entry, 8, false, &f.off) || f.low >= f.high)
		return false;
	if (!fathom_array_push(&w->to->fdes, f))
		w->err = FATHOM_E_MEMORY;
	return !w->err;
}

/* Adds the entries of the cache whose three pointers are at @avma, if they are plausible. */
static void read_cache(struct fathom_registered_work *w, uint64_t avma)
{
	uint64_t first, used, end;

	if (!fathom_registered_word(w, avma, &first) ||
	    !fathom_registered_word(w, avma + USED, &used) ||
	    !fathom_registered_word(w, avma + CAPACITY, &end) || !first || first % 8 ||
	    used < first || end < used || (used - first) % ENTRY_SIZE || (end - first) % ENTRY_SIZE)
		return;
	while (first < used && read_entry(w, first))
		first += ENTRY_SIZE;
}

static bool has(const struct fathom_code_roots *roots, uint64_t avma)
{
	for (unsigned i = 0; i < roots->n; i++)
		if (roots->avma[i] == avma)
			return true;
	return false;
}

void fathom_llvm_cache_read(struct fathom_registered_work *w, const struct fathom_module_at *at)
{
	struct fathom_code_roots roots = { .n = 0 };

	if (w->again || !fathom_code_roots_find_called(at, "__unw_add_dynamic_fde", &roots))
		return;
	for (unsigned i = 0; i < roots.n && !w->err; i++)
		if (has(&roots, roots.avma[i] + USED) && has(&roots, roots.avma[i] + CAPACITY))
			read_cache(w, roots.avma[i]);
}
