/* SPDX-License-Identifier: MIT */
#include "host/trace/slots.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The most bytes of a table of relocations, and of a name. */
#define MOST_TABLE ((uint64_t)64 << 20)
#define MOST_NAME  4096

/* The most program headers, and entries of the dynamic section. */
enum { MOST_HEADERS = 256, MOST_ENTRIES = 1024 };

/* x86-64: call rel32; jmp *rel32(%rip) */
enum { CALL = 0xe8, CALL_SIZE = 5, JUMP_SIZE = 6 };

/* What the dynamic section says. Addresses are avma. */
struct dynamic {
	uint64_t relocations;
	uint64_t size;
	uint64_t symbols;
	uint64_t strings;
	bool is_rela;
};

/* The file of a module. */
struct file {
	int fd;
	size_t n;
	Elf64_Phdr headers[MOST_HEADERS];
};

/* Opens the file at @path, as @p sees it. */
static bool open_file(const struct fathom_traced *p, const char *path, struct file *ret)
{
	char own[PATH_MAX + 64];
	Elf64_Ehdr head;
	struct stat st;
	ssize_t n = 0;

	(void)snprintf(own, sizeof own, "/proc/%d/root%s", (int)p->tracee.pid, path);
	ret->fd = open(own, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (ret->fd < 0)
		return false;
	if (!fstat(ret->fd, &st) && S_ISREG(st.st_mode) &&
	    pread(ret->fd, &head, sizeof head, 0) == sizeof head &&
	    !memcmp(head.e_ident, ELFMAG, SELFMAG) && head.e_ident[EI_CLASS] == ELFCLASS64 &&
	    head.e_machine == EM_X86_64 && head.e_phentsize == sizeof *ret->headers &&
	    head.e_phnum <= MOST_HEADERS)
		n = pread(ret->fd, ret->headers, head.e_phnum * sizeof *ret->headers,
			  (off_t)head.e_phoff);
	ret->n = n > 0 ? (size_t)n / sizeof *ret->headers : 0;
	return true;
}

/* Returns the svma of the dynamic section; 0 if there is none. */
static uint64_t find_dynamic(const struct file *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->headers[i].p_type == PT_DYNAMIC)
			return f->headers[i].p_vaddr;
	return 0;
}

/* Reads @size bytes at @svma of the file. */
static bool read_file(const struct file *f, uint64_t svma, void *to, uint64_t size)
{
	for (size_t i = 0; i < f->n; i++) {
		const Elf64_Phdr *h = &f->headers[i];

		if (h->p_type == PT_LOAD && svma - h->p_vaddr < h->p_filesz)
			return pread(f->fd, to, size, (off_t)(svma - h->p_vaddr + h->p_offset)) ==
			       (ssize_t)size;
	}
	return false;
}

/*
 * Has the slots lead to where they would without the one who has traced @p before, and was killed:
 * their relocations are not those of the file.
 */
static bool mend(const struct fathom_traced *p, const struct file *f, const struct dynamic *d,
		 uint64_t bias, Elf64_Rela *table)
{
	const uint64_t n = d->size / sizeof *table;
	Elf64_Rela *was = malloc(d->size);
	bool is_fine = was && read_file(f, d->relocations - bias, was, d->size);

	for (uint64_t i = 0; is_fine && i < n; i++) {
		const struct fathom_call_slot slot = {
			.avma = was[i].r_offset + bias,
			.relocation =
				d->relocations + i * sizeof *table + offsetof(Elf64_Rela, r_offset),
			.word = table[i].r_offset + bias,
			.bias = bias,
		};

		if (slot.word != slot.avma)
			is_fine = fathom_slots_undo(&p->tracee, &slot);
		table[i].r_offset = was[i].r_offset;
	}
	free(was);
	return is_fine;
}

/* Reads the dynamic section at @avma; false if no functions of other modules are called. */
static bool read_dynamic(const struct fathom_traced *p, uint64_t avma, uint64_t bias,
			 struct dynamic *ret)
{
	*ret = (struct dynamic){ .size = 0 };
	for (size_t i = 0; i < MOST_ENTRIES; i++) {
		Elf64_Dyn entry;
		uint64_t address;

		if (!fathom_tracee_read(&p->tracee, avma + i * sizeof entry, &entry,
					sizeof entry) ||
		    entry.d_tag == DT_NULL)
			break;
		/* glibc makes them avma where it can write, musl does not. */
		address = entry.d_un.d_ptr < bias ? entry.d_un.d_ptr + bias : entry.d_un.d_ptr;
		if (entry.d_tag == DT_JMPREL)
			ret->relocations = address;
		else if (entry.d_tag == DT_PLTRELSZ)
			ret->size = entry.d_un.d_val;
		else if (entry.d_tag == DT_SYMTAB)
			ret->symbols = address;
		else if (entry.d_tag == DT_STRTAB)
			ret->strings = address;
		else if (entry.d_tag == DT_PLTREL)
			ret->is_rela = entry.d_un.d_val == DT_RELA;
	}
	return ret->is_rela && ret->relocations && ret->symbols && ret->strings && ret->size &&
	       ret->size <= MOST_TABLE;
}

/* Returns the name of symbol @i; NULL if it cannot be read, or there is none. */
static const char *name_of(const struct fathom_traced *p, const struct dynamic *d, uint64_t i,
			   struct fathom_arena *arena)
{
	char text[MOST_NAME];
	Elf64_Sym symbol;
	size_t n = 0;

	if (!fathom_tracee_read(&p->tracee, d->symbols + i * sizeof symbol, &symbol,
				sizeof symbol) ||
	    !symbol.st_name)
		return NULL;
	/* A piece at a time: the end of the strings may be the end of the mapping. */
	while (n < sizeof text) {
		if (!fathom_tracee_read(&p->tracee, d->strings + symbol.st_name + n, text + n,
					16) &&
		    !fathom_tracee_read(&p->tracee, d->strings + symbol.st_name + n, text + n, 1))
			return NULL;
		if (memchr(text + n, '\0', 16))
			break;
		n += 16;
	}
	return n < sizeof text ? fathom_arena_strdup(
					 arena, (struct fathom_str){ text, (uint32_t)strlen(text) })
			       : NULL;
}

bool fathom_slots_find(const struct fathom_traced *p, const char *path, uint64_t bias,
		       struct fathom_arena *arena, struct fathom_call_slots *ret)
{
	struct file f;
	Elf64_Rela *table = NULL;
	struct dynamic d;
	bool is_whole = true;
	bool has = false;

	if (path[0] != '/' || !open_file(p, path, &f))
		return false;
	if (find_dynamic(&f) && read_dynamic(p, find_dynamic(&f) + bias, bias, &d))
		table = malloc(d.size);
	if (table)
		has = fathom_tracee_read(&p->tracee, d.relocations, table, d.size) &&
		      (!p->was_traced || mend(p, &f, &d, bias, table));
	close(f.fd);
	if (!has) {
		free(table);
		return false;
	}
	for (uint64_t i = 0; i < d.size / sizeof *table && is_whole; i++) {
		const uint64_t avma = table[i].r_offset + bias;
		struct fathom_call_slot slot = { .avma = avma, .bias = bias };

		/* A function that is nowhere, because it need not be, stays so. */
		if (ELF64_R_TYPE(table[i].r_info) != R_X86_64_JUMP_SLOT ||
		    !fathom_tracee_word(&p->tracee, avma))
			continue;
		slot.relocation =
			d.relocations + i * sizeof *table + offsetof(Elf64_Rela, r_offset);
		slot.name = name_of(p, &d, ELF64_R_SYM(table[i].r_info), arena);
		is_whole = !slot.name || fathom_array_push(ret, slot);
	}
	free(table);
	return ret->n != 0;
}

bool fathom_slots_hook(const struct fathom_traced *p, const struct fathom_call_slot *slot,
		       uint64_t hook)
{
	const int64_t call = (int64_t)(hook - (slot->stub + CALL_SIZE));
	const int64_t jump = (int64_t)(slot->word - (slot->stub + CALL_SIZE + JUMP_SIZE));
	const uint64_t at = slot->word - slot->bias;
	const uint64_t content = fathom_tracee_word(&p->tracee, slot->avma);
	uint8_t stub[CALL_SIZE + JUMP_SIZE] = { CALL, 0, 0, 0, 0, 0xff, 0x25 };

	memcpy(stub + 1, &call, 4);
	memcpy(stub + CALL_SIZE + 2, &jump, 4);
	return call == (int32_t)call && jump == (int32_t)jump &&
	       fathom_tracee_write(&p->tracee, slot->stub, stub, sizeof stub) &&
	       fathom_tracee_write(&p->tracee, slot->word, &content, sizeof content) &&
	       fathom_tracee_write(&p->tracee, slot->relocation, &at, sizeof at) &&
	       fathom_tracee_write(&p->tracee, slot->avma, &slot->stub, sizeof slot->stub);
}

bool fathom_slots_undo(const struct fathom_tracee *t, const struct fathom_call_slot *slot)
{
	const uint64_t content = fathom_tracee_word(t, slot->word);
	const uint64_t at = slot->avma - slot->bias;

	return content && fathom_tracee_write(t, slot->relocation, &at, sizeof at) &&
	       fathom_tracee_write(t, slot->avma, &content, sizeof content);
}

void fathom_hooked_acquire(struct fathom_hooked *hooked)
{
	if (hooked)
		hooked->references++;
}

void fathom_hooked_release(struct fathom_hooked *hooked)
{
	if (!hooked || --hooked->references)
		return;
	fathom_array_free(&hooked->slots);
	free(hooked);
}
