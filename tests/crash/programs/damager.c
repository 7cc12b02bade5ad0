/* SPDX-License-Identifier: MIT */
/* damager N: damages its stack in way N of damage.h, and crashes there. */
#define _GNU_SOURCE
#include "../../lib/damage.h"

__attribute__((noinline)) static void crash(void)
{
	*(volatile int *)8 = 1;
	damage_sink++;
}

int main(int argc, char **argv)
{
	struct damage d;

	if (argc != 2)
		return 2;
	damage_number(atoi(argv[1]), crash, &d);
	damage_run(&d);
	return 1;
}
