/* SPDX-License-Identifier: MIT */
/* Finds the C++ libraries of this process, for its crash handler. */
#ifndef FATHOM_CRASH_FIND_CXX_H
#define FATHOM_CRASH_FIND_CXX_H

#include "safe/crash/own_exception.h"
#include "safe/self/table.h"

/*
 * Sets @l, which is zero, to the C++ libraries of the process that are known now: the one that
 * dlsym() finds, and one inside the program, by the symbols that @self has. Asks each for the
 * calling thread's __cxa_eh_globals, which that makes if there is none.
 */
void fathom_find_cxx(const struct fathom_self *self, struct fathom_own_libraries *l);

#endif
