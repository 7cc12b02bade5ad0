/* SPDX-License-Identifier: MIT */
/*
 * type_info (Itanium C++ ABI, 2.9.5): a pointer to the vtable of one of the classes that describe
 * types, the mangled name, and for classes with bases these: one at offset 0 in
 * __si_class_type_info; flags, a count and an array of (type, offset << 8 | flags) in
 * __vmi_class_type_info. No vtable is called: its symbol says which class it is.
 */
#include "host/death/rtti.h"

#include "host/base/demangle.h"
#include "host/module/module.h"
#include "safe/base/limits.h"

enum { OTHER_TYPE, SINGLE_BASE, MANY_BASES };

static const struct {
	const char *vtable;
	uint8_t kind;
} kinds[] = {
	{ "_ZTVN10__cxxabiv117__class_type_infoE", OTHER_TYPE },
	{ "_ZTVN10__cxxabiv120__si_class_type_infoE", SINGLE_BASE },
	{ "_ZTVN10__cxxabiv121__vmi_class_type_infoE", MANY_BASES },
	{ "_ZTVN10__cxxabiv119__pointer_type_infoE", OTHER_TYPE },
	{ "_ZTVN10__cxxabiv129__pointer_to_member_type_infoE", OTHER_TYPE },
	{ "_ZTVN10__cxxabiv123__fundamental_type_infoE", OTHER_TYPE },
	{ "_ZTVN10__cxxabiv116__enum_type_infoE", OTHER_TYPE },
	{ "_ZTVN10__cxxabiv117__array_type_infoE", OTHER_TYPE },
	{ "_ZTVN10__cxxabiv120__function_type_infoE", OTHER_TYPE },
};

/* Bases of one class that are looked at; classes from one to its outermost base; all in all. */
#define MAX_BASES  32
#define MAX_DEPTH  16
#define MAX_VISITS 256

/* Finds the kind of type whose vtable, by its symbol, has its functions from @avma on. */
static bool find_named_kind(const struct fathom_death_work *w, uint64_t avma, uint8_t *ret)
{
	/* The offset to the top of the object and the type_info precede the functions. */
	const uint64_t vtable = avma - 2u * w->layout.word;
	struct fathom_symbol_hit hit;
	struct fathom_place place;

	if (fathom_view_locate(w->view, vtable, &place) || !place.holder || !place.holder->module ||
	    !fathom_symbols_scan(&place.holder->module->symbols, vtable - place.bias, NULL, &hit) ||
	    hit.start != vtable - place.bias)
		return false;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		if (hit.name.size != strlen(kinds[i].vtable) ||
		    memcmp(hit.name.data, kinds[i].vtable, hit.name.size) != 0)
			continue;
		*ret = kinds[i].kind;
		return true;
	}
	return false;
}

/* Reads the type_info at @avma, whose kind is known by a symbol. */
static bool read_named(const struct fathom_death_work *w, uint64_t avma, struct fathom_rtti *ret)
{
	uint64_t vtable;

	ret->avma = avma;
	return avma && avma % w->layout.word == 0 && fathom_death_word(w, avma, &vtable) &&
	       fathom_death_word(w, avma + w->layout.word, &ret->name) &&
	       find_named_kind(w, vtable, &ret->kind);
}

/* Returns whether @type is the class of the C++ library with the mangled name @name. */
static bool is_class(const struct fathom_death_work *w, const struct fathom_rtti *type,
		     const char *name)
{
	const size_t n = strlen(name) + 1;
	char bytes[64];

	return n <= sizeof bytes && fathom_reader_read(&w->view->memory, type->name, bytes, n) &&
	       memcmp(bytes, name, n) == 0;
}

/* Finds the base of @type that begins where it does; returns false if there is none. */
static bool find_first_base(const struct fathom_death_work *w, const struct fathom_rtti *type,
			    uint64_t *ret)
{
	const uint64_t at = type->avma + (type->kind == MANY_BASES ? 3u : 2u) * w->layout.word;
	uint64_t flags = 0;

	if (type->kind == MANY_BASES && !fathom_death_word(w, at + w->layout.word, &flags))
		return false;
	/* Neither virtual nor at an offset. */
	return type->kind != OTHER_TYPE && !(flags & 1) && !(flags >> 8) &&
	       fathom_death_word(w, at, ret);
}

/*
 * Finds the kind of type of a class that is derived from one of those, as libstdc++ has one for
 * std::ios_base::failure: the vtable, whose functions are from @avma on, has its type_info.
 */
static bool find_derived_kind(const struct fathom_death_work *w, uint64_t avma, uint8_t *ret)
{
	struct fathom_rtti derived;
	struct fathom_rtti base;
	uint64_t at;

	if (!fathom_death_word(w, avma - w->layout.word, &at) || !read_named(w, at, &derived) ||
	    !find_first_base(w, &derived, &at) || !read_named(w, at, &base))
		return false;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		/* The name of the class follows "_ZTV". */
		if (!is_class(w, &base, kinds[i].vtable + 4))
			continue;
		*ret = kinds[i].kind;
		return true;
	}
	return false;
}

bool fathom_rtti_read(const struct fathom_death_work *w, uint64_t avma, struct fathom_rtti *ret)
{
	uint64_t vtable;

	return read_named(w, avma, ret) ||
	       (avma && avma % w->layout.word == 0 && fathom_death_word(w, avma, &vtable) &&
		fathom_death_word(w, avma + w->layout.word, &ret->name) &&
		find_derived_kind(w, vtable, &ret->kind));
}

static bool is_mangled_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       c == '_' || c == '.' || c == '$' || (unsigned char)c >= 0x80;
}

/* Reads the mangled name of @type; returns NULL if it is none. */
static char *read_mangled(const struct fathom_death_work *w, const struct fathom_rtti *type,
			  fathom_err *ret_err)
{
	bool is_cut;
	char *name = fathom_death_text(w, type->name, FATHOM_MAX_MANGLED, &is_cut, ret_err);

	/* libstdc++: names with a star are compared by their addresses. */
	if (name && name[0] == '*')
		name++;
	if (!name || is_cut || !name[0])
		return NULL;
	for (const char *c = name; *c; c++)
		if (!is_mangled_char(*c))
			return NULL;
	return name;
}

/* Demangles "_ZTI" and @name, which means "typeinfo for ..."; returns NULL if it cannot be. */
static char *demangle(const struct fathom_death_work *w, const char *name, fathom_err *ret_err)
{
	static const char prefix[] = "typeinfo for ";
	struct fathom_bytes_array mangled = { 0 };
	struct fathom_bytes_array text = { 0 };
	const size_t n = strlen(name);
	const size_t skipped = sizeof prefix - 1;
	fathom_err err = FATHOM_E_MEMORY;
	char *copy = NULL;

	if (fathom_array_room(&mangled, n + 4)) {
		memcpy(mangled.items, "_ZTI", 4);
		memcpy(mangled.items + 4, name, n);
		err = fathom_demangle((struct fathom_str){ mangled.items, (uint32_t)n + 4 }, false,
				      &text);
	}
	if (!err && text.n > skipped && memcmp(text.items, prefix, skipped) == 0) {
		copy = fathom_arena_strdup(
			w->arena,
			(struct fathom_str){ text.items + skipped, (uint32_t)(text.n - skipped) });
		err = copy ? FATHOM_OK : FATHOM_E_MEMORY;
	}
	*ret_err = err == FATHOM_E_MEMORY ? err : FATHOM_OK;
	fathom_array_free(&mangled);
	fathom_array_free(&text);
	return copy;
}

const char *fathom_rtti_name(const struct fathom_death_work *w, const struct fathom_rtti *type,
			     fathom_err *ret_err)
{
	char *mangled = read_mangled(w, type, ret_err);
	char *name = mangled && !w->no_demangle ? demangle(w, mangled, ret_err) : NULL;

	return name ? name : mangled;
}

/* A search for a base class. */
struct search {
	const struct fathom_death_work *w;
	unsigned visits;
};

static bool find_base(struct search *s, const struct fathom_rtti *type, unsigned depth,
		      uint64_t *ret_off);

/* Searches the class at @avma, which lies @off bytes into the object. */
static bool search_base(struct search *s, uint64_t avma, uint64_t off, unsigned depth,
			uint64_t *ret_off)
{
	struct fathom_rtti base;

	if (!fathom_rtti_read(s->w, avma, &base) || !find_base(s, &base, depth + 1, ret_off))
		return false;
	*ret_off += off;
	return true;
}

/* Searches the bases of @type, a class with many or virtual ones. */
static bool search_bases(struct search *s, const struct fathom_rtti *type, unsigned depth,
			 uint64_t *ret_off)
{
	const struct fathom_death_work *w = s->w;
	const uint8_t word = w->layout.word;
	const uint64_t head = type->avma + 2u * word;
	uint64_t n;

	/* flags, count */
	if (!fathom_reader_uint(&w->view->memory, head + 4, 4, w->layout.swap, &n) || n > MAX_BASES)
		return false;
	for (uint64_t i = 0; i < n; i++) {
		const uint64_t at = head + 8 + 2 * i * word;
		uint64_t base;
		uint64_t flags;

		if (!fathom_death_word(w, at, &base) || !fathom_death_word(w, at + word, &flags))
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
	if (is_class(s->w, type, "St13runtime_error") || is_class(s->w, type, "St11logic_error")) {
		*ret_off = 0;
		return true;
	}
	switch (type->kind) {
	case SINGLE_BASE:
		return fathom_death_word(s->w, type->avma + 2u * s->w->layout.word, &base) &&
		       search_base(s, base, 0, depth, ret_off);
	case MANY_BASES:
		return search_bases(s, type, depth, ret_off);
	default:
		return false;
	}
}

bool fathom_rtti_find_error(const struct fathom_death_work *w, const struct fathom_rtti *type,
			    uint64_t *ret_off)
{
	struct search s = { .w = w };

	return find_base(&s, type, 0, ret_off);
}
