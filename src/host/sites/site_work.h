/* SPDX-License-Identifier: MIT */
/*
 * The search for the sites of one module. sites.c runs it; functions.c knows where functions start,
 * hooks.c what calls lead to; patchable.c, locations.c, xray.c and entries.c each find the sites of
 * some kinds. All addresses are svma.
 *
 * Every word of a table of sites, and all of the code, is input that may be hostile: a word is a
 * hint, which the code at its address must confirm.
 */
#ifndef FATHOM_SITES_SITE_WORK_H
#define FATHOM_SITES_SITE_WORK_H

#include "host/disasm/code.h"
#include "host/file/fixups.h"
#include "host/sites/functions.h"
#include "host/sites/hooks.h"
#include "host/sites/sites.h"

/* The search in one module. */
struct fathom_site_work {
	struct fathom_module *module;
	struct fathom_object *object;
	struct fathom_fixups *fixups;
	struct fathom_functions functions;
	struct fathom_instrument_hooks hooks;
	struct fathom_code_decoder *decoder; /* x86; NULL on aarch64, or if it is not installed */
	struct fathom_bytes code;            /* the piece of code that was looked at last */
	uint64_t code_svma;                  /* of its first byte */
	uint64_t left;                       /* bytes that may still be decoded */
	bool is_aarch64;                     /* aarch64, else x86-64 */
	struct fathom_module_sites *to;
};

/* Returns the code from @svma to the end of its piece; none if it has none there. */
struct fathom_bytes fathom_site_code(struct fathom_site_work *w, uint64_t svma);

/*
 * Counts @size bytes of code that were looked at. Returns false when that is more than any real
 * file makes necessary.
 */
static inline bool fathom_site_may_go_on(struct fathom_site_work *w, uint64_t size)
{
	if (size > w->left)
		return false;
	w->left -= size;
	return true;
}

/* Adds a site; FATHOM_E_LIMIT or FATHOM_E_MEMORY. */
fathom_err fathom_site_add(struct fathom_site_work *w, const struct fathom_raw_site *site);

/* Counts a record that is not believed. */
static inline void fathom_site_refuse(struct fathom_site_work *w, enum fathom_site_refusal why)
{
	w->to->n_refused[why]++;
}

/*
 * Decodes the instruction at @svma for its size and where it leads. Returns false if there is none,
 * or no decoder.
 */
bool fathom_site_decode(struct fathom_site_work *w, uint64_t svma, struct fathom_stack_code *ret);

/* Steps from the start of a function over its instructions in a line. */
struct fathom_site_line {
	uint64_t start;   /* of the function */
	uint64_t svma;    /* of the next instruction */
	uint64_t joined;  /* all ways from the start lead through each instruction from here on */
	bool has_frame;   /* the frame pointer was set */
	bool is_prologue; /* all so far belongs to a prologue */
	bool is_lost;     /* how far the stack pointer has moved is not known (x86) */
	uint64_t frame;   /* bytes that it has moved */
};

struct fathom_site_line fathom_site_line_init(uint64_t start);

/*
 * Steps over one instruction. Returns false where the line ends: at calls, jumps, returns, and
 * branches to elsewhere.
 */
bool fathom_site_line_next(struct fathom_site_work *w, struct fathom_site_line *line);

/*
 * Returns whether an instruction of the function that holds @svma starts there. *@line is kept
 * between calls with rising @svma: then each instruction is decoded once.
 */
bool fathom_site_is_instruction(struct fathom_site_work *w, struct fathom_site_line *line,
				uint64_t svma);

/*
 * Reads the tables in the sections called @name, word by word. The word of a movable file is what
 * the loader will make of it, less the bias.
 */
struct fathom_site_words {
	struct fathom_site_work *w;
	const char *name;
	uint32_t section;
	uint64_t off; /* of the next word in the section */
	size_t fixup; /* the next relocation that may change it */
};

struct fathom_site_words fathom_site_words_init(struct fathom_site_work *w, const char *name);
bool fathom_site_words_next(struct fathom_site_words *words, uint64_t *ret);
/*
 * Returns @word, the 8 bytes at @svma, as the loader will leave it. *@i is 0, or as an earlier call
 * for a lower @svma left it.
 */
uint64_t fathom_site_word(struct fathom_site_work *w, struct fathom_bytes word, uint64_t svma,
			  size_t *i);

fathom_err fathom_site_find_patchable(struct fathom_site_work *w);
fathom_err fathom_site_find_locations(struct fathom_site_work *w);
fathom_err fathom_site_find_xray(struct fathom_site_work *w);
fathom_err fathom_site_find_entries(struct fathom_site_work *w);
/* Of the entries that were found. */
fathom_err fathom_site_find_exits(struct fathom_site_work *w);

#endif
