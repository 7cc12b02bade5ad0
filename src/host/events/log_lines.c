/* SPDX-License-Identifier: MIT */
/*
 * Events as lines. For people:
 *
 *	#     tid   nanoseconds   stack symbol
 *	FUN 18900        95'034      96   &puts
 *	FUN 18900        97'002      16     &step ×10'000
 *
 * Digits are grouped by three; each call is indented by two columns for each call that it
 * may be within, up to a limit. "[...]" before the name of a function says that its direct caller
 * is not known, but that it is within the call above; "[?]" that this may have ended. As JSON
 * Lines, what is not known is null.
 *
 * After a system call stand the frames that made it (stack_lines.c). What is written for a
 * function or a frame is the same each time, so it is made once.
 */
#include <stdlib.h>

#include "fathom/format.h"
#include "host/events/escape.h"
#include "host/events/stack_lines.h"

/* Columns that numbers are right-aligned in. */
enum { TID_WIDTH = 5, NS_WIDTH = 13, STACK_WIDTH = 7 };

/* The least number of a thread that fills its column. */
enum { LEAST_WIDE_TID = 10000 };

/* The deepest indentation, in calls. */
#define MOST_INDENTED 60

/* Bytes of a line at most, but for names and texts. */
#define LINE_SIZE 320

/* The text that is written for a function or a frame. */
struct spelling {
	char *text; /* NULL: not made yet */
	size_t size;
};

struct spellings {
	FATHOM_ARRAY_OF(struct spelling); /* by number */
};

struct lines {
	bool has_head;
	bool has_sites;     /* there was a function with a site, not just calls of libraries */
	bool has_durations; /* of system calls, too */
	struct spellings functions;
	struct spellings frames;
};

static void begin_log(struct fathom_trace_writer *w)
{
	w->state = calloc(1, sizeof(struct lines));
	w->no_memory |= !w->state;
}

static void free_spellings(struct spellings *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->items[i].text);
	fathom_array_free(l);
}

static void begin_with_durations(struct fathom_trace_writer *w)
{
	struct lines *l;

	begin_log(w);
	l = w->state;
	if (l)
		l->has_durations = true;
}

static void free_lines(struct fathom_trace_writer *w)
{
	struct lines *l = w->state;

	if (!l)
		return;
	free_spellings(&l->functions);
	free_spellings(&l->frames);
	free(l);
}

/* Appends what is written for number @number of @l; returns whether it was made already. */
static bool put_known(struct fathom_trace_writer *w, const struct spellings *l, uint32_t number)
{
	const struct spelling *s = number < l->n ? &l->items[number] : NULL;

	if (s && s->text)
		fathom_writer_bytes(w, s->text, s->size);
	return s && s->text;
}

/* Keeps what was appended after the first @before bytes for number @number of @l. */
static void keep(struct fathom_trace_writer *w, struct spellings *l, uint32_t number, size_t before)
{
	const size_t more = number < l->n ? 0 : number + 1 - l->n;
	struct spelling *s;

	if (w->no_memory || (more && !fathom_array_room(l, more))) {
		w->no_memory = true;
		return;
	}
	memset(l->items + l->n, 0, more * sizeof *l->items);
	l->n += more;
	s = &l->items[number];
	s->size = w->out.n - before;
	s->text = malloc(s->size + 1);
	if (s->text)
		memcpy(s->text, w->out.items + before, s->size);
	w->no_memory |= !s->text;
}

/* Appends what is written for @f, which @spell appends at its first use. */
static void put_function(struct fathom_trace_writer *w, const struct fathom_trace_function *f,
			 void (*spell)(struct fathom_trace_writer *w,
				       const struct fathom_trace_function *f))
{
	struct lines *l = w->state;
	const size_t before = w->out.n;

	if (put_known(w, &l->functions, f->number))
		return;
	spell(w, f);
	keep(w, &l->functions, f->number, before);
}

/* The same for a frame. */
static void put_frame(struct fathom_trace_writer *w, const struct fathom_trace_frame *f,
		      void (*spell)(struct fathom_trace_writer *w,
				    const struct fathom_trace_frame *f))
{
	struct lines *l = w->state;
	const size_t before = w->out.n;

	if (put_known(w, &l->frames, f->number))
		return;
	spell(w, f);
	keep(w, &l->frames, f->number, before);
}

static char *spaces(char *to, size_t n)
{
	memset(to, ' ', n);
	return to + n;
}

/* Writes @n bytes of digits that stand at @digits, right-aligned; returns their end. */
static char *align(char *to, const char *digits, size_t n, size_t width)
{
	to = spaces(to, n < width ? width - n : 0);
	memcpy(to, digits, n);
	return to + n;
}

static char *grouped(char *to, uint64_t value, size_t width)
{
	char digits[FATHOM_GROUPED_SIZE];

	return align(to, digits, fathom_format_grouped(digits, value), width);
}

static char *plain(char *to, uint64_t value, size_t width)
{
	char digits[FATHOM_NUMBER_SIZE];

	return align(to, digits, fathom_format_dec(digits, value), width);
}

static char *word(char *to, const char *s)
{
	const size_t n = strlen(s);

	memcpy(to, s, n);
	return to + n;
}

/* The first word of a line: three letters, except for lost events. */
static const char *const kinds[] = {
	[FATHOM_TRACE_CALL] = "FUN ",    [FATHOM_TRACE_RETURN] = "RET ",
	[FATHOM_TRACE_SIGNAL] = "SIG ",  [FATHOM_TRACE_START] = "NEW ",
	[FATHOM_TRACE_EXIT] = "END ",    [FATHOM_TRACE_LOST] = "LOST",
	[FATHOM_TRACE_NOTE] = "# ",      [FATHOM_TRACE_CALLER] = "IN  ",
	[FATHOM_TRACE_SYSCALL] = "SYS ",
};

static const struct fathom_escape escape = { "\\", NULL };

static void spell_name(struct fathom_trace_writer *w, const struct fathom_trace_function *f)
{
	fathom_writer_str(w, "&");
	fathom_escape_name(w, &escape, f->name);
}

static void put_head(struct fathom_trace_writer *w)
{
	struct lines *l = w->state;

	if (!l->has_head)
		fathom_writer_str(w, "#     tid   nanoseconds   stack symbol\n");
	l->has_head = true;
}

static void put_call_text(struct fathom_trace_writer *w, const struct fathom_trace_syscall *c)
{
	fathom_writer_bytes(w, c->text, c->text_size);
	if (c->is_injected)
		fathom_writer_str(w, " (injected)");
	if (c->is_delayed)
		fathom_writer_str(w, " (delayed)");
}

/* Returns whether @e is a system call whose duration is shown. */
static bool has_duration(const struct fathom_trace_writer *w, const struct fathom_trace_event *e)
{
	const struct lines *l = w->state;

	return e->syscall && l->has_durations && e->syscall->outcome == FATHOM_SYSCALL_HAS_ENDED;
}

/*
 * Returns how far @e is indented, and in *@ret_mark what stands before its function. Of a program
 * whose calls of libraries alone are recorded, nothing is known of callers: its calls are a list.
 */
static size_t indent(struct lines *l, const struct fathom_trace_event *e, const char **ret_mark)
{
	const bool is_call = e->type == FATHOM_TRACE_CALL;

	*ret_mark = "";
	l->has_sites |= is_call && e->function->address;
	if (!l->has_sites)
		return e->syscall && e->parent != FATHOM_TRACE_PARENT_UNKNOWN;
	if ((is_call || e->syscall) && e->depth)
		*ret_mark = e->parent == FATHOM_TRACE_PARENT_UNKNOWN ? "[?] "
			    : e->parent == FATHOM_TRACE_PARENT_GAP   ? "[...] "
								     : "";
	return e->depth < MOST_INDENTED ? e->depth : MOST_INDENTED;
}

static void put_text(struct fathom_trace_writer *w, const struct fathom_trace_event *e)
{
	char line[LINE_SIZE];
	char *to = line;
	const char *mark;

	if (e->type >= sizeof kinds / sizeof *kinds || !kinds[e->type])
		return;
	put_head(w);
	to = word(to, kinds[e->type]);
	if (to[-1] != ' ' && e->tid >= LEAST_WIDE_TID)
		*to++ = ' ';
	to = plain(to, (uint32_t)e->tid, TID_WIDTH);
	*to++ = ' ';
	to = grouped(to, e->ns, NS_WIDTH);
	*to++ = ' ';
	to = grouped(to, e->stack, STACK_WIDTH);
	to = spaces(to, 1 + 2 * indent(w->state, e, &mark));
	to = word(to, mark);
	if (e->type == FATHOM_TRACE_LOST) {
		to = grouped(to, e->count, 0);
		*to++ = ' ';
	}
	fathom_writer_bytes(w, line, (size_t)(to - line));
	to = line;
	if (e->syscall)
		put_call_text(w, e->syscall);
	else if (e->function)
		put_function(w, e->function, spell_name);
	else if (e->text)
		fathom_escape_name(w, &escape, e->text);
	if (e->type == FATHOM_TRACE_CALL && e->count > 1)
		to = grouped(word(to, " \xc3\x97"), e->count, 0); /* × */
	if (e->duration_ns && (e->type == FATHOM_TRACE_RETURN || has_duration(w, e)))
		to = grouped(word(to, " +"), e->duration_ns, 0);
	*to++ = '\n';
	fathom_writer_bytes(w, line, (size_t)(to - line));
	for (size_t i = 0; e->call_stack && i < e->call_stack->n_frames; i++)
		put_frame(w, &e->call_stack->frames[i], fathom_stack_lines_put);
}

static void end_text(struct fathom_trace_writer *w, const struct fathom_trace_result *result)
{
	(void)w;
	(void)result;
}

static void spell_members(struct fathom_trace_writer *w, const struct fathom_trace_function *f)
{
	fathom_writer_str(w, ",\"function\":");
	fathom_writer_json(w, f->name);
	fathom_writer_str(w, ",\"module\":");
	fathom_writer_json(w, f->module);
}

static char *member(char *to, const char *key, uint64_t value)
{
	return plain(word(to, key), value, 0);
}

/* Writes the members of system call @e. */
static void put_call_members(struct fathom_trace_writer *w, const struct fathom_trace_event *e)
{
	const struct fathom_trace_syscall *c = e->syscall;
	char digits[FATHOM_NUMBER_SIZE + 1];
	size_t n = 0;

	fathom_writer_str(w, ",\"name\":");
	fathom_writer_json(w, c->name);
	fathom_writer_str(w, ",\"args\":[");
	for (uint32_t i = 0; i < c->n_arguments; i++) {
		const struct fathom_syscall_argument_text *a = &c->arguments[i];

		fathom_writer_str(w, i ? ",{\"name\":" : "{\"name\":");
		if (a->name)
			fathom_writer_json(w, a->name);
		else
			fathom_writer_str(w, "null");
		fathom_writer_str(w, ",\"value\":");
		fathom_writer_json_bytes(w, c->text + a->begin, a->end - a->begin);
		fathom_writer_str(w, "}");
	}
	fathom_writer_str(w, "],\"result\":");
	if (c->outcome != FATHOM_SYSCALL_HAS_ENDED) {
		fathom_writer_str(w, "null");
	} else {
		if (c->result < 0)
			digits[n++] = '-';
		n += fathom_format_dec(digits + n, c->result < 0 ? 0 - (uint64_t)c->result
								 : (uint64_t)c->result);
		fathom_writer_bytes(w, digits, n);
	}
	fathom_writer_str(w, ",\"errno\":");
	if (c->error)
		fathom_writer_json(w, c->error);
	else
		fathom_writer_str(w, "null");
	fathom_writer_str(w, ",\"duration_ns\":");
	fathom_writer_dec(w, e->duration_ns);
	/* By the older name, too. */
	for (size_t i = 0; i < 2; i++) {
		fathom_writer_str(w, i ? ",\"way\":" : ",\"method\":");
		fathom_writer_json(
			w, fathom_syscall_method_name((enum fathom_syscall_method)c->method));
	}
}

/* Writes the members of stack @s. */
static void put_frames(struct fathom_trace_writer *w, const struct fathom_trace_stack *s)
{
	fathom_writer_str(w, ",\"frames\":[");
	for (size_t i = 0; i < s->n_frames; i++) {
		fathom_writer_str(w, i ? ",{" : "{");
		fathom_stack_json_head(w, &s->frames[i]);
		put_frame(w, &s->frames[i], fathom_stack_json_names);
		fathom_writer_str(w, "}");
	}
	fathom_writer_str(w, "],\"stop\":");
	fathom_writer_json(w, fathom_stop_name((enum fathom_stop)s->stop));
}

/* Writes which call is the parent of @e. */
static char *parent_members(char *to, const struct fathom_trace_event *e)
{
	if (e->parent == FATHOM_TRACE_PARENT_UNKNOWN)
		return word(to, ",\"parent\":null,\"parent_depth\":null");
	to = word(to, e->parent == FATHOM_TRACE_PARENT_DIRECT ? ",\"parent\":\"direct\""
							      : ",\"parent\":\"gap\"");
	return member(to, ",\"parent_depth\":", e->parent_depth);
}

static void put_json(struct fathom_trace_writer *w, const struct fathom_trace_event *e)
{
	char line[LINE_SIZE];
	char *to = word(line, "{\"type\":\"");

	if (e->type == FATHOM_TRACE_SYSCALL_ENTRY)
		return;
	to = word(to, fathom_trace_type_name((enum fathom_trace_type)e->type));
	to = member(to, "\",\"pid\":", (uint32_t)e->pid);
	to = member(to, ",\"tid\":", (uint32_t)e->tid);
	to = member(to, ",\"ns\":", e->ns);
	to = member(to, ",\"stack\":", e->stack);
	to = member(to, ",\"depth\":", e->depth);
	if (!e->function || e->syscall)
		to = word(to, ",\"function\":null,\"module\":null");
	fathom_writer_bytes(w, line, (size_t)(to - line));
	if (e->function && !e->syscall)
		put_function(w, e->function, spell_members);
	to = line;
	if (e->type == FATHOM_TRACE_CALL || e->type == FATHOM_TRACE_SYSCALL)
		to = parent_members(to, e);
	to = member(to, ",\"count\":", e->count);
	if (e->type == FATHOM_TRACE_RETURN && e->duration_ns)
		to = member(to, ",\"duration_ns\":", e->duration_ns);
	else if (e->type == FATHOM_TRACE_RETURN)
		to = word(to, ",\"duration_ns\":null");
	if (e->text)
		to = word(to, ",\"text\":");
	fathom_writer_bytes(w, line, (size_t)(to - line));
	if (e->text)
		fathom_writer_json(w, e->text);
	if (e->syscall)
		put_call_members(w, e);
	if (e->call_stack)
		put_frames(w, e->call_stack);
	fathom_writer_str(w, "}\n");
}

const struct fathom_writer_format fathom_writer_text = { begin_log, put_text, end_text, free_lines,
							 true };
const struct fathom_writer_format fathom_writer_text_durations = { begin_with_durations, put_text,
								   end_text, free_lines, true };
const struct fathom_writer_format fathom_writer_json_lines = { begin_log, put_json, end_text,
							       free_lines, true };
