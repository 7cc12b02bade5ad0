/* SPDX-License-Identifier: MIT */
/*
 * A module: one ELF file with everything that belongs to it. Opening it makes what is cheap (the
 * files, views of the symbol tables); the rest is made on first use.
 */
#ifndef FATHOM_MODULE_MODULE_H
#define FATHOM_MODULE_MODULE_H

#include "fathom/symbolize.h"
#include "host/base/context.h"
#include "host/base/notes.h"
#include "host/base/search_paths.h"
#include "host/file/object.h"
#include "host/module/debug.h"
#include "host/module/unwind_tables.h"
#include "host/symbol/dynsym.h"
#include "host/symbol/name_index.h"
#include "host/symbol/tables.h"

#define FATHOM_ALIAS_RULES 3

struct fathom_cache_file;

struct fathom_module {
	struct fathom *session;
	const struct fathom_search_paths *paths; /* of the target */
	struct fathom_object *main;
	struct fathom_object *debug; /* holds the DWARF: main, or a separate file; NULL: none */
	struct fathom_object *mini;  /* MiniDebugInfo, or NULL */
	/* Made of Go's own table where main has no symbols, or NULL. */
	struct fathom_object *go_symbols;
	bool has_go_table;          /* lines are made of it when they are needed */
	struct fathom_notes *notes; /* the target's */
	struct fathom_symbol_set symbols;
	struct fathom_unwind_tables unwind;
	_Atomic(struct fathom_symbol_index *) symbol_index[FATHOM_ALIAS_RULES];
	_Atomic(struct fathom_dynsym *) dynsym;
	_Atomic(struct fathom_name_index *) name_index[FATHOM_MAX_SYMTABS]; /* one for each table */
	_Atomic uint32_t name_passes; /* passes over the tables that looked for names */
	_Atomic uint32_t passes;      /* addresses answered by passes over the tables */
	_Atomic(struct fathom_debug *) dwarf;
	_Atomic int32_t dwarf_error;     /* why dwarf is NULL although debug is not */
	struct fathom_cache_file *cache; /* the stored index, or NULL */
	_Atomic uint64_t cost_ns;        /* spent decompressing and decoding */
	bool is_unverified;              /* nothing proves that it is the file that was mapped */
	enum fathom_reason no_debug;     /* why debug is NULL */
	_Atomic uint64_t jit_descriptor; /* svma, or a JIT_ constant of module.c */
	_Atomic uint64_t jit_registry;   /* likewise */
};

/*
 * Opens a module of @file, which it takes over, also on failure; finds its debug files. Adds what
 * goes wrong to @notes.
 */
fathom_err fathom_module_open(const struct fathom_search_paths *paths, struct fathom_file *file,
			      struct fathom_notes *notes, struct fathom_module **ret,
			      struct fathom_errinfo *reterr);
/*
 * Does the same for @main, an object that is already open. Returns FATHOM_E_MEMORY or
 * FATHOM_E_CANCELLED on failure.
 */
fathom_err fathom_module_create(const struct fathom_search_paths *paths, struct fathom_object *main,
				struct fathom_notes *notes, struct fathom_module **ret);
/* Does the same without looking for files: @main has all there is. */
fathom_err fathom_module_create_alone(const struct fathom_search_paths *paths,
				      struct fathom_object *main, struct fathom_notes *notes,
				      struct fathom_module **ret);
/*
 * Does the same for @main, a skeleton (skeleton.h), which @cache, an index that answers alone,
 * stands for; both are taken over, also on failure.
 */
fathom_err fathom_module_create_stored(const struct fathom_search_paths *paths,
				       struct fathom_object *main, struct fathom_cache_file *cache,
				       struct fathom_notes *notes, struct fathom_module **ret);
void fathom_module_close(struct fathom_module *m);

/*
 * Finds the SFrame section of the module and the svma of its first byte; an empty one if it has
 * none. It is not kept.
 */
struct fathom_bytes fathom_module_sframe(struct fathom_module *m, uint64_t *ret_svma);

/* Finds __jit_debug_descriptor, looked up once; returns false if the module has none. */
bool fathom_module_jit_descriptor(struct fathom_module *m, uint64_t *ret_svma);
/* Finds the head of its registry of published code (safe/jit/registry.h), likewise. */
bool fathom_module_jit_registry(struct fathom_module *m, uint64_t *ret_svma);
/* Notes that the module has no __jit_debug_descriptor, after a caller has looked. */
void fathom_module_set_no_jit(struct fathom_module *m);

/* Returns the index of symbols by address for @rule, made on first use; NULL if out of memory. */
struct fathom_symbol_index *fathom_module_symbols(struct fathom_module *m, enum fathom_alias rule);

/* Making an index of names takes as long as this many passes over the tables. */
#define FATHOM_INDEX_PASSES 16

/* Returns the index of the names of table @t, made on first use; NULL if out of memory. */
const struct fathom_name_index *fathom_module_names(struct fathom_module *m, uint32_t t);

/* Returns what the dynamic linker knows of the module, read on first use; NULL if out of memory. */
const struct fathom_dynsym *fathom_module_dynsym(struct fathom_module *m);

/* Returns the debug information, opened on first use; NULL if there is none (*@ret_reason). */
struct fathom_debug *fathom_module_debug(struct fathom_module *m, enum fathom_reason *ret_reason);

/* Returns FATHOM_E_CHANGED, with details in @reterr, if a file of @m was cut (mapped.h). */
fathom_err fathom_module_check(const struct fathom_module *m, struct fathom_errinfo *reterr);

/* Does the same, also if the file of @m or its debug file was overwritten since it was opened. */
fathom_err fathom_module_check_files(const struct fathom_module *m, struct fathom_errinfo *reterr);

/* Returns the reason for missing answers that @err of a debug section stands for. */
enum fathom_reason fathom_reason_of(fathom_err err);

#endif
