/* SPDX-License-Identifier: MIT */
/*
 * The open modules of fathom llvm-symbolizer, and the addresses to look up in each in a batch.
 * Modules stay open while the session has memory; then the least recently used are closed.
 */
#ifndef FATHOM_CLI_COMPAT_LLVM_OPENED_H
#define FATHOM_CLI_COMPAT_LLVM_OPENED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/compat/llvm/flags.h"
#include "cli/compat/llvm/request.h"
#include "fathom/symbolize.h"

/* Addresses of one module to look up in one batch. */
struct llvm_lookup {
	uint64_t *addresses;
	size_t n;
	size_t cap;
	struct fathom_answers *answers;
};

/* A variable of a relocatable file. */
struct llvm_object {
	uint64_t value; /* offset in its section */
	uint64_t size;
	uint32_t section;
};

struct llvm_module {
	char *name; /* a path, or the upper-case digits of a build-id */
	size_t name_size;
	bool is_build_id;
	struct fathom_target *target; /* NULL: unreadable, see error */
	char *error;                  /* why the module is unreadable */
	bool is_error_told; /* reported once; for a build-id without a file, for each request */
	bool is_relocatable;
	bool has_objects; /* objects were read */
	struct llvm_object *objects;
	size_t n_objects;
	struct llvm_lookup code;
	struct llvm_lookup data;
	uint64_t batch;           /* last batch that named the module */
	struct llvm_module *next; /* next in the bucket */
	struct llvm_module *newer;
	struct llvm_module *older; /* in LRU order */
};

struct llvm_modules {
	struct fathom *session;
	const struct llvm_options *options;
	struct llvm_module **buckets; /* a power of two */
	size_t n_buckets;
	size_t n;
	struct llvm_module *newest;
	struct llvm_module *oldest;
	uint64_t batch; /* number of the current batch */
	char *digits;   /* of the build-id being looked up */
};

/* Initializes @m, which is all zero. */
void llvm_modules_init(struct llvm_modules *m, struct fathom *session,
		       const struct llvm_options *options);
void llvm_modules_deinit(struct llvm_modules *m);

/* Returns the open module called @name and adds it to this batch; NULL if it is not open. */
struct llvm_module *llvm_modules_find(struct llvm_modules *m, struct llvm_text name,
				      bool is_build_id);

/* Returns whether there is no room for another module and all open ones belong to this batch. */
bool llvm_modules_are_full(const struct llvm_modules *m);

/* Opens the module called @name, which is not open; may close others. */
struct llvm_module *llvm_modules_open(struct llvm_modules *m, struct llvm_text name,
				      bool is_build_id);

/* Ends the batch and drops its lookups. */
void llvm_modules_end_batch(struct llvm_modules *m);

/* Returns the first module of this batch, or NULL; the others follow by older. */
struct llvm_module *llvm_modules_asked(const struct llvm_modules *m);
struct llvm_module *llvm_modules_next_asked(const struct llvm_modules *m,
					    const struct llvm_module *module);

/*
 * Translates @address of a request into an address for the library. LLVM overlays all sections of a
 * relocatable file: a data address means the last variable that starts at or before it, if it
 * covers the address, else .text.
 */
uint64_t llvm_module_address(struct llvm_module *m, uint64_t address, bool is_data);

/* Returns whether no file has the build-id that names @m. */
bool llvm_module_is_missing(const struct llvm_module *m);

/* Returns why @m is unreadable. */
const char *llvm_module_error(const struct llvm_module *m);

#endif
