/* SPDX-License-Identifier: MIT */
#include "safe/elf/symtab.h"

#include "fathom/answer.h"
#include "safe/base/cursor.h"

static uint64_t entry_size(bool is64)
{
	return is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
}

struct fathom_symtab fathom_symtab_init(const struct fathom_image *image,
					struct fathom_bytes entries, uint64_t entsize,
					struct fathom_bytes strings, struct fathom_bytes xindex)
{
	const uint64_t expected = entry_size(image->is64);
	const uint64_t count = entsize == expected ? entries.size / expected : 0;

	return (struct fathom_symtab){
		.entries = entries,
		.strings = strings,
		.xindex = xindex,
		.count = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX,
		.machine = image->machine,
		.is64 = image->is64,
		.swap = image->swap,
	};
}

void fathom_symtab_fetch(const struct fathom_symtab *t, uint32_t i)
{
	if (i < t->count)
		__builtin_prefetch(t->entries.data + (uint64_t)i * entry_size(t->is64));
}

/* In both classes the name is the first word of an entry. */
void fathom_symtab_fetch_name(const struct fathom_symtab *t, uint32_t i)
{
	uint32_t name;

	if (i >= t->count)
		return;
	name = load_u32(t->entries.data + (uint64_t)i * entry_size(t->is64), t->swap);
	if (name < t->strings.size)
		__builtin_prefetch(t->strings.data + name);
}

void fathom_symtab_get(const struct fathom_symtab *t, uint32_t i, struct fathom_symbol *ret)
{
	uint8_t info;
	uint8_t other;

	if (t->is64) {
		const uint8_t *p = t->entries.data + (uint64_t)i * sizeof(Elf64_Sym);

		ret->name = load_u32(p, t->swap);
		info = p[4];
		other = p[5];
		ret->section = load_u16(p + 6, t->swap);
		ret->value = load_u64(p + 8, t->swap);
		ret->size = load_u64(p + 16, t->swap);
	} else {
		const uint8_t *p = t->entries.data + (uint64_t)i * sizeof(Elf32_Sym);

		ret->name = load_u32(p, t->swap);
		ret->value = load_u32(p + 4, t->swap);
		ret->size = load_u32(p + 8, t->swap);
		info = p[12];
		other = p[13];
		ret->section = load_u16(p + 14, t->swap);
	}
	ret->type = info & 0xf;
	ret->bind = info >> 4;
	ret->visibility = other & 3;
	if (ret->section == SHN_XINDEX) {
		const struct fathom_bytes x = bytes_slice(t->xindex, (uint64_t)i * 4, 4);

		ret->section = x.size ? load_u32(x.data, t->swap) : FATHOM_SHN(SHN_XINDEX);
	} else if (ret->section >= SHN_LORESERVE) {
		ret->section = FATHOM_SHN(ret->section);
	}
	if (ret->type != STT_TLS && ret->section != SHN_UNDEF &&
	    ret->section < FATHOM_SHN(SHN_LORESERVE))
		ret->value += t->bias;
	/* Bit 0 of a Thumb function's address selects the instruction set. */
	if (t->machine == EM_ARM && ret->type == STT_FUNC)
		ret->value &= ~(uint64_t)1;
	/*
	 * Replaces a tag in the top byte (variables under HWASan) by the sign of the address: the
	 * kernel's addresses start with ones.
	 */
	if (t->machine == EM_AARCH64 && ret->value >> 56)
		ret->value = (ret->value & UINT64_C(1) << 55)
				     ? ret->value | UINT64_C(0xff) << 56
				     : ret->value & ~(UINT64_C(0xff) << 56);
}

uint32_t fathom_symtab_covering(const struct fathom_symtab *t, uint32_t i, uint64_t svma)
{
	const uint8_t *p = t->entries.data + (uint64_t)i * sizeof(Elf64_Sym);
	struct fathom_symbol s;

	/* Native 64-bit entries, read in place: all of a file take a fraction of a millisecond. */
	if (t->is64 && !t->swap) {
		svma -= t->bias;
		for (; i < t->count; i++, p += sizeof(Elf64_Sym)) {
			const uint64_t value = load_u64(p + 8, false);

			if (svma - value < load_u64(p + 16, false) && svma >= value)
				break;
		}
		return i;
	}
	for (; i < t->count; i++) {
		fathom_symtab_get(t, i, &s);
		if (svma - s.value < s.size && svma >= s.value)
			break;
	}
	return i;
}

struct fathom_str fathom_symtab_name(const struct fathom_symtab *t, const struct fathom_symbol *s)
{
	struct fathom_str name = fathom_bytes_str(t->strings, s->name);

	if (!name.size)
		name.data = NULL;
	return name;
}

/* Bytes of a name that tell what kind of name it is. */
#define NAME_START 16

/* Returns whether a name that starts with @first may be a mark, which is never served. */
static bool may_be_mark(char first)
{
	return first == '.' || first == 'L' || first == '$';
}

struct fathom_str fathom_symtab_name_start(const struct fathom_symtab *t,
					   const struct fathom_symbol *s)
{
	const struct fathom_bytes rest = bytes_from(t->strings, s->name);
	struct fathom_str name = { NULL, 0 };

	if (!rest.size || !rest.data[0])
		return name;
	name.data = (const char *)rest.data;
	name.size = 1;
	if (!may_be_mark(name.data[0]))
		return name;
	while (name.size < NAME_START && name.size < rest.size && rest.data[name.size])
		name.size++;
	return name;
}

/*
 * The rules: ARM ELF for the Arm Architecture 4.5.5; AAELF64 5.5; RISC-V psABI "Mapping Symbol";
 * for C-SKY what its assemblers write.
 */
static bool is_mapping_symbol(uint16_t machine, struct fathom_str name)
{
	if (name.size < 2 || name.data[0] != '$')
		return false;
	switch (machine) {
	case EM_ARM:
	case EM_AARCH64:
		return (name.size == 2 || name.data[2] == '.') &&
		       (name.data[1] == 'a' || name.data[1] == 'd' || name.data[1] == 't' ||
			name.data[1] == 'x');
	case EM_RISCV:
		return name.data[1] == 'x' || name.data[1] == 'd';
	case EM_CSKY:
		return name.data[1] == 't' || name.data[1] == 'd';
	default:
		return false;
	}
}

/* Labels that assemblers and annotating plug-ins leave behind. No program uses them as names. */
static bool is_tool_mark(struct fathom_str name)
{
	if (!may_be_mark(name.data[0]))
		return false;
	if (str_starts(name, ".L") || str_starts(name, ".annobin"))
		return true;
	for (uint32_t i = 0; i < name.size && i < NAME_START; i++)
		if (name.data[i] == '\001' || name.data[i] == '\002')
			return true; /* GNU as local labels: L0^A, 1^B2 */
	return false;
}

bool fathom_symbol_is_namable(const struct fathom_symtab *t, const struct fathom_symbol *s,
			      struct fathom_str name)
{
	if (s->section == SHN_UNDEF || s->section >= FATHOM_SHN(SHN_LORESERVE))
		return false;
	if (s->type != STT_NOTYPE && s->type != STT_OBJECT && s->type != STT_FUNC &&
	    s->type != STT_GNU_IFUNC)
		return false;
	if (!name.data || is_tool_mark(name))
		return false;
	return s->type != STT_NOTYPE || !is_mapping_symbol(t->machine, name);
}

bool fathom_symbol_is_mapping(const struct fathom_symtab *t, const struct fathom_symbol *s)
{
	return s->type == STT_NOTYPE &&
	       is_mapping_symbol(t->machine, fathom_symtab_name_start(t, s));
}

bool fathom_symbol_is_fake(const struct fathom_symtab *t, const struct fathom_symbol *s)
{
	return t->machine == EM_RISCV && s->type == STT_NOTYPE &&
	       str_is(fathom_symtab_name_start(t, s), ".L0 ");
}

struct fathom_str fathom_symbol_base_name(struct fathom_str name, struct fathom_str *ret_version)
{
	/* A '@' at the start belongs to the name. */
	const uint32_t at = fathom_str_find(name, 1, '@');

	*ret_version = (struct fathom_str){ NULL, 0 };
	if (at < name.size) {
		*ret_version = (struct fathom_str){ name.data + at, name.size - at };
		name.size = at;
	}
	return name;
}

bool fathom_symtab_is_verbatim(const struct fathom_symtab *t)
{
	return t->source == FATHOM_SOURCE_JITDUMP || t->source == FATHOM_SOURCE_PERF_MAP ||
	       t->source == FATHOM_SOURCE_GDB_JIT || t->source == FATHOM_SOURCE_REGISTERED;
}

struct fathom_str fathom_symtab_base_name(const struct fathom_symtab *t, struct fathom_str name,
					  struct fathom_str *ret_version)
{
	*ret_version = (struct fathom_str){ NULL, 0 };
	return fathom_symtab_is_verbatim(t) ? name : fathom_symbol_base_name(name, ret_version);
}

static unsigned rank_type(const struct fathom_symbol *s)
{
	return s->type == STT_NOTYPE ? 1 : 0;
}

static unsigned rank_exported(const struct fathom_symbol *s)
{
	return s->bind == STB_LOCAL ? 1 : 0;
}

bool fathom_symbol_is_mangled(struct fathom_str name)
{
	const char c = name.size > 2 ? name.data[2] : '\0';
	const bool digit = c >= '0' && c <= '9';

	return str_starts(name, "_Z") ||
	       (str_starts(name, "_R") && (digit || (c >= 'A' && c <= 'Z'))) ||
	       (str_starts(name, "_D") && digit);
}

/*
 * Counts the underscores that mark a name as internal. The prefix of a mangled name is no such
 * mark, nor is the "__vdso_" of the names that the kernel documents for its vDSO.
 */
static unsigned rank_underscores(struct fathom_str name)
{
	unsigned n = 0;

	if (fathom_symbol_is_mangled(name) || str_starts(name, "__vdso_"))
		return 0;
	while (n < name.size && name.data[n] == '_')
		n++;
	return n + (str_starts(name, "_IO_") ? 1 : 0);
}

bool fathom_symbol_preferred(const struct fathom_contender *a, const struct fathom_contender *b)
{
	const uint32_t shorter = a->name.size < b->name.size ? a->name.size : b->name.size;
	int order = u64_compare(rank_type(&a->symbol), rank_type(&b->symbol));

	if (!order)
		order = u64_compare(!a->symbol.size, !b->symbol.size);
	if (!order)
		order = u64_compare(rank_exported(&a->symbol), rank_exported(&b->symbol));
	if (!order)
		order = u64_compare(rank_underscores(a->name), rank_underscores(b->name));
	if (!order)
		order = u64_compare(a->symbol.bind == STB_WEAK, b->symbol.bind == STB_WEAK);
	if (!order)
		order = u64_compare(!a->default_version, !b->default_version);
	if (!order)
		order = u64_compare(a->name.size, b->name.size);
	if (!order)
		order = memcmp(a->name.data, b->name.data, shorter);
	return order < 0;
}
