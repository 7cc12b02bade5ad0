/* SPDX-License-Identifier: MIT */
/*
 * Has memory that may be run, and tells of it as it is told to. Prints "NAME ADDRESS" lines, then
 * answers each command on standard input with such lines and "done":
 *
 *	append PATH TEXT	adds the line TEXT to the file
 *	mark PATH		maps the first page of the file so that it may be run, as writers of
 *				jitdumps do
 *	register PATH		registers the ELF file with GDB's interface
 *	unregister		takes out what was registered last
 *	circle, astray, huge	damages the list: its end leads back, to nowhere, or its first
 *				symbol file is as large as can be
 *	unmap			gives the memory back
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gdb_jit.h"

#define SIZE ((size_t)1 << 20)

static char *code;

/* Code in the program's file that no symbol and no unwind description names, as V8's builtins are. */
asm(".pushsection .builtins, \"ax\"\n"
    ".balign 4096\n"
    ".Lbuiltins:\n"
    ".skip 4096, 0xc3\n"
    ".popsection");

static const void *builtins(void)
{
	const void *address = NULL;

#ifdef __x86_64__
	asm("lea .Lbuiltins(%%rip), %0" : "=r"(address));
#elif defined(__aarch64__)
	asm("adrp %0, .Lbuiltins" : "=r"(address));
#endif
	return address;
}

static void tell(const char *name, const void *address)
{
	printf("%s 0x%lx\n", name, (unsigned long)address);
}

static void append(char *argument)
{
	char *text = strchr(argument, ' ');
	FILE *file;

	*text++ = '\0';
	file = fopen(argument, "a");
	if (!file || fprintf(file, "%s\n", text) < 0 || fclose(file))
		abort();
}

static void mark(const char *path)
{
	const int fd = open(path, O_RDONLY);

	tell("marker", mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0));
	close(fd);
}

static void enter(const char *path)
{
	struct jit_code_entry *e = calloc(1, sizeof *e);
	const int fd = open(path, O_RDONLY);
	const size_t size = (size_t)lseek(fd, 0, SEEK_END);
	char *symfile = malloc(size);

	if (pread(fd, symfile, size, 0) != (ssize_t)size)
		abort();
	close(fd);
	e->symfile_addr = symfile;
	e->symfile_size = size;
	register_entry(e);
	tell("entry", e);
}

static void leave(void)
{
	struct jit_code_entry *e = __jit_debug_descriptor.first_entry;

	unregister_entry(e);
	free((void *)e->symfile_addr);
	free(e);
}

static void damage(const char *how)
{
	struct jit_code_entry *first = __jit_debug_descriptor.first_entry;
	struct jit_code_entry *last = first;

	while (last->next_entry)
		last = last->next_entry;
	if (!strcmp(how, "circle"))
		last->next_entry = first;
	else if (!strcmp(how, "astray"))
		last->next_entry = (void *)16;
	else
		first->symfile_size = UINT64_C(1) << 62;
}

static void obey(char *line)
{
	char *argument = strchr(line, ' ');

	line[strcspn(line, "\n")] = '\0';
	if (argument)
		*argument++ = '\0';
	if (!strcmp(line, "append"))
		append(argument);
	else if (!strcmp(line, "mark"))
		mark(argument);
	else if (!strcmp(line, "register"))
		enter(argument);
	else if (!strcmp(line, "unregister"))
		leave();
	else if (!strcmp(line, "unmap"))
		munmap(code, SIZE);
	else
		damage(line);
}

int main(void)
{
	char line[8192];
	const int fd = memfd_create("jit code", MFD_CLOEXEC);

	code = mmap(NULL, SIZE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	tell("code", code);
	tell("data", mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	if (ftruncate(fd, (off_t)SIZE))
		return 1;
	tell("shared", mmap(NULL, SIZE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0));
	tell("main", (const void *)main);
	tell("builtins", builtins());
	printf("done\n");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		obey(line);
		printf("done\n");
		fflush(stdout);
	}
	return 0;
}
