/* SPDX-License-Identifier: MIT */
#include "host/symbol/dynsym.h"

#include <stdlib.h>

static struct fathom_bytes from(const struct fathom_object *o, uint64_t svma)
{
	return svma ? fathom_image_loaded_from(&o->image, svma) : (struct fathom_bytes){ NULL, 0 };
}

/* On 64-bit Alpha and s390, DT_HASH has words of 8 bytes, against the gABI. */
static uint8_t hash_word(const struct fathom_image *image)
{
	return image->is64 && (image->machine == EM_S390 || image->machine == EM_ALPHA) ? 8 : 4;
}

static void find_hash(struct fathom_dynsym *d)
{
	const struct fathom_image *image = &d->object->image;

	if (d->dynamic.gnu_hash)
		d->has_hash = fathom_gnu_hash_init(&d->hash, from(d->object, d->dynamic.gnu_hash),
						   image->is64, image->swap);
	if (!d->has_hash && d->dynamic.hash)
		d->has_hash = fathom_sysv_hash_init(&d->hash, from(d->object, d->dynamic.hash),
						    hash_word(image), image->swap);
}

static uint32_t at_most_32(uint64_t n)
{
	return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* Stores the name of each version at its number; returns false if out of memory. */
static bool name_versions(struct fathom_dynsym *d)
{
	struct fathom_version_walk w;
	struct fathom_version v;
	uint32_t most = 0;

	fathom_version_walk_init(&w, &d->versions);
	while (fathom_version_next(&w, &v))
		most = v.number > most ? v.number : most;
	d->names = calloc(most + 1u, sizeof *d->names);
	if (!d->names)
		return false;
	d->n_names = most + 1;
	fathom_version_walk_init(&w, &d->versions);
	while (fathom_version_next(&w, &v))
		if (!v.is_base)
			d->names[v.number] = v.name;
	return true;
}

/* Returns the number of the table that the dynamic linker reads, or FATHOM_NONE. */
static uint32_t find_table(const struct fathom_symbol_set *set)
{
	const struct fathom_object *o = set->main;
	const uint32_t section = fathom_object_find_type(o, SHT_DYNSYM);
	struct fathom_dynamic d;
	struct fathom_bytes entries;

	if (section)
		entries = fathom_image_section_bytes(&o->image, &o->sections[section].header);
	else if (fathom_object_dynamic(o, &d))
		entries = fathom_image_loaded_from(&o->image, d.symtab);
	else
		return FATHOM_NONE;
	for (uint32_t t = 0; t < set->n_tables; t++)
		if (set->table[t].object == o && set->table[t].view.entries.data == entries.data)
			return t;
	return FATHOM_NONE;
}

fathom_err fathom_dynsym_init(struct fathom_dynsym *d, const struct fathom_symbol_set *set)
{
	const struct fathom_object *o = set->main;
	const uint32_t number = find_table(set);
	const struct fathom_symtab *table;

	*d = (struct fathom_dynsym){ .object = o, .number = FATHOM_NONE };
	if (number == FATHOM_NONE || o->image.type == ET_REL ||
	    !fathom_object_dynamic(o, &d->dynamic))
		return FATHOM_OK;
	table = &set->table[number].view;
	d->number = number;
	d->table = *table;
	d->versions = (struct fathom_versions){
		.numbers = from(o, d->dynamic.versym),
		.defined = from(o, d->dynamic.verdef),
		.needed = from(o, d->dynamic.verneed),
		.strings = table->strings,
		.n_defined = at_most_32(d->dynamic.verdefnum),
		.n_needed = at_most_32(d->dynamic.verneednum),
		.swap = o->image.swap,
	};
	if (d->versions.numbers.size / 2 > table->count)
		d->versions.numbers.size = (uint64_t)table->count * 2;
	find_hash(d);
	return !d->versions.numbers.size || name_versions(d) ? FATHOM_OK : FATHOM_E_MEMORY;
}

void fathom_dynsym_deinit(struct fathom_dynsym *d)
{
	free(d->names);
	d->names = NULL;
	d->n_names = 0;
}

struct fathom_str fathom_dynsym_version(const struct fathom_dynsym *d, uint32_t i,
					bool *ret_default)
{
	const uint16_t number = fathom_version_number(&d->versions, i);
	const uint16_t index = number & (uint16_t)~FATHOM_VERSION_HIDDEN;

	*ret_default = !(number & FATHOM_VERSION_HIDDEN);
	if (index <= FATHOM_VERSION_GLOBAL || index >= d->n_names)
		return (struct fathom_str){ NULL, 0 };
	return d->names[index];
}

static bool is_linked_type(uint8_t type)
{
	return type == STT_NOTYPE || type == STT_OBJECT || type == STT_FUNC || type == STT_COMMON ||
	       type == STT_TLS || type == STT_GNU_IFUNC;
}

enum fathom_dlsym_verdict fathom_dynsym_verdict(const struct fathom_dynsym *d, uint32_t i,
						const struct fathom_symbol *s, bool is_versioned)
{
	const uint16_t number = fathom_version_number(&d->versions, i);
	const uint16_t index = number & (uint16_t)~FATHOM_VERSION_HIDDEN;

	if (s->bind == STB_LOCAL || !is_linked_type(s->type) || s->visibility == STV_HIDDEN ||
	    s->visibility == STV_INTERNAL)
		return FATHOM_DLSYM_NO;
	/* The value of an undefined function is its stub, which all modules use. */
	if (!s->value && s->section != FATHOM_SHN(SHN_ABS) && s->type != STT_TLS)
		return FATHOM_DLSYM_NO;
	if (s->section == SHN_UNDEF && s->type == STT_TLS)
		return FATHOM_DLSYM_NO;
	if (!d->versions.numbers.size || is_versioned || index <= FATHOM_VERSION_GLOBAL)
		return FATHOM_DLSYM_YES;
	return number & FATHOM_VERSION_HIDDEN ? FATHOM_DLSYM_NO : FATHOM_DLSYM_UNIQUE;
}

bool fathom_dynsym_find(const struct fathom_dynsym *d, struct fathom_str name,
			struct fathom_symbol *ret)
{
	struct fathom_hash_search s;
	struct fathom_symbol symbol;
	uint32_t number;

	if (!d->has_hash)
		return false;
	fathom_hash_search_init(&s, &d->hash, name);
	while (fathom_hash_search_next(&s, &number)) {
		if (number >= d->table.count)
			continue;
		fathom_symtab_get(&d->table, number, &symbol);
		if (symbol.section != SHN_UNDEF &&
		    str_equal(fathom_symtab_name(&d->table, &symbol), name)) {
			*ret = symbol;
			return true;
		}
	}
	return false;
}

/* Returns the string of entry number @n with @tag. */
static struct fathom_str entry_text(const struct fathom_dynsym *d, uint64_t tag, uint32_t n)
{
	const uint8_t word = fathom_image_address_size(&d->object->image);
	struct fathom_cursor c = cur_init(d->dynamic.bytes, d->object->image.swap);

	while (cur_left(&c)) {
		const uint64_t t = cur_uint(&c, word);
		const uint64_t value = cur_uint(&c, word);

		if (!cur_ok(&c) || t == DT_NULL)
			break;
		if (t == tag && n-- == 0)
			return fathom_bytes_str(d->table.strings, value);
	}
	return (struct fathom_str){ NULL, 0 };
}

struct fathom_str fathom_dynsym_needed(const struct fathom_dynsym *d, uint32_t n)
{
	return entry_text(d, DT_NEEDED, n);
}

struct fathom_str fathom_dynsym_soname(const struct fathom_dynsym *d)
{
	return entry_text(d, DT_SONAME, 0);
}
