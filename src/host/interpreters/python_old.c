/* SPDX-License-Identifier: MIT */
/*
 * CPython 3.8 to 3.10: the chain of PyFrameObject of each thread.
 *
 *	_PyRuntime -> interpreters -> threads -> frames, innermost first
 *
 * Each frame is executed by a call of _PyEval_EvalFrameDefault() of its own, which has the frame's
 * address in a register or on its stack: there it is looked for, and so is the thread that has the
 * chain, as these versions know no thread IDs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/interpreters/loop_code.h"
#include "host/interpreters/python.h"
#include "host/interpreters/stack_words.h"

/* Bytes of glibc's struct pthread before the thread ID. */
enum { PTHREAD_TID = 720 };

/* Bytes of PyBytesObject before its own; of an instruction's number in 3.10. */
enum { BYTES_SIZE = 32, INSTRUCTION_SIZE = 2 };

/* Offsets, by offsetof() in the headers of each version. */
#define COMMON                                                                                 \
	.interpreters_head = 32, .interpreter_next = 0, .threads_head = 8, .thread_next = 8,   \
	.native_id = 176, .thread_frame = 24, .frame_previous = 24, .frame_code = 32,          \
	.code_file = 104, .code_qualname = 112, .code_first_line = 40, .code_line_table = 120, \
	.code_size = 48, .text_size = 48, .wide_size = 72

static const struct old_version {
	uint32_t runtime_size; /* of _PyRuntime, which tells versions apart */
	struct fathom_python_offsets offsets;
} versions[] = {
	{ 1464, { .minor = 8, .frame_instruction = 104, .gil = 1152, COMMON } },
	{ 656, { .minor = 9, .frame_instruction = 104, .gil = 352, COMMON } },
	{ 672, { .minor = 10, .frame_instruction = 96, .gil = 352, COMMON } },
};

/* One CPython; what it has in common with later ones comes first. */
struct old {
	struct fathom_python python;
	struct fathom_script_loop loop; /* of _PyEval_EvalFrameDefault() */
};

/* Returns whether the types of the CPython agree with @o. */
static bool agrees(const struct fathom_runtime_found *f, const struct fathom_python_offsets *o)
{
	const struct fathom_python *p = f->own;
	const struct fathom_python_member code[] = { { "co_filename", o->code_file },
						     { "co_name", o->code_qualname },
						     { "co_firstlineno", o->code_first_line },
						     { "co_lnotab", o->code_line_table },
						     { "co_code", o->code_size } };
	const struct fathom_python_member frame[] = { { "f_back", o->frame_previous },
						      { "f_code", o->frame_code },
						      { "f_lasti", o->frame_instruction } };
	uint64_t frame_type;

	return fathom_python_type_agrees(f, p->code_type, 0, code, sizeof code / sizeof *code, 3) &&
	       fathom_runtime_symbol(f, "PyFrame_Type", &frame_type) &&
	       fathom_python_type_agrees(f, frame_type, 0, frame, sizeof frame / sizeof *frame, 2);
}

struct fathom_python *fathom_python_old_create(uint64_t runtime, uint16_t minor)
{
	struct old *old = calloc(1, sizeof *old);

	if (!old)
		return NULL;
	old->python.runtime = runtime;
	for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
		if (versions[i].offsets.minor == minor)
			old->python.offsets = &versions[i].offsets;
	return &old->python;
}

/* Returns which version has a _PyRuntime of @size bytes; 0: none. */
static uint16_t minor_of(uint64_t size)
{
	for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
		if (versions[i].runtime_size == size)
			return versions[i].offsets.minor;
	return 0;
}

/* Finds the code of the loop, and whether the version is what its size says; else f->why. */
static void check(struct fathom_runtime_found *f)
{
	struct old *old = f->own;
	struct fathom_python *p = &old->python;

	if (!p->offsets) {
		f->why = "which CPython before 3.11 it is cannot be told";
	} else if (!fathom_loop_code_named(f, "_PyEval_EvalFrameDefault", &old->loop)) {
		f->why = "it lacks _PyEval_EvalFrameDefault in .dynsym";
	} else if (fathom_python_find_types(f)) {
		if (!agrees(f, p->offsets))
			f->why = "its code objects have another layout than those of this version";
	}
}

static fathom_err detect(struct fathom_runtime_found *f, bool *ret)
{
	uint64_t runtime;
	uint64_t size;
	uint16_t minor;

	if (!fathom_runtime_range(f, "_PyRuntime", &runtime, &size) || !size)
		return FATHOM_OK;
	minor = minor_of(size);
	f->own = fathom_python_old_create(runtime, minor);
	if (!f->own)
		return FATHOM_E_MEMORY;
	*ret = true;
	if (minor)
		(void)snprintf(f->title, sizeof f->title, "python 3.%d", minor);
	else
		(void)snprintf(f->title, sizeof f->title, "python");
	check(f);
	return FATHOM_OK;
}

/* Returns the avma of the instruction of the frame at @avma, whose code is at @code. */
static uint64_t instruction_of(const struct fathom_runtime_found *f, uint64_t avma, uint64_t code)
{
	const struct fathom_python_offsets *o = ((const struct fathom_python *)f->own)->offsets;
	uint64_t instructions = 0;
	uint64_t last = 0;

	(void)fathom_runtime_u64(f, code + o->code_size, &instructions);
	(void)fathom_runtime_number(f, avma + o->frame_instruction, 4, &last);
	/* Before the first one it is -1. */
	last = last > INT32_MAX ? 0 : last;
	return instructions + BYTES_SIZE + (o->minor == 10 ? INSTRUCTION_SIZE * last : last);
}

/* Appends the chain from @frame on; @by_avma finds the number of each frame by its address. */
static fathom_err read_chain(const struct fathom_runtime_found *f, uint64_t frame,
			     struct fathom_key_map *by_avma, struct fathom_script_frames *ret)
{
	const struct old *old = f->own;
	const struct fathom_python_offsets *o = old->python.offsets;
	const size_t first = ret->n;

	while (frame && ret->n - first < FATHOM_SCRIPT_MAX_FRAMES) {
		struct fathom_script_frame script = { .loop = old->loop };
		uint32_t *number = fathom_key_map_at(by_avma, frame);

		if (!number)
			return FATHOM_E_MEMORY;
		/* A chain that was damaged may be a circle. */
		if (*number != FATHOM_KEY_NEW ||
		    !fathom_runtime_u64(f, frame + o->frame_code, &script.code))
			break;
		*number = (uint32_t)(ret->n - first);
		script.mark = fathom_python_mark(f, script.code);
		script.pc = instruction_of(f, frame, script.code);
		if (!fathom_array_push(ret, script))
			return FATHOM_E_MEMORY;
		if (!fathom_runtime_u64(f, frame + o->frame_previous, &frame))
			break;
	}
	return FATHOM_OK;
}

/* Reads the chain of @thread if it is that of @stack; *@ret_is. */
static fathom_err read_thread(const struct fathom_runtime_found *f, uint64_t thread,
			      struct fathom_script_stack stack, struct fathom_script_frames *ret,
			      bool *ret_is)
{
	const struct fathom_python *p = f->own;
	struct fathom_key_map by_avma = { 0 };
	const size_t first = ret->n;
	fathom_err err = FATHOM_OK;
	uint64_t frame = 0;

	*ret_is = false;
	if (fathom_runtime_u64(f, thread + p->offsets->thread_frame, &frame))
		err = read_chain(f, frame, &by_avma, ret);
	if (!err && ret->n > first)
		err = fathom_stack_words_slots(f, &stack, &by_avma, ret->items + first);
	for (size_t i = first; i < ret->n && !err; i++)
		*ret_is |= ret->items[i].slots[0] != 0;
	if (err || !*ret_is)
		ret->n = first;
	fathom_key_map_deinit(&by_avma);
	return err;
}

/*
 * Finds the listed thread whose pthread_t, which glibc and musl have on the stack of each thread
 * but the first one, is on @stack; 0: there is none.
 */
static uint64_t find_thread(const struct fathom_runtime_found *f, struct fathom_script_stack stack)
{
	const struct fathom_python *p = f->own;
	const size_t i = FATHOM_BISECT(p->threads.n, k, p->threads.items[k].key < stack.sp);
	uint64_t now;

	/* It may have ended since it was listed. */
	return i < p->threads.n && p->threads.items[i].key < stack.end &&
			       fathom_runtime_u64(f,
						  p->threads.items[i].value + p->offsets->native_id,
						  &now) &&
			       now == p->threads.items[i].key
		       ? p->threads.items[i].value
		       : 0;
}

/* Reads the chain of the thread that runs on @stack. */
static fathom_err read(struct fathom_runtime_found *f, int32_t tid,
		       struct fathom_script_stack stack, struct fathom_script_frames *ret)
{
	const struct fathom_python *p = f->own;
	uint64_t thread;
	bool is = false;

	(void)tid;
	if (stack.end <= stack.sp)
		return FATHOM_OK;
	thread = find_thread(f, stack);
	if (!thread) {
		FATHOM_TRY(fathom_python_list_threads(f));
		thread = find_thread(f, stack);
	}
	if (thread)
		return read_thread(f, thread, stack, ret, &is);
	/* Stacks are mapped below what the first thread has, so that is the last one, mostly. */
	for (size_t i = p->threads.n; i-- > 0 && !is;)
		FATHOM_TRY(read_thread(f, p->threads.items[i].value, stack, ret, &is));
	return FATHOM_OK;
}

/* Returns whether @avma is of the GIL. Its owner's thread ID is where glibc has it, if there. */
static bool lock(struct fathom_runtime_found *f, uint64_t avma, const char **ret_name,
		 int32_t *ret_owner)
{
	const struct fathom_python *p = f->own;
	const uint64_t gil = p->runtime + p->offsets->gil;
	uint64_t holder;
	uint64_t id;

	*ret_name = "GIL";
	*ret_owner = 0;
	if (!fathom_python_is_of_gil(f, gil, avma, &holder))
		return false;
	if (holder && fathom_runtime_u64(f, holder + p->offsets->native_id, &id) &&
	    fathom_runtime_number(f, id + PTHREAD_TID, 4, &id) && id <= INT32_MAX)
		*ret_owner = (int32_t)id;
	return true;
}

const struct fathom_interpreter_provider fathom_python_old = {
	.detect = detect,
	.forget = fathom_python_forget,
	.read = read,
	.name = fathom_python_name,
	.lock = lock,
};
