/* SPDX-License-Identifier: MIT */
/*
 * The calling process, prepared: what host/self*.c share. What is searched later, also by signal
 * handlers, is in safe/self/table.h.
 *
 * To prepare is to look at this process as at any other, once, and to copy of each module
 * what is needed. Files are open for no longer than that. What was copied of libraries that are
 * gone is kept for some time, for answers point to it; one that comes back finds it ready.
 */
#ifndef FATHOM_SELF_SELF_H
#define FATHOM_SELF_SELF_H

#include <pthread.h>

#include "host/base/array.h"
#include "host/file/maps.h"
#include "host/module/cache_read.h"
#include "safe/self/table.h"

/* A module that was prepared. */
struct fathom_self_demangled_array {
	FATHOM_ARRAY_OF(struct fathom_self_demangled);
};

struct fathom_self_prepared {
	struct fathom_self_prepared *next;
	struct fathom_self_module module;
	uint64_t look;  /* the last one that met it */
	bool stays;     /* it was published as what is never unloaded, and is never freed */
	uintptr_t bias; /* where it was met first */
	/* What it was made from; only one that stays is met again without either. */
	uint64_t files; /* fathom_cache_identity(), or 0 */
	uint8_t build_id[64];
	char *path;
	/* What module points to. */
	uint64_t *starts;
	uint32_t *winners;
	uint32_t *buckets;
	struct fathom_self_symbol *symbols;
	struct fathom_bytes_array strings;
	struct fathom_self_demangled_array demangled;
	struct fathom_cache_file *lines;
	uint64_t bytes; /* counted against the budget */
};

/* Copies the symbols of @m to @p; FATHOM_E_MEMORY. */
fathom_err fathom_self_copy_names(struct fathom_module *m, struct fathom_self_prepared *p);
/* Has the lines of @m at hand for @p; FATHOM_E_MEMORY. Why there are none is p->module.no_lines. */
fathom_err fathom_self_copy_lines(struct fathom_module *m, struct fathom_self_prepared *p);

/* Appends @s, with a NUL, to p->strings; its offset, or 0 without memory, and for nothing. */
uint32_t fathom_self_add_string(struct fathom_self_prepared *p, struct fathom_str s);
/* The same for the demangled form of @linkage; FATHOM_SELF_NONE when it is not mangled. */
uint32_t fathom_self_add_demangled(struct fathom_self_prepared *p,
				   struct fathom_bytes_array *scratch, struct fathom_str linkage);

/* Makes the map of this process of what the loader says. FATHOM_E_MEMORY. */
fathom_err fathom_self_make_map(uint64_t page, struct fathom_maps *ret);

/* How many objects the loader has loaded and unloaded so far. */
struct fathom_self_counters {
	uint64_t loaded;
	uint64_t unloaded;
};

struct fathom_self_counters fathom_self_count(void);

/* Returns when no dlopen() or dlclose() is at work that was at the time of the call. */
void fathom_self_await_loader(void);

struct fathom_soname_array {
	FATHOM_ARRAY_OF(char *);
};

/* An object as the loader has it, avma. */
struct fathom_self_loaded {
	uintptr_t bias;
	uintptr_t low;
	uintptr_t high;
	char *path;   /* as it was asked for; of the program how it was started */
	char *soname; /* NULL: none */
	struct fathom_soname_array needed;
	bool stays; /* it is never unloaded */
	bool is_vdso;
};

struct fathom_self_loaded_array {
	FATHOM_ARRAY_OF(struct fathom_self_loaded);
};

/* Lists the objects that are loaded, the program first. */
fathom_err fathom_self_list(struct fathom_self_loaded_array *ret);
void fathom_self_list_free(struct fathom_self_loaded_array *list);

#endif
