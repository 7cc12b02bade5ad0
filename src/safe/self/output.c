/* SPDX-License-Identifier: MIT */
#include "safe/self/output.h"

#include "fathom/format.h"
#include "safe/base/limits.h"
#include "safe/base/peek.h"
#include "safe/base/utf8.h"

#define REPLACEMENT 0xfffd

void fathom_out_byte(struct fathom_output *o, char c)
{
	if (o->len + 1 < o->cap)
		o->buf[o->len] = c;
	o->len++;
	o->chars += ((uint8_t)c & 0xc0) != 0x80;
	o->last = c;
}

void fathom_out_cstr(struct fathom_output *o, const char *s)
{
	while (*s)
		fathom_out_byte(o, *s++);
}

static bool is_point(uint32_t point)
{
	return point < 0xd800 || (point > 0xdfff && point < 0x110000);
}

void fathom_out_point(struct fathom_output *o, uint32_t point)
{
	char bytes[UTF8_MOST];
	const size_t n = utf8_encode(is_point(point) ? point : REPLACEMENT, bytes);

	for (size_t i = 0; i < n; i++)
		fathom_out_byte(o, bytes[i]);
}

void fathom_out_end(struct fathom_output *o)
{
	const char *tail = o->last == '\n' ? "...\n" : "...";
	const size_t size = o->last == '\n' ? 4 : 3;
	size_t at = o->len;

	if (!o->cap)
		return;
	if (o->len >= o->cap) {
		at = o->cap - 1 > size ? o->cap - 1 - size : 0;
		/* Cuts no character in two: its bytes after the first start with the bits 10. */
		for (int i = 0; i < 3 && at && ((uint8_t)o->buf[at] & 0xc0) == 0x80; i++)
			at--;
		for (size_t i = 0; i < size && at < o->cap - 1; i++)
			o->buf[at++] = tail[i];
	}
	o->buf[at] = '\0';
}

/*
 * Code page 437 as screens show it: control characters have glyphs, too, and 0 is blank (Unicode's
 * mapping IBMGRAPH together with CP437).
 */
static const uint16_t cp437_low[32] = {
	0x00a0, 0x263a, 0x263b, 0x2665, 0x2666, 0x2663, 0x2660, 0x2022, 0x25d8, 0x25cb, 0x25d9,
	0x2642, 0x2640, 0x266a, 0x266b, 0x263c, 0x25ba, 0x25c4, 0x2195, 0x203c, 0x00b6, 0x00a7,
	0x25ac, 0x21a8, 0x2191, 0x2193, 0x2192, 0x2190, 0x221f, 0x2194, 0x25b2, 0x25bc,
};

static const uint16_t cp437_high[129] = {
	0x2302, 0x00c7, 0x00fc, 0x00e9, 0x00e2, 0x00e4, 0x00e0, 0x00e5, 0x00e7, 0x00ea, 0x00eb,
	0x00e8, 0x00ef, 0x00ee, 0x00ec, 0x00c4, 0x00c5, 0x00c9, 0x00e6, 0x00c6, 0x00f4, 0x00f6,
	0x00f2, 0x00fb, 0x00f9, 0x00ff, 0x00d6, 0x00dc, 0x00a2, 0x00a3, 0x00a5, 0x20a7, 0x0192,
	0x00e1, 0x00ed, 0x00f3, 0x00fa, 0x00f1, 0x00d1, 0x00aa, 0x00ba, 0x00bf, 0x2310, 0x00ac,
	0x00bd, 0x00bc, 0x00a1, 0x00ab, 0x00bb, 0x2591, 0x2592, 0x2593, 0x2502, 0x2524, 0x2561,
	0x2562, 0x2556, 0x2555, 0x2563, 0x2551, 0x2557, 0x255d, 0x255c, 0x255b, 0x2510, 0x2514,
	0x2534, 0x252c, 0x251c, 0x2500, 0x253c, 0x255e, 0x255f, 0x255a, 0x2554, 0x2569, 0x2566,
	0x2560, 0x2550, 0x256c, 0x2567, 0x2568, 0x2564, 0x2565, 0x2559, 0x2558, 0x2552, 0x2553,
	0x256b, 0x256a, 0x2518, 0x250c, 0x2588, 0x2584, 0x258c, 0x2590, 0x2580, 0x03b1, 0x00df,
	0x0393, 0x03c0, 0x03a3, 0x03c3, 0x00b5, 0x03c4, 0x03a6, 0x0398, 0x03a9, 0x03b4, 0x221e,
	0x03c6, 0x03b5, 0x2229, 0x2261, 0x00b1, 0x2265, 0x2264, 0x2320, 0x2321, 0x00f7, 0x2248,
	0x00b0, 0x2219, 0x00b7, 0x221a, 0x207f, 0x00b2, 0x25a0, 0x00a0,
};

static uint32_t glyph(uint8_t byte)
{
	if (byte < 32)
		return cp437_low[byte];
	return byte < 127 ? byte : cp437_high[byte - 127];
}

static void put_octal(struct fathom_output *o, uint32_t value)
{
	fathom_out_byte(o, '\\');
	for (int shift = 6; shift >= 0; shift -= 3)
		fathom_out_byte(o, (char)('0' + (value >> shift & 7)));
}

/* Writes a C1 control character as C does: \u009b. */
static void put_universal(struct fathom_output *o, uint32_t point)
{
	fathom_out_cstr(o, "\\u00");
	fathom_out_byte(o, "0123456789abcdef"[point >> 4 & 15]);
	fathom_out_byte(o, "0123456789abcdef"[point & 15]);
}

/* Returns the letter of C's escape for a control character; 0 if there is none. */
static char escape_letter(uint32_t point)
{
	static const char letters[] = "abtnvfr"; /* 7 to 13 */

	return point >= 7 && point <= 13 ? letters[point - 7] : '\0';
}

/* Writes a character inside quotes of the kind @quote. */
static void put_quoted(struct fathom_output *o, uint32_t point, char quote)
{
	const char letter = escape_letter(point);

	if (point == (uint8_t)quote || point == '\\') {
		fathom_out_byte(o, '\\');
		fathom_out_byte(o, (char)point);
	} else if (letter) {
		fathom_out_byte(o, '\\');
		fathom_out_byte(o, letter);
	} else if (point < 32 || point == 127) {
		put_octal(o, point);
	} else if (point > 127 && point < 0xa0) {
		put_universal(o, point);
	} else {
		fathom_out_point(o, point);
	}
}

/* Writes a character outside quotes. Replaces control characters, which a terminal would obey. */
static void put_plain(struct fathom_output *o, const struct fathom_spec *spec, uint32_t point)
{
	const bool name = spec->flags & FLAG_NAME;

	if (point < 32 && (name || (point != '\n' && point != '\t')))
		point += 0x2400;
	else if (point == 127)
		point = 0x2421;
	else if (point > 127 && (name ? fathom_point_is_hidden(point) : point < 0xa0))
		point = REPLACEMENT;
	fathom_out_point(o, point);
}

static void put_point(struct fathom_output *o, const struct fathom_spec *spec, uint32_t point,
		      char quote)
{
	if (spec->flags & FLAG_UPPER && point >= 'a' && point <= 'z')
		point -= 'a' - 'A';
	if (spec->flags & FLAG_HASH)
		put_quoted(o, point, quote);
	else
		put_plain(o, spec, point);
}

static void open_quote(struct fathom_output *o, const struct fathom_spec *spec, char quote)
{
	if (!(spec->flags & FLAG_HASH))
		return;
	if (spec->unit == UNIT_CHAR || spec->unit == UNIT_SHORT)
		fathom_out_byte(o, 'u');
	else if (spec->unit == UNIT_LONG)
		fathom_out_byte(o, 'L');
	fathom_out_byte(o, quote);
}

static void close_quote(struct fathom_output *o, const struct fathom_spec *spec, char quote)
{
	if (spec->flags & FLAG_HASH)
		fathom_out_byte(o, quote);
}

void fathom_out_char(struct fathom_output *o, const struct fathom_spec *spec, uint32_t value)
{
	open_quote(o, spec, '\'');
	if (spec->unit == UNIT_CHAR)
		put_point(o, spec, glyph((uint8_t)value), '\'');
	else if (spec->unit == UNIT_SHORT)
		put_point(o, spec, (uint16_t)value, '\'');
	else if (spec->unit == UNIT_LONG || (uint8_t)value < 128)
		put_point(o, spec, spec->unit == UNIT_LONG ? value : (uint8_t)value, '\'');
	else if (spec->flags & FLAG_HASH)
		put_octal(o, (uint8_t)value);
	else
		fathom_out_point(o, REPLACEMENT);
	close_quote(o, spec, '\'');
}

/* Text in memory, read in pieces and yielded in units. */
struct source {
	uint64_t avma;     /* of the next piece */
	uint32_t left;     /* units that the precision allows */
	uint8_t size;      /* bytes of a unit */
	bool trusted;      /* is read directly, not by fathom_peek() */
	bool counted;      /* a unit of 0 does not end the text */
	bool failed;       /* the rest cannot be read */
	bool ended;        /* a unit of 0 was met */
	uint8_t piece[64]; /* read ahead */
	uint32_t at;       /* offset in piece */
	uint32_t end;
	uint32_t ahead[4]; /* units looked at, but not taken */
	uint32_t n_ahead;
};

static void fill_piece(struct source *s)
{
	s->at = 0;
	if (s->trusted) {
		/* No more than the unit that is needed: what follows may not be readable. */
		memcpy(s->piece, (const void *)(uintptr_t)s->avma, s->size);
		s->end = s->size;
	} else {
		s->end = (uint32_t)fathom_peek(s->avma, s->piece, sizeof s->piece);
		s->end -= s->end % s->size;
	}
	s->avma += s->end;
	s->failed = !s->end;
}

/* Takes the next unit. Returns false at the end, or if memory cannot be read. */
static bool next_unit(struct source *s, uint32_t *ret)
{
	uint32_t unit = 0;

	if (!s->left || s->failed)
		return false;
	if (s->at == s->end) {
		fill_piece(s);
		if (s->failed)
			return false;
	}
	/* In the machine's byte order. */
	if (s->size == 1)
		unit = s->piece[s->at];
	else if (s->size == 2)
		unit = load_u16(s->piece + s->at, false);
	else
		unit = load_u32(s->piece + s->at, false);
	s->at += s->size;
	s->left--;
	if (!unit && !s->counted) {
		s->left = 0;
		s->ended = true;
		return false;
	}
	*ret = unit;
	return true;
}

/* Looks at up to @n units without taking them. Returns how many there are. */
static uint32_t look_ahead(struct source *s, uint32_t n)
{
	while (s->n_ahead < n && next_unit(s, &s->ahead[s->n_ahead]))
		s->n_ahead++;
	return s->n_ahead < n ? s->n_ahead : n;
}

static void take_bytes(struct source *s, uint32_t n)
{
	s->n_ahead -= n;
	for (uint32_t i = 0; i < s->n_ahead; i++)
		s->ahead[i] = s->ahead[i + n];
}

/* Returns the bytes of the character with this first byte; 0 if it starts none. */
static uint32_t utf8_size(uint32_t first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first < 0xe0)
		return 2;
	if (first >= 0xe0 && first < 0xf0)
		return 3;
	return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

/* Decodes @size bytes of UTF-8; false if they are no character. */
static bool decode_utf8(const uint32_t *byte, uint32_t size, uint32_t *ret)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t point = size == 1 ? byte[0] : byte[0] & (0xffu >> (size + 1));

	for (uint32_t i = 1; i < size; i++) {
		if ((byte[i] & 0xc0) != 0x80)
			return false;
		point = point << 6 | (byte[i] & 0x3f);
	}
	*ret = point;
	return point >= least[size] && is_point(point);
}

/* Writes the next UTF-8 character, or a replacement for the next byte if it starts none. */
static void put_utf8(struct fathom_output *o, const struct fathom_spec *spec, struct source *s)
{
	const uint32_t size = utf8_size(s->ahead[0]);
	const uint32_t there = size ? look_ahead(s, size) : 0;
	uint32_t point;

	if (size && there == size && decode_utf8(s->ahead, size, &point)) {
		put_point(o, spec, point, '"');
		take_bytes(s, size);
		return;
	}
	if (size > there && !s->left && !s->failed && !s->ended &&
	    spec->precision != NO_PRECISION) {
		/* The precision cuts this character: writes none of it. */
		take_bytes(s, s->n_ahead);
		return;
	}
	if (spec->flags & FLAG_HASH)
		put_octal(o, s->ahead[0]);
	else
		fathom_out_point(o, REPLACEMENT);
	take_bytes(s, 1);
}

/* Writes the next UTF-16 character. */
static void put_utf16(struct fathom_output *o, const struct fathom_spec *spec, struct source *s)
{
	const uint32_t first = s->ahead[0];

	if (first >= 0xd800 && first < 0xdc00 && look_ahead(s, 2) == 2 && s->ahead[1] >= 0xdc00 &&
	    s->ahead[1] < 0xe000) {
		put_point(o, spec, 0x10000 + ((first - 0xd800) << 10) + (s->ahead[1] - 0xdc00),
			  '"');
		take_bytes(s, 2);
		return;
	}
	put_point(o, spec, first, '"');
	take_bytes(s, 1);
}

static void put_unit(struct fathom_output *o, const struct fathom_spec *spec, struct source *s)
{
	if (spec->unit == UNIT_SHORT) {
		put_utf16(o, spec, s);
	} else if (spec->unit == UNIT_CHAR) {
		put_point(o, spec, glyph((uint8_t)s->ahead[0]), '"');
		take_bytes(s, 1);
	} else if (spec->unit == UNIT_LONG) {
		put_point(o, spec, s->ahead[0], '"');
		take_bytes(s, 1);
	} else {
		put_utf8(o, spec, s);
	}
}

static void put_bad_pointer(struct fathom_output *o, uint64_t avma)
{
	unsigned shift = 64;

	fathom_out_cstr(o, "!!");
	while (shift > 4 && !(avma >> (shift - 4)))
		shift -= 4;
	while (shift) {
		shift -= 4;
		fathom_out_byte(o, "0123456789abcdef"[avma >> shift & 15]);
	}
}

static uint8_t unit_size(const struct fathom_spec *spec)
{
	return spec->unit == UNIT_SHORT ? 2 : spec->unit == UNIT_LONG ? 4 : 1;
}

void fathom_out_text(struct fathom_output *o, const struct fathom_spec *spec, uint64_t avma)
{
	struct source s = { .avma = avma,
			    .left = spec->precision < FATHOM_MAX_FORMAT_TEXT
					    ? spec->precision
					    : FATHOM_MAX_FORMAT_TEXT,
			    .size = unit_size(spec),
			    .trusted = spec->flags & FLAG_TRUST,
			    .counted = spec->unit == UNIT_CHAR && spec->precision != NO_PRECISION };

	if (!avma) {
		fathom_out_cstr(o, spec->flags & FLAG_SPACE ? "" : "NULL");
		return;
	}
	if (avma % s.size || (!look_ahead(&s, 1) && s.failed)) {
		put_bad_pointer(o, avma);
		return;
	}
	open_quote(o, spec, '"');
	while (look_ahead(&s, 1))
		put_unit(o, spec, &s);
	close_quote(o, spec, '"');
}
