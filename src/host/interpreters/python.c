/* SPDX-License-Identifier: MIT */
/*
 * CPython 3.11 to 3.14: the chain of struct _PyInterpreterFrame of each thread.
 *
 *	_PyRuntime -> interpreters -> threads, each with its native ID -> frames, innermost first
 *
 * Since 3.11 a call of Python code by Python code stays in one loop of C code, so one native frame
 * has many of these. Where a loop begins, 3.11 marks the frame (is_entry), and keeps a _PyCFrame
 * for each loop, a variable of it. Later versions put a frame of their own there, which belongs to
 * the C stack: it is a variable of the loop, too. Its address is the anchor of those before it.
 */
#include "host/interpreters/python.h"

#include <stdio.h>
#include <stdlib.h>

#include "safe/base/sort.h"

/* The most interpreters, and threads of them all. */
enum { MAX_INTERPRETERS = 256, MAX_THREADS = 65536 };

/* FRAME_OWNED_BY_CSTACK; since 3.14 FRAME_OWNED_BY_INTERPRETER, and one more is the other. */
#define OWNED_BY_C_STACK 3

/*
 * Bytes of struct _gil_runtime_state before its holder and its state (1: locked), and bytes in
 * which the words are that its condition variables and mutexes wait for
 * (Include/internal/pycore_gil.h).
 */
enum { GIL_HOLDER = 8, GIL_LOCKED = 16, GIL_SIZE = 256 };

/* Reads Py_Version. */
static bool read_version(const struct fathom_runtime_found *f, uint32_t *ret)
{
	uint64_t avma;
	uint8_t bytes[4];

	if (!fathom_runtime_symbol(f, "Py_Version", &avma))
		return false;
	if (!fathom_runtime_constant(f, avma, bytes, sizeof bytes))
		return false;
	*ret = load_u32(bytes, f->swap);
	return true;
}

bool fathom_python_find_types(struct fathom_runtime_found *f)
{
	struct fathom_python *p = f->own;

	if (fathom_runtime_symbol(f, "PyCode_Type", &p->code_type) &&
	    fathom_runtime_symbol(f, "PyUnicode_Type", &p->text_type) &&
	    fathom_runtime_symbol(f, "PyBytes_Type", &p->bytes_type))
		return true;
	f->why = "it lacks PyCode_Type, PyUnicode_Type or PyBytes_Type in .dynsym";
	return false;
}

static fathom_err detect(struct fathom_runtime_found *f, bool *ret)
{
	struct fathom_python *p;
	uint32_t version = 0;
	uint64_t runtime;

	if (!fathom_runtime_symbol(f, "_PyRuntime", &runtime))
		return FATHOM_OK;
	/* Versions before 3.11 do not state it. */
	if (!read_version(f, &version))
		return FATHOM_OK;
	p = calloc(1, sizeof *p);
	if (!p)
		return FATHOM_E_MEMORY;
	p->runtime = runtime;
	f->own = p;
	*ret = true;
	(void)snprintf(f->title, sizeof f->title, "python %u.%u", version >> 24,
		       version >> 16 & 0xff);
	if (fathom_python_find_types(f))
		(void)fathom_python_find_offsets(f, version);
	return FATHOM_OK;
}

void fathom_python_forget(struct fathom_runtime_found *f)
{
	struct fathom_python *p = f->own;

	fathom_array_free(&p->threads);
}

/* Lists the threads of interpreter @interpreter; false without memory. */
static bool list_interpreter(struct fathom_runtime_found *f, uint64_t interpreter)
{
	struct fathom_python *p = f->own;
	const struct fathom_python_offsets *o = p->offsets;
	uint64_t thread;
	uint64_t id;

	if (!fathom_runtime_u64(f, interpreter + o->threads_head, &thread))
		return true;
	while (thread && p->threads.n < MAX_THREADS &&
	       fathom_runtime_u64(f, thread + o->native_id, &id)) {
		if (!fathom_array_push(&p->threads, ((struct fathom_keyed){ id, thread })))
			return false;
		if (!fathom_runtime_u64(f, thread + o->thread_next, &thread))
			break;
	}
	return true;
}

fathom_err fathom_python_list_threads(struct fathom_runtime_found *f)
{
	struct fathom_python *p = f->own;
	uint64_t interpreter;
	struct fathom_keyed *sorted;

	p->threads.n = 0;
	if (!fathom_runtime_u64(f, p->runtime + p->offsets->interpreters_head, &interpreter))
		return FATHOM_OK;
	for (int i = 0; interpreter && i < MAX_INTERPRETERS; i++) {
		if (!list_interpreter(f, interpreter))
			return FATHOM_E_MEMORY;
		if (!fathom_runtime_u64(f, interpreter + p->offsets->interpreter_next,
					&interpreter))
			break;
	}
	if (p->threads.n < 2)
		return FATHOM_OK;
	sorted = malloc(p->threads.n * sizeof *sorted);
	if (!sorted)
		return FATHOM_E_MEMORY;
	fathom_sort_keyed(p->threads.items, sorted, p->threads.n);
	free(sorted);
	return FATHOM_OK;
}

/* Reads where the chain of @thread begins: its innermost frame and its first anchor, or 0. */
static bool read_head(const struct fathom_runtime_found *f, uint64_t thread, uint64_t *ret_frame,
		      uint64_t *ret_cframe)
{
	const struct fathom_python *p = f->own;
	const struct fathom_python_offsets *o = p->offsets;

	*ret_cframe = 0;
	if (!fathom_runtime_u64(f, thread + o->thread_frame, ret_frame))
		return false;
	if (!o->has_cframe)
		return true;
	*ret_cframe = *ret_frame;
	return fathom_runtime_u64(f, *ret_cframe + o->cframe_frame, ret_frame);
}

/* The reading of one chain. */
struct chain {
	struct fathom_runtime_found *f;
	const struct fathom_python_offsets *o;
	struct fathom_script_frames *to;
	uint64_t frame;
	uint64_t cframe; /* 0: there are none */
	size_t first;    /* of @to: the first frame whose anchor is not known yet */
	uint64_t code;   /* of the frame before, and its mark */
	uint64_t mark;
	struct fathom_runtime_page page;
};

/* Gives the frames that have none yet the anchor @anchor. */
static void set_anchor(struct chain *c, uint64_t anchor)
{
	for (; c->first < c->to->n; c->first++)
		c->to->items[c->first].anchor = anchor;
}

/* Passes the _PyCFrame whose frames have been read. */
static bool pass_cframe(struct chain *c)
{
	set_anchor(c, c->cframe);
	return fathom_runtime_u64(c->f, c->cframe + c->o->cframe_previous, &c->cframe);
}

/* Bytes of a frame that are read at once: all its members are among them. */
static size_t frame_size(const struct fathom_python_offsets *o)
{
	const uint16_t ends[] = { o->frame_code, o->frame_previous, o->frame_instruction,
				  o->frame_owner, o->frame_is_entry };
	size_t size = 0;

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		size = ends[i] + 8u > size ? ends[i] + 8u : size;
	return size;
}

/*
 * Reads one frame, and goes on to the one before; false at the end. A frame whose code has not
 * begun is being made: it is left out, as Python itself does.
 */
static bool read_frame(struct chain *c, fathom_err *ret_err)
{
	const struct fathom_python_offsets *o = c->o;
	struct fathom_script_frame frame = { 0 };
	const uint8_t *bytes = fathom_runtime_part(c->f, &c->page, c->frame, frame_size(o));
	uint64_t instruction;
	bool is_entry;

	if (!bytes)
		return false;
	/* Since 3.14 references have marks in their lowest bits. */
	frame.code = load_u64(bytes + o->frame_code, c->f->swap) & ~UINT64_C(3);
	instruction = load_u64(bytes + o->frame_instruction, c->f->swap);
	is_entry = o->frame_is_entry && bytes[o->frame_is_entry];
	if (bytes[o->frame_owner] >= OWNED_BY_C_STACK && !o->frame_is_entry) {
		set_anchor(c, c->frame);
	} else if (instruction >= frame.code + o->code_size) {
		if (frame.code != c->code)
			c->mark = fathom_python_mark(c->f, frame.code);
		c->code = frame.code;
		frame.mark = c->mark;
		frame.pc = instruction;
		if (!fathom_array_push(c->to, frame)) {
			*ret_err = FATHOM_E_MEMORY;
			return false;
		}
	}
	c->frame = load_u64(bytes + o->frame_previous, c->f->swap);
	return !is_entry || pass_cframe(c);
}

/* Appends the chain of @thread. */
static fathom_err read_chain(struct fathom_runtime_found *f, uint64_t thread,
			     struct fathom_script_frames *ret)
{
	const struct fathom_python *p = f->own;
	struct chain c = { .f = f, .o = p->offsets, .to = ret, .first = ret->n };
	const size_t begin = ret->n;
	fathom_err err = FATHOM_OK;

	if (!read_head(f, thread, &c.frame, &c.cframe))
		return FATHOM_OK;
	/* A chain that was damaged may be a circle. */
	for (int i = 0; c.frame && i < 2 * FATHOM_SCRIPT_MAX_FRAMES; i++)
		if (ret->n - begin >= FATHOM_SCRIPT_MAX_FRAMES || !read_frame(&c, &err))
			break;
	return err;
}

/* Returns whether an anchor of the frames from @from on is on the stack @stack. */
static bool is_on_stack(const struct fathom_script_frames *frames, size_t from,
			struct fathom_script_stack stack)
{
	for (size_t i = from; i < frames->n; i++)
		if (frames->items[i].anchor >= stack.sp && frames->items[i].anchor < stack.end)
			return true;
	return false;
}

/* Reads the chain of the thread with native ID @id, if it is that of @stack. */
static fathom_err read_id(struct fathom_runtime_found *f, uint64_t id,
			  struct fathom_script_stack stack, struct fathom_script_frames *ret,
			  bool *ret_is)
{
	struct fathom_python *p = f->own;
	const size_t first = ret->n;
	size_t i = FATHOM_BISECT(p->threads.n, k, p->threads.items[k].key < id);

	*ret_is = false;
	for (; i < p->threads.n && p->threads.items[i].key == id; i++) {
		const uint64_t thread = p->threads.items[i].value;
		uint64_t now;

		/* It may have ended since it was listed. */
		if (!fathom_runtime_u64(f, thread + p->offsets->native_id, &now) || now != id)
			continue;
		ret->n = first;
		FATHOM_TRY(read_chain(f, thread, ret));
		p->has_ids |= is_on_stack(ret, first, stack);
		/* A handler may run on another stack than its script. */
		*ret_is = ret->n == first || p->has_ids;
		if (*ret_is && ret->n > first)
			return FATHOM_OK;
	}
	if (!*ret_is)
		ret->n = first;
	return FATHOM_OK;
}

/* Reads the chain that has an anchor on @stack: in another PID namespace IDs are others. */
static fathom_err read_on_stack(struct fathom_runtime_found *f, struct fathom_script_stack stack,
				struct fathom_script_frames *ret)
{
	const struct fathom_python *p = f->own;
	const size_t first = ret->n;

	for (size_t i = 0; i < p->threads.n; i++) {
		FATHOM_TRY(read_chain(f, p->threads.items[i].value, ret));
		if (is_on_stack(ret, first, stack))
			break;
		ret->n = first;
	}
	return FATHOM_OK;
}

static fathom_err read(struct fathom_runtime_found *f, int32_t tid,
		       struct fathom_script_stack stack, struct fathom_script_frames *ret)
{
	const struct fathom_python *p = f->own;
	bool is = false;

	FATHOM_TRY(read_id(f, (uint64_t)tid, stack, ret, &is));
	if (is)
		return FATHOM_OK;
	FATHOM_TRY(fathom_python_list_threads(f));
	FATHOM_TRY(read_id(f, (uint64_t)tid, stack, ret, &is));
	/* Where IDs are right, a thread that is not listed runs no script. */
	return is || p->has_ids ? FATHOM_OK : read_on_stack(f, stack, ret);
}

bool fathom_python_is_of_gil(const struct fathom_runtime_found *f, uint64_t gil, uint64_t avma,
			     uint64_t *ret_holder)
{
	uint64_t locked;

	*ret_holder = 0;
	if (!gil || avma < gil || avma - gil >= GIL_SIZE)
		return false;
	if (!fathom_runtime_u64(f, gil + GIL_HOLDER, ret_holder) ||
	    !fathom_runtime_number(f, gil + GIL_LOCKED, 4, &locked) || locked != 1)
		*ret_holder = 0;
	return true;
}

/* Returns whether @avma is of the GIL at @gil; if so, finds who has it. */
static bool is_of_gil(const struct fathom_runtime_found *f, uint64_t gil, uint64_t avma,
		      int32_t *ret_owner)
{
	const struct fathom_python *p = f->own;
	uint64_t holder;
	uint64_t id;

	if (!fathom_python_is_of_gil(f, gil, avma, &holder))
		return false;
	*ret_owner = 0;
	if (holder && fathom_runtime_u64(f, holder + p->offsets->native_id, &id) && id <= INT32_MAX)
		*ret_owner = (int32_t)id;
	return true;
}

static bool lock(struct fathom_runtime_found *f, uint64_t avma, const char **ret_name,
		 int32_t *ret_owner)
{
	const struct fathom_python *p = f->own;
	const struct fathom_python_offsets *o = p->offsets;
	uint64_t interpreter = 0;
	uint64_t gil;

	*ret_name = "GIL";
	if (o->owns_gil)
		return is_of_gil(f, p->runtime + o->gil, avma, ret_owner);
	if (!fathom_runtime_u64(f, p->runtime + o->interpreters_head, &interpreter))
		return false;
	for (int i = 0; interpreter && i < MAX_INTERPRETERS; i++) {
		if (fathom_runtime_u64(f, interpreter + o->gil, &gil) &&
		    is_of_gil(f, gil, avma, ret_owner))
			return true;
		if (!fathom_runtime_u64(f, interpreter + o->interpreter_next, &interpreter))
			break;
	}
	return false;
}

const struct fathom_interpreter_provider fathom_python = {
	.detect = detect,
	.forget = fathom_python_forget,
	.read = read,
	.name = fathom_python_name,
	.lock = lock,
};
