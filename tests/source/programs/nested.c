#include <stdio.h>
#include "nested.h"

/* A function that calls none. */
__attribute__((noinline)) int plain(const int *p)
{
	return *p * 5;
}

static inline __attribute__((always_inline)) int middle(const int *p)
{
	const int first = innermost(p);

	return first + innermost(p + 1);
}

__attribute__((noinline)) int outer(const int *p)
{
	int sum = middle(p);

	sum += plain(p);
	return sum;
}

int main(int argc, char **argv)
{
	int numbers[2] = { argc, argc + 1 };

	(void)argv;
	printf("%d\n", outer(numbers));
	(void)fflush(stdout);
	return getchar() == EOF;
}
