/* SPDX-License-Identifier: MIT */
/*
 * midway LIBRARY: looks at itself from inside of dlopen(), where the library is listed and its end is
 * not known. After dlclose() its file is mapped at its place, to be read: the same bytes, with its
 * build-id, and no code.
 */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* The library's resolver calls it, by the address that stands at 0x10000000. */
static void midway(void)
{
	expect(!fathom_self_refresh(self, NULL));
}

int main(int argc, char **argv)
{
	const int fd = open(argv[argc - 1], O_RDONLY | O_CLOEXEC);
	struct looked a;
	uintptr_t place;
	struct stat st;
	Dl_info info;
	void *handle;
	void *mapped;
	void **at = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	*at = (void *)midway;
	start(0);
	handle = dlopen(argv[1], RTLD_NOW);
	place = (uintptr_t)dlsym(handle, "exported_code");
	expect(place && dladdr((void *)place, &info) && !fstat(fd, &st));
	expect(look_up_now(&a, place) && strcmp(a.is->symbol, "exported_code") == 0);
	expect(!a.is->reason || a.is->reason == FATHOM_REASON_NO_DEBUG_INFO);
	/* As it was when only the resolver had looked. */
	dlclose(handle);
	handle = dlopen(argv[1], RTLD_NOW);
	expect((uintptr_t)dlsym(handle, "exported_code") == place);
	dlclose(handle);
	mapped = mmap(info.dli_fbase, (size_t)st.st_size, PROT_READ,
		      MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0);
	expect(mapped == info.dli_fbase);
	expect(!look_up(&a, place));
	expect(!look_up_now(&a, place));
	return end();
}
