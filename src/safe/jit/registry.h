/* SPDX-License-Identifier: MIT */
/*
 * The registry of published code, version 1: what <fathom/jit.h> has published in a process, for
 * its own signal handlers, for other processes, and in cores. All numbers are in the byte order of
 * the process; addresses are its own. Only programs of 64 bits have one.
 *
 * The head is a variable of the object that publishes. It is found by its dynamic symbol,
 * `__fathom_jit_published`, or by an ELF note of the object: owner "fathom", type 1, whose
 * descriptor is the distance, 8 bytes, signed, from the descriptor itself to the head.
 *
 * The head leads to a table, and each row of the table to a symbol file, an ELF file as for GDB's
 * JIT interface, with one section more: FATHOM_REGISTRY_SECTION has an element for each symbol but
 * the first. What a table leads to does not change. A commit makes a new table beside the old one
 * and then stores its address in the head: at every instant, also in the middle of a commit, that
 * address is of a whole table.
 *
 * A reader outside cannot stop the process. Memory of old tables and files is used again, at the
 * earliest some commits later; before that its serial number is set to 0. Serial numbers are never
 * used twice. So what was read of a file is right if it still had its serial number afterwards,
 * that of its row. What was read of a table is right if its first words were the same afterwards,
 * and say that it is a table: `check` is serial ^ address ^ FATHOM_REGISTRY_MAGIC. Otherwise the
 * reader begins again with the head.
 *
 * A reader inside counts itself in one of readers[], number `epoch & 1`, before it loads the
 * address of the table: nothing that it can reach is freed then.
 */
#ifndef FATHOM_JIT_REGISTRY_H
#define FATHOM_JIT_REGISTRY_H

#include <stdatomic.h>

#include "safe/base/bytes.h"

#define FATHOM_REGISTRY_MAGIC   UINT64_C(0x72746a6d6f687466) /* "fthomjtr" */
#define FATHOM_REGISTRY_VERSION 1
#define FATHOM_REGISTRY_SYMBOL  "__fathom_jit_published"
#define FATHOM_REGISTRY_OWNER   "fathom"
#define FATHOM_REGISTRY_NOTE    1
#define FATHOM_REGISTRY_SECTION ".fathom.functions"

struct fathom_registry_head {
	uint64_t magic;
	uint32_t version;
	uint32_t head_size; /* bytes of this struct */
	uint32_t row_size;  /* bytes of a row */
	uint32_t reserved;
	_Atomic uint64_t sequence; /* odd while it changes; rises with each commit */
	_Atomic uint64_t table;    /* address; 0: nothing was published, or the registry is off */
	/* Of this process alone. */
	_Atomic uint64_t low; /* no code was ever published outside of [low, high) */
	_Atomic uint64_t high;
	_Atomic uint32_t epoch;
	_Atomic uint32_t readers[2];
};

/* Row for the published code in [low, high). */
struct fathom_registry_row {
	uint64_t low;
	uint64_t high;
	uint64_t file; /* address of the symbol file; the 8 bytes before it are its serial number */
	uint64_t size; /* of the symbol file, bytes */
	uint64_t serial; /* of the symbol file */
};

struct fathom_registry_table {
	_Atomic uint64_t serial;
	_Atomic uint64_t check;
	uint64_t n;
	struct fathom_registry_row rows[]; /* sorted; they do not overlap */
};

/* An element of FATHOM_REGISTRY_SECTION. */
struct fathom_registry_function {
	/* When it was published: nanoseconds of CLOCK_MONOTONIC. No two functions have the same. */
	uint64_t since;
	uint32_t fde; /* offset of its FDE in .eh_frame; FATHOM_REGISTRY_NO_FDE: it has none */
	uint32_t name_size; /* bytes of its name, without the NUL */
};
#define FATHOM_REGISTRY_NO_FDE UINT32_MAX

/* Indices of the sections of a symbol file that this version writes. */
enum {
	FATHOM_REGISTRY_TEXT = 1,
	FATHOM_REGISTRY_FRAMES,
	FATHOM_REGISTRY_SYMBOLS,
	FATHOM_REGISTRY_STRINGS,
	FATHOM_REGISTRY_FUNCTIONS,
	FATHOM_REGISTRY_N
};

/* The head of this library. */
extern struct fathom_registry_head fathom_registry_own;

/* A published function. It stays until fathom_registry_leave(). */
struct fathom_registry_code {
	uint64_t low;
	uint64_t size; /* bytes */
	uint64_t since;
	struct fathom_str name;     /* ends with a NUL */
	struct fathom_bytes frames; /* .eh_frame */
	uint32_t fde;               /* as fathom_registry_function.fde */
};

/*
 * Counts the calling thread as a reader of @h, its own, if code was published around @avma; returns
 * false if none ever was. *@ret_place is for fathom_registry_leave().
 */
bool fathom_registry_enter(struct fathom_registry_head *h, uint64_t avma, uint32_t *ret_place);
void fathom_registry_leave(struct fathom_registry_head *h, uint32_t place);

/* Finds the function whose code is at @avma; false if there is none. Within enter and leave. */
bool fathom_registry_find(const struct fathom_registry_head *h, uint64_t avma,
			  struct fathom_registry_code *ret);

#endif
