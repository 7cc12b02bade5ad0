/* SPDX-License-Identifier: MIT */
/*
 * The command line of llvm-symbolizer 19 and llvm-addr2line 19, one tool with two sets of defaults:
 * long options with two dashes, their values after '=' or in the next argument; short options in
 * groups; @FILE, whose words take the argument's place; and LLVM_SYMBOLIZER_OPTS or
 * LLVM_ADDR2LINE_OPTS, whose words come first.
 *
 * Accepted without effect: --cache-size, --color, --default-arch, --dia, --dsym-hint, --dwp,
 * --relative-address, --untag-addresses, --no-untag-addresses, and --use-symbol-table of earlier
 * versions. Not supported: --filter-markup.
 */
#ifndef FATHOM_CLI_COMPAT_LLVM_FLAGS_H
#define FATHOM_CLI_COMPAT_LLVM_FLAGS_H

#include <stdbool.h>

#include <fathom/fathom.h>

#include "cli/compat/words.h"

enum llvm_style { LLVM_STYLE_LLVM, LLVM_STYLE_GNU, LLVM_STYLE_JSON };
enum llvm_functions { LLVM_FUNCTIONS_LINKAGE, LLVM_FUNCTIONS_SHORT, LLVM_FUNCTIONS_NONE };
enum llvm_paths { LLVM_PATHS_ABSOLUTE, LLVM_PATHS_RELATIVE, LLVM_PATHS_BASENAME };

struct llvm_options {
	bool is_addr2line; /* called as llvm-addr2line: addresses are hexadecimal */
	const char *file;  /* NULL: every request names its file */
	const char *build_id;
	enum llvm_style style;
	enum llvm_functions functions;
	enum llvm_paths paths;
	bool inlines;
	bool demangle;
	bool pretty;
	bool addresses;
	bool verbose;
	bool debuginfod;
	uint64_t adjust_vma;
	uint64_t context_lines;
	uint64_t cache_size;     /* bytes; modules are closed when they take more */
	const char **debug_dirs; /* NULL-terminated; NULL: the default ones */
	size_t n_debug_dirs;
	const char *fallback_dir;
	const char *dwp;     /* package of split debug files; NULL: the one beside each file */
	const char **inputs; /* requests on the command line */
	size_t n_inputs;
	struct words words; /* storage of all texts above */
};

/*
 * Parses the command line; the last part of argv[0] selects one of the two tools. Exits with status
 * 1 on errors, and with status 0 after --help and --version.
 */
void llvm_options_parse(int argc, char **argv, struct llvm_options *ret);
void llvm_options_deinit(struct llvm_options *o);

#endif
