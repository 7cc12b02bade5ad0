/* SPDX-License-Identifier: MIT */
#include "cli/resolve_rows.h"

#include <string.h>

#include "cli/characters.h"
#include "cli/resolve_json.h"

/* Bytes of a text in the binary form, and of its length. */
#define MAX_TEXT   ROW_MAX
#define MAX_ULEB   10
#define ULEB_BITS  7
#define ULEB_MASK  0x7f
#define ULEB_GO_ON 0x80

static const char *const key_names[] = { "build_id", "offset", "module", "kind", "count" };

const char *row_key_name(enum row_key key)
{
	return key_names[key];
}

enum row_key row_key_find(const char *name, size_t size)
{
	unsigned key = 0;

	while (key < ROW_KEYS &&
	       (strlen(key_names[key]) != size || memcmp(key_names[key], name, size) != 0))
		key++;
	return (enum row_key)key;
}

const char *row_error_name(enum row_error error)
{
	static const char *const names[] = { "", "bad-row", "bad-build-id", "bad-address",
					     "limit" };

	return names[error];
}

static void fail(struct row *row, enum row_error error)
{
	if (!row->error)
		row->error = (uint8_t)error;
}

/* Values. */

/* Reads a number: decimal, or hexadecimal after 0x. Returns false if it is none of 64 bits. */
static bool read_number(struct row_text t, uint64_t *ret)
{
	const bool is_hex = t.size > 2 && t.data[0] == '0' && (t.data[1] | 0x20) == 'x';
	const uint64_t base = is_hex ? 16 : 10;
	uint64_t value = 0;
	uint32_t i = is_hex ? 2 : 0;

	if (!t.size)
		return false;
	for (; i < t.size; i++) {
		const unsigned digit = digit_of(t.data[i]);

		if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return false;
	}
	*ret = value;
	return true;
}

/* Reads a kind: its word or number. */
static bool read_kind(struct row_text t, uint8_t *ret)
{
	static const char *const words[] = { "exact", "return", "0", "1" };

	for (uint8_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (strlen(words[i]) == t.size && memcmp(words[i], t.data, t.size) == 0) {
			*ret = i & 1;
			return true;
		}
	}
	return false;
}

static bool is_build_id(struct row_text t)
{
	if (t.size % 2 || t.size > (uint32_t)2 * FATHOM_BUILD_ID_MAX)
		return false;
	for (uint32_t i = 0; i < t.size; i++)
		if (digit_of(t.data[i]) > 15)
			return false;
	return true;
}

uint32_t row_build_id(const struct row *row, uint8_t bytes[FATHOM_BUILD_ID_MAX])
{
	const struct row_text t = row->keys[ROW_BUILD_ID];

	for (uint32_t i = 0; i < t.size / 2; i++)
		bytes[i] = (uint8_t)(digit_of(t.data[2 * i]) << 4 | digit_of(t.data[2 * i + 1]));
	return t.size / 2;
}

/* Checks which build a row is of. */
static void check_build(struct row *row)
{
	const struct row_text id = row->keys[ROW_BUILD_ID];

	if (!is_build_id(id) || (!id.size && !row->keys[ROW_MODULE].size))
		fail(row, ROW_BAD_BUILD_ID);
}

/* Makes values of the texts of a row. */
static void take_texts(struct row *row)
{
	const struct row_text kind = row->keys[ROW_KIND];
	const struct row_text count = row->keys[ROW_COUNT];

	if (kind.data && !read_kind(kind, &row->kind))
		fail(row, ROW_BAD);
	if (count.data && !read_number(count, &row->count))
		fail(row, ROW_BAD);
	check_build(row);
	if (!row->error && !read_number(row->keys[ROW_OFFSET], &row->offset))
		fail(row, ROW_BAD_OFFSET);
}

/* Tab-separated values. */

/* Returns the byte that a backslash and @c stand for. */
static char unescape(char c)
{
	static const char letters[] = "abefnrtv0";
	static const char bytes[] = "\a\b\x1b\f\n\r\t\v";
	const char *at = c ? strchr(letters, c) : NULL;

	return at ? bytes[at - letters] : c;
}

/* Decodes the escapes of the @size bytes at @text in place. Returns false if one lacks its end. */
static bool unescape_text(char *text, size_t size, struct row_text *ret)
{
	char *to = text;

	for (size_t i = 0; i < size; i++) {
		if (text[i] != '\\') {
			*to++ = text[i];
			continue;
		}
		if (++i == size)
			return false;
		if (text[i] != 'x') {
			*to++ = unescape(text[i]);
			continue;
		}
		if (size - i < 3 || (digit_of(text[i + 1]) | digit_of(text[i + 2])) > 15)
			return false;
		*to++ = (char)(digit_of(text[i + 1]) << 4 | digit_of(text[i + 2]));
		i += 2;
	}
	*ret = (struct row_text){ .data = text, .size = (uint32_t)(to - text) };
	return true;
}

/* Takes one column, as it was written. */
static void take_column(struct row *row, enum row_key key, char *text, size_t size)
{
	struct row_text *to = &row->keys[key];

	if (size == 2 && text[0] == '\\' && text[1] == 'N')
		*to = (struct row_text){ NULL, 0, false };
	else if (!memchr(text, '\\', size))
		*to = (struct row_text){ .data = text, .size = (uint32_t)size };
	else if (!unescape_text(text, size, to))
		fail(row, ROW_BAD);
}

static void read_tsv(const struct row_reader *r, char *line, size_t size, struct row *row)
{
	char *const end = line + size;
	uint32_t i = 0;

	for (; i < r->n_columns; i++) {
		char *tab = memchr(line, '\t', (size_t)(end - line));
		char *const stop = tab ? tab : end;

		take_column(row, (enum row_key)r->columns[i], line, (size_t)(stop - line));
		line = stop;
		if (!tab)
			break;
		line++;
	}
	/* The last column ends with the line, and no other does. */
	if (i + 1 != r->n_columns)
		fail(row, ROW_BAD);
	take_texts(row);
}

/* JSON. */

static void read_json(char *line, size_t size, struct row *row)
{
	struct row_json j = { line, line + size, false };
	struct row_text name;
	struct row_text value;

	if (!row_json_begin(&j))
		fail(row, ROW_BAD);
	while (row_json_next(&j, &name, &value)) {
		const enum row_key key = row_key_find(name.data, name.size);

		if (key != ROW_KEYS)
			row->keys[key] = value;
	}
	if (j.is_wrong || !row_json_is_end(&j))
		fail(row, ROW_BAD);
	take_texts(row);
}

/* Lines. */

static struct row_step read_line(struct row_reader *r, char *text, size_t size, bool is_end,
				 struct row *row)
{
	const char *end = size ? memchr(text, '\n', size) : NULL;
	const size_t line = end ? (size_t)(end - text) : size;
	struct row_step step = { .size = line + (end ? 1 : 0), .has_row = !r->is_skipping };

	if (r->is_skipping) {
		r->is_skipping = !end;
		return step;
	}
	if (!end && line <= ROW_MAX && (!is_end || !size))
		return (struct row_step){ 0, false };
	if (line > ROW_MAX) {
		fail(row, ROW_LONG);
		r->is_skipping = !end;
	} else if (r->form == ROW_TSV) {
		read_tsv(r, text, line, row);
	} else {
		read_json(text, line, row);
	}
	return step;
}

/* The binary form. */

struct bytes {
	const char *at;
	const char *end;
	bool is_cut;  /* it ends too soon */
	bool is_long; /* a text is too long */
};

static uint64_t take_uleb(struct bytes *b)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < MAX_ULEB; i++) {
		uint8_t byte;

		if (b->at == b->end) {
			b->is_cut = true;
			return 0;
		}
		byte = (uint8_t)*b->at++;
		value |= (uint64_t)(byte & ULEB_MASK) << (ULEB_BITS * i);
		if (!(byte & ULEB_GO_ON))
			return value;
	}
	b->is_long = true;
	return 0;
}

static struct row_text take_text(struct bytes *b)
{
	const uint64_t size = take_uleb(b);
	const struct row_text text = { .data = b->at, .size = (uint32_t)size };

	b->is_long |= size > MAX_TEXT;
	if (b->is_long || b->is_cut || size > (uint64_t)(b->end - b->at)) {
		b->is_cut = true;
		return (struct row_text){ NULL, 0, false };
	}
	b->at += size;
	return text;
}

static uint64_t take_number(struct bytes *b, size_t size)
{
	uint64_t value = 0;

	if ((size_t)(b->end - b->at) < size) {
		b->is_cut = true;
		return 0;
	}
	for (size_t i = 0; i < size; i++)
		value |= (uint64_t)(uint8_t)*b->at++ << 8 * i;
	return value;
}

/* Takes the value of column @key. */
static void take_value(struct bytes *b, enum row_key key, struct row *row)
{
	if (key == ROW_OFFSET)
		row->offset = take_number(b, sizeof(uint64_t));
	else if (key == ROW_COUNT)
		row->count = take_number(b, sizeof(uint64_t));
	else if (key == ROW_KIND)
		row->kind = (uint8_t)take_number(b, 1);
	else
		row->keys[key] = take_text(b);
}

static struct row_step read_binary(struct row_reader *r, const char *text, size_t size, bool is_end,
				   struct row *row)
{
	struct bytes b = { text, text + size, false, false };

	for (uint32_t i = 0; i < r->n_columns && !b.is_cut && !b.is_long; i++)
		take_value(&b, (enum row_key)r->columns[i], row);
	if (b.is_cut && !b.is_long && (!is_end || !size))
		return (struct row_step){ 0, false };
	if (b.is_cut || b.is_long) {
		/* Where the next row begins cannot be known. */
		r->is_lost = b.is_long;
		fail(row, b.is_long ? ROW_LONG : ROW_BAD);
		memset(row->keys, 0, sizeof row->keys);
		return (struct row_step){ size, true };
	}
	if (row->kind > FATHOM_PC_RETURN)
		fail(row, ROW_BAD);
	check_build(row);
	return (struct row_step){ (size_t)(b.at - text), true };
}

struct row_step row_read(struct row_reader *r, char *text, size_t size, bool is_end,
			 struct row *ret)
{
	*ret = (struct row){ .kind = r->default_kind };
	return r->form == ROW_BINARY ? read_binary(r, text, size, is_end, ret)
				     : read_line(r, text, size, is_end, ret);
}
