/* SPDX-License-Identifier: MIT */
/*
 * Has room for code and for what describes it, both of which the test writes, and runs that code.
 * Prints "NAME ADDRESS" lines, then answers each command on standard input with "done":
 *
 *	library PATH		opens a library, in which functions are looked up
 *	call NAME NUMBER...	calls a function of it, with up to two numbers
 *	mark PATH		maps the first page of the file so that it may be run
 *	go ADDRESS		starts a thread in the code there
 *
 * The code ends up in stay(), which never returns. What lies behind a call in another function is
 * printed as "decoy": a return address that no frame has.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gdb_jit.h"

#define SIZE ((size_t)1 << 20)

static volatile int is_there;

__attribute__((noinline)) static void stay(void)
{
	for (is_there = 1;;)
		pause();
}

__attribute__((noinline)) static void *decoy(void)
{
	return __builtin_return_address(0);
}

__attribute__((noinline)) static void *enter(void *code)
{
	((void (*)(void))code)();
	/* The call above must not become a jump. */
	return (void *)&is_there;
}

static void tell(const char *name, const void *address)
{
	printf("%s 0x%lx\n", name, (unsigned long)address);
}

static void call(void *library, char *words)
{
	char *name = strtok(words, " ");
	const char *first = strtok(NULL, " ");
	const char *second = strtok(NULL, " ");
	void (*function)(unsigned long, unsigned long);

	*(void **)&function = dlsym(library, name);
	if (!function)
		abort();
	function(first ? strtoul(first, NULL, 16) : 0, second ? strtoul(second, NULL, 16) : 0);
}

static void go(const char *address)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, enter, (void *)strtoul(address, NULL, 16)))
		abort();
	while (!is_there)
		usleep(1000);
}

int main(void)
{
	char line[4096];
	void *library = NULL;
	char *code = mmap((void *)0x200000000000, 2 * SIZE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED || mprotect(code, SIZE, PROT_READ | PROT_EXEC))
		return 1;
	tell("code", code);
	tell("data", code + SIZE);
	tell("stay", (const void *)stay);
	tell("enter", (const void *)enter);
	tell("decoy", decoy());
	tell("descriptor", &__jit_debug_descriptor);
	printf("done\n");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		char *argument = strchr(line, ' ');

		line[strcspn(line, "\n")] = '\0';
		*argument++ = '\0';
		if (!strcmp(line, "library"))
			library = dlopen(argument, RTLD_NOW | RTLD_GLOBAL);
		else if (!strcmp(line, "call"))
			call(library, argument);
		else if (!strcmp(line, "mark"))
			mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE,
			     open(argument, O_RDONLY), 0);
		else
			go(argument);
		printf("done\n");
		fflush(stdout);
	}
	return 0;
}
