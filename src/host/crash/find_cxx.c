/* SPDX-License-Identifier: MIT */
/*
 * __cxa_get_globals() (Itanium C++ ABI: Exception Handling, 2.2.2) returns the calling thread's
 * struct __cxa_eh_globals. libstdc++ has it in a thread-local variable, libc++abi keeps a pointer
 * to it by pthread_setspecific(), which glibc has at a constant distance from the thread pointer
 * for the first 32 keys. Handlers must call neither, so the way there is found here, and proven by
 * where it leads for this thread.
 */
#include "host/crash/find_cxx.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

#include "safe/base/peek.h"
#include "safe/self/own_context.h"

/* Bytes around the thread pointer where pointers by pthread_setspecific() may be. */
#define AROUND 4096

/* Modules whose blocks of thread-local variables prove where these are. */
#define PROOFS 16

/* glibc's struct pthread_key_data has a count besides. */
#define KEY_SIZE 16

typedef void *(*get_globals_fn)(void);

/* Where threads have their data ------------------------------------------------------------- */

/* This thread's blocks of thread-local variables. */
struct blocks {
	size_t n;
	struct {
		uint32_t module;
		uint64_t start;
	} of[PROOFS];
};

/* dl_iterate_phdr()'s: notes the block of a module. */
static int note_block(struct dl_phdr_info *info, size_t size, void *data)
{
	struct blocks *b = data;

	if (size < offsetof(struct dl_phdr_info, dlpi_tls_data) + sizeof info->dlpi_tls_data)
		return 1;
	if (!info->dlpi_tls_modid || !info->dlpi_tls_data)
		return 0;
	b->of[b->n].module = (uint32_t)info->dlpi_tls_modid;
	b->of[b->n++].start = (uintptr_t)info->dlpi_tls_data;
	return b->n == PROOFS;
}

/* Returns whether @w leads to each of the blocks. */
static bool leads(const struct fathom_own_ways *w, const struct blocks *b)
{
	uint64_t found;

	for (size_t i = 0; i < b->n; i++)
		if (!fathom_own_tls_block(w, fathom_own_thread_pointer(), b->of[i].module,
					  &found) ||
		    found != b->of[i].start)
			return false;
	return b->n;
}

/* Finds the table of blocks. */
static void find_table(struct fathom_own_ways *w)
{
	/* The first words of a thread: its address, or not; then the table's (variants 1 and 2). */
	static const uint8_t distances[] = { 0, sizeof(uint64_t) };
	/* glibc's entries, musl's. */
	static const uint8_t entries[] = { 2 * sizeof(uint64_t), sizeof(uint64_t) };
	struct blocks b = { .n = 0 };

	(void)dl_iterate_phdr(note_block, &b);
	for (size_t i = 0; i < sizeof distances; i++)
		for (size_t k = 0; k < sizeof entries; k++) {
			w->table = distances[i];
			w->entry = entries[k];
			if (leads(w, &b))
				return;
		}
	w->entry = 0;
}

/* Finds the only word near the thread pointer that is @value; its distance is *@ret. */
static bool find_near(uint64_t value, int16_t *ret)
{
	const uint64_t tp = fathom_own_thread_pointer();
	uint64_t words[2 * AROUND / sizeof(uint64_t)];
	unsigned n = 0;

	/* Pages are read up to the first that is not there; before the pointer, none may be. */
	memset(words, 0, sizeof words);
	(void)fathom_peek(tp - AROUND, words, AROUND);
	(void)fathom_peek(tp, (char *)words + AROUND, AROUND);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (words[i] != value)
			continue;
		*ret = (int16_t)((int)(i * sizeof *words) - AROUND);
		n++;
	}
	return n == 1;
}

/* Finds the word that has the value of @key, and what that of key 0 would be. */
static bool find_key(pthread_key_t key, int16_t *ret)
{
	/* Nothing else has a reason to keep this. */
	static const char mark;
	const uint64_t value = ~(uint64_t)(uintptr_t)&mark;
	int16_t at;
	bool found;

	if (pthread_setspecific(key, (void *)(uintptr_t)value))
		return false;
	found = find_near(value, &at);
	(void)pthread_setspecific(key, NULL);
	if (found)
		*ret = (int16_t)(at - (int)key * KEY_SIZE);
	return found;
}

/* Finds where pthread_setspecific() has values: two keys agree. */
static void find_specific(struct fathom_own_ways *w)
{
	pthread_key_t key[2];
	int16_t base[2];

	if (pthread_key_create(&key[0], NULL))
		return;
	if (!pthread_key_create(&key[1], NULL)) {
		if (find_key(key[0], &base[0]) && find_key(key[1], &base[1]) &&
		    base[0] == base[1]) {
			w->specific = base[0];
			w->getspecific = (uintptr_t)pthread_getspecific;
		}
		(void)pthread_key_delete(key[1]);
	}
	(void)pthread_key_delete(key[0]);
}

/* C++ libraries ------------------------------------------------------------------------------ */

/* The object that a function is in, and its block of thread-local variables. */
struct home {
	uintptr_t function;
	bool is_program;
	bool is_code;    /* the function is in code */
	uint32_t n;      /* objects before it; the first one is the program */
	uint32_t module; /* 0: it has no such variables */
	uint64_t start;
	uint64_t size;
};

/* dl_iterate_phdr()'s: sets the object that has the function. */
static int find_home(struct dl_phdr_info *info, size_t size, void *data)
{
	struct home *h = data;
	bool is_there = false;

	h->size = 0;
	if (size < offsetof(struct dl_phdr_info, dlpi_tls_data) + sizeof info->dlpi_tls_data)
		return 1;
	for (ElfW(Half) i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && h->function - info->dlpi_addr >= p->p_vaddr &&
		    h->function - info->dlpi_addr - p->p_vaddr < p->p_memsz) {
			is_there = true;
			h->is_code = p->p_flags & PF_X;
		}
		if (p->p_type == PT_TLS)
			h->size = p->p_memsz;
	}
	h->is_program = !h->n++;
	if (!is_there)
		return 0;
	h->module = (uint32_t)info->dlpi_tls_modid;
	h->start = (uintptr_t)info->dlpi_tls_data;
	return 1;
}

/* Returns whether @c leads to the calling thread's @globals. */
static bool is_right(const struct fathom_own_ways *w, const struct fathom_own_cxx *c,
		     uint64_t globals)
{
	uint64_t found;

	return fathom_own_cxx_globals(w, c, fathom_own_thread_pointer(), &found) &&
	       found == globals;
}

/* Finds the way to what the function at @at returns, __cxa_get_globals(). False: it is none. */
static bool find_way(const struct fathom_own_ways *w, void *at, struct fathom_own_cxx *c)
{
	struct home h = { .function = (uintptr_t)at };
	get_globals_fn get_globals;
	uint64_t globals;

	(void)dl_iterate_phdr(find_home, &h);
	if (sizeof at != sizeof(uint64_t) || !h.is_code)
		return false;
	memcpy(&get_globals, &at, sizeof get_globals);
	globals = (uintptr_t)get_globals();
	if (!globals)
		return false;
	c->is_program = h.is_program;
	c->way = FATHOM_OWN_CXX_TLS;
	c->module = h.module;
	c->off = globals - h.start;
	if (h.module && globals >= h.start && c->off < h.size && is_right(w, c, globals))
		return true;
	c->way = find_near(globals, &c->distance) ? FATHOM_OWN_CXX_SLOT : FATHOM_OWN_CXX_NONE;
	return true;
}

/* Returns the address at which the file is mapped that has @at; 0: none has it. */
static uint64_t base_of(void *at)
{
	Dl_info info;

	return at && dladdr(at, &info) ? (uintptr_t)info.dli_fbase : 0;
}

/* Finds what the library exports. */
static void find_symbols(struct fathom_own_cxx *c, const char *library)
{
	/* A program at a fixed address has entries of its own for functions of libraries. */
	void *const own = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);

	for (size_t i = 0; i < FATHOM_RTTI_KINDS; i++)
		c->vtables[i] = (uintptr_t)dlsym(RTLD_DEFAULT, fathom_rtti_vtables[i]);
	for (size_t i = 0; i < FATHOM_THROWN_WHATS; i++) {
		c->whats[2 * i] = (uintptr_t)dlsym(RTLD_DEFAULT, fathom_thrown_whats[i]);
		c->whats[2 * i + 1] = own ? (uintptr_t)dlsym(own, fathom_thrown_whats[i]) : 0;
	}
	if (own)
		(void)dlclose(own);
}

/* Finds the library whose functions are exported. */
static void find_linked(const struct fathom_own_ways *w, struct fathom_own_cxx *c)
{
	void *const at = dlsym(RTLD_DEFAULT, "__cxa_get_globals");
	Dl_info info;

	if (!at || !dladdr(at, &info) || !info.dli_fname || !find_way(w, at, c))
		return;
	c->library = (uintptr_t)info.dli_fbase;
	c->unwinder = base_of(dlsym(RTLD_DEFAULT, "_Unwind_RaiseException"));
	find_symbols(c, info.dli_fname);
}

/* The C++ library inside a program. */
struct inside {
	uint64_t bias;
	uint64_t get_globals; /* avma; 0: it has none */
	bool is_ambiguous;
	struct fathom_own_cxx *cxx;
};

static void note_symbol(struct inside *in, struct fathom_str name, uint64_t avma)
{
	if (str_is(name, "__cxa_get_globals")) {
		in->is_ambiguous |= in->get_globals && in->get_globals != avma;
		in->get_globals = avma;
	}
	for (size_t i = 0; i < FATHOM_RTTI_KINDS; i++)
		if (str_is(name, fathom_rtti_vtables[i]))
			in->cxx->vtables[i] = avma;
	for (size_t i = 0; i < FATHOM_THROWN_WHATS; i++)
		if (str_is(name, fathom_thrown_whats[i]))
			in->cxx->whats[i] = avma;
}

/* Passes the symbols of @m to note_symbol(). */
static void note_symbols(struct inside *in, const struct fathom_self_module *m)
{
	for (uint32_t i = 0; i < m->n_starts; i++) {
		const struct fathom_self_symbol *s = &m->symbols[m->winners[i]];

		if (m->winners[i] != FATHOM_SELF_NONE && s->start == m->starts[i])
			note_symbol(in,
				    (struct fathom_str){ m->strings + s->linkage, s->linkage_size },
				    s->start + in->bias);
	}
}

/* Returns the program's module, as @self has just been prepared; NULL: it is not there. */
static const struct fathom_self_module *find_program(const struct fathom_self *self,
						     uint64_t *ret_bias)
{
	const struct fathom_self_table *t =
		atomic_load(&self->tables[atomic_load(&self->generation) & 1]);

	for (uint32_t i = 0; i < atomic_load(&t->n); i++) {
		uintptr_t words[FATHOM_SELF_WORDS];
		struct fathom_self_place p;

		for (size_t k = 0; k < FATHOM_SELF_WORDS; k++)
			words[k] = atomic_load(&t->rows[i].word[k]);
		memcpy(&p, words, sizeof p);
		if (self->entries[0] < p.low || self->entries[0] >= p.high)
			continue;
		*ret_bias = p.bias;
		return (const struct fathom_self_module *)p.module;
	}
	return NULL;
}

/* Finds the library inside the program. */
static void find_inside(const struct fathom_self *self, const struct fathom_own_ways *w,
			struct fathom_own_cxx *c)
{
	struct fathom_own_cxx found = { .way = FATHOM_OWN_CXX_NONE };
	struct inside in = { .cxx = &found };
	const struct fathom_self_module *program = find_program(self, &in.bias);

	if (program)
		note_symbols(&in, program);
	/* Whatever is called so is of a C++ library only where its types are, too. */
	if (!in.get_globals || in.is_ambiguous || !found.vtables[0] ||
	    !find_way(w, (void *)(uintptr_t)in.get_globals, &found) || !found.is_program)
		return;
	found.library = base_of((void *)(uintptr_t)in.get_globals);
	found.unwinder = base_of(dlsym(RTLD_DEFAULT, "_Unwind_RaiseException"));
	*c = found;
}

void fathom_find_cxx(const struct fathom_self *self, struct fathom_own_libraries *l)
{
	find_table(&l->ways);
	find_specific(&l->ways);
	find_linked(&l->ways, &l->linked);
	if (!l->linked.is_program)
		find_inside(self, &l->ways, &l->inside);
}
