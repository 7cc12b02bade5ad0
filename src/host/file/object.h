/* SPDX-License-Identifier: MIT */
/*
 * An ELF file that is open: its sections, decompressed and relocated when they are first asked for,
 * and where it has code.
 *
 * Relocatable files (.o, .ko) have no addresses. They are laid out here as a linker would, each
 * loaded section at an address of its own, so that everything behind this file works on one address
 * space; fathom_object_section_base() leads back to offsets in sections.
 */
#ifndef FATHOM_FILE_OBJECT_H
#define FATHOM_FILE_OBJECT_H

#include <pthread.h>

#include "host/file/file.h"
#include "safe/elf/image.h"
#include "safe/elf/symtab.h"

struct fathom_range {
	uint64_t low;
	uint64_t high;
};

/* A section's bytes as they are to be read: decompressed, relocated. */
struct fathom_loaded {
	struct fathom_bytes bytes;
	uint64_t allocated; /* 0: a part of the file */
};

struct fathom_object_section {
	struct fathom_section header;
	uint64_t base; /* svma of its first byte: sh_addr, or where it was laid out */
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
	uint64_t bias; /* added to all addresses that it states: see fathom_object_rebase() */
	struct fathom_bytes build_id;
	pthread_mutex_t filling_lock; /* of what follows, and of its pages: they stay mapped */
	struct {                      /* a large section that is being decompressed, or zero */
		uint8_t *to;
		uint64_t size;
	} filling;
};

/* Takes over @file, also on failure. */
fathom_err fathom_object_create(struct fathom_memory *m, struct fathom_file *file,
				struct fathom_object **ret, struct fathom_errinfo *reterr);
fathom_err fathom_object_open(struct fathom_memory *m, const char *path, struct fathom_object **ret,
			      struct fathom_errinfo *reterr);
void fathom_object_close(struct fathom_object *o);

/* Whether section @i states more than the file has. */
bool fathom_object_is_cut(const struct fathom_object *o, uint32_t i);

/* Fails at @off of section @i, whose name is no static text. @what is one. */
fathom_err fathom_object_fail(const struct fathom_object *o, uint32_t i, fathom_err err,
			      uint64_t off, const char *what, struct fathom_errinfo *reterr);

/* The index of the first section called @name, or 0, which is never a section. */
uint32_t fathom_object_find(const struct fathom_object *o, const char *name);
/* The first section of type @type (SHT_), or 0. */
uint32_t fathom_object_find_type(const struct fathom_object *o, uint32_t type);

/*
 * The bytes of section @i, ready to be read; empty for SHT_NOBITS. Compressed and relocatable ones
 * are made once and kept until the object is closed. Callers in several threads may race: one
 * result is kept.
 */
fathom_err fathom_object_load(struct fathom_object *o, uint32_t i, struct fathom_bytes *ret,
			      struct fathom_errinfo *reterr);

/* Whether section @i must be decompressed before it can be read. */
bool fathom_object_is_compressed(const struct fathom_object *o, uint32_t i);

/* The range of code that holds @svma, or NULL. */
const struct fathom_range *fathom_object_code_at(const struct fathom_object *o, uint64_t svma);

/* Whether the object has code at @svma. */
bool fathom_object_has_code(const struct fathom_object *o, uint64_t svma);

/* The loaded section that holds @svma, or 0. */
uint32_t fathom_object_section_at(const struct fathom_object *o, uint64_t svma);

/* Returns @svma as the file states it: in a relocatable one, from the start of the section. */
uint64_t fathom_object_stated(const struct fathom_object *o, uint64_t svma);

/* Whether @svma lies in a section or a segment that is loaded. */
bool fathom_object_is_mapped(const struct fathom_object *o, uint64_t svma);

/*
 * Reads up to @size bytes that are loaded at @svma, of a relocatable file as they stand in it;
 * zeros where the file only states that there is room. Returns how many there are before something
 * is not loaded, or, of a debug file, not in the file.
 */
uint64_t fathom_object_read(const struct fathom_object *o, uint64_t svma, uint8_t *to,
			    uint64_t size);

/* What DT_ entries of PT_DYNAMIC say; used where section headers are missing. */
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
	uint64_t svma;  /* of the table itself */
	uint64_t debug; /* svma of the word of DT_DEBUG, or 0 */
	struct fathom_bytes bytes;
};

bool fathom_object_dynamic(const struct fathom_object *o, struct fathom_dynamic *ret);

/*
 * Whether section @t holds relocations for section @i. One that is for a section that is not there
 * is taken for that of its name: then what it should have relocated cannot be read.
 */
bool fathom_object_relocates(const struct fathom_object *o, uint32_t t, uint32_t i);

/* Applies the relocations for section @i of a relocatable file to @bytes, a copy of it. */
fathom_err fathom_object_relocate(struct fathom_object *o, uint32_t i, uint8_t *bytes,
				  uint64_t size, struct fathom_errinfo *reterr);

/*
 * Makes what debug file @o states about addresses hold for @main, which may have been moved to
 * another base since (prelink): all that is read of @o from now on is moved, too.
 */
void fathom_object_rebase(struct fathom_object *o, const struct fathom_object *main);

/* Section @i, which must be below n_sections, as a symbol table. */
struct fathom_symtab fathom_object_symtab(const struct fathom_object *o, uint32_t i);

/*
 * While another thread decompresses a large section: has the kernel clear the pages that will be
 * filled, which is a third of the time that it takes. Returns when there is no more to do.
 */
void fathom_object_clear_ahead(struct fathom_object *o);

#endif
