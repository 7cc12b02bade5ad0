/* SPDX-License-Identifier: MIT */
/*
 * The dynamic linker's view of a file: its symbols by name, their versions, and the files that it
 * needs (System V gABI 4.3, chapter 5, "Dynamic Section").
 */
#ifndef FATHOM_SYMBOL_DYNSYM_H
#define FATHOM_SYMBOL_DYNSYM_H

#include "host/base/memory.h"
#include "host/symbol/tables.h"
#include "safe/elf/gnu_hash.h"
#include "safe/elf/version.h"

struct fathom_dynsym {
	const struct fathom_object *object;
	uint32_t number; /* of .dynsym in the tables of its module, or FATHOM_NONE */
	struct fathom_dynamic dynamic;
	struct fathom_symtab table;
	struct fathom_hash_table hash; /* if has_hash */
	struct fathom_versions versions;
	struct fathom_str *names; /* of versions, by number */
	uint32_t n_names;
	bool has_hash;
};

/*
 * Reads the dynamic section of the main object of @set. Sets number to FATHOM_NONE if the object is
 * not for the dynamic linker. Returns FATHOM_OK or FATHOM_E_MEMORY.
 */
fathom_err fathom_dynsym_init(struct fathom_dynsym *d, const struct fathom_symbol_set *set);
void fathom_dynsym_deinit(struct fathom_dynsym *d);

/* Returns the version of symbol @i, with data NULL if none, and whether it is the default one. */
struct fathom_str fathom_dynsym_version(const struct fathom_dynsym *d, uint32_t i,
					bool *ret_default);

/* Verdicts of the dynamic linker on a symbol that has the name it looks up. */
enum fathom_dlsym_verdict {
	FATHOM_DLSYM_NO,     /* skips it */
	FATHOM_DLSYM_YES,    /* takes it */
	FATHOM_DLSYM_UNIQUE, /* takes it unless the file has another one like it */
};

/*
 * Returns whether dlsym(), which names no version, would take symbol @i, which is @s: glibc's
 * do_lookup_x() and check_match(). With @is_versioned, whether dlvsym() would with its version.
 */
enum fathom_dlsym_verdict fathom_dynsym_verdict(const struct fathom_dynsym *d, uint32_t i,
						const struct fathom_symbol *s, bool is_versioned);

/* Looks up the first defined symbol called @name in the hash table; false if there is none. */
bool fathom_dynsym_find(const struct fathom_dynsym *d, struct fathom_str name,
			struct fathom_symbol *ret);

/* Returns name @n, from 0, of the entries with tag DT_NEEDED; data is NULL after the last. */
struct fathom_str fathom_dynsym_needed(const struct fathom_dynsym *d, uint32_t n);
/* Returns DT_SONAME; data is NULL if there is none. */
struct fathom_str fathom_dynsym_soname(const struct fathom_dynsym *d);

#endif
