/* SPDX-License-Identifier: MIT */
/*
 * The symbols of the running kernel, from /proc/kallsyms: "ADDRESS TYPE NAME", and for what is not
 * of its image a tab and "[OWNER]": a module, or "bpf", "__builtin__ftrace", "__builtin__kprobes"
 * (Linux, kernel/kallsyms.c and scripts/kallsyms.c; the types are those of nm(1)).
 *
 * There are no sizes. What holds here:
 * - A symbol of code (t, T, w, W) names what lies between it and the next symbol, if code of the
 *   same owner comes next; else it ends with its page: text does, what follows is not known.
 * - Pages that the kernel makes itself (__builtin__) hold one thing each.
 * - Any other symbol names its own address only, and so do the marks that the kernel's linker
 *   scripts put around code (_etext, __sched_text_end), which are the last to be preferred.
 * - Absolute symbols (A), which may be offsets in per-CPU memory, name nothing.
 */
#ifndef FATHOM_TARGET_KERNEL_KALLSYMS_H
#define FATHOM_TARGET_KERNEL_KALLSYMS_H

#include "safe/base/bytes.h"
#include "safe/base/error.h"

struct fathom_kallsym {
	uint64_t avma;
	const char *name;
	uint32_t name_size;
	uint16_t owner_size; /* 0: the kernel's image; else its owner is at name + name_size + 2 */
	char type;
};

struct fathom_kallsyms {
	char *text;                   /* with the names */
	struct fathom_kallsym *items; /* those of the image, then the others; each sorted by avma */
	size_t n_image;
	size_t n;
	uint64_t memory;   /* bytes that all of it takes */
	uint64_t known_to; /* UINT64_MAX: all is known; of a part, what is below that */
	bool is_hidden;    /* there are symbols, but every address is 0 */
};

/*
 * Takes @text, of @size bytes from malloc(), apart, and keeps it. Lines that are no symbols are
 * left out. FATHOM_E_MEMORY.
 */
fathom_err fathom_kallsyms_parse(char *text, size_t size, struct fathom_kallsyms *ret);

/*
 * Reads the text at @path; for @until below UINT64_MAX only as far as is needed to name addresses
 * of the image up to that. FATHOM_E_OS, FATHOM_E_LIMIT, FATHOM_E_MEMORY.
 */
fathom_err fathom_kallsyms_read(const char *path, uint64_t until, struct fathom_kallsyms *ret,
				struct fathom_errinfo *reterr);
void fathom_kallsyms_deinit(struct fathom_kallsyms *k);

/*
 * The address of the start of the kernel's text, _text or else _stext, and which of them, without
 * reading all; 0 when addresses are hidden. FATHOM_E_NOT_FOUND when there is neither.
 */
fathom_err fathom_kallsyms_read_start(const char *path, uint64_t *ret_avma, const char **ret_name,
				      struct fathom_errinfo *reterr);

struct fathom_kallsym_hit {
	uint64_t start; /* avma */
	uint64_t size;  /* 0: not known */
	struct fathom_str name;
	struct fathom_str owner; /* size 0: the kernel's image */
};

/* The symbol that names @avma; false when none does. */
bool fathom_kallsyms_at(const struct fathom_kallsyms *k, uint64_t avma,
			struct fathom_kallsym_hit *ret);

/* What is known of a symbol. */
struct fathom_kallsym_facts {
	uint64_t avma;
	struct fathom_str name;
	struct fathom_str owner; /* size 0: the kernel's image */
	uint8_t type;            /* STT_NOTYPE (a mark), STT_FUNC or STT_OBJECT */
	uint8_t bind;            /* STB_ */
};

/* Those of item @i, below n. */
void fathom_kallsyms_describe(const struct fathom_kallsyms *k, size_t i,
			      struct fathom_kallsym_facts *ret);

/* Returns how many bytes item @i has; 0: not known. */
uint64_t fathom_kallsyms_size(const struct fathom_kallsyms *k, size_t i);

/* Who has the last symbol at or before @avma, named or not; size 0: the image, or nobody. */
struct fathom_str fathom_kallsyms_owner(const struct fathom_kallsyms *k, uint64_t avma);

/* Whether @avma lies between symbols of the image. */
bool fathom_kallsyms_in_image(const struct fathom_kallsyms *k, uint64_t avma);

#endif
