/* SPDX-License-Identifier: MIT */
#include "safe/crash/later_cxx.h"

#include <elf.h>

#include "safe/base/peek.h"
#include "safe/cxx/globals_code.h"
#include "safe/self/unprepared.h"

/* Keys of pthread_key_create() whose values glibc has in the thread's own block. */
#define NEAR_KEYS 32

/* Bytes of such a value, with its count. */
#define KEY_SIZE 16

/* Bytes of the longest name that is looked for, and some more. */
#define LONGEST_NAME 128

/* Finds what @d defines as @name; 0: nothing. */
static uint64_t find(const struct fathom_self_dynamic *d, const char *name)
{
	uint32_t size = 0;
	uint64_t avma;

	/* The safe tier has no strlen(). */
	while (size < LONGEST_NAME && name[size])
		size++;
	return fathom_self_dynamic_find(d, (struct fathom_str){ name, size }, &avma) ? avma : 0;
}

/* Reads the code of function @name; 0: it has none. */
static uint64_t read_code(const struct fathom_self_dynamic *d, const char *name,
			  uint8_t code[FATHOM_GLOBALS_CODE])
{
	const uint64_t at = find(d, name);

	return at && fathom_peek(at, code, FATHOM_GLOBALS_CODE) == FATHOM_GLOBALS_CODE ? at : 0;
}

static bool is_inside(const struct fathom_self_dynamic *d, uint64_t avma, uint64_t size)
{
	return avma >= d->start && avma < d->end && d->end - avma >= size;
}

/* Finds the thread-local variable by __cxa_get_globals(). */
static bool find_tls(const struct fathom_self_dynamic *d, const struct fathom_own_ways *w,
		     struct fathom_own_cxx *c)
{
	uint8_t code[FATHOM_GLOBALS_CODE];
	const uint64_t at = read_code(d, "__cxa_get_globals", code);
	struct fathom_globals_tls g;
	uint64_t pair[2];

	if (!at || !w->entry || !fathom_globals_by_tls(code, at, &g) ||
	    !is_inside(d, g.pair, sizeof pair) ||
	    fathom_peek(g.pair, pair, sizeof pair) != sizeof pair || !pair[0] ||
	    pair[0] > UINT32_MAX)
		return false;
	c->way = FATHOM_OWN_CXX_TLS;
	c->module = (uint32_t)pair[0];
	c->off = pair[1] + (uint64_t)g.added;
	return c->off < UINT32_MAX;
}

/* Finds the key of pthread_getspecific() by __cxa_get_globals_fast(). */
static bool find_slot(const struct fathom_self_dynamic *d, const struct fathom_own_ways *w,
		      struct fathom_own_cxx *c)
{
	uint8_t code[FATHOM_GLOBALS_CODE];
	const uint64_t at = read_code(d, "__cxa_get_globals_fast", code);
	uint32_t key;
	uint64_t key_at;
	uint64_t stub;
	uint64_t slot;
	uint64_t to;

	if (!at || !w->specific || !fathom_globals_by_key(code, at, &key_at, &stub) ||
	    !is_inside(d, key_at, sizeof key) || !is_inside(d, stub, sizeof code) ||
	    fathom_peek(stub, code, sizeof code) != sizeof code ||
	    !fathom_globals_stub(code, stub, &slot) || !is_inside(d, slot, sizeof to) ||
	    fathom_peek(slot, &to, sizeof to) != sizeof to || to != w->getspecific ||
	    fathom_peek(key_at, &key, sizeof key) != sizeof key || key >= NEAR_KEYS)
		return false;
	c->way = FATHOM_OWN_CXX_SLOT;
	c->distance = (int16_t)(w->specific + (int)(key * KEY_SIZE));
	return true;
}

/* Returns whether the object is of a machine whose code is known. */
static bool is_known_machine(const struct fathom_self_object *o)
{
	Elf64_Ehdr header;

	return fathom_peek(o->start, &header, sizeof header) == sizeof header &&
	       memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
	       header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == EM_X86_64;
}

bool fathom_later_cxx_read(const struct fathom_self_object *o, const struct fathom_link_map *link,
			   const struct fathom_own_ways *w, struct fathom_own_cxx *c)
{
	struct fathom_self_dynamic d;

	*c = (struct fathom_own_cxx){ .library = link->bias };
	if (!fathom_self_read_dynamic(link->dynamic, o->start, o->end, link->bias, &d) ||
	    !find(&d, "__cxa_get_globals") || !is_known_machine(o) ||
	    !(find_tls(&d, w, c) || find_slot(&d, w, c)))
		return false;
	for (size_t i = 0; i < FATHOM_RTTI_KINDS; i++)
		c->vtables[i] = find(&d, fathom_rtti_vtables[i]);
	for (size_t i = 0; i < FATHOM_THROWN_WHATS; i++)
		c->whats[i] = find(&d, fathom_thrown_whats[i]);
	return true;
}

bool fathom_later_cxx_is_unwinder(const struct fathom_self_object *o,
				  const struct fathom_link_map *link)
{
	struct fathom_self_dynamic d;

	return fathom_self_read_dynamic(link->dynamic, o->start, o->end, link->bias, &d) &&
	       find(&d, "_Unwind_RaiseException");
}
