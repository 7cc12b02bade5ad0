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
#include <string.h>

#include "safe/base/peek.h"
#include "safe/self/own_context.h"

/* Bytes around the thread pointer where pointers by pthread_setspecific() may be. */
#define AROUND 4096

typedef void *(*get_globals_fn)(void);

/* The module that a function is in, and its block of thread-local variables. */
struct block {
	uintptr_t function;
	uint32_t module; /* 0: it has no such variables */
	uint64_t start;
	uint64_t size;
};

/* dl_iterate_phdr()'s: sets the block of the module that has the function. */
static int find_block(struct dl_phdr_info *info, size_t size, void *data)
{
	struct block *b = data;
	bool is_there = false;

	b->size = 0;
	if (size < offsetof(struct dl_phdr_info, dlpi_tls_data) + sizeof info->dlpi_tls_data)
		return 1;
	for (ElfW(Half) i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && b->function - info->dlpi_addr >= p->p_vaddr &&
		    b->function - info->dlpi_addr - p->p_vaddr < p->p_memsz)
			is_there = true;
		if (p->p_type == PT_TLS)
			b->size = p->p_memsz;
	}
	if (!is_there)
		return 0;
	b->module = (uint32_t)info->dlpi_tls_modid;
	b->start = (uintptr_t)info->dlpi_tls_data;
	return 1;
}

/* Returns whether @c leads to the calling thread's @globals. */
static bool is_right(const struct fathom_own_cxx *c, uint64_t globals)
{
	uint64_t found;

	return fathom_own_cxx_globals(c, fathom_own_thread_pointer(), &found) && found == globals;
}

/* Finds the table of TLS blocks, by which the variable @globals of module @b is found. */
static bool find_table(struct fathom_own_cxx *c, const struct block *b, uint64_t globals)
{
	/* The first words of a thread: its address, or not; then the table's (variants 1 and 2). */
	static const uint8_t distances[] = { 0, sizeof(uint64_t) };
	/* glibc's entries, musl's. */
	static const uint8_t entries[] = { 2 * sizeof(uint64_t), sizeof(uint64_t) };

	if (!b->module || globals < b->start || globals - b->start >= b->size)
		return false;
	c->way = FATHOM_OWN_CXX_TLS;
	c->module = b->module;
	c->off = globals - b->start;
	for (size_t i = 0; i < sizeof distances; i++)
		for (size_t k = 0; k < sizeof entries; k++) {
			c->distance = distances[i];
			c->entry = entries[k];
			if (is_right(c, globals))
				return true;
		}
	c->way = FATHOM_OWN_CXX_NONE;
	return false;
}

/* Finds the only pointer to @globals near the thread pointer. */
static void find_slot(struct fathom_own_cxx *c, uint64_t globals)
{
	const uint64_t tp = fathom_own_thread_pointer();
	uint64_t words[2 * AROUND / sizeof(uint64_t)];
	unsigned n = 0;

	/* Pages are read up to the first that is not there; before the pointer, none may be. */
	memset(words, 0, sizeof words);
	(void)fathom_peek(tp - AROUND, words, AROUND);
	(void)fathom_peek(tp, (char *)words + AROUND, AROUND);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (words[i] != globals)
			continue;
		c->distance = (int16_t)((int)(i * sizeof *words) - AROUND);
		n++;
	}
	c->way = n == 1 ? FATHOM_OWN_CXX_SLOT : FATHOM_OWN_CXX_NONE;
}

/* Returns the address at which the file is mapped that has the function @name; 0: none has it. */
static uint64_t base_of(const char *name)
{
	void *const at = dlsym(RTLD_DEFAULT, name);
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
	c->unwinder = base_of("_Unwind_RaiseException");
	if (own)
		(void)dlclose(own);
}

void fathom_find_cxx(struct fathom_own_cxx *c)
{
	void *const at = dlsym(RTLD_DEFAULT, "__cxa_get_globals");
	struct block block = { .function = (uintptr_t)at };
	get_globals_fn get_globals;
	uint64_t globals;
	Dl_info info;

	if (!at || sizeof at != sizeof(uint64_t) || !dladdr(at, &info) || !info.dli_fname)
		return;
	memcpy(&get_globals, &at, sizeof get_globals);
	globals = (uintptr_t)get_globals();
	(void)dl_iterate_phdr(find_block, &block);
	if (!globals)
		return;
	if (!find_table(c, &block, globals))
		find_slot(c, globals);
	c->library = (uintptr_t)info.dli_fbase;
	find_symbols(c, info.dli_fname);
}
