/* SPDX-License-Identifier: MIT */
/* Finds the C++ library of this process, for its crash handler. */
#ifndef FATHOM_CRASH_FIND_CXX_H
#define FATHOM_CRASH_FIND_CXX_H

#include "safe/crash/own_exception.h"

/*
 * Sets @c, which is zero, if the process has a C++ library that is a shared one. It asks the
 * library for the calling thread's __cxa_eh_globals, which that makes if there is none.
 */
void fathom_find_cxx(struct fathom_own_cxx *c);

#endif
