/* SPDX-License-Identifier: MIT */
/*
 * Epoch-based reclamation, without locks. A reader of shared tables announces the epoch in which it
 * starts. What was removed from a table is freed when every announced epoch is later than its
 * removal.
 *
 * Entering and leaving are two stores. Only eviction, which is rare, looks at all readers.
 */
#ifndef FATHOM_BASE_EPOCH_H
#define FATHOM_BASE_EPOCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most readers at a time; others wait for a place. */
#define FATHOM_EPOCH_READERS 256

/* Embedded in what can be retired. */
struct fathom_retired {
	struct fathom_retired *next;
	uint64_t epoch;
	void (*free_it)(struct fathom_retired *r, void *data);
};

struct fathom_epochs {
	_Atomic uint64_t now;                          /* starts at 1 */
	_Atomic uint64_t reader[FATHOM_EPOCH_READERS]; /* 0 if the place is free */
	_Atomic(struct fathom_retired *) retired;
	atomic_flag reclaiming;
};

void fathom_epochs_init(struct fathom_epochs *e);
/* Frees all that was retired. No reader may be left. */
void fathom_epochs_deinit(struct fathom_epochs *e, void *data);

/* Announces a reader. Returns its place, for fathom_epoch_leave(). */
size_t fathom_epoch_enter(struct fathom_epochs *e);
void fathom_epoch_leave(struct fathom_epochs *e, size_t place);

/* Retires @r, which new readers cannot reach any more. */
void fathom_epoch_retire(struct fathom_epochs *e, struct fathom_retired *r);
/* Frees what no reader can hold any more, unless another thread is at it. */
void fathom_epoch_reclaim(struct fathom_epochs *e, void *data);

#endif
