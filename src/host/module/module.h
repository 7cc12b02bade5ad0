/* SPDX-License-Identifier: MIT */
/*
 * A module: one ELF file with everything that belongs to it. What is cheap is made when the module
 * is opened (the files, views of the symbol tables); the rest when it is first needed.
 */
#ifndef FATHOM_MODULE_MODULE_H
#define FATHOM_MODULE_MODULE_H

#include "fathom/symbolize.h"
#include "host/base/context.h"
#include "host/base/notes.h"
#include "host/file/object.h"
#include "host/module/debug.h"
#include "host/module/unwind_tables.h"
#include "host/symbol/dynsym.h"
#include "host/symbol/name_index.h"
#include "host/symbol/name_search.h"
#include "host/symbol/tables.h"

#define FATHOM_ALIAS_RULES 3

struct fathom_cache_file;

struct fathom_module {
	struct fathom *session;
	struct fathom_object *main;
	struct fathom_object *debug; /* holds the DWARF: main, or a file of its own; NULL: none */
	struct fathom_object *mini;  /* MiniDebugInfo, or NULL */
	struct fathom_notes *notes;  /* of the target */
	struct fathom_symbol_set symbols;
	struct fathom_unwind_tables unwind;
	_Atomic(struct fathom_symbol_index *) symbol_index[FATHOM_ALIAS_RULES];
	_Atomic(struct fathom_dynsym *) dynsym;
	_Atomic(struct fathom_name_index *) name_index[FATHOM_MAX_SYMTABS]; /* of each table */
	_Atomic uint32_t name_passes; /* searches for names that were passes over the tables */
	_Atomic uint32_t passes;      /* addresses that were answered without indexes, by passes */
	_Atomic(struct fathom_debug *) dwarf;
	_Atomic int32_t dwarf_error;     /* why dwarf is NULL although there is a file */
	struct fathom_cache_file *cache; /* what an earlier run stored, or NULL */
	_Atomic uint64_t cost_ns;        /* spent decompressing and decoding */
	enum fathom_reason no_debug;     /* why debug is NULL */
	_Atomic uint64_t jit_descriptor; /* svma, or JIT_ of module.c */
};

/*
 * Reads @file, which is taken over, also on failure, and finds its debug files; what goes wrong is
 * added to @notes.
 */
fathom_err fathom_module_open(struct fathom *session, struct fathom_file *file,
			      struct fathom_notes *notes, struct fathom_module **ret,
			      struct fathom_errinfo *reterr);
/* The same for @main, an object that is open. */
fathom_err fathom_module_create(struct fathom *session, struct fathom_object *main,
				struct fathom_notes *notes, struct fathom_module **ret);
/* The same, without looking for files: @main has all there is. */
fathom_err fathom_module_create_alone(struct fathom *session, struct fathom_object *main,
				      struct fathom_notes *notes, struct fathom_module **ret);
void fathom_module_close(struct fathom_module *m);

/* Where the module has __jit_debug_descriptor, looked up once (svma); false when it has none. */
bool fathom_module_jit_descriptor(struct fathom_module *m, uint64_t *ret_svma);
/* Remembers that it has none, of whoever has looked. */
void fathom_module_set_no_jit(struct fathom_module *m);

/* The index of symbols by address for @rule, made on first use; NULL without memory. */
struct fathom_symbol_index *fathom_module_symbols(struct fathom_module *m, enum fathom_alias rule);

/* Making an index of names takes as long as so many passes over the tables. */
#define FATHOM_INDEX_PASSES 16

/* The index of the names of table @t, made on first use; NULL without memory. */
const struct fathom_name_index *fathom_module_names(struct fathom_module *m, uint32_t t);

/* Returns what the dynamic linker knows of the module, read on first use; NULL without memory. */
const struct fathom_dynsym *fathom_module_dynsym(struct fathom_module *m);

/* Looks for names as linked in all tables, by passes or, when that is done again and again, by
 * index.
 */
void fathom_module_search(struct fathom_module *m, struct fathom_name_search *s);

/* The debug information, made ready on first use; NULL when there is none, or *@ret_reason says
 * why. */
struct fathom_debug *fathom_module_debug(struct fathom_module *m, enum fathom_reason *ret_reason);

/* Returns FATHOM_E_CHANGED, which @reterr tells more of, if a file of @m was cut (mapped.h). */
fathom_err fathom_module_check(const struct fathom_module *m, struct fathom_errinfo *reterr);

/* The same if the file of @m or its debug file was overwritten since it was opened, too. */
fathom_err fathom_module_check_files(const struct fathom_module *m, struct fathom_errinfo *reterr);

/* The reason that an error of a debug section gives to the answers that need it. */
enum fathom_reason fathom_reason_of(fathom_err err);

#endif
