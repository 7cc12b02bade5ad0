/* SPDX-License-Identifier: MIT */
/*
 * Types of C++ objects in memory, by their type_info (Itanium C++ ABI, 2.9). The memory may hold
 * any bytes: each pointer is checked before it is believed.
 *
 * Safety: as-safe, if the functions of struct fathom_cxx_memory are.
 */
#ifndef FATHOM_CXX_RTTI_H
#define FATHOM_CXX_RTTI_H

#include "safe/base/bytes.h"
#include "safe/base/reader.h"

/* The memory of a C++ program, and what is known of its C++ library. */
struct fathom_cxx_memory {
	const struct fathom_reader *reader;
	uint8_t word; /* bytes of an address */
	bool swap;    /* the byte order is the other one */
	/*
	 * Returns whether the vtable at @avma is that of one of the classes that describe types
	 * (fathom_rtti_find_kind()): *@ret.
	 */
	bool (*find_kind)(const struct fathom_cxx_memory *m, uint64_t avma, uint8_t *ret);
	/* Returns whether the function at @avma is one of fathom_thrown_whats. */
	bool (*is_what)(const struct fathom_cxx_memory *m, uint64_t avma);
	const void *data; /* of these */
};

/* Mangled names of the vtables of classes that describe types. */
#define FATHOM_RTTI_KINDS 9
extern const char *const fathom_rtti_vtables[FATHOM_RTTI_KINDS];

/* A type_info that was proven to be one: its first word is the vtable of a class of types. */
struct fathom_rtti {
	uint64_t avma;
	uint64_t name; /* avma of the mangled name */
	uint8_t kind;  /* index in fathom_rtti_vtables */
};

static inline bool fathom_cxx_word(const struct fathom_cxx_memory *m, uint64_t avma, uint64_t *ret)
{
	return fathom_reader_uint(m->reader, avma, m->word, m->swap, ret);
}

/* Finds the class whose vtable is called @symbol; returns false if it describes no types. */
bool fathom_rtti_find_kind(struct fathom_str symbol, uint8_t *ret);

/* Reads the type_info at @avma; returns false if there is none. */
bool fathom_rtti_read(const struct fathom_cxx_memory *m, uint64_t avma, struct fathom_rtti *ret);

/*
 * Finds the part of an object of @type that is std::runtime_error or std::logic_error, and how many
 * bytes into the object it is. Returns false if there is none, or if only the object itself knows
 * where, as with virtual bases.
 */
bool fathom_rtti_find_error(const struct fathom_cxx_memory *m, const struct fathom_rtti *type,
			    uint64_t *ret_off);

#endif
