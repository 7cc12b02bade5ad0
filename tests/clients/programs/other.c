/* SPDX-License-Identifier: MIT */
static int hidden[2] = { 4, 5 };

__attribute__((noinline)) static int helper(int x)
{
	return x ? hidden[x & 1] : 9;
}

int from_other(int x)
{
	return helper(x) + 1;
}
