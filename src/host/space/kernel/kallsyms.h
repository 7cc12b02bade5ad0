/* SPDX-License-Identifier: MIT */
/*
 * The symbols of the running kernel, from /proc/kallsyms: "ADDRESS TYPE NAME", then, outside the
 * image, a tab and "[OWNER]": a module, or "bpf", "__builtin__ftrace", "__builtin__kprobes" (Linux,
 * kernel/kallsyms.c and scripts/kallsyms.c; the types are those of nm(1)).
 *
 * There are no sizes. The rules are:
 * - A code symbol (t, T, w, W) reaches to the next symbol if that is code of the same owner,
 *   otherwise to the end of its page: text fills its page, and what follows is unknown.
 * - A page that the kernel makes itself (__builtin__) holds one symbol.
 * - Any other symbol names its own address only. So do the marks that the kernel's linker scripts
 *   put around code (_etext, __sched_text_end); they are the last choice.
 * - Absolute symbols (A) name nothing: they may be offsets in per-CPU memory.
 */
#ifndef FATHOM_KERNEL_KALLSYMS_H
#define FATHOM_KERNEL_KALLSYMS_H

#include "safe/base/bytes.h"
#include "safe/base/error.h"

struct fathom;

struct fathom_kallsym {
	uint64_t avma;
	const char *name;
	uint32_t name_size;
	uint16_t owner_size; /* 0: the kernel's image; else the owner is at name + name_size + 2 */
	char type;
};

struct fathom_kallsyms {
	char *text;                   /* holds the names */
	struct fathom_kallsym *items; /* the image's, then the others; each part sorted by avma */
	size_t n_image;
	size_t n;
	uint64_t memory;   /* bytes in total */
	uint64_t known_to; /* symbols below it were read; UINT64_MAX: all */
	bool is_hidden;    /* there are symbols, but every address is 0 */
};

/*
 * Parses @text, @size bytes from malloc(), and takes it over. Skips malformed lines.
 * FATHOM_E_MEMORY.
 */
fathom_err fathom_kallsyms_parse(char *text, size_t size, struct fathom_kallsyms *ret);

/*
 * Reads the text at @path; if @until is below UINT64_MAX, only as far as needed to name addresses
 * of the image up to @until. Asks the progress of @session unless it is NULL. FATHOM_E_OS,
 * FATHOM_E_LIMIT, FATHOM_E_CANCELLED, FATHOM_E_MEMORY.
 */
fathom_err fathom_kallsyms_read(const char *path, uint64_t until, struct fathom *session,
				struct fathom_kallsyms *ret, struct fathom_errinfo *reterr);
void fathom_kallsyms_deinit(struct fathom_kallsyms *k);

/*
 * Finds the start of the kernel's text, _text or else _stext, without reading all: its name and its
 * address, 0 if addresses are hidden. FATHOM_E_NOT_FOUND if there is neither. Asks as
 * fathom_kallsyms_read() does.
 */
fathom_err fathom_kallsyms_read_start(const char *path, struct fathom *session, uint64_t *ret_avma,
				      const char **ret_name, struct fathom_errinfo *reterr);

struct fathom_kallsym_hit {
	uint64_t start; /* avma */
	uint64_t size;  /* 0: unknown */
	struct fathom_str name;
	struct fathom_str owner; /* size 0: the kernel's image */
};

/* Finds the symbol that names @avma; returns false if none does. */
bool fathom_kallsyms_at(const struct fathom_kallsyms *k, uint64_t avma,
			struct fathom_kallsym_hit *ret);

/* A symbol in the terms of ELF. */
struct fathom_kallsym_facts {
	uint64_t avma;
	struct fathom_str name;
	struct fathom_str owner; /* size 0: the kernel's image */
	uint8_t type;            /* STT_NOTYPE (a mark), STT_FUNC or STT_OBJECT */
	uint8_t bind;            /* STB_ */
};

/* Describes item @i, below n. */
void fathom_kallsyms_describe(const struct fathom_kallsyms *k, size_t i,
			      struct fathom_kallsym_facts *ret);

/* Returns the size of item @i in bytes; 0: unknown. */
uint64_t fathom_kallsyms_size(const struct fathom_kallsyms *k, size_t i);

/*
 * Returns the owner of the last symbol at or before @avma, even if it names nothing; size 0: the
 * image, or none.
 */
struct fathom_str fathom_kallsyms_owner(const struct fathom_kallsyms *k, uint64_t avma);

/* Returns whether @avma lies between symbols of the image. */
bool fathom_kallsyms_in_image(const struct fathom_kallsyms *k, uint64_t avma);

#endif
