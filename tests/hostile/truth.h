/* SPDX-License-Identifier: MIT */
/*
 * What the whole file says of an address, and whether what a damaged one says is true, too. A true
 * answer says the same, or less:
 *
 * - The physical function has the name that the whole file gives it, with or without a clone
 *   suffix; or its name in the debug information ("turn" of Base::turn); or the name of another
 *   symbol at the very address where it starts; or bounds instead of a name
 *   ("func@[0x10..0x20]"); or no name.
 * - Each inlined call that is stated is one of the whole file's, in its order.
 * - The innermost place (file, line, column) is the whole file's; so is the place of each other
 *   frame. A place may be missing, or the directories at the front of its path.
 * - Where the whole file has no name or place, there is none.
 *
 * An error instead of answers is true.
 */
#ifndef HOSTILE_TRUTH_H
#define HOSTILE_TRUTH_H

#include <fathom/compat.h>
#include <fathom/fathom.h>
#include <stdbool.h>

#define TRUTH_FRAMES 32

struct truth_frame {
	char *name;  /* as linked, else plain; NULL: none */
	char *plain; /* as in the source; NULL: not known */
	char *place; /* "file:line:column"; NULL: none */
};

struct truth {
	uint64_t start; /* of the symbol, as stated in the file; without a symbol 0 */
	char *symbol;   /* NULL: none */
	size_t n;
	struct truth_frame frames[TRUTH_FRAMES]; /* innermost first */
};

/* Whether a symbol of this name starts at @start in the whole file. */
typedef int (*truth_alias_fn)(const void *data, uint64_t start, const char *name);

/* Reads answer @i, to be freed by truth_deinit(). */
void truth_read(struct truth *t, const struct fathom_answers *answers, size_t i);
void truth_deinit(struct truth *t);

/* Takes the name that @dwarf has for the physical function as another one for that of @t. */
void truth_add_plain(struct truth *t, const struct truth *dwarf);

/* Returns NULL if @said is true where the whole file says @whole, else what is wrong. */
const char *truth_wrong(const struct truth *whole, const struct truth *said, truth_alias_fn alias,
			const void *data);

/* Whether the two are the same in everything. */
int truth_equal(const struct truth *a, const struct truth *b);

/* Writes "inner file:line:column < outer ..." to standard output. */
void truth_print(const struct truth *t);

#endif
