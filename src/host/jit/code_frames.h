/* SPDX-License-Identifier: MIT */
/*
 * .eh_frame of JIT code that no module has: copies of sections, and of single entries,
 * with addresses as they are in memory (avma).
 */
#ifndef FATHOM_JIT_CODE_FRAMES_H
#define FATHOM_JIT_CODE_FRAMES_H

#include "host/base/memory.h"
#include "host/jit/code_table.h"
#include "safe/base/reader.h"
#include "safe/dwarf/cfi.h"

struct fathom_jit_code_frame;
struct fathom_jit_code_section;

struct fathom_jit_code_frames {
	struct fathom_memory *memory;
	struct {
		FATHOM_ARRAY_OF(struct fathom_jit_code_section *);
	} sections;
	size_t n_used; /* the first of sections: whole, and an FDE of them was read */
	struct {
		FATHOM_ARRAY_OF(struct fathom_jit_code_frame *);
	} frames;         /* those that were asked for */
	uint64_t counted; /* bytes counted in memory's budget */
};

/* A kind of program: how its call frame information is read. */
struct fathom_jit_code_layout {
	uint8_t address_size;
	bool swap;
};

/* Forgets all copies. */
void fathom_jit_code_frames_clear(struct fathom_jit_code_frames *f);

/*
 * Copies the section at @avma of memory @r up to its terminator. Returns FATHOM_OK and it in *@ret,
 * which lives as long as @f; FATHOM_E_CORRUPT if memory cannot be read up to there;
 * FATHOM_E_LIMIT over FATHOM_MAX_REGISTERED_FRAMES or the budget; FATHOM_E_MEMORY.
 */
fathom_err fathom_jit_code_frames_copy(struct fathom_jit_code_frames *f,
				       const struct fathom_reader *r,
				       const struct fathom_jit_code_layout *layout, uint64_t avma,
				       const struct fathom_cfi **ret);

/*
 * Copies the FDE at @avma and its CIE. FATHOM_E_CORRUPT; FATHOM_E_LIMIT; FATHOM_E_MEMORY; as
 * fathom_cie_read().
 */
fathom_err fathom_jit_code_frames_copy_fde(struct fathom_jit_code_frames *f,
					   const struct fathom_reader *r,
					   const struct fathom_jit_code_layout *layout,
					   uint64_t avma, const struct fathom_fde **ret);

/* Reads the FDE at @off of @cfi, which lives as long as @f, once. Errors as fathom_cie_read(). */
fathom_err fathom_jit_code_frames_read(struct fathom_jit_code_frames *f,
				       const struct fathom_cfi *cfi, uint64_t off,
				       const struct fathom_fde **ret);

/*
 * Takes over @bytes, .eh_frame of the code at [@start, @start + @size), from malloc(). Returns its
 * FDE, which covers that code whatever it states. FATHOM_E_CORRUPT if there is not exactly one;
 * errors as above.
 */
fathom_err fathom_jit_code_frames_take(struct fathom_jit_code_frames *f,
				       const struct fathom_jit_code_layout *layout, uint8_t *bytes,
				       size_t n_bytes, uint64_t start, uint64_t size,
				       const struct fathom_fde **ret);

/*
 * Before sections are looked for again, of which only those matter whose FDEs were read: returns
 * whether there is one that is whole.
 */
bool fathom_jit_code_frames_unmark(struct fathom_jit_code_frames *f);
/* Marks the sections that were copied from @avma and whose FDEs were read. */
void fathom_jit_code_frames_mark(struct fathom_jit_code_frames *f, uint64_t avma);

/*
 * Returns whether all copies whose FDEs were read equal the memory that they were made of, and the
 * whole sections among them are marked.
 */
bool fathom_jit_code_frames_stayed(const struct fathom_jit_code_frames *f,
				   const struct fathom_reader *r);

#endif
