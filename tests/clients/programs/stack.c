/* SPDX-License-Identifier: MIT */
/* Writes behind a local variable. */
__attribute__((noinline)) int fill(char *p, int n)
{
	for (int i = 0; i < n; i++)
		p[i] = (char)i;
	return p[0];
}

int main(int argc, char **argv)
{
	char buffer[8];

	(void)argv;
	return fill(buffer, argc + 9);
}
