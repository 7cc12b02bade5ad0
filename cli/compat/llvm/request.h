/* SPDX-License-Identifier: MIT */
/*
 * The requests of llvm-symbolizer 19 and llvm-addr2line 19, one a line (the manual page of the
 * former, "DESCRIPTION"):
 *
 *	[CODE |DATA |FRAME ][FILE:|BUILDID:]MODULE ADDRESS
 *
 * MODULE is omitted if the command line names the file. It may be quoted with either kind of
 * quotes; there are no escapes. ADDRESS is a number (decimal, or prefixed by 0x, 0b, 0o or 0),
 * SYMBOL, or SYMBOL+NUMBER. llvm-addr2line takes all numbers but the one after SYMBOL as
 * hexadecimal. Text after ADDRESS is ignored.
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
	LLVM_SYMBOL, /* code at symbol + address */
	LLVM_EMPTY,  /* an empty line: a client's probe that the symbolizer is alive */
	LLVM_INVALID,
};

/* A part of the line; data is NULL if missing. */
struct llvm_text {
	const char *data;
	size_t size;
};

struct llvm_request {
	enum llvm_command command;
	bool is_build_id;        /* module is a build-id in hexadecimal */
	bool has_module;         /* an error, if any, is after it */
	struct llvm_text module; /* empty: the file of the command line */
	struct llvm_text symbol;
	uint64_t address;
	const char *error; /* of an invalid request; static text */
};

/* Rules from the command line for all requests. */
struct llvm_request_rules {
	bool has_file;       /* requests do not name a module */
	bool is_hexadecimal; /* llvm-addr2line: addresses are hexadecimal, with or without 0x */
};

/* Parses the request @line by @rules. The parts of *@ret point into the line. */
void llvm_request_parse(const char *line, size_t size, const struct llvm_request_rules *rules,
			struct llvm_request *ret);

/* Parses the number @s in the base of its prefix; returns false if it is not a number. */
bool llvm_parse_number(struct llvm_text s, uint64_t *ret);

/* Returns whether @s consists of hexadecimal digits, at least one. */
bool llvm_is_hex(struct llvm_text s);

#endif
