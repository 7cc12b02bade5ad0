/* SPDX-License-Identifier: MIT */
/* Prints answers in llvm-symbolizer's three styles: LLVM's own, GNU addr2line's, and JSON. */
#ifndef FATHOM_CLI_COMPAT_LLVM_STYLES_H
#define FATHOM_CLI_COMPAT_LLVM_STYLES_H

#include <stdbool.h>

#include <fathom/compat.h>

#include "cli/compat/llvm/flags.h"
#include "cli/compat/llvm/request.h"
#include "cli/compat/llvm/source_text.h"
#include "cli/out.h"

/* The place of a frame or symbol in the source. */
struct llvm_place {
	struct fathom_compat_name function; /* name NULL: not known */
	bool is_short;                      /* print the plain name */
	const char *file;                   /* NULL: not known */
	struct llvm_text source;            /* embedded text of file; data NULL: none */
	uint32_t line;
	uint32_t column;
	uint32_t discriminator;
	const char *start_file; /* where the function is declared; NULL: not known */
	uint32_t start_line;
	bool has_start;
	uint64_t start; /* the function's first address */
};

/* A variable. */
struct llvm_variable {
	struct fathom_compat_name name; /* name NULL: not known */
	uint64_t start;
	uint64_t size;
	const char *file; /* NULL: not known */
	uint32_t line;
};

/* The request as answers repeat it. */
struct llvm_question {
	const char *module;
	size_t module_size;
	struct llvm_text symbol; /* the symbol, if no address was given */
	bool has_address;
	uint64_t address;
};

struct llvm_printer {
	const struct llvm_options *options;
	struct out *out;
	struct out scratch;
	struct fathom_source_files *sources; /* NULL: no lines are shown */
	unsigned depth;                      /* of the JSON value being written */
	bool filled;                         /* the object or array being written has members */
	bool in_list;                        /* the answers are one JSON array */
};

void llvm_printer_init(struct llvm_printer *p, const struct llvm_options *options, struct out *out);
void llvm_printer_deinit(struct llvm_printer *p);

/* Print the start and end of the output if the requests are on the command line. */
void llvm_print_begin(struct llvm_printer *p);
void llvm_print_end(struct llvm_printer *p);

/* Prints the frames at an address, innermost first, or the places of a symbol. */
void llvm_print_places(struct llvm_printer *p, const struct llvm_question *q,
		       const struct llvm_place *places, size_t n);
void llvm_print_variable(struct llvm_printer *p, const struct llvm_question *q,
			 const struct llvm_variable *v);
/* Prints the local variables of a frame: so far, always none. */
void llvm_print_locals(struct llvm_printer *p, const struct llvm_question *q);

/* Prints the answer if the module cannot be read; JSON only. */
void llvm_print_error(struct llvm_printer *p, const struct llvm_question *q, const char *why);

#endif
