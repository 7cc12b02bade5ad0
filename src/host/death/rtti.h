/* SPDX-License-Identifier: MIT */
/* Types of C++ objects in memory, by their type_info (Itanium C++ ABI, 2.9). */
#ifndef FATHOM_DEATH_RTTI_H
#define FATHOM_DEATH_RTTI_H

#include "host/death/death.h"

/* A type_info that was proven to be one: its first word is the vtable of a class of types. */
struct fathom_rtti {
	uint64_t avma;
	uint64_t name; /* avma of the mangled name */
	uint8_t kind;  /* of rtti.c */
};

/* Reads the type_info at @avma; returns false if there is none. */
bool fathom_rtti_read(const struct fathom_death_work *w, uint64_t avma, struct fathom_rtti *ret);

/*
 * Reads the name of @type, demangled unless @w says otherwise, into the arena. Returns NULL if it
 * is no name; *@ret_err is set without memory.
 */
const char *fathom_rtti_name(const struct fathom_death_work *w, const struct fathom_rtti *type,
			     fathom_err *ret_err);

/*
 * Finds the part of an object of @type that is std::runtime_error or std::logic_error, and how many
 * bytes into the object it is. Returns false if there is none, or if only the object itself knows
 * where, as with virtual bases.
 */
bool fathom_rtti_find_error(const struct fathom_death_work *w, const struct fathom_rtti *type,
			    uint64_t *ret_off);

#endif
