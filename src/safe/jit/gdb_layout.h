/* SPDX-License-Identifier: MIT */
/*
 * GDB's JIT interface (GDB manual, "JIT Compilation Interface", version 1), by which a program
 * tells a debugger of the code that it makes. A descriptor, the variable __jit_debug_descriptor of
 * any module, leads to a list of entries, each with an ELF file in memory, the symbol file:
 *
 *	struct jit_descriptor { u32 version, action_flag; entry *relevant_entry, *first_entry; };
 *	struct jit_code_entry { entry *next, *prev; const char *symfile_addr; u64 symfile_size; };
 *
 * These functions read both from bytes that were copied from a process, of any class and byte
 * order. A 64-bit integer is aligned to 8 bytes, but on 32-bit x86 to 4 and on m68k to 2 (System V
 * ABI); its offset there, 12, is a multiple of both.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_JIT_GDB_LAYOUT_H
#define FATHOM_JIT_GDB_LAYOUT_H

#include "safe/base/bytes.h"

#define FATHOM_GDB_VERSION 1

/* Bytes of the largest entry or descriptor. */
#define FATHOM_GDB_MAX_SIZE 32

struct fathom_gdb_layout {
	uint8_t word;       /* bytes of a pointer */
	uint8_t size_off;   /* offset of symfile_size */
	uint8_t entry;      /* bytes of an entry */
	uint8_t descriptor; /* bytes of a descriptor */
	bool swap;
};

struct fathom_gdb_descriptor {
	uint64_t relevant; /* avma of the entry that changed last, or 0 */
	uint64_t first;    /* avma; 0 if the list is empty */
	uint32_t version;
	uint32_t action;
};

struct fathom_gdb_entry {
	uint64_t next; /* avma */
	uint64_t prev;
	uint64_t symfile;
	uint64_t size; /* bytes of the symbol file */
};

/* Returns the layout in programs of @machine (EM_). */
struct fathom_gdb_layout fathom_gdb_layout(bool is64, uint16_t machine, bool swap);

/* Reads l->descriptor bytes at @from. */
void fathom_gdb_descriptor_read(const struct fathom_gdb_layout *l, const uint8_t *from,
				struct fathom_gdb_descriptor *ret);

/* Reads l->entry bytes at @from. */
void fathom_gdb_entry_read(const struct fathom_gdb_layout *l, const uint8_t *from,
			   struct fathom_gdb_entry *ret);

#endif
