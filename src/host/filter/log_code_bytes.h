/* SPDX-License-Identifier: MIT */
/*
 * The bytes of code that the kernel prints after a program counter ("Code:"), beside those of the
 * module's file.
 */
#ifndef FATHOM_FILTER_LOG_CODE_BYTES_H
#define FATHOM_FILTER_LOG_CODE_BYTES_H

#include "host/filter/patch_sites.h"

/* Bytes of the longest such line. */
#define FATHOM_CODE_BYTES 128

struct fathom_log_code_bytes {
	uint8_t bytes[FATHOM_CODE_BYTES];
	size_t n;
	size_t counter;    /* where in them the program counter is */
	bool are_of_words; /* of 4 bytes, as arm64's; else of single bytes */
};

/* Reads the bytes that follow "Code: ". Returns false if no place is marked as the counter. */
bool fathom_log_code_bytes_read(struct fathom_str text, struct fathom_log_code_bytes *ret);

/*
 * Returns whether @code, with the counter at @svma, is of another file than @m: the bytes differ
 * where nothing may change them. @sites are those of @m.
 */
bool fathom_log_code_bytes_differ(const struct fathom_module *m,
				  const struct fathom_patch_sites *sites,
				  const struct fathom_log_code_bytes *code, uint64_t svma);

#endif
