/* SPDX-License-Identifier: MIT */
/* Accesses to memory of the instruction that a thread was at, by its registers. x86-64. */
#ifndef FATHOM_DEATH_ACCESS_H
#define FATHOM_DEATH_ACCESS_H

#include "host/death/death.h"

/*
 * Returns whether the instruction of @t at @p accesses @address, and how in *@ret_access:
 * FATHOM_ACCESS_UNKNOWN if it both reads and writes it. False, too, if it cannot be decoded.
 */
bool fathom_access_find(const struct fathom_death_work *w, const struct fathom_thread *t,
			const struct fathom_death_point *p, uint64_t address,
			enum fathom_access *ret_access);

/*
 * Finds the only address that is not canonical, with 48 bits as with 57, among those that the
 * instruction of @t at @p accesses; returns false if there is none.
 */
bool fathom_access_find_wild(const struct fathom_death_work *w, const struct fathom_thread *t,
			     const struct fathom_death_point *p, uint64_t *ret,
			     enum fathom_access *ret_access);

#endif
