/* SPDX-License-Identifier: MIT */
/* Prints the real and the effective user. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	return printf("%d %d\n", (int)getuid(), (int)geteuid()) < 0;
}
