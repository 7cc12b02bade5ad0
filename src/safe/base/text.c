/* SPDX-License-Identifier: MIT */
#include "safe/base/text.h"

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

size_t fathom_format_grouped(char *buf, uint64_t value)
{
	char reversed[FATHOM_GROUPED_SIZE];
	size_t n = 0;

	while (value >= 1000) {
		const unsigned low = (unsigned)(value % 1000);

		value /= 1000;
		reversed[n++] = (char)('0' + low % 10);
		reversed[n++] = (char)('0' + low / 10 % 10);
		reversed[n++] = (char)('0' + low / 100);
		reversed[n++] = '\'';
	}
	do {
		reversed[n++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	for (size_t i = 0; i < n; i++)
		buf[i] = reversed[n - 1 - i];
	return n;
}

int fathom_point_is_hidden(uint32_t point)
{
	/*
	 * Unicode 15.1, sorted: Default_Ignorable_Code_Point (DerivedCoreProperties.txt), the
	 * categories Zl, Zp and Cs, and the marks of interlinear annotations (Cf).
	 */
	static const struct {
		uint32_t first;
		uint32_t last;
	} ranges[] = {
		{ 0x00ad, 0x00ad },   { 0x034f, 0x034f },   { 0x061c, 0x061c },
		{ 0x115f, 0x1160 },   { 0x17b4, 0x17b5 },   { 0x180b, 0x180f },
		{ 0x200b, 0x200f },   { 0x2028, 0x202e },   { 0x2060, 0x206f },
		{ 0x3164, 0x3164 },   { 0xd800, 0xdfff },   { 0xfe00, 0xfe0f },
		{ 0xfeff, 0xfeff },   { 0xffa0, 0xffa0 },   { 0xfff0, 0xfffb },
		{ 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
	};

	if (point < 0xa0)
		return point < 0x20 || point >= 0x7f;
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges && point >= ranges[i].first; i++)
		if (point <= ranges[i].last)
			return 1;
	return point > 0x10ffff;
}

size_t fathom_point_take(const char *s, size_t n, uint32_t *ret_point)
{
	const unsigned char *p = (const unsigned char *)s;
	const unsigned char c = p[0];
	const size_t size = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
	unsigned char low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
	unsigned char high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
	uint32_t point = size == 1 ? c : c & (0x7fu >> size);

	*ret_point = FATHOM_NO_POINT;
	if (c >= 0x80 && (c < 0xc2 || c > 0xf4))
		return 1;
	for (size_t i = 1; i < size; i++) {
		if (i == n || p[i] < low || p[i] > high)
			return i;
		point = point << 6 | (p[i] & 0x3f);
		low = 0x80;
		high = 0xbf;
	}
	*ret_point = point;
	return size;
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

/* Writes \u and the four digits of @unit, of UTF-16. */
static size_t put_unit(char *buf, uint32_t unit)
{
	buf[0] = '\\';
	buf[1] = 'u';
	for (int i = 0; i < 4; i++)
		buf[2 + i] = "0123456789abcdef"[unit >> (12 - 4 * i) & 0xf];
	return 6;
}

size_t fathom_point_escape_json(uint32_t point, char *buf)
{
	static const char escaped[] = "\"\\\n\t\r";
	static const char letters[] = "\"\\ntr";
	size_t i = 0;

	while (escaped[i] && (uint32_t)escaped[i] != point)
		i++;
	if (escaped[i]) {
		buf[0] = '\\';
		buf[1] = letters[i];
		return 2;
	}
	if (point < 0x10000)
		return put_unit(buf, point);
	i = put_unit(buf, 0xd800 + ((point - 0x10000) >> 10 & 0x3ff));
	return i + put_unit(buf + i, 0xdc00 + (point & 0x3ff));
}

const char *fathom_point_escape_collapsed(const char *s, size_t n)
{
	if (*s == ';')
		return "\\x3b";
	return *s == ' ' && (n == 1 || (s[1] >= '0' && s[1] <= '9')) ? "\\x20" : NULL;
}
