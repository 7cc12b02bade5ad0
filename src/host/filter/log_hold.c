/* SPDX-License-Identifier: MIT */
#include "host/filter/log_hold.h"

#include "host/filter/formats.h"

/* Bytes of a report that wait for its end. */
#define MAX_HELD ((size_t)256 << 10)

/* Returns the start of the line that ends before @end, in the text from @text on. */
static const char *line_before(const char *text, const char *end)
{
	const char *before = memrchr(text, '\n', (size_t)(end - text));

	return before ? before + 1 : text;
}

/* Returns the start of a fatal error log of Java that has not ended; NULL: there is none. */
static const char *find_hotspot(const char *text, const char *end)
{
	static const char head[] = "A fatal error has been detected by the Java Runtime";
	static const char tail[] = "\nEND.";
	/* On standard output, where nothing follows. */
	static const char brief[] = "An error report file with more information is saved as";
	const char *last = NULL;
	const char *at = text;

	while ((at = memmem(at, (size_t)(end - at), head, sizeof head - 1)) != NULL)
		last = at++;
	if (!last || memmem(last, (size_t)(end - last), tail, sizeof tail - 1) ||
	    memmem(last, (size_t)(end - last), brief, sizeof brief - 1))
		return NULL;
	return line_before(text, last);
}

/* Returns whether the line [@from, @to) is a frame that only its whole stack can place. */
static bool is_frame(const char *from, const char *to)
{
	struct fathom_log_line line = { from, to };
	struct fathom_log_scan scan = { .line_start = from, .line_end = to };
	bool is;

	is = (fathom_log_read_valgrind(&scan, line) || fathom_log_read_gdb(&scan, line) ||
	      fathom_log_read_rust(&scan, line)) &&
	     scan.numbers.n;
	fathom_log_scan_deinit(&scan);
	return is;
}

/* Returns whether the line is gdb's of a frame without an address, or Rust's below a frame. */
static bool is_between_frames(const char *from, const char *to)
{
	struct fathom_log_line line = { from, to };
	uint32_t number;
	uint64_t pc;

	fathom_line_skip_blanks(&line);
	if (line.at > from && fathom_line_take(&line, "at "))
		return true;
	if (!fathom_line_take(&line, "#") || !fathom_line_take_decimal(&line, &number))
		return false;
	fathom_line_skip_blanks(&line);
	return line.at < line.end && !fathom_line_take_0x(&line, &pc);
}

/* Returns the start of the stack that the text ends with; its end: it ends with none. */
static const char *find_stack(const char *text, const char *end)
{
	const char *start = end;
	const char *at = end;

	while (at > text) {
		const char *from = line_before(text, at - 1);

		if (is_frame(from, at - 1))
			start = from;
		else if (!is_between_frames(from, at - 1))
			break;
		at = from;
	}
	return start;
}

size_t fathom_log_ready(const char *text, size_t size, bool may_guess)
{
	const char *end = text + size;
	const char *from = size > MAX_HELD ? end - MAX_HELD : text;
	const char *held = find_hotspot(from, end);

	if (!held && may_guess && size && end[-1] == '\n')
		held = find_stack(from, end);
	/* A report that began further before is not held any more. */
	return held && (held > from || from == text) ? (size_t)(held - text) : size;
}
