/* SPDX-License-Identifier: MIT */
/* The sizes of x86 instructions and where they lead (Intel SDM volume 2, 2.1 to 2.7, A.3, B.). */
#include "host/symbol/code_end.h"

#define MAX_SIZE 15

/* Bytes that follow an opcode, as bits. */
enum {
	M = 1,  /* ModRM and its operand */
	B = 2,  /* 1 byte */
	W = 4,  /* 2 bytes */
	Z = 8,  /* 4 bytes; 2 with a prefix 66 */
	V = 16, /* as Z, and 8 with REX.W */
	A = 32, /* an address */
	N = 64, /* not in 64-bit code */
	X = 128 /* no instruction, or one that is looked at alone */
};

static const uint8_t ONE_BYTE[256] = {
#define ARITHMETIC M, M, M, M, B, Z
	ARITHMETIC, N,     N,         ARITHMETIC, N,     X, /* 00 */
	ARITHMETIC, N,     N,         ARITHMETIC, N,     N, /* 10 */
	ARITHMETIC, X,     N,         ARITHMETIC, X,     N, /* 20 */
	ARITHMETIC, X,     N,         ARITHMETIC, X,     N, /* 30 */
	0,          0,     0,         0,          0,     0,     0,     0,
	0,          0,     0,         0,          0,     0,     0,     0, /* 40 */
	0,          0,     0,         0,          0,     0,     0,     0,
	0,          0,     0,         0,          0,     0,     0,     0, /* 50 */
	N,          N,     N | M,     M,          X,     X,     X,     X,
	Z,          M | Z, B,         M | B,      0,     0,     0,     0, /* 60 */
	B,          B,     B,         B,          B,     B,     B,     B,
	B,          B,     B,         B,          B,     B,     B,     B, /* 70 */
	M | B,      M | Z, N | M | B, M | B,      M,     M,     M,     M,
	M,          M,     M,         M,          M,     M,     M,     M, /* 80 */
	0,          0,     0,         0,          0,     0,     0,     0,
	0,          0,     N | Z | W, 0,          0,     0,     0,     0, /* 90 */
	A,          A,     A,         A,          0,     0,     0,     0,
	B,          Z,     0,         0,          0,     0,     0,     0, /* a0 */
	B,          B,     B,         B,          B,     B,     B,     B,
	V,          V,     V,         V,          V,     V,     V,     V, /* b0 */
	M | B,      M | B, W,         0,          N | M, N | M, M | B, M | Z,
	W | B,      0,     W,         0,          0,     B,     N,     0, /* c0 */
	M,          M,     M,         M,          N | B, N | B, N,     0,
	M,          M,     M,         M,          M,     M,     M,     M, /* d0 */
	B,          B,     B,         B,          B,     B,     B,     B,
	Z,          Z,     N | Z | W, B,          0,     0,     0,     0, /* e0 */
	X,          0,     X,         X,          0,     0,     M,     M,
	0,          0,     0,         0,          0,     0,     M,     M, /* f0 */
#undef ARITHMETIC
};

/* 0f and an opcode: a bit for each that has no ModRM, and for each with a byte after it. */
static const uint16_t ALONE[16] = { 0x4be0, 0, 0,      0xff, 0,      0, 0, 0x80,
				    0xffff, 0, 0x0707, 0,    0xff00, 0, 0, 0 };
static const uint16_t BYTE_BEHIND[16] = { 0x8000, 0, 0,      0,      0,    0, 0, 0x0f,
					  0,      0, 0x1010, 0x0400, 0x74, 0, 0, 0 };

struct decoding {
	struct fathom_bytes code;
	uint32_t at;
	uint8_t opcode;
	uint8_t map; /* 0: one byte; 1: 0f; 2: 0f 38; 3: 0f 3a; others of VEX, EVEX and XOP */
	uint8_t modrm;
	uint8_t behind; /* what stands after the opcode */
	bool is64;
	bool has_66;
	bool has_67;
	bool wide;
	bool is_vector; /* VEX, EVEX or XOP */
};

static uint8_t byte_at(const struct decoding *d, uint32_t at)
{
	return at < d->code.size ? d->code.data[at] : 0;
}

/* Reads one prefix; returns false if there is none. A REX counts in front of the opcode only. */
static bool read_prefix(struct decoding *d)
{
	const uint8_t byte = byte_at(d, d->at);

	if (d->is64 && (byte & 0xf0) == 0x40) {
		d->wide = byte & 8;
		d->at++;
		return true;
	}
	switch (byte) {
	case 0x66:
		d->has_66 = true;
		break;
	case 0x67:
		d->has_67 = true;
		break;
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x3e:
	case 0x64:
	case 0x65:
	case 0xf0:
	case 0xf2:
	case 0xf3:
		break;
	default:
		return false;
	}
	d->wide = false;
	d->at++;
	return true;
}

/* Reads a VEX, EVEX or XOP prefix; returns false if there is none. */
static bool read_vector_prefix(struct decoding *d)
{
	const uint8_t first = byte_at(d, d->at);
	const uint8_t second = byte_at(d, d->at + 1);

	if (first == 0x8f && (second & 0x1f) >= 8) {
		d->map = second & 0x1f;
		d->at += 3;
		return true;
	}
	/* In 32-bit code these are other instructions, whose operand is in memory. */
	if ((first != 0x62 && first != 0xc4 && first != 0xc5) || (!d->is64 && second < 0xc0))
		return false;
	d->map = first == 0xc5 ? 1 : first == 0xc4 ? second & 0x1f : second & 7;
	d->at += first == 0xc5 ? 2 : first == 0xc4 ? 3 : 4;
	return true;
}

static uint8_t behind_vector(const struct decoding *d)
{
	if (d->map == 1 && d->opcode == 0x77)
		return 0;
	if (d->map == 1)
		return BYTE_BEHIND[d->opcode >> 4] >> (d->opcode & 15) & 1 ? M | B : M;
	if (d->map == 3 || d->map == 8)
		return M | B;
	return d->map == 10 ? M | Z : M;
}

static uint8_t behind_0f(const struct decoding *d)
{
	const uint8_t row = d->opcode >> 4;
	const uint16_t bit = (uint16_t)(1u << (d->opcode & 15));

	if (row == 8)
		return Z;
	return (uint8_t)((ALONE[row] & bit ? 0 : M) | (BYTE_BEHIND[row] & bit ? B : 0));
}

static void read_opcode(struct decoding *d)
{
	d->is_vector = read_vector_prefix(d);
	d->opcode = byte_at(d, d->at++);
	if (d->is_vector) {
		d->behind = behind_vector(d);
		return;
	}
	d->behind = ONE_BYTE[d->opcode];
	if (d->opcode != 0x0f) {
		d->behind |= d->is64 && d->behind & N ? X : 0;
		return;
	}
	d->opcode = byte_at(d, d->at++);
	d->map = d->opcode == 0x38 ? 2 : d->opcode == 0x3a ? 3 : 1;
	d->behind = d->map == 2 ? M : d->map == 3 ? M | B : behind_0f(d);
	if (d->map > 1)
		d->opcode = byte_at(d, d->at++);
}

static void read_operand(struct decoding *d)
{
	const uint8_t modrm = d->modrm = byte_at(d, d->at++);
	const uint8_t mod = modrm >> 6;
	const uint8_t rm = modrm & 7;
	uint8_t base = rm;

	/* Of control and debug registers there is no operand in memory, whatever mod says. */
	if (mod == 3 || (d->map == 1 && !d->is_vector && (d->opcode & 0xfc) == 0x20))
		return;
	if (d->has_67 && !d->is64) {
		d->at += mod == 2 || (!mod && rm == 6) ? 2 : mod;
		return;
	}
	if (rm == 4)
		base = byte_at(d, d->at++) & 7;
	d->at += mod == 1 ? 1 : mod == 2 || base == 5 ? 4 : 0;
}

/* Returns the bytes of constants after the operand. */
static uint32_t constants_size(const struct decoding *d)
{
	const bool is_branch =
		d->map == 1 ? (d->opcode & 0xf0) == 0x80 : !d->map && (d->opcode & 0xfe) == 0xe8;
	const bool is_short = d->has_66 && !(d->is_vector || (is_branch && d->is64));
	uint8_t behind = d->behind;
	uint32_t size = 0;

	/* test: the other operations of these opcodes have no constant. */
	if (!d->map && !d->is_vector && (d->opcode & 0xfe) == 0xf6 && !(d->modrm & 0x30))
		behind |= d->opcode == 0xf6 ? B : Z;
	size += behind & B ? 1 : 0;
	size += behind & W ? 2 : 0;
	if (behind & V && d->wide)
		return size + 8;
	if (behind & (Z | V))
		size += is_short && !d->wide ? 2 : 4;
	if (behind & A)
		size += d->is64 ? (d->has_67 ? 4 : 8) : (d->has_67 ? 2 : 4);
	return size;
}

static uint8_t flow_of_one_byte(const struct decoding *d)
{
	const uint8_t operation = d->modrm >> 3 & 7;

	switch (d->opcode) {
	case 0xe0: /* loop, jcxz */
	case 0xe1:
	case 0xe2:
	case 0xe3:
		return FATHOM_STEP_BRANCH;
	case 0x9a: /* call far */
	case 0xe8:
		return FATHOM_STEP_CALL;
	case 0xe9:
	case 0xeb:
		return FATHOM_STEP_JUMP;
	case 0xc2: /* ret, iret, int3, jmp far, hlt */
	case 0xc3:
	case 0xca:
	case 0xcb:
	case 0xcc:
	case 0xcf:
	case 0xea:
	case 0xf4:
		return FATHOM_STEP_END;
	case 0xff:
		if (operation == 4 || operation == 5)
			return FATHOM_STEP_END;
		return operation == 2 || operation == 3 ? FATHOM_STEP_CALL : FATHOM_STEP_NEXT;
	default:
		return d->opcode >> 4 == 7 ? FATHOM_STEP_BRANCH : FATHOM_STEP_NEXT;
	}
}

static uint8_t flow_of(const struct decoding *d)
{
	if (d->is_vector)
		return FATHOM_STEP_NEXT;
	if (!d->map)
		return flow_of_one_byte(d);
	if (d->map > 1)
		return FATHOM_STEP_NEXT;
	switch (d->opcode) {
	case 0x07: /* sysret, sysexit, ud2, ud1, ud0 */
	case 0x35:
	case 0x0b:
	case 0xb9:
	case 0xff:
		return FATHOM_STEP_END;
	default:
		return d->opcode >> 4 == 8 ? FATHOM_STEP_BRANCH : FATHOM_STEP_NEXT;
	}
}

/* Reads the distance of a direct branch, which is its last constant. */
static int64_t distance_of(const struct decoding *d, uint32_t size)
{
	const uint8_t *end = d->code.data + d->at;
	uint32_t value = 0;

	for (uint32_t i = 0; i < size; i++)
		value |= (uint32_t)end[(int64_t)i - size] << 8 * i;
	return size == 1 ? (int8_t)value : size == 2 ? (int16_t)value : (int32_t)value;
}

struct fathom_code_step fathom_x86_step(struct fathom_bytes code, bool is64)
{
	struct decoding d = { .code = code, .is64 = is64 };
	struct fathom_code_step step = { 0 };
	uint32_t size;

	while (d.at < MAX_SIZE && read_prefix(&d))
		;
	read_opcode(&d);
	if (d.behind & X)
		return step;
	if (d.behind & M)
		read_operand(&d);
	size = constants_size(&d);
	d.at += size;
	if (d.at > MAX_SIZE || d.at > code.size)
		return step;
	step.size = (uint8_t)d.at;
	step.flow = flow_of(&d);
	/* In 32-bit code a prefix 66 cuts the address of the target to 16 bits. */
	step.has_target = (is64 || !d.has_66) && step.flow != FATHOM_STEP_NEXT &&
			  step.flow != FATHOM_STEP_END && !(d.behind & (M | W)) && size;
	if (step.has_target)
		step.distance = distance_of(&d, size);
	return step;
}
