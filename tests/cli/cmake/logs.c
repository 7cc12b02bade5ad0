/* SPDX-License-Identifier: MIT */
/* Ends with 6. With --ftrace it logs its two functions. */
__attribute__((noinline)) static int twice(int x)
{
	return 2 * x;
}

int main(int argc, char **argv)
{
	(void)argv;
	return twice(argc + 2);
}
