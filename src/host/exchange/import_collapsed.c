/* SPDX-License-Identifier: MIT */
/*
 * Collapsed stacks: lines "NAME;NAME;NAME WEIGHT", the outermost name first, as the export
 * (collapsed_line.h), stackcollapse-perf.pl and others write them. Empty lines are passed over.
 *
 * Names that end in _[k] are of the kernel, in _[j] of JIT code; those in _[i] are inlined into the
 * one before them. "[unknown]" is code without a name. The escapes of the export are taken back.
 * A weight with a fraction is rounded.
 *
 * Most programs write the name of the process first, some do not, and nothing says so. The first
 * names of all lines are those of processes if each could be one: it is short enough for a task of
 * Linux, is not a function where threads usually begin, and is never alone. PIDs may follow, as in
 * "comm-7" or "comm-7/8"; without them, processes are numbered.
 */
#include <stdlib.h>
#include <string.h>

#include "fathom/format.h"
#include "host/base/name_table.h"
#include "host/exchange/importing.h"
#include "host/profile/samples_format.h"
#include "safe/base/cursor.h"

/* The longest name of a task (TASK_COMM_LEN), without its NUL. */
#define MOST_COMM 15
/* Bytes of the first lines that are looked at to tell that a file has collapsed stacks. */
#define BEGIN ((uint64_t)1 << 20)

/* A line without its end. */
struct line {
	const char *text;
	size_t size; /* of the names */
	uint64_t weight;
	bool is_empty;
};

/* Facts about the first names of all lines. */
struct firsts {
	bool are_processes;
	bool have_pids;
};

/* A name that is the process's. */
struct process {
	struct fathom_str name;
	uint32_t pid; /* 0: not known */
	uint32_t tid;
};

struct collapsed {
	struct fathom_import *import;
	struct firsts firsts;
	struct fathom_name_table names; /* of processes, with their numbers as threads */
	struct fathom_bytes_array name; /* without escapes */
	struct fathom_size_array ends;  /* of the names of a line */
};

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Reads the number at the end of the @n bytes at @s; *@ret_size is what comes before it. */
static bool take_weight(const char *s, size_t n, uint64_t *ret, size_t *ret_size)
{
	size_t begin = n;
	bool is_up = false;
	uint64_t value = 0;

	while (begin && !is_space(s[begin - 1]))
		begin--;
	if (begin == n || !begin || !is_digit(s[begin]))
		return false;
	*ret_size = begin - 1;
	for (; begin < n && is_digit(s[begin]); begin++) {
		if (value > (UINT64_MAX >> 1) / 10)
			return false;
		value = value * 10 + (uint64_t)(s[begin] - '0');
	}
	if (begin < n && s[begin] == '.') {
		is_up = begin + 1 < n && s[begin + 1] >= '5';
		for (begin++; begin < n && is_digit(s[begin]);)
			begin++;
	}
	*ret = value + is_up;
	return begin == n;
}

/* Takes the next line from @c; returns false if it is none of collapsed stacks. */
static bool take_line(struct fathom_cursor *c, struct line *ret)
{
	const char *s = (const char *)c->p;
	const char *end = memchr(s, '\n', (size_t)cur_left(c));
	size_t n = end ? (size_t)(end - s) : (size_t)cur_left(c);

	cur_skip(c, n + (end != NULL));
	*ret = (struct line){ .text = s };
	while (n && is_space(s[n - 1]))
		n--;
	ret->is_empty = !n;
	return !n || (!memchr(s, '\0', n) && take_weight(s, n, &ret->weight, &ret->size));
}

bool fathom_is_collapsed(struct fathom_bytes file)
{
	struct fathom_cursor c =
		cur_init(bytes_slice(file, 0, file.size < BEGIN ? file.size : BEGIN), false);
	struct line line = { .is_empty = true };

	while (cur_left(&c) && line.is_empty)
		if (!take_line(&c, &line))
			return false;
	return !line.is_empty;
}

/* Returns the first name of @line. */
static struct fathom_str first_of(const struct line *line)
{
	const char *end = memchr(line->text, ';', line->size);

	return (struct fathom_str){ line->text,
				    (uint32_t)(end ? (size_t)(end - line->text) : line->size) };
}

/* Takes a number from the end of @s, with @mark before it; 0: there is none. */
static uint32_t take_number(struct fathom_str *s, char mark)
{
	uint32_t begin = s->size;
	uint64_t value = 0;

	while (begin && is_digit(s->data[begin - 1]))
		begin--;
	for (uint32_t i = begin; i < s->size && value <= INT32_MAX; i++)
		value = value * 10 + (uint64_t)(s->data[i] - '0');
	if (!value || value > INT32_MAX || begin < 2 || s->data[begin - 1] != mark)
		return 0;
	s->size = begin - 1;
	return (uint32_t)value;
}

/* Parts "comm-PID" and "comm-PID/TID". */
static struct process process_of(struct fathom_str s)
{
	struct process p = { .name = s };

	p.tid = take_number(&p.name, '/');
	p.pid = take_number(&p.name, '-');
	if (!p.pid)
		return (struct process){ .name = s };
	if (!p.tid)
		p.tid = p.pid;
	return p;
}

/* Returns whether @s can be the name of a process: no function where stacks begin. */
static bool can_be_process(struct fathom_str s)
{
	static const char *const begins[] = {
		"main",  "_start", "[unknown]", "start_thread",      "thread_start",
		"clone", "clone3", "__clone",   "__clone3",          "(root)",
		"root",  "all",    "_dl_start", "__libc_start_main", "<module>"
	};

	for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
		if (str_is(s, begins[i]))
			return false;
	if (s.size > 4 && s.data[s.size - 4] == '_' && s.data[s.size - 3] == '[')
		return false;
	return s.size && !memchr(s.data, '(', s.size) && process_of(s).name.size <= MOST_COMM;
}

/* Returns the bytes of @file without a last line that was cut, as of a compressed file. */
static struct fathom_bytes whole_lines(const struct fathom_file *file)
{
	struct fathom_bytes b = file->bytes;

	while (file->is_short && b.size && b.data[b.size - 1] != '\n')
		b.size--;
	return b;
}

/* Reads all lines, to see what their first names are. */
static fathom_err look_at_firsts(struct collapsed *c, struct fathom_errinfo *reterr)
{
	struct fathom_cursor lines = cur_init(whole_lines(c->import->file), false);
	struct line line;

	c->firsts = (struct firsts){ true, true };
	for (uint64_t i = 1; cur_left(&lines); i++) {
		struct fathom_str first;

		if (!take_line(&lines, &line))
			return fathom_import_fail_line(
				c->import, i, "is not of the form NAME;NAME WEIGHT", reterr);
		FATHOM_TRY(fathom_import_check(c->import, reterr));
		if (line.is_empty)
			continue;
		first = first_of(&line);
		c->firsts.have_pids &= process_of(first).pid != 0;
		c->firsts.are_processes &= first.size < line.size && can_be_process(first);
	}
	c->firsts.have_pids &= c->firsts.are_processes;
	return FATHOM_OK;
}

/* Appends a NUL-terminated copy of @s to the names. */
static bool copy_name(struct collapsed *c, struct fathom_str s)
{
	c->name.n = 0;
	if (!fathom_array_room(&c->name, (size_t)s.size + 1))
		return false;
	memcpy(c->name.items, s.data, s.size);
	c->name.items[s.size] = '\0';
	c->name.n = s.size;
	return true;
}

/* Returns the value of the @n hexadecimal digits at @s; 0 if they are none. */
static uint32_t hex_of(const char *s, size_t n)
{
	uint32_t value = 0;

	for (size_t i = 0; i < n; i++) {
		const char *digits = "0123456789abcdef";
		const char *digit = s[i] ? strchr(digits, s[i]) : NULL;

		if (!digit)
			return 0;
		value = value << 4 | (uint32_t)(digit - digits);
	}
	return value;
}

/* Puts @point in UTF-8 at @to; returns its length. */
static size_t put_point(char *to, uint32_t point)
{
	const size_t n = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
	static const uint8_t marks[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	for (size_t i = n; i-- > 1; point >>= 6)
		to[i] = (char)(0x80 | (point & 0x3f));
	to[0] = (char)(marks[n] | point);
	return n;
}

/*
 * Reads the escape at @s, of @n bytes, as the export writes it; returns its length, 0 if it is
 * none, and puts *@ret_size bytes at @to. Line feeds and tabs stay escaped: a backslash before an n
 * or a t is part of many names.
 */
static size_t take_escape(const char *s, size_t n, char *to, size_t *ret_size)
{
	const size_t digits = n < 2 ? 0 : s[1] == 'x' ? 2 : s[1] == 'u' ? 4 : s[1] == 'U' ? 8 : 0;
	uint32_t point;

	if (s[0] != '\\' || !digits || n < 2 + digits)
		return 0;
	point = hex_of(s + 2, digits);
	if (digits == 2 && point >= 0x80) {
		*to = (char)point;
		*ret_size = 1;
		return 4;
	}
	if (!point || point > 0x10ffff ||
	    (point != ';' && point != ' ' && !fathom_point_is_hidden(point)))
		return 0;
	*ret_size = put_point(to, point);
	return 2 + digits;
}

/* Copies the name @s without escapes. */
static bool clean_name(struct collapsed *c, struct fathom_str s)
{
	size_t n = 0;

	if (!copy_name(c, s))
		return false;
	for (size_t at = 0; at < s.size;) {
		size_t size;
		const size_t taken =
			take_escape(s.data + at, s.size - at, c->name.items + n, &size);

		if (taken) {
			at += taken;
			n += size;
		} else {
			c->name.items[n++] = s.data[at++];
		}
	}
	c->name.items[n] = '\0';
	c->name.n = n;
	return true;
}

/* Returns the number of the process of a line, as a thread of the profile. */
static uint32_t thread_of(struct collapsed *c, struct fathom_str first)
{
	const size_t n = c->names.n;
	struct process p = { .name = fathom_import_str("[unknown]") };
	struct fathom_profile_thread t = { 0 };
	uint32_t number = FATHOM_KEY_NEW;

	if (c->firsts.are_processes)
		p.name = first;
	if (copy_name(c, p.name))
		number = fathom_name_table_add(&c->names, c->name.items);
	if (number == FATHOM_KEY_NEW) {
		c->import->err = FATHOM_E_MEMORY;
		return 0;
	}
	if (c->names.n == n)
		return number;
	if (c->firsts.have_pids)
		p = process_of(first);
	t.pid = p.pid ? (int32_t)p.pid : (int32_t)number + 1;
	t.tid = p.tid ? (int32_t)p.tid : t.pid;
	if (!clean_name(c, p.name))
		c->import->err = FATHOM_E_MEMORY;
	else
		t.name = c->name.items;
	return t.name ? fathom_profile_write_thread(&c->import->writer, &t, UINT32_MAX) : 0;
}

/* Removes the suffix of @s that says what its code is, and returns its letter; 0: it has none. */
static char take_suffix(struct fathom_str *s)
{
	const char *end = s->data + s->size;

	if (s->size <= 4 || end[-4] != '_' || end[-3] != '[' || end[-1] != ']')
		return 0;
	if (end[-2] != 'k' && end[-2] != 'j' && end[-2] != 'i')
		return 0;
	s->size -= 4;
	return end[-2];
}

/* Returns the symbol called @s, inlined into @outer; FATHOM_TABLE_NONE: it has no name. */
static uint32_t symbol_of(struct collapsed *c, struct fathom_str s, uint32_t outer)
{
	struct fathom_profile_symbol symbol = { .outer = outer };

	if (!s.size || (str_is(s, "[unknown]") && !outer))
		return FATHOM_TABLE_NONE;
	if (!clean_name(c, s)) {
		c->import->err = FATHOM_E_MEMORY;
		return FATHOM_TABLE_NONE;
	}
	symbol.name = (struct fathom_str){ c->name.items, (uint32_t)c->name.n };
	return fathom_import_symbol(c->import, &symbol);
}

/* Returns the location of @symbol in the module that the letter of a suffix tells. */
static uint32_t location_of(struct collapsed *c, char letter, uint32_t symbol)
{
	struct fathom_profile_module m = { .path = "[kernel]",
					   .kind = FATHOM_PROFILE_MODULE_KERNEL };
	struct fathom_profile_location l = { .module = UINT32_MAX };

	if (letter == 'j') {
		m.path = "[jit]";
		m.kind = FATHOM_PROFILE_MODULE_JIT;
	}
	if (letter == 'j' || letter == 'k')
		l.module = fathom_import_module(c->import, &m);
	return fathom_import_location(c->import, &l, symbol);
}

/* Finds where the names of @line end, at most those of the innermost frames. */
static bool part_names(struct collapsed *c, const struct line *line)
{
	c->ends.n = 0;
	for (size_t i = 0; i <= line->size; i++)
		if (i == line->size || line->text[i] == ';')
			if (!fathom_array_push(&c->ends, i))
				return false;
	return true;
}

/* Returns the node of the stack of @line, whose names are parted. */
static uint32_t node_of(struct collapsed *c, const struct line *line)
{
	size_t i = c->firsts.are_processes;
	uint32_t inlined = 0;
	uint32_t node = 0;
	char outermost = 0;

	if (c->ends.n - i > FATHOM_IMPORT_FRAMES)
		i = c->ends.n - FATHOM_IMPORT_FRAMES;
	for (; i < c->ends.n && !c->import->err; i++) {
		const size_t begin = i ? c->ends.items[i - 1] + 1 : 0;
		struct fathom_str s = { line->text + begin, (uint32_t)(c->ends.items[i] - begin) };
		const char letter = take_suffix(&s);
		uint32_t symbol;

		/* Whoever it is inlined into has the same location. */
		if (letter != 'i') {
			outermost = letter;
			inlined = 0;
		}
		symbol = symbol_of(c, s, inlined);
		inlined = symbol == FATHOM_TABLE_NONE ? 0 : symbol + 1;
		if (inlined && i + 1 < c->ends.n) {
			struct fathom_str next = { line->text + c->ends.items[i] + 1,
						   (uint32_t)(c->ends.items[i + 1] -
							      c->ends.items[i] - 1) };

			if (take_suffix(&next) == 'i')
				continue;
		}
		node = fathom_import_node(c->import, node, location_of(c, outermost, symbol));
	}
	return node;
}

static fathom_err read_lines(struct collapsed *c, struct fathom_errinfo *reterr)
{
	struct fathom_cursor lines = cur_init(whole_lines(c->import->file), false);
	struct line line;

	while (cur_left(&lines) && take_line(&lines, &line)) {
		struct fathom_profile_sample s = { .weight = line.weight,
						   .stop = FATHOM_STOP_ENTRY };

		if (line.is_empty)
			continue;
		if (!part_names(c, &line))
			return fathom_fail_memory(reterr);
		s.thread = thread_of(c, first_of(&line));
		s.node = node_of(c, &line);
		if (c->ends.n - c->firsts.are_processes > FATHOM_IMPORT_FRAMES)
			s.stop = FATHOM_STOP_LIMIT;
		FATHOM_TRY(fathom_import_check(c->import, reterr));
		fathom_profile_write_sample(&c->import->writer, &s);
	}
	return FATHOM_OK;
}

fathom_err fathom_import_collapsed(struct fathom_import *i, struct fathom_errinfo *reterr)
{
	struct collapsed c = { .import = i };
	fathom_err err;

	fathom_import_about_number(i, FATHOM_ABOUT_ENDS, 1);
	fathom_import_about(i, FATHOM_ABOUT_METHOD, fathom_import_str("collapsed stacks"));
	fathom_import_about(i, FATHOM_ABOUT_UNIT, fathom_import_str("samples"));
	err = look_at_firsts(&c, reterr);
	if (!err)
		err = read_lines(&c, reterr);
	if (!err)
		fathom_import_end(i, 0);
	fathom_name_table_deinit(&c.names);
	fathom_array_free(&c.name);
	fathom_array_free(&c.ends);
	return err;
}
