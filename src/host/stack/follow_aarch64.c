/* SPDX-License-Identifier: MIT */
/* Encodings: Arm Architecture Reference Manual for A-profile, C4.1 (A64 instruction set). */
#include "host/stack/follow_aarch64.h"

#include <string.h>

#include "host/disasm/code.h"
#include "safe/base/bytes.h"

enum {
	FP = 29,
	LINK = 30,
	SP = 31,
	REGISTERS = 32,
	FIRST_SAVED = 19,  /* x19 to x29 are the callee-saved ones */
	MAX_STORES = 16,   /* that are kept of a way */
	MAX_PENDING = 32,  /* ways that are still to be followed */
	MAX_FOLLOWED = 512 /* instructions */
};

#define BIT(i) (UINT32_C(1) << (i))

/* A callee-saved register or return address that was stored on a way. */
struct store {
	uint64_t at;
	uint64_t value;
	bool known;
};

/* The state before an instruction, on one way to it. */
struct way {
	uint64_t pc;
	uint64_t value[REGISTERS]; /* x0 to x30, sp */
	uint32_t known;            /* bit i: value[i] is known */
	uint8_t n_stores;
	struct store stores[MAX_STORES];
};

struct follower {
	const struct fathom_step_memory *m;
	bool has_failed;     /* two ways disagree, or a limit was met */
	bool needs_register; /* a way ended at an unknown register */
	bool has_return;     /* a return was reached: result holds what all agree on */
	struct way result;
	size_t n_followed;
	size_t n_pending;
	uint64_t followed[MAX_FOLLOWED];
	struct way pending[MAX_PENDING];
};

/* Reads an instruction: code is little-endian whatever data are. */
static uint32_t load_op(const uint8_t *bytes)
{
	return load_u32(bytes, __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__);
}

static int64_t sign_extend(uint32_t value, unsigned bits)
{
	return (int64_t)((uint64_t)value << (64 - bits)) >> (64 - bits);
}

/* Returns @n bits of @op from bit @at on. */
static uint32_t field(uint32_t op, unsigned at, unsigned n)
{
	return op >> at & (BIT(n) - 1);
}

static bool is_known(const struct way *w, uint32_t reg)
{
	return w->known >> reg & 1;
}

static void set(struct way *w, uint32_t reg, uint64_t value, bool known)
{
	w->value[reg] = known ? value : 0;
	w->known = (w->known & ~BIT(reg)) | (known ? BIT(reg) : 0);
}

/* Sets a register where number 31 is none. */
static void set_general(struct way *w, uint32_t reg, uint64_t value, bool known)
{
	if (reg != SP)
		set(w, reg, value, known);
}

static void lead_to(struct follower *f, const struct way *w, uint64_t pc)
{
	if (f->n_pending == MAX_PENDING) {
		f->has_failed = true;
		return;
	}
	f->pending[f->n_pending] = *w;
	f->pending[f->n_pending++].pc = pc;
}

/* Loads and stores ---------------------------------------------------------------------------- */

static void store(struct follower *f, struct way *w, uint64_t at, uint32_t reg)
{
	uint8_t i = 0;

	if (reg < FIRST_SAVED || reg == SP)
		return;
	while (i < w->n_stores && w->stores[i].at != at)
		i++;
	if (i == MAX_STORES) {
		f->has_failed = true;
		return;
	}
	if (i == w->n_stores)
		w->n_stores++;
	w->stores[i] = (struct store){ at, w->value[reg], is_known(w, reg) };
}

static void load(struct follower *f, struct way *w, uint64_t at, uint32_t reg)
{
	uint64_t value = 0;
	bool is_read;

	for (uint8_t i = 0; i < w->n_stores; i++)
		if (w->stores[i].at == at) {
			set_general(w, reg, w->stores[i].value, w->stores[i].known);
			return;
		}
	is_read = fathom_reader_uint(f->m->stack, at, 8, f->m->swap, &value);
	set_general(w, reg, value, is_read);
}

/* An access to memory at a register and an offset. */
struct access {
	uint32_t base;
	int64_t offset;
	bool is_indexed; /* the base is changed by the offset */
	bool is_post;    /* after the access */
	bool is_load;
	bool is_vector; /* no general register is loaded or stored */
	bool is_whole;  /* all 64 bits of one are */
	uint8_t n;      /* registers */
	uint32_t registers[2];
};

/* Decodes @op; false if it is no such access. */
static bool decode_access(uint32_t op, struct access *a)
{
	const uint32_t size = field(op, 30, 2);

	*a = (struct access){ .base = field(op, 5, 5),
			      .is_vector = field(op, 26, 1),
			      .n = 1,
			      .registers = { field(op, 0, 5), field(op, 10, 5) } };
	if ((op & 0x3a000000) == 0x28000000) { /* stp, ldp */
		a->offset = sign_extend(field(op, 15, 7), 7) * (a->is_vector ? 4 << size
								: size == 2  ? 8
									     : 4);
		a->is_indexed = field(op, 23, 1);
		a->is_post = !field(op, 24, 1);
		a->is_load = field(op, 22, 1);
		a->is_whole = size == 2;
		a->n = 2;
		return true;
	}
	a->is_whole = size == 3;
	a->is_load = field(op, 22, 2) != 0;
	if ((op & 0x3b000000) == 0x39000000) { /* with an unsigned offset */
		const bool is_128 = a->is_vector && field(op, 23, 1);

		a->offset = (int64_t)field(op, 10, 12) << (is_128 ? 4 : size);
		return true;
	}
	if ((op & 0x3b200000) != 0x38000000)
		return false;
	a->offset = sign_extend(field(op, 12, 9), 9); /* unscaled, or indexed */
	a->is_indexed = field(op, 10, 1);
	a->is_post = !field(op, 11, 1);
	return true;
}

static void run_access(struct follower *f, struct way *w, const struct access *a)
{
	const bool is_stack = (a->base == SP || a->base == FP) && is_known(w, a->base);
	const uint64_t indexed = w->value[a->base] + (uint64_t)a->offset;
	const uint64_t at = a->is_indexed && a->is_post ? w->value[a->base] : indexed;

	if (a->is_indexed)
		set(w, a->base, indexed, is_known(w, a->base));
	for (uint8_t i = 0; i < a->n && !a->is_vector; i++) {
		if (!a->is_load && is_stack && a->is_whole)
			store(f, w, at + i * UINT64_C(8), a->registers[i]);
		else if (a->is_load && is_stack && a->is_whole)
			load(f, w, at + i * UINT64_C(8), a->registers[i]);
		else if (a->is_load)
			set_general(w, a->registers[i], 0, false);
	}
}

/* All other instructions ---------------------------------------------------------------------- */

/* Runs what makes a register of others; false if @op is none of those that are computed. */
static bool run_arithmetic(struct way *w, uint32_t op)
{
	const uint32_t to = field(op, 0, 5);
	const uint32_t from = field(op, 5, 5);
	const uint32_t other = field(op, 16, 5);
	uint64_t by = field(op, 10, 12);

	switch (op & 0xff800000) {
	case 0x91000000: /* add, sub: of a number */
	case 0xd1000000:
		by <<= field(op, 22, 1) ? 12 : 0;
		set(w, to, op >> 30 & 1 ? w->value[from] - by : w->value[from] + by,
		    is_known(w, from));
		return true;
	case 0x92000000: /* and, orr, eor: of a number; they can set sp */
	case 0xb2000000:
	case 0xd2000000:
		set(w, to, 0, false);
		return true;
	}
	if ((op & 0xbfe00000) == 0x8b200000) { /* add, sub: of an extended register; sp */
		set(w, to, 0, false);
		return true;
	}
	if ((op & 0xffe0ffe0) == 0xaa0003e0) { /* mov */
		set_general(w, to, other == SP ? 0 : w->value[other],
			    other == SP || is_known(w, other));
		return true;
	}
	return false;
}

/* Takes what is known at a return to register @reg. */
static void reach_return(struct follower *f, const struct way *w, uint32_t reg)
{
	struct way *all = &f->result;

	if (!is_known(w, reg) || !is_known(w, SP)) {
		f->needs_register = true;
		return;
	}
	if (!f->has_return) {
		*all = *w;
		all->pc = w->value[reg];
		f->has_return = true;
		return;
	}
	f->has_failed |= all->pc != w->value[reg] || all->value[SP] != w->value[SP];
	for (uint32_t i = FIRST_SAVED; i < LINK; i++)
		if (!is_known(w, i) || w->value[i] != all->value[i])
			set(all, i, 0, false);
}

void fathom_aarch64_flow(const uint8_t *code, uint64_t avma, struct fathom_stack_code *ret)
{
	const uint32_t op = load_op(code);
	int64_t by = 0;

	*ret = (struct fathom_stack_code){ .size = 4, .flow = FATHOM_FLOW_NEXT, .is_direct = true };
	if ((op & 0x7c000000) == 0x14000000) { /* b, bl */
		ret->flow = op >> 31 ? FATHOM_FLOW_CALL : FATHOM_FLOW_JUMP;
		by = sign_extend(field(op, 0, 26), 26);
	} else if ((op & 0xff000000) == 0x54000000 || (op & 0x7e000000) == 0x34000000) {
		ret->flow = FATHOM_FLOW_BRANCH; /* b.cond, cbz, cbnz */
		by = sign_extend(field(op, 5, 19), 19);
	} else if ((op & 0x7e000000) == 0x36000000) { /* tbz, tbnz */
		ret->flow = FATHOM_FLOW_BRANCH;
		by = sign_extend(field(op, 5, 14), 14);
	} else {
		ret->is_direct = false;
		if ((op & 0xffe00000) == 0xd4200000 || !(op >> 16)) /* brk, udf */
			ret->flow = FATHOM_FLOW_STOP;
		else if ((op & 0xfe000000) == 0xd6000000) /* to a register: blr, ret, br */
			ret->flow = field(op, 21, 2) == 1   ? FATHOM_FLOW_CALL
				    : field(op, 21, 4) == 2 ? FATHOM_FLOW_RETURN
							    : FATHOM_FLOW_JUMP;
	}
	ret->target = avma + (uint64_t)by * 4;
}

bool fathom_aarch64_slot(const uint8_t *code, uint64_t avma, uint64_t *ret)
{
	const uint32_t adrp = load_op(code);
	const uint32_t ldr = load_op(code + 4);
	const int64_t pages = sign_extend(field(adrp, 5, 19) << 2 | field(adrp, 29, 2), 21);

	/* adrp x16; ldr x17, [x16, #N]; add x16, x16, #N; br x17 */
	if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211 ||
	    load_op(code + 12) != 0xd61f0220)
		return false;
	*ret = (avma & ~UINT64_C(0xfff)) + ((uint64_t)pages << 12) + (field(ldr, 10, 12) << 3);
	return true;
}

/* Runs @code, which is @op, of @w; false at the end of the way. */
static bool run_flow(struct follower *f, struct way *w, const struct fathom_stack_code *code,
		     uint32_t op)
{
	switch (code->flow) {
	case FATHOM_FLOW_CALL:
		w->known &= ((BIT(LINK) - 1) & ~(BIT(FIRST_SAVED) - 1)) | BIT(SP);
		return true;
	case FATHOM_FLOW_BRANCH:
		lead_to(f, w, code->target);
		return true;
	case FATHOM_FLOW_JUMP:
		w->pc = code->target;
		if (!code->is_direct && (field(op, 5, 5) | 1) == 17) /* br x16, br x17 */
			reach_return(f, w, LINK);
		return code->is_direct;
	case FATHOM_FLOW_RETURN:
		/* retaa and retab name no register. */
		reach_return(f, w, field(op, 11, 1) ? LINK : field(op, 5, 5));
		return false;
	default:
		return false;
	}
}

/* Runs one instruction of @w; false at the end of the way. */
static bool run(struct follower *f, struct way *w)
{
	struct fathom_stack_code code;
	struct access a;
	uint8_t bytes[4];
	uint32_t op;

	for (size_t i = 0; i < f->n_followed; i++)
		if (f->followed[i] == w->pc)
			return false;
	if (f->n_followed == MAX_FOLLOWED) {
		f->has_failed = true;
		return false;
	}
	f->followed[f->n_followed++] = w->pc;
	if (!fathom_reader_read(f->m->code, w->pc, bytes, sizeof bytes))
		return false;
	op = load_op(bytes);
	fathom_aarch64_flow(bytes, w->pc, &code);
	w->pc += 4;
	if (code.flow != FATHOM_FLOW_NEXT)
		return run_flow(f, w, &code, op);
	if (decode_access(op, &a)) {
		run_access(f, w, &a);
		return true;
	}
	/* Whatever else this is, its result is in the lowest bits. */
	if (!run_arithmetic(w, op))
		set_general(w, field(op, 0, 5), 0, false);
	if ((op & 0xbe800000) == 0x0c800000) /* vectors, indexed */
		set(w, field(op, 5, 5), 0, false);
	return true;
}

/* Makes @r the caller's registers, which are those of @f->result. */
static void finish(const struct follower *f, const struct fathom_unwind_arch *arch,
		   struct fathom_registers *r)
{
	const struct way *w = &f->result;
	struct fathom_registers caller = { .machine = r->machine };

	for (uint8_t i = FIRST_SAVED; i < LINK; i++)
		if (is_known(w, i))
			fathom_register_set(&caller, i, w->value[i]);
	caller.pc = fathom_unwind_unsigned(arch, w->pc);
	caller.sp = w->value[SP];
	fathom_register_set(&caller, arch->pc, caller.pc);
	fathom_register_set(&caller, arch->sp, caller.sp);
	*r = caller;
}

enum fathom_stop fathom_follow_aarch64(const struct fathom_unwind_arch *arch,
				       const struct fathom_step_memory *m, uint64_t *cost,
				       struct fathom_registers *r)
{
	struct follower f;
	struct way w = { .pc = r->pc, .known = (uint32_t)r->known };

	f.m = m;
	f.has_failed = f.needs_register = f.has_return = false;
	f.n_followed = f.n_pending = 0;
	f.result.known = 0;
	f.result.pc = 0;
	memcpy(w.value, r->value, sizeof w.value);
	if (!is_known(&w, SP))
		return FATHOM_STOP_REGISTER;
	lead_to(&f, &w, r->pc);
	while (f.n_pending && !f.has_failed) {
		w = f.pending[--f.n_pending];
		while (!f.has_failed && run(&f, &w))
			;
	}
	*cost += f.n_followed;
	if (f.has_failed)
		return FATHOM_STOP_NO_RULE;
	if (!f.has_return)
		return f.needs_register ? FATHOM_STOP_REGISTER : FATHOM_STOP_NO_RULE;
	if (!f.result.pc)
		return FATHOM_STOP_NO_RULE;
	finish(&f, arch, r);
	return FATHOM_STOP_NONE;
}
