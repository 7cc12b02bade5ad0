/* SPDX-License-Identifier: MIT */
/* A few calls to trace. */
#include <stdio.h>
#include <unistd.h>

static int stock = 3;

__attribute__((noinline)) int is_left(void)
{
	return stock > 0;
}

__attribute__((noinline)) void sell(FILE *book)
{
	if (!is_left())
		return;
	stock--;
	fprintf(book, "sold, %d left\n", stock);
	fflush(book);
}

int main(void)
{
	FILE *book = fopen("/dev/null", "w");

	for (int i = 0; book && i < 4; i++)
		sell(book);
	return 0;
}
