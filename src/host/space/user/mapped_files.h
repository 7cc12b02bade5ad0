/* SPDX-License-Identifier: MIT */
/* A view of a space: a map, and the files of the mappings looked up so far. */
#ifndef FATHOM_USER_MAPPED_FILES_H
#define FATHOM_USER_MAPPED_FILES_H

#include "host/base/array.h"
#include "host/file/bias.h"
#include "host/space/user/opened_file.h"
#include "host/space/user/space.h"

/* A file in use. */
struct fathom_used_file {
	struct fathom_holder holder;
	struct fathom_space_file *file;
	struct fathom_bias_votes votes;
};

struct fathom_used_files {
	FATHOM_ARRAY_OF(struct fathom_used_file *);
};

/* Facts about one mapping. */
struct fathom_known_mapping {
	uint32_t before; /* nearest earlier mapping of a file, without a gap; maps.n: none */
	uint32_t behind; /* nearest later one, likewise */
	uint32_t file;   /* index in files; FATHOM_NONE: none */
	uint32_t opened; /* of the file's first mapping: file + 1; 0: not opened */
	enum fathom_reason reason; /* why it belongs to no module */
	uint64_t bias;
	bool looked; /* file, reason and bias are known */
};

struct fathom_space_view {
	struct fathom_view view;
	struct fathom_space *space;
	struct fathom_maps maps;
	struct fathom_known_mapping *of; /* indexed by mapping */
	struct fathom_used_files files;
	uint64_t entry; /* of a view of memory: avma of the program's entry; 0: unknown */
	struct fathom_space_memory memory;
	struct fathom_reader raw; /* memory as it is, or was stored, without what files have */
	struct fathom_jit_process jit;
};

/* Frees the kept idle view, before the files of @s are closed. */
void fathom_space_drop_idle(struct fathom_space *s);

/* Finds the file, reason and bias of mapping @i, once. FATHOM_E_MEMORY, FATHOM_E_UNSUPPORTED. */
fathom_err fathom_space_look_up(struct fathom_space_view *v, size_t i);

/* Reads memory; constant segments that were not stored come from files (constant_memory.c). */
size_t fathom_space_view_read(struct fathom_space_view *v, uint64_t avma, void *to, size_t size);

/* Prepares v->jit, the process for JIT look-ups (jit_code.c). */
void fathom_space_init_jit(struct fathom_space_view *v);

/* Calls @fn for each module or, if @code, for each one with code. */
fathom_err fathom_space_walk(struct fathom_space_view *v, bool code, fathom_module_fn fn,
			     void *data);

/* Returns the file of mapping @i, which belongs to a module. */
static inline struct fathom_used_file *fathom_space_used_file(const struct fathom_space_view *v,
							      size_t i)
{
	return v->files.items[v->of[i].file];
}

#endif
