/* SPDX-License-Identifier: MIT */
/* Which lines of a log wait for later ones, that may tell where their modules are. */
#ifndef FATHOM_FILTER_LOG_HOLD_H
#define FATHOM_FILTER_LOG_HOLD_H

#include "host/filter/log_scan.h"

/*
 * Returns how many of the @size bytes at @text, whole lines, need not wait: what a report has begun
 * that ends with a map waits for its end, and with @may_guess frames for their whole stack, but no
 * more than 256 KiB.
 */
size_t fathom_log_ready(const char *text, size_t size, bool may_guess);

#endif
