/* SPDX-License-Identifier: MIT */
/*
 * The requests of llvm-symbolizer 19 and llvm-addr2line 19, one a line (the manual page of the
 * former, "DESCRIPTION"):
 *
 *	[CODE |DATA |FRAME ][FILE:|BUILDID:]MODULE ADDRESS
 *
 * without MODULE where the command line names the file. MODULE may stand in quotes of either kind,
 * which nothing escapes. ADDRESS is a number, decimal or with 0x, 0b, 0o or 0 in front, or SYMBOL,
 * or SYMBOL+NUMBER. llvm-addr2line takes numbers for hexadecimal, but for the one behind SYMBOL.
 * What follows ADDRESS is ignored.
 */
#ifndef FATHOM_CLI_COMPAT_LLVM_REQUEST_H
#define FATHOM_CLI_COMPAT_LLVM_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum llvm_command {
	LLVM_CODE,
	LLVM_DATA,
	LLVM_FRAME,
	LLVM_SYMBOL, /* code, whose address is that of symbol plus address */
	LLVM_EMPTY,  /* an empty line: clients ask so whether the symbolizer is alive */
	LLVM_INVALID,
};

/* A part of the line; data is NULL where it has none. */
struct llvm_text {
	const char *data;
	size_t size;
};

struct llvm_request {
	enum llvm_command command;
	bool is_build_id;        /* module is the hexadecimal digits of one */
	bool has_module;         /* what is wrong, if so, stands behind it */
	struct llvm_text module; /* empty: the file of the command line */
	struct llvm_text symbol;
	uint64_t address;
	const char *error; /* of an invalid one: static text */
};

/* What the command line says about all requests. */
struct llvm_request_rules {
	bool has_file;       /* requests do not name theirs */
	bool is_hexadecimal; /* llvm-addr2line: addresses are, with or without 0x */
};

/* Reads the request @line by @rules. The parts of *@ret point into the line. */
void llvm_request_parse(const char *line, size_t size, const struct llvm_request_rules *rules,
			struct llvm_request *ret);

/* The number @s, in the base that its first digits tell; false when it is none. */
bool llvm_parse_number(struct llvm_text s, uint64_t *ret);

/* Whether @s consists of hexadecimal digits, at least one. */
bool llvm_is_hex(struct llvm_text s);

#endif
