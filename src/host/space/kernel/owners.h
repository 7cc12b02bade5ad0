/* SPDX-License-Identifier: MIT */
/* The owners of kernel symbols: the image, the modules, and other words in brackets in kallsyms. */
#ifndef FATHOM_KERNEL_OWNERS_H
#define FATHOM_KERNEL_OWNERS_H

#include "host/base/array.h"
#include "host/space/kernel/kernel.h"

struct fathom_kernel_owner {
	struct fathom_holder holder; /* its module is NULL if it has no usable file */
	char *path;                  /* "[NAME]" */
	uint64_t *sections;          /* of a module's file: avma of each, 0: not loaded; or NULL */
	enum fathom_reason reason;   /* why there is no file */
	uint32_t next;               /* next of the same hash: number + 1; 0: none */
	bool is_known;               /* its file was looked for */
};

#define FATHOM_OWNER_BUCKETS 256

struct fathom_kernel_owners {
	struct fathom_kernel *kernel;
	FATHOM_ARRAY_OF(struct fathom_kernel_owner *); /* items[0] is the image */
	uint32_t bucket[FATHOM_OWNER_BUCKETS]; /* by the hash of the name: number + 1; 0: none */
};

/* Begins with the image alone. FATHOM_E_MEMORY. */
fathom_err fathom_kernel_owners_init(struct fathom_kernel_owners *o, struct fathom_kernel *k);
void fathom_kernel_owners_deinit(struct fathom_kernel_owners *o);

/*
 * Finds the number of the owner @name, "" for the image; adds it if need be. *@ret is FATHOM_NONE
 * if there are too many. FATHOM_E_MEMORY.
 */
fathom_err fathom_kernel_owners_use(struct fathom_kernel_owners *o, struct fathom_str name,
				    uint32_t *ret);

/* Looks for the file of owner @i and reads the addresses of its sections, once. FATHOM_E_MEMORY. */
fathom_err fathom_kernel_owners_open(struct fathom_kernel_owners *o, uint32_t i,
				     struct fathom_kernel_owner **ret);

#endif
