/* SPDX-License-Identifier: MIT */
/* hostile WHAT [FILE]: surroundings that a program makes itself. Calls counted() 100,000 times. */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((noinline)) void counted(void)
{
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void other(void)
{
	__asm__ volatile("" ::: "memory");
}

/* Writes over all memory that it shares. */
static void scribble(void)
{
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");

	while (fgets(line, sizeof line, f)) {
		unsigned long start;
		unsigned long end;
		uint64_t x = 88172645463325252u;

		if (!strstr(line, "fathom-trace") || sscanf(line, "%lx-%lx", &start, &end) != 2)
			continue;
		if (end - start > 8 << 20)
			end = start + (8 << 20);
		for (unsigned long at = start; at < end; at += 8) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			*(uint64_t *)at = x;
		}
	}
	(void)fclose(f);
}

/* The gs base is set to this memory, which looks like addresses of itself. */
static uint64_t own[512];

/* Returns whether @own is as it was filled. */
static int is_own_kept(void)
{
	for (size_t i = 0; i < 512; i++)
		if (own[i] != (uintptr_t)&own[256 + i % 256])
			return 0;
	return 1;
}

/* Sets the gs base to memory of its own, or to nothing. */
static void take_gs(int is_memory)
{
	for (size_t i = 0; i < 512; i++)
		own[i] = (uintptr_t)&own[256 + i % 256];
	syscall(SYS_arch_prctl, ARCH_SET_GS, is_memory ? own : NULL);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	struct rlimit limit = { 0, 0 };

	if (!strcmp(what, "closed")) {
		for (int fd = 0; fd < 1024; fd++)
			close(fd);
		for (int fd = 0; fd < 3; fd++)
			open(argv[2], O_WRONLY | O_CREAT | O_APPEND, 0600);
	} else if (!strcmp(what, "strict")) {
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	} else if (!strcmp(what, "mdwe")) {
		if (prctl(65 /* PR_SET_MDWE */, 1, 0, 0, 0))
			return 99;
	} else if (!strcmp(what, "limits")) {
		setrlimit(RLIMIT_FSIZE, &limit);
		limit.rlim_cur = limit.rlim_max = 3;
		setrlimit(RLIMIT_NOFILE, &limit);
	} else if (!strcmp(what, "scribble")) {
		scribble();
	} else if (!strcmp(what, "gs") || !strcmp(what, "gs-0")) {
		take_gs(!strcmp(what, "gs"));
	}
	for (int i = 0; i < 50000; i++) {
		counted();
		other();
	}
	(void)!write(2, "own data\n", 9);
	syscall(SYS_exit, strcmp(what, "gs") || is_own_kept() ? 5 : 6);
}
