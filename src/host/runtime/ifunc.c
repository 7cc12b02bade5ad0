/* SPDX-License-Identifier: MIT */
/*
 * What an IFUNC was resolved to: the dynamic linker asked its resolver once for each slot that
 * wants it, and put the answer there (System V ABI of x86-64, "R_X86_64_IRELATIVE"; of aarch64,
 * "R_AARCH64_IRELATIVE"). So slots are looked for whose relocations name the symbol, or its
 * resolver, and read.
 *
 * Not handled: slots that only DT_RELR or DT_ANDROID_REL describe, which never hold a symbol's
 * value.
 */
#include "host/runtime/scope.h"
#include "host/target/bias.h"

/* A slot that an IFUNC may be in. */
struct slot {
	uint64_t svma;
	uint64_t addend; /* with symbol 0: the resolver, svma */
	uint32_t module;
	uint32_t symbol;  /* of the module's .dynsym */
	bool is_indirect; /* R_*_IRELATIVE */
};

/* Relocations of one file that are read; the largest programs have some millions. */
#define MAX_RELOCATIONS (1u << 26)

static bool is_indirect(const struct fathom_image *image, uint64_t type)
{
	switch (image->machine) {
	case EM_X86_64:
		return type == R_X86_64_IRELATIVE;
	case EM_386:
		return type == R_386_IRELATIVE;
	case EM_AARCH64:
		return type == R_AARCH64_IRELATIVE;
	case EM_ARM:
		return type == R_ARM_IRELATIVE;
	case EM_PPC64:
		return type == R_PPC64_IRELATIVE;
	case EM_S390:
		return type == R_390_IRELATIVE;
	default:
		return false;
	}
}

/* The word that the file has at @svma: where there is no addend, it is one. */
static uint64_t implicit_addend(const struct fathom_image *image, uint64_t svma)
{
	const uint8_t word = fathom_image_address_size(image);
	const struct fathom_bytes b = fathom_image_loaded_bytes(image, svma, word);

	if (!b.size)
		return 0;
	return word == 8 ? load_u64(b.data, image->swap) : load_u32(b.data, image->swap);
}

static bool read_slots(struct fathom_find *f, uint32_t module, struct fathom_bytes bytes, bool rela)
{
	const struct fathom_image *image = &f->modules[module].module->main->image;
	const uint8_t word = fathom_image_address_size(image);
	struct fathom_cursor c = cur_init(bytes, image->swap);

	for (uint32_t i = 0; cur_left(&c) && i < MAX_RELOCATIONS; i++) {
		struct slot s = { .module = module, .svma = cur_uint(&c, word) };
		const uint64_t info = cur_uint(&c, word);
		const uint64_t type = image->is64 ? (uint32_t)info : (uint8_t)info;

		s.addend = rela ? cur_uint(&c, word) : 0;
		s.symbol = (uint32_t)(image->is64 ? info >> 32 : info >> 8);
		s.is_indirect = !s.symbol && is_indirect(image, type);
		if (!cur_ok(&c))
			break;
		if (!s.symbol && !s.is_indirect)
			continue;
		if (s.is_indirect && !rela)
			s.addend = implicit_addend(image, s.svma);
		if (!fathom_array_reserve(&f->slots, sizeof s, 1))
			return false;
		((struct slot *)f->slots.data)[f->slots.n++] = s;
	}
	return true;
}

static bool read_table(struct fathom_find *f, uint32_t module, uint64_t svma, uint64_t size,
		       bool rela)
{
	const struct fathom_image *image = &f->modules[module].module->main->image;

	return !svma || read_slots(f, module, fathom_image_loaded_bytes(image, svma, size), rela);
}

/* Of a program that no dynamic linker is for: its start-up code fills such slots itself. */
static bool read_sections(struct fathom_find *f, uint32_t module)
{
	const struct fathom_object *o = f->modules[module].module->main;

	for (uint32_t i = 1; i < o->n_sections; i++) {
		const struct fathom_section *s = &o->sections[i].header;

		if ((s->type == SHT_RELA || s->type == SHT_REL) && (s->flags & SHF_ALLOC) &&
		    !read_slots(f, module, fathom_image_section_bytes(&o->image, s),
				s->type == SHT_RELA))
			return false;
	}
	return true;
}

static bool read_module(struct fathom_find *f, uint32_t module)
{
	const struct fathom_find_module *m = &f->modules[module];
	const struct fathom_dynamic *d = &m->dynsym.dynamic;

	if (m->dynamic_table == FATHOM_NONE)
		return read_sections(f, module);
	return read_table(f, module, d->rela, d->relasz, true) &&
	       read_table(f, module, d->rel, d->relsz, false) &&
	       read_table(f, module, d->jmprel, d->pltrelsz, d->pltrel == DT_RELA);
}

/*
 * Whether a reference without a version would lead to @c: to the oldest version of its file, which
 * has the lowest number, or else to the only one; dlsym() takes the newest.
 */
static bool is_oldest(const struct fathom_find *f, const struct fathom_candidate_symbol *c)
{
	const struct fathom_find_module *m = &f->modules[c->module];
	const uint16_t number = fathom_version_number(&m->dynsym.versions, c->number);

	return c->table == m->dynamic_table &&
	       (number & ~FATHOM_VERSION_HIDDEN) <= FATHOM_VERSION_GLOBAL + 1;
}

/* Whether the slot is for the function that @c is the resolver of. */
static bool is_for(const struct fathom_find *f, const struct slot *s,
		   const struct fathom_candidate_symbol *c)
{
	const struct fathom_find_module *m = &f->modules[s->module];
	struct fathom_symbol symbol;
	struct fathom_str version;
	bool is_default;

	if (s->is_indirect)
		return s->module == c->module && s->addend == c->svma;
	if (s->addend || m->dynamic_table == FATHOM_NONE || s->symbol >= m->dynsym.table.count)
		return false;
	fathom_symtab_get(&m->dynsym.table, s->symbol, &symbol);
	if (!str_equal(fathom_symtab_name(&m->dynsym.table, &symbol), c->name))
		return false;
	version = fathom_dynsym_version(&m->dynsym, s->symbol, &is_default);
	if (!version.data && c->version.data)
		return is_oldest(f, c);
	return !c->version.data || str_equal(version, c->version);
}

/* Whether @value is not what the file has in the slot: the way back to a stub, until it is bound.
 */
static bool is_bound(const struct fathom_find *f, const struct slot *s, uint64_t value)
{
	const struct fathom_find_module *m = &f->modules[s->module];

	return value != implicit_addend(&m->module->main->image, s->svma) + m->bias;
}

/* Whether a function can start at @avma that @c, in its own module, has chosen. */
static bool is_function(const struct fathom_find *f, const struct fathom_candidate_symbol *c,
			uint64_t avma)
{
	const struct fathom_find_module *m = &f->modules[c->module];
	const struct fathom_object *o = m->module->main;
	uint32_t section;

	if (avma - m->bias == c->svma || !fathom_object_has_code(o, avma - m->bias))
		return false;
	/* A slot that is not bound yet leads back to its stub. */
	section = fathom_object_section_at(o, avma - m->bias);
	return !section || !o->sections[section].header.name.data ||
	       !(str_starts(o->sections[section].header.name, ".plt") ||
		 str_starts(o->sections[section].header.name, ".iplt"));
}

uint64_t fathom_ifunc_resolved(struct fathom_find *f, const struct fathom_candidate_symbol *c)
{
	const struct slot *slots;
	uint64_t found = 0;

	for (uint32_t i = 0; !f->has_slots && i < f->n_modules; i++)
		if (!read_module(f, i))
			return 0;
	f->has_slots = true;
	slots = f->slots.data;
	for (size_t i = 0; i < f->slots.n; i++) {
		const struct fathom_find_module *m = &f->modules[slots[i].module];
		const struct fathom_object *o = m->module->main;
		uint64_t value;

		if (!is_for(f, &slots[i], c) ||
		    !fathom_scope_read(f, o, slots[i].svma + m->bias,
				       fathom_image_address_size(&o->image), &value) ||
		    !is_bound(f, &slots[i], value) || !is_function(f, c, value))
			continue;
		/* Resolvers give one answer; slots that differ hold something else. */
		if (found && found != value)
			return 0;
		found = value;
	}
	return found;
}
