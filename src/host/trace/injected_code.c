/* SPDX-License-Identifier: MIT */
#include "host/trace/injected_code.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "host/trace/hook_image.h"

/* The name of this code for debuggers. */
#define NAME "[trace]"

/*
 * Code that lies further apart is published in several arenas: between may be text of a module,
 * which an arena would hide from gdb.
 */
#define FAR 1024

/* How stacks go through stubs. */
static const struct fathom_jit_unwind stub_rule = { .size = sizeof stub_rule,
						    .kind = FATHOM_JIT_PUSHED };

struct fathom_injected_code *fathom_injected_code_create(void)
{
	void *p = mmap(NULL, sizeof(struct fathom_injected_code), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void fathom_injected_code_destroy(struct fathom_injected_code *t)
{
	if (t)
		(void)munmap(t, sizeof *t);
}

void fathom_injected_code_add(struct fathom_injected_code *t, uint64_t avma, uint64_t size,
			      uint32_t kind)
{
	const uint32_t n = t ? atomic_load(&t->n) : FATHOM_MOST_INJECTED;

	if (n >= FATHOM_MOST_INJECTED || size > UINT32_MAX)
		return;
	t->items[n] = (struct fathom_injected_range){ avma, (uint32_t)size, kind };
	atomic_store(&t->n, n + 1);
}

/* Adds the functions of the image that have rules, as they are copied to @told. */
static void add_of_image(struct fathom_code_functions *f,
			 const struct fathom_image_functions *image,
			 const struct fathom_injected_range *told)
{
	uint64_t low = 0;
	uint64_t high = fathom_image_size();
	uint64_t to = told->avma;

	if (told->kind != FATHOM_INJECTED_IMAGE)
		low = fathom_image_copied(told->kind == FATHOM_INJECTED_LOADED
						  ? FATHOM_IMAGE_LOADED
						  : (int)(told->kind - FATHOM_INJECTED_HOOK),
					  &high);
	for (size_t i = 0; i < image->n; i++) {
		const struct fathom_image_function *from = &image->items[i];

		if (from->off >= low && from->off + from->size <= high)
			(void)fathom_code_functions_add(f, to + (from->off - low), from->size, NAME,
							&from->rule);
	}
}

static int compare(const void *a, const void *b)
{
	const struct fathom_jit_function *left = a;
	const struct fathom_jit_function *right = b;

	return left->code < right->code ? -1 : left->code > right->code;
}

void fathom_injected_code_publish(const struct fathom_injected_code *t,
				  struct fathom_trampoline_cfi *rows)
{
	const uint32_t n = atomic_load(&t->n);
	struct fathom_image_functions image;
	struct fathom_code_functions f = { 0 };

	fathom_image_functions_init(&image);
	for (uint32_t i = 0; i < n && i < FATHOM_MOST_INJECTED; i++) {
		const struct fathom_injected_range *told = &t->items[i];

		if (told->kind == FATHOM_INJECTED_STUB)
			(void)fathom_code_functions_add(&f, told->avma, told->size, NAME,
							&stub_rule);
		else
			add_of_image(&f, &image, told);
	}
	if (f.n)
		qsort(f.items, f.n, sizeof *f.items, compare);
	fathom_trampoline_cfi_publish(rows, &f, FAR, 0);
	fathom_array_free(&f);
	fathom_array_free(&image);
}
