/* SPDX-License-Identifier: MIT */
/*
 * V8, of node 16 to 22: functions of JavaScript are native frames: of the interpreter's entry, of
 * compiled code, of a built-in. Their frame records say which function they execute:
 *
 *	fp + 8   return address
 *	fp       fp of the caller
 *	fp - 8   the context; of other frames, a small integer that says their kind
 *	fp - 16  the function (JSFunction)
 *	fp - 32  its bytecode, and
 *	fp - 40  where in it the interpreter is; compiled code has other things there
 *
 * All records on a thread's stack are read in the moment in which its registers are. Which of them
 * are those of native frames, the walk says, later: what has the form of a record may be a remnant.
 */
#include "host/interpreters/v8.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

/* The most bytes of a stack that are looked at, and words that may be records. */
#define MOST_STACK ((uint64_t)1 << 26)
#define MOST_TRIES (1 << 17)

#define PAGE UINT64_C(4096)

/* Bytes from a frame record to what is beside it: context or kind, function, bytecode, position. */
enum { RECORD_CONTEXT = 8, RECORD_FUNCTION = 16, RECORD_BYTECODE = 32, RECORD_POSITION = 40 };

/* Of built-ins of C++: the function that was called. */
enum { EXIT_FUNCTION = 24 };

bool fathom_v8_member(const struct fathom_runtime_found *f, uint64_t tagged, uint64_t offset,
		      uint64_t *ret)
{
	struct fathom_v8 *v = f->own;

	return (tagged & V8_TAG_MASK) == V8_TAG &&
	       fathom_runtime_paged(f, v->pages, tagged - V8_TAG + offset, 8, ret);
}

bool fathom_v8_u32(const struct fathom_runtime_found *f, uint64_t tagged, uint64_t offset,
		   uint32_t *ret)
{
	struct fathom_v8 *v = f->own;
	uint64_t value;

	if ((tagged & V8_TAG_MASK) != V8_TAG ||
	    !fathom_runtime_paged(f, v->pages, tagged - V8_TAG + offset, 4, &value))
		return false;
	*ret = (uint32_t)value;
	return true;
}

bool fathom_v8_smi(const struct fathom_runtime_found *f, uint64_t tagged, uint64_t offset,
		   int32_t *ret)
{
	uint64_t value;

	if (!fathom_v8_member(f, tagged, offset, &value) || (uint32_t)value)
		return false;
	*ret = (int32_t)(value >> V8_SMI_SHIFT);
	return true;
}

int fathom_v8_type(const struct fathom_runtime_found *f, uint64_t tagged)
{
	uint64_t map;
	uint32_t word;

	if (!fathom_v8_member(f, tagged, 0, &map) || !fathom_v8_u32(f, map, MAP_TYPE, &word))
		return -1;
	return (int)(word & 0xffff);
}

static bool is_function(const struct fathom_runtime_found *f, uint64_t tagged)
{
	const struct fathom_v8_offsets *o = &((const struct fathom_v8 *)f->own)->offsets;
	const int type = fathom_v8_type(f, tagged);

	return type >= o->type_function && type <= o->type_function + o->more_functions;
}

static bool is_context(const struct fathom_runtime_found *f, uint64_t tagged)
{
	const struct fathom_v8_offsets *o = &((const struct fathom_v8 *)f->own)->offsets;
	const int type = fathom_v8_type(f, tagged);

	return type >= o->first_context && type <= o->last_context;
}

static fathom_err detect(struct fathom_runtime_found *f, bool *ret)
{
	uint64_t at[2];
	uint8_t bytes[2][4];
	uint32_t version[2];
	struct fathom_v8 *v;
	unsigned node;

	if (!fathom_runtime_symbol(f, "_ZN2v88internal7Version6major_E", &at[0]) ||
	    !fathom_runtime_symbol(f, "_ZN2v88internal7Version6minor_E", &at[1]) ||
	    !fathom_runtime_constant(f, at[0], bytes[0], sizeof bytes[0]) ||
	    !fathom_runtime_constant(f, at[1], bytes[1], sizeof bytes[1]))
		return FATHOM_OK;
	v = calloc(1, sizeof *v);
	if (!v)
		return FATHOM_E_MEMORY;
	version[0] = load_u32(bytes[0], f->swap);
	version[1] = load_u32(bytes[1], f->swap);
	f->own = v;
	*ret = true;
	node = fathom_v8_node(version[0], version[1]);
	if (node)
		(void)snprintf(f->title, sizeof f->title, "node %u", node);
	else
		(void)snprintf(f->title, sizeof f->title, "V8 %u.%u", version[0] & 0xffff,
			       version[1] & 0xffff);
	if (f->module->main->image.machine != EM_X86_64)
		f->why = "frames of JavaScript are known on x86-64 only";
	else
		fathom_v8_find_offsets(f, version[0], version[1]);
	return FATHOM_OK;
}

/* Reads the word at @avma, of the stack. */
static bool read_stack_word(const struct fathom_runtime_found *f, uint64_t avma, uint64_t *ret)
{
	struct fathom_v8 *v = f->own;

	return fathom_runtime_paged(f, v->pages, avma, 8, ret);
}

/*
 * Reads what the interpreter executes in the frame whose record is at @record, if it is one of the
 * interpreter: the bytecode becomes its method, the address of the instruction its pc. Compiled
 * code leaves both where they were: so it is asked for its place, too (executes()).
 */
static void read_bytecode(const struct fathom_runtime_found *f, uint64_t record,
			  struct fathom_script_frame *frame)
{
	const struct fathom_v8_offsets *o = &((const struct fathom_v8 *)f->own)->offsets;
	uint64_t bytecode;
	uint64_t position;
	int32_t length;
	int64_t offset;

	if (!read_stack_word(f, record - RECORD_BYTECODE, &bytecode) ||
	    fathom_v8_type(f, bytecode) != o->type_bytecode)
		return;
	frame->method = bytecode - V8_TAG;
	if (!read_stack_word(f, record - RECORD_POSITION, &position) || (uint32_t)position ||
	    !fathom_v8_smi(f, bytecode, ARRAY_LENGTH, &length))
		return;
	/* It counts from the tagged pointer. */
	offset = (int32_t)(position >> V8_SMI_SHIFT) - ((int64_t)o->bytecode_data - V8_TAG);
	if (offset >= 0 && offset < length)
		frame->pc = frame->method + o->bytecode_data + (uint64_t)offset;
}

/* Adds the function at @function, whose frame's record is at @record; false without memory. */
static bool add_frame(struct fathom_runtime_found *f, uint64_t record, uint64_t function,
		      bool is_exit, struct fathom_script_frames *to)
{
	const struct fathom_v8_offsets *o = &((const struct fathom_v8 *)f->own)->offsets;
	struct fathom_script_frame frame = { .anchor = record, .in_place = FATHOM_IN_PLACE };
	uint64_t shared;

	if (!is_function(f, function) ||
	    !fathom_v8_member(f, function, o->function_shared, &shared) ||
	    fathom_v8_type(f, shared) != o->type_shared)
		return true;
	frame.code = shared - V8_TAG;
	frame.mark = fathom_v8_mark(f, frame.code);
	if (!is_exit)
		read_bytecode(f, record, &frame);
	return fathom_array_push(to, frame);
}

/*
 * Looks at what may be a frame record at @record, below which @function and @context are; false
 * without memory. The frame of a call of the runtime, which is no function, has no code.
 */
static bool look_at(struct fathom_runtime_found *f, uint64_t record, uint64_t function,
		    uint64_t context, struct fathom_script_frames *to)
{
	const struct fathom_v8_offsets *o = &((const struct fathom_v8 *)f->own)->offsets;
	const struct fathom_script_frame runtime = { .anchor = record,
						     .in_place = FATHOM_IN_PLACE };
	uint64_t called;

	if ((context & V8_TAG_MASK) == V8_TAG && (function & V8_TAG_MASK) == V8_TAG)
		return !is_context(f, context) || add_frame(f, record, function, false, to);
	if (context == (uint64_t)o->exit_frame << 1 &&
	    read_stack_word(f, record + EXIT_FUNCTION, &called))
		return add_frame(f, record, called, true, to);
	return context != (uint64_t)o->runtime_frame << 1 || fathom_array_push(to, runtime);
}

/*
 * Reads the words of the stack from @*at on, to the end of a page; false without memory. @last:
 * the two words before.
 */
static bool read_page(struct fathom_runtime_found *f, struct fathom_runtime_page *page,
		      struct fathom_script_stack stack, uint64_t *at, uint64_t last[2], int *tries,
		      struct fathom_script_frames *to)
{
	const uint64_t end = *at - *at % PAGE + PAGE;

	for (; *at < end && *at + 8 <= stack.end && *tries < MOST_TRIES; *at += 8) {
		const uint8_t *bytes = fathom_runtime_part(f, page, *at, 8);
		uint64_t word;

		if (!bytes) {
			*at = end;
			last[0] = last[1] = 0;
			return true;
		}
		word = load_u64(bytes, f->swap);
		if (word > *at && word < stack.end && word % 8 == 0 && last[1]) {
			*tries += 1;
			if (to->n >= FATHOM_SCRIPT_MAX_FRAMES)
				return true;
			if (!look_at(f, *at, last[0], last[1], to))
				return false;
		}
		last[0] = last[1];
		last[1] = word;
	}
	return true;
}

static fathom_err read(struct fathom_runtime_found *f, int32_t tid,
		       struct fathom_script_stack stack, struct fathom_script_frames *ret)
{
	struct fathom_v8 *v = f->own;
	struct fathom_runtime_page page = { .size = 0 };
	uint64_t at = (stack.sp + 7) & ~UINT64_C(7);
	uint64_t last[2] = { 0, 0 };
	int tries = 0;

	(void)tid;
	fathom_runtime_forget(v->pages);
	if (stack.end > stack.sp && stack.end - stack.sp > MOST_STACK)
		stack.end = stack.sp + MOST_STACK;
	while (at < stack.end && stack.end - at >= 8 && tries < MOST_TRIES &&
	       ret->n < FATHOM_SCRIPT_MAX_FRAMES)
		if (!read_page(f, &page, stack, &at, last, &tries, ret))
			return FATHOM_E_MEMORY;
	return FATHOM_OK;
}

static bool may_execute(const struct fathom_runtime_found *f, uint64_t svma)
{
	const struct fathom_v8 *v = f->own;

	return svma - v->builtins < v->builtins_size;
}

/*
 * Compiled code is in no file. It keeps the slots in which the interpreter had its bytecode and
 * position, where it has taken over a frame of that in the midst of a loop: they are old. The
 * interpreter has its position in a register, and writes it before it calls other code.
 */
static bool executes(const struct fathom_runtime_found *f, const struct fathom_place *place,
		     uint64_t pc, struct fathom_script_frame *frame, bool *has_called)
{
	const bool is_written = *has_called;
	const bool is_compiled = !place->holder && place->is_code;

	if (!is_compiled &&
	    (place->source || !place->holder || place->holder->module != f->module ||
	     !may_execute(f, pc - place->bias)))
		return false;
	*has_called = true;
	if (is_compiled) {
		frame->in_place = FATHOM_IN_PLACE_JIT;
		frame->pc = pc;
	} else if (!frame->pc || !is_written) {
		frame->pc = pc;
		frame->method = 0;
	}
	/* Code that the program names itself keeps that name. */
	return frame->code && !place->source;
}

const struct fathom_interpreter_provider fathom_v8 = {
	.detect = detect,
	.read = read,
	.name = fathom_v8_name,
	.may_execute = may_execute,
	.executes = executes,
};
