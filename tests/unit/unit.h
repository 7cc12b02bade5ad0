/* SPDX-License-Identifier: MIT */
/* What every unit test includes, in the order that cmocka wants. */
#ifndef FATHOM_UNIT_TEST_H
#define FATHOM_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
