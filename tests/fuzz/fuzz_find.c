/* SPDX-License-Identifier: MIT */
/*
 * Names in a library whose dynamic section, hash tables, symbols, versions and relocations are any
 * bytes; queries and types that are any text.
 */
#include "fuzz.h"

#include <elf.h>
#include <fathom/fathom.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/value/type.h"
#include "safe/elf/gnu_hash.h"
#include "safe/elf/version.h"

/* The parts of the file, one behind the other, all loaded from address 0x1000 on. */
enum { HASH, GNU_HASH, SYMTAB, STRTAB, VERSYM, VERDEF, VERNEED, RELA, PARTS };

#define TEXT 0x1000

static void add(Elf64_Dyn *d, size_t *n, Elf64_Sxword tag, uint64_t value)
{
	d[*n].d_tag = tag;
	d[(*n)++].d_un.d_val = value;
}

/* Writes the file; returns its size. What is not in the input has no entry. */
static size_t build(struct fuzz *f, uint8_t *file)
{
	static const Elf64_Sxword tags[PARTS] = { DT_HASH,   DT_GNU_HASH, DT_SYMTAB,  DT_STRTAB,
						  DT_VERSYM, DT_VERDEF,   DT_VERNEED, DT_RELA };
	Elf64_Ehdr header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1 },
			      .e_type = ET_DYN,
			      .e_machine = EM_X86_64,
			      .e_phoff = sizeof header,
			      .e_phentsize = sizeof(Elf64_Phdr),
			      .e_phnum = 2 };
	Elf64_Phdr segments[2] = { 0 };
	Elf64_Dyn dynamic[PARTS + 8] = { 0 };
	const size_t start = sizeof header + sizeof segments + sizeof dynamic;
	size_t at = start;
	size_t n = 0;

	for (int i = 0; i < PARTS; i++) {
		const struct fathom_bytes b = fuzz_section(f);

		if (b.size)
			add(dynamic, &n, tags[i], TEXT + at);
		if (i == STRTAB)
			add(dynamic, &n, DT_STRSZ, b.size);
		if (i == RELA)
			add(dynamic, &n, DT_RELASZ, b.size);
		if (b.size)
			memcpy(file + at, b.data, b.size);
		at += b.size;
	}
	add(dynamic, &n, DT_SYMENT, sizeof(Elf64_Sym));
	add(dynamic, &n, DT_VERDEFNUM, fuzz_byte(f));
	add(dynamic, &n, DT_VERNEEDNUM, fuzz_byte(f));
	segments[0] = (Elf64_Phdr){ .p_type = PT_LOAD,
				    .p_flags = PF_R | PF_X,
				    .p_vaddr = TEXT,
				    .p_filesz = at,
				    .p_memsz = at + fuzz_byte(f) };
	segments[1] = (Elf64_Phdr){ .p_type = PT_DYNAMIC,
				    .p_offset = sizeof header + sizeof segments,
				    .p_vaddr = TEXT + sizeof header + sizeof segments,
				    .p_filesz = sizeof dynamic };
	memcpy(file, &header, sizeof header);
	memcpy(file + sizeof header, segments, sizeof segments);
	memcpy(file + sizeof header + sizeof segments, dynamic, sizeof dynamic);
	return at;
}

/* A text of the input, as a string. */
static char *take_text(struct fuzz *f)
{
	const struct fathom_bytes b = fuzz_section(f);
	char *text = malloc(b.size + 1);

	if (b.size)
		memcpy(text, b.data, b.size);
	text[b.size] = '\0';
	return text;
}

static void use_matches(struct fathom_target *target, const struct fathom_matches *matches,
			const char *type)
{
	for (size_t i = 0; i < fathom_matches_count(matches) && i < 100; i++) {
		const struct fathom_match *m = fathom_matches_get(matches, i);
		struct fathom_value v = { 0 };

		for (const char *s = m->name; s && *s; s++)
			fuzz_use((uint8_t)*s);
		for (const char *s = m->version; s && *s; s++)
			fuzz_use((uint8_t)*s);
		if (!fathom_value_read(target, type, m->address, &v, NULL))
			for (uint32_t k = 0; v.kind >= FATHOM_VALUE_TEXT && k < v.count; k++)
				fuzz_use(((const uint8_t *)v.items)[k]);
		fathom_value_free(&v);
	}
}

static void ask(struct fathom_target *target, struct fuzz *f, uint32_t flags)
{
	const struct fathom_find_options options = { .size = sizeof options, .flags = flags };
	char *query = take_text(f);
	char *type = take_text(f);
	const char *const queries[] = { query, "a", "b@V", "*", "a::b" };
	struct fathom_matches *matches;
	struct fathom_value_type t;

	(void)fathom_value_type_parse(type, &t, NULL);
	if (!fathom_find(target, &options, queries, sizeof queries / sizeof *queries, &matches,
			 NULL)) {
		use_matches(target, matches, type);
		fathom_matches_free(matches);
	}
	free(query);
	free(type);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *dirs[] = { "/nonexistent", NULL };
	const struct fathom_target_options where = { .size = sizeof where, .debug_dirs = dirs };
	struct fuzz f = fuzz_init(data, size);
	/* The first byte says how the queries are to be read, so that it does not move. */
	const uint32_t flags = fuzz_byte(&f) & (FATHOM_FIND_REGEX | FATHOM_FIND_LITERAL |
						FATHOM_FIND_INLINED | FATHOM_FIND_EXPORTED);
	uint8_t *file = malloc(size + 4096);
	struct fathom_target *target;
	struct fathom *session = fuzz_session(NULL);
	char path[64];
	int fd;

	fd = fuzz_file(file, build(&f, file), path);
	if (!fathom_target_open_file(session, path, &where, &target, NULL)) {
		ask(target, &f, flags);
		fathom_target_release(target);
	}
	fathom_destroy(session);
	close(fd);
	free(file);
	return 0;
}
