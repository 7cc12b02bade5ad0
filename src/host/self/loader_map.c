/* SPDX-License-Identifier: MIT */
/*
 * Builds the map of this process from the loader's data if /proc/self/maps is unavailable (no /proc
 * in a chroot). Inodes are then unknown, so only files with a build-id are trusted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include "host/base/array.h"
#include "host/self/self.h"
#include "safe/base/peek.h"

/* A mapping of the loader. */
struct made {
	uintptr_t start;
	uintptr_t end;
	uint64_t off;
	char perms[5];
	size_t object; /* its index */
};

struct made_array {
	FATHOM_ARRAY_OF(struct made);
};

/* Adds the segments of @l, from the program headers in its memory. */
static bool add_segments(const struct fathom_self_loaded *l, size_t object, uint64_t page,
			 struct made_array *ret)
{
	/* The object may have been unloaded since it was listed, so read without faulting. */
	uint8_t first[4096];
	const uintptr_t start = l->low & ~(uintptr_t)(page - 1);
	const size_t got = fathom_peek(start, first, sizeof first);
	struct fathom_image image;
	struct fathom_segment s;

	if (fathom_image_init((struct fathom_bytes){ first, got }, &image, NULL))
		return true;
	for (uint32_t i = 0; i < image.phnum; i++) {
		const uint64_t mask = ~(page - 1);
		struct made *m;

		if (!fathom_image_segment(&image, i, &s) || s.type != PT_LOAD || !s.filesz)
			continue;
		if (!fathom_array_room(ret, 1))
			return false;
		m = ret->items + ret->n++;
		m->start = (uintptr_t)((l->bias + s.vaddr) & mask);
		m->end = (uintptr_t)((l->bias + s.vaddr + s.filesz + page - 1) & mask);
		m->off = s.off & mask;
		m->object = object;
		memcpy(m->perms, "---p", sizeof m->perms);
		m->perms[0] = s.flags & PF_R ? 'r' : '-';
		m->perms[1] = s.flags & PF_W ? 'w' : '-';
		m->perms[2] = s.flags & PF_X ? 'x' : '-';
	}
	return true;
}

/* Adds the vDSO, which is mapped whole. */
static bool add_vdso(uint64_t page, size_t object, struct made_array *ret)
{
	const uintptr_t start = (uintptr_t)getauxval(AT_SYSINFO_EHDR);
	uintptr_t end = start;
	uint8_t byte;
	struct made *m;

	while (start && end - start < 16 * page && fathom_peek(end, &byte, 1))
		end += (uintptr_t)page;
	if (end == start)
		return true;
	if (!fathom_array_room(ret, 1))
		return false;
	m = ret->items + ret->n++;
	*m = (struct made){ .start = start, .end = end, .perms = "r-xp", .object = object };
	return true;
}

static int compare_starts(const void *a, const void *b)
{
	const struct made *x = a;
	const struct made *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Writes the map in the kernel's format, with a device number that does not exist. */
static char *write_map(const struct made *made, size_t n,
		       const struct fathom_self_loaded_array *objects, size_t *ret_size)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_size);

	if (!out)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		const struct made *m = &made[i];
		const bool is_vdso = m->object == objects->n;

		(void)fprintf(out, "%llx-%llx %s %llx %s %zu %s\n", (unsigned long long)m->start,
			      (unsigned long long)m->end, m->perms, (unsigned long long)m->off,
			      is_vdso ? "00:00" : "fff:fffff", is_vdso ? 0 : m->object + 1,
			      is_vdso ? "[vdso]" : objects->items[m->object].path);
	}
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

fathom_err fathom_self_make_map(uint64_t page, struct fathom_maps *ret)
{
	struct fathom_self_loaded_array objects = { 0 };
	struct made_array made = { 0 };
	char *text = NULL;
	size_t size;
	bool done;

	FATHOM_TRY(fathom_self_list(&objects));
	done = add_vdso(page, objects.n, &made);
	for (size_t i = 0; i < objects.n && done; i++) {
		const struct fathom_self_loaded *l = objects.items + i;

		done = l->is_vdso || l->low > l->high || add_segments(l, i, page, &made);
	}
	if (done && made.n) {
		qsort(made.items, made.n, sizeof(struct made), compare_starts);
		text = write_map(made.items, made.n, &objects, &size);
	}
	fathom_self_list_free(&objects);
	fathom_array_free(&made);
	return text ? fathom_maps_parse(text, size, ret) : FATHOM_E_MEMORY;
}
