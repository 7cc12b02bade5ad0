/* SPDX-License-Identifier: MIT */
#include "host/filter/formats.h"

/* Of formats that fit one line, the one that says more comes first. */
const struct fathom_log_format fathom_log_formats[] = {
	{ "markup", fathom_log_read_markup },
	{ "coredump", fathom_log_read_coredump },
	{ "eu-stack", fathom_log_read_eu_stack },
	{ "sanitizer", fathom_log_read_sanitizer },
	{ "llvm", fathom_log_read_llvm },
	{ "tombstone", fathom_log_read_tombstone },
	{ "backtrace", fathom_log_read_backtrace },
	{ "segfault", fathom_log_read_segfault },
	{ "hotspot", fathom_log_read_hotspot },
	{ "node", fathom_log_read_node },
	{ "code", fathom_log_read_code },
	{ "kernel", fathom_log_read_kernel },
	{ "perf", fathom_log_read_perf },
	{ "maps", fathom_log_read_maps },
	{ "valgrind", fathom_log_read_valgrind },
	{ "gdb", fathom_log_read_gdb },
	{ "rust", fathom_log_read_rust },
	{ "go", fathom_log_read_go },
	{ "number", fathom_log_read_number },
	/* The end. */
	{ NULL, NULL },
};
