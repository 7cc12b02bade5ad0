/* SPDX-License-Identifier: MIT */
#include "host/base/progress.h"
#include "host/golang/go_frames.h"
#include "host/golang/go_made_file.h"
#include "host/golang/golang.h"
#include "host/golang/pclntab.h"

/* Functions between two questions: some milliseconds. */
#define FUNCTIONS_PER_QUESTION 16384

struct making {
	const struct fathom_pclntab *table;
	struct fathom_go_part symbols;
	struct fathom_go_part names;
	struct fathom_go_frames frames;
};

/* Appends the symbol of @f, whose code ends at @end, and its name. */
static fathom_err put_symbol(struct making *m, const struct fathom_go_function *f, uint64_t end)
{
	struct fathom_go_part *symbols = &m->symbols;
	struct fathom_go_part *names = &m->names;
	const Elf64_Sym s = {
		.st_name = (uint32_t)names->out.n,
		.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
		.st_shndx = (uint16_t)fathom_go_text_at(m->table->object, f->entry),
		.st_value = f->entry,
		.st_size = end - f->entry,
	};

	if (!s.st_shndx || names->out.n > UINT32_MAX)
		return FATHOM_OK;
	FATHOM_TRY(fathom_go_part_room(symbols, sizeof s));
	FATHOM_TRY(fathom_go_part_room(names, (size_t)f->name.size + 1));
	fathom_out_bytes(&symbols->out, &s, sizeof s);
	fathom_out_bytes(&names->out, f->name.data, f->name.size);
	fathom_out_u8(&names->out, 0);
	return FATHOM_OK;
}

static fathom_err put_symbols(struct making *m, struct fathom *session)
{
	struct fathom_pace pace = fathom_pace_init(session, FUNCTIONS_PER_QUESTION);
	const Elf64_Sym none = { 0 };

	FATHOM_TRY(fathom_go_part_room(&m->symbols, sizeof none));
	FATHOM_TRY(fathom_go_part_room(&m->names, 1));
	fathom_out_bytes(&m->symbols.out, &none, sizeof none);
	fathom_out_u8(&m->names.out, 0);
	for (uint32_t i = 0; i < m->table->n; i++) {
		struct fathom_go_function f;
		uint64_t end;

		if (!fathom_keeps_pace(&pace))
			return FATHOM_E_CANCELLED;
		if (!fathom_pclntab_function(m->table, i, &f))
			continue;
		end = fathom_pclntab_end(m->table, &f);
		FATHOM_TRY(put_symbol(m, &f, end));
		FATHOM_TRY(fathom_go_frames_add(&m->frames, m->table, &f, end));
	}
	return FATHOM_OK;
}

fathom_err fathom_go_symbols(struct fathom *session, const struct fathom_object *main,
			     struct fathom_object **ret)
{
	struct fathom_memory *memory = &session->memory;
	struct fathom_pclntab t;
	struct making m = { .table = &t,
			    .symbols = { .memory = memory },
			    .names = { .memory = memory } };
	const struct fathom_go_section sections[] = {
		{ ".symtab",
		  { .sh_type = SHT_SYMTAB,
		    .sh_link = fathom_go_texts(main) + 2,
		    .sh_info = 1,
		    .sh_entsize = sizeof(Elf64_Sym),
		    .sh_addralign = 8 },
		  &m.symbols },
		{ ".strtab", { .sh_type = SHT_STRTAB, .sh_addralign = 1 }, &m.names },
		{ ".eh_frame", { .sh_type = SHT_PROGBITS, .sh_addralign = 8 }, &m.frames.part },
	};
	fathom_err err;

	FATHOM_TRY(fathom_pclntab_open(&t, main));
	err = fathom_go_frames_init(&m.frames, memory, main->image.machine);
	if (!err)
		err = put_symbols(&m, session);
	fathom_pclntab_close(&t);
	if (!err)
		err = fathom_go_file(memory, main, sections, sizeof sections / sizeof *sections,
				     ret);
	fathom_go_part_free(&m.symbols);
	fathom_go_part_free(&m.names);
	fathom_go_frames_deinit(&m.frames);
	return err;
}
