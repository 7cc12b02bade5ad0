/* SPDX-License-Identifier: MIT */
/*
 * type_info (Itanium C++ ABI, 2.9.5): a pointer to the vtable of one of the classes that describe
 * types, the mangled name, and for classes with bases these: one at offset 0 in
 * __si_class_type_info; flags, a count and an array of (type, offset << 8 | flags) in
 * __vmi_class_type_info. No vtable is called: where it lies says which class it is.
 */
#include "safe/cxx/rtti.h"

/* Kinds of types that have bases. */
enum { SINGLE_BASE = 1, MANY_BASES = 2 };

const char *const fathom_rtti_vtables[FATHOM_RTTI_KINDS] = {
	"_ZTVN10__cxxabiv117__class_type_infoE",
	[SINGLE_BASE] = "_ZTVN10__cxxabiv120__si_class_type_infoE",
	[MANY_BASES] = "_ZTVN10__cxxabiv121__vmi_class_type_infoE",
	"_ZTVN10__cxxabiv119__pointer_type_infoE",
	"_ZTVN10__cxxabiv129__pointer_to_member_type_infoE",
	"_ZTVN10__cxxabiv123__fundamental_type_infoE",
	"_ZTVN10__cxxabiv116__enum_type_infoE",
	"_ZTVN10__cxxabiv117__array_type_infoE",
	"_ZTVN10__cxxabiv120__function_type_infoE",
};

/* Bases of one class that are looked at; classes from one to its outermost base; all in all. */
#define MAX_BASES  32
#define MAX_DEPTH  16
#define MAX_VISITS 256

bool fathom_rtti_find_kind(struct fathom_str symbol, uint8_t *ret)
{
	for (uint8_t i = 0; i < FATHOM_RTTI_KINDS; i++) {
		if (!str_is(symbol, fathom_rtti_vtables[i]))
			continue;
		*ret = i;
		return true;
	}
	return false;
}

/* Finds the kind of type whose vtable has its functions from @avma on. */
static bool find_named_kind(const struct fathom_cxx_memory *m, uint64_t avma, uint8_t *ret)
{
	/* The offset to the top of the object and the type_info precede the functions. */
	return m->find_kind(m, avma - 2u * m->word, ret);
}

/* Reads the type_info at @avma, whose kind is known by a symbol. */
static bool read_named(const struct fathom_cxx_memory *m, uint64_t avma, struct fathom_rtti *ret)
{
	uint64_t vtable;

	ret->avma = avma;
	return avma && avma % m->word == 0 && fathom_cxx_word(m, avma, &vtable) &&
	       fathom_cxx_word(m, avma + m->word, &ret->name) &&
	       find_named_kind(m, vtable, &ret->kind);
}

/* Returns whether @type is the class of the C++ library with the mangled name @name. */
static bool is_class(const struct fathom_cxx_memory *m, const struct fathom_rtti *type,
		     const char *name)
{
	char bytes[64];
	const size_t n = m->reader->read(m->reader->data, type->name, bytes, sizeof bytes);
	const size_t size = fathom_str_find((struct fathom_str){ bytes, (uint32_t)n }, 0, '\0');

	return size < n && str_is((struct fathom_str){ bytes, (uint32_t)size }, name);
}

/* Finds the base of @type that begins where it does; returns false if there is none. */
static bool find_first_base(const struct fathom_cxx_memory *m, const struct fathom_rtti *type,
			    uint64_t *ret)
{
	const uint64_t at = type->avma + (type->kind == MANY_BASES ? 3u : 2u) * m->word;
	uint64_t flags = 0;

	if (type->kind == MANY_BASES && !fathom_cxx_word(m, at + m->word, &flags))
		return false;
	/* Neither virtual nor at an offset. */
	return (type->kind == SINGLE_BASE || type->kind == MANY_BASES) && !(flags & 1) &&
	       !(flags >> 8) && fathom_cxx_word(m, at, ret);
}

/*
 * Finds the kind of type of a class that is derived from one of those, as libstdc++ has one for
 * std::ios_base::failure: the vtable, whose functions are from @avma on, has its type_info.
 */
static bool find_derived_kind(const struct fathom_cxx_memory *m, uint64_t avma, uint8_t *ret)
{
	struct fathom_rtti derived;
	struct fathom_rtti base;
	uint64_t at;

	if (!fathom_cxx_word(m, avma - m->word, &at) || !read_named(m, at, &derived) ||
	    !find_first_base(m, &derived, &at) || !read_named(m, at, &base))
		return false;
	for (uint8_t i = 0; i < FATHOM_RTTI_KINDS; i++) {
		/* The name of the class follows "_ZTV". */
		if (!is_class(m, &base, fathom_rtti_vtables[i] + 4))
			continue;
		*ret = i;
		return true;
	}
	return false;
}

bool fathom_rtti_read(const struct fathom_cxx_memory *m, uint64_t avma, struct fathom_rtti *ret)
{
	uint64_t vtable;

	return read_named(m, avma, ret) ||
	       (avma && avma % m->word == 0 && fathom_cxx_word(m, avma, &vtable) &&
		fathom_cxx_word(m, avma + m->word, &ret->name) &&
		find_derived_kind(m, vtable, &ret->kind));
}

/* A search for a base class. */
struct search {
	const struct fathom_cxx_memory *m;
	unsigned visits;
};

static bool find_base(struct search *s, const struct fathom_rtti *type, unsigned depth,
		      uint64_t *ret_off);

/* Searches the class at @avma, which lies @off bytes into the object. */
static bool search_base(struct search *s, uint64_t avma, uint64_t off, unsigned depth,
			uint64_t *ret_off)
{
	struct fathom_rtti base;

	if (!fathom_rtti_read(s->m, avma, &base) || !find_base(s, &base, depth + 1, ret_off))
		return false;
	*ret_off += off;
	return true;
}

/* Searches the bases of @type, a class with many or virtual ones. */
static bool search_bases(struct search *s, const struct fathom_rtti *type, unsigned depth,
			 uint64_t *ret_off)
{
	const struct fathom_cxx_memory *m = s->m;
	const uint8_t word = m->word;
	const uint64_t head = type->avma + 2u * word;
	uint64_t n;

	/* flags, count */
	if (!fathom_reader_uint(m->reader, head + 4, 4, m->swap, &n) || n > MAX_BASES)
		return false;
	for (uint64_t i = 0; i < n; i++) {
		const uint64_t at = head + 8 + 2 * i * word;
		uint64_t base;
		uint64_t flags;

		if (!fathom_cxx_word(m, at, &base) || !fathom_cxx_word(m, at + word, &flags))
			return false;
		/* Bit 0: a virtual base, whose offset stands in the object's vtable. */
		if (!(flags & 1) &&
		    search_base(s, base, (uint64_t)((int64_t)flags >> 8), depth, ret_off))
			return true;
	}
	return false;
}

static bool find_base(struct search *s, const struct fathom_rtti *type, unsigned depth,
		      uint64_t *ret_off)
{
	uint64_t base;

	if (depth > MAX_DEPTH || s->visits++ > MAX_VISITS)
		return false;
	if (is_class(s->m, type, "St13runtime_error") || is_class(s->m, type, "St11logic_error")) {
		*ret_off = 0;
		return true;
	}
	switch (type->kind) {
	case SINGLE_BASE:
		return fathom_cxx_word(s->m, type->avma + 2u * s->m->word, &base) &&
		       search_base(s, base, 0, depth, ret_off);
	case MANY_BASES:
		return search_bases(s, type, depth, ret_off);
	default:
		return false;
	}
}

bool fathom_rtti_find_error(const struct fathom_cxx_memory *m, const struct fathom_rtti *type,
			    uint64_t *ret_off)
{
	struct search s = { .m = m };

	return find_base(&s, type, 0, ret_off);
}
