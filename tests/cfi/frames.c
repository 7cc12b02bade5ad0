/* SPDX-License-Identifier: MIT */
/*
 * frames FILE...: lists the call frame information of each file as its module has it, and looks
 * each FDE up by its first and its last address. Addresses of relocatable files are offsets
 * in their sections. A line is, with numbers in hexadecimal and "-" for what is not there:
 *
 *   file PATH ERROR
 *   section NAME ENTRIES-END
 *   C OFFSET VERSION CODE DATA REGISTER ADDRESS-SIZE SEGMENT-SIZE LETTERS ENCODINGS PERSONALITY
 *     FLAGS INSTRUCTIONS-OFFSET INSTRUCTIONS-END FIRST-INSTRUCTION
 *   F OFFSET CIE LOW HIGH LSDA FOUND INSTRUCTIONS-OFFSET INSTRUCTIONS-END FIRST-INSTRUCTION
 *
 * ENCODINGS are those of bounds, LSDA and personality. FOUND is "=" if both look-ups lead back to
 * the FDE, "~" if one leads to another that covers the address, "!" if one fails, "0" if the FDE
 * has no address, and "d" if it is in .debug_frame and the module has no code at its address, as
 * of a function that the linker dropped.
 */
#include <inttypes.h>

#include "each_module.h"

/* An address as readelf prints it: of a relocatable file, the offset in its section. */
static uint64_t place(const struct fathom_object *o, uint64_t svma)
{
	const uint32_t i = o->image.type == ET_REL ? fathom_object_section_at(o, svma) : 0;

	return i ? svma - o->sections[i].base : svma;
}

static void print_instructions(const struct fathom_cfi *cfi, struct fathom_bytes b)
{
	const uint64_t at = (uint64_t)(b.data - cfi->section.data);

	printf(" %" PRIx64 " %" PRIx64, at, at + b.size);
	if (b.size)
		printf(" %x\n", b.data[0]);
	else
		printf(" -\n");
}

static void print_cie(const struct fathom_object *o, const struct fathom_cfi *cfi, uint64_t off)
{
	struct fathom_cie c;
	const fathom_err err = fathom_cie_read(cfi, off, &c);

	if (err) {
		printf("C %" PRIx64 " error %d\n", off, err);
		return;
	}
	printf("C %" PRIx64 " %x %" PRIx64 " %" PRId64 " %" PRIx64 " %x %x \"%.*s\" %x/%x/%x ", off,
	       c.version, c.code_alignment, c.data_alignment, c.return_register, c.cfi.address_size,
	       c.segment_size, (int)c.augmentation.size, c.augmentation.data, c.pointer_encoding,
	       c.lsda_encoding, c.personality_encoding);
	if (c.personality_encoding == DW_EH_PE_omit)
		printf("-");
	else
		printf("%" PRIx64, place(o, c.personality));
	printf(" %c%c%c%c%c", c.has_data ? 'z' : '.', c.is_signal_frame ? 'S' : '.',
	       c.uses_b_key ? 'B' : '.', c.has_tagged_stack ? 'G' : '.', c.is_unknown ? '?' : '.');
	print_instructions(cfi, c.instructions);
}

/* What a look-up of @pc comes to; see above. */
static char look_up(struct fathom_unwind_tables *u, const struct fathom_fde *fde, uint64_t pc)
{
	struct fathom_fde found;

	if (fathom_unwind_tables_find(u, pc, &found) || pc < found.low || pc >= found.high)
		return '!';
	if (found.cie->cfi.svma != fde->cie->cfi.svma || found.off != fde->off ||
	    found.cie->cfi.is_eh != fde->cie->cfi.is_eh)
		return '~';
	/* An FDE that is found says what it says in the walk. */
	return found.low == fde->low && found.high == fde->high && found.lsda == fde->lsda &&
			       found.instructions.data == fde->instructions.data &&
			       found.instructions.size == fde->instructions.size &&
			       found.cie->off == fde->cie->off
		       ? '='
		       : '!';
}

static char look_up_both(struct fathom_module *m, const struct fathom_fde *fde)
{
	struct fathom_unwind_tables *u = &m->unwind;
	char first;
	char last;

	if (fde->low >= fde->high)
		return '0';
	if (!fde->cie->cfi.is_eh && !fathom_object_has_code(m->main, fde->low))
		return 'd';
	first = look_up(u, fde, fde->low);
	last = look_up(u, fde, fde->high - 1);
	return first == last || last == '=' ? first : first == '=' ? last : '!';
}

static void print_fde(struct fathom_module *m, const struct fathom_cfi *cfi,
		      const struct fathom_cfi_entry *e)
{
	struct fathom_cie cie;
	struct fathom_fde f;
	fathom_err err = fathom_cie_read(cfi, e->cie_off, &cie);

	err = err ? err : fathom_fde_read(e, &cie, &f);
	if (err) {
		printf("F %" PRIx64 " error %d\n", e->off, err);
		return;
	}
	printf("F %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 " ", f.off, e->cie_off,
	       place(m->main, f.low), place(m->main, f.low) + (f.high - f.low));
	if (f.has_lsda)
		printf("%" PRIx64, place(m->main, f.lsda));
	else
		printf("%s", f.is_damaged ? "?" : "-");
	printf(" %c", look_up_both(m, &f));
	print_instructions(cfi, f.instructions);
}

static void print_module(struct fathom_module *m)
{
	for (uint32_t i = 0; i < m->unwind.n_sections; i++) {
		const struct fathom_cfi cfi = fathom_unwind_tables_section(&m->unwind, i);
		struct fathom_cfi_reader r;
		struct fathom_cfi_entry e;
		fathom_err err;

		printf("section %s %" PRIx64 "\n", cfi.is_eh ? ".eh_frame" : ".debug_frame",
		       cfi.section.size);
		fathom_cfi_reader_init(&r, &cfi);
		while ((err = fathom_cfi_next(&r, &e, NULL)) == FATHOM_OK)
			if (e.is_cie)
				print_cie(m->main, &cfi, e.off);
			else
				print_fde(m, &cfi, &e);
		if (err < 0)
			printf("damaged\n");
	}
}

int main(int argc, char **argv)
{
	return each_module(argc - 1, argv + 1, print_module);
}
