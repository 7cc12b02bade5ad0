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
#include "safe/self/own_context.h"

#define WORD sizeof(uint64_t)

static bool read_word(uint64_t avma, uint64_t *ret)
{
	return fathom_peek(avma, ret, WORD) == WORD;
}

/* Finds the block of the library in the table at @table; 0: the thread has none yet. */
static bool find_block(const struct fathom_own_cxx *c, uint64_t table, uint64_t *ret)
{
	const uint64_t count = c->entry == WORD ? table : table - c->entry;
	uint64_t n;

	return read_word(count, &n) && n >= c->module && n <= UINT32_MAX &&
	       read_word(table + (uint64_t)c->module * c->entry, ret);
}

bool fathom_own_cxx_globals(const struct fathom_own_cxx *c, uint64_t tp, uint64_t *ret)
{
	uint64_t at;

	if (!tp || c->way == FATHOM_OWN_CXX_NONE ||
	    !read_word(tp + (uint64_t)(int64_t)c->distance, &at) || !at)
		return false;
	*ret = at;
	if (c->way == FATHOM_OWN_CXX_SLOT)
		return true;
	/* glibc: -1 stands for a block that is made at its first use. */
	if (!find_block(c, at, ret) || !*ret || *ret == UINT64_MAX)
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

bool fathom_own_exception_find(const struct fathom_own_cxx *c, struct fathom_own_exception *ret)
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

	if (!fathom_own_cxx_globals(c, fathom_own_thread_pointer(), &globals) ||
	    !read_word(globals, &caught) || !caught || !fathom_thrown_read(&m, caught, &thrown))
		return false;
	ret->type = thrown.type.name;
	if (!fathom_thrown_text(&m, &thrown, &ret->what, &ret->what_size))
		ret->what = 0;
	return true;
}
