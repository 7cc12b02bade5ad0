/* SPDX-License-Identifier: MIT */
/* A name of a script that is made of several texts in the memory of its process. */
#ifndef FATHOM_INTERPRETERS_SCRIPT_TEXT_H
#define FATHOM_INTERPRETERS_SCRIPT_TEXT_H

#include "host/interpreters/provider.h"

struct fathom_script_text {
	char bytes[FATHOM_SCRIPT_MAX_NAME + 1];
	size_t n;
	bool bad; /* it would be longer */
};

/* Appends @n bytes; a NUL, which would end the text, as a question mark. */
void fathom_script_text_put(struct fathom_script_text *t, const char *bytes, size_t n);

/* Appends the @n bytes at @avma; false if they cannot be read, or are too many. */
bool fathom_script_text_read(struct fathom_script_text *t, const struct fathom_runtime_found *f,
			     uint64_t avma, uint64_t n);

/* Copies @t to @arena. FATHOM_E_MEMORY. */
fathom_err fathom_script_text_copy(const struct fathom_script_text *t, struct fathom_arena *arena,
				   struct fathom_str *ret);

#endif
