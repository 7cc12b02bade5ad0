/* SPDX-License-Identifier: MIT */
#include "host/sites/raw_got_slots.h"

#include <stdlib.h>
#include <string.h>

/* x86-64: call *slot(%rip), jmp *slot(%rip) */
enum { BY_WORD = 0xff, CALLS = 0x15, JUMPS = 0x25 };

/* The most bytes of a name: those of real ones are a few thousand. */
#define MOST_NAME 65536

/* The most references to slots that are looked at: after them, all slots count as taken. */
#define MOST_REFERENCES (1u << 22)

/* A slot, and what was seen of it in the code. */
struct seen_slot {
	struct fathom_raw_got_slot slot;
	bool is_called; /* by other code than its stub */
	bool is_taken;
};

/* The search in one module. */
struct slot_search {
	struct fathom_object *object;
	const struct fathom_image *image;
	struct fathom_range stubs; /* .plt.got */
	struct fathom_symtab symbols;
	const struct fathom_dynsym *dynsym; /* has versions; NULL: unknown */
	struct fathom_raw_got_slots *to;
	uint64_t left; /* bytes that names may still take */
	struct {
		FATHOM_ARRAY_OF(struct seen_slot);
	} direct; /* slots that are not the linkage table's */
	bool has_candidates;
	uint32_t n_references;
};

static int compare(const void *a, const void *b)
{
	return u64_compare(((const struct fathom_raw_got_slot *)a)->svma,
			   ((const struct fathom_raw_got_slot *)b)->svma);
}

/* struct seen_slot begins with its slot. */
static struct seen_slot *find_direct(const struct slot_search *s, uint64_t svma)
{
	const struct fathom_raw_got_slot key = { .svma = svma };

	return bsearch(&key, s->direct.items, s->direct.n, sizeof *s->direct.items, compare);
}

/* Copies the name of @symbol; *@ret is NULL if it has none. */
static fathom_err copy_name(struct slot_search *s, const struct fathom_symbol *symbol,
			    const char **ret)
{
	const struct fathom_str name = fathom_symtab_name(&s->symbols, symbol);

	*ret = NULL;
	if (!name.data || !name.size || name.size > MOST_NAME)
		return FATHOM_OK;
	/* Real files call each function through one slot or two. */
	if (name.size > s->left)
		return FATHOM_E_LIMIT;
	s->left -= name.size;
	*ret = fathom_arena_strdup(&s->to->names, name);
	return *ret ? FATHOM_OK : FATHOM_E_MEMORY;
}

/* Returns whether symbol @i has the version of what parts of glibc have for each other alone. */
static bool is_private(const struct slot_search *s, uint32_t i)
{
	static const char private_version[] = "GLIBC_PRIVATE";
	bool is_default;
	struct fathom_str version = { NULL, 0 };

	if (s->dynsym && s->dynsym->number != FATHOM_NONE)
		version = fathom_dynsym_version(s->dynsym, i, &is_default);
	return version.data && version.size == sizeof private_version - 1 &&
	       !memcmp(version.data, private_version, version.size);
}

/* Adds the slot of the relocation at @svma, if it is one that calls may go through. */
static fathom_err add(struct slot_search *s, uint64_t svma, const Elf64_Rela *r)
{
	const bool is_linkage = ELF64_R_TYPE(r->r_info) == R_X86_64_JUMP_SLOT;
	struct seen_slot seen = { .slot = { .svma = r->r_offset, .relocation = svma } };
	struct fathom_symbol symbol;
	bool is_function;

	if ((!is_linkage && ELF64_R_TYPE(r->r_info) != R_X86_64_GLOB_DAT) ||
	    ELF64_R_SYM(r->r_info) >= s->symbols.count)
		return FATHOM_OK;
	fathom_symtab_get(&s->symbols, (uint32_t)ELF64_R_SYM(r->r_info), &symbol);
	is_function = symbol.type == STT_FUNC || symbol.type == STT_GNU_IFUNC;
	/* Undefined functions that are only called through the slot have no type. */
	if (!is_linkage && !is_function &&
	    (symbol.type != STT_NOTYPE || symbol.section != SHN_UNDEF || symbol.bind == STB_WEAK))
		return FATHOM_OK;
	FATHOM_TRY(copy_name(s, &symbol, &seen.slot.name));
	if (!seen.slot.name)
		return FATHOM_OK;
	if (symbol.bind == STB_WEAK && symbol.section == SHN_UNDEF)
		seen.slot.flags |= FATHOM_SLOT_WEAK;
	if (is_private(s, (uint32_t)ELF64_R_SYM(r->r_info)))
		seen.slot.flags |= FATHOM_SLOT_PRIVATE;
	if (is_linkage)
		return fathom_array_push(s->to, seen.slot) ? FATHOM_OK : FATHOM_E_MEMORY;
	seen.slot.flags |= FATHOM_SLOT_DIRECT;
	if (is_function)
		seen.slot.flags |= FATHOM_SLOT_FUNCTION;
	s->has_candidates |= !(seen.slot.flags & FATHOM_SLOT_WEAK);
	return fathom_array_push(&s->direct, seen) ? FATHOM_OK : FATHOM_E_MEMORY;
}

/* Adds the slots of the table of @size bytes at @svma. */
static fathom_err add_table(struct slot_search *s, uint64_t svma, uint64_t size)
{
	struct fathom_bytes table = fathom_image_loaded_from(s->image, svma);

	for (uint64_t off = 0;
	     off + sizeof(Elf64_Rela) <= size && off + sizeof(Elf64_Rela) <= table.size;
	     off += sizeof(Elf64_Rela)) {
		Elf64_Rela r;

		memcpy(&r, table.data + off, sizeof r);
		FATHOM_TRY(add(s, svma + off, &r));
	}
	return FATHOM_OK;
}

/* Finds the operands of the stubs in .plt.got. */
static void find_stubs(struct slot_search *s)
{
	const uint32_t section = fathom_object_find(s->object, ".plt.got");
	const struct fathom_section *header = &s->object->sections[section].header;
	struct fathom_bytes code;

	if (!section)
		return;
	code = fathom_image_section_bytes(s->image, header);
	s->stubs = (struct fathom_range){ header->addr, header->addr + code.size };
	for (uint64_t off = 0; off + 6 <= code.size; off++) {
		const uint64_t svma = header->addr + off + 6;
		struct seen_slot *slot;

		if (code.data[off] != BY_WORD || code.data[off + 1] != JUMPS)
			continue;
		slot = find_direct(
			s, svma + (uint64_t)(int64_t)(int32_t)load_u32(code.data + off + 2, false));
		if (slot)
			slot->slot.operand = svma - 4;
	}
}

/* Kinds of bytes that may refer to slots. */
enum contents { CODE = 1, CONSTANTS = 2 };

static void take_slot(const struct slot_search *s, uint64_t svma)
{
	struct seen_slot *slot = find_direct(s, svma);

	if (slot)
		slot->is_taken = true;
}

/*
 * Takes down what the 4 bytes at @off of @bytes may be: an instruction's operand, which leads to
 * @target, or up to 4 bytes further if some of the instruction follow; or a constant, which is the
 * distance from its own address.
 */
static void take_down(const struct slot_search *s, struct fathom_bytes bytes, uint64_t svma,
		      uint64_t off, uint64_t target, unsigned contents)
{
	struct seen_slot *slot = contents & CODE ? find_direct(s, target) : NULL;

	if (contents & CONSTANTS && !((svma + off) % 4))
		take_slot(s, target - 4);
	if (!(contents & CODE) || (slot && slot->slot.operand == svma + off))
		return;
	if (slot && off >= 2 && bytes.data[off - 2] == BY_WORD &&
	    (bytes.data[off - 1] == CALLS || bytes.data[off - 1] == JUMPS))
		slot->is_called = true;
	else if (slot)
		slot->is_taken = true;
	take_slot(s, target + 1);
	take_slot(s, target + 2);
	take_slot(s, target + 4);
}

/*
 * Looks at every 4 bytes of @bytes, which are loaded at @svma, as at a distance: whatever leads to
 * a slot and is no call takes its value as data. Nothing is decoded, so nothing is missed.
 */
static void scan(struct slot_search *s, struct fathom_bytes bytes, uint64_t svma, unsigned contents)
{
	const uint64_t low = s->direct.items[0].slot.svma - 4;
	const uint64_t reach = s->direct.items[s->direct.n - 1].slot.svma + 4 - low;
	uint32_t base = (uint32_t)(svma + 4 - low);

	for (uint64_t off = 0; off + 4 <= bytes.size; off++, base++) {
		const uint32_t distance = load_u32(bytes.data + off, false);
		uint64_t target;

		if (base + distance > reach)
			continue;
		target = svma + off + 4 + (uint64_t)(int64_t)(int32_t)distance;
		if (target - low <= reach && s->n_references++ < MOST_REFERENCES)
			take_down(s, bytes, svma, off, target, contents);
	}
}

/*
 * Scans all code, and constants. Of files without section headers constants cannot be told from
 * code, nor from the dynamic linker's tables, whose small numbers may lead to slots by chance.
 */
static void scan_all(struct slot_search *s)
{
	/* Its thousands of distances are from its own begin, and to code: hits would be chance. */
	const uint32_t table = fathom_object_find(s->object, ".eh_frame_hdr");
	struct fathom_segment p;

	for (uint32_t i = 1; i < s->object->n_sections; i++) {
		const struct fathom_section *h = &s->object->sections[i].header;

		if (i != table && h->type == SHT_PROGBITS && (h->flags & SHF_ALLOC) &&
		    !(h->flags & SHF_WRITE))
			scan(s, fathom_image_section_bytes(s->image, h), h->addr,
			     h->flags & SHF_EXECINSTR ? CODE : CONSTANTS);
	}
	for (uint32_t i = 0; s->object->n_sections < 2 && fathom_image_segment(s->image, i, &p);
	     i++) {
		if (p.type == PT_LOAD && !(p.flags & PF_W))
			scan(s, fathom_image_loaded_bytes(s->image, p.vaddr, p.filesz), p.vaddr,
			     p.flags & PF_X ? CODE | CONSTANTS : CONSTANTS);
	}
}

/* Returns why calls through @seen are not recorded, or 0. */
static uint8_t judge(const struct slot_search *s, const struct seen_slot *seen)
{
	const struct fathom_raw_got_slot *slot = &seen->slot;
	const bool is_weak = slot->flags & FATHOM_SLOT_WEAK;

	/* Only its stub reads where it leads. */
	if (slot->operand && !seen->is_called)
		return 0;
	if (is_weak)
		return FATHOM_SLOT_MAY_BE_NOWHERE;
	if (seen->is_taken || s->n_references > MOST_REFERENCES)
		return FATHOM_SLOT_POINTER;
	return seen->is_called ? 0 : FATHOM_SLOT_NOT_CALLED;
}

/* Adds the slots that are not the linkage table's, and says why some are left out. */
static fathom_err add_direct(struct slot_search *s)
{
	if (!s->direct.n)
		return FATHOM_OK;
	qsort(s->direct.items, s->direct.n, sizeof *s->direct.items, compare);
	find_stubs(s);
	if (s->has_candidates)
		scan_all(s);
	for (size_t i = 0; i < s->direct.n; i++) {
		struct seen_slot *seen = &s->direct.items[i];

		/* A variable. */
		if (!seen->is_called && !(seen->slot.flags & FATHOM_SLOT_FUNCTION))
			continue;
		/* The slot serves both. */
		if (seen->is_called)
			seen->slot.operand = 0;
		seen->slot.refusal = judge(s, seen);
		if (!fathom_array_push(s->to, seen->slot))
			return FATHOM_E_MEMORY;
	}
	return FATHOM_OK;
}

/* Sorts the slots; keeps one of each address. */
static void finish(struct fathom_raw_got_slots *to)
{
	size_t n = 0;

	qsort(to->items, to->n, sizeof *to->items, compare);
	for (size_t i = 0; i < to->n; i++)
		if (!n || to->items[n - 1].svma != to->items[i].svma)
			to->items[n++] = to->items[i];
	to->n = n;
}

static fathom_err find_slots(struct slot_search *s, const struct fathom_dynamic *d)
{
	if (!fathom_array_room(s->to, 1) || !fathom_array_room(&s->direct, 1))
		return FATHOM_E_MEMORY;
	FATHOM_TRY(add_table(s, d->rela, d->relasz));
	if (d->pltrel == DT_RELA)
		FATHOM_TRY(add_table(s, d->jmprel, d->pltrelsz));
	FATHOM_TRY(add_direct(s));
	finish(s->to);
	return FATHOM_OK;
}

fathom_err fathom_raw_got_slots_find(struct fathom_module *m, struct fathom_raw_got_slots *ret)
{
	const struct fathom_image *image = &m->main->image;
	struct slot_search s = {
		.object = m->main,
		.image = image,
		.dynsym = fathom_module_dynsym(m),
		.to = ret,
		.left = 2 * image->bytes.size,
	};
	struct fathom_dynamic d;
	fathom_err err;

	*ret = (struct fathom_raw_got_slots){ .n = 0 };
	if (image->machine != EM_X86_64 || !image->is64 || image->type == ET_REL ||
	    !fathom_object_dynamic(m->main, &d))
		return FATHOM_OK;
	s.symbols = fathom_symtab_init(image, fathom_image_loaded_from(image, d.symtab),
				       sizeof(Elf64_Sym), fathom_image_loaded_from(image, d.strtab),
				       (struct fathom_bytes){ .size = 0 });
	err = find_slots(&s, &d);
	fathom_array_free(&s.direct);
	if (err)
		fathom_raw_got_slots_deinit(ret);
	return err;
}

void fathom_raw_got_slots_deinit(struct fathom_raw_got_slots *s)
{
	fathom_array_free(s);
	fathom_arena_deinit(&s->names);
	s->n = 0;
}
