/* SPDX-License-Identifier: MIT */
/* A library; NAME tells two of them apart. */
#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)

__attribute__((noinline)) int JOIN(inner_, NAME)(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

__attribute__((constructor)) void JOIN(begin_, NAME)(void)
{
	__asm__ volatile("");
}

__attribute__((destructor)) void JOIN(end_, NAME)(void)
{
	__asm__ volatile("");
}

int plug(int n)
{
	return JOIN(inner_, NAME)(n) * 2;
}
