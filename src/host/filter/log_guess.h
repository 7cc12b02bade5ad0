/* SPDX-License-Identifier: MIT */
/*
 * Guesses where a module was in memory, of a stack of which nothing tells it: gdb's, Rust's and
 * valgrind's. Each return address is after a call, and the distance of the module's code from its
 * file is whole pages: mostly one distance alone explains four calls or more. It also has to
 * explain that a direct call of one frame leads to the function of the frame before.
 */
#ifndef FATHOM_FILTER_LOG_GUESS_H
#define FATHOM_FILTER_LOG_GUESS_H

#include "host/filter/log_modules.h"

/*
 * Places the numbers of stacks that are in no place that is known. @of_numbers has the index of
 * each number's module.
 */
void fathom_log_guess(struct fathom_log_scan *s, struct fathom_log_modules *modules,
		      const uint32_t *of_numbers);

#endif
