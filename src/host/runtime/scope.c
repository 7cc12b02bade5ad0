/* SPDX-License-Identifier: MIT */
/*
 * The lookup order of dlsym(RTLD_DEFAULT). glibc keeps it in the main program's struct link_map, as
 * a pointer to an array and its length, at an offset that differs between versions. It is
 * recognized by its contents: a pointer to as many pointers to loaded modules as the next word
 * says, the main program first, none twice. If there is none (other C libraries), the order is the
 * main program, preloaded modules, and their dependencies breadth-first; this misses modules that
 * dlopen() loaded with RTLD_GLOBAL.
 */
#include "host/runtime/scope.h"

#include <stdlib.h>

#include "host/runtime/link_map.h"

/* Bytes of glibc's struct link_map that are searched; it has some 1,200. */
#define LINK_MAP_BYTES 2048
/* Most attempts while modules are being loaded. */
#define MAX_TRIES 10

static int compare_words(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a;
	const uint64_t y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * Sets the order of modules from the @n words at @at if they point to modules of the program's
 * namespace, the main program first and none twice; else returns false.
 */
static bool take_scope(struct fathom_runtime *r, const struct fathom_image *image, uint64_t at,
		       uint64_t n)
{
	const struct fathom_link *links = r->links.items;
	const uint8_t word = fathom_image_address_size(image);
	uint64_t *sorted;
	uint64_t first;
	uint8_t *bytes;
	bool good;

	if (!n || n > r->links.n || !fathom_runtime_word(r, image, at, &first) ||
	    first != links[0].at)
		return false;
	bytes = malloc((size_t)n * word);
	sorted = malloc((size_t)n * sizeof *sorted);
	good = bytes && sorted && fathom_reader_read(r->reader, at, bytes, (size_t)n * word);
	for (size_t i = 0; good && i < n; i++) {
		const struct fathom_link *link =
			fathom_links_at(r, fathom_runtime_load(image, bytes, i));

		sorted[i] = fathom_runtime_load(image, bytes, i);
		good = link && !link->space;
	}
	if (good) {
		qsort(sorted, (size_t)n, sizeof *sorted, compare_words);
		for (size_t i = 1; i < n; i++)
			good &= sorted[i] != sorted[i - 1];
	}
	for (size_t i = 0; good && i < n; i++) {
		const uint32_t module =
			fathom_links_at(r, fathom_runtime_load(image, bytes, i))->module;

		if (module != FATHOM_NONE)
			r->modules[module].order = (uint32_t)i;
	}
	free(bytes);
	free(sorted);
	return good;
}

/* Searches the main program's struct link_map for the array. */
static bool find_scope(struct fathom_runtime *r, const struct fathom_image *image)
{
	const struct fathom_link *links = r->links.items;
	const uint8_t word = fathom_image_address_size(image);
	uint8_t bytes[LINK_MAP_BYTES];
	const size_t got = r->reader->read(r->reader->data, links[0].at, bytes, sizeof bytes);

	for (size_t i = 5; (i + 2) * word <= got; i++) {
		const uint64_t at = fathom_runtime_load(image, bytes, i);
		/* The length is an unsigned int. */
		const uint64_t n = load_u32(bytes + (i + 1) * word, image->swap);

		if (at % word == 0 && at && n && n <= r->links.n && take_scope(r, image, at, n))
			return true;
	}
	return false;
}

static struct fathom_str last_part(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	return (struct fathom_str){ name, (uint32_t)strlen(name) };
}

/* Returns whether @needed, of DT_NEEDED, names module @m. */
static bool is_called(const struct fathom_runtime_module *m, struct fathom_str needed)
{
	struct fathom_str soname;

	if (m->dynsym->number == FATHOM_NONE)
		return false;
	soname = fathom_dynsym_soname(m->dynsym);
	return (soname.data && str_equal(soname, needed)) || str_equal(last_part(m->path), needed);
}

/* Appends the modules of the program's namespace that @m needs to @queue and the order. */
static uint32_t add_needed(struct fathom_runtime *r, const struct fathom_runtime_module *m,
			   uint32_t next, uint32_t *queue)
{
	const struct fathom_link *links = r->links.items;
	struct fathom_str needed;

	for (uint32_t k = 0; (needed = fathom_dynsym_needed(m->dynsym, k)).data; k++) {
		for (size_t i = 0; i < r->links.n; i++) {
			const uint32_t module = links[i].module;

			if (links[i].space || module == FATHOM_NONE ||
			    r->modules[module].order != FATHOM_NONE ||
			    !is_called(&r->modules[module], needed))
				continue;
			queue[next] = module;
			r->modules[module].order = next++;
			break;
		}
	}
	return next;
}

/* Returns whether the main program or its dependencies need module @module. */
static bool is_needed(const struct fathom_runtime *r, const struct fathom_runtime_module *main,
		      uint32_t module)
{
	struct fathom_str needed;

	for (uint32_t k = 0; (needed = fathom_dynsym_needed(main->dynsym, k)).data; k++)
		if (is_called(&r->modules[module], needed))
			return true;
	return false;
}

/*
 * Sets the order by DT_NEEDED: the main program; preloaded modules, which the list has between it
 * and its first own dependency; then dependencies, breadth-first.
 */
static fathom_err follow_needs(struct fathom_runtime *r)
{
	const struct fathom_link *links = r->links.items;
	const struct fathom_runtime_module *main;
	uint32_t *queue = malloc((r->n_modules + 1) * sizeof *queue);
	uint32_t n = 0;

	if (!queue)
		return FATHOM_E_MEMORY;
	if (links[0].module == FATHOM_NONE) {
		free(queue);
		return FATHOM_OK;
	}
	main = &r->modules[links[0].module];
	for (size_t i = 0; i < r->links.n && !links[i].space; i++) {
		const uint32_t module = links[i].module;

		if (module == FATHOM_NONE || r->modules[module].order != FATHOM_NONE ||
		    strcmp(r->modules[module].path, "[vdso]") == 0)
			continue;
		if (i && is_needed(r, main, module))
			break;
		queue[n] = module;
		r->modules[module].order = n++;
	}
	for (uint32_t i = 0; i < n; i++)
		n = add_needed(r, &r->modules[queue[i]], n, queue);
	free(queue);
	return FATHOM_OK;
}

fathom_err fathom_scope_read(struct fathom_runtime *r)
{
	const struct fathom_image *image = &r->modules[r->main_program].module->main->image;

	/* The lookup order may have a module that is newer than the lists. */
	for (int i = 0; i < MAX_TRIES; i++) {
		if (find_scope(r, image))
			return FATHOM_OK;
		if (!r->is_live)
			break;
		FATHOM_TRY(fathom_links_read_again(r));
	}
	return follow_needs(r);
}
