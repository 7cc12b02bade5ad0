/* SPDX-License-Identifier: MIT */
/*
 * Ruby 2.7 and 3.0 to 3.4: the frames of each thread, which are an array on Ruby's own stack.
 *
 *	VM -> ractors -> threads -> the execution context of the fiber that runs: frames, tags
 *
 * A call of Ruby code by Ruby code stays in one loop of C code. Where a loop begins, its frame
 * says so (VM_FRAME_FLAG_FINISH); the loop itself has a tag on the C stack (ruby_tags.c), which is
 * the anchor of its frames. A method of C has a frame without code: it is executed between loops.
 */
#include "host/interpreters/ruby.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

#include "safe/base/sort.h"

/* The most ractors, and threads of them all; frames, and blocks around all of them. */
enum { MAX_RACTORS = 4096, MAX_THREADS = 65536, MAX_FRAMES = 1 << 17, MAX_BLOCKS = 1 << 18 };

/* Of rb_execution_context_t; the most words of Ruby's stack. */
enum { EC_STACK = 0, EC_SIZE = 8, EC_FRAME = 16, EC_TAG = 24 };
#define MOST_WORDS ((uint64_t)1 << 28)

/* Of rb_control_frame_t; bytes before what its ep points at: a method, the ep around it. */
enum { FRAME_PC = 0, FRAME_CODE = 16, FRAME_EP = 32, EP_WORDS = 16 };

/* Flags of a frame, which are what its ep points at. */
enum {
	FLAG_NUMBER = 1, /* all have it */
	FLAG_LOCAL = 2,
	FLAG_FINISH = 0x20,
	FLAG_MAGIC = 0x7fff0001,
	MAGIC_C = 0x55550001,
};

/* Of a special variable: the method or code in its place. */
enum { SVAR_METHOD = 8 };

/* Reads ruby_api_version. */
static bool read_version(const struct fathom_runtime_found *f, uint32_t *ret_major,
			 uint32_t *ret_minor)
{
	uint64_t avma;
	uint8_t bytes[8];

	if (!fathom_runtime_symbol(f, "ruby_api_version", &avma))
		return false;
	if (!fathom_runtime_constant(f, avma, bytes, sizeof bytes))
		return false;
	*ret_major = load_u32(bytes, f->swap);
	*ret_minor = load_u32(bytes + 4, f->swap);
	return true;
}

static fathom_err detect(struct fathom_runtime_found *f, bool *ret)
{
	uint32_t major = 0;
	uint32_t minor = 0;
	struct fathom_ruby *r;
	uint64_t class_at;

	if (!fathom_runtime_symbol(f, "rb_cThread", &class_at) || !read_version(f, &major, &minor))
		return FATHOM_OK;
	r = calloc(1, sizeof *r);
	if (!r)
		return FATHOM_E_MEMORY;
	r->thread_class = class_at;
	f->own = r;
	*ret = true;
	(void)snprintf(f->title, sizeof f->title, "ruby %u.%u", major, minor);
	if (f->module->main->image.machine != EM_X86_64)
		f->why = "where its loops are is known on x86-64 only";
	else
		fathom_ruby_find_offsets(f, major, minor);
	return FATHOM_OK;
}

static void forget(struct fathom_runtime_found *f)
{
	struct fathom_ruby *r = f->own;

	fathom_array_free(&r->threads);
}

/* Reads where the C stack of what @thread executes begins. */
static bool read_start(const struct fathom_runtime_found *f, uint64_t thread, uint64_t *ret)
{
	const struct fathom_ruby *r = f->own;
	uint64_t ec;

	return fathom_ruby_word(f, thread + r->offsets->thread_ec, &ec) && ec &&
	       fathom_ruby_word(f, ec + r->offsets->ec_start, ret);
}

/* Lists the threads of the list whose head is at @head; false without memory. */
static bool list_threads_of(struct fathom_runtime_found *f, uint64_t head)
{
	struct fathom_ruby *r = f->own;
	uint64_t thread = head;
	uint64_t start;

	/* Their nodes are their first members. */
	for (int i = 0; i < MAX_THREADS && r->threads.n < MAX_THREADS &&
			fathom_ruby_word(f, thread, &thread) && thread != head && thread;
	     i++)
		if (read_start(f, thread, &start) &&
		    !fathom_array_push(&r->threads, ((struct fathom_keyed){ start, thread })))
			return false;
	return true;
}

/* Lists all threads anew, by where their C stacks begin. */
static fathom_err list_threads(struct fathom_runtime_found *f)
{
	struct fathom_ruby *r = f->own;
	const struct fathom_ruby_offsets *o = r->offsets;
	const uint64_t head = r->vm + o->list;
	uint64_t node = head;
	struct fathom_keyed *sorted;

	r->threads.n = 0;
	if (!o->ractor_node) {
		if (!list_threads_of(f, head))
			return FATHOM_E_MEMORY;
	} else {
		for (int i = 0;
		     i < MAX_RACTORS && fathom_ruby_word(f, node, &node) && node != head && node;
		     i++)
			if (!list_threads_of(f, node - o->ractor_node + o->ractor_list))
				return FATHOM_E_MEMORY;
	}
	if (r->threads.n < 2)
		return FATHOM_OK;
	sorted = malloc(r->threads.n * sizeof *sorted);
	if (!sorted)
		return FATHOM_E_MEMORY;
	fathom_sort_keyed(r->threads.items, sorted, r->threads.n);
	free(sorted);
	return FATHOM_OK;
}

/* Reads the native ID of @thread; 0: it has none. */
static uint64_t read_id(const struct fathom_runtime_found *f, uint64_t thread)
{
	const struct fathom_ruby *r = f->own;
	const struct fathom_ruby_offsets *o = r->offsets;
	uint64_t id = 0;

	if (!o->native_id ||
	    (o->thread_own && !fathom_ruby_word(f, thread + o->thread_own, &thread)) ||
	    !fathom_ruby_number(f, thread + o->native_id, 4, &id))
		return 0;
	return id;
}

/*
 * Finds the listed thread whose C stack is @stack: it begins above the stack pointer, in the same
 * mapping. A handler may run on another stack: then by the native ID, if one was right before.
 */
static uint64_t find_thread(struct fathom_runtime_found *f, int32_t tid,
			    struct fathom_script_stack stack)
{
	struct fathom_ruby *r = f->own;
	size_t i = FATHOM_BISECT(r->threads.n, k, r->threads.items[k].key < stack.sp);
	uint64_t start;

	for (; i < r->threads.n && r->threads.items[i].key <= stack.end; i++) {
		const struct fathom_keyed *k = &r->threads.items[i];

		/* It may have ended since it was listed, or execute another fiber. */
		if (!fathom_ruby_is_thread(f, k->value) || !read_start(f, k->value, &start) ||
		    start != k->key)
			continue;
		r->has_ids |= read_id(f, k->value) == (uint64_t)tid;
		return k->value;
	}
	for (i = 0; i < r->threads.n && r->has_ids; i++)
		if (fathom_ruby_is_thread(f, r->threads.items[i].value) &&
		    read_id(f, r->threads.items[i].value) == (uint64_t)tid)
			return r->threads.items[i].value;
	return 0;
}

/* The reading of one thread's frames. */
struct chain {
	struct fathom_runtime_found *f;
	const struct fathom_ruby_offsets *o;
	struct fathom_script_frames *to;
	uint64_t frame;
	uint64_t end;
	uint64_t tag;
	uint64_t start;   /* of the C stack */
	uint64_t loops;   /* that have been passed: the number of the one being read */
	uint32_t blocks;  /* that may still be looked around */
	bool is_left_out; /* the next frame of code */
	bool is_compiled; /* a frame is of YJIT's code */
	struct fathom_runtime_page page;  /* of frames */
	struct fathom_runtime_page words; /* of what their ep point at */
};

/* Reads where the frames of @thread are; false if that cannot be. */
static bool read_head(struct chain *c, uint64_t thread)
{
	const struct fathom_ruby_offsets *o = c->o;
	uint64_t ec;
	uint64_t stack;
	uint64_t size;
	uint64_t of;

	if (!fathom_ruby_word(c->f, thread + o->thread_ec, &ec) ||
	    !fathom_ruby_word(c->f, ec + EC_STACK, &stack) ||
	    !fathom_ruby_word(c->f, ec + EC_SIZE, &size) ||
	    !fathom_ruby_word(c->f, ec + EC_FRAME, &c->frame) ||
	    !fathom_ruby_word(c->f, ec + EC_TAG, &c->tag) ||
	    !fathom_ruby_word(c->f, ec + o->ec_thread, &of) || of != thread ||
	    !fathom_ruby_word(c->f, ec + o->ec_start, &c->start) || size > MOST_WORDS)
		return false;
	/* The outermost one is of nothing. */
	c->end = stack + 8 * size - o->frame_size;
	return stack % 8 == 0 && c->end > stack && c->frame >= stack && c->frame <= c->end &&
	       (c->end - c->frame) % o->frame_size == 0;
}

/* Finds the method of the frame whose variables are at @ep: of a block, that around it. 0: none. */
static uint64_t find_method(struct chain *c, uint64_t ep)
{
	for (; c->blocks; c->blocks--) {
		const uint8_t *bytes =
			fathom_runtime_part(c->f, &c->words, ep - EP_WORDS, EP_WORDS + 8);
		uint64_t method;
		uint64_t outer;
		bool is_local;

		if (!bytes)
			return 0;
		method = load_u64(bytes, c->f->swap);
		outer = load_u64(bytes + 8, c->f->swap) & ~UINT64_C(3);
		is_local = load_u64(bytes + 16, c->f->swap) & FLAG_LOCAL;
		if (is_local && fathom_ruby_internal(c->f, method) == RUBY_SVAR &&
		    !fathom_ruby_word(c->f, method + SVAR_METHOD, &method))
			return 0;
		if (fathom_ruby_internal(c->f, method) == RUBY_METHOD)
			return method;
		if (is_local)
			return 0;
		ep = outer;
	}
	return 0;
}

/* Adds the frame of @code, or of a method of C; false without memory. */
static bool add_frame(struct chain *c, uint64_t code, uint64_t pc, uint64_t ep)
{
	struct fathom_script_frame frame = { .code = code, .pc = pc, .anchor = c->loops };
	uint64_t body;
	uint64_t type;
	const bool is_left_out = c->is_left_out;

	if (!code || c->o->class_path)
		frame.method = find_method(c, ep);
	if (!code)
		frame.code = frame.pc = frame.method;
	/* Since 3.4 a method has one frame with its rescue or ensure. */
	c->is_left_out = code && c->o->class_path &&
			 fathom_ruby_word(c->f, code + CODE_BODY, &body) &&
			 fathom_ruby_number(c->f, body + BODY_TYPE, 4, &type) &&
			 (type == CODE_RESCUE || type == CODE_ENSURE);
	if (!frame.code || (code && is_left_out))
		return true;
	frame.mark = fathom_ruby_mark(c->f, frame.code) ^ frame.method;
	return fathom_array_push(c->to, frame);
}

/*
 * Reads one frame, and goes on to the one before; false at the end. Frames without code and method
 * are no frames to Ruby itself, either: those that are being made, and of what C code has begun.
 */
static bool read_frame(struct chain *c, fathom_err *ret_err)
{
	const uint8_t *bytes = fathom_runtime_part(c->f, &c->page, c->frame, c->o->frame_size);
	uint64_t code;
	uint64_t pc;
	uint64_t ep;
	uint64_t flags;

	if (!bytes)
		return false;
	code = load_u64(bytes + FRAME_CODE, c->f->swap);
	pc = load_u64(bytes + FRAME_PC, c->f->swap);
	ep = load_u64(bytes + FRAME_EP, c->f->swap);
	c->is_compiled |= c->o->frame_return && load_u64(bytes + c->o->frame_return, c->f->swap);
	bytes = fathom_runtime_part(c->f, &c->words, ep, 8);
	if (!bytes)
		return false;
	flags = load_u64(bytes, c->f->swap);
	if (!(flags & FLAG_NUMBER))
		return false;
	if (code ? pc != 0 : (flags & FLAG_MAGIC) == MAGIC_C)
		if (!add_frame(c, code, pc, ep)) {
			*ret_err = FATHOM_E_MEMORY;
			return false;
		}
	c->loops += code && pc && flags & FLAG_FINISH;
	c->frame += c->o->frame_size;
	return true;
}

/*
 * Gives the frames from @first on their anchors, in place of the numbers of their loops. Loops and
 * their tags are counted from the outermost: a loop that has just begun has no tag yet; its frames
 * are in the innermost native frame, at @sp. Frames that no loop executes, of methods of C which C
 * code has called, are somewhere inside of the outermost tag.
 */
static void set_anchors(struct chain *c, size_t first, const struct fathom_u64_array *tags,
			uint64_t sp)
{
	const uint64_t n = tags->n ? tags->n - 1 : 0;
	const uint64_t missing = c->loops > n ? c->loops - n : 0;
	const uint64_t more = n > c->loops ? n - c->loops : 0;
	const bool is_certain = missing <= 1 && more <= 1;

	for (size_t i = first; i < c->to->n; i++) {
		struct fathom_script_frame *f = &c->to->items[i];
		const uint64_t loop = f->anchor;

		f->anchor = 0;
		if (!is_certain)
			continue;
		if (loop >= c->loops)
			f->anchor = n && tags->items[n] > tags->items[n - 1] ? tags->items[n] : 0;
		else
			f->anchor = loop < missing ? sp : tags->items[loop - missing + more];
	}
}

/* Appends the frames of @thread. */
static fathom_err read_chain(struct fathom_runtime_found *f, uint64_t thread, uint64_t sp,
			     struct fathom_script_frames *ret)
{
	const struct fathom_ruby *r = f->own;
	struct chain c = { .f = f, .o = r->offsets, .to = ret, .blocks = MAX_BLOCKS };
	struct fathom_u64_array tags = { 0 };
	const size_t first = ret->n;
	fathom_err err = FATHOM_OK;

	if (!read_head(&c, thread))
		return FATHOM_OK;
	for (int i = 0; i < MAX_FRAMES && c.frame < c.end; i++)
		if (ret->n - first >= FATHOM_SCRIPT_MAX_FRAMES || !read_frame(&c, &err))
			break;
	if (c.is_compiled) {
		f->why = "YJIT has compiled code of it, whose frames are not known";
		ret->n = first;
	}
	if (!err && ret->n > first)
		err = fathom_ruby_read_tags(f, thread, c.tag, c.start, ret->items + first,
					    ret->n - first, &tags);
	if (!err)
		set_anchors(&c, first, &tags, sp);
	fathom_array_free(&tags);
	return err;
}

static fathom_err read(struct fathom_runtime_found *f, int32_t tid,
		       struct fathom_script_stack stack, struct fathom_script_frames *ret)
{
	uint64_t thread;

	fathom_ruby_refresh(f);
	thread = find_thread(f, tid, stack);
	if (!thread) {
		FATHOM_TRY(list_threads(f));
		thread = find_thread(f, tid, stack);
	}
	return thread ? read_chain(f, thread, stack.sp, ret) : FATHOM_OK;
}

/* Waiting for the global VM lock is not told apart from waiting for others: lock is NULL. */
const struct fathom_interpreter_provider fathom_ruby = {
	.detect = detect,
	.forget = forget,
	.read = read,
	.name = fathom_ruby_name,
};
