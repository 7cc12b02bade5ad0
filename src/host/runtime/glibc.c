/* SPDX-License-Identifier: MIT */
#include "host/runtime/glibc.h"

#include <stdlib.h>

/* Returns the address of the object @name that module @m exports; 0: none. */
static uint64_t find_object(const struct fathom_runtime_module *m, const char *name)
{
	struct fathom_symbol symbol;

	if (m->dynsym->number == FATHOM_NONE ||
	    !fathom_dynsym_find(m->dynsym, (struct fathom_str){ name, (uint32_t)strlen(name) },
				&symbol))
		return 0;
	return symbol.value + m->bias;
}

static bool read_member(const struct fathom_runtime *r, const struct fathom_runtime_module *libc,
			const struct fathom_image *image, const char *name,
			struct fathom_glibc_member *ret)
{
	const uint64_t at = find_object(libc, name);
	uint64_t bits;

	if (!at || !fathom_runtime_u32(r, image, at, &bits) ||
	    !fathom_runtime_u32(r, image, at + 8, &ret->off))
		return false;
	ret->size = bits / 8;
	return true;
}

/* Reads the needed descriptions from @libc. */
static bool read_members(const struct fathom_runtime *r, const struct fathom_runtime_module *libc,
			 struct fathom_glibc *g)
{
	const struct {
		const char *name;
		struct fathom_glibc_member *to;
	} members[] = {
		{ "_thread_db_rtld_global__dl_stack_user", &g->stack_user },
		{ "_thread_db_rtld_global__dl_stack_used", &g->stack_used },
		{ "_thread_db_rtld_global__dl_tls_dtv_slotinfo_list", &g->slots },
		{ "_thread_db_list_t_next", &g->next },
		{ "_thread_db_pthread_list", &g->list },
		{ "_thread_db_pthread_tid", &g->tid },
		{ "_thread_db_pthread_dtvp", &g->dtvp },
		{ "_thread_db_dtv_dtv", &g->dtv },
		{ "_thread_db_dtv_t_pointer_val", &g->value },
		{ "_thread_db_dtv_t_counter", &g->counter },
		{ "_thread_db_link_map_l_tls_modid", &g->modid },
		{ "_thread_db_dtv_slotinfo_list_len", &g->slot_len },
		{ "_thread_db_dtv_slotinfo_list_next", &g->slot_next },
		{ "_thread_db_dtv_slotinfo_list_slotinfo", &g->slot_info },
		{ "_thread_db_dtv_slotinfo_gen", &g->slot_gen },
		{ "_thread_db_dtv_slotinfo_map", &g->slot_map },
	};
	const uint64_t size = find_object(libc, "_thread_db_sizeof_dtv_slotinfo");

	for (size_t i = 0; i < sizeof members / sizeof *members; i++)
		if (!read_member(r, libc, g->image, members[i].name, members[i].to))
			return false;
	return size && fathom_runtime_u32(r, g->image, size, &g->slot_size) && g->slot_size;
}

/* Reads the descriptions of thread-specific data, if they are there, from @libc. */
static void read_specific(const struct fathom_runtime *r, const struct fathom_runtime_module *libc,
			  struct fathom_glibc *g)
{
	const uint64_t size = find_object(libc, "_thread_db_sizeof_pthread_key_data");

	if (!size || !read_member(r, libc, g->image, "_thread_db_pthread_specific", &g->specific) ||
	    !read_member(r, libc, g->image, "_thread_db_pthread_key_data_level2_data",
			 &g->level2_data) ||
	    !read_member(r, libc, g->image, "_thread_db_pthread_key_data_seq", &g->key_seq) ||
	    !read_member(r, libc, g->image, "_thread_db_pthread_key_data_data", &g->key_value) ||
	    !fathom_runtime_u32(r, g->image, size, &g->key_data_size))
		g->key_data_size = 0;
}

/* Finds glibc among the modules and reads its descriptions. */
static bool describe(const struct fathom_runtime *r, struct fathom_glibc *ret)
{
	const struct fathom_runtime_module *libc = NULL;

	for (size_t i = 0; i < r->n_modules; i++) {
		const struct fathom_runtime_module *m = &r->modules[i];

		/* Of several (dlmopen() namespaces), the program's own knows the threads. */
		if (m->order == FATHOM_NONE)
			continue;
		if (!ret->global)
			ret->global = find_object(m, "_rtld_global");
		if (!libc && find_object(m, "_thread_db_sizeof_pthread"))
			libc = m;
	}
	if (!ret->global || !libc || !read_members(r, libc, ret))
		return false;
	read_specific(r, libc, ret);
	return true;
}

fathom_err fathom_glibc_read(struct fathom_runtime *r, const struct fathom_glibc **ret)
{
	struct fathom_glibc *g;

	if (!r->has_glibc && r->main_program != FATHOM_NONE) {
		g = calloc(1, sizeof *g);
		if (!g)
			return FATHOM_E_MEMORY;
		g->image = &r->modules[r->main_program].module->main->image;
		if (describe(r, g))
			r->glibc = g;
		else
			free(g);
	}
	r->has_glibc = true;
	*ret = r->glibc;
	return FATHOM_OK;
}
