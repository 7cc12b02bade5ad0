/* SPDX-License-Identifier: MIT */
/*
 * The prepared calling process, as host/self/ shares it. safe/self/table.h has the tables that
 * lookups and signal handlers search.
 *
 * Preparing opens this process like any other, once, copies the needed data of each module, and
 * closes all files. Copies of unloaded libraries are kept for some time, because answers point to
 * them; a library that comes back reuses its copy.
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
	uint64_t look;  /* number of the last look that found it */
	bool stays;     /* published as never unloaded, so never freed */
	uintptr_t bias; /* at first sight */
	/* Identity: only a module that stays is recognized without either. */
	uint64_t files; /* fathom_cache_identity(), or 0 */
	uint8_t build_id[64];
	char *path;
	/* Memory that module points to. */
	uint64_t *starts;
	uint32_t *winners;
	uint32_t *buckets;
	struct fathom_self_symbol *symbols;
	struct fathom_bytes_array strings;
	struct fathom_self_demangled_array demangled;
	struct fathom_cache_file *lines;
	struct fathom_unwind_table *rules; /* NULL: none */
	uint64_t bytes;                    /* counted against the budget */
};

/* Copies the symbols of @m to @p; FATHOM_E_MEMORY. */
fathom_err fathom_self_copy_names(struct fathom_module *m, struct fathom_self_prepared *p);
/*
 * Prepares the lines of @m for @p; FATHOM_E_MEMORY. If there are none, p->module.no_lines says why.
 */
fathom_err fathom_self_copy_lines(struct fathom_module *m, struct fathom_self_prepared *p);

/*
 * Appends @s, with a NUL, to p->strings; returns its offset, or 0 without memory or if @s is empty.
 */
uint32_t fathom_self_add_string(struct fathom_self_prepared *p, struct fathom_str s);
/*
 * Appends the demangled form of @linkage; returns its offset, or FATHOM_SELF_NONE if it is not
 * mangled.
 */
uint32_t fathom_self_add_demangled(struct fathom_self_prepared *p,
				   struct fathom_bytes_array *scratch, struct fathom_str linkage);

/* Builds the map of this process from the loader's data. FATHOM_E_MEMORY. */
fathom_err fathom_self_make_map(uint64_t page, struct fathom_maps *ret);

/* Numbers of objects that the loader has loaded and unloaded so far. */
struct fathom_self_counters {
	uint64_t loaded;
	uint64_t unloaded;
};

struct fathom_self_counters fathom_self_count(void);

/* Waits until every dlopen() and dlclose() in progress at the call has finished. */
void fathom_self_await_loader(void);

struct fathom_soname_array {
	FATHOM_ARRAY_OF(char *);
};

/* An object in the loader's list; addresses are avmas. */
struct fathom_self_loaded {
	uintptr_t bias;
	uintptr_t low;
	uintptr_t high;
	char *path;   /* as passed to the loader; the program: as started */
	char *soname; /* NULL: none */
	struct fathom_soname_array needed;
	bool stays; /* never unloaded */
	bool is_vdso;
};

struct fathom_self_loaded_array {
	FATHOM_ARRAY_OF(struct fathom_self_loaded);
};

/* Lists the loaded objects, the program first. */
fathom_err fathom_self_list(struct fathom_self_loaded_array *ret);
void fathom_self_list_free(struct fathom_self_loaded_array *list);

#endif
