/* SPDX-License-Identifier: MIT */
/* phases: runs in one function after the other, 0.3 s of its processor time each, over and over. */
#include <stdint.h>
#include <time.h>

static uint64_t own_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

#define PHASE(name)                                          \
	__attribute__((noinline)) static void name(void)     \
	{                                                    \
		const uint64_t end = own_clock() + 300000000; \
		volatile uint64_t sink = 0;                  \
                                                             \
		while (own_clock() < end)                    \
			for (int i = 0; i < 200000; i++)     \
				sink += (uint64_t)i;         \
	}

PHASE(phase0)
PHASE(phase1)
PHASE(phase2)
PHASE(phase3)
PHASE(phase4)
PHASE(phase5)
PHASE(phase6)
PHASE(phase7)

int main(void)
{
	void (*const phases[])(void) = { phase0, phase1, phase2, phase3,
					 phase4, phase5, phase6, phase7 };

	for (int i = 0;; i = (i + 1) % 8)
		phases[i]();
}
