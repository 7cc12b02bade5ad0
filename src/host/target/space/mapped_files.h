/* SPDX-License-Identifier: MIT */
/* What one view knows of a space: a map, and the files of those mappings that were asked about. */
#ifndef FATHOM_TARGET_SPACE_MAPPED_FILES_H
#define FATHOM_TARGET_SPACE_MAPPED_FILES_H

#include "host/file/bias.h"
#include "host/target/space/opened_file.h"
#include "host/target/space/space.h"

/* A file in use. */
struct fathom_used_file {
	struct fathom_holder holder;
	struct fathom_space_file *file;
	struct fathom_bias_votes votes;
};

/* What is known of one mapping. */
struct fathom_known_mapping {
	uint32_t before; /* the nearest mapping of a file, if all between is mapped; maps.n: none */
	uint32_t behind; /* the same, to the other side */
	uint32_t file;   /* in files; FATHOM_NONE: it has none */
	uint32_t opened; /* the same + 1, if this is the first mapping of the file; 0: not yet */
	enum fathom_reason reason; /* why it is of no module */
	uint64_t bias;
	bool looked; /* the file, the reason and the bias are known */
};

struct fathom_space_view {
	struct fathom_view view;
	struct fathom_space *space;
	struct fathom_maps maps;
	struct fathom_known_mapping *of; /* each mapping */
	struct fathom_used_file **files;
	uint32_t n_files;
	uint32_t cap_files;
	uint64_t entry; /* of a view of memory: avma where the program started; 0: not known */
	struct fathom_space_memory memory;
	struct fathom_reader raw; /* of memory as it is, or was stored, without what files have */
	struct fathom_jit_process jit;
};

/* Frees the view that is kept; the files of @s are being closed. */
void fathom_space_drop_idle(struct fathom_space *s);

/* Finds out what mapping @i is of, once. FATHOM_E_MEMORY, FATHOM_E_UNSUPPORTED. */
fathom_err fathom_space_look_up(struct fathom_space_view *v, size_t i);

/* Reads memory and, where it was not stored, constant segments from files (constant_memory.c). */
size_t fathom_space_view_read(struct fathom_space_view *v, uint64_t avma, void *to, size_t size);

/* Prepares what code that the process makes is asked of (made_code.c). */
void fathom_space_init_jit(struct fathom_space_view *v);

/* Calls @fn for each module, or for each that has @code only. */
fathom_err fathom_space_walk(struct fathom_space_view *v, bool code, fathom_module_fn fn,
			     void *data);

/* The file of mapping @i, which is of a module. */
static inline struct fathom_used_file *fathom_space_used_file(const struct fathom_space_view *v,
							      size_t i)
{
	return v->files[v->of[i].file];
}

#endif
