/* SPDX-License-Identifier: MIT */
#include "host/file/fixups.h"

#include <stdlib.h>

#include "safe/base/sort.h"
#include "safe/elf/relocation.h"

struct entry {
	uint64_t addend;
	uint32_t symbol;
	uint32_t type;  /* 0 if packed (DT_RELR) */
	uint32_t table; /* section of its table */
};

struct fathom_fixups {
	const struct fathom_object *object;
	struct fathom_keyed *keyed; /* by address; the value is the index of the entry */
	struct entry *entries;
	size_t n;
	size_t cap;
	/* The last segment that was looked up: its svma and its bytes. */
	uint64_t low;
	struct fathom_bytes loaded;
	uint64_t looked_at; /* number of segments */
	uint64_t n_packed;  /* words of packed tables that may still be read */
};

/* Slots stand together and segments are few: a file that needs more is not read to its end. */
#define MAX_LOOKED_AT (UINT64_C(1) << 24)

struct type {
	uint16_t machine;
	uint16_t type;
	uint8_t kind;
};

static const struct type types[] = {
	{ EM_X86_64, R_X86_64_64, FATHOM_FIXUP_ADDRESS },
	{ EM_X86_64, R_X86_64_32, FATHOM_FIXUP_ADDRESS },
	{ EM_X86_64, R_X86_64_32S, FATHOM_FIXUP_ADDRESS },
	{ EM_X86_64, R_X86_64_GLOB_DAT, FATHOM_FIXUP_ADDRESS },
	{ EM_X86_64, R_X86_64_JUMP_SLOT, FATHOM_FIXUP_ADDRESS },
	{ EM_X86_64, R_X86_64_RELATIVE, FATHOM_FIXUP_BASE },
	{ EM_X86_64, R_X86_64_IRELATIVE, FATHOM_FIXUP_BASE },
	{ EM_X86_64, R_X86_64_PC32, FATHOM_FIXUP_PCREL },
	{ EM_X86_64, R_X86_64_PLT32, FATHOM_FIXUP_PCREL },
	{ EM_X86_64, R_X86_64_GOTPCREL, FATHOM_FIXUP_GOT },
	{ EM_X86_64, R_X86_64_GOTPCRELX, FATHOM_FIXUP_GOT },
	{ EM_X86_64, R_X86_64_REX_GOTPCRELX, FATHOM_FIXUP_GOT },
	{ EM_386, R_386_32, FATHOM_FIXUP_ADDRESS },
	{ EM_386, R_386_GLOB_DAT, FATHOM_FIXUP_ADDRESS },
	{ EM_386, R_386_JMP_SLOT, FATHOM_FIXUP_ADDRESS },
	{ EM_386, R_386_RELATIVE, FATHOM_FIXUP_BASE },
	{ EM_386, R_386_IRELATIVE, FATHOM_FIXUP_BASE },
	{ EM_386, R_386_PC32, FATHOM_FIXUP_PCREL },
	{ EM_386, R_386_PLT32, FATHOM_FIXUP_PCREL },
	{ EM_AARCH64, R_AARCH64_ABS64, FATHOM_FIXUP_ADDRESS },
	{ EM_AARCH64, R_AARCH64_GLOB_DAT, FATHOM_FIXUP_ADDRESS },
	{ EM_AARCH64, R_AARCH64_JUMP_SLOT, FATHOM_FIXUP_ADDRESS },
	{ EM_AARCH64, R_AARCH64_RELATIVE, FATHOM_FIXUP_BASE },
	{ EM_AARCH64, R_AARCH64_IRELATIVE, FATHOM_FIXUP_BASE },
	{ EM_AARCH64, R_AARCH64_CALL26, FATHOM_FIXUP_BRANCH },
	{ EM_AARCH64, R_AARCH64_JUMP26, FATHOM_FIXUP_BRANCH },
	{ EM_AARCH64, R_AARCH64_CONDBR19, FATHOM_FIXUP_BRANCH },
	{ EM_AARCH64, R_AARCH64_TSTBR14, FATHOM_FIXUP_BRANCH },
	{ EM_AARCH64, R_AARCH64_ADR_PREL_LO21, FATHOM_FIXUP_ADDRESS },
	{ EM_AARCH64, R_AARCH64_LD_PREL_LO19, FATHOM_FIXUP_ADDRESS },
	{ EM_AARCH64, R_AARCH64_ADR_PREL_PG_HI21, FATHOM_FIXUP_PAGE },
	{ EM_AARCH64, R_AARCH64_ADR_PREL_PG_HI21_NC, FATHOM_FIXUP_PAGE },
	{ EM_AARCH64, R_AARCH64_ADD_ABS_LO12_NC, FATHOM_FIXUP_LOW },
	{ EM_AARCH64, R_AARCH64_LDST8_ABS_LO12_NC, FATHOM_FIXUP_LOW },
	{ EM_AARCH64, R_AARCH64_LDST16_ABS_LO12_NC, FATHOM_FIXUP_LOW },
	{ EM_AARCH64, R_AARCH64_LDST32_ABS_LO12_NC, FATHOM_FIXUP_LOW },
	{ EM_AARCH64, R_AARCH64_LDST64_ABS_LO12_NC, FATHOM_FIXUP_LOW },
	{ EM_AARCH64, R_AARCH64_LDST128_ABS_LO12_NC, FATHOM_FIXUP_LOW },
	{ EM_AARCH64, R_AARCH64_ADR_GOT_PAGE, FATHOM_FIXUP_GOT_PAGE },
	{ EM_AARCH64, R_AARCH64_LD64_GOT_LO12_NC, FATHOM_FIXUP_GOT_LOW },
};

static uint8_t kind_of(uint16_t machine, uint32_t type)
{
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (types[i].machine == machine && types[i].type == type)
			return types[i].kind;
	return FATHOM_FIXUP_OTHER;
}

static bool is_packed(const struct fathom_object *o, uint32_t i)
{
	const struct fathom_section *s = &o->sections[i].header;

	return s->type == SHT_RELR && s->flags & SHF_ALLOC && o->image.type != ET_REL;
}

static bool is_table(const struct fathom_object *o, uint32_t i)
{
	const struct fathom_section *s = &o->sections[i].header;

	if (is_packed(o, i))
		return true;
	if (s->type != SHT_RELA && s->type != SHT_REL)
		return false;
	if (o->image.type != ET_REL)
		return s->flags & SHF_ALLOC;
	return s->info < o->n_sections && (o->sections[s->info].header.flags & SHF_ALLOC);
}

/* Returns the @size bytes of the file at @svma; none if the file has none there. */
static struct fathom_bytes slot_bytes(struct fathom_fixups *f, uint64_t svma, uint64_t size)
{
	if (svma >= f->low && range_inside(svma - f->low, size, f->loaded.size))
		return bytes_slice(f->loaded, svma - f->low, size);
	f->looked_at += UINT64_C(1) + f->object->image.phnum;
	if (f->looked_at > MAX_LOOKED_AT)
		f->cap = f->n;
	if (f->n == f->cap)
		return (struct fathom_bytes){ NULL, 0 };
	f->low = svma;
	f->loaded = fathom_image_loaded_at(&f->object->image, svma, &f->low);
	return bytes_slice(f->loaded, svma - f->low, size);
}

/* Returns the addend of a relocation that has none of its own: it is stored in place. */
static uint64_t addend_in_place(struct fathom_fixups *f, const struct fathom_section *table,
				uint64_t off)
{
	const struct fathom_object *o = f->object;
	const struct fathom_section *s;
	struct fathom_bytes word;

	if (o->image.type == ET_REL) {
		s = &o->sections[table->info].header;
		word = bytes_slice(fathom_image_section_bytes(&o->image, s), off, 4);
	} else {
		word = slot_bytes(f, off, 4);
	}
	return word.size ? (uint64_t)(int32_t)load_u32(word.data, o->image.swap) : 0;
}

static void add_table(struct fathom_fixups *f, uint32_t number)
{
	const struct fathom_object *o = f->object;
	const struct fathom_section *s = &o->sections[number].header;
	const uint64_t base = o->image.type == ET_REL ? o->sections[s->info].base : 0;
	struct fathom_cursor c = cur_init(fathom_image_section_bytes(&o->image, s), o->image.swap);

	while (cur_left(&c) && f->n < f->cap) {
		struct fathom_relocation r;

		fathom_relocation_read(&c, &o->image, s->type == SHT_RELA, &r);
		if (!cur_ok(&c))
			break;
		if (s->type == SHT_REL)
			r.addend = addend_in_place(f, s, r.off);
		if (f->n == f->cap)
			break;
		f->keyed[f->n] = (struct fathom_keyed){ base + r.off, f->n };
		f->entries[f->n++] = (struct entry){ r.addend, r.symbol, r.type, number };
	}
}

/* Adds the word at @svma, to which the loader adds the bias; nothing if it is not in the file. */
static void add_packed(struct fathom_fixups *f, uint32_t table, uint64_t svma)
{
	const struct fathom_image *image = &f->object->image;
	const uint8_t word = fathom_image_address_size(image);
	const struct fathom_bytes bytes = slot_bytes(f, svma, word);
	struct fathom_cursor c = cur_init(bytes, image->swap);

	if (!bytes.size || f->n == f->cap)
		return;
	f->keyed[f->n] = (struct fathom_keyed){ svma, f->n };
	f->entries[f->n++] = (struct entry){ cur_uint(&c, word), 0, 0, table };
}

/*
 * Adds a DT_RELR table (gABI, "Relative Relocation Table"). An even word is the address of a slot.
 * The other bits of an odd word tell, from the lowest on, which of the following words are slots.
 * Reads at most as many words as the file has, because tables may overlap.
 */
static void add_packed_table(struct fathom_fixups *f, uint32_t number)
{
	const struct fathom_object *o = f->object;
	const struct fathom_section *s = &o->sections[number].header;
	const uint8_t word = fathom_image_address_size(&o->image);
	struct fathom_cursor c = cur_init(fathom_image_section_bytes(&o->image, s), o->image.swap);
	uint64_t next = 0;

	for (; cur_left(&c) >= word && f->n < f->cap && f->n_packed; f->n_packed--) {
		const uint64_t value = cur_uint(&c, word);

		if (!(value & 1)) {
			add_packed(f, number, value);
			next = value + word;
			continue;
		}
		for (unsigned bit = 1; bit < 8u * word; bit++)
			if (value >> bit & 1)
				add_packed(f, number, next + (bit - 1) * (uint64_t)word);
		next += (8u * word - 1) * (uint64_t)word;
	}
}

/*
 * Returns a bound for the number of entries. Tables may overlap, but all together count for no more
 * bytes than the file has; packed entries are words of the file.
 */
static size_t count_entries(const struct fathom_object *o)
{
	const uint64_t most = o->image.bytes.size;
	const uint8_t word = fathom_image_address_size(&o->image);
	uint64_t packed = 0;
	uint64_t n = 0;

	for (uint32_t i = 1; i < o->n_sections; i++) {
		const uint64_t size =
			fathom_image_section_bytes(&o->image, &o->sections[i].header).size;

		if (is_packed(o, i))
			packed += size / word * 8 * word;
		else if (is_table(o, i))
			n += size;
	}
	return (size_t)((n < most ? n : most) / (2 * word) +
			(packed < most / word ? packed : most / word));
}

struct fathom_fixups *fathom_fixups_create(const struct fathom_object *o)
{
	struct fathom_fixups *f = calloc(1, sizeof *f);

	if (!f)
		return NULL;
	f->object = o;
	f->cap = count_entries(o);
	f->n_packed = o->image.bytes.size / fathom_image_address_size(&o->image);
	f->keyed = malloc((2 * f->cap + 1) * sizeof *f->keyed);
	f->entries = malloc((f->cap + 1) * sizeof *f->entries);
	if (!f->keyed || !f->entries) {
		fathom_fixups_destroy(f);
		return NULL;
	}
	for (uint32_t i = 1; i < o->n_sections; i++)
		if (is_packed(o, i))
			add_packed_table(f, i);
		else if (is_table(o, i))
			add_table(f, i);
	fathom_sort_keyed(f->keyed, f->keyed + f->cap, f->n);
	return f;
}

void fathom_fixups_destroy(struct fathom_fixups *f)
{
	if (!f)
		return;
	free(f->keyed);
	free(f->entries);
	free(f);
}

/* Reads the symbol of @e, and its address if it is defined here. */
static void read_symbol(const struct fathom_fixups *f, const struct entry *e,
			struct fathom_fixup *ret)
{
	const struct fathom_object *o = f->object;
	const uint32_t link = o->sections[e->table].header.link;
	struct fathom_symbol symbol;
	struct fathom_symtab t;
	struct fathom_str version;

	if (!e->symbol || link >= o->n_sections)
		return;
	t = fathom_object_symtab(o, link);
	if (e->symbol >= t.count)
		return;
	fathom_symtab_get(&t, e->symbol, &symbol);
	ret->name = fathom_symbol_base_name(fathom_symtab_name(&t, &symbol), &version);
	if (!ret->name.size)
		ret->name.data = NULL;
	/* Another library may define the symbol instead: then its address is not known here. */
	if (symbol.section == SHN_UNDEF || symbol.section >= o->n_sections)
		return;
	if (o->image.type != ET_REL && symbol.bind != STB_LOCAL)
		return;
	ret->value = symbol.value;
	if (o->image.type == ET_REL)
		ret->value += o->sections[symbol.section].base;
	ret->defined = true;
}

bool fathom_fixups_find(const struct fathom_fixups *f, uint64_t low, uint64_t high, size_t *i,
			struct fathom_fixup *ret)
{
	const struct entry *e;

	if (!*i)
		*i = FATHOM_BISECT(f->n, k, f->keyed[k].key < low);
	if (*i >= f->n || f->keyed[*i].key >= high)
		return false;
	e = &f->entries[f->keyed[*i].value];
	*ret = (struct fathom_fixup){ .svma = f->keyed[*i].key,
				      .addend = e->addend,
				      .kind = FATHOM_FIXUP_BASE };
	if (!is_packed(f->object, e->table))
		ret->kind = kind_of(f->object->image.machine, e->type);
	read_symbol(f, e, ret);
	return true;
}
