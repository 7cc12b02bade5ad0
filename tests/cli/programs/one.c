/* SPDX-License-Identifier: MIT */
static inline __attribute__((always_inline)) int triple(int x)
{
	return x * 3;
}
int outer(int x)
{
	return triple(x) + 1;
}
int main(void) { return outer(3); }
