/* SPDX-License-Identifier: MIT */
/*
 * Tells where it has what, one "NAME ADDRESS" a line, then waits for commands on standard input and
 * answers each with such lines and "done":
 *
 *	open PATH	dlopen; tells where "exported_code" and what "where_hidden" returns are
 *	space PATH	the same in a namespace of its own (dlmopen)
 *	close		dlclose what was opened last
 *	map PATH	maps the file as who reads it would, and memory that may be run behind it
 *	twice PATH	maps the first page of its code again, below and above all else that it has of it
 *	split		changes the protection of the page that "visible_code" is in
 *	move		puts a copy of that page, which no file is behind, in its place
 *	leave		ends the first thread; another goes on
 *
 * With -DLARGE it has several pages of code. With -DPLAIN it cannot be told anything: it may be linked
 * statically.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef PLAIN
#include <dlfcn.h>
#include <pthread.h>
#endif

#ifdef LARGE
/* So that its functions are not all of its code's pages. */
__asm__(".pushsection .text\n.skip 20480, 0x90\n.popsection");
#endif

int initialised_data = 1;
char large_zero_data[1 << 20];
const char constant_data[] = "constant";

static __attribute__((noinline)) int hidden_code(int x)
{
	return x * 3 + initialised_data;
}

__attribute__((noinline)) int visible_code(int x)
{
	return hidden_code(x) + large_zero_data[5];
}

static void tell(const char *name, const void *address)
{
	printf("%s 0x%lx\n", name, (unsigned long)address);
}

/* Behind the file, as a JIT compiler might by chance. */
static void map(const char *path)
{
	const int fd = open(path, O_RDONLY);
	const size_t size = ((size_t)lseek(fd, 0, SEEK_END) + 4095) & ~(size_t)4095;
	char *both = mmap(NULL, size + 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	tell("mapped", mmap(both, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0));
	tell("behind", both + size);
	close(fd);
}

#ifndef PLAIN
/* The first place from ADDRESS on that is free: a hint may be anywhere near the stack, where it counts for nothing. */
static void *map_above(unsigned long address, int fd, unsigned long offset)
{
	void *page;

	do {
		page = mmap((void *)address, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE,
			    fd, (off_t)offset);
		address += 0x100000;
	} while (page == MAP_FAILED);
	return page;
}

/* As libffi does with its trampolines. */
static void map_twice(const char *path)
{
	const int fd = open(path, O_RDONLY);
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end, offset;
	char line[4500], perms[5];
	void *low = NULL;

	while (!low && fgets(line, sizeof line, maps))
		if (strstr(line, path) &&
		    sscanf(line, "%lx-%lx %4s %lx", &start, &end, perms, &offset) == 4 &&
		    perms[2] == 'x') {
			low = map_above(0x10000000, fd, offset);
			tell("low", low);
			tell("high", map_above(end + 0x10000000, fd, offset));
			tell("code", (void *)start);
		}
	(void)fclose(maps);
	close(fd);
}

static void *page_of_code(void)
{
	return (void *)((unsigned long)visible_code & ~4095UL);
}

static void move(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(page, page_of_code(), 4096);
	(void)mprotect(page, 4096, PROT_READ | PROT_EXEC);
	(void)mremap(page, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, page_of_code());
	tell("page", page_of_code());
}

static void *listen(void *nothing);

static void leave(void)
{
	pthread_t other;

	if (!pthread_create(&other, NULL, listen, NULL))
		pthread_exit(NULL);
}

static void *opened[16];
static int n_opened;

static void tell_opened(void *library)
{
	const void *(*where)(void) = (const void *(*)(void))dlsym(library, "where_hidden");

	opened[n_opened++] = library;
	tell("exported_code", dlsym(library, "exported_code"));
	tell("hidden_in_library", where());
}

static void obey(char *line)
{
	if (strncmp(line, "open ", 5) == 0)
		tell_opened(dlopen(line + 5, RTLD_NOW));
	else if (strncmp(line, "space ", 6) == 0)
		tell_opened(dlmopen(LM_ID_NEWLM, line + 6, RTLD_NOW));
	else if (strncmp(line, "map ", 4) == 0)
		map(line + 4);
	else if (strncmp(line, "twice ", 6) == 0)
		map_twice(line + 6);
	else if (strcmp(line, "split") == 0)
		(void)mprotect(page_of_code(), 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
	else if (strcmp(line, "move") == 0)
		move();
	else if (strcmp(line, "close") == 0)
		dlclose(opened[--n_opened]);
	else if (strcmp(line, "leave") == 0)
		leave();
}
#endif

static void *listen(void *nothing)
{
	char line[4096];

	while (fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = '\0';
#ifndef PLAIN
		obey(line);
#endif
		puts("done");
		fflush(stdout);
	}
	return nothing;
}

int main(void)
{

	tell("hidden_code", (const void *)hidden_code);
	tell("visible_code", (const void *)visible_code);
	tell("main", (const void *)main);
	tell("initialised_data", &initialised_data);
	tell("constant_data", constant_data);
	tell("large_zero_data", large_zero_data);
	puts("done");
	fflush(stdout);
	(void)listen(NULL);
	exit(visible_code(1) == 12345);
}
