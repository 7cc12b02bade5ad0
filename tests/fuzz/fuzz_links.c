/* SPDX-License-Identifier: MIT */
/*
 * Debug links: .gnu_debuglink, .gnu_debugaltlink, .debug_sup and .gnu_debugdata with any content,
 * in a file that is sound otherwise.
 */
#include "fuzz.h"

#include <elf.h>
#include <fathom/fathom.h>
#include <stdlib.h>
#include <unistd.h>

#define N_SECTIONS 6

static const char names[] = "\0.gnu_debuglink\0.gnu_debugaltlink\0.debug_sup\0.gnu_debugdata\0"
			    ".debug_info\0";

/* Writes an ELF file whose sections are the parts of the input; returns its size. */
static size_t build(struct fuzz *f, uint8_t *file)
{
	static const uint32_t name_at[N_SECTIONS] = { 0, 1, 16, 34, 45, 60 };
	Elf64_Ehdr header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1 },
			      .e_type = ET_DYN,
			      .e_machine = EM_X86_64,
			      .e_shoff = sizeof header,
			      .e_shentsize = sizeof(Elf64_Shdr),
			      .e_shnum = N_SECTIONS + 1,
			      .e_shstrndx = N_SECTIONS };
	Elf64_Shdr sections[N_SECTIONS + 1] = { 0 };
	size_t at = sizeof header + sizeof sections;

	for (int i = 1; i < N_SECTIONS; i++) {
		struct fathom_bytes b = fuzz_section(f);

		/* Debug information in the file would end the search for links. */
		if (i == N_SECTIONS - 1 && b.size % 2)
			b.size = 0;
		sections[i] = (Elf64_Shdr){ .sh_name = name_at[i],
					    .sh_type = SHT_PROGBITS,
					    .sh_offset = at,
					    .sh_size = b.size };
		if (!b.size && i == N_SECTIONS - 1)
			sections[i].sh_type = SHT_NOBITS;
		if (b.size)
			memcpy(file + at, b.data, b.size);
		at += b.size;
	}
	sections[N_SECTIONS] =
		(Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = at, .sh_size = sizeof names };
	memcpy(file + at, names, sizeof names);
	memcpy(file, &header, sizeof header);
	memcpy(file + sizeof header, sections, sizeof sections);
	return at + sizeof names;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *dirs[] = { "/nonexistent", NULL };
	const struct fathom_target_options where = { .size = sizeof where, .debug_dirs = dirs };
	struct fuzz f = fuzz_init(data, size);
	uint8_t *file = malloc(size + 4096);
	struct fathom_answers *answers;
	struct fathom_target *target;
	struct fathom *session = fuzz_session(NULL);
	uint64_t address = 0x1000;
	char path[64];
	int fd;

	fd = fuzz_file(file, build(&f, file), path);
	if (!fathom_target_open_file(session, path, &where, &target, NULL)) {
		if (!fathom_symbolize(target, NULL, &address, NULL, 1, &answers, NULL))
			fathom_answers_free(answers);
		fathom_target_release(target);
	}
	fathom_destroy(session);
	close(fd);
	free(file);
	return 0;
}
