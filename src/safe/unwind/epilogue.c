/* SPDX-License-Identifier: MIT */
#include "safe/unwind/epilogue.h"

#include <elf.h>

#include "safe/base/cursor.h"

/* Bytes of code that are read: six pops of two bytes, and what changes rsp before them. */
#define CODE_SIZE 32

/* Numbers of registers (x86-64 psABI, figure 3.36), by their numbers in instructions. */
static const uint8_t numbers[16] = { 0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15 };

enum { RBP = 6, RSP = 7, RIP = 16 };

struct epilogue {
	const struct fathom_step_memory *m;
	struct fathom_registers r;
	struct fathom_cursor code;
	bool is_over;
};

/* Reads the word at the top of the stack into register @number, and takes it off. */
static enum fathom_stop pop(struct epilogue *e, uint8_t number)
{
	uint64_t value;

	if (!fathom_reader_uint(e->m->stack, e->r.sp, 8, e->m->swap, &value))
		return FATHOM_STOP_UNREADABLE;
	e->r.sp += 8;
	fathom_register_set(&e->r, number, value);
	if (number == RSP)
		e->r.sp = value;
	return FATHOM_STOP_NONE;
}

/* Runs lea N(register),%rsp; @mod says which register, with REX.B of @rex. */
static enum fathom_stop load_sp(struct epilogue *e, uint8_t rex, uint8_t mod)
{
	const uint8_t base = numbers[(mod & 7) + (rex & 1) * 8];
	uint64_t sp;

	if ((mod & 7) == 4 && (cur_u8(&e->code) != 0x24 || rex & 1)) /* what SIB stands for */
		return FATHOM_STOP_NO_RULE;
	if (base != RSP && !fathom_register_known(&e->r, base))
		return FATHOM_STOP_REGISTER;
	sp = base == RSP ? e->r.sp : e->r.value[base];
	if ((mod & 0xf8) == 0x60)
		e->r.sp = sp + (uint64_t)(int8_t)cur_u8(&e->code);
	else if ((mod & 0xf8) == 0xa0)
		e->r.sp = sp + (uint64_t)(int32_t)cur_u32(&e->code);
	else
		return FATHOM_STOP_NO_RULE;
	return FATHOM_STOP_NONE;
}

/* Runs an instruction after the prefix @rex, of which only REX.W and REX.B may be set. */
static enum fathom_stop run_wide(struct epilogue *e, uint8_t rex)
{
	const uint8_t op = cur_u8(&e->code);
	uint8_t mod;

	if (op >= 0x58 && op <= 0x5f)
		return pop(e, numbers[(op & 7) + (rex & 1) * 8]);
	mod = cur_u8(&e->code);
	if (rex >= 0x48 && op == 0x8d)
		return load_sp(e, rex, mod);
	if (rex != 0x48)
		return FATHOM_STOP_NO_RULE;
	if (op == 0x83 && mod == 0xc4) /* add $imm8,%rsp */
		e->r.sp += (uint64_t)(int8_t)cur_u8(&e->code);
	else if (op == 0x81 && mod == 0xc4) /* add $imm32,%rsp */
		e->r.sp += (uint64_t)(int32_t)cur_u32(&e->code);
	else
		return FATHOM_STOP_NO_RULE;
	return FATHOM_STOP_NONE;
}

static enum fathom_stop leave(struct epilogue *e)
{
	if (!fathom_register_known(&e->r, RBP))
		return FATHOM_STOP_REGISTER;
	e->r.sp = e->r.value[RBP];
	return pop(e, RBP);
}

/* Takes the return address off the stack, and @more bytes. */
static enum fathom_stop ret(struct epilogue *e, uint16_t more)
{
	const enum fathom_stop stop = pop(e, RIP);

	e->r.sp += more;
	e->is_over = true;
	return stop;
}

/* Runs the next instruction. */
static enum fathom_stop run(struct epilogue *e)
{
	const uint8_t op = cur_u8(&e->code);

	if (op >= 0x58 && op <= 0x5f)
		return pop(e, numbers[op & 7]);
	switch (op) {
	case 0x90: /* nop */
		return FATHOM_STOP_NONE;
	case 0xc9:
		return leave(e);
	case 0xc3:
		return ret(e, 0);
	case 0xc2:
		return ret(e, cur_u16(&e->code));
	case 0xf3: /* rep ret */
		return cur_u8(&e->code) == 0xc3 ? ret(e, 0) : FATHOM_STOP_NO_RULE;
	case 0x41:
	case 0x48:
	case 0x49:
		return run_wide(e, op);
	default:
		return FATHOM_STOP_NO_RULE;
	}
}

enum fathom_stop fathom_step_epilogue(const struct fathom_unwind_arch *arch,
				      const struct fathom_step_memory *m,
				      struct fathom_registers *r)
{
	uint8_t bytes[CODE_SIZE];
	struct epilogue e = { .m = m, .r = *r };
	enum fathom_stop stop = FATHOM_STOP_NONE;

	if (arch->machine != EM_X86_64)
		return FATHOM_STOP_NO_RULE;
	if (!fathom_register_known(r, RSP))
		return FATHOM_STOP_REGISTER;
	e.code = cur_init((struct fathom_bytes){ bytes, m->code->read(m->code->data, r->pc, bytes,
								      sizeof bytes) },
			  false);
	while (!stop && !e.is_over)
		stop = cur_left(&e.code) ? run(&e) : FATHOM_STOP_NO_RULE;
	if (stop || !cur_ok(&e.code))
		return stop ? stop : FATHOM_STOP_NO_RULE;
	e.r.known &= arch->callee_saved;
	e.r.pc = e.r.value[RIP];
	fathom_register_set(&e.r, RIP, e.r.pc);
	fathom_register_set(&e.r, RSP, e.r.sp);
	*r = e.r;
	return FATHOM_STOP_NONE;
}
