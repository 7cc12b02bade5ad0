/* SPDX-License-Identifier: MIT */
/*
 * Call frame information that a program has registered with the unwinders in it, in memory that
 * changes while it is read: libgcc's lists and its tree, LLVM's cache, libunwind's list. A library
 * has the functions of all of them, whose code may be anything, and that memory as its data.
 */
#include "fuzz.h"

#include <assert.h>
#include <elf.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "host/jit/registered.h"
#include "host/module/module.h"

#define BIAS UINT64_C(0x100000000)
/* Where code and data are in the library. */
#define CODE      0x400
#define DATA      0x10000
#define CODE_SIZE 64 /* of each function */
#define N_ASKED   16
#define MOST_USED 64 /* of the FDEs that were read */

static const char *const functions[] = { "__register_frame_info_bases",
					 "__deregister_frame_info_bases", "_Unwind_Find_FDE",
					 "__unw_add_dynamic_fde", "_U_dyn_info_list_addr" };
#define N_FUNCTIONS (sizeof functions / sizeof *functions)
#define N_DYNAMIC   6

/* A library as the dynamic linker sees it. */
struct library {
	Elf64_Ehdr header;
	Elf64_Phdr segment[3];
	Elf64_Dyn dynamic[N_DYNAMIC];
	Elf64_Sym symbol[1 + N_FUNCTIONS];
	uint32_t hash[2 + 1 + 1 + N_FUNCTIONS]; /* all in one chain */
	char names[256];
	alignas(CODE) uint8_t code[1024];
};

static_assert(offsetof(struct library, code) == CODE, "seeds.py has this address");

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* Makes the symbols, their names and their hash table. */
static void make_symbols(struct library *l)
{
	size_t at = 1;

	l->hash[0] = 1;
	l->hash[1] = 1 + N_FUNCTIONS;
	l->hash[2] = 1;
	for (uint32_t i = 0; i < N_FUNCTIONS; i++) {
		const size_t size = strlen(functions[i]) + 1;

		must(at + size <= sizeof l->names);
		memcpy(l->names + at, functions[i], size);
		l->symbol[1 + i] = (Elf64_Sym){ .st_name = (uint32_t)at,
						.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
						.st_shndx = 1,
						.st_value = CODE + i * CODE_SIZE,
						.st_size = CODE_SIZE };
		l->hash[3 + 1 + i] = i + 1 < N_FUNCTIONS ? i + 2 : 0;
		at += size;
	}
}

static void make_library(struct library *l, struct fathom_bytes code)
{
	const Elf64_Dyn dynamic[N_DYNAMIC] = {
		{ DT_HASH, { offsetof(struct library, hash) } },
		{ DT_SYMTAB, { offsetof(struct library, symbol) } },
		{ DT_SYMENT, { sizeof(Elf64_Sym) } },
		{ DT_STRTAB, { offsetof(struct library, names) } },
		{ DT_STRSZ, { sizeof l->names } },
		{ DT_NULL, { 0 } },
	};

	l->header = (Elf64_Ehdr){ .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1 },
				  .e_type = ET_DYN,
				  .e_machine = EM_X86_64,
				  .e_version = 1,
				  .e_phoff = offsetof(struct library, segment),
				  .e_ehsize = sizeof l->header,
				  .e_phentsize = sizeof l->segment[0],
				  .e_phnum = 3 };
	l->segment[0] = (Elf64_Phdr){ .p_type = PT_LOAD,
				      .p_flags = PF_R | PF_X,
				      .p_filesz = sizeof *l,
				      .p_memsz = sizeof *l,
				      .p_align = 0x1000 };
	l->segment[1] = (Elf64_Phdr){ .p_type = PT_LOAD,
				      .p_flags = PF_R | PF_W,
				      .p_vaddr = DATA,
				      .p_memsz = FUZZ_MEMORY,
				      .p_align = 0x1000 };
	l->segment[2] = (Elf64_Phdr){ .p_type = PT_DYNAMIC,
				      .p_flags = PF_R,
				      .p_offset = offsetof(struct library, dynamic),
				      .p_vaddr = offsetof(struct library, dynamic),
				      .p_filesz = sizeof dynamic,
				      .p_memsz = sizeof dynamic };
	memcpy(l->dynamic, dynamic, sizeof dynamic);
	make_symbols(l);
	if (code.size)
		memcpy(l->code, code.data,
		       code.size < sizeof l->code ? (size_t)code.size : sizeof l->code);
}

static struct fathom_module *open_library(const struct fathom_jit_process *p,
					  struct fathom_bytes code)
{
	struct fathom_memory *memory = &p->session->memory;
	struct library *l = (struct library *)(void *)fathom_pages_alloc(sizeof *l);
	struct fathom_file *file;
	struct fathom_object *object;
	struct fathom_module *module;

	must(l);
	make_library(l, code);
	must(!fathom_file_wrap(memory, "library", (uint8_t *)l, sizeof *l, sizeof *l, &file));
	must(!fathom_object_create(memory, file, &object, NULL));
	must(!fathom_module_create_alone(p->paths, object, p->notes, &module));
	return module;
}

static struct fathom_module *library;

static fathom_err each_module(const struct fathom_jit_process *p, fathom_module_fn fn, void *data)
{
	const struct fathom_module_at at = { .module = library, .name = "library", .bias = BIAS };

	(void)p;
	(void)fn(&at, data);
	return FATHOM_OK;
}

static const struct fathom_jit_process_ops ops = { .modules = each_module };

/* An FDE that is found has the address, and can be read to its end. */
static void ask(struct fathom_registered *r, const struct fathom_jit_process *p, uint64_t avma)
{
	const struct fathom_fde *fde;

	if (fathom_registered_find(r, p, avma, &fde) || !fde)
		return;
	must(!fde->is_damaged && avma - fde->low < fde->high - fde->low);
	for (uint64_t i = 0; i < fde->instructions.size; i++)
		fuzz_use(fde->instructions.data[i]);
	for (uint64_t i = 0; i < fde->cie->instructions.size; i++)
		fuzz_use(fde->cie->instructions.data[i]);
}

static void use(struct fathom_registered *r, const struct fathom_jit_process *p, uint64_t code)
{
	for (uint64_t i = 0; i < N_ASKED; i++)
		ask(r, p, code + 7 * i);
	for (size_t i = 0; i < r->fdes.n && i < MOST_USED; i++) {
		ask(r, p, r->fdes.items[i].low);
		ask(r, p, r->fdes.items[i].high - 1);
	}
	for (size_t i = 0; i < r->tables.n && i < MOST_USED; i++) {
		ask(r, p, r->tables.items[i].low);
		ask(r, p, r->tables.items[i].high - 1);
	}
}

static bool has_changed(const struct fuzz_changing *m)
{
	bool changed = false;

	for (int i = 0; i < FUZZ_CHANGES; i++)
		changed |= m->change[i].when && m->change[i].when <= m->n_reads;
	return changed;
}

static void run(struct fathom *session, struct fuzz *f)
{
	static struct fuzz_changing memory;
	const uint8_t flags = fuzz_byte(f);
	const uint64_t code = fuzz_number(f);
	const struct fathom_bytes functions_code = fuzz_section(f);
	struct fathom_notes notes = { 0 };
	struct fathom_search_paths *paths;
	struct fathom_jit_process process = {
		.ops = &ops, .session = session, .notes = &notes, .is_live = flags & 1
	};
	struct fathom_jit_code_frames frames = { .memory = &session->memory };
	struct fathom_registered r;

	if (fathom_search_paths_create(session, NULL, &paths, NULL))
		return;
	process.paths = paths;
	process.memory = fuzz_changing_fill(&memory, BIAS + DATA, f);
	library = open_library(&process, functions_code);
	fathom_registered_init(&r, &frames);
	use(&r, &process, code);
	/* What nobody has changed has stayed. */
	must(fathom_registered_stayed(&r, &process) || has_changed(&memory));
	fathom_registered_deinit(&r);
	fathom_jit_code_frames_clear(&frames);
	fathom_module_close(library);
	fathom_notes_deinit(&notes);
	fathom_search_paths_release(paths);
	must(!session->memory.used);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = fuzz_init(data, size);
	struct fathom *session = fuzz_session(NULL);

	run(session, &f);
	fathom_destroy(session);
	return 0;
}
