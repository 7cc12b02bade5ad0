/* SPDX-License-Identifier: MIT */
/*
 * user LIBRARY...: opens each library and tells where it has what, one "NAME ADDRESS" a line, then
 * "done". Then it waits for commands on standard input and answers each with "done":
 *
 *	touch		has a thread read what was never read before of the first library
 *	map PATH	maps the file as code, which it tells, and memory for code that no file is behind
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The last byte of what is far from all else that the libraries have. */
#define FAR ((1 << 20) - 1)

int own_data = 42;
const volatile char *far_pointer;

static void tell(const char *name, int number, const void *address)
{
	printf("%s%d 0x%lx\n", name, number, (unsigned long)address);
}

static void *touch(void *nothing)
{
	(void)*far_pointer;
	return nothing;
}

static void map(const char *path)
{
	const int fd = open(path, O_RDONLY);

	tell("mapped", 0, mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0));
	tell("made", 0, mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	(void)close(fd);
}

static void obey(char *line)
{
	pthread_t thread;

	line[strcspn(line, "\n")] = '\0';
	if (strcmp(line, "touch") == 0)
		(void)pthread_create(&thread, NULL, touch, NULL);
	else if (strncmp(line, "map ", 4) == 0)
		map(line + 4);
	(void)puts("done");
	(void)fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[4096] = "";

	tell("main", 0, (const void *)main);
	for (int i = 1; i < argc; i++) {
		void *library = dlopen(argv[i], RTLD_NOW);
		const char *far = library ? dlsym(library, "far_data") : NULL;

		if (!far)
			return 1;
		tell("in_library", i, dlsym(library, "in_library"));
		tell("far", i, far + FAR);
		if (i == 1)
			far_pointer = far + FAR;
	}
	do
		obey(line);
	while (fgets(line, sizeof line, stdin));
	return 0;
}
