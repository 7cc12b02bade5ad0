/* SPDX-License-Identifier: MIT */
/* The modules that a log names, and their files, each of which is opened once. */
#ifndef FATHOM_FILTER_LOG_MODULES_H
#define FATHOM_FILTER_LOG_MODULES_H

#include "host/base/key_map.h"
#include "host/base/search_paths.h"
#include "host/filter/kernel_symbols.h"
#include "host/filter/patch_sites.h"
#include "host/filter/log_scan.h"
#include "host/space/target.h"
#include "host/store/asked_in_turn.h"

/* A module that a log names. */
struct fathom_log_module {
	struct fathom_str name;       /* as in the log; no data: the target */
	struct fathom_str build_id;   /* hexadecimal, as in the log; size 0: not there */
	struct fathom_target *target; /* NULL: there is no such file; else held */
	uint8_t reason;               /* enum fathom_reason: why the target is NULL */
	bool is_open;                 /* its file was looked for */
	bool is_kernel;               /* a module of the kernel */
	bool is_by_path;              /* no build-id says that the file is the log's */
	uint32_t n_unexplained;       /* stacks in a row that no place of the file explains */
	/* Calls of numbered frames that lead to the frame inside of them, and that do not. */
	uint64_t n_linked;
	uint64_t n_not_linked;
	bool is_misplaced; /* the stack that is looked at shows that it is not in its place */
	bool is_refuted;   /* the log's return addresses are those of another file */
	/* Where its code may differ from the file's: a program's, the kernel's; NULL: not known. */
	struct fathom_patch_sites *sites[2];
	struct fathom_kernel_symbols *symbols; /* NULL: not read */
};

struct fathom_log_modules {
	struct fathom *session;
	struct fathom_search_paths *paths;
	struct fathom_target *target;  /* of the caller; NULL: none */
	struct fathom_str target_name; /* the last part of its path */
	char **module_dirs;            /* NULL-terminated */
	struct fathom_store_list stores;
	struct {
		FATHOM_ARRAY_OF(struct fathom_log_module);
	} modules;
	size_t n_open;                 /* files */
	struct fathom_key_map numbers; /* in that, by a hash of name and build-id */
	struct fathom_arena texts;
};

/*
 * Returns the module that @number is in, opened, as *@ret, an index of modules. The file is that of
 * the build-id, below the debug directories; else the index of the build-id in a store; else the
 * file at the path, first below the sysroot; else of that name in a module directory; else the
 * target, if its file has that name; else that of the build-id from servers. FATHOM_E_MEMORY,
 * FATHOM_E_CANCELLED.
 */
fathom_err fathom_log_modules_find(struct fathom_log_modules *m,
				   const struct fathom_log_number *number, size_t *ret,
				   struct fathom_errinfo *reterr);

/*
 * Returns the places of @module, which is open, whose bytes may differ in memory, as *@ret; with
 * @is_kernel also those that the kernel patches. FATHOM_E_MEMORY.
 */
fathom_err fathom_log_module_sites(struct fathom_log_module *module, bool is_kernel,
				   const struct fathom_patch_sites **ret,
				   struct fathom_errinfo *reterr);

/*
 * Returns whether the kernel may print @size for the symbol at @svma of @module, which is open, of
 * which the file states @stated bytes; in *@ret. FATHOM_E_MEMORY.
 */
fathom_err fathom_log_module_has_size(struct fathom_log_module *module, uint64_t svma,
				      uint64_t stated, uint64_t size, bool *ret,
				      struct fathom_errinfo *reterr);

/* Closes the files if there are many: none is in use. They are opened again when they are named. */
void fathom_log_modules_trim(struct fathom_log_modules *m);

void fathom_log_modules_deinit(struct fathom_log_modules *m);

#endif
