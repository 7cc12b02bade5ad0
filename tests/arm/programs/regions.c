/* SPDX-License-Identifier: MIT */
/*
 * regions N WORDS: begins and ends a trace of itself N times. Prints how many calls of itself were made within, the
 * offsets in the file of the instructions that were others within, and how often text was not what the file has at last.
 */
#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fathom/fathom.h>

#define UNSEEN __attribute__((patchable_function_entry(0, 0)))

struct text {
	const unsigned *memory;
	unsigned *file;
	size_t n;
	size_t off;
};

__attribute__((noinline)) int leaf(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

__attribute__((noinline)) int middle(int n)
{
	return leaf(n) + leaf(n + 1) * 2;
}

UNSEEN static int find(struct dl_phdr_info *info, size_t size, void *data)
{
	struct text *t = data;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		t->memory = (const void *)(info->dlpi_addr + p->p_vaddr);
		t->n = p->p_filesz / 4;
		t->off = p->p_offset;
	}
	return 1;
}

UNSEEN static size_t count_changed(const struct text *t, int shows)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		if (t->memory[i] == t->file[i])
			continue;
		n++;
		if (shows)
			printf("%zx\n", t->off + 4 * i);
	}
	return n;
}

UNSEEN int main(int argc, char **argv)
{
	struct fathom_errinfo info;
	struct text t;
	size_t n_left = 0;
	FILE *f = fopen(argv[0], "r");
	char why[200];

	(void)argc;
	dl_iterate_phdr(find, &t);
	t.file = malloc(4 * t.n);
	fseek(f, (long)t.off, SEEK_SET);
	if (fread(t.file, 4, t.n, f) != t.n)
		return 1;
	for (int i = 0; i < atoi(argv[1]); i++) {
		middle(1);
		if (fathom_trace_start(argv[2], &info)) {
			(void)fathom_errinfo_format(&info, why, sizeof why);
			printf("not: %s\n", why);
			return 1;
		}
		(void)count_changed(&t, !i);
		middle(2);
		if (fathom_trace_stop(&info))
			printf("not ended\n");
		n_left += count_changed(&t, 0);
		middle(3);
	}
	printf("%zu left\n", n_left);
	return 0;
}
