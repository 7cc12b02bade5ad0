/* SPDX-License-Identifier: MIT */
#include "host/module/module.h"

#include <stdlib.h>

#include "host/base/progress.h"
#include "host/file/debug_search.h"
#include "host/golang/golang.h"
#include "host/golang/pclntab.h"
#include "host/module/cache_read.h"
#include "host/module/evict.h"
#include "safe/jit/registry.h"

static bool has_debug_info(const struct fathom_object *o)
{
	uint32_t i = fathom_object_find(o, ".debug_info");

	if (!i)
		i = fathom_object_find(o, ".zdebug_info");
	return i && o->sections[i].header.type != SHT_NOBITS;
}

/* Returns whether @set has symbols of functions that nobody needs to load the file. */
static bool has_symtab(const struct fathom_symbol_set *set)
{
	for (uint32_t i = 0; i < set->n_tables; i++)
		if (set->table[i].view.source != FATHOM_SOURCE_DYNSYM)
			return true;
	return false;
}

/* Adds what Go's own table has, if nothing else has symbols. Lines are not read yet. */
static fathom_err add_go_symbols(struct fathom_module *m)
{
	fathom_err err;

	m->has_go_table = !m->debug && fathom_pclntab_is_go(m->main);
	if (!m->has_go_table || has_symtab(&m->symbols))
		return FATHOM_OK;
	err = fathom_go_symbols(m->session, m->main, &m->go_symbols);
	if (!err)
		fathom_symbol_set_add(&m->symbols, m->go_symbols, FATHOM_SOURCE_GOPCLNTAB);
	m->has_go_table = !err;
	if (err == FATHOM_E_LIMIT) {
		struct fathom_errinfo info;

		(void)fathom_fail(&info, err, ".gopclntab", 0,
				  "its symbols do not fit the memory budget");
		fathom_errinfo_set_file(&info, m->main->file->path);
		fathom_notes_add(m->notes, &info);
	}
	return err == FATHOM_E_CANCELLED || err == FATHOM_E_MEMORY ? err : FATHOM_OK;
}

static bool find_symbols(struct fathom_module *m)
{
	struct fathom_symbol_set *set = &m->symbols;

	fathom_symbol_set_init(set, m->main, &m->unwind.bounds);
	fathom_symbol_set_add(set, m->main, FATHOM_SOURCE_SYMTAB);
	if (m->debug && m->debug != m->main)
		fathom_symbol_set_add(set, m->debug, FATHOM_SOURCE_SYMTAB);
	if (m->mini)
		fathom_symbol_set_add(set, m->mini, FATHOM_SOURCE_MINIDEBUGINFO);
	if (add_go_symbols(m))
		return false;
	return fathom_unwind_tables_init(&m->unwind, m->main, m->debug ? m->debug : m->go_symbols);
}

/*
 * Looks for a separate debug file, as main has no debug information. Returns FATHOM_E_CANCELLED if
 * the call was given up: whether there is one is then unknown.
 */
static fathom_err find_debug(struct fathom_module *m)
{
	bool refused = false;
	bool timeout = false;

	m->debug = fathom_debugfile_find(m->paths, m->main, m->notes, &refused, &timeout);
	if (!m->debug)
		m->mini = fathom_debugfile_mini(m->paths, m->main, m->notes);
	if (fathom_is_cancelled(m->session))
		return FATHOM_E_CANCELLED;
	if (m->debug)
		fathom_object_rebase(m->debug, m->main);
	if (m->mini)
		fathom_object_rebase(m->mini, m->main);
	if (!m->debug && refused)
		m->no_debug = FATHOM_REASON_BUILD_ID_MISMATCH;
	else if (!m->debug && timeout)
		m->no_debug = FATHOM_REASON_TIMEOUT;
	return FATHOM_OK;
}

static fathom_err create(const struct fathom_search_paths *paths, struct fathom_object *main,
			 struct fathom_notes *notes, bool alone, struct fathom_module **ret)
{
	struct fathom_module *m = calloc(1, sizeof *m);
	fathom_err err = FATHOM_OK;

	if (!m) {
		fathom_object_close(main);
		return FATHOM_E_MEMORY;
	}
	m->session = paths->session;
	m->paths = paths;
	m->main = main;
	m->notes = notes;
	m->no_debug = FATHOM_REASON_NO_DEBUG_INFO;
	if (has_debug_info(m->main))
		m->debug = m->main;
	else if (!alone)
		err = find_debug(m);
	/* A module that lacks what was not waited for must not stay. */
	if (!err && !find_symbols(m))
		err = fathom_is_cancelled(m->session) ? FATHOM_E_CANCELLED : FATHOM_E_MEMORY;
	if (err) {
		fathom_module_close(m);
		return err;
	}
	fathom_cache_open(m);
	*ret = m;
	return FATHOM_OK;
}

fathom_err fathom_module_create(const struct fathom_search_paths *paths, struct fathom_object *main,
				struct fathom_notes *notes, struct fathom_module **ret)
{
	return create(paths, main, notes, false, ret);
}

fathom_err fathom_module_create_alone(const struct fathom_search_paths *paths,
				      struct fathom_object *main, struct fathom_notes *notes,
				      struct fathom_module **ret)
{
	return create(paths, main, notes, true, ret);
}

fathom_err fathom_module_create_stored(const struct fathom_search_paths *paths,
				       struct fathom_object *main, struct fathom_cache_file *cache,
				       struct fathom_notes *notes, struct fathom_module **ret)
{
	struct fathom_module *m;
	const fathom_err err = create(paths, main, notes, true, &m);

	if (err) {
		fathom_cache_file_close(cache);
		return err;
	}
	fathom_cache_close(m);
	m->cache = cache;
	*ret = m;
	return FATHOM_OK;
}

fathom_err fathom_module_open(const struct fathom_search_paths *paths, struct fathom_file *file,
			      struct fathom_notes *notes, struct fathom_module **ret,
			      struct fathom_errinfo *reterr)
{
	struct fathom_object *main;
	fathom_err err;

	FATHOM_TRY(fathom_object_create(&paths->session->memory, file, &main, reterr));
	err = fathom_module_create(paths, main, notes, ret);
	return err ? fathom_fail(reterr, err, "", 0, fathom_err_name(err)) : FATHOM_OK;
}

static void destroy_dynsym(struct fathom_dynsym *d)
{
	if (d)
		fathom_dynsym_deinit(d);
	free(d);
}

void fathom_module_close(struct fathom_module *m)
{
	struct fathom_debug *d = m ? atomic_load(&m->dwarf) : NULL;

	if (!m)
		return;
	fathom_cache_close(m);
	if (d)
		fathom_evict_unregister(m->session, d);
	fathom_debug_destroy(d);
	for (int i = 0; i < FATHOM_ALIAS_RULES; i++)
		fathom_symbol_index_destroy(atomic_load(&m->symbol_index[i]));
	for (int i = 0; i < FATHOM_MAX_SYMTABS; i++)
		fathom_name_index_destroy(atomic_load(&m->name_index[i]));
	destroy_dynsym(atomic_load(&m->dynsym));
	fathom_unwind_tables_deinit(&m->unwind);
	if (m->debug != m->main)
		fathom_object_close(m->debug);
	fathom_object_close(m->mini);
	fathom_object_close(m->go_symbols);
	fathom_object_close(m->main);
	free(m);
}

struct fathom_symbol_index *fathom_module_symbols(struct fathom_module *m, enum fathom_alias rule)
{
	_Atomic(struct fathom_symbol_index *) *slot = &m->symbol_index[rule];
	struct fathom_symbol_index *x = atomic_load_explicit(slot, memory_order_acquire);
	struct fathom_symbol_index *expected = NULL;

	if (x)
		return x;
	x = fathom_symbol_index_create(&m->session->memory, &m->symbols, rule, m->session->threads);
	if (x && !atomic_compare_exchange_strong(slot, &expected, x)) {
		fathom_symbol_index_destroy(x);
		x = expected;
	}
	return x;
}

const struct fathom_name_index *fathom_module_names(struct fathom_module *m, uint32_t t)
{
	_Atomic(struct fathom_name_index *) *slot = &m->name_index[t];
	struct fathom_name_index *x = atomic_load_explicit(slot, memory_order_acquire);
	struct fathom_name_index *expected = NULL;

	if (x)
		return x;
	x = fathom_name_index_create(&m->session->memory, &m->symbols.table[t].view);
	if (x && !atomic_compare_exchange_strong(slot, &expected, x)) {
		fathom_name_index_destroy(x);
		x = expected;
	}
	return x;
}

const struct fathom_dynsym *fathom_module_dynsym(struct fathom_module *m)
{
	struct fathom_dynsym *d = atomic_load_explicit(&m->dynsym, memory_order_acquire);
	struct fathom_dynsym *expected = NULL;

	if (d)
		return d;
	d = malloc(sizeof *d);
	if (!d || fathom_dynsym_init(d, &m->symbols)) {
		free(d);
		return NULL;
	}
	if (!atomic_compare_exchange_strong(&m->dynsym, &expected, d)) {
		destroy_dynsym(d);
		d = expected;
	}
	return d;
}

enum fathom_reason fathom_reason_of(fathom_err err)
{
	switch (err) {
	case FATHOM_E_LIMIT:
	case FATHOM_E_MEMORY:
		return FATHOM_REASON_LIMIT;
	case FATHOM_E_UNSUPPORTED:
		return FATHOM_REASON_UNSUPPORTED;
	case FATHOM_E_MISMATCH:
		return FATHOM_REASON_BUILD_ID_MISMATCH;
	case FATHOM_E_NOT_FOUND:
		return FATHOM_REASON_NO_DEBUG_INFO;
	default:
		return FATHOM_REASON_CORRUPT;
	}
}

struct fathom_debug *fathom_module_debug(struct fathom_module *m, enum fathom_reason *ret_reason)
{
	struct fathom_debug *d = atomic_load_explicit(&m->dwarf, memory_order_acquire);
	struct fathom_debug *expected = NULL;
	fathom_err err;

	if (d)
		return d;
	if (!m->debug && !m->has_go_table) {
		*ret_reason = m->no_debug;
		return NULL;
	}
	err = atomic_load(&m->dwarf_error);
	if (!err) {
		err = fathom_debug_create(m, &d);
		if (err && err != FATHOM_E_MEMORY && err != FATHOM_E_CANCELLED)
			atomic_store(&m->dwarf_error, err);
	}
	if (err) {
		*ret_reason = fathom_reason_of(err);
		return NULL;
	}
	if (atomic_compare_exchange_strong(&m->dwarf, &expected, d)) {
		fathom_evict_register(m->session, d);
	} else {
		fathom_debug_destroy(d);
		d = expected;
	}
	return d;
}

fathom_err fathom_module_check(const struct fathom_module *m, struct fathom_errinfo *reterr)
{
	struct fathom_mapped_table *mapped = &m->session->memory.mapped;
	const struct fathom_debug *d = atomic_load_explicit(&m->dwarf, memory_order_acquire);
	const struct fathom_file *cut = NULL;

	if (!fathom_mapped_cuts(mapped))
		return FATHOM_OK;
	if (fathom_file_is_cut(m->main->file))
		cut = m->main->file;
	else if (m->debug && fathom_file_is_cut(m->debug->file))
		cut = m->debug->file;
	else if (d)
		cut = fathom_debug_cut_file(d);
	return cut ? fathom_fail_cut(reterr, cut->path) : FATHOM_OK;
}

fathom_err fathom_module_check_files(const struct fathom_module *m, struct fathom_errinfo *reterr)
{
	FATHOM_TRY(fathom_module_check(m, reterr));
	if (fathom_file_is_overwritten(m->main->file))
		return fathom_fail_cut(reterr, m->main->file->path);
	if (m->debug && fathom_file_is_overwritten(m->debug->file))
		return fathom_fail_cut(reterr, m->debug->file->path);
	return FATHOM_OK;
}

/* Values of jit_descriptor and jit_registry that are no address of an aligned variable. */
#define JIT_UNKNOWN 0 /* not looked up yet */
#define JIT_NONE    1

void fathom_module_set_no_jit(struct fathom_module *m)
{
	atomic_store_explicit(&m->jit_descriptor, JIT_NONE, memory_order_relaxed);
}

/* The type of the segment with the SFrame section: elf.h of glibc 2.36 lacks it. */
#define SEGMENT_SFRAME 0x6474e554u

struct fathom_bytes fathom_module_sframe(struct fathom_module *m, uint64_t *ret_svma)
{
	struct fathom_object *o = m->main;
	const uint32_t number = fathom_object_find(o, ".sframe");
	struct fathom_segment s;

	if (number) {
		*ret_svma = o->sections[number].base;
		return fathom_image_section_bytes(&o->image, &o->sections[number].header);
	}
	for (uint32_t i = 0; i < o->image.phnum; i++) {
		if (!fathom_image_segment(&o->image, i, &s) || s.type != SEGMENT_SFRAME)
			continue;
		*ret_svma = s.vaddr;
		return fathom_image_loaded_bytes(&o->image, s.vaddr, s.filesz);
	}
	return (struct fathom_bytes){ NULL, 0 };
}

bool fathom_module_jit_descriptor(struct fathom_module *m, uint64_t *ret_svma)
{
	uint64_t svma = atomic_load_explicit(&m->jit_descriptor, memory_order_relaxed);

	if (svma == JIT_UNKNOWN) {
		/* Two 32-bit numbers and two pointers, with room for future members. */
		if (!fathom_symbols_find_variable(&m->symbols, "__jit_debug_descriptor", 16, 64,
						  &svma) ||
		    svma == JIT_UNKNOWN)
			svma = JIT_NONE;
		atomic_store_explicit(&m->jit_descriptor, svma, memory_order_relaxed);
	}
	*ret_svma = svma;
	return svma != JIT_NONE;
}

/* Looks for the note that leads to the registry; returns its svma, or JIT_NONE. */
static uint64_t find_registry(const struct fathom_image *image)
{
	const struct fathom_bytes note =
		fathom_image_note(image, FATHOM_REGISTRY_NOTE, FATHOM_REGISTRY_OWNER);
	uint64_t svma;

	if (!image->is64 || note.size != sizeof(uint64_t) ||
	    !fathom_image_svma(image, (uint64_t)(note.data - image->bytes.data), &svma))
		return JIT_NONE;
	svma += load_u64(note.data, image->swap);
	return svma == JIT_UNKNOWN ? JIT_NONE : svma;
}

bool fathom_module_jit_registry(struct fathom_module *m, uint64_t *ret_svma)
{
	uint64_t svma = atomic_load_explicit(&m->jit_registry, memory_order_relaxed);

	if (svma == JIT_UNKNOWN) {
		svma = find_registry(&m->main->image);
		atomic_store_explicit(&m->jit_registry, svma, memory_order_relaxed);
	}
	*ret_svma = svma;
	return svma != JIT_NONE;
}
