/* SPDX-License-Identifier: MIT */
/* Functions whose slots begin at each offset of a cache line; hooks on them are switched while threads call them. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <fathom/fathom.h>

#define PLAIN __attribute__((noinline, noclone, patchable_function_entry(0, 0)))

/* Function number i has a slot of 5 NOPs, or of 2 with 5 in front, at offset i % 64 of a line, and returns i. */
#define FUNCTION(i)                                                                                         \
	".balign 64\n.fill 64 + " #i " % 64 - (" #i " / 64) * 5, 1, 0xcc\n1: .fill (" #i " / 64) * 5, 1, 0x90\n" \
	".globl f" #i "\n.type f" #i ", @function\nf" #i ":\n.cfi_startproc\n"                                    \
	".if " #i " / 64\n.fill 2, 1, 0x90\n.else\n.fill 5, 1, 0x90\n.endif\nmov $" #i ", %eax\nret\n.cfi_endproc\n" \
	".size f" #i ", . - f" #i "\n"                                                                           \
	".pushsection __patchable_function_entries, \"awo\", @progbits, .text\n.balign 8\n.quad 1b\n.popsection\n" \
	".pushsection .data.rel.ro\n.quad f" #i "\n.popsection\n"

__asm__(".pushsection .data.rel.ro\n.balign 8\n.globl functions\nfunctions:\n.popsection\n"
	".altmacro\n.macro one i\n" FUNCTION(\\i) "\n.endm\n.set n, 0\n.rept 128\none %n\n.set n, n + 1\n.endr\n");

enum { FUNCTIONS = 128, THREADS = 2 };

extern int (*const functions[FUNCTIONS])(void);

static volatile int is_over;
static _Atomic long n_called;

PLAIN static void count(void *data, const struct fathom_hook_call *call)
{
	(void)data;
	(void)call;
	atomic_fetch_add(&n_called, 1);
}

PLAIN static void *turn(void *data)
{
	long n_wrong = 0;

	while (!is_over)
		for (int i = 0; i < FUNCTIONS; i++)
			n_wrong += functions[i]() != i;
	*(long *)data = n_wrong;
	return NULL;
}

/* lines N: switches on and off until each of the functions was switched N times. */
PLAIN int main(int argc, char **argv)
{
	const struct fathom_hook_options o = { .size = sizeof o };
	const long n = argc > 1 ? atol(argv[1]) : 1;
	struct fathom *session;
	struct fathom_hook *h;
	pthread_t threads[THREADS];
	long wrong[THREADS], n_wrong = 0, before;

	if (fathom_create(NULL, &session, NULL) || fathom_hook_add(session, count, NULL, &o, &h, NULL))
		return 1;
	printf("%zu\n", fathom_hook_count(h));
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, turn, &wrong[i]);
	for (long i = 0; i < n; i++)
		n_wrong += fathom_hook_switch(h, i & 1, NULL);
	(void)fathom_hook_switch(h, 0, NULL);
	is_over = 1;
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		n_wrong += wrong[i];
	}
	/* Each says what it should, off, on, and gone. */
	before = n_called;
	for (int i = 0; i < FUNCTIONS; i++)
		n_wrong += functions[i]() != i;
	n_wrong += n_called != before;
	(void)fathom_hook_switch(h, 1, NULL);
	for (int i = 0; i < FUNCTIONS; i++)
		n_wrong += functions[i]() != i;
	n_wrong += n_called != before + FUNCTIONS;
	n_wrong += fathom_hook_remove(h, NULL);
	for (int i = 0; i < FUNCTIONS; i++)
		n_wrong += functions[i]() != i;
	n_wrong += n_called != before + FUNCTIONS;
	printf("%ld wrong%s\n", n_wrong, before ? "" : ", none called");
	return 0;
}
