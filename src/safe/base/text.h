/* SPDX-License-Identifier: MIT */
/* Writes text into a caller's buffer, where snprintf is forbidden: it is not async-signal-safe. */
#ifndef FATHOM_BASE_TEXT_H
#define FATHOM_BASE_TEXT_H

#include "safe/base/bytes.h"

/*
 * A buffer that is being filled. len counts all characters written, so a caller learns how much
 * room the whole text needs; only the first cap - 1 are stored.
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
/* Ends the stored text with a NUL. */
void fathom_text_end(struct fathom_text *t);

/* Copies the C string @s to the array @to of @cap bytes, cut to fit. Always ends it with a NUL. */
void fathom_copy_cstr(char *to, size_t cap, const char *s);

#endif
