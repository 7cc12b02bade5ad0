/* SPDX-License-Identifier: MIT */
#include "cli/trace_text.h"

#include <string.h>

#include "cli/json.h"

/* Columns that numbers are right-aligned in. */
enum { TID_WIDTH = 5, NS_WIDTH = 13, STACK_WIDTH = 7 };

/* The deepest indentation, in calls. */
#define MOST_INDENTED 60

/* The digits of a number of 64 bits with a mark between each three. */
#define MOST_DIGITS 27

static void put_spaces(struct out *o, size_t n)
{
	static const char spaces[] = "                                                            "
				     "                                                            ";

	out_bytes(o, spaces, n < sizeof spaces - 1 ? n : sizeof spaces - 1);
}

/* Writes the digits of @value, grouped, up to @end; returns where they begin. */
static char *grouped(uint64_t value, char *end)
{
	while (value >= 1000) {
		const unsigned low = (unsigned)(value % 1000);

		value /= 1000;
		*--end = (char)('0' + low % 10);
		*--end = (char)('0' + low / 10 % 10);
		*--end = (char)('0' + low / 100);
		*--end = '\'';
	}
	do
		*--end = (char)('0' + value % 10);
	while (value /= 10);
	return end;
}

void trace_text_grouped(struct out *o, uint64_t value, size_t width)
{
	char digits[MOST_DIGITS];
	char *end = digits + sizeof digits;
	const char *begin = grouped(value, end);
	const size_t n = (size_t)(end - begin);

	put_spaces(o, n < width ? width - n : 0);
	out_bytes(o, begin, n);
}

/* Appends @tid in its column, ungrouped. */
static void put_tid(struct out *o, int32_t tid)
{
	char digits[MOST_DIGITS];
	char *end = digits + sizeof digits;
	char *begin = end;
	uint32_t value = (uint32_t)tid;

	do
		*--begin = (char)('0' + value % 10);
	while (value /= 10);
	put_spaces(o, end - begin < TID_WIDTH ? (size_t)(TID_WIDTH - (end - begin)) : 0);
	out_bytes(o, begin, (size_t)(end - begin));
}

void trace_text_head(struct out *o)
{
	out_str(o, "#     tid   nanoseconds   stack symbol\n");
}

/* What lines begin with: three letters, but for what was lost. */
static const char *const kinds[] = {
	[FATHOM_TRACE_CALL] = "FUN ",   [FATHOM_TRACE_RETURN] = "RET ",
	[FATHOM_TRACE_SIGNAL] = "SIG ", [FATHOM_TRACE_START] = "NEW ",
	[FATHOM_TRACE_EXIT] = "END ",   [FATHOM_TRACE_LOST] = "LOST",
	[FATHOM_TRACE_NOTE] = "# ",     [FATHOM_TRACE_CALLER] = "IN  ",
};

static void put_count(struct out *o, uint64_t count)
{
	out_str(o, " \xc3\x97"); /* × */
	trace_text_grouped(o, count, 0);
}

void trace_text_event(struct out *o, const struct fathom_trace_event *e)
{
	const size_t depth = e->depth < MOST_INDENTED ? e->depth : MOST_INDENTED;

	if (e->type >= sizeof kinds / sizeof *kinds || !kinds[e->type])
		return;
	out_str(o, kinds[e->type]);
	put_tid(o, e->tid);
	out_char(o, ' ');
	trace_text_grouped(o, e->ns, NS_WIDTH);
	out_char(o, ' ');
	trace_text_grouped(o, e->stack, STACK_WIDTH);
	out_char(o, ' ');
	put_spaces(o, 2 * depth);
	if (e->type == FATHOM_TRACE_LOST) {
		trace_text_grouped(o, e->count, 0);
		out_char(o, ' ');
	}
	if (e->function) {
		out_char(o, '&');
		out_text(o, e->function->name, e->function->name_size);
	} else if (e->text) {
		out_text(o, e->text, strlen(e->text));
	}
	if (e->type == FATHOM_TRACE_CALL && e->count > 1)
		put_count(o, e->count);
	if (e->type == FATHOM_TRACE_RETURN && e->duration_ns) {
		out_str(o, " +");
		trace_text_grouped(o, e->duration_ns, 0);
	}
	out_char(o, '\n');
}

static void json_number(struct out *o, const char *key, uint64_t value)
{
	out_char(o, ',');
	json_key(o, key);
	out_dec(o, value);
}

void trace_json_event(struct out *o, const struct fathom_trace_event *e)
{
	out_char(o, '{');
	json_string(o, "type", fathom_trace_type_name((enum fathom_trace_type)e->type));
	json_number(o, "pid", (uint64_t)e->pid);
	json_number(o, "tid", (uint64_t)e->tid);
	json_number(o, "ns", e->ns);
	json_number(o, "stack", e->stack);
	json_number(o, "depth", e->depth);
	out_char(o, ',');
	json_string(o, "function", e->function ? e->function->name : NULL);
	out_char(o, ',');
	json_string(o, "module", e->function ? e->function->module : NULL);
	json_number(o, "count", e->count);
	if (e->type == FATHOM_TRACE_RETURN) {
		out_char(o, ',');
		json_count(o, "duration_ns", e->duration_ns);
	}
	if (e->text) {
		out_char(o, ',');
		json_string(o, "text", e->text);
	}
	out_str(o, "}\n");
}
