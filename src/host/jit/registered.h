/* SPDX-License-Identifier: MIT */
/*
 * Call frame information that a program has registered with the unwinders in it, as JIT compilers
 * do: with libgcc's __register_frame() and with nongnu libunwind's _U_dyn_register(). Nothing of it
 * is exported but the functions, so the lists are found through their code (code_roots.h), and each
 * is verified before it is believed.
 *
 * libgcc up to 12 (unwind-dw2-fde.c): two lists of objects, those that a search has seen and those
 * that it has not; each object has a section like .eh_frame, or an array of such sections. libgcc
 * from 13 on (unwind-dw2-btree.h): a tree of ranges, whose leaves have the same objects.
 * LLVM's libunwind (UnwindCursor.hpp): an array of single FDEs. nongnu
 * libunwind (libunwind-dynamic.h): a list of tables of FDEs of the formats REMOTE_TABLE and
 * IP_OFFSET. Not handled: programs that have these libraries linked in statically; machines other
 * than x86-64; libunwind's formats DYNAMIC and TABLE.
 */
#ifndef FATHOM_JIT_REGISTERED_H
#define FATHOM_JIT_REGISTERED_H

#include "host/jit/code_roots.h"
#include "host/jit/jit.h"
#include "host/jit/code_frames.h"

/* An FDE that covers [low, high). */
struct fathom_registered_fde {
	uint64_t low; /* avma */
	uint64_t high;
	const struct fathom_cfi *cfi; /* NULL: off is the avma of the FDE */
	uint64_t off;                 /* in cfi */
	uint64_t entry;               /* avma of the entry that has off; 0: none */
	bool is_used;                 /* it was asked for, if it has an entry */
};

/* Code whose table of FDEs is in memory. */
struct fathom_registered_table {
	uint64_t low; /* avma */
	uint64_t high;
	uint64_t base;   /* that code is stated from */
	uint64_t frames; /* that FDEs are stated from */
	uint64_t avma;   /* of the table: pairs of 32-bit numbers, code and FDE */
	uint64_t n;      /* pairs */
	bool is_used;    /* an FDE of it was asked for */
	bool is_there;   /* it was found again */
};

struct fathom_registered {
	struct fathom_jit_code_frames *frames;
	struct fathom_jit_code_layout layout;
	struct {
		FATHOM_ARRAY_OF(struct fathom_registered_fde);
	} fdes; /* the newest first */
	struct {
		FATHOM_ARRAY_OF(struct fathom_registered_table);
	} tables;
	struct fathom_code_table index; /* orders: n - index in fdes */
	struct fathom_u64_array roots;  /* that led to something */
	size_t n_followed;              /* objects, sections and nodes */
	uint64_t n_bytes;               /* of sections */
	bool is_read;
};

void fathom_registered_init(struct fathom_registered *r, struct fathom_jit_code_frames *frames);
void fathom_registered_deinit(struct fathom_registered *r);

/* Reads the lists, once. FATHOM_E_MEMORY. */
fathom_err fathom_registered_read(struct fathom_registered *r, const struct fathom_jit_process *p);

/*
 * Finds the FDE of the code at @avma, among what was read; *@ret is NULL if there is none.
 * FATHOM_E_MEMORY.
 */
fathom_err fathom_registered_find(struct fathom_registered *r, const struct fathom_jit_process *p,
				  uint64_t avma, const struct fathom_fde **ret);

/* Returns whether all FDEs that were found are still registered, and have the same bytes. */
bool fathom_registered_stayed(struct fathom_registered *r, const struct fathom_jit_process *p);

/* Parts, each of which adds what it finds and fails only with FATHOM_E_MEMORY ---------------- */

/* A reading of the lists in the modules of a process. */
struct fathom_registered_work {
	struct fathom_registered *to;
	const struct fathom_jit_process *p;
	fathom_err err;
	bool again;                    /* find what was read before again, and read nothing else */
	struct fathom_size_array used; /* then: the tables that were used */
};

/* Reads an aligned word; false if it cannot be read. */
bool fathom_registered_word(const struct fathom_registered_work *w, uint64_t avma, uint64_t *ret);
/* Counts an object, a section or a node; false if there are too many. */
bool fathom_registered_count(struct fathom_registered_work *w);
/* Adds the FDEs of the section at @avma; returns whether it is one. */
bool fathom_registered_add_section(struct fathom_registered_work *w, uint64_t avma);

/* Adds @table. */
void fathom_registered_add_table(struct fathom_registered_work *w,
				 const struct fathom_registered_table *table);

typedef void (*fathom_root_fn)(struct fathom_registered_work *w, uint64_t first);

/*
 * Calls @fn for what the variable at @root points to; the second time only for variables that have
 * led to something.
 */
void fathom_registered_follow(struct fathom_registered_work *w, uint64_t root, fathom_root_fn fn);

/*
 * Follows the lists of libgcc, of LLVM's libunwind, or of the other libunwind, if @at is such a
 * library.
 */
void fathom_libgcc_read(struct fathom_registered_work *w, const struct fathom_module_at *at);
void fathom_llvm_cache_read(struct fathom_registered_work *w, const struct fathom_module_at *at);
void fathom_dyn_info_read(struct fathom_registered_work *w, const struct fathom_module_at *at);

#endif
