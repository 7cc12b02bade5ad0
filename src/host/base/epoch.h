/* SPDX-License-Identifier: MIT */
/*
 * Safe reclamation without locks: who reads shared tables announces the epoch in which it started;
 * what was taken out of a table is freed when every announced epoch is later than that.
 *
 * Entering and leaving are two stores. Only eviction, which is rare, looks at all readers.
 */
#ifndef FATHOM_BASE_EPOCH_H
#define FATHOM_BASE_EPOCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Readers at the same time; more than that wait for a place. */
#define FATHOM_EPOCH_READERS 256

/* What is to be freed; embedded in it. */
struct fathom_retired {
	struct fathom_retired *next;
	uint64_t epoch;
	void (*free_it)(struct fathom_retired *r, void *data);
};

struct fathom_epochs {
	_Atomic uint64_t now;                          /* starts at 1 */
	_Atomic uint64_t reader[FATHOM_EPOCH_READERS]; /* 0: the place is free */
	_Atomic(struct fathom_retired *) retired;
	atomic_flag reclaiming;
};

void fathom_epochs_init(struct fathom_epochs *e);
/* Frees all that is retired; nobody may be reading. */
void fathom_epochs_deinit(struct fathom_epochs *e, void *data);

/* Announces a reader; the result is to be passed to fathom_epoch_leave(). */
size_t fathom_epoch_enter(struct fathom_epochs *e);
void fathom_epoch_leave(struct fathom_epochs *e, size_t place);

/* Hands over @r, which no reader can reach anew. */
void fathom_epoch_retire(struct fathom_epochs *e, struct fathom_retired *r);
/* Frees what nobody reads any more, unless another thread is doing so. */
void fathom_epoch_reclaim(struct fathom_epochs *e, void *data);

#endif
