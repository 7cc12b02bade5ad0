/* SPDX-License-Identifier: MIT */
/* Strings and data of the program, with quotes and escapes. */
#include "host/syscalls/decoder.h"
#include "safe/self/output.h"

/* Bytes that are read and shown at a time. */
#define CHUNK 512
/* Reads do not cross these: what lies after may not be there. */
#define PAGE 4096

static bool is_text(uint8_t c)
{
	return (c >= ' ' && c < 0x7f) || (c >= '\t' && c <= '\r');
}

static void put_escape(struct fathom_decoder *d, uint8_t c, bool is_digit_next)
{
	static const char letters[] = "tnvfr"; /* 9 to 13 */

	fathom_put_char(d, '\\');
	if (c >= '\t' && c <= '\r') {
		fathom_put_char(d, letters[c - '\t']);
		return;
	}
	if (c >= 0100 || is_digit_next)
		fathom_put_char(d, (char)('0' + (c >> 6)));
	if (c >= 010 || is_digit_next)
		fathom_put_char(d, (char)('0' + (c >> 3 & 7)));
	fathom_put_char(d, (char)('0' + (c & 7)));
}

static void put_hex_bytes(struct fathom_decoder *d, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		fathom_put(d, "\\x");
		fathom_put_char(d, "0123456789abcdef"[bytes[i] >> 4]);
		fathom_put_char(d, "0123456789abcdef"[bytes[i] & 15]);
	}
}

/* Returns how many bytes from the first on stand for themselves. */
static size_t plain_run(const uint8_t *bytes, size_t n, const char *also)
{
	size_t i = 0;

	while (i < n && bytes[i] >= ' ' && bytes[i] < 0x7f && bytes[i] != '"' && bytes[i] != '\\' &&
	       (!*also || !strchr(also, bytes[i])))
		i++;
	return i;
}

/* Escapes what is no text, and the characters @also. */
static void put_escaped(struct fathom_decoder *d, const uint8_t *bytes, size_t n, const char *also)
{
	for (size_t i = 0; i < n; i++) {
		const size_t run = plain_run(bytes + i, n - i, also);

		fathom_put_bytes(d, bytes + i, run);
		i += run;
		if (i == n)
			return;
		if (bytes[i] == '"' || bytes[i] == '\\') {
			fathom_put_char(d, '\\');
			fathom_put_char(d, (char)bytes[i]);
		} else {
			put_escape(d, bytes[i],
				   i + 1 < n && bytes[i + 1] >= '0' && bytes[i + 1] <= '7');
		}
	}
}

static bool wants_hex(const struct fathom_decoder *d, const uint8_t *bytes, size_t n)
{
	if (d->options->hex != 1)
		return d->options->hex > 1;
	for (size_t i = 0; i < n; i++)
		if (!is_text(bytes[i]))
			return true;
	return false;
}

static void put_between_quotes(struct fathom_decoder *d, const uint8_t *bytes, size_t n,
			       bool is_hex, bool is_cut)
{
	if (!d->out)
		return;
	fathom_put_char(d, '"');
	if (is_hex)
		put_hex_bytes(d, bytes, n);
	else
		put_escaped(d, bytes, n, "");
	fathom_put(d, is_cut ? "\"..." : "\"");
}

void fathom_put_quoted(struct fathom_decoder *d, const uint8_t *bytes, size_t n, bool is_cut)
{
	put_between_quotes(d, bytes, n, d->out && wants_hex(d, bytes, n), is_cut);
}

void fathom_put_in_brackets(struct fathom_decoder *d, const uint8_t *bytes, size_t n)
{
	if (!d->out)
		return;
	if (wants_hex(d, bytes, n))
		put_hex_bytes(d, bytes, n);
	else
		put_escaped(d, bytes, n, "<>");
}

void fathom_put_quoted_hex(struct fathom_decoder *d, const uint8_t *bytes, size_t n, bool is_cut)
{
	put_between_quotes(d, bytes, n, true, is_cut);
}

/* Reads a C string of at most @max bytes; returns its bytes before the NUL. */
static size_t read_string(struct fathom_decoder *d, uint64_t avma, uint8_t *to, size_t max,
			  bool *ret_has_end)
{
	size_t n = 0;

	*ret_has_end = false;
	while (n < max) {
		const size_t in_page = PAGE - (size_t)((avma + n) & (PAGE - 1));
		size_t size = max - n < CHUNK ? max - n : CHUNK;
		const uint8_t *end;
		size_t read;

		size = size < in_page ? size : in_page;
		read = d->memory ? d->memory->read(d->memory->data, avma + n, to + n, size)
				 : fathom_syscall_record_read(d->record, avma + n, d->at_exit,
							      to + n, size);
		end = memchr(to + n, 0, read);
		n += end ? (size_t)(end - to) - n : read;
		*ret_has_end = end != NULL;
		if (end || read < size)
			break;
	}
	return n;
}

/* Reads and records a C string, as one range with its NUL. */
static size_t take_string(struct fathom_decoder *d, uint64_t avma, uint8_t *to, size_t max,
			  bool *ret_has_end)
{
	const size_t n = read_string(d, avma, to, max, ret_has_end);

	if (d->memory && (n || *ret_has_end))
		fathom_syscall_record_add(d->record, avma, d->at_exit, to, n + *ret_has_end);
	return n;
}

/* Puts a string of which up to @limit bytes are shown. */
static void put_limited(struct fathom_decoder *d, uint64_t avma, size_t limit)
{
	uint8_t bytes[FATHOM_DECODE_PATH];
	bool has_end;
	size_t n;

	limit = limit < sizeof bytes - 1 ? limit : sizeof bytes - 1;
	n = avma ? take_string(d, avma, bytes, limit + 1, &has_end) : 0;
	if (!avma || (!has_end && n <= limit))
		fathom_put_address(d, avma);
	else
		fathom_put_quoted(d, bytes, has_end ? n : limit, !has_end);
}

void fathom_put_path(struct fathom_decoder *d, uint64_t avma)
{
	uint8_t bytes[FATHOM_DECODE_PATH];
	bool has_end;
	size_t n;

	put_limited(d, avma, FATHOM_DECODE_PATH - 1);
	if (!d->options->see_path || !avma)
		return;
	n = read_string(d, avma, bytes, sizeof bytes, &has_end);
	if (has_end)
		d->options->see_path(d->options->data, (const char *)bytes, n);
}

void fathom_put_string(struct fathom_decoder *d, uint64_t avma)
{
	put_limited(d, avma, d->options->string_limit);
}

void fathom_put_string_of(struct fathom_decoder *d, uint64_t avma, size_t limit)
{
	put_limited(d, avma, limit);
}

/* Data in the seed's dialect: code page 437, in which each byte is one character. */
static void put_glyphs(struct fathom_decoder *d, const uint8_t *bytes, size_t n, bool is_cut)
{
	const struct fathom_spec spec = { .flags = FLAG_HASH | FLAG_TRUST,
					  .precision = (uint32_t)n,
					  .unit = UNIT_CHAR };
	struct fathom_output o = { 0 };

	if (!d->out)
		return;
	if (d->out->len < d->out->cap) {
		o.buf = d->out->buf + d->out->len;
		o.cap = d->out->cap - d->out->len;
	}
	if (n)
		fathom_out_text(&o, &spec, (uintptr_t)bytes);
	else
		fathom_out_cstr(&o, "u\"\"");
	d->out->len += o.len;
	if (is_cut)
		fathom_put(d, "...");
}

void fathom_put_data(struct fathom_decoder *d, uint64_t avma, uint64_t n)
{
	uint8_t bytes[FATHOM_DECODE_PATH];
	const size_t limit =
		d->options->string_limit < sizeof bytes ? d->options->string_limit : sizeof bytes;
	const size_t shown = n < limit ? (size_t)n : limit;
	/* As strace does: data that goes on where it cannot be read is shown as an address. */
	const size_t read = shown < n && shown < sizeof bytes ? shown + 1 : shown;

	if (!avma || fathom_decode_take(d, avma, bytes, read) != read)
		fathom_put_address(d, avma);
	else if (d->options->dialect == FATHOM_SYSCALL_ARROW)
		put_glyphs(d, bytes, shown, shown < n);
	else
		fathom_put_quoted(d, bytes, shown, shown < n);
}
