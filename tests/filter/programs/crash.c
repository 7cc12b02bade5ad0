/* SPDX-License-Identifier: MIT */
/* The program: calls the library as it is told to. */
#include "calls.h"

static __attribute__((noinline)) void prog_run(const char *how)
{
	CALL(lib_run(how));
}

static inline __attribute__((always_inline)) void step(const char *how)
{
	CALL(prog_run(how));
}

int main(int argc, char **argv)
{
	(void)argc;
	CALL(step(argv[1]));
	return 0;
}
