/* SPDX-License-Identifier: MIT */
/* unreadable [all]: calls with addresses in a page without PROT_READ, and beside it: PROT_NONE, or
 * also code, and what may be written only. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096

static void call(char *page)
{
	struct iovec buffers[2] = { { page, 3 }, { page - PAGE, 3 } };
	struct stat st;
	int ends[2];

	(void)!pipe(ends);
	(void)!write(ends[1], page, 2);
	(void)!write(ends[1], page - 2, 4);
	(void)!open(page, O_RDONLY);
	page[-4] = '/';
	(void)!open(page - 4, O_RDONLY);
	(void)!writev(-1, buffers, 2);
	(void)!writev(-1, (struct iovec *)page, 1);
	(void)!readlink("/proc/self/exe", page, 100);
	(void)!connect(-1, (struct sockaddr *)page, 16);
	(void)!stat(page, &st);
	(void)!stat("/", (struct stat *)page);
	(void)!futimens(-1, (struct timespec *)page);
	close(ends[0]);
	close(ends[1]);
}

int main(int argc, char **argv)
{
	const int protections[] = { PROT_NONE, PROT_EXEC, PROT_WRITE };
	char *p = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)argv;
	memset(p, 'a', 3 * PAGE);
	for (int i = 0; i < (argc > 1 ? 3 : 1); i++) {
		mprotect(p + PAGE, PAGE, protections[i]);
		call(p + PAGE);
	}
	return 0;
}
