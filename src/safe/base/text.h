/* SPDX-License-Identifier: MIT */
/*
 * Text into a caller's buffer, for use where snprintf must not be: it is not async-signal-safe.
 */
#ifndef FATHOM_BASE_TEXT_H
#define FATHOM_BASE_TEXT_H

#include "safe/base/bytes.h"

/*
 * A buffer being filled. len counts what would have been written, so a caller can tell how much
 * room the whole text needs; only the first cap - 1 bytes are stored.
 */
struct fathom_text {
	char *buf;
	size_t cap;
	size_t len;
};

static inline struct fathom_text text_init(char *buf, size_t cap)
{
	return (struct fathom_text){ buf, cap, 0 };
}

void fathom_text_char(struct fathom_text *t, char c);
void fathom_text_cstr(struct fathom_text *t, const char *s);
void fathom_text_dec(struct fathom_text *t, uint64_t value);
void fathom_text_hex(struct fathom_text *t, uint64_t value); /* with 0x */
/* Puts the NUL after what was stored. */
void fathom_text_end(struct fathom_text *t);

/* Copies the C string @s into the array @to of @cap bytes, cut to fit; always ends with a NUL. */
void fathom_copy_cstr(char *to, size_t cap, const char *s);

#endif
