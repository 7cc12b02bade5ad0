/* SPDX-License-Identifier: MIT */
/*
 * Lua 5.3 and 5.4: the calls of each lua_State that is at work on a stack, which no symbol leads
 * to. So it is looked for there: whoever calls Lua has its address.
 *
 *	lua_State -> the innermost CallInfo -> the one before -> ... -> base_ci
 *
 * A call of Lua code by Lua code stays in one call of luaV_execute(); the outermost one says so
 * (CIST_FRESH). When the loop goes on, it needs its innermost CallInfo, which an inner one has
 * saved: that word is its slot. Where errors jump to is a chain of variables on the stack; the
 * outermost one of a coroutine is that of lua_resume(), outside of all that the coroutine does.
 */
#include "host/interpreters/lua.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/interpreters/loop_code.h"
#include "host/interpreters/stack_words.h"
#include "safe/base/sort.h"

/* Of lua_State, and of CallInfo. */
enum { STATE_TOP = 16, STATE_GLOBAL = 24, CALL_FUNCTION = 0, CALL_PREVIOUS = 16 };
enum { VALUE_SIZE = 16, OP_SIZE = 4 };

/* Bits of callstatus: 5.3 says that it is Lua's, 5.4 that it is C's; a tail call. */
enum { CALL_LANGUAGE = 1 << 1, CALL_TAIL = 1 << 5 };

/* The most states on one stack, words that may be one, nested places to jump to. */
enum { MOST_STATES = 512, MOST_WORDS = 1 << 16, MOST_JUMPS = 1 << 16 };

/* Values of a stack that are beyond its last one, for errors. */
enum { MOST_EXTRA = 64 };

/* Its identification, as in lapi.c; the bytes of it that are read. */
#define IDENT "$LuaVersion: Lua 5."
enum { IDENT_SIZE = sizeof IDENT + 3 };

static fathom_err detect(struct fathom_runtime_found *f, bool *ret)
{
	char ident[IDENT_SIZE] = { 0 };
	const size_t known = sizeof IDENT - 1;
	struct fathom_lua *l;
	uint64_t at;

	if (!fathom_runtime_symbol(f, "lua_ident", &at) ||
	    !fathom_runtime_constant(f, at, ident, sizeof ident - 1) ||
	    memcmp(ident, IDENT, known) != 0)
		return FATHOM_OK;
	l = calloc(1, sizeof *l);
	if (!l)
		return FATHOM_E_MEMORY;
	f->own = l;
	*ret = true;
	(void)snprintf(f->title, sizeof f->title, "lua 5.%c", ident[known]);
	l->offsets = fathom_lua_find_offsets((uint32_t)(ident[known] - '0'),
					     (uint32_t)(ident[known + 2] - '0'));
	if (!l->offsets)
		f->why = "its frames are known of 5.3.3 to 5.3.6, 5.4.2, and 5.4.4 to 5.4.9";
	else if (f->module->main->image.machine != EM_X86_64)
		f->why = "where its loop is, is known on x86-64 only";
	else if (!fathom_loop_code_named(f, "luaV_execute", &l->loop) &&
		 !fathom_loop_code_called(f, "lua_callk", &l->loop))
		f->why = "which of its functions is the loop cannot be told";
	return FATHOM_OK;
}

/* Returns whether a lua_State is at @state: that of its main thread has the same global_State. */
static bool is_state(const struct fathom_runtime_found *f, uint64_t state, uint64_t *ret_global)
{
	const struct fathom_lua *l = f->own;
	const struct fathom_lua_offsets *o = l->offsets;
	uint64_t global;
	uint64_t first;
	uint64_t of;
	uint64_t stack;
	uint64_t top;
	uint64_t last;

	if (!fathom_lua_is(f, state, LUA_THREAD) ||
	    !fathom_lua_word(f, state + STATE_GLOBAL, &global) || !global || global % 8 ||
	    !fathom_lua_word(f, global + o->main_thread, &first) ||
	    !fathom_lua_is(f, first, LUA_THREAD) ||
	    !fathom_lua_word(f, first + STATE_GLOBAL, &of) || of != global ||
	    !fathom_lua_word(f, state + o->stack, &stack) ||
	    !fathom_lua_word(f, state + STATE_TOP, &top) ||
	    !fathom_lua_word(f, state + o->stack_last, &last))
		return false;
	*ret_global = global;
	return stack && stack <= top && top <= last + MOST_EXTRA * VALUE_SIZE &&
	       (top - stack) % VALUE_SIZE == 0;
}

static void remember(struct fathom_lua *l, uint64_t global)
{
	for (uint32_t i = 0; i < l->n_globals; i++)
		if (l->globals[i] == global)
			return;
	/* Of very many the first ones may have gone. */
	l->globals[l->n_globals % FATHOM_LUA_GLOBALS] = global;
	l->n_globals += l->n_globals < FATHOM_LUA_GLOBALS;
}

/* The states that are at work on a stack, by the outermost place on it to which errors jump. */
struct states {
	struct fathom_runtime_found *f;
	const struct fathom_script_stack *stack;
	struct fathom_key_map seen; /* words that were looked at */
	uint32_t n_looked;
	struct fathom_keyed items[MOST_STATES];
	struct fathom_keyed scratch[MOST_STATES];
	size_t n;
	fathom_err err;
};

/* Finds the outermost place to which errors in @state jump; 0: it is not on this stack. */
static uint64_t find_base(const struct states *s, uint64_t state)
{
	const struct fathom_lua *l = s->f->own;
	uint64_t at = 0;
	uint64_t next;

	if (!fathom_lua_word(s->f, state + l->offsets->jump, &next))
		return 0;
	/* Outer ones are at higher addresses. */
	for (int i = 0; i < MOST_JUMPS && next > at && next >= s->stack->sp && next < s->stack->end;
	     i++) {
		at = next;
		if (!fathom_lua_word(s->f, at, &next))
			break;
	}
	return at;
}

/* Adds the state at @word, if it is one. Main threads may be at work without a place to jump to. */
static void add_state(void *data, uint64_t avma, uint64_t word)
{
	struct states *s = data;
	struct fathom_lua *l = s->f->own;
	uint32_t *number;
	uint64_t global;
	uint64_t first;
	uint64_t base;

	(void)avma;
	if (word % 8 || word < 0x1000 || word >> 47 || s->n == MOST_STATES ||
	    s->n_looked == MOST_WORDS)
		return;
	number = fathom_key_map_at(&s->seen, word);
	if (!number)
		s->err = FATHOM_E_MEMORY;
	if (!number || *number != FATHOM_KEY_NEW)
		return;
	*number = 0;
	s->n_looked++;
	if (!is_state(s->f, word, &global))
		return;
	base = find_base(s, word);
	if (!base && fathom_lua_word(s->f, global + l->offsets->main_thread, &first) &&
	    first == word)
		base = UINT64_MAX;
	if (!base)
		return;
	remember(l, global);
	s->items[s->n++] = (struct fathom_keyed){ base, word };
}

/* The reading of the calls of one state. */
struct chain {
	struct fathom_runtime_found *f;
	struct fathom_lua *l;
	struct fathom_script_frames *to;
	const struct fathom_registers *registers; /* NULL: this state is not the innermost one */
	size_t group;
	bool is_inner;                  /* a call is inside of the next one */
	uint64_t base;                  /* of a coroutine */
	bool has_code;                  /* the group has a frame of Lua's code */
	struct fathom_key_map *by_avma; /* groups by their innermost calls of Lua's code */
	fathom_err err;
};

/* Gives all frames of the group, which ends with the call at @call, what they share. */
static void end_group(struct chain *c, uint64_t call)
{
	for (size_t i = c->group; i < c->to->n; i++) {
		c->to->items[i].anchor = call;
		c->to->items[i].base = c->base;
		c->to->items[i].loop = c->l->loop;
	}
	c->group = c->to->n;
	c->has_code = false;
}

/* Notes the innermost call of Lua's code of a group. */
static void note_code(struct chain *c, uint64_t call)
{
	uint32_t *number;

	if (c->has_code)
		return;
	c->has_code = true;
	number = fathom_key_map_at(c->by_avma, call);
	if (number)
		*number = (uint32_t)c->group;
	else
		c->err = FATHOM_E_MEMORY;
}

static void push(struct chain *c, uint64_t code, uint64_t closure, uint64_t pc)
{
	const struct fathom_script_frame frame = {
		.code = code,
		.method = closure,
		.pc = pc,
		.mark = fathom_lua_mark(c->f, code, closure),
	};

	if (!fathom_array_push(c->to, frame))
		c->err = FATHOM_E_MEMORY;
}

/*
 * Returns the next instruction of the innermost call, of the Proto at @code: the one register that
 * leads into its code, of those that C code preserves, has it; else @saved, the last one that the
 * loop has saved: what it calls is mostly told that. 0: not known, as it is the loop that runs. In
 * 5.3 the loop saves each.
 */
static uint64_t next_op(const struct chain *c, uint64_t code, uint64_t saved)
{
	/* Of x86-64: rbx, rbp, r12 to r15. */
	static const uint8_t preserved[] = { 3, 6, 12, 13, 14, 15 };
	const struct fathom_registers *r = c->l->offsets->base_lines ? c->registers : NULL;
	const struct fathom_script_loop *loop = &c->l->loop;
	uint64_t found = saved;
	unsigned n = 0;

	for (size_t i = 0; r && i < sizeof preserved; i++) {
		const uint64_t value = r->value[preserved[i]];

		if (!fathom_register_known(r, preserved[i]) ||
		    !fathom_lua_has_op(c->f, code, value - OP_SIZE))
			continue;
		found = value;
		n++;
	}
	if (n == 1)
		return found;
	return r && (r->pc - loop->code < loop->size || r->pc - loop->cold < loop->cold_size)
		       ? 0
		       : saved;
}

/* Adds the call at @call, of the Lua function whose closure is at @closure. */
static void add_function(struct chain *c, uint64_t call, uint64_t closure, uint64_t status)
{
	uint64_t code;
	uint64_t op = 0;

	if (!fathom_lua_is(c->f, closure, LUA_FUNCTION) ||
	    !fathom_lua_word(c->f, closure + LUA_CLOSURE_CODE, &code))
		return;
	(void)fathom_lua_word(c->f, call + c->l->offsets->saved_pc, &op);
	op = next_op(c, code, op) - OP_SIZE;
	note_code(c, call);
	push(c, code, closure, fathom_lua_has_op(c->f, code, op) ? op : code);
	if (status & CALL_TAIL)
		push(c, code, LUA_TAIL_CALLS, code);
	if (status & c->l->offsets->is_fresh)
		end_group(c, call);
}

/*
 * Adds the call at @call; false if it is none. The innermost one may be about to return: its
 * function's place has a result.
 */
static bool add_call(struct chain *c, uint64_t call)
{
	uint64_t at;
	uint64_t value;
	uint64_t type;
	uint64_t status;
	uint64_t code;

	if (!fathom_lua_word(c->f, call + CALL_FUNCTION, &at) || at % 8 ||
	    !fathom_lua_word(c->f, at, &value) ||
	    !fathom_lua_number(c->f, at + LUA_VALUE_TYPE, 4, &type) ||
	    !fathom_lua_number(c->f, (call + c->l->offsets->call_status) & ~UINT64_C(3), 4,
			       &status))
		return false;
	/* It is the upper half. */
	status >>= 16;
	switch (type & LUA_TYPE) {
	case LUA_FUNCTION:
		/* While a hook is called, or a variable closed, it is Lua's still. */
		add_function(c, call, value, status);
		break;
	case LUA_C:
		push(c, value, value, value);
		break;
	case LUA_C_CLOSURE:
		if (fathom_lua_is(c->f, value, LUA_C_CLOSURE) &&
		    fathom_lua_word(c->f, value + LUA_CLOSURE_CODE, &code))
			push(c, code, value, code);
		break;
	default:
		if (c->is_inner)
			return false;
	}
	c->is_inner = true;
	/* The next one is not the innermost call. */
	c->registers = NULL;
	return true;
}

/*
 * Appends the calls of @state. *@ret_is: they end where they should. Functions of C that are
 * outside of all loops are called by what has set the outermost place to jump to, at @jump.
 */
static fathom_err read_calls(struct chain *c, uint64_t state, uint64_t jump, bool *ret_is)
{
	const struct fathom_lua_offsets *o = c->l->offsets;
	const size_t first = c->to->n;
	uint64_t call = 0;

	c->group = first;
	*ret_is = fathom_lua_word(c->f, state + o->ci, &call);
	for (size_t i = 0; *ret_is && !c->err && call != state + o->base_ci; i++)
		*ret_is = i < FATHOM_SCRIPT_MAX_FRAMES && call && call % 8 == 0 &&
			  add_call(c, call) && fathom_lua_word(c->f, call + CALL_PREVIOUS, &call);
	for (size_t i = c->group; i < c->to->n; i++)
		c->to->items[i].anchor = jump;
	if (!*ret_is)
		c->to->n = first;
	return c->err;
}

/* Returns whether a slot of the frames from @first on was found. */
static bool has_slot(const struct fathom_script_frames *frames, size_t first)
{
	for (size_t i = first; i < frames->n; i++)
		if (frames->items[i].slots[0])
			return true;
	return false;
}

/*
 * Appends the calls of the states of @s, which are in the order of their bases: the main thread is
 * outside of its coroutines.
 */
static fathom_err read_states(struct states *s, struct fathom_script_frames *ret)
{
	struct fathom_key_map by_avma = { 0 };
	const size_t first = ret->n;
	size_t unsure = SIZE_MAX;
	fathom_err err = FATHOM_OK;

	for (size_t i = 0; i < s->n && !err; i++) {
		const uint64_t base = s->items[i].key;
		const bool is_sure = base != UINT64_MAX;
		struct chain c = { .f = s->f,
				   .l = s->f->own,
				   .to = ret,
				   .registers = i ? NULL : s->stack->registers,
				   .by_avma = &by_avma };
		uint64_t global;
		uint64_t main_thread = 0;
		bool is;

		if (fathom_lua_word(s->f, s->items[i].value + STATE_GLOBAL, &global))
			(void)fathom_lua_word(s->f, global + c.l->offsets->main_thread,
					      &main_thread);
		c.base = s->items[i].value == main_thread ? 0 : base;
		if (!is_sure && unsure == SIZE_MAX)
			unsure = ret->n;
		err = read_calls(&c, s->items[i].value, is_sure ? base : 0, &is);
	}
	if (!err && ret->n > first)
		err = fathom_stack_words_slots(s->f, s->stack, &by_avma, ret->items);
	/* Another thread may have the address of a state, too. */
	if (unsure != SIZE_MAX && !has_slot(ret, unsure))
		ret->n = unsure;
	fathom_key_map_deinit(&by_avma);
	return err;
}

static fathom_err read(struct fathom_runtime_found *f, int32_t tid,
		       struct fathom_script_stack stack, struct fathom_script_frames *ret)
{
	struct fathom_lua *l = f->own;
	struct states *s = calloc(1, sizeof *s);
	fathom_err err;

	(void)tid;
	if (!s)
		return FATHOM_E_MEMORY;
	fathom_runtime_forget(l->pages);
	s->f = f;
	s->stack = &stack;
	err = fathom_stack_words_each(f, &stack, add_state, s);
	err = err ? err : s->err;
	if (!err) {
		fathom_sort_keyed(s->items, s->scratch, s->n);
		err = read_states(s, ret);
	}
	fathom_key_map_deinit(&s->seen);
	free(s);
	return err;
}

const struct fathom_interpreter_provider fathom_lua = {
	.detect = detect,
	.read = read,
	.name = fathom_lua_name,
};
