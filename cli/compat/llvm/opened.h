/* SPDX-License-Identifier: MIT */
/*
 * The modules of fathom llvm-symbolizer that are open, and the addresses that are asked of each in
 * a batch. Modules stay open while the session has memory; then those used longest ago make room.
 */
#ifndef FATHOM_CLI_COMPAT_LLVM_OPENED_H
#define FATHOM_CLI_COMPAT_LLVM_OPENED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/compat/llvm/flags.h"
#include "cli/compat/llvm/request.h"
#include "fathom/symbolize.h"

/* Addresses of one module that are looked up in one batch. */
struct llvm_lookup {
	uint64_t *addresses;
	size_t n;
	size_t cap;
	struct fathom_answers *answers;
};

/* A variable of a relocatable file. */
struct llvm_object {
	uint64_t value; /* in its section */
	uint64_t size;
	uint32_t section;
};

struct llvm_module {
	char *name; /* a path, or the upper-case digits of a build-id */
	size_t name_size;
	bool is_build_id;
	struct fathom_target *target; /* NULL: it cannot be read */
	char *error;                  /* why */
	bool is_error_told; /* once, but of a build-id that no file has: for each request */
	bool is_relocatable;
	bool has_objects; /* they have been read */
	struct llvm_object *objects;
	size_t n_objects;
	struct llvm_lookup code;
	struct llvm_lookup data;
	uint64_t batch;           /* that named it last */
	struct llvm_module *next; /* in its bucket */
	struct llvm_module *newer;
	struct llvm_module *older; /* in the order of their last use */
};

struct llvm_modules {
	struct fathom *session;
	const struct llvm_options *options;
	struct llvm_module **buckets; /* a power of two */
	size_t n_buckets;
	size_t n;
	struct llvm_module *newest;
	struct llvm_module *oldest;
	uint64_t batch; /* the number of this one */
	char *digits;   /* of the build-id that is looked for */
};

/* Prepares @m, all zero. */
void llvm_modules_init(struct llvm_modules *m, struct fathom *session,
		       const struct llvm_options *options);
void llvm_modules_deinit(struct llvm_modules *m);

/* Returns the open module called @name, which is of this batch now, or NULL. */
struct llvm_module *llvm_modules_find(struct llvm_modules *m, struct llvm_text name,
				      bool is_build_id);

/* Returns whether there is no room for one more, and all that are open are of this batch. */
bool llvm_modules_are_full(const struct llvm_modules *m);

/* Opens the module called @name, which is not open; others may be closed for it. */
struct llvm_module *llvm_modules_open(struct llvm_modules *m, struct llvm_text name,
				      bool is_build_id);

/* Ends the batch: its lookups are forgotten. */
void llvm_modules_end_batch(struct llvm_modules *m);

/* Returns the first module of this batch, or NULL; the others come by their older while they are.
 */
struct llvm_module *llvm_modules_asked(const struct llvm_modules *m);
struct llvm_module *llvm_modules_next_asked(const struct llvm_modules *m,
					    const struct llvm_module *module);

/*
 * Returns the address that the library takes for @address of a request. LLVM lays all sections of a
 * relocatable file over each other: of data it means the variable that starts last at or before it,
 * if that reaches so far, and else .text.
 */
uint64_t llvm_module_address(struct llvm_module *m, uint64_t address, bool is_data);

/* Returns whether no file has the build-id that @m is called by. */
bool llvm_module_is_missing(const struct llvm_module *m);

/* Returns why @m cannot be read. */
const char *llvm_module_error(const struct llvm_module *m);

#endif
