/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/events/file_format.h"
#include "host/events/writer.h"

/* Bytes of the longest item without texts. */
#define ITEM_SIZE (8 * FATHOM_LEB_SIZE)

/* A thread that was defined. */
struct written_thread {
	int32_t pid;
	int32_t tid;
	char name[32];
	struct fathom_file_thread known;
};

/* Threads that are found at once. */
#define LATELY 1024

struct file_writer {
	uint64_t ns;    /* of the last item */
	size_t current; /* thread; SIZE_MAX: none */
	struct {
		FATHOM_ARRAY_OF(struct written_thread);
	} threads;
	struct fathom_u32_array functions; /* number in the file + 1, by number; 0: none */
	struct fathom_u32_array frames;    /* likewise */
	struct {
		FATHOM_ARRAY_OF(char *);
	} modules;
	uint32_t n_functions;
	uint32_t n_frames;
	uint32_t lately[LATELY]; /* threads by tid */
};

bool fathom_file_call(struct fathom_file_thread *t, const struct fathom_trace_event *e,
		      uint32_t function)
{
	const struct fathom_file_call none = { .function = UINT32_MAX };
	const struct fathom_file_call call = { e->ns, e->stack, function };

	if (e->depth >= FATHOM_FILE_DEPTH || e->depth > t->calls.n + FATHOM_FILE_DEEPER)
		return true;
	while (t->calls.n <= e->depth)
		if (!fathom_array_push(&t->calls, none))
			return false;
	t->calls.items[e->depth] = call;
	return true;
}

static void write_number(struct fathom_trace_writer *w, uint64_t value)
{
	uint8_t bytes[FATHOM_LEB_SIZE];

	fathom_writer_bytes(w, bytes, fathom_leb_put(bytes, value));
}

static void write_bytes(struct fathom_trace_writer *w, const void *bytes, size_t n)
{
	write_number(w, n);
	fathom_writer_bytes(w, bytes ? bytes : "", n);
}

static void write_text(struct fathom_trace_writer *w, const char *text)
{
	write_bytes(w, text, text ? strnlen(text, FATHOM_FILE_TEXT) : 0);
}

/* Puts a tag of @kind, with @upper. */
static size_t put_tag(uint8_t *to, unsigned kind, uint64_t upper)
{
	if (upper < FATHOM_ITEM_FOLLOWS) {
		to[0] = (uint8_t)(kind | upper << 3);
		return 1;
	}
	to[0] = (uint8_t)(kind | FATHOM_ITEM_FOLLOWS << 3);
	return 1 + fathom_leb_put(to + 1, upper);
}

static void write_tag(struct fathom_trace_writer *w, unsigned kind, uint64_t upper)
{
	uint8_t bytes[1 + FATHOM_LEB_SIZE];

	fathom_writer_bytes(w, bytes, put_tag(bytes, kind, upper));
}

static void begin_file(struct fathom_trace_writer *w)
{
	struct file_writer *f = calloc(1, sizeof *f);
	struct timespec now = { .tv_sec = 0 };

	w->state = f;
	w->no_memory |= !f;
	if (!f)
		return;
	f->current = SIZE_MAX;
	clock_gettime(CLOCK_REALTIME, &now);
	fathom_writer_bytes(w, FATHOM_TRACE_FILE_MAGIC, sizeof FATHOM_TRACE_FILE_MAGIC - 1);
	write_tag(w, FATHOM_ITEM_DEFINE, FATHOM_DEFINE_BEGIN);
	write_number(w, FATHOM_TRACE_FILE_VERSION);
	write_number(w, (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
}

/* Returns the number of module @path, which it defines if it is new. */
static size_t module_of(struct fathom_trace_writer *w, const char *path)
{
	struct file_writer *f = w->state;
	char *copy;

	for (size_t i = f->modules.n; i--;)
		if (!strcmp(f->modules.items[i], path))
			return i;
	copy = strdup(path);
	if (!copy || !fathom_array_push(&f->modules, copy)) {
		free(copy);
		w->no_memory = true;
		return 0;
	}
	write_tag(w, FATHOM_ITEM_DEFINE, FATHOM_DEFINE_MODULE);
	write_text(w, path);
	return f->modules.n - 1;
}

/* Returns where the number in the file of @number is kept, + 1; 0: none. NULL without memory. */
static uint32_t *number_at(struct fathom_trace_writer *w, struct fathom_u32_array *numbers,
			   uint32_t number)
{
	while (numbers->n <= number)
		if (!fathom_array_push(numbers, 0)) {
			w->no_memory = true;
			return NULL;
		}
	return &numbers->items[number];
}

/* Returns the number of @fn, which it defines if it is new. */
static uint32_t function_of(struct fathom_trace_writer *w, const struct fathom_trace_function *fn)
{
	struct file_writer *f = w->state;
	uint32_t *number = number_at(w, &f->functions, fn->number);
	size_t module;

	if (!number || *number)
		return number ? *number - 1 : 0;
	module = module_of(w, fn->module);
	write_tag(w, FATHOM_ITEM_DEFINE, FATHOM_DEFINE_FUNCTION);
	write_number(w, module);
	write_text(w, fn->name);
	write_text(w, fn->linkage_name);
	write_number(w, fn->address);
	write_number(w, fn->module_address);
	*number = ++f->n_functions;
	return f->n_functions - 1;
}

/* Writes function @frame of an answer. */
static void write_inlined(struct fathom_trace_writer *w, const struct fathom_frame *frame)
{
	write_text(w, frame->function);
	write_text(w, frame->linkage_name);
	write_text(w, frame->file);
	write_number(w, frame->line);
	write_number(w, frame->column);
	write_number(w, frame->discriminator);
	write_number(w, frame->start);
}

/* Returns the number of @frame, which it defines if it is new. */
static uint32_t frame_of(struct fathom_trace_writer *w, const struct fathom_trace_frame *frame)
{
	struct file_writer *f = w->state;
	const struct fathom_answer *a = frame->frame.answer;
	uint32_t *number = number_at(w, &f->frames, frame->number);
	size_t module;
	uint64_t n = 0;

	if (!number || *number)
		return number ? *number - 1 : 0;
	module = a->module ? module_of(w, a->module->path) + 1 : 0;
	write_tag(w, FATHOM_ITEM_DEFINE, FATHOM_DEFINE_FRAME);
	write_number(w, a->pc.address);
	write_number(w, a->pc.kind);
	write_number(w, module);
	write_bytes(w, a->module ? a->module->build_id : NULL,
		    a->module ? a->module->build_id_size : 0);
	write_number(w, a->module_address + 1);
	write_number(w, frame->file_offset + 1);
	write_text(w, a->symbol);
	write_text(w, a->linkage_name);
	write_number(w, a->offset);
	write_number(w, a->size);
	write_number(w, a->source);
	write_number(w, a->reason);
	for (const struct fathom_frame *i = a->frame; i && n < FATHOM_FILE_INLINED; i = i->outer)
		n++;
	write_number(w, n);
	for (const struct fathom_frame *i = a->frame; n; i = i->outer, n--)
		write_inlined(w, i);
	*number = ++f->n_frames;
	return f->n_frames - 1;
}

/* Writes the stack of the event that follows. */
static void write_stack(struct fathom_trace_writer *w, const struct fathom_trace_stack *s)
{
	const size_t n =
		s->n_frames < FATHOM_SYSCALLS_FRAMES ? s->n_frames : FATHOM_SYSCALLS_FRAMES;

	for (size_t i = 0; i < n; i++)
		(void)frame_of(w, &s->frames[i]);
	write_tag(w, FATHOM_ITEM_DEFINE, FATHOM_DEFINE_FRAMES);
	write_number(w, s->stop);
	write_number(w, n);
	for (size_t i = 0; i < n && !w->no_memory; i++) {
		write_number(w, frame_of(w, &s->frames[i]));
		write_number(w, s->frames[i].frame.sp + 1);
		write_number(w, s->frames[i].frame.trust | (s->frames[i].frame.is_signal_return
								    ? FATHOM_FILE_SIGNAL_RETURN
								    : 0));
	}
}

static bool is_of(const struct written_thread *t, const struct fathom_trace_event *e,
		  const char *name)
{
	return t->tid == e->tid && t->pid == e->pid && !strncmp(t->name, name, sizeof t->name - 1);
}

/* Returns the thread of @e, which it defines if it is new, or has another name. */
static size_t find_thread(struct fathom_trace_writer *w, const struct fathom_trace_event *e)
{
	struct file_writer *f = w->state;
	struct written_thread t = { .pid = e->pid, .tid = e->tid };
	const char *name = e->thread ? e->thread : "";
	uint32_t *lately = &f->lately[(uint32_t)e->tid % LATELY];

	if (*lately < f->threads.n && is_of(&f->threads.items[*lately], e, name))
		return *lately;
	for (size_t i = f->threads.n; i--;) {
		*lately = (uint32_t)i;
		if (is_of(&f->threads.items[i], e, name))
			return i;
	}
	*lately = (uint32_t)f->threads.n;
	memcpy(t.name, name, strnlen(name, sizeof t.name - 1));
	if (!fathom_array_push(&f->threads, t)) {
		w->no_memory = true;
		return 0;
	}
	write_tag(w, FATHOM_ITEM_DEFINE, FATHOM_DEFINE_THREAD);
	write_number(w, fathom_zigzag((uint64_t)(int64_t)e->pid));
	write_number(w, fathom_zigzag((uint64_t)(int64_t)e->tid));
	write_text(w, t.name);
	return f->threads.n - 1;
}

/* Returns what is known of the thread of @e, whose items follow. NULL without memory. */
static struct fathom_file_thread *thread_of(struct fathom_trace_writer *w,
					    const struct fathom_trace_event *e)
{
	struct file_writer *f = w->state;
	const size_t i = w->is_same_thread ? f->current : find_thread(w, e);
	struct fathom_file_thread *t;

	if (w->no_memory)
		return NULL;
	if (i != f->current)
		write_tag(w, FATHOM_ITEM_THREAD, i);
	f->current = i;
	t = &f->threads.items[i].known;
	if (t->stack_number != e->stack_number)
		write_tag(w, FATHOM_ITEM_STACK, e->stack_number);
	t->stack_number = e->stack_number;
	return t;
}

/* Puts the difference from the last stack. */
static size_t put_stack(uint8_t *to, struct fathom_file_thread *t, uint64_t stack)
{
	const uint64_t d = stack - t->stack;
	const uint64_t words = (uint64_t)((int64_t)d / 8);

	t->stack = stack;
	return fathom_leb_put(to, d % 8 ? fathom_zigzag(d) << 1 | 1 : fathom_zigzag(words) << 1);
}

/* Returns whether @e is the return of the call that is noted at its depth. */
static bool is_expected(const struct fathom_file_thread *t, const struct fathom_trace_event *e,
			uint32_t function)
{
	const struct fathom_file_call *call;

	if (e->type != FATHOM_TRACE_RETURN || e->depth >= t->calls.n)
		return false;
	call = &t->calls.items[e->depth];
	return call->function == function && call->stack == e->stack &&
	       e->ns - call->ns == e->duration_ns;
}

/* Puts the tag of @e, whose kind is @kind, and its time. */
static size_t put_head(uint8_t *to, struct file_writer *f, struct fathom_file_thread *t,
		       unsigned kind, const struct fathom_trace_event *e)
{
	const uint64_t deeper = (uint64_t)((int64_t)e->depth - (int64_t)t->depth);
	size_t n = put_tag(to, kind, fathom_zigzag(deeper));

	n += fathom_leb_put(to + n, fathom_zigzag(e->ns - f->ns));
	f->ns = e->ns;
	t->depth = e->depth;
	return n;
}

/* Writes a call or a return. */
static void write_call(struct fathom_trace_writer *w, struct fathom_file_thread *t,
		       const struct fathom_trace_event *e, uint32_t function)
{
	struct file_writer *f = w->state;
	const bool is_return = e->type == FATHOM_TRACE_RETURN;
	uint8_t bytes[ITEM_SIZE];
	size_t n;

	if (is_expected(t, e, function)) {
		n = put_head(bytes, f, t, FATHOM_ITEM_RETURNS, e);
		t->stack = e->stack;
		fathom_writer_bytes(w, bytes, n);
		return;
	}
	n = put_head(bytes, f, t,
		     is_return      ? FATHOM_ITEM_RETURN
		     : e->count > 1 ? FATHOM_ITEM_CALLS
				    : FATHOM_ITEM_CALL,
		     e);
	n += fathom_leb_put(bytes + n, function);
	n += put_stack(bytes + n, t, e->stack);
	if (is_return)
		n += fathom_leb_put(bytes + n, e->duration_ns);
	else if (e->count > 1)
		n += fathom_leb_put(bytes + n, e->count);
	fathom_writer_bytes(w, bytes, n);
	if (!is_return && !fathom_file_call(t, e, function))
		w->no_memory = true;
}

/* Writes what all events begin with that are neither calls nor returns; @count: or the duration. */
static void write_other_head(struct fathom_trace_writer *w, struct fathom_file_thread *t,
			     const struct fathom_trace_event *e, uint32_t function, uint64_t count)
{
	uint8_t bytes[ITEM_SIZE];
	size_t n = put_head(bytes, w->state, t, FATHOM_ITEM_OTHER, e);

	n += put_stack(bytes + n, t, e->stack);
	n += fathom_leb_put(bytes + n, e->type);
	n += fathom_leb_put(bytes + n, count);
	n += fathom_leb_put(bytes + n, e->function ? (uint64_t)function + 1 : 0);
	fathom_writer_bytes(w, bytes, n);
}

static void write_other(struct fathom_trace_writer *w, struct fathom_file_thread *t,
			const struct fathom_trace_event *e, uint32_t function)
{
	write_other_head(w, t, e, function, e->count);
	write_text(w, e->text);
}

static void write_system_call(struct fathom_trace_writer *w, struct fathom_file_thread *t,
			      const struct fathom_trace_event *e, uint32_t function)
{
	write_other_head(w, t, e, function, e->duration_ns);
	write_bytes(w, e->syscall->record, e->syscall->record_size);
	write_number(w, e->syscall->method);
	write_number(w, e->syscall->pc);
}

/* Writes what is the parent of @e, if it is not what is usual. */
static void write_parent(struct fathom_trace_writer *w, const struct fathom_trace_event *e)
{
	if (e->parent == FATHOM_TRACE_PARENT_UNKNOWN && e->depth)
		write_tag(w, FATHOM_ITEM_DEFINE, FATHOM_DEFINE_UNKNOWN);
	if (e->parent == FATHOM_TRACE_PARENT_GAP) {
		write_tag(w, FATHOM_ITEM_DEFINE, FATHOM_DEFINE_GAP);
		write_number(w, e->depth - e->parent_depth - 1);
	}
}

static void write_event(struct fathom_trace_writer *w, const struct fathom_trace_event *e)
{
	const uint32_t function = e->function ? function_of(w, e->function) : 0;
	struct fathom_file_thread *t = w->no_memory ? NULL : thread_of(w, e);

	if (!t)
		return;
	if (e->call_stack)
		write_stack(w, e->call_stack);
	if (e->syscall || e->type == FATHOM_TRACE_CALL)
		write_parent(w, e);
	if (e->syscall)
		write_system_call(w, t, e, function);
	else if (e->function && (e->type == FATHOM_TRACE_CALL || e->type == FATHOM_TRACE_RETURN))
		write_call(w, t, e, function);
	else
		write_other(w, t, e, function);
}

static void end(struct fathom_trace_writer *w, const struct fathom_trace_result *result)
{
	const size_t n = result ? sizeof result->n_refused / sizeof *result->n_refused : 0;

	if (!result)
		return;
	write_tag(w, FATHOM_ITEM_DEFINE, FATHOM_DEFINE_END);
	write_number(w, fathom_zigzag((uint64_t)(int64_t)result->status));
	write_number(w, result->n_sites);
	write_number(w, result->lost);
	write_number(w, n);
	for (size_t i = 0; i < n; i++)
		write_number(w, result->n_refused[i]);
}

static void free_state(struct fathom_trace_writer *w)
{
	struct file_writer *f = w->state;

	if (!f)
		return;
	for (size_t i = 0; i < f->threads.n; i++)
		fathom_array_free(&f->threads.items[i].known.calls);
	for (size_t i = 0; i < f->modules.n; i++)
		free(f->modules.items[i]);
	fathom_array_free(&f->threads);
	fathom_array_free(&f->modules);
	fathom_array_free(&f->functions);
	fathom_array_free(&f->frames);
	free(f);
}

const struct fathom_writer_format fathom_writer_file = { begin_file, write_event, end, free_state,
							 true };
