/* SPDX-License-Identifier: MIT */
/*
 * Symbol tables (System V gABI, chapter 4, "Symbol Table"): reading entries in one form for both
 * classes and byte orders, which symbols can name code or data at all, and which of several names
 * for one address is served.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_ELF_SYMTAB_H
#define FATHOM_ELF_SYMTAB_H

#include "safe/elf/image.h"

/* Where a table's symbols came from; the order is that of enum fathom_source. */
struct fathom_symtab {
	struct fathom_bytes entries;
	struct fathom_bytes strings;
	struct fathom_bytes xindex; /* SHT_SYMTAB_SHNDX, or empty */
	uint64_t bias;              /* added to values that are addresses */
	uint32_t count;
	uint16_t machine; /* EM_, for the mapping symbols of some */
	uint8_t source;   /* enum fathom_source: what an answer from here says of itself */
	bool is64;
	bool swap;
};

/*
 * SHN_ABS and such as fathom_symbol.section has them: as 16 bits they would be the numbers of real
 * sections in files that have more than 65,280.
 */
#define FATHOM_SHN(special) ((uint32_t)(special) | UINT32_C(0xffff0000))

struct fathom_symbol {
	uint64_t value;
	uint64_t size;
	uint32_t name;      /* offset in the string table */
	uint32_t section;   /* index of the section it is defined in; or FATHOM_SHN() */
	uint8_t type;       /* STT_ */
	uint8_t bind;       /* STB_ */
	uint8_t visibility; /* STV_ */
};

/* Prepares a view of @entries; entsize must fit the class, else the table is empty. */
struct fathom_symtab fathom_symtab_init(const struct fathom_image *image,
					struct fathom_bytes entries, uint64_t entsize,
					struct fathom_bytes strings, struct fathom_bytes xindex);

/* Entry @i, which must be below count. */
void fathom_symtab_get(const struct fathom_symtab *t, uint32_t i, struct fathom_symbol *ret);

/*
 * The first symbol from number @i on whose value and size say that it covers @svma; the table's
 * count when there is none.
 */
uint32_t fathom_symtab_covering(const struct fathom_symtab *t, uint32_t i, uint64_t svma);

/* Have the memory brought that reading symbol @i, which may be anything, or its name will need. */
void fathom_symtab_fetch(const struct fathom_symtab *t, uint32_t i);
void fathom_symtab_fetch_name(const struct fathom_symtab *t, uint32_t i);

/* The name of @s: data is NULL when it has none or it is damaged. May hold "@VERSION". */
struct fathom_str fathom_symtab_name(const struct fathom_symtab *t, const struct fathom_symbol *s);

/* The first bytes of the name, enough for fathom_symbol_is_namable(): its end is not looked for. */
struct fathom_str fathom_symtab_name_start(const struct fathom_symtab *t,
					   const struct fathom_symbol *s);

/*
 * Whether @s may name an address: defined in a section; a function, an object, an IFUNC or an
 * untyped label; and not an assembler's or a linker's own mark ($x, .Ltmp1, .annobin_...).
 */
bool fathom_symbol_is_namable(const struct fathom_symtab *t, const struct fathom_symbol *s,
			      struct fathom_str name);

/* Whether @s is a mapping symbol, by which assemblers tell code from data. */
bool fathom_symbol_is_mapping(const struct fathom_symtab *t, const struct fathom_symbol *s);

/* Whether @s is ".L0 ", by which assemblers for RISC-V mark the ends of differences. */
bool fathom_symbol_is_fake(const struct fathom_symtab *t, const struct fathom_symbol *s);

/* Splits "memcpy@@GLIBC_2.14" in name and version; version.data is NULL without one. */
struct fathom_str fathom_symbol_base_name(struct fathom_str name, struct fathom_str *ret_version);

/* Whether @name starts as mangled names of C++, Rust (v0) or D do. */
bool fathom_symbol_is_mangled(struct fathom_str name);

/* One candidate for an address, with what the rule looks at. */
struct fathom_candidate {
	struct fathom_symbol symbol;
	struct fathom_str name; /* without version */
	bool default_version;   /* no version, or "@@" */
};

/*
 * Whether @a is to be preferred to @b, two names of one address: typed before untyped; then sized
 * before sizeless; then exported (global, weak, unique) before local; then the fewest leading
 * underscores, where "_IO_" counts as one more, the prefix of a mangled name and "__vdso_" as none;
 * then global before weak; then the default version; then the shorter; then the first in byte
 * order.
 */
bool fathom_symbol_preferred(const struct fathom_candidate *a, const struct fathom_candidate *b);

#endif
