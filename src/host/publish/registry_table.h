/* SPDX-License-Identifier: MIT */
/*
 * The publishing side of the registry (safe/jit/registry.h): its tables, and when memory is freed.
 */
#ifndef FATHOM_PUBLISH_REGISTRY_TABLE_H
#define FATHOM_PUBLISH_REGISTRY_TABLE_H

#include "host/publish/publish.h"

struct fathom_jit_table;

/* Makes a table of @leaves, which have symbol files; NULL without memory. */
struct fathom_jit_table *fathom_jit_table_make(struct fathom_jit_registry *r,
					       const struct fathom_jit_leaves *leaves);
/* Frees @t, which was not published and may be NULL. */
void fathom_jit_table_free(struct fathom_jit_table *t);

/* Leads readers to @t instead of the table before, which is kept until fathom_jit_tables_trim(). */
void fathom_jit_table_publish(struct fathom_jit_registry *r, struct fathom_jit_table *t);

/* Frees replaced tables that no reader inside can be reading, but for the newest. */
void fathom_jit_tables_trim(struct fathom_jit_registry *r);

/* Says that code may be published in [low, high). */
void fathom_jit_table_widen(uint64_t low, uint64_t high);

/* Makes the sequence odd, or even again. */
void fathom_jit_sequence_rise(struct fathom_jit_registry *r);

/*
 * Returns the number of the last commit whose replaced tables and files no reader inside can be
 * reading. Call it after a commit has published its table, once.
 */
uint64_t fathom_jit_last_unread(struct fathom_jit_registry *r);

/* In a child of fork(): no other thread is reading. */
void fathom_jit_table_forget_readers(void);

/* Frees @block, which begins with a serial number, and says so to readers outside before. */
void fathom_jit_block_free(uint64_t *block);

#endif
