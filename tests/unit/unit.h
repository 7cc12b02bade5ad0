/* SPDX-License-Identifier: MIT */
/* The headers that every unit test needs, in cmocka's order. */
#ifndef FATHOM_UNIT_TEST_H
#define FATHOM_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
