/* SPDX-License-Identifier: MIT */
/* Reads behind a variable. */
static int numbers[4] = { 1, 2, 3, 4 };
int visible[3];

__attribute__((noinline)) int at(int i)
{
	return numbers[i]; /* at: at */
}

int main(int argc, char **argv)
{
	(void)argv;
	visible[0] = argc;
	return at(argc + 4); /* at: main */
}
