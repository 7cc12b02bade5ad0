/* SPDX-License-Identifier: MIT */
/*
 * Symbol tables (System V gABI, chapter 4, "Symbol Table"): reads entries of both classes and byte
 * orders into one form, tells which symbols can name code or data, and which of several names for
 * one address is served.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_ELF_SYMTAB_H
#define FATHOM_ELF_SYMTAB_H

#include "safe/elf/image.h"

struct fathom_symtab {
	struct fathom_bytes entries;
	struct fathom_bytes strings;
	struct fathom_bytes xindex; /* SHT_SYMTAB_SHNDX, or empty */
	uint64_t bias;              /* added to values that are addresses */
	uint32_t count;
	uint16_t machine; /* EM_; some have mapping symbols */
	uint8_t source;   /* enum fathom_source of answers from this table */
	bool is64;
	bool swap;
};

/*
 * SHN_ABS and the like, as stored in fathom_symbol.section. As 16-bit numbers they would collide
 * with real sections of files that have more than 65,280.
 */
#define FATHOM_SHN(special) ((uint32_t)(special) | UINT32_C(0xffff0000))

struct fathom_symbol {
	uint64_t value;
	uint64_t size;
	uint32_t name;      /* offset in the string table */
	uint32_t section;   /* index of the defining section, or FATHOM_SHN() */
	uint8_t type;       /* STT_ */
	uint8_t bind;       /* STB_ */
	uint8_t visibility; /* STV_ */
};

/* Prepares a view of @entries. The table is empty if entsize does not fit the class. */
struct fathom_symtab fathom_symtab_init(const struct fathom_image *image,
					struct fathom_bytes entries, uint64_t entsize,
					struct fathom_bytes strings, struct fathom_bytes xindex);

/* Reads entry @i, which must be below count. */
void fathom_symtab_get(const struct fathom_symtab *t, uint32_t i, struct fathom_symbol *ret);

/*
 * Returns the first symbol at or after @i whose value and size cover @svma; the table's count if
 * there is none.
 */
uint32_t fathom_symtab_covering(const struct fathom_symtab *t, uint32_t i, uint64_t svma);

/* Prefetches the entry of symbol @i, or its name. @i may be any number. */
void fathom_symtab_fetch(const struct fathom_symtab *t, uint32_t i);
void fathom_symtab_fetch_name(const struct fathom_symtab *t, uint32_t i);

/* Returns the name of @s, perhaps with "@VERSION". data is NULL if it has none or it is damaged. */
struct fathom_str fathom_symtab_name(const struct fathom_symtab *t, const struct fathom_symbol *s);

/* Returns the first bytes of the name, enough for fathom_symbol_is_namable(). Faster. */
struct fathom_str fathom_symtab_name_start(const struct fathom_symtab *t,
					   const struct fathom_symbol *s);

/*
 * Returns whether @s may name an address: defined in a section; a function, an object, an IFUNC or
 * an untyped label; and not an assembler's or a linker's own mark ($x, .Ltmp1, .annobin_...).
 */
bool fathom_symbol_is_namable(const struct fathom_symtab *t, const struct fathom_symbol *s,
			      struct fathom_str name);

/* Returns whether @s is a mapping symbol, by which assemblers tell code from data. */
bool fathom_symbol_is_mapping(const struct fathom_symtab *t, const struct fathom_symbol *s);

/* Returns whether @s is ".L0 ", by which assemblers for RISC-V mark the ends of differences. */
bool fathom_symbol_is_fake(const struct fathom_symtab *t, const struct fathom_symbol *s);

/* Splits "memcpy@@GLIBC_2.14" into name and version; version.data is NULL if there is none. */
struct fathom_str fathom_symbol_base_name(struct fathom_str name, struct fathom_str *ret_version);

/*
 * Returns whether the names of @t have no versions: JIT compilers put "@" into names (package
 * paths, hash codes).
 */
bool fathom_symtab_is_verbatim(const struct fathom_symtab *t);

/* As fathom_symbol_base_name() for a name of @t. */
struct fathom_str fathom_symtab_base_name(const struct fathom_symtab *t, struct fathom_str name,
					  struct fathom_str *ret_version);

/* Returns whether @name starts as mangled names of C++, Rust (v0) or D do. */
bool fathom_symbol_is_mangled(struct fathom_str name);

/* A symbol that could name an address, with what fathom_symbol_preferred() looks at. */
struct fathom_contender {
	struct fathom_symbol symbol;
	struct fathom_str name; /* without version */
	bool default_version;   /* no version, or "@@" */
};

/*
 * Returns whether @a is preferred to @b, two names of one address: typed before untyped; then sized
 * before sizeless; then exported (global, weak, unique) before local; then the fewest leading
 * underscores, where "_IO_" counts as one more, the prefix of a mangled name and "__vdso_" as none;
 * then global before weak; then the default version; then the shorter; then the first in byte
 * order.
 */
bool fathom_symbol_preferred(const struct fathom_contender *a, const struct fathom_contender *b);

#endif
