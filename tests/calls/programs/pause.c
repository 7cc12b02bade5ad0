/* SPDX-License-Identifier: MIT */
/* The example of the document that --ftrace comes from: a function that is called 10,000 times, four times over. */
#include <stdio.h>

__attribute__((noinline)) void Pause(void)
{
	__asm__ volatile("rep nop");
}

__attribute__((noinline)) void DoStuff(void)
{
	for (int i = 0; i < 10000; ++i)
		Pause();
}

int main(int argc, char **argv)
{
	DoStuff();
	DoStuff();
	DoStuff();
	DoStuff();
	printf("%d %s\n", argc, argc > 1 ? argv[1] : "-");
	return 0;
}
