/* SPDX-License-Identifier: MIT */
/* A program that loads a library itself: nobody counts what comes and goes there. */
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

#define SIZE (1u << 20)

static void map_segments(int fd, char *base)
{
	unsigned char first[4096];
	const Elf64_Ehdr *header = (const void *)first;
	const Elf64_Phdr *s = (const void *)(first + sizeof *header);

	expect(pread(fd, first, sizeof first, 0) == (ssize_t)sizeof first);
	for (int i = 0; i < header->e_phnum; i++) {
		const size_t before = s[i].p_vaddr % 4096;

		if (s[i].p_type == PT_LOAD)
			expect(mmap(base + s[i].p_vaddr - before, s[i].p_filesz + before,
				    PROT_READ | (s[i].p_flags & PF_X ? PROT_EXEC : 0),
				    MAP_PRIVATE | MAP_FIXED, fd,
				    (off_t)(s[i].p_offset - before)) != MAP_FAILED);
	}
}

int main(int argc, char **argv)
{
	const int fd = open(argv[1], O_RDONLY);
	char *base = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uintptr_t at = (uintptr_t)base + strtoul(argv[2], NULL, 16);
	struct looked a;

	(void)argc;
	map_segments(fd, base);
	start(0);
	expect(look_up_now(&a, at) &&
	       strcmp(a.is->symbol, "exported_by_one") == 0);
	expect(mmap(base, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == base);
	expect(!look_up_now(&a, at));
	expect(!look_up(&a, at));
	return end();
}
