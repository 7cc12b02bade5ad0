/* SPDX-License-Identifier: MIT */
#include "cli/compat/addr2line/gnu_names.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"

#define FIRST_SIZE 1024

struct gnu_name {
	uint64_t hash;
	char *name;      /* NULL: empty slot */
	char *demangled; /* NULL: name is not mangled */
};

struct gnu_symbol {
	uint64_t hash;
	uint32_t number; /* 0: empty slot */
};

/* FNV-1a. */
static uint64_t hash_of(const char *s)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	while (*s)
		hash = (hash ^ (uint8_t)*s++) * UINT64_C(0x100000001b3);
	return hash ^ hash >> 29;
}

static void make_scratch(struct gnu_names *names, size_t size)
{
	if (size <= names->scratch_size)
		return;
	names->scratch_size = 2 * size;
	names->scratch = must(realloc(names->scratch, names->scratch_size));
}

/*
 * Demangles @name into the scratch buffer; returns the length, or 0 if it is not mangled. The
 * buffer's start holds the bare name; the demangled name goes after it.
 */
static size_t demangle(struct gnu_names *names, const char *name)
{
	const size_t prefix = strspn(name, ".$");
	const size_t bare = strcspn(name + prefix, "@");
	const char *suffix = name + prefix + bare;
	const size_t start = bare + 1;
	size_t room;
	size_t n;

	/* The first character tells that most names are not mangled. */
	if (names->mangling <= FATHOM_MANGLING_RUST && name[prefix] != '_')
		return 0;
	make_scratch(names, start + prefix + bare + strlen(suffix) + 256);
	memcpy(names->scratch, name + prefix, bare);
	names->scratch[bare] = '\0';
	for (;;) {
		room = names->scratch_size - start - prefix - strlen(suffix);
		n = fathom_demangle_name(names->scratch, names->mangling, names->flags,
					 names->scratch + start + prefix, room);
		if (n < room)
			break;
		make_scratch(names, names->scratch_size + n);
	}
	if (!n)
		return 0;
	memcpy(names->scratch + start, name, prefix);
	memmove(names->scratch, names->scratch + start, prefix + n);
	strcpy(names->scratch + prefix + n, suffix);
	return prefix + n + strlen(suffix);
}

static struct gnu_name *find_name(const struct gnu_names *names, const char *name, uint64_t hash)
{
	size_t i = hash & (names->size - 1);

	while (names->table[i].name &&
	       (names->table[i].hash != hash || strcmp(names->table[i].name, name) != 0))
		i = (i + 1) & (names->size - 1);
	return &names->table[i];
}

/* Keeps the table at most half full. */
static void grow_names(struct gnu_names *names)
{
	struct gnu_name *old = names->table;
	const size_t old_size = names->size;

	if (2 * (names->n + 1) <= names->size)
		return;
	names->size = old_size ? 2 * old_size : FIRST_SIZE;
	names->table = must(calloc(names->size, sizeof *names->table));
	for (size_t i = 0; i < old_size; i++)
		if (old[i].name)
			*find_name(names, old[i].name, old[i].hash) = old[i];
	free(old);
}

const char *gnu_names_get(struct gnu_names *names, const char *name)
{
	const uint64_t hash = hash_of(name);
	struct gnu_name *place;

	grow_names(names);
	place = find_name(names, name, hash);
	if (!place->name) {
		place->hash = hash;
		place->name = must(strdup(name));
		if (demangle(names, name))
			place->demangled = must(strdup(names->scratch));
		names->n++;
	}
	return place->demangled ? place->demangled : place->name;
}

void gnu_names_deinit(struct gnu_names *names)
{
	for (size_t i = 0; i < names->size; i++) {
		free(names->table[i].name);
		free(names->table[i].demangled);
	}
	free(names->table);
	free(names->scratch);
}

/* Reads symbol @i with its name; a section symbol has the section's name. */
static bool get_symbol(const struct gnu_symbols *symbols, size_t i, struct fathom_symbol_info *ret)
{
	struct fathom_section_info section;

	if (fathom_target_symbol(symbols->target, i, ret))
		return false;
	if (ret->type == STT_SECTION && !*ret->name &&
	    !fathom_target_section(symbols->target, ret->section, &section))
		ret->name = section.name;
	return true;
}

/*
 * Adds a symbol unless the table has its name: lookups want only the first. Equal hashes count as
 * equal names; a collision can only hide a symbol, because lookups compare the names.
 */
static void add_symbol(struct gnu_symbol *table, size_t size, const char *name, uint32_t number)
{
	const uint64_t hash = hash_of(name);
	size_t i = hash & (size - 1);

	while (table[i].number && table[i].hash != hash)
		i = (i + 1) & (size - 1);
	if (!table[i].number)
		table[i] = (struct gnu_symbol){ hash, number };
}

static struct gnu_symbol *make_table(struct gnu_symbols *symbols, struct gnu_names *names)
{
	struct fathom_symbol_info s;
	struct gnu_symbol *table;
	size_t n = 1;

	while (!fathom_target_symbol(symbols->target, n, &s))
		n++;
	symbols->size = FIRST_SIZE;
	while (symbols->size < 2 * n)
		symbols->size *= 2;
	table = must(calloc(symbols->size, sizeof *table));
	for (size_t i = 1; i < n && get_symbol(symbols, i, &s); i++) {
		if (!names)
			add_symbol(table, symbols->size, s.name, (uint32_t)i);
		else if (demangle(names, s.name))
			add_symbol(table, symbols->size, names->scratch, (uint32_t)i);
	}
	return table;
}

/* Finds the first symbol called @name in @table. */
static bool find_symbol(const struct gnu_symbols *symbols, const struct gnu_symbol *table,
			struct gnu_names *names, const char *name, struct fathom_symbol_info *ret)
{
	const uint64_t hash = hash_of(name);

	for (size_t i = hash & (symbols->size - 1); table[i].number;
	     i = (i + 1) & (symbols->size - 1))
		if (table[i].hash == hash && get_symbol(symbols, table[i].number, ret) &&
		    (names ? demangle(names, ret->name) && strcmp(names->scratch, name) == 0
			   : strcmp(ret->name, name) == 0))
			return true;
	return false;
}

bool gnu_symbols_find(struct gnu_symbols *symbols, struct gnu_names *names, const char *name,
		      uint64_t *ret_value)
{
	struct fathom_symbol_info s;

	if (!symbols->linked)
		symbols->linked = make_table(symbols, NULL);
	if (!find_symbol(symbols, symbols->linked, NULL, name, &s)) {
		if (!symbols->demangled)
			symbols->demangled = make_table(symbols, names);
		if (!find_symbol(symbols, symbols->demangled, names, name, &s))
			return false;
	}
	/* The value of a common symbol is its alignment; GNU uses its size. */
	*ret_value = s.section == (SHN_COMMON | 0xffff0000u) ? s.size : s.value;
	return true;
}

void gnu_symbols_deinit(struct gnu_symbols *symbols)
{
	free(symbols->linked);
	free(symbols->demangled);
}
