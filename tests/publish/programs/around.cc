/* SPDX-License-Identifier: MIT */
/* around LIBRARY: publishes code below and above the library, and calls its function inside(). */
#include <dlfcn.h>
#include <fathom/fathom.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

/* Publishes a function in the first free page from @from on, page by page @step. */
static int publish(uintptr_t from, intptr_t step, const char *name)
{
	struct fathom_jit_arena_options options = {};
	struct fathom_jit_function function = {};
	struct fathom_jit_arena *arena;
	void *page;

	options.size = sizeof options;
	function.size = sizeof function;
	function.code_size = 16;
	function.name = name;
	do {
		page = mmap((void *)from, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		from += (uintptr_t)step;
	} while (page == MAP_FAILED);
	function.code = page;
	return !fathom_jit_arena_create(page, PAGE, &options, &arena, NULL) && !fathom_jit_add(arena, &function, NULL);
}

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	void (*inside)(void) = library ? (void (*)(void))dlsym(library, "inside") : NULL;
	const uintptr_t near = (uintptr_t)inside & ~(uintptr_t)(PAGE - 1);

	if (!inside || !publish(near, -PAGE, "made_below") || !publish(near, PAGE, "made_above"))
		return 1;
	inside();
	puts("done");
	return 0;
}
