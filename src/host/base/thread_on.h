/* SPDX-License-Identifier: MIT */
/* Starts a thread on chosen processors. */
#ifndef FATHOM_BASE_THREAD_ON_H
#define FATHOM_BASE_THREAD_ON_H

#include <pthread.h>
#include <sched.h>

/*
 * Starts a thread that runs @fn(@data) on one of @processors, or on any if that is empty or the C
 * library cannot choose. Returns an error number.
 */
int fathom_thread_start_on(const cpu_set_t *processors, void *(*fn)(void *), void *data,
			   pthread_t *ret);

#endif
