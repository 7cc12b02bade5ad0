/* SPDX-License-Identifier: MIT */
/*
 * named NAME FUNCTION: a thread with that name runs code that a perf map names so; both may have
 * any bytes. Prints "ready".
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

/* A function of no address of its own, so that a copy of it runs anywhere. */
__attribute__((noinline, aligned(64))) static void spin(void)
{
	for (;;)
		__asm__ volatile("" ::: "memory");
}

#define SIZE 64

int main(int argc, char **argv)
{
	void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64];
	FILE *map;

	if (argc < 3 || code == MAP_FAILED)
		return 1;
	memcpy(code, (const void *)spin, SIZE);
	__builtin___clear_cache((char *)code, (char *)code + SIZE);
	(void)snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "w");
	if (!map)
		return 1;
	fprintf(map, "%lx %x %s\n", (unsigned long)code, SIZE, argv[2]);
	fclose(map);
	prctl(PR_SET_NAME, argv[1], 0, 0, 0);
	puts("ready");
	fflush(stdout);
	((void (*)(void))code)();
	return 0;
}
