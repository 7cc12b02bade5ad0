/* SPDX-License-Identifier: MIT */
/*
 * Relocates sections of ET_REL files. Handles only what compilers emit in debug and unwind sections
 * (absolute, pc-relative, and the add / subtract pairs of RISC-V and LoongArch), per the psABI of
 * each machine.
 */
#include "host/file/object.h"
#include "safe/base/cursor.h"
#include "safe/base/limits.h"
#include "safe/elf/relocation.h"
#include "safe/elf/symtab.h"

/* MSP430X numbers its relocations differently; this is not a machine's number. */
#define EM_MSP430X    0xff00
#define MSP430_MACH   0xffu /* of the header's flags */
#define MSP430_MACH_X 45u

enum action {
	ACT_UNKNOWN,
	ACT_NONE,
	ACT_SET,
	ACT_PCREL,
	ACT_SECREL,
	ACT_ADD,
	ACT_SUB,
	ACT_SET6,
	ACT_SUB6,
	ACT_SET_ULEB,
	ACT_SUB_ULEB
};

struct rule {
	uint16_t machine;
	uint16_t type;
	uint8_t action;
	uint8_t size;
};

static const struct rule rules[] = {
	{ EM_X86_64, R_X86_64_64, ACT_SET, 8 },
	{ EM_X86_64, R_X86_64_32, ACT_SET, 4 },
	{ EM_X86_64, R_X86_64_32S, ACT_SET, 4 },
	{ EM_X86_64, R_X86_64_16, ACT_SET, 2 },
	{ EM_X86_64, R_X86_64_8, ACT_SET, 1 },
	{ EM_X86_64, R_X86_64_PC32, ACT_PCREL, 4 },
	{ EM_X86_64, R_X86_64_PLT32, ACT_PCREL, 4 },
	{ EM_X86_64, R_X86_64_PC64, ACT_PCREL, 8 },
	{ EM_X86_64, R_X86_64_DTPOFF32, ACT_NONE, 4 },
	{ EM_X86_64, R_X86_64_DTPOFF64, ACT_NONE, 8 },
	{ EM_386, R_386_32, ACT_SET, 4 },
	{ EM_386, R_386_16, ACT_SET, 2 },
	{ EM_386, R_386_8, ACT_SET, 1 },
	{ EM_386, R_386_PC32, ACT_PCREL, 4 },
	{ EM_386, R_386_TLS_LDO_32, ACT_NONE, 4 },
	{ EM_AARCH64, R_AARCH64_ABS64, ACT_SET, 8 },
	{ EM_AARCH64, R_AARCH64_ABS32, ACT_SET, 4 },
	{ EM_AARCH64, R_AARCH64_ABS16, ACT_SET, 2 },
	{ EM_AARCH64, R_AARCH64_PREL64, ACT_PCREL, 8 },
	{ EM_AARCH64, R_AARCH64_PREL32, ACT_PCREL, 4 },
	{ EM_AARCH64, R_AARCH64_TLS_DTPREL, ACT_NONE, 8 },
	{ EM_ARM, R_ARM_ABS32, ACT_SET, 4 },
	{ EM_ARM, R_ARM_REL32, ACT_PCREL, 4 },
	{ EM_ARM, R_ARM_TLS_LDO32, ACT_NONE, 4 },
	{ EM_PPC64, R_PPC64_ADDR64, ACT_SET, 8 },
	{ EM_PPC64, R_PPC64_ADDR32, ACT_SET, 4 },
	{ EM_PPC64, R_PPC64_TOC, ACT_NONE, 8 }, /* of descriptors: no code */
	{ EM_PPC64, R_PPC64_REL32, ACT_PCREL, 4 },
	{ EM_PPC64, R_PPC64_REL64, ACT_PCREL, 8 },
	{ EM_PPC64, R_PPC64_DTPREL64, ACT_NONE, 8 },
	{ EM_PPC, R_PPC_ADDR32, ACT_SET, 4 },
	{ EM_PPC, R_PPC_UADDR32, ACT_SET, 4 },
	{ EM_PPC, R_PPC_REL32, ACT_PCREL, 4 },
	{ EM_PPC, R_PPC_DTPREL32, ACT_NONE, 4 },
	{ EM_S390, R_390_64, ACT_SET, 8 },
	{ EM_S390, R_390_32, ACT_SET, 4 },
	{ EM_S390, R_390_PC32, ACT_PCREL, 4 },
	{ EM_S390, R_390_PC64, ACT_PCREL, 8 },
	{ EM_S390, R_390_TLS_LDO64, ACT_NONE, 8 },
	{ EM_SPARCV9, R_SPARC_64, ACT_SET, 8 },
	{ EM_SPARCV9, R_SPARC_UA64, ACT_SET, 8 },
	{ EM_SPARCV9, R_SPARC_32, ACT_SET, 4 },
	{ EM_SPARCV9, R_SPARC_UA32, ACT_SET, 4 },
	{ EM_SPARCV9, R_SPARC_DISP32, ACT_PCREL, 4 },
	{ EM_SPARC, R_SPARC_8, ACT_SET, 1 },
	{ EM_SPARC, R_SPARC_16, ACT_SET, 2 },
	{ EM_SPARC, R_SPARC_32, ACT_SET, 4 },
	{ EM_SPARC, R_SPARC_UA16, ACT_SET, 2 },
	{ EM_SPARC, R_SPARC_UA32, ACT_SET, 4 },
	{ EM_SPARC, R_SPARC_DISP32, ACT_PCREL, 4 },
	{ EM_SPARC, R_SPARC_TLS_DTPOFF32, ACT_NONE, 4 },
	{ EM_MIPS, R_MIPS_32, ACT_SET, 4 },
	{ EM_MIPS, R_MIPS_64, ACT_SET, 8 },
	{ EM_MIPS, 248 /* R_MIPS_PC32 */, ACT_PCREL, 4 },
	{ EM_RISCV, R_RISCV_64, ACT_SET, 8 },
	{ EM_RISCV, R_RISCV_32, ACT_SET, 4 },
	{ EM_RISCV, R_RISCV_RELAX, ACT_NONE, 0 },
	{ EM_RISCV, R_RISCV_ADD8, ACT_ADD, 1 },
	{ EM_RISCV, R_RISCV_ADD16, ACT_ADD, 2 },
	{ EM_RISCV, R_RISCV_ADD32, ACT_ADD, 4 },
	{ EM_RISCV, R_RISCV_ADD64, ACT_ADD, 8 },
	{ EM_RISCV, R_RISCV_SUB8, ACT_SUB, 1 },
	{ EM_RISCV, R_RISCV_SUB16, ACT_SUB, 2 },
	{ EM_RISCV, R_RISCV_SUB32, ACT_SUB, 4 },
	{ EM_RISCV, R_RISCV_SUB64, ACT_SUB, 8 },
	{ EM_RISCV, R_RISCV_SET6, ACT_SET6, 1 },
	{ EM_RISCV, R_RISCV_SUB6, ACT_SUB6, 1 },
	{ EM_RISCV, R_RISCV_SET8, ACT_SET, 1 },
	{ EM_RISCV, R_RISCV_SET16, ACT_SET, 2 },
	{ EM_RISCV, R_RISCV_SET32, ACT_SET, 4 },
	{ EM_RISCV, R_RISCV_32_PCREL, ACT_PCREL, 4 },
	{ EM_RISCV, 60 /* R_RISCV_SET_ULEB128 */, ACT_SET_ULEB, 1 },
	{ EM_RISCV, 61 /* R_RISCV_SUB_ULEB128 */, ACT_SUB_ULEB, 1 },
	{ EM_LOONGARCH, R_LARCH_32, ACT_SET, 4 },
	{ EM_LOONGARCH, R_LARCH_64, ACT_SET, 8 },
	{ EM_LOONGARCH, 100 /* R_LARCH_RELAX */, ACT_NONE, 0 },
	{ EM_LOONGARCH, R_LARCH_ADD8, ACT_ADD, 1 },
	{ EM_LOONGARCH, R_LARCH_ADD16, ACT_ADD, 2 },
	{ EM_LOONGARCH, R_LARCH_ADD32, ACT_ADD, 4 },
	{ EM_LOONGARCH, R_LARCH_ADD64, ACT_ADD, 8 },
	{ EM_LOONGARCH, R_LARCH_SUB8, ACT_SUB, 1 },
	{ EM_LOONGARCH, R_LARCH_SUB16, ACT_SUB, 2 },
	{ EM_LOONGARCH, R_LARCH_SUB32, ACT_SUB, 4 },
	{ EM_LOONGARCH, R_LARCH_SUB64, ACT_SUB, 8 },
	{ EM_LOONGARCH, 99 /* R_LARCH_32_PCREL */, ACT_PCREL, 4 },
	{ EM_68K, R_68K_32, ACT_SET, 4 },
	{ EM_68K, R_68K_16, ACT_SET, 2 },
	{ EM_68K, R_68K_8, ACT_SET, 1 },
	{ EM_68K, R_68K_PC32, ACT_PCREL, 4 },
	{ EM_68K, R_68K_PC16, ACT_PCREL, 2 },
	{ EM_68K, R_68K_TLS_DTPREL32, ACT_NONE, 4 },
	{ EM_68K, R_68K_TLS_LDO32, ACT_NONE, 4 },
	{ EM_IA_64, R_IA64_DIR32MSB, ACT_SET, 4 },
	{ EM_IA_64, R_IA64_DIR32LSB, ACT_SET, 4 },
	{ EM_IA_64, R_IA64_DIR64MSB, ACT_SET, 8 },
	{ EM_IA_64, R_IA64_DIR64LSB, ACT_SET, 8 },
	{ EM_IA_64, R_IA64_PCREL32MSB, ACT_PCREL, 4 },
	{ EM_IA_64, R_IA64_PCREL32LSB, ACT_PCREL, 4 },
	{ EM_IA_64, R_IA64_PCREL64MSB, ACT_PCREL, 8 },
	{ EM_IA_64, R_IA64_PCREL64LSB, ACT_PCREL, 8 },
	{ EM_IA_64, R_IA64_SECREL32MSB, ACT_SECREL, 4 },
	{ EM_IA_64, R_IA64_SECREL32LSB, ACT_SECREL, 4 },
	{ EM_IA_64, R_IA64_SECREL64MSB, ACT_SECREL, 8 },
	{ EM_IA_64, R_IA64_SECREL64LSB, ACT_SECREL, 8 },
	{ EM_IA_64, R_IA64_DTPREL64LSB, ACT_NONE, 8 },
	{ EM_IA_64, R_IA64_DTPREL64MSB, ACT_NONE, 8 },
	{ EM_CSKY, R_CKCORE_ADDR32, ACT_SET, 4 },
	{ EM_CSKY, R_CKCORE_PCREL32, ACT_PCREL, 4 },
	{ EM_AVR, 1 /* R_AVR_32 */, ACT_SET, 4 },
	{ EM_AVR, 4 /* R_AVR_16 */, ACT_SET, 2 },
	{ EM_AVR, 26 /* R_AVR_8 */, ACT_SET, 1 },
	/* The difference is stored already: these are for linkers that shorten the code between. */
	{ EM_AVR, 30 /* R_AVR_DIFF8 */, ACT_NONE, 1 },
	{ EM_AVR, 31 /* R_AVR_DIFF16 */, ACT_NONE, 2 },
	{ EM_AVR, 32 /* R_AVR_DIFF32 */, ACT_NONE, 4 },
	{ EM_AVR, 36 /* R_AVR_32_PCREL */, ACT_PCREL, 4 },
	{ EM_MSP430, 1 /* R_MSP430_32 */, ACT_SET, 4 },
	{ EM_MSP430, 3 /* R_MSP430_16 */, ACT_SET, 2 },
	{ EM_MSP430, 5 /* R_MSP430_16_BYTE */, ACT_SET, 2 },
	{ EM_MSP430, 9 /* R_MSP430_8 */, ACT_SET, 1 },
	{ EM_MSP430X, 1 /* R_MSP430_ABS32 */, ACT_SET, 4 },
	{ EM_MSP430X, 2 /* R_MSP430_ABS16 */, ACT_SET, 2 },
	{ EM_MSP430X, 3 /* R_MSP430_ABS8 */, ACT_SET, 1 },
	{ EM_MSP430X, 15 /* R_MSP430X_ABS16 */, ACT_SET, 2 },
	{ EM_HEXAGON, 6 /* R_HEX_32 */, ACT_SET, 4 },
	{ EM_HEXAGON, 7 /* R_HEX_16 */, ACT_SET, 2 },
	{ EM_HEXAGON, 8 /* R_HEX_8 */, ACT_SET, 1 },
	{ EM_HEXAGON, 31 /* R_HEX_32_PCREL */, ACT_PCREL, 4 },
	{ EM_HEXAGON, 66 /* R_HEX_DTPREL_32 */, ACT_NONE, 4 },
	{ EM_LANAI, 4 /* R_LANAI_32 */, ACT_SET, 4 },
	{ EM_BPF, 2 /* R_BPF_64_ABS64 */, ACT_SET, 8 },
	{ EM_BPF, 3 /* R_BPF_64_ABS32 */, ACT_SET, 4 },
	{ EM_BPF, 4 /* R_BPF_64_NODYLD32 */, ACT_SET, 4 },
	{ EM_VE, 1 /* R_VE_REFLONG */, ACT_SET, 4 },
	{ EM_VE, 2 /* R_VE_REFQUAD */, ACT_SET, 8 },
	{ EM_VE, 3 /* R_VE_SREL32 */, ACT_PCREL, 4 },
};

/* Returns whether @image is for MSP430X. GNU's tools set a flag, TI's set no OS ABI. */
static bool is_msp430x(const struct fathom_image *image)
{
	return (image->flags & MSP430_MACH) == MSP430_MACH_X ||
	       image->bytes.data[EI_OSABI] == ELFOSABI_NONE;
}

/* Returns the machine that numbers the relocations of @image. */
static uint16_t machine_of(const struct fathom_image *image)
{
	switch (image->machine) {
	case EM_SPARC32PLUS:
		return EM_SPARC;
	case EM_MSP430:
		return is_msp430x(image) ? EM_MSP430X : EM_MSP430;
	default:
		return image->machine;
	}
}

static struct rule rule_for(uint16_t machine, uint32_t type)
{
	if (!type) /* R_*_NONE is 0 on every machine above */
		return (struct rule){ machine, 0, ACT_NONE, 0 };
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		if (rules[i].machine == machine && rules[i].type == type)
			return rules[i];
	return (struct rule){ machine, 0, ACT_UNKNOWN, 0 };
}

static uint64_t load_uint(const uint8_t *p, unsigned size, bool swap)
{
	struct fathom_cursor c = cur_init((struct fathom_bytes){ p, size }, swap);

	return cur_uint(&c, size);
}

static void store_uint(uint8_t *p, unsigned size, bool swap, uint64_t value)
{
	const bool little = (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) != swap;

	for (unsigned i = 0; i < size; i++)
		p[little ? i : size - 1 - i] = (uint8_t)(value >> (8 * i));
}

/* Rewrites the LEB128 at @p at its present length, to which the assembler has padded it. */
static void add_uleb(uint8_t *p, uint64_t room, uint64_t delta, bool set)
{
	struct fathom_cursor c = cur_init((struct fathom_bytes){ p, room }, false);
	uint64_t value = set ? delta : cur_uleb(&c) - delta;
	uint64_t i = 0;

	while (i < room && (p[i] & 0x80)) {
		p[i++] = (uint8_t)(0x80 | (value & 0x7f));
		value >>= 7;
	}
	if (i < room)
		p[i] = (uint8_t)(value & 0x7f);
}

/*
 * Finds the address of symbol @i and of its section. FATHOM_END if it is defined elsewhere: then
 * the place stays as it is; FATHOM_E_CORRUPT if its section is one that the file does not have, or
 * does not tell.
 */
static fathom_err symbol_address(const struct fathom_object *o, const struct fathom_symtab *symbols,
				 uint32_t i, uint64_t *ret, uint64_t *ret_section)
{
	struct fathom_symbol s;

	if (i >= symbols->count)
		return i ? FATHOM_E_CORRUPT : FATHOM_END;
	fathom_symtab_get(symbols, i, &s);
	if (s.section == FATHOM_SHN(SHN_ABS)) {
		*ret = s.value;
		*ret_section = 0;
		return FATHOM_OK;
	}
	if (s.section == SHN_UNDEF)
		return FATHOM_END;
	if (s.section >= o->n_sections)
		return s.section < FATHOM_SHN(SHN_LORESERVE) || s.section == FATHOM_SHN(SHN_XINDEX)
			       ? FATHOM_E_CORRUPT
			       : FATHOM_END;
	*ret_section = o->sections[s.section].base;
	*ret = s.value + *ret_section;
	return FATHOM_OK;
}

static void apply(const struct rule *rule, uint8_t *p, uint64_t room, uint64_t place,
		  uint64_t value, const struct fathom_relocation *r, bool rela, bool swap)
{
	const uint64_t old = load_uint(p, rule->size, swap);

	if (!rela)
		value += rule->size == 4 ? (uint64_t)(int32_t)old : old;
	else
		value += r->addend;
	switch (rule->action) {
	case ACT_SET:
	case ACT_SECREL: /* @value is relative to its section already */
		store_uint(p, rule->size, swap, value);
		break;
	case ACT_PCREL:
		store_uint(p, rule->size, swap, value - place);
		break;
	case ACT_ADD:
		store_uint(p, rule->size, swap, old + value);
		break;
	case ACT_SUB:
		store_uint(p, rule->size, swap, old - value);
		break;
	case ACT_SET6:
		*p = (uint8_t)((*p & 0xc0) | (value & 0x3f));
		break;
	case ACT_SUB6:
		*p = (uint8_t)((*p & 0xc0) | (((*p & 0x3f) - value) & 0x3f));
		break;
	case ACT_SET_ULEB:
	case ACT_SUB_ULEB:
		add_uleb(p, room, value, rule->action == ACT_SET_ULEB);
		break;
	default:
		break;
	}
}

/* The relocation of one section, by all of its tables. */
struct relocating {
	struct fathom_object *object;
	uint32_t section; /* being relocated */
	uint8_t *bytes;   /* the copy */
	uint64_t size;
	struct fathom_symtab symbols; /* of the previous table */
	uint32_t symtab;              /* section of symbols */
	uint32_t n_symtabs;           /* how often symbols changed */
	uint64_t left; /* bytes that further tables may have: all together no more than the file */
};

/* Sets r->symbols to those that table @t is linked to. */
static fathom_err use_symbols(struct relocating *r, uint32_t t, struct fathom_errinfo *reterr)
{
	const struct fathom_object *o = r->object;
	const uint32_t symtab = o->sections[t].header.link;

	if (r->n_symtabs && r->symtab == symtab)
		return FATHOM_OK;
	if (r->n_symtabs++ == FATHOM_MAX_RELOCATION_SYMTABS)
		return fathom_object_fail(o, t, FATHOM_E_LIMIT, 0,
					  "relocations that use many symbol tables", reterr);
	if (symtab >= o->n_sections || fathom_object_is_cut(o, symtab))
		return fathom_object_fail(o, t, FATHOM_E_CORRUPT, 0,
					  "relocations whose symbol table is not in the file",
					  reterr);
	r->symtab = symtab;
	r->symbols = fathom_object_symtab(o, symtab);
	return FATHOM_OK;
}

/* Checks the header of table @t. */
static fathom_err check_table(struct relocating *to, uint32_t t, struct fathom_errinfo *reterr)
{
	const struct fathom_object *o = to->object;
	const struct fathom_section *table = &o->sections[t].header;

	if (table->info >= o->n_sections)
		return fathom_object_fail(o, t, FATHOM_E_CORRUPT, 0,
					  "relocations of a section that is not in the file",
					  reterr);
	if (fathom_object_is_cut(o, t))
		return fathom_object_fail(o, t, FATHOM_E_CORRUPT, 0,
					  "the section reaches past the end of the file", reterr);
	if (table->size > to->left)
		return fathom_object_fail(o, t, FATHOM_E_LIMIT, 0, "tables of relocations overlap",
					  reterr);
	to->left -= table->size;
	return use_symbols(to, t, reterr);
}

/* Applies the relocations of table @t. */
static fathom_err apply_table(struct relocating *to, uint32_t t, struct fathom_errinfo *reterr)
{
	const struct fathom_object *o = to->object;
	const struct fathom_image *image = &o->image;
	const struct fathom_section *table = &o->sections[t].header;
	const bool rela = table->type == SHT_RELA;
	struct fathom_cursor c = cur_init(fathom_image_section_bytes(image, table), image->swap);
	const uint8_t *start = c.p;
	struct rule rule = { 0 };
	uint32_t rule_type = UINT32_MAX;

	FATHOM_TRY(check_table(to, t, reterr));
	while (cur_left(&c)) {
		const uint64_t at = (uint64_t)(c.p - start);
		struct fathom_relocation r;
		uint64_t value;
		uint64_t section;
		fathom_err err;

		fathom_relocation_read(&c, image, rela, &r);
		if (!cur_ok(&c))
			return fathom_object_fail(o, t, FATHOM_E_CORRUPT, at,
						  "damaged table of relocations", reterr);
		if (r.type != rule_type) {
			rule = rule_for(machine_of(image), r.type);
			rule_type = r.type;
		}
		if (rule.action == ACT_UNKNOWN)
			return fathom_object_fail(o, t, FATHOM_E_UNSUPPORTED, at,
						  "unknown type of relocation", reterr);
		if (!range_inside(r.off, rule.size, to->size))
			return fathom_object_fail(o, t, FATHOM_E_CORRUPT, at,
						  "relocation outside its section", reterr);
		if (rule.action == ACT_NONE)
			continue;
		err = symbol_address(o, &to->symbols, r.symbol, &value, &section);
		if (err < 0)
			return fathom_object_fail(
				o, t, err, at, "relocation by a symbol whose section is not known",
				reterr);
		if (err)
			continue;
		value -= rule.action == ACT_SECREL ? section : 0;
		apply(&rule, to->bytes + r.off, to->size - r.off,
		      o->sections[to->section].base + r.off, value, &r, rela, image->swap);
	}
	return FATHOM_OK;
}

/* Returns whether @table is ".rel" or ".rela" followed by @section. */
static bool is_named_after(struct fathom_str table, struct fathom_str section)
{
	const size_t prefix = table.data && str_starts(table, ".rela") ? 5 : 4;

	return table.data && section.data && str_starts(table, ".rel") &&
	       table.size == section.size + prefix &&
	       memcmp(table.data + prefix, section.data, section.size) == 0;
}

bool fathom_object_relocates(const struct fathom_object *o, uint32_t t, uint32_t i)
{
	const struct fathom_section *table = &o->sections[t].header;

	if (table->type != SHT_RELA && table->type != SHT_REL)
		return false;
	return table->info == i || (table->info >= o->n_sections &&
				    is_named_after(table->name, o->sections[i].header.name));
}

fathom_err fathom_object_relocate(struct fathom_object *o, uint32_t i, uint8_t *bytes,
				  uint64_t size, struct fathom_errinfo *reterr)
{
	struct relocating to = {
		.object = o,
		.section = i,
		.bytes = bytes,
		.size = size,
		.left = o->image.bytes.size,
	};

	for (uint32_t t = 1; t < o->n_sections; t++)
		if (fathom_object_relocates(o, t, i))
			FATHOM_TRY(apply_table(&to, t, reterr));
	return FATHOM_OK;
}
