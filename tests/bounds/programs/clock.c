/* SPDX-License-Identifier: MIT */
/* Preloaded: a clock that is $STEP_MS later each time it is looked at, whatever the machine does. */
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	static _Atomic long long looks;
	const char *step = getenv("STEP_MS");
	const long long ms = (atomic_fetch_add(&looks, 1) + 1) * (step ? atoll(step) : 1);

	(void)clock;
	*ret = (struct timespec){ .tv_sec = 1000000 + (time_t)(ms / 1000),
				  .tv_nsec = (long)(ms % 1000 * 1000000) };
	return 0;
}
