/* SPDX-License-Identifier: MIT */
/*
 * Finds the function that an IFUNC resolved to. The dynamic linker calls the resolver once per slot
 * and stores the result there (System V ABI of x86-64, "R_X86_64_IRELATIVE"; of aarch64,
 * "R_AARCH64_IRELATIVE"). So this finds and reads the slots whose relocations name the symbol or
 * its resolver.
 *
 * Slots that only DT_RELR or DT_ANDROID_REL describe are not handled: they never hold a symbol's
 * value.
 */
#include "host/runtime/ifunc.h"

/* A slot that may hold an IFUNC's function. */
struct fathom_ifunc_slot {
	uint64_t svma;
	uint64_t addend; /* symbol 0: the resolver's svma */
	uint32_t module;
	uint32_t symbol;  /* in the module's .dynsym */
	bool is_indirect; /* R_*_IRELATIVE */
};

/* Most relocations read of one file; the largest programs have some millions. */
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

/* Returns the file's word at @svma: the implicit addend of a REL relocation. */
static uint64_t implicit_addend(const struct fathom_image *image, uint64_t svma)
{
	const uint8_t word = fathom_image_address_size(image);
	const struct fathom_bytes b = fathom_image_loaded_bytes(image, svma, word);

	if (!b.size)
		return 0;
	return word == 8 ? load_u64(b.data, image->swap) : load_u32(b.data, image->swap);
}

static bool read_slots(struct fathom_runtime *r, uint32_t module, struct fathom_bytes bytes,
		       bool rela)
{
	const struct fathom_image *image = &r->modules[module].module->main->image;
	const uint8_t word = fathom_image_address_size(image);
	struct fathom_cursor c = cur_init(bytes, image->swap);

	for (uint32_t i = 0; cur_left(&c) && i < MAX_RELOCATIONS; i++) {
		struct fathom_ifunc_slot s = { .module = module, .svma = cur_uint(&c, word) };
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
		if (!fathom_budget_push(r->budget, &r->slots, s))
			return false;
	}
	return true;
}

static bool read_table(struct fathom_runtime *r, uint32_t module, uint64_t svma, uint64_t size,
		       bool rela)
{
	const struct fathom_image *image = &r->modules[module].module->main->image;

	return !svma || read_slots(r, module, fathom_image_loaded_bytes(image, svma, size), rela);
}

/* Reads the slots of a static program, whose start-up code fills them itself. */
static bool read_sections(struct fathom_runtime *r, uint32_t module)
{
	const struct fathom_object *o = r->modules[module].module->main;

	for (uint32_t i = 1; i < o->n_sections; i++) {
		const struct fathom_section *s = &o->sections[i].header;

		if ((s->type == SHT_RELA || s->type == SHT_REL) && (s->flags & SHF_ALLOC) &&
		    !read_slots(r, module, fathom_image_section_bytes(&o->image, s),
				s->type == SHT_RELA))
			return false;
	}
	return true;
}

static bool read_module(struct fathom_runtime *r, uint32_t module)
{
	const struct fathom_runtime_module *m = &r->modules[module];
	const struct fathom_dynamic *d = &m->dynsym->dynamic;

	if (m->dynsym->number == FATHOM_NONE)
		return read_sections(r, module);
	return read_table(r, module, d->rela, d->relasz, true) &&
	       read_table(r, module, d->rel, d->relsz, false) &&
	       read_table(r, module, d->jmprel, d->pltrelsz, d->pltrel == DT_RELA);
}

/*
 * Returns whether a reference without a version binds to @i: the oldest version in its file, which
 * has the lowest number, or the only one. (dlsym() takes the newest.)
 */
static bool is_oldest(const struct fathom_runtime *r, const struct fathom_ifunc *i)
{
	const struct fathom_runtime_module *m = &r->modules[i->module];
	uint16_t number;

	if (i->number == FATHOM_NONE)
		return false;
	number = fathom_version_number(&m->dynsym->versions, i->number);
	return (number & ~FATHOM_VERSION_HIDDEN) <= FATHOM_VERSION_GLOBAL + 1;
}

/* Returns whether the slot holds the function of @i. */
static bool is_for(const struct fathom_runtime *r, const struct fathom_ifunc_slot *s,
		   const struct fathom_ifunc *i)
{
	const struct fathom_runtime_module *m = &r->modules[s->module];
	struct fathom_symbol symbol;
	struct fathom_str version;
	bool is_default;

	if (s->is_indirect)
		return s->module == i->module && s->addend == i->svma;
	if (s->addend || m->dynsym->number == FATHOM_NONE || s->symbol >= m->dynsym->table.count)
		return false;
	fathom_symtab_get(&m->dynsym->table, s->symbol, &symbol);
	if (!str_equal(fathom_symtab_name(&m->dynsym->table, &symbol), i->name))
		return false;
	version = fathom_dynsym_version(m->dynsym, s->symbol, &is_default);
	if (!version.data && i->version.data)
		return is_oldest(r, i);
	return !i->version.data || str_equal(version, i->version);
}

/* Returns whether @value differs from the file's: an unbound slot points back to its stub. */
static bool is_bound(const struct fathom_runtime *r, const struct fathom_ifunc_slot *s,
		     uint64_t value)
{
	const struct fathom_runtime_module *m = &r->modules[s->module];

	return value != implicit_addend(&m->module->main->image, s->svma) + m->bias;
}

/* Returns whether @avma can be the start of a function that @i chose in its own module. */
static bool is_function(const struct fathom_runtime *r, const struct fathom_ifunc *i, uint64_t avma)
{
	const struct fathom_runtime_module *m = &r->modules[i->module];
	const struct fathom_object *o = m->module->main;
	uint32_t section;

	if (avma - m->bias == i->svma || !fathom_object_has_code(o, avma - m->bias))
		return false;
	/* An unbound slot points back to its stub. */
	section = fathom_object_section_at(o, avma - m->bias);
	return !section || !o->sections[section].header.name.data ||
	       !(str_starts(o->sections[section].header.name, ".plt") ||
		 str_starts(o->sections[section].header.name, ".iplt"));
}

/* Reads the slots of all modules, once. */
static bool read_modules(struct fathom_runtime *r)
{
	if (r->has_slots)
		return true;
	r->slots.n = 0;
	for (uint32_t k = 0; k < r->n_modules; k++)
		if (!read_module(r, k))
			return false;
	r->has_slots = true;
	return true;
}

fathom_err fathom_ifunc_resolved(struct fathom_runtime *r, const struct fathom_ifunc *i,
				 uint64_t *ret)
{
	const struct fathom_ifunc_slot *slots;
	uint64_t found = 0;

	if (i->module >= r->n_modules)
		return FATHOM_E_NOT_FOUND;
	if (!read_modules(r))
		return FATHOM_E_MEMORY;
	slots = r->slots.items;
	for (size_t k = 0; k < r->slots.n; k++) {
		const struct fathom_runtime_module *m = &r->modules[slots[k].module];
		uint64_t value;

		if (!is_for(r, &slots[k], i) ||
		    !fathom_runtime_word(r, &m->module->main->image, slots[k].svma + m->bias,
					 &value) ||
		    !is_bound(r, &slots[k], value) || !is_function(r, i, value))
			continue;
		/* A resolver always returns one function; slots that differ hold something else. */
		if (found && found != value)
			return FATHOM_E_NOT_FOUND;
		found = value;
	}
	*ret = found;
	return found ? FATHOM_OK : FATHOM_E_NOT_FOUND;
}
