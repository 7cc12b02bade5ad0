/* SPDX-License-Identifier: MIT */
/*
 * random LIBRARY N: N random addresses of the library's code, each in a line: what it is as stated in
 * the ELF, name, offset, source or reason, then each frame: function, file, line, column.
 */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>
#include <link.h>

static struct {
	const char *name;
	uintptr_t bias;
	uintptr_t low;
	uintptr_t size;
} code;

static int find_code(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	(void)data;
	if (!info->dlpi_name || !strstr(info->dlpi_name, code.name))
		return 0;
	code.bias = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
			code.low = code.bias + info->dlpi_phdr[i].p_vaddr;
			code.size = info->dlpi_phdr[i].p_memsz;
		}
	return 1;
}

static const char *text_of(const char *s)
{
	return s ? s : "-";
}

int main(int argc, char **argv)
{
	struct looked a;

	(void)argc;
	code.name = argv[1];
	if (!dlopen(argv[1], RTLD_NOW) || !dl_iterate_phdr(find_code, NULL))
		return 2;
	start(FATHOM_SELF_FULL);
	for (long n = atol(argv[2]); n; n--) {
		(void)look_up(&a, code.low + (uintptr_t)lrand48() % code.size);
		printf("%#llx\t%s\t%s\t%#llx\t%s",
		       a.is->module_address == FATHOM_NO_ADDRESS
			       ? 0
			       : (unsigned long long)a.is->module_address,
		       text_of(a.is->symbol), text_of(a.is->linkage_name),
		       (unsigned long long)a.is->offset,
		       a.is->symbol ? fathom_source_name((enum fathom_source)a.is->source)
				    : fathom_reason_name((enum fathom_reason)a.is->reason));
		for (const struct fathom_frame *f = a.is->frame; f; f = f->outer)
			printf("\t%s\t%s\t%u\t%u", text_of(f->function), text_of(f->file),
			       f->line, f->column);
		printf("\t%s\n", a.is->reason == FATHOM_REASON_LIMIT ? "cut" : "");
	}
	return end();
}
