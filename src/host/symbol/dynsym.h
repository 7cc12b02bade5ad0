/* SPDX-License-Identifier: MIT */
/*
 * What the dynamic linker knows of a file: its symbols by name, their versions, what the file needs
 * (System V gABI 4.3, chapter 5, "Dynamic Section").
 */
#ifndef FATHOM_SYMBOL_DYNSYM_H
#define FATHOM_SYMBOL_DYNSYM_H

#include "host/base/memory.h"
#include "host/symbol/tables.h"
#include "safe/elf/gnu_hash.h"
#include "safe/elf/version.h"

struct fathom_dynsym {
	const struct fathom_object *object;
	uint32_t number; /* of .dynsym in the tables of its module; FATHOM_NONE: it has none */
	struct fathom_dynamic dynamic;
	struct fathom_symtab table;
	struct fathom_hash_table hash; /* where has_hash */
	struct fathom_versions versions;
	struct fathom_str *names; /* of versions, by their numbers */
	uint32_t n_names;
	bool has_hash;
};

/*
 * Reads what the main object of @set has. The number is FATHOM_NONE if that is not for the dynamic
 * linker. FATHOM_E_MEMORY.
 */
fathom_err fathom_dynsym_init(struct fathom_dynsym *d, const struct fathom_symbol_set *set);
void fathom_dynsym_deinit(struct fathom_dynsym *d);

/* The version of symbol @i, data NULL for none; whether it is what who names none gets. */
struct fathom_str fathom_dynsym_version(const struct fathom_dynsym *d, uint32_t i,
					bool *ret_default);

/* What the dynamic linker does with one symbol that has the name it looks for. */
enum fathom_dlsym_verdict {
	FATHOM_DLSYM_NO,     /* passes it over */
	FATHOM_DLSYM_YES,    /* takes it */
	FATHOM_DLSYM_UNIQUE, /* takes it if no other of the file is like it */
};

/*
 * Whether dlsym(), which names no version, would take symbol @i, which is @s: glibc's do_lookup_x()
 * and check_match(). With @is_versioned, dlvsym(), which names the one that it has.
 */
enum fathom_dlsym_verdict fathom_dynsym_verdict(const struct fathom_dynsym *d, uint32_t i,
						const struct fathom_symbol *s, bool is_versioned);

/* Asks the hash table for the first defined symbol called @name; false: there is none. */
bool fathom_dynsym_find(const struct fathom_dynsym *d, struct fathom_str name,
			struct fathom_symbol *ret);

/* The name in entry number @n, from 0, of those with tag DT_NEEDED; data is NULL behind the last.
 */
struct fathom_str fathom_dynsym_needed(const struct fathom_dynsym *d, uint32_t n);
/* DT_SONAME; data is NULL when there is none. */
struct fathom_str fathom_dynsym_soname(const struct fathom_dynsym *d);

#endif
