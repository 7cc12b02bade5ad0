/* SPDX-License-Identifier: MIT */
/*
 * Finds struct __cxa_eh_globals of a thread, by the code of the functions that return it
 * (safe/cxx/globals_code.h). What they lead to is proven besides: the GOT pair has the number of
 * the module, the variable lies in the module's TLS block, the key is read from the module's own
 * data and pthread_getspecific() is what is jumped to.
 */
#include "host/death/eh_globals.h"

#include "host/runtime/glibc.h"
#include "host/runtime/link_map.h"
#include "host/runtime/specific.h"
#include "host/runtime/threads.h"
#include "host/runtime/tls.h"
#include "host/symbol/dynsym.h"
#include "safe/cxx/globals_code.h"

/* A function's code. */
struct code {
	uint8_t bytes[FATHOM_GLOBALS_CODE];
	uint64_t avma; /* of bytes */
};

/* Reads the code of function @name of module @m; returns false if it is not there. */
static bool read_code(const struct fathom_runtime *r, const struct fathom_runtime_module *m,
		      const char *name, struct code *ret)
{
	uint64_t svma;

	*ret = (struct code){ .avma = 0 };
	if (!fathom_symbols_find(&m->module->symbols, name, &svma))
		return false;
	ret->avma = svma + m->bias;
	return fathom_reader_read(r->reader, ret->avma, ret->bytes, sizeof ret->bytes);
}

/* Returns the number of the TLS block of module @module; 0: unknown. */
static uint64_t read_modid(struct fathom_runtime *r, uint32_t module)
{
	const struct fathom_link *link = fathom_link_of(r, module);
	const struct fathom_glibc *glibc;
	uint64_t modid;

	if (!link || fathom_glibc_read(r, &glibc) || !glibc ||
	    !fathom_runtime_word(r, glibc->image, link->at + glibc->modid.off, &modid))
		return 0;
	return modid;
}

/* Finds the variable by __cxa_get_globals(). */
static bool find_tls(struct fathom_runtime *r, uint32_t module, uint64_t *ret)
{
	const struct fathom_runtime_module *m = &r->modules[module];
	const struct fathom_image *image = &m->module->main->image;
	struct fathom_globals_tls g;
	uint64_t rounded;
	uint64_t modid;
	uint64_t size;
	uint64_t off;
	struct code c;

	if (!read_code(r, m, "__cxa_get_globals", &c) ||
	    !fathom_tls_block(image, &size, &rounded) ||
	    !fathom_globals_by_tls(c.bytes, c.avma, &g))
		return false;
	if (g.pair) {
		if (!fathom_runtime_word(r, image, g.pair, &modid) || !modid ||
		    modid != read_modid(r, module) ||
		    !fathom_runtime_word(r, image, g.pair + 8, &off))
			return false;
		off += (uint64_t)g.added;
	} else {
		off = rounded + (uint64_t)g.added;
	}
	*ret = off;
	return size >= FATHOM_GLOBALS_SIZE && off <= size - FATHOM_GLOBALS_SIZE;
}

/* Returns whether the stub at @avma of module @m jumps to the function @name of libc. */
static bool is_stub_of(const struct fathom_runtime *r, const struct fathom_runtime_module *m,
		       uint64_t avma, const char *name)
{
	const struct fathom_image *image = &m->module->main->image;
	const struct fathom_str wanted = { name, (uint32_t)strlen(name) };
	struct fathom_symbol symbol;
	struct code c = { .avma = avma };
	uint64_t slot;
	uint64_t to;

	if (!fathom_reader_read(r->reader, avma, c.bytes, 16) ||
	    !fathom_globals_stub(c.bytes, avma, &slot) || !fathom_runtime_word(r, image, slot, &to))
		return false;
	for (size_t i = 0; i < r->n_modules; i++) {
		const struct fathom_runtime_module *other = &r->modules[i];

		if (other->dynsym->number != FATHOM_NONE &&
		    fathom_dynsym_find(other->dynsym, wanted, &symbol) &&
		    symbol.value + other->bias == to)
			return true;
	}
	return false;
}

/* Finds the key by __cxa_get_globals_fast(). */
static bool find_key(const struct fathom_runtime *r, uint32_t module, uint64_t *ret)
{
	const struct fathom_runtime_module *m = &r->modules[module];
	uint64_t stub;
	struct code c;

	return read_code(r, m, "__cxa_get_globals_fast", &c) &&
	       fathom_globals_by_key(c.bytes, c.avma, ret, &stub) &&
	       is_stub_of(r, m, stub, "pthread_getspecific");
}

bool fathom_eh_globals_find(struct fathom_runtime *r, uint32_t module,
			    struct fathom_eh_globals *ret)
{
	*ret = (struct fathom_eh_globals){ .module = module };
	if (r->modules[module].module->main->image.machine != EM_X86_64)
		return false;
	if (find_tls(r, module, &ret->off))
		return true;
	ret->way = FATHOM_EH_KEY;
	return find_key(r, module, &ret->key);
}

/* The threads of a program by libc's list. */
struct search {
	int32_t pid;
	int32_t tid;
	uint64_t found; /* 0: not found */
	bool has_main;
};

static bool note_main(const struct fathom_libc_thread *t, void *data)
{
	struct search *s = data;

	s->has_main |= t->tid == s->pid;
	return !s->has_main;
}

static bool take_copy(int32_t tid, uint64_t avma, void *data)
{
	struct search *s = data;

	if (tid == s->tid)
		s->found = avma;
	return !s->found;
}

fathom_err fathom_eh_globals_locate(struct fathom_runtime *r, const struct fathom_eh_globals *g,
				    int32_t pid, int32_t tid, uint64_t *ret)
{
	struct search s = { .pid = pid, .tid = tid };
	uint64_t key;

	/* In another PID namespace threads have other numbers. */
	FATHOM_TRY(fathom_threads_walk(r, g->module, note_main, &s));
	if (!s.has_main)
		return FATHOM_E_NOT_FOUND;
	if (g->way == FATHOM_EH_KEY) {
		if (!fathom_reader_uint(r->reader, g->key, 4, false, &key))
			return FATHOM_E_NOT_FOUND;
		return fathom_specific_read(r, (uint32_t)key, tid, ret);
	}
	FATHOM_TRY(fathom_tls_walk(r, g->module, g->off, take_copy, &s));
	*ret = s.found;
	return s.found ? FATHOM_OK : FATHOM_E_NOT_FOUND;
}
