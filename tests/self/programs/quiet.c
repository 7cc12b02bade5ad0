/* SPDX-License-Identifier: MIT */
/*
 * Preparing leaves no descriptor and no mapping of a module's file behind; bad memory is not read; a
 * forked child is named as its parent. "quiet seccomp": where process_vm_readv is forbidden, too;
 * "quiet secure": it has the rights of another user than who has started it.
 */
#define _GNU_SOURCE
#include "forbid.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static __attribute__((noinline)) int quiet_code(int x)
{
	return x * 3;
}

static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void check_bad_pointers(void)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct looked a;
	char text[64];

	(void)munmap(pages + 4096, 4096);
	memset(pages, 'x', 4096);
	(void)fathom_self_format(self, text, sizeof text, "%s %s", (char *)0x31337, pages + 4093);
	expect(strcmp(text, "!!31337 xxx") == 0);
	expect(!look_up(&a, (uintptr_t)pages + 4096) &&
	       a.is->reason == FATHOM_REASON_UNMAPPED);
	expect(!look_up(&a, (uintptr_t)pages) &&
	       a.is->reason == FATHOM_REASON_NO_FILE);
	(void)munmap(pages, 4096);
}

static void check_child(void)
{
	const pid_t child = fork();
	int status;

	if (!child) {
		char text[64];

		expect_name((uintptr_t)quiet_code, "quiet_code", 0);
		(void)fathom_self_format(self, text, sizeof text, "%s %t", "own", quiet_code);
		expect(strcmp(text, "own quiet_code") == 0);
		(void)fflush(stdout);
		_exit(n_wrong);
	}
	expect(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv)
{
	const int before = count_fds();
	char path[400];
	FILE *maps;

	start(0);
	expect(count_fds() == before);
	if (argc > 1 && strcmp(argv[1], "seccomp") == 0)
		forbid_reading(SECCOMP_RET_ERRNO | 1);
	if (argc > 1 && strcmp(argv[1], "secure") == 0)
		expect(getauxval(AT_SECURE));
	expect_name((uintptr_t)quiet_code, "quiet_code", 0);
	expect_name((uintptr_t)quiet_code + 2, "quiet_code", 2);
	expect_name((uintptr_t)labs, "labs", 0);
	check_bad_pointers();
	check_child();
	/* Another library's file would be mapped whole, readable, from its start. */
	maps = fopen("/proc/self/maps", "r");
	for (int n = 0; maps && fgets(path, sizeof path, maps);)
		if (strstr(path, argv[0]) && strstr(path, "r--p 00000000"))
			expect(++n == 1);
	if (maps)
		(void)fclose(maps);
	return end();
}
