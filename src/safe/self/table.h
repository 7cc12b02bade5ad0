/* SPDX-License-Identifier: MIT */
/*
 * What a process knows of itself: which segment of which module is loaded where, and the symbols
 * and lines of each module. The host makes it (host/self.c); here it is searched.
 *
 * Modules are never changed once they are published, and those that stay live as long as the whole.
 * What may be unloaded is freed some time after it is gone. Who reads it says so before, by
 * counting in `readers`, and looks for it again then: while the count is 0 after a module was left
 * out of the table, nobody is in it. (A thread that never comes back from a handler keeps all that
 * is there.)
 *
 * Where modules are changes: there are two tables of that, of which number `generation & 1` is in
 * use. The host fills in the other one and counts the generation up. A reader looks at the
 * generation before and after; if it has changed, the table may have been filled in anew meanwhile,
 * and is searched again. So readers wait for nobody, and find a table that is whole also when the
 * handler they are in has interrupted the host at its work.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_SELF_TABLE_H
#define FATHOM_SELF_TABLE_H

#include <stdatomic.h>

#include "fathom/self.h"
#include "safe/index/index.h"

/* A symbol; names are offsets in the strings of its module. */
struct fathom_self_symbol {
	uint64_t start; /* svma */
	uint64_t size;  /* 0: not stated */
	uint32_t name;  /* demangled */
	uint32_t linkage;
	uint32_t source; /* enum fathom_source */
	uint32_t reserved;
};

/* Stands for no symbol among winners. */
#define FATHOM_SELF_NONE UINT32_MAX

/* The demangled name of a function that the index of lines names. */
struct fathom_self_demangled {
	uint32_t linkage; /* a string of the index */
	uint32_t name;    /* of the module */
};

struct fathom_self_module {
	const char *path;
	const uint8_t *build_id;
	uint32_t build_id_size;
	uint8_t no_lines; /* enum fathom_reason: why an address has none */
	const char *strings;
	/* Stretches of addresses: from starts[i] on it is symbol winners[i]. */
	const uint64_t *starts;
	const uint32_t *winners;
	uint32_t n_starts;
	/* Starts by buckets of 2^shift bytes, from base; bucket[n_buckets] ends the last. */
	uint32_t n_buckets;
	const uint32_t *buckets;
	uint64_t base;
	uint32_t shift;
	uint32_t n_demangled;
	const struct fathom_self_symbol *symbols;
	const struct fathom_index *lines;              /* checked as a whole; NULL: none */
	const struct fathom_self_demangled *demangled; /* by linkage */
};

#define FATHOM_SELF_STAYS 1u /* the module is never unloaded */
#define FATHOM_SELF_OURS  2u /* the loader knows of it: its counters tell when it goes */

/* A segment of a module, where it is loaded; all avma. */
struct fathom_self_place {
	uintptr_t low;
	uintptr_t high;
	uintptr_t bias;
	uintptr_t build_id; /* where it is in memory; 0: nowhere */
	uintptr_t object;   /* start of what the loader has mapped; 0: it does not know of it */
	uintptr_t object_end;
	uintptr_t flags;
	uintptr_t module; /* struct fathom_self_module * */
};

#define FATHOM_SELF_WORDS (sizeof(struct fathom_self_place) / sizeof(uintptr_t))

struct fathom_self_row {
	_Atomic uintptr_t word[FATHOM_SELF_WORDS];
};

/* Sorted, not overlapping. The lows stand by themselves, too, for they are what is searched. */
struct fathom_self_table {
	uint32_t cap;
	_Atomic uint32_t n;
	_Atomic uintptr_t *lows;
	struct fathom_self_row *rows;
};

struct fathom_self {
	_Atomic uint32_t generation;
	_Atomic(struct fathom_self_table *) tables[2];
	_Atomic uint32_t *readers; /* of what may be unloaded */
	uint64_t started_ns;       /* by the monotonic clock */
};

/*
 * Has the @n sorted @places seen by all who ask from now on. One thread at a time; the table not in
 * use must have room for them.
 */
void fathom_self_publish(struct fathom_self *self, const struct fathom_self_place *places,
			 uint32_t n);

/* fathom_self_lookup(), where the places are known to be those of now for @is_current. */
bool fathom_self_answer(const struct fathom_self *self, uint64_t address, uint32_t flags,
			bool is_current, struct fathom_self_answer *ret);

#endif
