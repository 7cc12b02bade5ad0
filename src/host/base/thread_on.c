/* SPDX-License-Identifier: MIT */
#include "host/base/thread_on.h"

int fathom_thread_start_on(const cpu_set_t *processors, void *(*fn)(void *), void *data,
			   pthread_t *ret)
{
	pthread_attr_t attributes;
	int err = pthread_attr_init(&attributes);

	if (err)
		return err;
	if (CPU_COUNT(processors))
		err = pthread_attr_setaffinity_np(&attributes, sizeof *processors, processors);
	if (!err)
		err = pthread_create(ret, &attributes, fn, data);
	(void)pthread_attr_destroy(&attributes);
	return err;
}
