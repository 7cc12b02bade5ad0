/* SPDX-License-Identifier: MIT */
/*
 * The table of a process's own modules: which segment of which module is loaded where, and the
 * symbols and lines of each module. The host fills it in (host/self/self.c); here it is searched.
 *
 * Modules never change once they are published. Those that are never unloaded live as long as the
 * whole. The others are freed some time after they were unloaded. To read one, a reader first
 * increments `readers`, then looks the module up again. When a module is no longer in the table and
 * the count is 0, nobody reads it. (A thread that never returns from a handler keeps all modules
 * that are there.)
 *
 * The table of places is double-buffered: table `generation & 1` is current. The host fills the
 * other one and increments the generation. A reader reads the generation before and after its
 * search and searches again if it has changed, because the table may have been overwritten. So
 * readers never wait, and a handler that interrupts the host in its work still finds a complete
 * table.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_SELF_TABLE_H
#define FATHOM_SELF_TABLE_H

#include <stdatomic.h>

#include "fathom/unwind.h"
#include "safe/index/index.h"

/* A symbol. Names are offsets in the module's strings. */
struct fathom_self_symbol {
	uint64_t start; /* svma */
	uint64_t size;  /* 0 if not stated */
	uint32_t name;  /* demangled */
	uint32_t linkage;
	uint32_t name_size;
	uint32_t linkage_size;
	uint32_t source; /* enum fathom_source */
	uint32_t reserved;
};

/* No symbol, in winners. */
#define FATHOM_SELF_NONE UINT32_MAX

/* The demangled name of a function of the line index. */
struct fathom_self_demangled {
	uint32_t linkage; /* a string of the line index */
	uint32_t name;    /* offset in the module's strings */
	uint32_t size;    /* of name, bytes */
};

struct fathom_self_module {
	const char *path;
	const uint8_t *build_id;
	uint32_t build_id_size;
	uint8_t no_lines; /* enum fathom_reason of addresses without lines */
	const char *strings;
	/* Symbols by address: from starts[i] up to starts[i + 1] it is symbol winners[i]. */
	const uint64_t *starts;
	const uint32_t *winners;
	uint32_t n_starts;
	/* First start per bucket of 2^shift bytes, from base; bucket[n_buckets] ends the last. */
	uint32_t n_buckets;
	const uint32_t *buckets;
	uint64_t base;
	uint32_t shift;
	uint32_t n_demangled;
	const struct fathom_self_symbol *symbols;
	const struct fathom_index *lines;              /* NULL if none; all pages are checked */
	const struct fathom_self_demangled *demangled; /* sorted by linkage */
	const struct fathom_unwind_table *rules;       /* NULL: not prepared */
};

#define FATHOM_SELF_STAYS 1u /* the module is never unloaded */
#define FATHOM_SELF_OURS  2u /* the loader knows it: its counters tell when it is unloaded */

/* A loaded segment of a module. All addresses are avma. */
struct fathom_self_place {
	uintptr_t low;
	uintptr_t high;
	uintptr_t bias;
	uintptr_t build_id; /* its copy in memory; 0 if there is none */
	uintptr_t object;   /* start of the loader's mapping; 0 if it does not know the module */
	uintptr_t object_end;
	uintptr_t flags;
	uintptr_t module; /* struct fathom_self_module * */
};

#define FATHOM_SELF_WORDS (sizeof(struct fathom_self_place) / sizeof(uintptr_t))

struct fathom_self_row {
	_Atomic uintptr_t word[FATHOM_SELF_WORDS];
};

/* Sorted, not overlapping. The lows also stand apart: they are what a search reads. */
struct fathom_self_table {
	uint32_t cap;
	_Atomic uint32_t n;
	_Atomic uintptr_t *lows;
	struct fathom_self_row *rows;
};

/*
 * A rule that was found for a pc, packed (safe/self/own_stack.c). Threads store both words without
 * order; a reader believes them only if @key, from which the rule's bits are taken away, is its
 * own.
 */
struct fathom_self_rule {
	_Atomic uint64_t key;
	_Atomic uint64_t rule;
};

/* Rules that are kept; a power of two. */
#define FATHOM_SELF_RULES 4096

struct fathom_self {
	struct fathom_self_rule *rules;   /* FATHOM_SELF_RULES; NULL: unwinding was not prepared */
	struct fathom_held_threads *held; /* NULL: other threads are not stopped */
	_Atomic uint32_t generation;
	_Atomic(struct fathom_self_table *) tables[2];
	_Atomic uint32_t *readers; /* those that read modules that may be unloaded */
	/* FATHOM_MAX_REGISTRIES heads of registries of other objects (registries.h); 0: none */
	_Atomic uintptr_t *registries;
	uint64_t started_ns;  /* monotonic clock */
	uintptr_t entries[2]; /* avma where the program and ld.so begin; 0: unknown */
};

/*
 * Publishes the @n sorted @places to all readers. One thread at a time. The table that is not
 * current must have room for them.
 */
void fathom_self_publish(struct fathom_self *self, const struct fathom_self_place *places,
			 uint32_t n);

/*
 * Finds the rule of the code at @avma; FATHOM_UNWIND_NONE if its module was not prepared, or is no
 * longer there. *@ret_stays: the module is never unloaded.
 */
struct fathom_unwind_rule fathom_self_find_rule(const struct fathom_self *self, uintptr_t avma,
						bool *ret_stays);

/* Room for an answer: a part of the caller's buffer. */
struct fathom_self_room {
	struct fathom_answer *answer;
	struct fathom_module_info *module; /* answer->module, once it is known */
	char *at;                          /* what is left: for frames, or for texts */
	size_t left;
};

/* Does as fathom_self_lookup(). @is_current: the loader's counters say that all places hold. */
const struct fathom_answer *fathom_self_answer(const struct fathom_self *self, struct fathom_pc pc,
					       uint32_t flags, bool is_current, void *buffer,
					       size_t size);

#endif
