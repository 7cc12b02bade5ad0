/* SPDX-License-Identifier: MIT */
/*
 * struct __cxa_eh_globals (Itanium C++ ABI: Exception Handling, 2.2.2) begins with the list of
 * caught exceptions; one that no handler takes is in it, too, when std::terminate() runs.
 *
 * A table of TLS blocks ("ELF Handling For Thread-Local Storage", 3) has entries of two words in
 * glibc, whose number stands in the entry before the first one (struct dtv,
 * sysdeps/generic/dl-dtv.h); those of musl have one word, and the first one is their number.
 */
#include "safe/crash/own_exception.h"

#include "safe/base/peek.h"
#include "safe/crash/later_cxx.h"
#include "safe/self/own_context.h"

#define WORD sizeof(uint64_t)

static bool read_word(uint64_t avma, uint64_t *ret)
{
	return fathom_peek(avma, ret, WORD) == WORD;
}

bool fathom_own_tls_block(const struct fathom_own_ways *w, uint64_t tp, uint32_t module,
			  uint64_t *ret)
{
	uint64_t table;
	uint64_t count;
	uint64_t n;

	if (!tp || !w->entry || !read_word(tp + (uint64_t)(int64_t)w->table, &table) || !table)
		return false;
	count = w->entry == WORD ? table : table - w->entry;
	/* glibc: -1 stands for a block that is made at its first use. */
	return read_word(count, &n) && n >= module && n <= UINT32_MAX &&
	       read_word(table + (uint64_t)module * w->entry, ret) && *ret && *ret != UINT64_MAX;
}

bool fathom_own_cxx_globals(const struct fathom_own_ways *w, const struct fathom_own_cxx *c,
			    uint64_t tp, uint64_t *ret)
{
	if (c->way == FATHOM_OWN_CXX_SLOT)
		return tp && read_word(tp + (uint64_t)(int64_t)c->distance, ret) && *ret;
	if (c->way != FATHOM_OWN_CXX_TLS || !fathom_own_tls_block(w, tp, c->module, ret))
		return false;
	*ret += c->off;
	return true;
}

/* struct fathom_reader's: memory of this process. */
static size_t read_own(void *data, uint64_t avma, void *to, size_t size)
{
	(void)data;
	return fathom_peek(avma, to, size);
}

static bool find_kind(const struct fathom_cxx_memory *m, uint64_t avma, uint8_t *ret)
{
	const struct fathom_own_cxx *c = m->data;

	for (uint8_t i = 0; i < FATHOM_RTTI_KINDS; i++) {
		if (!avma || c->vtables[i] != avma)
			continue;
		*ret = i;
		return true;
	}
	return false;
}

static bool is_what(const struct fathom_cxx_memory *m, uint64_t avma)
{
	const struct fathom_own_cxx *c = m->data;

	for (size_t i = 0; i < sizeof c->whats / sizeof *c->whats; i++)
		if (avma && c->whats[i] == avma)
			return true;
	return false;
}

/* Finds the exception of the calling thread in the library @c. */
static bool find_in(const struct fathom_own_ways *w, const struct fathom_own_cxx *c,
		    struct fathom_own_exception *ret)
{
	static const struct fathom_reader reader = { .read = read_own };
	const struct fathom_cxx_memory m = {
		.reader = &reader,
		.word = WORD,
		.find_kind = find_kind,
		.is_what = is_what,
		.data = c,
	};
	struct fathom_thrown thrown;
	uint64_t globals;
	uint64_t caught;

	if (!fathom_own_cxx_globals(w, c, fathom_own_thread_pointer(), &globals) ||
	    !read_word(globals, &caught) || !caught || !fathom_thrown_read(&m, caught, &thrown))
		return false;
	ret->type = thrown.type.name;
	if (!fathom_thrown_text(&m, &thrown, &ret->what, &ret->what_size))
		ret->what = 0;
	/* Frames of the program are its own ones, too: they tell nothing by their file. */
	ret->library = c->is_program ? 0 : c->library;
	ret->unwinder = c->unwinder == c->library ? 0 : c->unwinder;
	return true;
}

/* A search through the libraries of the process. */
struct search {
	const struct fathom_own_libraries *known;
	struct fathom_own_exception *ret;
	bool is_later;     /* what was found is of a library that was loaded later */
	uint32_t found;    /* libraries that have an exception of this thread */
	uint64_t unwinder; /* address of the first one; 0: none */
};

static void look_into(const struct fathom_self_object *o, const struct fathom_link_map *link,
		      void *data)
{
	struct search *s = data;
	const struct fathom_own_libraries *known = s->known;
	struct fathom_own_cxx c;

	if (!s->unwinder && fathom_later_cxx_is_unwinder(o, link))
		s->unwinder = link->bias;
	if (o->start == known->linked.library || o->start == known->inside.library ||
	    !fathom_later_cxx_read(o, link, &known->ways, &c) || !find_in(&known->ways, &c, s->ret))
		return;
	s->is_later = true;
	s->found++;
}

bool fathom_own_exception_find(const struct fathom_own_libraries *l,
			       struct fathom_own_exception *ret)
{
	struct search s = { .known = l, .ret = ret };

	s.found += find_in(&l->ways, &l->linked, ret);
	s.found += find_in(&l->ways, &l->inside, ret);
	fathom_self_each_object(look_into, &s);
	if (s.is_later && s.unwinder != ret->library)
		ret->unwinder = s.unwinder;
	return s.found == 1;
}
