/* SPDX-License-Identifier: MIT */
/*
 * An open ELF file: its sections, decompressed and relocated on demand, and the ranges of its code.
 *
 * Relocatable files (.o, .ko) have no addresses. They are laid out here as a linker would do it,
 * each loaded section at an address of its own, so all other code works on one address space.
 * fathom_object_stated() leads back to offsets in sections.
 */
#ifndef FATHOM_FILE_OBJECT_H
#define FATHOM_FILE_OBJECT_H

#include <pthread.h>

#include "host/base/claims.h"
#include "host/file/file.h"
#include "safe/elf/image.h"
#include "safe/elf/symtab.h"

struct fathom_range {
	uint64_t low;
	uint64_t high;
};

/* A section's bytes, decompressed and relocated. */
struct fathom_loaded {
	struct fathom_bytes bytes;
	uint64_t allocated; /* bytes of the copy; 0: part of the file */
};

struct fathom_object_section {
	struct fathom_section header;
	uint64_t base; /* svma of its first byte: sh_addr, or where it is laid out */
	_Atomic(struct fathom_loaded *) loaded;
};

struct fathom_object {
	struct fathom_file *file;
	struct fathom_memory *memory;
	struct fathom_image image;
	struct fathom_object_section *sections;
	uint32_t n_sections;
	struct fathom_range *code; /* executable ranges, sorted, not overlapping */
	uint32_t n_code;
	/* Sections in memory, sorted, without the bias: see fathom_object_section_at(). */
	struct fathom_claim *places;
	size_t n_places;
	uint64_t bias; /* added to the addresses that the file states: see fathom_object_rebase() */
	struct fathom_bytes build_id;
	pthread_mutex_t filling_lock; /* guards filling; while held, its pages stay mapped */
	struct {                      /* a large section that is being decompressed, or zero */
		uint8_t *to;
		uint64_t size;
	} filling;
};

/* Opens @file as an ELF object. Takes @file over, also on failure. */
fathom_err fathom_object_create(struct fathom_memory *m, struct fathom_file *file,
				struct fathom_object **ret, struct fathom_errinfo *reterr);
fathom_err fathom_object_open(struct fathom_memory *m, const char *path, struct fathom_object **ret,
			      struct fathom_errinfo *reterr);
void fathom_object_close(struct fathom_object *o);

/* Returns whether section @i reaches past the end of the file. */
bool fathom_object_is_cut(const struct fathom_object *o, uint32_t i);

/* Sets an error at @off of section @i, whose name need not be a static text. @what must be one. */
fathom_err fathom_object_fail(const struct fathom_object *o, uint32_t i, fathom_err err,
			      uint64_t off, const char *what, struct fathom_errinfo *reterr);

/* Returns the index of the first section called @name, or 0, which is never a section. */
uint32_t fathom_object_find(const struct fathom_object *o, const char *name);
/* Returns the index of the first section of type @type (SHT_), or 0. */
uint32_t fathom_object_find_type(const struct fathom_object *o, uint32_t type);

/*
 * Returns the bytes of section @i, decompressed and relocated; none for SHT_NOBITS. A copy is made
 * once and kept until the object is closed. Threads may race: one copy is kept.
 */
fathom_err fathom_object_load(struct fathom_object *o, uint32_t i, struct fathom_bytes *ret,
			      struct fathom_errinfo *reterr);

/*
 * Does the same, and asks the session's progress while it decompresses a large section. Also
 * returns FATHOM_E_CANCELLED; the next call tries again.
 */
fathom_err fathom_object_load_asking(struct fathom_object *o, uint32_t i, struct fathom_bytes *ret,
				     struct fathom_errinfo *reterr);

/* Returns whether section @i is compressed. */
bool fathom_object_is_compressed(const struct fathom_object *o, uint32_t i);

/* Opens the library that loading section @i needs, if any, so that other threads may load it. */
void fathom_object_open_codec(struct fathom_object *o, uint32_t i);

/* Returns the code range that holds @svma, or NULL. */
const struct fathom_range *fathom_object_code_at(const struct fathom_object *o, uint64_t svma);

/* Returns whether the object has code at @svma. */
bool fathom_object_has_code(const struct fathom_object *o, uint64_t svma);

/* Returns the loaded section that holds @svma, or 0. */
uint32_t fathom_object_section_at(const struct fathom_object *o, uint64_t svma);

/* Returns @svma as the file states it: in a relocatable file, an offset in its section. */
uint64_t fathom_object_stated(const struct fathom_object *o, uint64_t svma);

/* Returns whether @svma is in a loaded section or segment. */
bool fathom_object_is_mapped(const struct fathom_object *o, uint64_t svma);

/*
 * Reads up to @size bytes that are loaded at @svma; zeros for what has no bytes in the file.
 * Returns how many there are in a row. Relocatable files are read unrelocated. Debug files lack
 * most bytes: reading ends where they do.
 */
uint64_t fathom_object_read(const struct fathom_object *o, uint64_t svma, uint8_t *to,
			    uint64_t size);

/* The entries of PT_DYNAMIC, for files without section headers. */
struct fathom_dynamic {
	uint64_t symtab;
	uint64_t strtab;
	uint64_t strsz;
	uint64_t syment;
	uint64_t hash;
	uint64_t gnu_hash;
	uint64_t jmprel;
	uint64_t pltrelsz;
	uint64_t pltrel; /* DT_REL or DT_RELA */
	uint64_t rela;
	uint64_t relasz;
	uint64_t rel;
	uint64_t relsz;
	uint64_t versym;
	uint64_t verdef;
	uint64_t verdefnum;
	uint64_t verneed;
	uint64_t verneednum;
	uint64_t svma;  /* of the table */
	uint64_t debug; /* svma of DT_DEBUG's value, or 0 */
	struct fathom_bytes bytes;
};

bool fathom_object_dynamic(const struct fathom_object *o, struct fathom_dynamic *ret);

/*
 * Returns whether section @t has relocations for section @i. If the section that @t is for does not
 * exist, the names decide, so that the affected section becomes unreadable.
 */
bool fathom_object_relocates(const struct fathom_object *o, uint32_t t, uint32_t i);

/* Applies the relocations of section @i of a relocatable file to @bytes, a copy of it. */
fathom_err fathom_object_relocate(struct fathom_object *o, uint32_t i, uint8_t *bytes,
				  uint64_t size, struct fathom_errinfo *reterr);

/*
 * Moves all addresses of the debug file @o, from now on, to where @main has them: prelink may have
 * moved @main since.
 */
void fathom_object_rebase(struct fathom_object *o, const struct fathom_object *main);

/* Returns section @i, which must be below n_sections, as a symbol table. */
struct fathom_symtab fathom_object_symtab(const struct fathom_object *o, uint32_t i);

/*
 * Clears the pages of a large section ahead of the thread that decompresses it, which saves a third
 * of its time. Returns when there is no more to do.
 */
void fathom_object_clear_ahead(struct fathom_object *o);

#endif
