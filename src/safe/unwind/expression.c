/* SPDX-License-Identifier: MIT */
#include "safe/unwind/expression.h"

#include "safe/dwarf/dwarf.h"

/*
 * An expression that is being evaluated. A pop from an empty stack, or any other failure, sticks.
 */
struct machine {
	const struct fathom_expression_frame *f;
	struct fathom_bytes code;
	struct fathom_cursor c;
	unsigned bits; /* of a value */
	unsigned n;
	uint64_t stack[FATHOM_EXPRESSION_DEPTH];
	enum fathom_stop stop;
};

static void fail(struct machine *m, enum fathom_stop why)
{
	if (!m->stop)
		m->stop = why;
}

static uint64_t truncate(const struct machine *m, uint64_t value)
{
	return m->bits == 64 ? value : value & ((UINT64_C(1) << m->bits) - 1);
}

/* Returns @value, of the machine's width, with its sign. */
static int64_t with_sign(const struct machine *m, uint64_t value)
{
	return m->bits == 64 ? (int64_t)value : (int64_t)(int32_t)value;
}

static void push(struct machine *m, uint64_t value)
{
	if (m->n == FATHOM_EXPRESSION_DEPTH)
		fail(m, FATHOM_STOP_NO_RULE);
	else
		m->stack[m->n++] = truncate(m, value);
}

static uint64_t pop(struct machine *m)
{
	if (m->n)
		return m->stack[--m->n];
	fail(m, FATHOM_STOP_NO_RULE);
	return 0;
}

/* Pushes the value that has @depth others above it. */
static void pick(struct machine *m, uint64_t depth)
{
	if (depth < m->n)
		push(m, m->stack[m->n - 1 - depth]);
	else
		fail(m, FATHOM_STOP_NO_RULE);
}

/* Moves the topmost of @n values below the others. */
static void rotate(struct machine *m, unsigned n)
{
	uint64_t top;

	if (m->n < n) {
		fail(m, FATHOM_STOP_NO_RULE);
		return;
	}
	top = m->stack[m->n - 1];
	for (unsigned i = m->n - 1; i > m->n - n; i--)
		m->stack[i] = m->stack[i - 1];
	m->stack[m->n - n] = top;
}

static void push_register(struct machine *m, uint64_t number, int64_t offset)
{
	if (number >= m->f->arch->n)
		fail(m, FATHOM_STOP_NO_RULE);
	else if (!fathom_register_known(m->f->registers, number))
		fail(m, FATHOM_STOP_REGISTER);
	else
		push(m, m->f->registers->value[number] + (uint64_t)offset);
}

/* Pushes the @size bytes at the address that is popped. */
static void dereference(struct machine *m, uint8_t size)
{
	const uint64_t avma = pop(m);
	uint8_t bytes[8];
	struct fathom_cursor c = cur_init((struct fathom_bytes){ bytes, size }, m->f->swap);

	if (m->stop)
		return;
	if (size > m->bits / 8 || (size != 1 && size != 2 && size != 4 && size != 8))
		fail(m, FATHOM_STOP_NO_RULE);
	else if (!fathom_reader_read(m->f->memory, avma, bytes, size))
		fail(m, FATHOM_STOP_UNREADABLE);
	else
		push(m, cur_uint(&c, size));
}

/* Moves the next operation by @delta bytes; it may be the expression's end. */
static void jump(struct machine *m, int16_t delta)
{
	const uint64_t at = (uint64_t)(m->c.p - m->code.data) + (uint64_t)(int64_t)delta;

	if (at > m->code.size)
		fail(m, FATHOM_STOP_NO_RULE);
	else
		m->c.p = m->code.data + at;
}

static uint64_t divide(struct machine *m, uint64_t a, uint64_t b)
{
	if (!b)
		fail(m, FATHOM_STOP_NO_RULE);
	if (!b || with_sign(m, b) == -1) /* the least number / -1 has no other result */
		return -a;
	return (uint64_t)(with_sign(m, a) / with_sign(m, b));
}

static uint64_t modulo(struct machine *m, uint64_t a, uint64_t b)
{
	if (b)
		return a % b;
	fail(m, FATHOM_STOP_NO_RULE);
	return 0;
}

/* Shifts to the right, by any number of bits; @fill is what comes in. */
static uint64_t shift_right(const struct machine *m, uint64_t a, uint64_t by, bool with_its_sign)
{
	const int64_t value = with_sign(m, a);

	if (with_its_sign)
		return (uint64_t)(value >> (by < 63 ? by : 63));
	return by < m->bits ? a >> by : 0;
}

/* Runs an operation on the two topmost values: @a below @b. */
static void run_binary(struct machine *m, uint8_t op, uint64_t a, uint64_t b)
{
	const int64_t sa = with_sign(m, a);
	const int64_t sb = with_sign(m, b);

	switch (op) {
	case DW_OP_and:
		push(m, a & b);
		break;
	case DW_OP_div:
		push(m, divide(m, a, b));
		break;
	case DW_OP_minus:
		push(m, a - b);
		break;
	case DW_OP_mod:
		push(m, modulo(m, a, b));
		break;
	case DW_OP_mul:
		push(m, a * b);
		break;
	case DW_OP_or:
		push(m, a | b);
		break;
	case DW_OP_plus:
		push(m, a + b);
		break;
	case DW_OP_shl:
		push(m, b < m->bits ? a << b : 0);
		break;
	case DW_OP_shr:
		push(m, shift_right(m, a, b, false));
		break;
	case DW_OP_shra:
		push(m, shift_right(m, a, b, true));
		break;
	case DW_OP_xor:
		push(m, a ^ b);
		break;
	case DW_OP_eq:
		push(m, sa == sb);
		break;
	case DW_OP_ge:
		push(m, sa >= sb);
		break;
	case DW_OP_gt:
		push(m, sa > sb);
		break;
	case DW_OP_le:
		push(m, sa <= sb);
		break;
	case DW_OP_lt:
		push(m, sa < sb);
		break;
	case DW_OP_ne:
		push(m, sa != sb);
		break;
	default:
		fail(m, FATHOM_STOP_NO_RULE);
	}
}

/* Runs an operation that pushes its operand; returns false if @op is none. */
static bool run_constant(struct machine *m, uint8_t op)
{
	struct fathom_cursor *c = &m->c;

	switch (op) {
	case DW_OP_addr:
		push(m, cur_uint(c, m->bits / 8) + m->f->bias);
		return true;
	case DW_OP_const1u:
		push(m, cur_u8(c));
		return true;
	case DW_OP_const1s:
		push(m, (uint64_t)(int8_t)cur_u8(c));
		return true;
	case DW_OP_const2u:
		push(m, cur_u16(c));
		return true;
	case DW_OP_const2s:
		push(m, (uint64_t)(int16_t)cur_u16(c));
		return true;
	case DW_OP_const4u:
		push(m, cur_u32(c));
		return true;
	case DW_OP_const4s:
		push(m, (uint64_t)(int32_t)cur_u32(c));
		return true;
	case DW_OP_const8u:
	case DW_OP_const8s:
		push(m, cur_u64(c));
		return true;
	case DW_OP_constu:
		push(m, cur_uleb(c));
		return true;
	case DW_OP_consts:
		push(m, (uint64_t)cur_sleb(c));
		return true;
	default:
		return false;
	}
}

/* Runs an operation on the stack, the topmost value or the flow; returns false if @op is none. */
static bool run_unary(struct machine *m, uint8_t op)
{
	uint64_t a;
	int16_t delta;

	switch (op) {
	case DW_OP_nop:
		return true;
	case DW_OP_dup:
		pick(m, 0);
		return true;
	case DW_OP_drop:
		(void)pop(m);
		return true;
	case DW_OP_over:
		pick(m, 1);
		return true;
	case DW_OP_pick:
		pick(m, cur_u8(&m->c));
		return true;
	case DW_OP_swap:
		rotate(m, 2);
		return true;
	case DW_OP_rot:
		rotate(m, 3);
		return true;
	case DW_OP_deref:
		dereference(m, (uint8_t)(m->bits / 8));
		return true;
	case DW_OP_deref_size:
		dereference(m, cur_u8(&m->c));
		return true;
	case DW_OP_abs:
		a = pop(m);
		push(m, with_sign(m, a) < 0 ? -a : a);
		return true;
	case DW_OP_neg:
		push(m, -pop(m));
		return true;
	case DW_OP_not:
		push(m, ~pop(m));
		return true;
	case DW_OP_plus_uconst:
		a = cur_uleb(&m->c);
		push(m, pop(m) + a);
		return true;
	case DW_OP_skip:
		jump(m, (int16_t)cur_u16(&m->c));
		return true;
	case DW_OP_bra:
		delta = (int16_t)cur_u16(&m->c);
		if (pop(m))
			jump(m, delta);
		return true;
	default:
		return false;
	}
}

static void run(struct machine *m, uint8_t op)
{
	uint64_t a;
	uint64_t b;

	if (op >= DW_OP_lit0 && op <= DW_OP_lit31) {
		push(m, op - DW_OP_lit0);
	} else if (op >= DW_OP_breg0 && op <= DW_OP_breg31) {
		push_register(m, op - DW_OP_breg0, cur_sleb(&m->c));
	} else if (op == DW_OP_bregx) {
		a = cur_uleb(&m->c);
		push_register(m, a, cur_sleb(&m->c));
	} else if (!run_constant(m, op) && !run_unary(m, op)) {
		b = pop(m);
		a = pop(m);
		run_binary(m, op, a, b);
	}
}

enum fathom_stop fathom_expression_run(const struct fathom_expression_frame *f,
				       struct fathom_bytes expression, uint64_t *ret)
{
	struct machine m;

	m.f = f;
	m.code = expression;
	m.c = cur_init(expression, f->swap);
	m.bits = 8u * f->arch->word;
	m.n = 0;
	m.stop = FATHOM_STOP_NONE;
	if (f->has_initial)
		push(&m, f->initial);
	for (unsigned steps = 0; cur_left(&m.c) && !m.stop; steps++) {
		if (steps == FATHOM_EXPRESSION_STEPS)
			return FATHOM_STOP_NO_RULE;
		run(&m, cur_u8(&m.c));
		if (!cur_ok(&m.c)) /* cut off: what it did with zeros does not count */
			return FATHOM_STOP_NO_RULE;
	}
	if (!m.stop && !m.n)
		return FATHOM_STOP_NO_RULE;
	if (!m.stop)
		*ret = m.stack[m.n - 1];
	return m.stop;
}
