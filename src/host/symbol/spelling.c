/* SPDX-License-Identifier: MIT */
#include "host/symbol/spelling.h"

#include "host/base/demangle.h"
#include "safe/base/text.h"
#include "safe/elf/symtab.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The most words in a reserved prefix. */
#define MAX_WORDS 2

/*
 * Returns whether @full is @part after a reserved prefix: underscores, and a few words that each
 * end with an underscore, as in `__libc_` and `_IO_new_`.
 */
static bool has_reserved_prefix(struct fathom_str full, struct fathom_str part)
{
	const uint32_t prefix = full.size - part.size;
	uint32_t i = 0;

	if (!part.size || part.size >= full.size ||
	    memcmp(full.data + prefix, part.data, part.size) != 0)
		return false;
	while (i < prefix && full.data[i] == '_')
		i++;
	if (!i)
		return false;
	for (unsigned words = 0; i < prefix && words < MAX_WORDS; words++) {
		while (i < prefix && full.data[i] != '_')
			i++;
		while (i < prefix && full.data[i] == '_')
			i++;
	}
	return i == prefix && full.data[prefix - 1] == '_';
}

/*
 * Returns whether mangled names differ only in the variant of a constructor or destructor: C1, C2,
 * C3, D0, D1, D2 (Itanium C++ ABI, 5.1.4.3). D0 frees memory: it is another function.
 */
static bool is_variant(struct fathom_str a, struct fathom_str b)
{
	uint32_t i = 0;

	if (a.size != b.size)
		return false;
	while (i < a.size && a.data[i] == b.data[i])
		i++;
	if (!i || i == a.size || (a.data[i - 1] != 'C' && a.data[i - 1] != 'D') ||
	    !is_digit(a.data[i]) || !is_digit(b.data[i]) || a.data[i] == '0' || b.data[i] == '0')
		return false;
	return memcmp(a.data + i + 1, b.data + i + 1, a.size - i - 1) == 0;
}

/* Returns whether the mangled @symbol has @name as a part: after its length in decimal. */
static bool has_part(struct fathom_str symbol, struct fathom_str name)
{
	char digits[24];
	struct fathom_text t = text_init(digits, sizeof digits);

	if (!name.size || symbol.size <= name.size)
		return false;
	fathom_text_dec(&t, name.size);
	for (uint32_t i = 2; i + t.len + name.size <= symbol.size; i++)
		if (!is_digit(symbol.data[i - 1]) && !memcmp(symbol.data + i, digits, t.len) &&
		    !memcmp(symbol.data + i + t.len, name.data, name.size))
			return true;
	return false;
}

/* Returns whether @symbol is @own, a name from debug information, or another form of it. */
static bool is_form_of(struct fathom_str own, struct fathom_str symbol)
{
	if (!own.size)
		return false;
	if (str_equal(own, symbol))
		return true;
	if (fathom_symbol_is_mangled(own))
		return is_variant(own, symbol);
	return has_reserved_prefix(own, symbol);
}

/* Returns whether @symbol is a name of the function with these names, which may be empty. */
static bool fits(struct fathom_str linkage, struct fathom_str name, struct fathom_str symbol)
{
	/* Nearly always the first comparison succeeds. */
	if (linkage.size && str_equal(linkage, symbol))
		return true;
	symbol.size = fathom_clone_suffix(symbol);
	if (is_form_of(linkage, symbol))
		return true;
	if (fathom_symbol_is_mangled(linkage))
		return false;
	return is_form_of(name, symbol) ||
	       (!linkage.size && fathom_symbol_is_mangled(symbol) && has_part(symbol, name));
}

bool fathom_spelling_fits(const struct fathom_block_view *view, struct fathom_str symbol)
{
	struct fathom_block_function f;

	for (uint32_t i = 0;
	     fathom_block_function(view->block, i, &f) && (!i || f.flags & FATHOM_BLOCK_FOLDED);
	     i++)
		if (fits(fathom_block_string(view, f.linkage), fathom_block_string(view, f.name),
			 symbol))
			return true;
	return false;
}

bool fathom_spelling_differs(struct fathom_str symbol, struct fathom_str other)
{
	return !fits(other, (struct fathom_str){ NULL, 0 }, symbol);
}
