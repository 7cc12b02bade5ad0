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
	struct fathom_self_answer a;

	(void)argc;
	code.name = argv[1];
	if (!dlopen(argv[1], RTLD_NOW) || !dl_iterate_phdr(find_code, NULL))
		return 2;
	start(FATHOM_SELF_FULL);
	for (long n = atol(argv[2]); n; n--) {
		(void)fathom_self_lookup(self, code.low + (uintptr_t)lrand48() % code.size, 0, &a);
		printf("%#llx\t%s\t%s\t%#llx\t%s", (unsigned long long)a.module_address,
		       text_of(a.function), text_of(a.linkage_name), (unsigned long long)a.offset,
		       a.function ? fathom_source_name((enum fathom_source)a.source)
				  : fathom_reason_name((enum fathom_reason)a.reason));
		for (uint32_t i = 0; i < a.n_frames; i++)
			printf("\t%s\t%s\t%u\t%u", text_of(a.frames[i].function),
			       text_of(a.frames[i].file), a.frames[i].line, a.frames[i].column);
		printf("\t%s\n", a.is_cut ? "cut" : "");
	}
	return end();
}
