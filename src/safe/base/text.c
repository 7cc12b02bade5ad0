/* SPDX-License-Identifier: MIT */
#include "text.h"

#include "fathom/format.h"

void fathom_text_char(struct fathom_text *t, char c)
{
	if (t->len + 1 < t->cap)
		t->buf[t->len] = c;
	t->len++;
}

void fathom_text_cstr(struct fathom_text *t, const char *s)
{
	while (*s)
		fathom_text_char(t, *s++);
}

size_t fathom_format_hex(char *buf, uint64_t value)
{
	const unsigned digits = value ? (67 - (unsigned)__builtin_clzll(value)) / 4 : 1;

	buf[0] = '0';
	buf[1] = 'x';
	for (unsigned i = digits; i; i--, value >>= 4)
		buf[1 + i] = "0123456789abcdef"[value & 15];
	return 2 + digits;
}

size_t fathom_format_dec(char *buf, uint64_t value)
{
	char reversed[FATHOM_NUMBER_SIZE];
	size_t n = 0;

	do {
		reversed[n++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	for (size_t i = 0; i < n; i++)
		buf[i] = reversed[n - 1 - i];
	return n;
}

static void text_bytes(struct fathom_text *t, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fathom_text_char(t, bytes[i]);
}

void fathom_text_dec(struct fathom_text *t, uint64_t value)
{
	char digits[FATHOM_NUMBER_SIZE];

	text_bytes(t, digits, fathom_format_dec(digits, value));
}

void fathom_text_hex(struct fathom_text *t, uint64_t value)
{
	char digits[FATHOM_NUMBER_SIZE];

	text_bytes(t, digits, fathom_format_hex(digits, value));
}

void fathom_text_end(struct fathom_text *t)
{
	if (t->cap)
		t->buf[t->len < t->cap ? t->len : t->cap - 1] = '\0';
}

void fathom_copy_cstr(char *to, size_t cap, const char *s)
{
	struct fathom_text t = text_init(to, cap);

	fathom_text_cstr(&t, s);
	fathom_text_end(&t);
}
