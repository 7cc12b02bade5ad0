/* SPDX-License-Identifier: MIT */
/*
 * Sites of functions in a file whose code, tables of sites, symbols, relocations and unwind tables
 * are any bytes. Whatever the tables say, slots lie in the code, one behind the other. So do calls
 * of the kernel, with the instructions that are moved for them; none has the padding of the one
 * before.
 */
#include "fuzz.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/code/x86_64/x86_instructions.h"
#include "host/sites/syscall_insns.h"
#include "host/sites/list.h"

/* The sections, one behind the other, all loaded: each at its offset in the file and BASE. */
enum { TEXT, PATCHABLE, ENTRIES, RETURNS, SLEDS, SYMBOLS, STRINGS, RELOCATIONS, FRAMES, PARTS };

#define BASE 0x1000

static const struct {
	const char *name;
	uint32_t type;
	uint32_t flags;
	uint32_t entry;
} parts[PARTS] = {
	[TEXT] = { ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0 },
	[PATCHABLE] = { "__patchable_function_entries", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0 },
	[ENTRIES] = { "__mcount_loc", SHT_PROGBITS, SHF_ALLOC, 0 },
	[RETURNS] = { "__return_loc", SHT_PROGBITS, SHF_ALLOC, 0 },
	[SLEDS] = { "xray_instr_map", SHT_PROGBITS, SHF_ALLOC, 0 },
	[SYMBOLS] = { ".symtab", SHT_SYMTAB, 0, sizeof(Elf64_Sym) },
	[STRINGS] = { ".strtab", SHT_STRTAB, 0, 0 },
	[RELOCATIONS] = { ".rela.dyn", SHT_RELA, SHF_ALLOC, sizeof(Elf64_Rela) },
	[FRAMES] = { ".eh_frame", SHT_PROGBITS, SHF_ALLOC, 0 },
};

/* Writes the names of the sections to @to; returns their size. */
static size_t write_names(uint8_t *to, Elf64_Shdr *headers, uint8_t kind)
{
	size_t at = 1;

	to[0] = '\0';
	for (int i = 0; i < PARTS; i++) {
		const char *name = i == TEXT && kind & 8         ? ".plt.got"
				   : i == PATCHABLE && kind & 16 ? ".data"
								 : parts[i].name;
		const size_t size = strlen(name) + 1;

		memcpy(to + at, name, size);
		headers[i + 1].sh_name = (Elf64_Word)at;
		at += size;
	}
	return at;
}

static size_t write_parts(struct fuzz *f, uint8_t *file, size_t at, Elf64_Shdr *headers)
{
	for (int i = 0; i < PARTS; i++) {
		const struct fathom_bytes b = fuzz_section(f);
		Elf64_Shdr *h = &headers[i + 1];

		h->sh_type = parts[i].type;
		h->sh_flags = parts[i].flags;
		h->sh_entsize = parts[i].entry;
		h->sh_offset = at;
		h->sh_addr = parts[i].flags & SHF_ALLOC ? BASE + at : 0;
		h->sh_size = b.size;
		h->sh_addralign = 1;
		if (b.size)
			memcpy(file + at, b.data, b.size);
		at += (b.size + 7) & ~(size_t)7;
	}
	headers[SYMBOLS + 1].sh_link = STRINGS + 1;
	headers[RELOCATIONS + 1].sh_link = SYMBOLS + 1;
	return at;
}

/* Writes the dynamic section to @to; returns its size. */
static size_t write_dynamic(uint8_t *to, const Elf64_Shdr *headers)
{
	const Elf64_Dyn entries[] = {
		{ DT_SYMTAB, { BASE + headers[SYMBOLS + 1].sh_offset } },
		{ DT_STRTAB, { BASE + headers[STRINGS + 1].sh_offset } },
		{ DT_STRSZ, { headers[STRINGS + 1].sh_size } },
		{ DT_RELA, { BASE + headers[RELOCATIONS + 1].sh_offset } },
		{ DT_RELASZ, { headers[RELOCATIONS + 1].sh_size } },
	};

	memcpy(to, entries, sizeof entries);
	return sizeof entries + sizeof *entries;
}

/* Writes the file, whose room is cleared; returns its size. */
static size_t build(struct fuzz *f, uint8_t *file, uint8_t kind)
{
	static const uint16_t types[] = { ET_DYN, ET_EXEC, ET_REL, ET_DYN };
	Elf64_Ehdr header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1 },
			      .e_type = types[kind & 3],
			      .e_machine = kind & 4 ? EM_AARCH64 : EM_X86_64,
			      .e_phoff = sizeof header,
			      .e_phentsize = sizeof(Elf64_Phdr),
			      .e_phnum = 2,
			      .e_shentsize = sizeof(Elf64_Shdr),
			      .e_shnum = PARTS + 2,
			      .e_shstrndx = PARTS + 1 };
	Elf64_Phdr segments[] = { { .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = BASE },
				  { .p_type = PT_DYNAMIC, .p_flags = PF_R } };
	Elf64_Shdr headers[PARTS + 2] = { 0 };
	size_t at = write_parts(f, file, sizeof header + sizeof segments, headers);

	segments[1].p_offset = at;
	segments[1].p_vaddr = BASE + at;
	at += write_dynamic(file + at, headers);
	segments[1].p_filesz = segments[1].p_memsz = at - segments[1].p_offset;
	segments[0].p_filesz = segments[0].p_memsz = at;
	headers[PARTS + 1].sh_type = SHT_STRTAB;
	headers[PARTS + 1].sh_offset = at;
	headers[PARTS + 1].sh_size = write_names(file + at, headers, kind);
	at = (at + headers[PARTS + 1].sh_size + 7) & ~(size_t)7;
	header.e_shoff = at;
	memcpy(file, &header, sizeof header);
	memcpy(file + sizeof header, segments, sizeof segments);
	memcpy(file + at, headers, sizeof headers);
	return at + sizeof headers;
}

/* Slots must not overlap, nor leave the code, of which there are @size bytes. */
static void check(const struct fathom_sites *sites, uint64_t size)
{
	uint64_t end = 0;

	for (size_t i = 0; i < fathom_sites_count(sites); i++) {
		const struct fathom_site *s = fathom_sites_get(sites, i);

		if (s->address < end || !s->size || s->function < s->prefix_size)
			abort();
		if (i && s->address + s->size - fathom_sites_get(sites, 0)->address > size)
			abort();
		end = s->address + s->size;
		for (unsigned k = 0; k < s->size; k++)
			fuzz_use(s->bytes[k]);
		for (unsigned k = 0; k < s->prefix_size; k++)
			fuzz_use(s->prefix[k]);
		if (s->answer->symbol)
			fuzz_use(s->answer->symbol_size);
	}
	for (size_t i = 0; i < fathom_sites_slot_count(sites); i++) {
		const struct fathom_call_slot *s = fathom_sites_slot_get(sites, i);

		fuzz_use(strlen(s->symbol) + strlen(s->linkage_name));
		if (i && s->module == fathom_sites_slot_get(sites, i - 1)->module &&
		    s->address <= fathom_sites_slot_get(sites, i - 1)->address)
			abort();
	}
}

/* Checks the calls of module @m, as the tracer looks for them: whatever sites are listed. */
static bool check_calls(void *data, const struct fathom_module_at *m)
{
	struct fathom_syscall_insns calls;
	uint64_t end = 0;
	uint64_t padding = 0;

	(void)data;
	if (fathom_syscall_insns_find(m->module, &calls))
		return true;
	for (size_t i = 0; i < calls.n; i++) {
		const struct fathom_syscall_insn *c = &calls.items[i];

		if (c->svma < end || c->moved_size > c->svma - end ||
		    c->moved_size > FATHOM_SYSCALL_MOVED_MAX || (c->padding && c->moved_size))
			abort();
		if (c->displacements &&
		    (c->moved_size < 4 || c->displacements >> (c->moved_size - 3)))
			abort();
		/*
		 * The shortest end of instructions of four bytes at most that has room for a jump.
		 */
		if (c->is_line && (c->moved_size < 5 || c->moved_size > 8 || c->displacements))
			abort();
		if (c->padding && (c->padding - (c->svma - 126) > 255 || c->padding == padding))
			abort();
		padding = c->padding ? c->padding : padding;
		end = c->svma + FATHOM_X86_SYSCALL_SIZE;
	}
	fathom_array_free(&calls);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *dirs[] = { "/nonexistent", NULL };
	const struct fathom_target_options where = { .size = sizeof where, .debug_dirs = dirs };
	const struct fathom_sites_options options = {
		.size = sizeof options, .flags = FATHOM_SITES_NAMES | FATHOM_SITES_CALLS
	};
	const struct fathom_sites_choice choice = { .wants = check_calls };
	struct fuzz f = fuzz_init(data, size);
	const uint8_t kind = fuzz_byte(&f);
	uint8_t *file = calloc(1, size + 4096);
	struct fathom *session = fuzz_session(NULL);
	struct fathom_target *target;
	struct fathom_sites *sites;
	char path[64];
	const int fd = fuzz_file(file, build(&f, file, kind), path);

	if (!fathom_target_open_file(session, path, &where, &target, NULL)) {
		if (!fathom_sites_list(target, &options, &choice, &sites, NULL)) {
			check(sites, size);
			fathom_sites_free(sites);
		}
		fathom_target_release(target);
	}
	fathom_destroy(session);
	close(fd);
	free(file);
	return 0;
}
