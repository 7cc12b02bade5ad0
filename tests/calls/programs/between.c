/* SPDX-License-Identifier: MIT */
/* Hooks first() and second(). Between them lies between(), which has no site. */
#include <fathom/fathom.h>
#include <stdio.h>

#define PLAIN __attribute__((noinline, patchable_function_entry(0, 0)))

static long n_called;

PLAIN static void count(void *data, const struct fathom_hook_call *call)
{
	(void)data;
	(void)call;
	n_called++;
}

__attribute__((noinline)) void first(void)
{
	__asm__ volatile("");
}

PLAIN void between(void)
{
	__asm__ volatile("nop");
}

__attribute__((noinline)) void second(void)
{
	__asm__ volatile("");
}

PLAIN int main(void)
{
	const struct fathom_hook_options options = { .size = sizeof options };
	struct fathom_hook *hook;
	struct fathom *session;

	if (fathom_create(NULL, &session, NULL) || fathom_hook_add(session, count, NULL, &options, &hook, NULL))
		return 1;
	first();
	between();
	second();
	printf("%ld\n", n_called);
	return 0;
}
