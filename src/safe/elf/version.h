/* SPDX-License-Identifier: MIT */
/*
 * Symbol versions: .gnu.version, .gnu.version_d and .gnu.version_r (Linux Standard Base Core 5.0,
 * 10.7 "Symbol Versioning").
 *
 * Each symbol of .dynsym has a number; a definition or a need gives the number its name. The
 * highest bit of a symbol's number says that it is not what a program without a wish gets:
 * "memcpy@V", not "memcpy@@V".
 *
 * Bounds: one walk reads as many records as the bytes have room for; links lead forward only.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_ELF_VERSION_H
#define FATHOM_ELF_VERSION_H

#include "safe/base/cursor.h"

struct fathom_versions {
	struct fathom_bytes numbers; /* of the symbols; empty: the file has no versions */
	struct fathom_bytes defined; /* what starts with the first definition */
	struct fathom_bytes needed;  /* what starts with the first need */
	struct fathom_bytes strings;
	uint32_t n_defined;
	uint32_t n_needed;
	bool swap;
};

/* Of the number of a symbol: it is hidden from whoever names no version. */
#define FATHOM_VERSION_HIDDEN 0x8000u
/* Numbers that stand for no version: the symbol is local, or simply global. */
#define FATHOM_VERSION_LOCAL  0
#define FATHOM_VERSION_GLOBAL 1

/* The number of symbol @i, with its bit; FATHOM_VERSION_GLOBAL where there is no table. */
uint16_t fathom_version_number(const struct fathom_versions *v, uint32_t i);

/* A version, and what number stands for it. */
struct fathom_version {
	struct fathom_str name; /* data is NULL where it is damaged */
	uint16_t number;
	bool is_needed; /* of another file */
	bool is_base;   /* of the file as such: no symbol is shown with it */
};

/* A walk over the definitions, then over the needs. */
struct fathom_version_walk {
	const struct fathom_versions *versions;
	uint64_t at;       /* the record that is next */
	uint64_t aux;      /* of needs: the entry that is next, or 0 */
	uint32_t n;        /* definitions or needs that are left */
	uint32_t n_aux;    /* entries of the need that are left */
	uint64_t steps;    /* records that may still be read */
	bool is_in_needed; /* the definitions are done */
};

void fathom_version_walk_init(struct fathom_version_walk *w, const struct fathom_versions *v);
bool fathom_version_next(struct fathom_version_walk *w, struct fathom_version *ret);

#endif
