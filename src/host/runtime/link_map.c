/* SPDX-License-Identifier: MIT */
#include "host/runtime/link_map.h"

#include <time.h>

#include "safe/base/sort.h"

/* Most modules of a program; bounds a cyclic list. */
#define MAX_LINKS 65536
/* Namespaces; glibc has 16. */
#define MAX_SPACES 64
/* Most reads of a list that the dynamic linker is changing, and the first pause. */
#define MAX_TRIES      10
#define FIRST_PAUSE_NS 50000

/* Sorts the modules by the addresses of their dynamic sections. Returns false without memory. */
static bool sort_dynamics(struct fathom_runtime *r)
{
	struct fathom_keyed *keyed;

	if (!fathom_array_room(&r->dynamics, 2 * r->n_modules))
		return false;
	keyed = r->dynamics.items;
	for (size_t i = 0; i < r->n_modules; i++) {
		const struct fathom_runtime_module *m = &r->modules[i];

		if (m->dynsym->number != FATHOM_NONE)
			keyed[r->dynamics.n++] =
				(struct fathom_keyed){ m->dynsym->dynamic.svma + m->bias, i };
	}
	fathom_sort_keyed(keyed, keyed + r->n_modules, r->dynamics.n);
	return true;
}

/* Returns the module at @bias whose dynamic section is at @dynamic; FATHOM_NONE: none. */
static uint32_t module_of_link(const struct fathom_runtime *r, uint64_t bias, uint64_t dynamic)
{
	const struct fathom_keyed *keyed = r->dynamics.items;

	for (size_t i = FATHOM_BISECT(r->dynamics.n, k, keyed[k].key < dynamic);
	     i < r->dynamics.n && keyed[i].key == dynamic; i++)
		if (r->modules[keyed[i].value].bias == bias)
			return (uint32_t)keyed[i].value;
	return FATHOM_NONE;
}

/* Reads the list at @at of a program like @image; returns false if it is inconsistent. */
static bool read_list(struct fathom_runtime *r, const struct fathom_image *image, uint64_t at,
		      uint32_t space)
{
	const uint8_t word = fathom_image_address_size(image);
	uint64_t before = 0;

	/* l_addr, l_name, l_ld, l_next, l_prev */
	while (at) {
		uint8_t bytes[5 * 8];
		struct fathom_link link = { .at = at, .space = space };

		if (r->links.n >= MAX_LINKS ||
		    !fathom_reader_read(r->reader, at, bytes, 5u * word) ||
		    fathom_runtime_load(image, bytes, 4) != before ||
		    !fathom_array_room(&r->links, 1))
			return false;
		link.bias = fathom_runtime_load(image, bytes, 0);
		link.dynamic = fathom_runtime_load(image, bytes, 2);
		link.module = module_of_link(r, link.bias, link.dynamic);
		r->links.items[r->links.n++] = link;
		before = at;
		at = fathom_runtime_load(image, bytes, 3);
	}
	return true;
}

/* Reads the lists of all namespaces from struct r_debug; returns false if they changed. */
static bool read_lists(struct fathom_runtime *r)
{
	const struct fathom_image *image = &r->modules[r->main_program].module->main->image;
	const uint8_t word = fathom_image_address_size(image);
	uint64_t at = r->debug;

	r->links.n = 0;
	for (uint32_t space = 0; at && space < MAX_SPACES; space++) {
		uint64_t version;
		uint64_t first;
		uint64_t state;

		/* r_version, r_map, r_brk, r_state, r_ldbase, and from version 2 r_next */
		if (!fathom_runtime_u32(r, image, at, &version) ||
		    !fathom_runtime_word(r, image, at + word, &first) ||
		    !fathom_runtime_u32(r, image, at + 3u * word, &state) || !version ||
		    version > 16 || state || !read_list(r, image, first, space))
			return false;
		if (version < 2 || !fathom_runtime_word(r, image, at + 5u * word, &at))
			at = 0;
	}
	return true;
}

/* Returns the struct r_debug that the dynamic linker stored in module @m's DT_DEBUG; 0: none. */
static uint64_t find_debug(const struct fathom_runtime *r, const struct fathom_runtime_module *m)
{
	uint64_t at = 0;

	if (m->dynsym->number == FATHOM_NONE || !m->dynsym->dynamic.debug ||
	    !fathom_runtime_word(r, &m->module->main->image, m->dynsym->dynamic.debug + m->bias,
				 &at))
		return 0;
	return at;
}

/* Indexes the links, now complete, by address and by module. Returns false without memory. */
static bool index_links(struct fathom_runtime *r)
{
	const struct fathom_link *links = r->links.items;
	struct fathom_keyed *keyed;

	r->places.n = 0;
	if (!fathom_array_room(&r->places, 2 * r->links.n))
		return false;
	keyed = r->places.items;
	for (size_t i = 0; i < r->links.n; i++)
		keyed[r->places.n++] = (struct fathom_keyed){ links[i].at, i };
	fathom_sort_keyed(keyed, keyed + r->places.n, r->places.n);
	for (size_t i = 0; i < r->n_modules; i++)
		r->modules[i].link = FATHOM_NONE;
	/* The first link of a module counts. */
	for (size_t i = r->links.n; i-- > 0;)
		if (links[i].module != FATHOM_NONE)
			r->modules[links[i].module].link = (uint32_t)i;
	return true;
}

const struct fathom_link *fathom_links_at(const struct fathom_runtime *r, uint64_t avma)
{
	const struct fathom_keyed *keyed = r->places.items;
	const size_t i = FATHOM_BISECT(r->places.n, k, keyed[k].key < avma);

	return i < r->places.n && keyed[i].key == avma ? r->links.items + keyed[i].value : NULL;
}

const struct fathom_link *fathom_link_of(const struct fathom_runtime *r, uint32_t module)
{
	const uint32_t link = module < r->n_modules ? r->modules[module].link : FATHOM_NONE;

	return link < r->links.n ? r->links.items + link : NULL;
}

/* Returns whether the lists are the main program's: it points to them and comes first. */
static bool is_own(const struct fathom_runtime *r)
{
	const struct fathom_link *links = r->links.items;

	return r->links.n && links[0].module == r->main_program;
}

fathom_err fathom_links_read_again(struct fathom_runtime *r)
{
	/* dlopen() takes a few hundred microseconds. */
	struct timespec pause = { .tv_nsec = FIRST_PAUSE_NS };

	for (int i = 0; i < MAX_TRIES; i++) {
		const bool good = read_lists(r);

		if (good && is_own(r))
			return index_links(r) ? FATHOM_OK : FATHOM_E_MEMORY;
		r->links.n = 0;
		if (good || !r->is_live)
			return FATHOM_E_NOT_FOUND;
		(void)nanosleep(&pause, NULL);
		pause.tv_nsec *= 2;
	}
	r->is_unsettled = true;
	return FATHOM_E_NOT_FOUND;
}

fathom_err fathom_links_read(struct fathom_runtime *r)
{
	fathom_err err = FATHOM_E_NOT_FOUND;

	if (!sort_dynamics(r))
		return FATHOM_E_MEMORY;
	for (uint32_t i = 0; err == FATHOM_E_NOT_FOUND && i < r->n_modules; i++) {
		r->debug = find_debug(r, &r->modules[i]);
		r->main_program = i;
		err = r->debug ? fathom_links_read_again(r) : FATHOM_E_NOT_FOUND;
	}
	if (err)
		r->main_program = FATHOM_NONE;
	return err;
}
