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

/* The thread sanitizer has a thread of its own in each process, and makes vfork() a fork(). */
#if defined(__SANITIZE_THREAD__)
#define SANITIZER_THREADS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SANITIZER_THREADS 1
#endif
#endif
#ifndef SANITIZER_THREADS
#define SANITIZER_THREADS 0
#endif

#endif
