/* SPDX-License-Identifier: MIT */
/* Hooks functions of its own, as its first word says, and prints what came of it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#include <fathom/fathom.h>

#include "../../lib/three_calls.h"

/* The tests' own functions have no site. */
#define UNSEEN KEPT __attribute__((patchable_function_entry(0, 0)))

static struct fathom *session;
static _Atomic long n_called;

UNSEEN static struct fathom_hook *hook(fathom_hook_fn fn, void *data, uint32_t flags, const char *only)
{
	const struct fathom_hook_options o = { .size = sizeof o, .flags = flags, .only = &only, .n_only = only ? 1 : 0 };
	struct fathom_errinfo info = { 0 };
	struct fathom_hook *h = NULL;
	char text[256];

	if (!fathom_hook_add(session, fn, data, &o, &h, &info))
		return h;
	(void)fathom_errinfo_format(&info, text, sizeof text);
	printf("not: %s\n", text);
	exit(1);
}

UNSEEN static void count(void *data, const struct fathom_hook_call *call)
{
	(void)call;
	atomic_fetch_add((_Atomic long *)data, 1);
}

/* "name(first argument) < the caller's name", and whether stack pointer, return address and registers are what they are called. */
UNSEEN static void tell(void *data, const struct fathom_hook_call *call)
{
	Dl_info function = { 0 }, caller = { 0 };

	(void)data;
	(void)dladdr((void *)call->function, &function);
	(void)dladdr((void *)call->caller, &caller);
	printf("%u %s(%d) < %s %s\n", call->place, function.dli_sname, (int)call->registers[0], caller.dli_sname,
	       call->registers[30] == call->caller && call->registers[31] == call->stack && function.dli_saddr == (void *)call->function ? "right" : "wrong");
}

/* Sums the text of the three functions, and some around them. */
UNSEEN static unsigned long sum(void)
{
	const unsigned *low = (const unsigned *)&leaf - 16;
	unsigned long all = 0;

	for (int i = 0; i < 256; i++)
		all = all * 31 + low[i];
	return all;
}

UNSEEN static void calls(uint32_t flags, const char *only)
{
	const unsigned long before = sum();
	struct fathom_hook *h = hook(tell, NULL, flags, only);
	unsigned long hooked;

	printf("%zu %zu\n", fathom_hook_count(h), fathom_hook_refused(h, FATHOM_TRACE_NO_ROOM));
	hooked = sum();
	printf("= %d\n", top(3));
	if (fathom_hook_switch(h, 0, NULL))
		printf("not switched\n");
	printf("= %d %s\n", top(3), sum() == before ? "same" : "changed");
	(void)fathom_hook_switch(h, 1, NULL);
	printf("= %d\n", leaf(1));
	if (fathom_hook_remove(h, NULL))
		printf("not removed\n");
	printf("= %d %s %s\n", top(3), hooked != before ? "changed" : "same", sum() == before ? "same" : "changed");
}

UNSEEN static void *turn(void *data)
{
	for (long i = 0; i < 5000; i++)
		if (top(3) != 40)
			abort();
	return data;
}

static _Atomic int is_over;

UNSEEN static void *turn_on(void *data)
{
	while (!is_over)
		if (top(3) != 40)
			abort();
	return data;
}

/* Four threads call all the while; a hook is added, switched and removed @n times. */
UNSEEN static void toggle(int n)
{
	const unsigned long before = sum();
	pthread_t threads[4];
	int n_wrong = 0;

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, turn_on, NULL);
	for (int i = 0; i < n; i++) {
		struct fathom_hook *h = hook(count, &n_called, FATHOM_HOOK_OFF, NULL);
		long was = n_called;

		n_wrong += fathom_hook_count(h) != 3 || fathom_hook_switch(h, 1, NULL) || sum() == before;
		while (n_called < was + 5)
			;
		n_wrong += fathom_hook_switch(h, 0, NULL) || fathom_hook_switch(h, 1, NULL) || fathom_hook_remove(h, NULL);
		was = n_called;
		n_wrong += sum() != before || n_called != was;
	}
	is_over = 1;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	printf("%d wrong\n", n_wrong);
}

UNSEEN static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *data)
{
	Dl_info info = { 0 };
	int before;
	const _Unwind_Ptr pc = _Unwind_GetIPInfo(context, &before);

	(void)data;
	if (dladdr((void *)(pc - !before), &info) && info.dli_sname && strcmp(info.dli_sname, "main") != 0)
		printf("%s ", info.dli_sname);
	return _URC_NO_REASON;
}

UNSEEN static void walk(void *data, const struct fathom_hook_call *call)
{
	(void)call;
	(void)_Unwind_Backtrace(step, data);
	puts("");
}

UNSEEN static void change(void)
{
	extern char nop_here[];
	const unsigned first = 0x52800040; /* mov w0, #2 */
	int (*fn)(void) = (int (*)(void))(void *)nop_here;
	unsigned was;

	memcpy(&was, nop_here, sizeof was);
	printf("%d ", fn());
	printf("%d ", fathom_code_write(nop_here, &first, sizeof first, NULL));
	printf("%d ", fn());
	printf("%d ", fathom_code_write(nop_here + 1, (const char *)&was + 1, 2, NULL));
	printf("%d ", fathom_code_write(nop_here, &was, sizeof was, NULL));
	printf("%d\n", fn());
}

__asm__(".text\n.balign 4\n.globl nop_here\n.type nop_here, %function\nnop_here:\n	mov w0, #1\n	ret\n.size nop_here, . - nop_here\n");

UNSEEN int main(int argc, char **argv)
{
	/* A thread of the session's would be a second one, and text cannot be changed then below an emulator. */
	const struct fathom_options o = { .size = sizeof o, .threads = 1 };
	const char *what = argv[1];
	pthread_t threads[8];
	struct fathom_hook *h;

	if (argc < 2 || fathom_create(&o, &session, NULL))
		return 1;
	if (!strcmp(what, "calls")) {
		calls((uint32_t)atoi(argv[2]), argc > 3 ? argv[3] : NULL);
	} else if (!strcmp(what, "threads")) {
		h = hook(count, &n_called, 0, NULL);
		for (int i = 0; i < 8; i++)
			pthread_create(&threads[i], NULL, turn, NULL);
		for (int i = 0; i < 8; i++)
			pthread_join(threads[i], NULL);
		printf("%ld\n", n_called);
	} else if (!strcmp(what, "stack")) {
		h = hook(walk, NULL, 0, "leaf");
		top(3);
		fathom_hook_remove(h, NULL);
	} else if (!strcmp(what, "often")) {
		for (int i = 0; i < 100; i++) {
			h = hook(count, &n_called, 0, i % 2 ? "leaf" : NULL);
			if (top(3) != 40 || fathom_hook_switch(h, 0, NULL) || top(3) != 40 || fathom_hook_remove(h, NULL) || top(3) != 40)
				abort();
		}
		printf("%ld\n", n_called);
	} else if (!strcmp(what, "toggle")) {
		toggle(atoi(argv[2]));
	} else if (!strcmp(what, "change")) {
		change();
	}
	return 0;
}
