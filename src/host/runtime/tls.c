/* SPDX-License-Identifier: MIT */
/*
 * Each thread's copy of a TLS symbol, in processes of glibc 2.34 and later, without stopping them.
 *
 * glibc tells debuggers how its structures are laid out: _thread_db_STRUCT_MEMBER are three words,
 * the size of the member in bits, how many there are, its offset (glibc's nptl_db/structs.def and
 * db_info.c). So the lists of threads in _rtld_global lead to struct pthread, that to the thread's
 * vector of TLS blocks (dtv), which the number of the module indexes ("ELF Handling For
 * Thread-Local Storage", 3). A block counts only if the vector is as new as the module's number:
 * numbers are used again.
 */
#include "host/runtime/scope.h"

/* Entries of the list of slots; each has 64 or more modules. */
#define MAX_SLOT_LISTS 1024

struct member {
	uint64_t size; /* bytes */
	uint64_t off;
};

/* glibc in the process, as far as it is needed. */
struct runtime {
	struct fathom_find *f;
	const struct fathom_object *o;
	const struct fathom_find_module *libc;
	uint64_t global; /* _rtld_global */
	uint8_t word;
	struct member stack_user, stack_used, next, list, tid, dtvp, dtv, value, counter;
	struct member modid, slots, slot_len, slot_next, slot_info, slot_gen, slot_map;
	uint64_t slot_size;
};

/* Where the object called @name, which module @m exports, is; 0: it does not. */
static uint64_t find_object(const struct fathom_find_module *m, const char *name)
{
	struct fathom_symbol symbol;

	if (m->dynamic_table == FATHOM_NONE ||
	    !fathom_dynsym_find(&m->dynsym, (struct fathom_str){ name, (uint32_t)strlen(name) },
				&symbol))
		return 0;
	return symbol.value + m->bias;
}

static bool read_member(const struct runtime *r, const char *name, struct member *ret)
{
	const uint64_t at = find_object(r->libc, name);
	uint64_t bits;

	if (!at || !fathom_scope_read(r->f, r->o, at, 4, &bits) ||
	    !fathom_scope_read(r->f, r->o, at + 8, 4, &ret->off))
		return false;
	ret->size = bits / 8;
	return true;
}

/* Reads the descriptions that are needed. */
static bool read_members(struct runtime *r)
{
	const struct {
		const char *name;
		struct member *to;
	} members[] = {
		{ "_thread_db_rtld_global__dl_stack_user", &r->stack_user },
		{ "_thread_db_rtld_global__dl_stack_used", &r->stack_used },
		{ "_thread_db_rtld_global__dl_tls_dtv_slotinfo_list", &r->slots },
		{ "_thread_db_list_t_next", &r->next },
		{ "_thread_db_pthread_list", &r->list },
		{ "_thread_db_pthread_tid", &r->tid },
		{ "_thread_db_pthread_dtvp", &r->dtvp },
		{ "_thread_db_dtv_dtv", &r->dtv },
		{ "_thread_db_dtv_t_pointer_val", &r->value },
		{ "_thread_db_dtv_t_counter", &r->counter },
		{ "_thread_db_link_map_l_tls_modid", &r->modid },
		{ "_thread_db_dtv_slotinfo_list_len", &r->slot_len },
		{ "_thread_db_dtv_slotinfo_list_next", &r->slot_next },
		{ "_thread_db_dtv_slotinfo_list_slotinfo", &r->slot_info },
		{ "_thread_db_dtv_slotinfo_gen", &r->slot_gen },
		{ "_thread_db_dtv_slotinfo_map", &r->slot_map },
	};
	uint64_t at = find_object(r->libc, "_thread_db_sizeof_dtv_slotinfo");

	for (size_t i = 0; i < sizeof members / sizeof *members; i++)
		if (!read_member(r, members[i].name, members[i].to))
			return false;
	return at && fathom_scope_read(r->f, r->o, at, 4, &r->slot_size) && r->slot_size;
}

static bool find_runtime(struct fathom_find *f, uint32_t module, struct runtime *ret)
{
	*ret = (struct runtime){ .f = f, .o = f->modules[module].module->main };
	ret->word = fathom_image_address_size(&ret->o->image);
	for (size_t i = 0; i < f->n_modules; i++) {
		/* Of several, in namespaces of dlmopen(), the program's own knows the threads. */
		if (f->modules[i].order == FATHOM_NONE)
			continue;
		if (!ret->global)
			ret->global = find_object(&f->modules[i], "_rtld_global");
		if (!ret->libc && find_object(&f->modules[i], "_thread_db_sizeof_pthread"))
			ret->libc = &f->modules[i];
	}
	return ret->global && ret->libc && read_members(ret);
}

static bool read_word(const struct runtime *r, uint64_t at, uint64_t *ret)
{
	return fathom_scope_read(r->f, r->o, at, r->word, ret);
}

/* From when on the module at @link has number @modid: false when it has not. */
static bool read_generation(const struct runtime *r, uint64_t link, uint64_t modid, uint64_t *ret)
{
	uint64_t list;
	uint64_t first = 0;

	if (!read_word(r, r->global + r->slots.off, &list))
		return false;
	for (int i = 0; i < MAX_SLOT_LISTS && list; i++) {
		uint64_t n;
		uint64_t map;
		uint64_t slot;

		if (!read_word(r, list + r->slot_len.off, &n))
			return false;
		if (modid - first < n) {
			slot = list + r->slot_info.off + (modid - first) * r->slot_size;
			return read_word(r, slot + r->slot_map.off, &map) && map == link &&
			       read_word(r, slot + r->slot_gen.off, ret);
		}
		first += n;
		if (!read_word(r, list + r->slot_next.off, &list))
			return false;
	}
	return false;
}

/* A module's TLS in all threads. */
struct tls {
	struct runtime r;
	uint64_t modid;
	uint64_t generation;
	uint64_t off; /* of the symbol in the block */
	bool (*fn)(int32_t tid, uint64_t avma, void *data);
	void *data;
};

/* The block of the thread whose struct pthread is at @thread; false: it has none. */
static bool find_block(const struct tls *t, uint64_t thread, uint64_t *ret)
{
	const struct runtime *r = &t->r;
	uint64_t dtv;
	uint64_t n;
	uint64_t generation;

	/* Before the first entry stands their number, in the first the generation. */
	if (!read_word(r, thread + r->dtvp.off, &dtv) || !dtv ||
	    !read_word(r, dtv + r->dtv.off - r->dtv.size + r->counter.off, &n) || t->modid > n ||
	    !read_word(r, dtv + r->dtv.off + r->counter.off, &generation) ||
	    generation < t->generation ||
	    !read_word(r, dtv + r->dtv.off + t->modid * r->dtv.size + r->value.off, ret))
		return false;
	/* All ones: the thread has not used it yet. */
	return *ret && !(*ret & 1);
}

/* Calls the function for the threads of the list at @head; false when that is enough. */
static bool walk_list(const struct tls *t, uint64_t head)
{
	const struct runtime *r = &t->r;
	struct fathom_array threads = { 0 };
	bool more = true;

	fathom_scope_read_threads(r->f, r->o, head, r->next.off, &threads);
	for (size_t i = 0; i < threads.n && more; i++) {
		const uint64_t thread = ((const uint64_t *)threads.data)[i] - r->list.off;
		uint64_t tid;
		uint64_t block;

		if (!fathom_scope_read(r->f, r->o, thread + r->tid.off, 4, &tid))
			break;
		if ((int32_t)tid > 0 && find_block(t, thread, &block))
			more = t->fn((int32_t)tid, block + t->off, t->data);
	}
	fathom_find_release(r->f, &threads, sizeof(uint64_t));
	return more;
}

bool fathom_tls_walk(struct fathom_find *f, const struct fathom_candidate_symbol *c,
		     bool (*fn)(int32_t tid, uint64_t avma, void *data), void *data)
{
	const struct fathom_link *link = fathom_scope_link(f, c->module);
	struct tls t = { .off = c->symbol.value, .fn = fn, .data = data };

	/* A static program that can be placed anywhere links itself. */
	if (!link || !find_runtime(f, c->module, &t.r))
		return fathom_tls_walk_static(f, c, fn, data);
	if (!read_word(&t.r, link->at + t.r.modid.off, &t.modid) || !t.modid ||
	    !read_generation(&t.r, link->at, t.modid, &t.generation))
		return false;
	return walk_list(&t, t.r.global + t.r.stack_user.off) &&
	       walk_list(&t, t.r.global + t.r.stack_used.off);
}
