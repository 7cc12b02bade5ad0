/* SPDX-License-Identifier: MIT */
/* Reasons of waits that mean the same in two recordings. */
#ifndef FATHOM_PROFILE_COMPARED_REASONS_H
#define FATHOM_PROFILE_COMPARED_REASONS_H

#include <stddef.h>

/*
 * Writes @reason to @to, of @size bytes, with * for what each run has anew: addresses, numbers that
 * stand alone (of threads, processes, descriptors, inodes), and ports from 32,768 on, which the
 * kernel gives to clients. A text that is too long is cut.
 */
void fathom_reason_generalize(const char *reason, char *to, size_t size);

#endif
