/* SPDX-License-Identifier: MIT */
/*
 * PHP 7.4 and 8.1 to 8.4 without threads (NTS): the chain of zend_execute_data.
 *
 *	executor_globals -> the innermost frame -> the frame that has called it -> ...
 *
 * A call of PHP code by PHP code stays in one call of execute_ex(); its outermost frame says so
 * (ZEND_CALL_TOP). When a loop calls C code, its register has the innermost of its frames that is
 * PHP code, or the one that it leaves, of which that frame is the caller: these words are the
 * slots by which loops are told apart. Functions of C have a frame, but no loop.
 */
#include "host/interpreters/php.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

#include "host/interpreters/loop_code.h"
#include "host/interpreters/stack_words.h"

/* Of zend_execute_data. */
enum { CALL_OP = 0, CALL_FUNCTION = 24, CALL_THIS = 32, CALL_INFO = 40, CALL_PREVIOUS = 48 };
enum { CALL_SIZE = 56, TYPE_MASK = 0xff, TYPE_OBJECT = 8, CALL_CODE = 1 << 16, CALL_TOP = 1 << 17 };

/* Of HashTable and zend_module_entry; the instruction that includes a file. */
enum { TABLE_ITEMS = 16, TABLE_USED = 24, MODULE_API = 4, MODULE_THREADS = 9, MODULE_SIZE = 10 };
enum { INCLUDE_OR_EVAL = 73 };

/* The most frames that are looked at, some of which are shown; generators in a row. */
enum { MOST_FRAMES = 1 << 17, MOST_GENERATORS = 4096 };

/* Bytes of PHP's stack within which a frame follows that of its caller. */
enum { MOST_APART = 1 << 18 };

/* Registers of x86-64 in which gcc keeps the frame and the instruction of the loop. */
enum { FRAME_REGISTER = 14, OP_REGISTER = 15 };

static fathom_err detect(struct fathom_runtime_found *f, bool *ret)
{
	struct fathom_php *p;
	uint64_t at;

	if (!fathom_runtime_symbol(f, "execute_ex", &at) ||
	    !fathom_runtime_symbol(f, "zend_execute_ex", &at))
		return FATHOM_OK;
	p = calloc(1, sizeof *p);
	if (!p)
		return FATHOM_E_MEMORY;
	f->own = p;
	*ret = true;
	(void)snprintf(f->title, sizeof f->title, "php");
	if (!fathom_runtime_range(f, "executor_globals", &p->globals, &p->globals_size))
		f->why = "it is built for threads (ZTS)";
	else if (!fathom_runtime_symbol(f, "module_registry", &p->modules) ||
		 !fathom_loop_code_named(f, "execute_ex", &p->loop))
		f->why = "it lacks module_registry in .dynsym";
	p->loop.is_below = true;
	return FATHOM_OK;
}

/* Finds the version by what the first module says; false if there is none yet, or f->why. */
static bool find_version(struct fathom_runtime_found *f)
{
	struct fathom_php *p = f->own;
	uint64_t items;
	uint64_t used;
	uint64_t module;
	uint8_t bytes[MODULE_SIZE];
	uint32_t api;

	if (p->offsets)
		return true;
	if (!fathom_runtime_u64(f, p->modules + TABLE_ITEMS, &items) || !items ||
	    !fathom_runtime_number(f, p->modules + TABLE_USED, 4, &used) || !used ||
	    !fathom_runtime_u64(f, items, &module) || !module ||
	    !fathom_runtime_constant(f, module, bytes, sizeof bytes))
		return false;
	api = load_u32(bytes + MODULE_API, f->swap);
	p->offsets = fathom_php_find_offsets(api);
	if (!p->offsets) {
		(void)snprintf(f->title, sizeof f->title, "php of API %u", api);
		f->why = "its frames are known of 7.4 and 8.1 to 8.4";
		return false;
	}
	(void)snprintf(f->title, sizeof f->title, "php %u.%u", p->offsets->major,
		       p->offsets->minor);
	if (bytes[MODULE_THREADS])
		f->why = "it is built for threads (ZTS)";
	else if (p->globals_size && p->globals_size < p->offsets->before_exception + 8u)
		f->why = "executor_globals is smaller than that of this version";
	return !f->why;
}

/* The reading of one chain. */
struct chain {
	struct fathom_runtime_found *f;
	struct fathom_php *p;
	struct fathom_script_frames *to;
	const struct fathom_registers *registers;
	size_t first;
	uint64_t frame;
	uint64_t inner; /* the frame before */
	size_t group;   /* number of the first frame of the group, in @to */
	bool has_code;  /* the group has a frame of PHP code */
	size_t code;    /* number of a frame of code without a name, if the one before was one */
	struct fathom_key_map seen;
	struct fathom_key_map by_avma; /* groups by their innermost frames of PHP code */
	uint64_t low;                  /* of these frames, the first in memory */
	uint64_t high;
	uint32_t n_looked; /* words that might be frames which are left */
	bool is_here;      /* the stack has the address of a frame */
	fathom_err err;
};

/* Gives all frames of the group, which ends with that at @avma, what they share. */
static void end_group(struct chain *c, uint64_t avma)
{
	for (size_t i = c->group; i < c->to->n; i++) {
		c->to->items[i].anchor = avma;
		c->to->items[i].loop = c->p->loop;
	}
	c->group = c->to->n;
	c->has_code = false;
}

/* Notes that the group has the frame of PHP code at @avma. */
static void note_code(struct chain *c, uint64_t avma)
{
	uint32_t *number;

	if (c->has_code)
		return;
	c->has_code = true;
	c->low = avma < c->low ? avma : c->low;
	c->high = avma > c->high ? avma : c->high;
	number = fathom_key_map_at(&c->by_avma, avma);
	if (number)
		*number = (uint32_t)c->group;
	else
		c->err = FATHOM_E_MEMORY;
}

/* Returns the instruction of @function: what the frame says, or what has thrown; 0: not known. */
static uint64_t op_of(const struct chain *c, const struct fathom_php_function *function,
		      uint64_t op)
{
	uint64_t before;

	if (fathom_php_has_op(function, op))
		return op;
	return fathom_runtime_u64(c->f, c->p->globals + c->p->offsets->before_exception, &before) &&
			       fathom_php_has_op(function, before)
		       ? before
		       : 0;
}

/* Tells the frame of code without a name by what the instruction at @op of its caller does. */
static void set_include(struct chain *c, uint64_t op)
{
	uint8_t bytes[PHP_OP_SIZE];
	uint32_t how;

	if (c->code == SIZE_MAX)
		return;
	if (fathom_reader_read(c->f->memory, op, bytes, sizeof bytes) &&
	    bytes[PHP_OP_CODE] == INCLUDE_OR_EVAL) {
		how = load_u32(bytes + PHP_OP_VALUE, c->f->swap);
		if (how < PHP_OF_OBJECT) {
			c->to->items[c->code].method = how;
			c->to->items[c->code].mark ^= how;
		}
	}
	c->code = SIZE_MAX;
}

/*
 * Returns the instruction in the loop's register, if the loop is in the frame at @avma; else @op,
 * which is the last one that the loop has saved.
 */
static uint64_t op_in_loop(const struct chain *c, const struct fathom_php_function *function,
			   uint64_t avma, uint64_t op)
{
	const struct fathom_registers *r = c->registers;

	return r && r->machine == EM_X86_64 && avma && c->group == c->first &&
			       fathom_register_known(r, FRAME_REGISTER) &&
			       fathom_register_known(r, OP_REGISTER) &&
			       r->value[FRAME_REGISTER] == avma &&
			       fathom_php_has_op(function, r->value[OP_REGISTER])
		       ? r->value[OP_REGISTER]
		       : op;
}

/*
 * Adds the frame at @avma, 0 if no loop executes it, of the function at @at, whose instruction is
 * @op.
 */
static void add_frame(struct chain *c, uint64_t avma, uint64_t at, uint64_t op, uint32_t info)
{
	struct fathom_script_frame frame = { .code = at, .pc = at };
	struct fathom_php_function function;

	if (!fathom_php_read_function(c->f, at, &function)) {
		c->frame = 0;
		return;
	}
	if (function.file) {
		op = op_of(c, &function, op_in_loop(c, &function, avma, op));
		set_include(c, op);
		frame.pc = op ? op : at;
		if (avma)
			note_code(c, avma);
	} else if (!function.name) {
		/* It begins a fiber. */
		return;
	}
	if (function.name && (info & TYPE_MASK) == TYPE_OBJECT)
		frame.method = PHP_OF_OBJECT;
	frame.mark = fathom_php_mark(&function) ^ frame.method;
	if (!function.name)
		c->code = c->to->n;
	if (!fathom_array_push(c->to, frame))
		c->err = FATHOM_E_MEMORY;
	else if (function.file && avma && info & CALL_TOP)
		end_group(c, avma);
}

/* Adds the frame of the generator at @avma, which waits for another one. */
static void add_generator(struct chain *c, uint64_t avma)
{
	uint64_t call;
	uint64_t function;
	uint64_t op;
	uint64_t info;

	if (!fathom_runtime_u64(c->f, avma + c->p->offsets->generator_frame, &call) || !call ||
	    !fathom_runtime_u64(c->f, call + CALL_FUNCTION, &function) ||
	    !fathom_runtime_u64(c->f, call + CALL_OP, &op) ||
	    !fathom_runtime_number(c->f, call + CALL_INFO, 4, &info))
		return;
	/* It stands with those of the loop that has resumed it. */
	add_frame(c, 0, function, op, (uint32_t)info);
}

/*
 * Adds the generators between that at @avma, which the frame @c->frame is a part of, and the one
 * that runs, whose frame is @c->inner: each waits for the next by "yield from".
 */
static void add_generators(struct chain *c, uint64_t avma)
{
	const struct fathom_php_offsets *o = c->p->offsets;
	const size_t first = c->to->n;
	uint64_t call = 0;

	if (avma + o->generator_fake != c->frame)
		return;
	for (int i = 0; i < MOST_GENERATORS && !c->err; i++) {
		if (!fathom_runtime_u64(c->f, avma + o->generator_frame, &call) || call == c->inner)
			break;
		add_generator(c, avma);
		if (!fathom_runtime_u64(c->f, avma + o->generator_parent, &avma) || !avma)
			break;
	}
	if (call != c->inner) {
		c->to->n = first;
		return;
	}
	for (size_t i = first, k = c->to->n; i + 1 < k; i++) {
		const struct fathom_script_frame inner = c->to->items[--k];

		c->to->items[k] = c->to->items[i];
		c->to->items[i] = inner;
	}
}

/* Reads one frame, and goes on to its caller; 0: there is none. */
static void read_frame(struct chain *c)
{
	const uint64_t avma = c->frame;
	const uint8_t *bytes =
		avma % 8 ? NULL : fathom_runtime_part(c->f, &c->p->frames, avma, CALL_SIZE);
	uint32_t *number = fathom_key_map_at(&c->seen, avma);
	uint64_t function;
	uint64_t op;
	uint64_t this;
	uint64_t previous;
	uint32_t info;

	if (!number)
		c->err = FATHOM_E_MEMORY;
	/* A chain that was damaged may be a circle. */
	if (!bytes || !number || *number != FATHOM_KEY_NEW) {
		c->frame = 0;
		return;
	}
	*number = 0;
	op = load_u64(bytes + CALL_OP, c->f->swap);
	function = load_u64(bytes + CALL_FUNCTION, c->f->swap);
	this = load_u64(bytes + CALL_THIS, c->f->swap);
	info = load_u32(bytes + CALL_INFO, c->f->swap);
	previous = load_u64(bytes + CALL_PREVIOUS, c->f->swap);
	if (function)
		add_frame(c, avma, function, op, info);
	else if ((info & TYPE_MASK) == TYPE_OBJECT)
		add_generators(c, this);
	c->inner = avma;
	c->frame = c->frame ? previous : 0;
}

/* Notes a word of the stack that is a slot of a group. */
static void note_word(void *data, uint64_t avma, uint64_t word)
{
	struct chain *c = data;
	uint32_t number = fathom_key_map_find(&c->by_avma, word);
	const bool is_frame = fathom_key_map_find(&c->seen, word) != FATHOM_KEY_NEW;
	const uint8_t *bytes;
	uint64_t previous;

	c->is_here |= is_frame;
	if (number != FATHOM_KEY_NEW) {
		fathom_stack_words_slot(&c->to->items[number], avma);
		return;
	}
	/* A frame that is left is no longer in the chain, but its caller is. */
	if (word % 8 || word <= c->low || word >= c->high + MOST_APART ||
	    c->n_looked == MOST_FRAMES || is_frame)
		return;
	c->n_looked++;
	bytes = fathom_runtime_part(c->f, &c->p->frames, word, CALL_SIZE);
	if (!bytes)
		return;
	previous = load_u64(bytes + CALL_PREVIOUS, c->f->swap);
	number = fathom_key_map_find(&c->by_avma, previous);
	if (number != FATHOM_KEY_NEW && word > previous && word - previous < MOST_APART)
		fathom_stack_words_slot(&c->to->items[number], avma);
}

/* Reads the chain from @frame on: that of this stack, if @is_sure; else if it is found there. */
static fathom_err read_chain(struct fathom_runtime_found *f, struct fathom_script_stack stack,
			     uint64_t frame, bool is_sure, struct fathom_script_frames *ret)
{
	struct chain c = { .f = f,
			   .p = f->own,
			   .to = ret,
			   .registers = stack.registers,
			   .first = ret->n,
			   .group = ret->n,
			   .frame = frame,
			   .code = SIZE_MAX,
			   .low = UINT64_MAX };

	c.p->frames.size = 0;
	c.p->functions.size = 0;
	for (int i = 0; i < MOST_FRAMES && c.frame && !c.err; i++) {
		if (ret->n - c.first >= FATHOM_SCRIPT_MAX_FRAMES)
			break;
		read_frame(&c);
	}
	if (!c.err && c.low < c.high + 1)
		c.err = fathom_stack_words_each(f, &stack, note_word, &c);
	if (!is_sure && !c.is_here)
		ret->n = c.first;
	fathom_key_map_deinit(&c.seen);
	fathom_key_map_deinit(&c.by_avma);
	return c.err;
}

/*
 * Reads the chain of the thread that runs on @stack: fatal errors jump to a place on it. A program
 * that calls PHP as a library may do without such a place.
 */
static fathom_err read(struct fathom_runtime_found *f, int32_t tid,
		       struct fathom_script_stack stack, struct fathom_script_frames *ret)
{
	const struct fathom_php *p = f->own;
	uint64_t bailout;
	uint64_t frame;
	bool is_here;

	(void)tid;
	if (!find_version(f) ||
	    !fathom_runtime_u64(f, p->globals + p->offsets->bailout, &bailout) ||
	    !fathom_runtime_u64(f, p->globals + p->offsets->current, &frame))
		return FATHOM_OK;
	is_here = bailout >= stack.sp && bailout < stack.end;
	return is_here || !bailout ? read_chain(f, stack, frame, is_here, ret) : FATHOM_OK;
}

const struct fathom_interpreter_provider fathom_php = {
	.detect = detect,
	.read = read,
	.name = fathom_php_name,
};
