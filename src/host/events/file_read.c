/* SPDX-License-Identifier: MIT */
/* fathom_trace_read(): reports the events of a trace file (file_format.h). */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/base/key_map.h"
#include "host/base/memory.h"
#include "host/base/option_struct.h"
#include "host/events/syscall_text.h"
#include "host/events/file_format.h"
#include "host/events/named_choices.h"
#include "host/events/event_filter.h"
#include "safe/base/error.h"

/* Bytes that are read at once. */
#define WINDOW ((size_t)1 << 20)

/* A function, and for what it was chosen. */
struct read_function {
	struct fathom_trace_function function;
	uint8_t selection;
	bool is_wanted;
};

/* A definition of a thread: it has another one for each of its names. */
struct read_thread {
	int32_t pid;
	int32_t tid;
	const char *name;
	struct fathom_file_thread known;
	struct fathom_event_filter_thread *event_filter; /* one for all names */
};

struct reading {
	int fd;
	uint8_t *bytes; /* what was read and not taken yet begins at first */
	size_t first;
	size_t n;
	size_t cap;
	uint64_t off; /* of bytes in the file */
	bool is_end;  /* of the file */
	bool is_cut;  /* it ends in the middle of an item */
	int os_errno;
	const char *wrong; /* what is broken; NULL: nothing */
	bool no_memory;

	uint64_t ns;
	uint64_t n_left_out; /* calls between the next one and its parent */
	bool is_unknown;     /* what is its parent */
	bool has_gap;        /* before it */
	size_t current;      /* thread */
	int32_t first_pid;
	bool only_first; /* tell of its first process only */
	struct {
		FATHOM_ARRAY_OF(struct read_thread *);
	} threads;
	struct {
		FATHOM_ARRAY_OF(struct fathom_event_filter_thread *);
	} event_filters;
	struct fathom_key_map by_id; /* numbers of event_filters by process and thread */
	struct {
		FATHOM_ARRAY_OF(struct read_function *);
	} functions;
	struct {
		FATHOM_ARRAY_OF(const char *);
	} modules;
	struct {
		FATHOM_ARRAY_OF(struct fathom_trace_frame *); /* by number */
	} frames;
	struct fathom_trace_stack stack; /* of the next event; without frames, it has none */
	struct fathom_trace_frame stack_frames[FATHOM_SYSCALLS_FRAMES];
	struct fathom_arena arena;
	struct fathom_choices choices;
	struct fathom_named_choices named;
	struct fathom_event_filter event_filter;
	struct fathom_trace_result result;
	struct fathom_syscall_reporter teller;
};

/* Reads ahead until @n bytes are there; returns false if the file ends before. */
static bool has(struct reading *r, size_t n)
{
	while (r->n - r->first < n && !r->is_end) {
		ssize_t got;

		if (r->n > r->first)
			memmove(r->bytes, r->bytes + r->first, r->n - r->first);
		r->off += r->first;
		r->n -= r->first;
		r->first = 0;
		if (r->cap < n + WINDOW) {
			uint8_t *more = realloc(r->bytes, n + WINDOW);

			if (!more) {
				r->no_memory = true;
				return false;
			}
			r->bytes = more;
			r->cap = n + WINDOW;
		}
		got = read(r->fd, r->bytes + r->n, r->cap - r->n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			r->os_errno = errno;
		r->is_end = got <= 0;
		r->n += got > 0 ? (size_t)got : 0;
	}
	return r->n - r->first >= n;
}

/* Notes what is wrong, once. */
static void refuse(struct reading *r, const char *what)
{
	if (!r->wrong && !r->is_cut)
		r->wrong = what;
}

/* Returns whether nothing has failed. */
static bool is_fine(const struct reading *r)
{
	return !r->wrong && !r->is_cut && !r->no_memory;
}

/* Takes a byte; 0 if there is none. */
static uint8_t take_byte(struct reading *r)
{
	if (r->first == r->n && !has(r, 1)) {
		r->is_cut = true;
		return 0;
	}
	return r->bytes[r->first++];
}

static uint64_t take_number(struct reading *r)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		const uint8_t byte = take_byte(r);

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	refuse(r, "a number has more than 64 bits");
	return 0;
}

/* Takes bytes into memory of the reading, with a NUL after them; "" if there are none. */
static const char *take_bytes(struct reading *r, uint32_t *ret_size)
{
	const uint64_t size = take_number(r);
	char *text;

	*ret_size = 0;
	if (size > FATHOM_FILE_TEXT) {
		refuse(r, "a text is too long");
		return "";
	}
	if (!is_fine(r) || !has(r, (size_t)size)) {
		r->is_cut = true;
		return "";
	}
	text = fathom_arena_alloc(&r->arena, (size_t)size + 1);
	if (!text) {
		r->no_memory = true;
		return "";
	}
	memcpy(text, r->bytes + r->first, (size_t)size);
	text[size] = '\0';
	r->first += (size_t)size;
	*ret_size = (uint32_t)size;
	return text;
}

/* Takes a text, as take_bytes() does. */
static const char *take_text(struct reading *r)
{
	uint32_t size;

	return take_bytes(r, &size);
}

static void define_function(struct reading *r)
{
	struct read_function *f = fathom_arena_alloc(&r->arena, sizeof *f);
	const uint64_t module = take_number(r);
	const char *name = take_text(r);
	const char *linked = take_text(r);
	const uint64_t address = take_number(r);
	const uint64_t module_address = take_number(r);

	if (!f) {
		r->no_memory = true;
		return;
	}
	if (!is_fine(r))
		return;
	if (module >= r->modules.n || r->functions.n >= UINT32_MAX) {
		refuse(r, "a function is of a module that is not defined");
		return;
	}
	*f = (struct read_function){ .function = { .name = name,
						   .linkage_name = *linked ? linked : NULL,
						   .module = r->modules.items[module],
						   .address = address,
						   .module_address = module_address,
						   .number = (uint32_t)r->functions.n,
						   .name_size = (uint32_t)strlen(name) } };
	f->is_wanted = fathom_named_choices_want(&r->named, *linked ? linked : name,
						 f->function.module, &f->selection);
	r->no_memory |= !fathom_array_push(&r->functions, f);
}

/* Takes @n functions of a frame, the innermost first; returns the first. */
static struct fathom_frame *take_inlined(struct reading *r, uint64_t n)
{
	struct fathom_frame *first = NULL;
	struct fathom_frame *last = NULL;

	for (uint64_t i = 0; i < n && is_fine(r); i++) {
		struct fathom_frame *frame = fathom_arena_alloc(&r->arena, sizeof *frame);
		const char *name = take_text(r);
		const char *linked = take_text(r);
		const char *file = take_text(r);

		r->no_memory |= !frame;
		if (!is_fine(r))
			break;
		*frame = (struct fathom_frame){ .function = *name ? name : NULL,
						.linkage_name = *linked ? linked : NULL,
						.file = *file ? file : NULL,
						.function_size = (uint32_t)strlen(name),
						.linkage_size = (uint32_t)strlen(linked),
						.file_size = (uint32_t)strlen(file) };
		frame->line = (uint32_t)take_number(r);
		frame->column = (uint32_t)take_number(r);
		frame->discriminator = (uint32_t)take_number(r);
		frame->start = take_number(r);
		if (last)
			last->outer = frame;
		else
			first = frame;
		last = frame;
	}
	return first;
}

/* Takes the module of a frame: its number, and its build-id. NULL: it is in none. */
static struct fathom_module_info *take_frame_module(struct reading *r)
{
	struct fathom_module_info *m = fathom_arena_alloc(&r->arena, sizeof *m);
	const uint64_t number = take_number(r);
	uint32_t size = 0;
	const uint8_t *build_id = (const uint8_t *)take_bytes(r, &size);

	r->no_memory |= !m;
	if (number > r->modules.n)
		refuse(r, "a frame is of a module that is not defined");
	if (!is_fine(r) || !number)
		return NULL;
	*m = (struct fathom_module_info){ .path = r->modules.items[number - 1],
					  .build_id = size ? build_id : NULL,
					  .build_id_size = size };
	return m;
}

static void define_frame(struct reading *r)
{
	struct fathom_trace_frame *f = fathom_arena_alloc(&r->arena, sizeof *f);
	struct fathom_answer *a = fathom_arena_alloc(&r->arena, sizeof *a);
	uint64_t n;

	r->no_memory |= !f || !a || r->frames.n >= UINT32_MAX;
	if (!is_fine(r))
		return;
	*a = (struct fathom_answer){ .pc = { .address = take_number(r) } };
	a->pc.kind = (uint8_t)take_number(r);
	a->module = take_frame_module(r);
	a->module_address = take_number(r) - 1;
	*f = (struct fathom_trace_frame){ .frame = { .pc = a->pc, .answer = a },
					  .file_offset = take_number(r) - 1,
					  .number = (uint32_t)r->frames.n };
	a->symbol = take_bytes(r, &a->symbol_size);
	a->linkage_name = take_bytes(r, &a->linkage_size);
	a->symbol = a->symbol_size ? a->symbol : NULL;
	a->linkage_name = a->linkage_size ? a->linkage_name : NULL;
	a->offset = take_number(r);
	a->size = take_number(r);
	a->source = (uint8_t)take_number(r);
	a->reason = (uint8_t)take_number(r);
	n = take_number(r);
	if (n > FATHOM_FILE_INLINED)
		refuse(r, "a frame has too many functions");
	a->frame = take_inlined(r, n);
	if (is_fine(r))
		r->no_memory |= !fathom_array_push(&r->frames, f);
}

/* Takes the stack of the event that follows. */
static void define_stack(struct reading *r)
{
	const uint64_t stop = take_number(r);
	const uint64_t n = take_number(r);

	if (n > FATHOM_SYSCALLS_FRAMES)
		refuse(r, "a stack has too many frames");
	for (uint64_t i = 0; i < n && is_fine(r); i++) {
		const uint64_t number = take_number(r);
		const uint64_t sp = take_number(r) - 1;
		const uint64_t trust = take_number(r);

		if (number >= r->frames.n) {
			refuse(r, "a frame is not defined");
			return;
		}
		r->stack_frames[i] = *r->frames.items[number];
		r->stack_frames[i].frame.sp = sp;
		r->stack_frames[i].frame.trust = (uint8_t)(trust & ~FATHOM_FILE_SIGNAL_RETURN);
		r->stack_frames[i].frame.is_signal_return =
			(trust & FATHOM_FILE_SIGNAL_RETURN) != 0;
	}
	r->stack = (struct fathom_trace_stack){ .frames = r->stack_frames,
						.n_frames = is_fine(r) ? (size_t)n : 0,
						.stop = (uint8_t)stop };
}

/* Returns what is told of thread @tid of process @pid; NULL without memory. */
static struct fathom_event_filter_thread *event_filter_of(struct reading *r, int32_t pid,
							  int32_t tid)
{
	uint32_t *number =
		fathom_key_map_at(&r->by_id, (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid);
	struct fathom_event_filter_thread *event_filter;

	if (!number)
		return NULL;
	if (*number != FATHOM_KEY_NEW)
		return r->event_filters.items[*number];
	event_filter = calloc(1, sizeof *event_filter);
	if (!event_filter || !fathom_array_push(&r->event_filters, event_filter)) {
		free(event_filter);
		return NULL;
	}
	*number = (uint32_t)r->event_filters.n - 1;
	return event_filter;
}

static void define_thread(struct reading *r)
{
	struct read_thread *t = calloc(1, sizeof *t);

	if (!t || !fathom_array_push(&r->threads, t)) {
		free(t);
		r->no_memory = true;
		return;
	}
	t->pid = (int32_t)fathom_unzigzag(take_number(r));
	t->tid = (int32_t)fathom_unzigzag(take_number(r));
	t->name = take_text(r);
	t->event_filter = event_filter_of(r, t->pid, t->tid);
	r->no_memory |= !t->event_filter;
	if (r->threads.n == 1)
		r->first_pid = t->pid;
}

static void take_end(struct reading *r)
{
	const size_t n_known = sizeof r->result.n_refused / sizeof *r->result.n_refused;
	struct fathom_trace_result result = { .size = sizeof result };
	uint64_t n;

	result.status = (int32_t)fathom_unzigzag(take_number(r));
	result.n_sites = take_number(r);
	result.lost = take_number(r);
	n = take_number(r);
	for (uint64_t i = 0; i < n && is_fine(r); i++) {
		const uint64_t count = take_number(r);

		if (i < n_known)
			result.n_refused[i] = count;
	}
	if (is_fine(r))
		r->result = result;
}

static void define(struct reading *r, uint64_t what)
{
	const char *path;

	switch (what) {
	case FATHOM_DEFINE_BEGIN:
		if (take_number(r) - 1 >= FATHOM_TRACE_FILE_VERSION)
			refuse(r, "it was written by a newer version");
		(void)take_number(r);
		break;
	case FATHOM_DEFINE_MODULE:
		path = take_text(r);
		if (is_fine(r))
			r->no_memory |= !fathom_array_push(&r->modules, path);
		break;
	case FATHOM_DEFINE_FUNCTION:
		define_function(r);
		break;
	case FATHOM_DEFINE_THREAD:
		define_thread(r);
		break;
	case FATHOM_DEFINE_END:
		take_end(r);
		break;
	case FATHOM_DEFINE_FRAME:
		define_frame(r);
		break;
	case FATHOM_DEFINE_FRAMES:
		define_stack(r);
		break;
	case FATHOM_DEFINE_UNKNOWN:
		r->is_unknown = true;
		break;
	case FATHOM_DEFINE_GAP:
		r->has_gap = true;
		r->n_left_out = take_number(r);
		break;
	default:
		refuse(r, "it defines what this version does not know");
	}
}

/* Returns function number @number; NULL, with an error, if it is not defined. */
static const struct read_function *function_at(struct reading *r, uint64_t number)
{
	if (number < r->functions.n)
		return r->functions.items[number];
	refuse(r, "a function is not defined");
	return NULL;
}

static void take_stack(struct reading *r, struct fathom_file_thread *t)
{
	const uint64_t value = take_number(r);
	const uint64_t d = fathom_unzigzag(value >> 1);

	t->stack += value & 1 ? d : d * 8;
}

/* Takes function, stack and the number that follows of a call or return. */
static const struct read_function *take_named(struct reading *r, struct read_thread *t,
					      unsigned kind, struct fathom_trace_event *e)
{
	const struct read_function *f = function_at(r, take_number(r));

	take_stack(r, &t->known);
	e->stack = t->known.stack;
	if (kind == FATHOM_ITEM_CALLS)
		e->count = take_number(r);
	if (kind == FATHOM_ITEM_RETURN)
		e->duration_ns = take_number(r);
	if (!e->count)
		refuse(r, "a call has happened 0 times");
	if (f && e->type == FATHOM_TRACE_CALL)
		r->no_memory |= !fathom_file_call(&t->known, e, f->function.number);
	return f;
}

/* Takes the return of the call that is noted. */
static const struct read_function *take_expected(struct reading *r, struct read_thread *t,
						 struct fathom_trace_event *e)
{
	const struct fathom_file_call *call =
		e->depth < t->known.calls.n ? &t->known.calls.items[e->depth] : NULL;

	if (!call || call->function >= r->functions.n) {
		refuse(r, "a return is of no call");
		return NULL;
	}
	e->stack = t->known.stack = call->stack;
	e->duration_ns = e->ns - call->ns;
	return r->functions.items[call->function];
}

/* Gives @e, a call or a system call, the parent that was told before it. */
static void take_parent(struct reading *r, struct fathom_trace_event *e)
{
	if (r->has_gap && r->n_left_out >= e->depth)
		refuse(r, "a call is within none");
	if (!r->is_unknown && e->depth) {
		e->parent = r->has_gap ? FATHOM_TRACE_PARENT_GAP : FATHOM_TRACE_PARENT_DIRECT;
		e->parent_depth = e->depth - 1 - (uint32_t)r->n_left_out;
	}
	r->is_unknown = r->has_gap = false;
	r->n_left_out = 0;
}

/* The most bytes of the two numbers after a record. */
#define BEHIND_RECORD 20

/* Takes the record of a system call, and what stands after it. */
static void take_system_call(struct reading *r, struct fathom_trace_event *e)
{
	const uint64_t size = take_number(r);
	struct fathom_trace_syscall *told;
	size_t from;

	if (size > FATHOM_FILE_TEXT || !e->function)
		refuse(r, "a system call cannot be read");
	/* Together with the numbers after it, it stays where it is until the next item. */
	if (!is_fine(r) || (!has(r, (size_t)size + BEHIND_RECORD) && !has(r, (size_t)size))) {
		r->is_cut |= !r->wrong;
		return;
	}
	from = r->first;
	r->first += (size_t)size;
	told = fathom_syscall_report(&r->teller, r->bytes + from, (size_t)size);
	if (!told) {
		refuse(r, "a system call cannot be read");
		return;
	}
	told->method = (uint8_t)take_number(r);
	told->pc = take_number(r);
	e->syscall = told;
}

/* Takes what is neither a call nor a return. */
static void take_other(struct reading *r, struct read_thread *t, struct fathom_trace_event *e)
{
	uint64_t type;
	uint64_t function;
	const char *text;

	take_stack(r, &t->known);
	type = take_number(r);
	e->stack = t->known.stack;
	e->count = take_number(r);
	function = take_number(r);
	if (function && is_fine(r)) {
		const struct read_function *f = function_at(r, function - 1);

		e->function = f ? &f->function : NULL;
	}
	e->type = (uint8_t)type;
	if (type == FATHOM_TRACE_SYSCALL || type == FATHOM_TRACE_SYSCALL_ENTRY) {
		take_parent(r, e);
		e->duration_ns = e->count;
		e->count = 1;
		take_system_call(r, e);
	} else {
		text = take_text(r);
		e->text = function ? NULL : text;
	}
	if (type < FATHOM_TRACE_SIGNAL || type > FATHOM_TRACE_SYSCALL_ENTRY ||
	    (type >= FATHOM_TRACE_CALLER) != (e->function != NULL))
		refuse(r, "an event is of no known type");
	if (r->stack.frames)
		e->call_stack = &r->stack;
	if (type == FATHOM_TRACE_START)
		fathom_event_filter_begin_anew(&r->event_filter, t->event_filter);
	if (is_fine(r) && !(r->only_first && e->pid != r->first_pid))
		fathom_event_filter_report(&r->event_filter, t->event_filter, e);
	r->stack.frames = NULL;
}

/* Takes an event of @kind; @deeper is zigzag of how much deeper it is than the last one. */
static void take_event(struct reading *r, unsigned kind, uint64_t deeper)
{
	struct read_thread *t = r->current < r->threads.n ? r->threads.items[r->current] : NULL;
	const struct read_function *f;
	struct fathom_trace_event e = { .count = 1 };

	if (!t) {
		refuse(r, "an event is of no thread");
		return;
	}
	t->known.depth += (uint32_t)fathom_unzigzag(deeper);
	r->ns += fathom_unzigzag(take_number(r));
	e.ns = r->ns;
	e.thread = t->name;
	e.pid = t->pid;
	e.tid = t->tid;
	e.depth = t->known.depth;
	e.stack_number = t->known.stack_number;
	if (kind == FATHOM_ITEM_OTHER) {
		take_other(r, t, &e);
		return;
	}
	e.type = kind == FATHOM_ITEM_CALL || kind == FATHOM_ITEM_CALLS ? FATHOM_TRACE_CALL
								       : FATHOM_TRACE_RETURN;
	if (e.type == FATHOM_TRACE_CALL)
		take_parent(r, &e);
	f = kind == FATHOM_ITEM_RETURNS ? take_expected(r, t, &e) : take_named(r, t, kind, &e);
	if (!is_fine(r) || (r->only_first && e.pid != r->first_pid))
		return;
	e.function = &f->function;
	if (!f->is_wanted) {
		fathom_event_filter_pass_over(t->event_filter, &e);
		return;
	}
	fathom_event_filter_take(&r->event_filter, t->event_filter, &e, f->selection);
}

static void take_item(struct reading *r)
{
	const uint8_t tag = take_byte(r);
	const unsigned kind = tag & 7;
	uint64_t upper = tag >> 3;

	if (upper == FATHOM_ITEM_FOLLOWS)
		upper = take_number(r);
	switch (kind) {
	case FATHOM_ITEM_DEFINE:
		define(r, upper);
		break;
	case FATHOM_ITEM_THREAD:
		r->current = (size_t)upper;
		break;
	case FATHOM_ITEM_STACK:
		if (r->current < r->threads.n)
			r->threads.items[r->current]->known.stack_number = (uint8_t)upper;
		break;
	default:
		take_event(r, kind, upper);
	}
}

static fathom_err open_file(struct reading *r, const char *path, struct fathom_errinfo *reterr)
{
	const size_t size = sizeof FATHOM_TRACE_FILE_MAGIC - 1;

	r->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (r->fd < 0) {
		const int number = errno;

		(void)fathom_fail(reterr, number == ENOENT ? FATHOM_E_NOT_FOUND : FATHOM_E_OS, "",
				  0, "it cannot be opened");
		if (reterr)
			reterr->os_errno = number;
		return number == ENOENT ? FATHOM_E_NOT_FOUND : FATHOM_E_OS;
	}
	if (!has(r, size) || memcmp(r->bytes, FATHOM_TRACE_FILE_MAGIC, size))
		return r->no_memory
			       ? fathom_fail_memory(reterr)
			       : fathom_fail(reterr, FATHOM_E_FORMAT, "", 0, "it is no trace file");
	r->first = size;
	return FATHOM_OK;
}

static fathom_err read_items(struct reading *r, struct fathom_errinfo *reterr)
{
	uint64_t off = 0;

	while (is_fine(r) && !r->event_filter.is_over && has(r, 1)) {
		off = r->off + r->first;
		take_item(r);
	}
	for (size_t i = 0; i < r->event_filters.n; i++)
		fathom_event_filter_report_kept(&r->event_filter, r->event_filters.items[i]);
	fathom_event_filter_flush(&r->event_filter, true);
	if (r->no_memory)
		return fathom_fail_memory(reterr);
	if (r->wrong)
		return fathom_fail(reterr, FATHOM_E_CORRUPT, "", off, r->wrong);
	if (!r->os_errno)
		return FATHOM_OK;
	(void)fathom_fail(reterr, FATHOM_E_OS, "", off, "it cannot be read");
	if (reterr)
		reterr->os_errno = r->os_errno;
	return FATHOM_E_OS;
}

static void deinit(struct reading *r)
{
	for (size_t i = 0; i < r->threads.n; i++) {
		fathom_array_free(&r->threads.items[i]->known.calls);
		free(r->threads.items[i]);
	}
	for (size_t i = 0; i < r->event_filters.n; i++) {
		fathom_event_filter_thread_deinit(r->event_filters.items[i]);
		free(r->event_filters.items[i]);
	}
	fathom_array_free(&r->event_filters);
	fathom_key_map_deinit(&r->by_id);
	fathom_named_choices_deinit(&r->named);
	fathom_array_free(&r->threads);
	fathom_array_free(&r->functions);
	fathom_array_free(&r->modules);
	fathom_array_free(&r->frames);
	fathom_choices_deinit(&r->choices);
	fathom_arena_deinit(&r->arena);
	fathom_syscall_reporter_deinit(&r->teller);
	free(r->bytes);
	if (r->fd >= 0)
		close(r->fd);
}

fathom_err fathom_trace_read(struct fathom *session, const char *path,
			     const struct fathom_trace_options *options,
			     struct fathom_trace_result *ret_result, struct fathom_errinfo *reterr)
{
	struct fathom_trace_options o = { .size = 0 };
	struct reading r = { .fd = -1, .current = SIZE_MAX };
	fathom_err err;

	(void)session;
	if (!path || !options || !FATHOM_OPTIONS_READ(options, &o, FATHOM_TRACE_FLAGS) || !o.events)
		return fathom_fail_options(reterr);
	r.only_first = o.flags & FATHOM_TRACE_NO_CHILDREN;
	fathom_event_filter_init(&r.event_filter, &o);
	fathom_syscall_reporter_init(&r.teller, o.syscalls);
	err = fathom_choices_init(&r.choices, &o)
		      ? fathom_named_choices_init(&r.named, &r.choices, true, reterr)
		      : fathom_fail_memory(reterr);
	if (!err)
		err = open_file(&r, path, reterr);
	if (!err)
		err = read_items(&r, reterr);
	if (!err && ret_result) {
		const size_t size =
			ret_result->size < sizeof r.result ? ret_result->size : sizeof r.result;

		r.result.size = size;
		memcpy(ret_result, &r.result, size);
	}
	deinit(&r);
	return err;
}
