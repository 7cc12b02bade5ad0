/* SPDX-License-Identifier: MIT */
#include "mixed.h"

int entry(int argc);
int other_data = 7;
static int local_data = 8;

static int step(int x)
{
	return square(x) + local_data;
}

int other(int x)
{
	return step(x) + other_data;
}

#ifndef RELOCATABLE
int __attribute__((weak)) entry(int argc)
{
	return argc;
}
#endif

int __attribute__((weak)) main(int argc, char **argv)
{
	return argv[0] ? entry(other(argc)) : 0;
}
