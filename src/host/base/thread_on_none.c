/* SPDX-License-Identifier: MIT */
/* For C libraries without pthread_attr_setaffinity_np(), as musl. */
#include "host/base/thread_on.h"

int fathom_thread_start_on(const cpu_set_t *processors, void *(*fn)(void *), void *data,
			   pthread_t *ret)
{
	(void)processors;
	return pthread_create(ret, NULL, fn, data);
}
