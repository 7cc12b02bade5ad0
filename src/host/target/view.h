/* SPDX-License-Identifier: MIT */
/* What one batch knows of a space: a map, and the files of those mappings that were asked about. */
#ifndef FATHOM_TARGET_VIEW_H
#define FATHOM_TARGET_VIEW_H

#include "host/target/bias.h"
#include "host/target/opened_file.h"
#include "host/target/space.h"

/* A file in use. */
struct fathom_batch_file {
	struct fathom_space_file *file;
	struct fathom_bias_votes votes;
	const struct fathom_module_info *info; /* its module as answers have it; NULL: not yet */
};

/* What is known of one mapping. */
struct fathom_batch_mapping {
	uint32_t before; /* the nearest mapping of a file, if all between is mapped; maps.n: none */
	uint32_t behind; /* the same, to the other side */
	uint32_t file;   /* in files; FATHOM_NONE: it has none */
	uint32_t opened; /* the same + 1, if this is the first mapping of the file; 0: not yet */
	enum fathom_reason reason; /* why it is of no module */
	uint64_t bias;
	bool looked; /* the file, the reason and the bias are known */
};

struct fathom_space_batch {
	struct fathom_space *space;
	struct fathom_maps maps;
	struct fathom_batch_mapping *of; /* each mapping */
	struct fathom_batch_file *files;
	uint32_t n_files;
	uint32_t cap_files;
};

/* Reads the map, or takes what is kept of it. */
fathom_err fathom_space_batch_begin(struct fathom_space *s, struct fathom_space_batch *ret,
				    struct fathom_errinfo *reterr);
/*
 * Reads the part of the map that holds @addresses (avma), if the space can. With a part, the
 * functions below return FATHOM_E_UNSUPPORTED when the whole is needed: another batch has to begin.
 */
fathom_err fathom_space_batch_begin_part(struct fathom_space *s, const uint64_t *addresses,
					 size_t n, struct fathom_space_batch *ret);
/* Gives all files back, and closes those that are of no more use; or keeps all, what was stored. */
void fathom_space_batch_end(struct fathom_space_batch *b);
/* Frees what is kept; the files of @s are being closed. */
void fathom_space_batch_drop(struct fathom_space *s);

/* Finds out what mapping @i is of, once. FATHOM_E_MEMORY, FATHOM_E_UNSUPPORTED. */
fathom_err fathom_space_batch_look_up(struct fathom_space_batch *b, size_t i);

/*
 * The mapping, of the file of a module, that says what is at @avma; maps.n when there is none,
 * because of *@ret_reason. FATHOM_E_MEMORY, FATHOM_E_UNSUPPORTED.
 */
fathom_err fathom_space_batch_find(struct fathom_space_batch *b, uint64_t avma, size_t *ret,
				   enum fathom_reason *ret_reason);

/* Whether mappings @a and @b are of one module. */
bool fathom_space_batch_is_one(const struct fathom_space_batch *b, size_t i, size_t k);

/* Calls @fn for each module, as fathom_space_walk() does. FATHOM_E_MEMORY. */
fathom_err fathom_space_batch_walk(struct fathom_space_batch *b,
				   bool (*fn)(const struct fathom_space_module *m, void *data),
				   void *data);

/* The layout, as fathom_space_layout() tells it. FATHOM_E_MEMORY. */
fathom_err fathom_space_batch_layout(struct fathom_space_batch *b, struct fathom_space_layout *ret);

/* Reads memory, as fathom_space_read_mapped() does. */
size_t fathom_space_batch_read(struct fathom_space_batch *b, uint64_t avma, void *to, size_t size);

/* The file of mapping @i, which is of a module. */
struct fathom_batch_file *fathom_space_batch_file(const struct fathom_space_batch *b, size_t i);

#endif
