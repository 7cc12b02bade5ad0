/* SPDX-License-Identifier: MIT */
/*
 * Symbol versions: .gnu.version, .gnu.version_d and .gnu.version_r (Linux Standard Base Core 5.0,
 * 10.7 "Symbol Versioning").
 *
 * Each symbol of .dynsym has a version number; a definition or a need gives the number its name.
 * The highest bit of a symbol's number hides the symbol from programs that ask for no version:
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
	struct fathom_bytes numbers; /* by symbol; empty if the file has no versions */
	struct fathom_bytes defined; /* from the first definition on */
	struct fathom_bytes needed;  /* from the first need on */
	struct fathom_bytes strings;
	uint32_t n_defined;
	uint32_t n_needed;
	bool swap;
};

/* Bit of a symbol's version number: hidden from programs that ask for no version. */
#define FATHOM_VERSION_HIDDEN 0x8000u
/* Version numbers that stand for no version: the symbol is local, or simply global. */
#define FATHOM_VERSION_LOCAL  0
#define FATHOM_VERSION_GLOBAL 1

/* Returns the version number of symbol @i, with its bit; without a table FATHOM_VERSION_GLOBAL. */
uint16_t fathom_version_number(const struct fathom_versions *v, uint32_t i);

/* A version, and its number. */
struct fathom_version {
	struct fathom_str name; /* data is NULL if it is damaged */
	uint16_t number;
	bool is_needed; /* another file defines it */
	bool is_base;   /* names the file itself: no symbol is shown with it */
};

/* A walk over the definitions, then over the needs. */
struct fathom_version_walk {
	const struct fathom_versions *versions;
	uint64_t at;       /* next record */
	uint64_t aux;      /* needs: next entry, or 0 */
	uint32_t n;        /* definitions or needs left */
	uint32_t n_aux;    /* entries of the need left */
	uint64_t steps;    /* records that may still be read */
	bool is_in_needed; /* all definitions are read */
};

void fathom_version_walk_init(struct fathom_version_walk *w, const struct fathom_versions *v);
bool fathom_version_next(struct fathom_version_walk *w, struct fathom_version *ret);

#endif
