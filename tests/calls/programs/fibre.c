/* SPDX-License-Identifier: MIT */
/*
 * Runs on a stack that lies in the midst of other memory of the program, as a fibre does, and says
 * "ready". For each line of standard input it says "whole", or where memory below its stack has
 * changed. Its first thread stays on that stack.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum { BELOW = 1 << 16, STACK = 1 << 16 };

static unsigned char *memory;
static ucontext_t first, fibre;

/* Nothing but read(2) and write(2): the stack is as deep as what follows. */
static void run(void)
{
	char line[64];

	(void)!write(1, "ready\n", 6);
	while (read(0, line, 1) == 1) {
		int i = 0;

		if (*line != '\n')
			continue;
		while (i < BELOW && memory[i] == (unsigned char)(i * 7))
			i++;
		if (i < BELOW) {
			(void)!write(1, "changed\n", 8);
			_exit(1);
		}
		(void)!write(1, "whole\n", 6);
	}
	_exit(0);
}

int main(void)
{
	memory = malloc(BELOW + STACK);
	if (!memory)
		return 2;
	for (int i = 0; i < BELOW; i++)
		memory[i] = (unsigned char)(i * 7);
	/* It uses some hundred bytes, and has few more. */
	getcontext(&fibre);
	fibre.uc_stack.ss_sp = memory + BELOW;
	fibre.uc_stack.ss_size = 1024;
	makecontext(&fibre, run, 0);
	swapcontext(&first, &fibre);
	return 3;
}
