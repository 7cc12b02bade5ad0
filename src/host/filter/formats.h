/* SPDX-License-Identifier: MIT */
/* The formats of lines with addresses: one file each in formats/, one table. */
#ifndef FATHOM_FILTER_FORMATS_H
#define FATHOM_FILTER_FORMATS_H

#include "host/filter/log_scan.h"

struct fathom_log_format {
	const char *name;
	/*
	 * Adds the addresses of @line, from its start; notes what the line says of later ones.
	 * Returns whether the line is of this format.
	 */
	bool (*read)(struct fathom_log_scan *s, struct fathom_log_line line);
};

/* The table, in the order in which formats are tried; ends with a name of NULL. */
extern const struct fathom_log_format fathom_log_formats[];

bool fathom_log_read_sanitizer(struct fathom_log_scan *s, struct fathom_log_line line);
bool fathom_log_read_llvm(struct fathom_log_scan *s, struct fathom_log_line line);
bool fathom_log_read_coredump(struct fathom_log_scan *s, struct fathom_log_line line);
bool fathom_log_read_tombstone(struct fathom_log_scan *s, struct fathom_log_line line);
bool fathom_log_read_eu_stack(struct fathom_log_scan *s, struct fathom_log_line line);
bool fathom_log_read_backtrace(struct fathom_log_scan *s, struct fathom_log_line line);
bool fathom_log_read_segfault(struct fathom_log_scan *s, struct fathom_log_line line);
bool fathom_log_read_hotspot(struct fathom_log_scan *s, struct fathom_log_line line);
bool fathom_log_read_node(struct fathom_log_scan *s, struct fathom_log_line line);
bool fathom_log_read_code(struct fathom_log_scan *s, struct fathom_log_line line);
bool fathom_log_read_kernel(struct fathom_log_scan *s, struct fathom_log_line line);
bool fathom_log_read_markup(struct fathom_log_scan *s, struct fathom_log_line line);
bool fathom_log_read_maps(struct fathom_log_scan *s, struct fathom_log_line line);
bool fathom_log_read_valgrind(struct fathom_log_scan *s, struct fathom_log_line line);
bool fathom_log_read_gdb(struct fathom_log_scan *s, struct fathom_log_line line);
bool fathom_log_read_rust(struct fathom_log_scan *s, struct fathom_log_line line);
bool fathom_log_read_perf(struct fathom_log_scan *s, struct fathom_log_line line);
bool fathom_log_read_go(struct fathom_log_scan *s, struct fathom_log_line line);
bool fathom_log_read_number(struct fathom_log_scan *s, struct fathom_log_line line);

/* The head of a frame: "#3  0x7f..", with any number of blanks. */
struct fathom_log_frame {
	uint32_t number;
	uint64_t pc;
	const char *start; /* its # */
	const char *pc_at;
};

/* Goes to after the head of the first frame in @line; returns false if there is none. */
bool fathom_log_take_frame(struct fathom_log_line *line, struct fathom_log_frame *ret);

/*
 * Finds "(MODULE+0xOFFSET)" in the rest of @line, where @plus stands for what is between the two:
 * "+0x" or " + 0x". Fills module, value, at and size of @ret and goes to after it. The parenthesis
 * is the first one before a path, else the last one.
 */
bool fathom_log_take_place(struct fathom_log_line *line, const char *plus,
			   struct fathom_log_number *ret);

/* Takes "(BuildId: HEX)" if the line has it. */
void fathom_log_take_build_id(struct fathom_log_line line, struct fathom_log_number *ret);

#endif
