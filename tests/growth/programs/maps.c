/* SPDX-License-Identifier: MIT */
/*
 * maps NUMBER code|start LIBRARY		maps the code or the first page of LIBRARY so often
 * maps NUMBER files DIRECTORY		maps the code of so many files there, 0.so and so on
 *
 * No two mappings are neighbours. Prints the address of the first one and "done"; then waits.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096UL

struct place {
	off_t off;
	size_t size;
	int rights;
};

/* Finds the pages of the segment with the code. */
static struct place find_code(int fd)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;

	if (pread(fd, &header, sizeof header, 0) != sizeof header)
		exit(1);
	for (int i = 0; i < header.e_phnum; i++) {
		const off_t at = (off_t)(header.e_phoff + (unsigned)i * sizeof segment);

		if (pread(fd, &segment, sizeof segment, at) != sizeof segment)
			exit(1);
		if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X)) {
			const size_t start = segment.p_offset & ~(PAGE - 1);
			const size_t end = segment.p_offset + segment.p_filesz;

			return (struct place){ (off_t)start, (end - start + PAGE - 1) & ~(PAGE - 1),
					       PROT_READ | PROT_EXEC };
		}
	}
	exit(1);
}

static int open_file(const char *path)
{
	const int fd = open(path, O_RDONLY);

	if (fd < 0) {
		perror(path);
		exit(1);
	}
	return fd;
}

int main(int argc, char **argv)
{
	const size_t n = argc == 4 ? strtoul(argv[1], NULL, 10) : 0;
	const int many = n && strcmp(argv[2], "files") == 0;
	struct place p = { 0, PAGE, PROT_READ };
	char path[4096];
	size_t step;
	char *at;
	int fd;

	if (!n)
		return 1;
	(void)snprintf(path, sizeof path, many ? "%s/0.so" : "%s", argv[3]);
	fd = open_file(path);
	if (strcmp(argv[2], "start") != 0)
		p = find_code(fd);
	step = p.size + PAGE;
	at = mmap(NULL, n * step, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED || munmap(at, n * step))
		return 1;
	for (size_t i = 0; i < n; i++) {
		if (many) {
			close(fd);
			(void)snprintf(path, sizeof path, "%s/%zu.so", argv[3], i);
			fd = open_file(path);
		}
		if (mmap(at + i * step, p.size, p.rights, MAP_PRIVATE | MAP_FIXED, fd, p.off) ==
		    MAP_FAILED) {
			perror("mmap");
			return 1;
		}
	}
	printf("first %p\ndone\n", (void *)at);
	fflush(stdout);
	return getchar();
}
