/* SPDX-License-Identifier: MIT */
#include "host/stack/follow_code.h"

#include <elf.h>
#include <stdlib.h>

#include "host/disasm/code.h"
#include "host/stack/follow_aarch64.h"
#include "safe/base/limits.h"

/* Registers, and numbers of two in encodings. */
enum { REGISTERS = 16, SP = 4, FP = 5 };

#define BIT(i) (UINT32_C(1) << (i))

/* DWARF numbers of the registers, by their numbers in encodings. Those of i386 are the same. */
static const uint8_t dwarf_x86_64[REGISTERS] = { 0, 2, 1,  3,  7,  6,  4,  5,
						 8, 9, 10, 11, 12, 13, 14, 15 };

/* The largest alignment of a stack that is followed, in bytes. */
#define MAX_ALIGNMENT 4096

/* A word that is known, or not. */
struct word {
	uint64_t value;
	bool known;
};

/*
 * A word of the stack that was stored on a way. Each knows what was stored before it: ways share
 * their past.
 */
struct store {
	uint64_t at; /* a multiple of a word */
	struct word word;
	uint16_t before; /* 0: none */
	uint16_t depth;  /* stores up to this one */
};

/* Bits of state.calls: whether calls on the way found the stack aligned. */
enum { CALL_ALIGNED = 1, CALL_MISALIGNED = 2 };

/* The state before an instruction, on all ways to it. */
struct state {
	uint64_t pc;
	uint64_t value[REGISTERS];
	uint64_t highest_call; /* the highest stack pointer at a call; 0: there was no call */
	uint32_t known;        /* bit i: value[i] is known */
	uint32_t gap;          /* see struct fathom_depth */
	uint16_t stores;       /* the last one */
	uint8_t calls;
	bool is_pending; /* to be followed */
};

/* Pieces of code that are kept, and the bytes of each: both powers of two. */
enum { PIECES = 4, PIECE = 1024 };

struct piece {
	uint64_t start;
	size_t size;
	uint8_t bytes[PIECE];
};

/* Places of the hash table of states; a power of two, so that half of them stay free. */
enum { PLACES = 4096 };

_Static_assert(PLACES >= 2 * FATHOM_MAX_FOLLOWED, "the table of states would become full");
_Static_assert(FATHOM_MAX_FOLLOW_STORES < UINT16_MAX, "stores are numbered in 16 bits");

/* Instructions that are kept decoded; a power of two. Hot code is where many samples are. */
enum { DECODED = 1024 };

/* An instruction that was decoded, with all bytes that were looked at. */
struct decoded {
	uint64_t pc;
	struct fathom_stack_code code;
	uint8_t size; /* 0: there is none */
	uint8_t bytes[FATHOM_MAX_INSN];
};

struct fathom_follower {
	const struct fathom_unwind_arch *arch;
	struct fathom_code_decoder *decoder;
	bool is_opened; /* it was tried; decoder is NULL if in vain */
	uint64_t cost;  /* of this stack, in steps */
	/* the code that is being followed */
	const struct fathom_step_memory *memory;
	uint64_t start; /* pc and stack pointer where it begins */
	uint64_t start_sp;
	uint64_t lowest; /* of the stack that holds something */
	size_t n_states;
	size_t n_pending;
	size_t n_stores;
	size_t steps;
	size_t looks;
	bool is_straight;             /* code that branches or calls is not followed */
	struct fathom_depths *depths; /* to be found; NULL: a return is looked for */
	uint64_t target;              /* the pc at which they are looked for */
	bool has_failed;              /* two ways disagree, or a limit was met */
	bool needs_register;          /* a way ended at an unknown register */
	bool has_return;              /* a return was reached: result holds what all agree on */
	struct state result;
	uint64_t taken;          /* bytes that the return takes, with the address */
	uint16_t places[PLACES]; /* numbers of states, from 1 */
	uint16_t pending[FATHOM_MAX_FOLLOW_PENDING];
	struct piece pieces[PIECES];
	struct store stores[FATHOM_MAX_FOLLOW_STORES + 1]; /* [0] is none */
	struct state states[FATHOM_MAX_FOLLOWED];
	struct decoded decoded[DECODED];
};

fathom_err fathom_follower_create(const struct fathom_unwind_arch *arch,
				  struct fathom_follower **ret, struct fathom_errinfo *reterr)
{
	struct fathom_follower *f = calloc(1, sizeof *f);

	if (!f)
		return fathom_fail_memory(reterr);
	f->arch = arch;
	*ret = f;
	return FATHOM_OK;
}

void fathom_follower_destroy(struct fathom_follower *f)
{
	if (!f)
		return;
	if (f->decoder)
		f->decoder->close(f->decoder);
	free(f);
}

void fathom_follower_begin(struct fathom_follower *f)
{
	f->cost = 0;
}

static bool open_decoder(struct fathom_follower *f)
{
	const uint32_t machine = f->arch->machine;

	if (!f->is_opened && (machine == EM_X86_64 || machine == EM_386) &&
	    fathom_x86_open(machine == EM_X86_64, false, &f->decoder, NULL))
		f->decoder = NULL;
	f->is_opened = true;
	return f->decoder;
}

const struct fathom_stack_code *fathom_follower_decode(struct fathom_follower *f,
						       struct fathom_bytes bytes, uint64_t pc)
{
	struct decoded *d = &f->decoded[(pc * UINT64_C(0x9e3779b97f4a7c15) >> 54) % DECODED];
	const uint8_t size = bytes.size < FATHOM_MAX_INSN ? (uint8_t)bytes.size : FATHOM_MAX_INSN;

	if (!size || !open_decoder(f))
		return NULL;
	if (d->pc == pc && d->size == size && memcmp(d->bytes, bytes.data, size) == 0)
		return &d->code;
	d->pc = pc;
	d->size = size;
	memcpy(d->bytes, bytes.data, size);
	f->decoder->decode_stack(f->decoder, bytes, pc, &d->code);
	return &d->code;
}

/* Returns @address as the machine has it. */
static uint64_t wrap(const struct fathom_follower *f, uint64_t address)
{
	return f->arch->word == 4 ? (uint32_t)address : address;
}

/* Returns the bytes of code at @pc, FATHOM_MAX_INSN or fewer; empty: not readable. */
static struct fathom_bytes read_code(struct fathom_follower *f, uint64_t pc)
{
	const uint64_t page = pc & ~(uint64_t)(PIECE - 1);
	struct piece *p = &f->pieces[pc / PIECE % PIECES];
	struct fathom_bytes b;

	if (pc - p->start >= p->size) {
		p->start = page;
		p->size = f->memory->code->read(f->memory->code->data, page, p->bytes, PIECE);
	}
	/* An instruction that goes on in the next piece, or code that begins within this one. */
	if (pc - p->start >= p->size || p->size - (pc - p->start) < FATHOM_MAX_INSN) {
		p->start = pc;
		p->size =
			f->memory->code->read(f->memory->code->data, pc, p->bytes, FATHOM_MAX_INSN);
	}
	b = (struct fathom_bytes){ p->bytes + (pc - p->start), p->size - (pc - p->start) };
	return bytes_slice(b, 0, b.size < FATHOM_MAX_INSN ? b.size : FATHOM_MAX_INSN);
}

/* Returns the last store up to @number of the word at @at; 0: none. */
static uint16_t find_store(struct fathom_follower *f, uint16_t number, uint64_t at)
{
	for (uint16_t i = number; i; i = f->stores[i].before) {
		if (f->stores[i].at == at)
			return i;
		if (++f->looks > FATHOM_MAX_FOLLOW_LOOKS) {
			f->has_failed = true;
			return 0;
		}
	}
	return 0;
}

/* Returns whether a word at @at may be a part of the frame, or of what is below it. */
static bool is_in_frame(const struct fathom_follower *f, uint64_t at)
{
	return at % f->arch->word == 0 &&
	       at - (f->start_sp - FATHOM_MAX_FOLLOW_FRAME) < 2 * FATHOM_MAX_FOLLOW_FRAME;
}

/* Returns the word at @at of the stack as it is after store @number. */
static struct word load(struct fathom_follower *f, uint16_t number, uint64_t at)
{
	struct word w = { .known = false };
	uint16_t i;

	if (!is_in_frame(f, at))
		return w;
	i = find_store(f, number, at);
	if (i)
		return f->stores[i].word;
	if (f->depths) /* of no stack that is there */
		return w;
	if (at - f->lowest < FATHOM_MAX_FOLLOW_FRAME)
		w.known = fathom_reader_uint(f->memory->stack, at, f->arch->word, f->memory->swap,
					     &w.value);
	return w;
}

static bool is_same(struct word a, struct word b)
{
	return a.known == b.known && (!a.known || a.value == b.value);
}

/* Stores the word at @at on the way of @s. */
static void store_word(struct fathom_follower *f, struct state *s, uint64_t at, struct word word)
{
	const uint16_t i = is_in_frame(f, at) ? find_store(f, s->stores, at) : 0;

	if (!is_in_frame(f, at) || (i && is_same(f->stores[i].word, word)))
		return;
	if (f->n_stores == FATHOM_MAX_FOLLOW_STORES) {
		f->has_failed = true;
		return;
	}
	f->stores[++f->n_stores] =
		(struct store){ .at = at,
				.word = word,
				.before = s->stores,
				.depth = (uint16_t)(f->stores[s->stores].depth + 1) };
	s->stores = (uint16_t)f->n_stores;
}

/* Stores @size bytes at @at on the way of @s; they are @word if they are one. */
static void store(struct fathom_follower *f, struct state *s, uint64_t at, uint64_t size,
		  struct word word)
{
	const uint64_t mask = f->arch->word - 1u;
	const uint64_t end = at + size;

	word.known = word.known && !(at & mask) && size == f->arch->word;
	for (at &= ~mask; end - at - 1 < size + mask; at += f->arch->word)
		store_word(f, s, at, word);
}

static struct word get(const struct state *s, uint8_t reg)
{
	struct word w = { .known = false };

	if (reg < REGISTERS && (s->known & BIT(reg)))
		w = (struct word){ s->value[reg], true };
	return w;
}

static void set(struct state *s, uint8_t reg, struct word w)
{
	if (reg >= REGISTERS)
		return;
	s->known &= ~BIT(reg);
	s->known |= w.known ? BIT(reg) : 0;
	s->value[reg] = w.value;
}

/* Forgets in @to the word of store @number if it is not the same after store @other. */
static void join_store(struct fathom_follower *f, struct state *to, uint16_t number, uint16_t other)
{
	const uint64_t at = f->stores[number].at;
	const struct word w = load(f, to->stores, at);

	if (w.known && !is_same(w, load(f, other, at)))
		store_word(f, to, at, (struct word){ .known = false });
}

/* Forgets in @to what is stored otherwise on the way that leads to store @other. */
static void join_stores(struct fathom_follower *f, struct state *to, uint16_t other)
{
	const uint16_t own = to->stores;
	uint16_t a = own;
	uint16_t b = other;

	while (a != b) {
		if (f->stores[a].depth >= f->stores[b].depth)
			a = f->stores[a].before;
		else
			b = f->stores[b].before;
	}
	for (uint16_t i = own; i != a && !f->has_failed; i = f->stores[i].before)
		join_store(f, to, i, other);
	for (uint16_t i = other; i != b && !f->has_failed; i = f->stores[i].before)
		join_store(f, to, i, other);
}

/* Forgets in @to what is not so in @from; returns whether @to has changed. */
static bool join(struct fathom_follower *f, struct state *to, const struct state *from)
{
	const struct state before = *to;

	for (uint8_t i = 0; i < REGISTERS; i++)
		if (!is_same(get(to, i), get(from, i)))
			to->known &= ~BIT(i);
	to->calls |= from->calls;
	if (from->highest_call > to->highest_call)
		to->highest_call = from->highest_call;
	join_stores(f, to, from->stores);
	return to->known != before.known || to->calls != before.calls ||
	       to->highest_call != before.highest_call || to->stores != before.stores;
}

/*
 * Returns whether @a, at @pc, is the state that @b leads to. Where depths are looked for, a call
 * that does not return may seem to lead on with another stack pointer.
 */
static bool is_place_of(const struct fathom_follower *f, const struct state *a, uint64_t pc,
			const struct state *b)
{
	return a->pc == pc && (!f->depths || (a->value[SP] == b->value[SP] && a->gap == b->gap));
}

/* Returns the place of the state at @pc to which @s leads, or the free place for it. */
static uint16_t *find_place(struct fathom_follower *f, uint64_t pc, const struct state *s)
{
	size_t i = (size_t)(pc * UINT64_C(0x9e3779b97f4a7c15) >> 52);

	while (f->places[i] && !is_place_of(f, &f->states[f->places[i] - 1], pc, s))
		i = (i + 1) % PLACES;
	return &f->places[i];
}

/* Notes that a way leads on to @pc with the registers of @s. */
static void lead_to(struct fathom_follower *f, uint64_t pc, const struct state *s)
{
	uint16_t *place = find_place(f, pc, s);
	struct state *to = *place ? &f->states[*place - 1] : &f->states[f->n_states];

	if (*place) {
		if (to->value[SP] != s->value[SP])
			f->has_failed = true;
		if (f->has_failed || !join(f, to, s) || to->is_pending)
			return;
	} else if (f->n_states == FATHOM_MAX_FOLLOWED) {
		f->has_failed = true;
		return;
	} else {
		*to = *s;
		to->pc = pc;
		*place = (uint16_t)++f->n_states;
	}
	if (f->n_pending == FATHOM_MAX_FOLLOW_PENDING) {
		f->has_failed |= !f->depths;
		return;
	}
	to->is_pending = true;
	f->pending[f->n_pending++] = (uint16_t)(*place - 1);
}

/* Takes pending state @i, of f->n_pending + 1, out; returns its number. */
static uint16_t remove_pending(struct fathom_follower *f, size_t i)
{
	const uint16_t state = f->pending[i];

	memmove(f->pending + i, f->pending + i + 1, (f->n_pending - i) * sizeof *f->pending);
	return state;
}

/* Returns the number in encodings of the register with DWARF number @number; REGISTERS: none. */
static uint8_t find_register(const struct fathom_follower *f, uint8_t number)
{
	uint8_t i = 0;

	if (f->arch->word == 4)
		return number < 8 ? number : REGISTERS;
	while (i < REGISTERS && dwarf_x86_64[i] != number)
		i++;
	return i;
}

/* Sets the stack pointer from another register; false if that cannot be so. */
static bool set_sp(struct fathom_follower *f, struct state *s, struct word w)
{
	if (!w.known)
		f->needs_register = true;
	/* Frames end above what they hold. */
	if (!w.known || w.value < s->value[SP])
		return false;
	set(s, SP, w);
	return true;
}

static void push(struct fathom_follower *f, struct state *s, uint16_t size, struct word w)
{
	s->value[SP] = wrap(f, s->value[SP] - size);
	store(f, s, s->value[SP], size, w);
}

static bool leave(struct fathom_follower *f, struct state *s)
{
	if (!set_sp(f, s, get(s, FP)))
		return false;
	set(s, FP, load(f, s->stores, s->value[SP]));
	s->value[SP] = wrap(f, s->value[SP] + f->arch->word);
	return true;
}

/* Does what @c does to @s; false if the way tells nothing from here on. */
static bool move(struct fathom_follower *f, const struct fathom_stack_code *c, struct state *s)
{
	const struct word unknown = { .known = false };
	struct word w = get(s, c->base);

	w.value = wrap(f, w.value + c->value);
	switch (c->move) {
	case FATHOM_MOVE_COPY:
		if (c->reg == SP && c->base != SP)
			return set_sp(f, s, w);
		set(s, c->reg, w);
		return true;
	case FATHOM_MOVE_LOAD:
		set(s, c->reg, w.known ? load(f, s->stores, w.value) : unknown);
		return c->reg != SP;
	case FATHOM_MOVE_STORE:
		if (w.known)
			store(f, s, w.value, c->width, get(s, c->reg));
		return true;
	case FATHOM_MOVE_PUSH:
		push(f, s, c->width, get(s, c->reg));
		return true;
	case FATHOM_MOVE_POP:
		set(s, c->reg, load(f, s->stores, s->value[SP]));
		s->value[SP] = wrap(f, s->value[SP] + c->width);
		/* The address of what is popped to is computed afterwards. */
		w = get(s, c->base);
		if (w.known)
			store(f, s, wrap(f, w.value + c->value), c->width, unknown);
		return true;
	case FATHOM_MOVE_LEAVE:
		return leave(f, s);
	case FATHOM_MOVE_ENTER:
		push(f, s, f->arch->word, get(s, FP));
		set(s, FP, get(s, SP));
		s->value[SP] = wrap(f, s->value[SP] - c->value);
		return true;
	default:
		return true;
	}
}

/* Makes the registers of @mask, by their numbers in encodings, unknown. */
static void forget(struct state *s, uint32_t mask)
{
	s->known &= ~(mask & ~BIT(SP));
}

static void note_call(const struct fathom_follower *f, struct state *s)
{
	const uint64_t sp = s->value[SP];

	if (sp > s->highest_call)
		s->highest_call = sp;
	s->calls |= sp % 16 ? CALL_MISALIGNED : CALL_ALIGNED;
	forget(s, f->decoder->clobbered);
}

/* Returns the register that the function at @pc sets to its return address: i386's "pc thunk". */
static uint8_t find_pc_thunk(struct fathom_follower *f, uint64_t pc)
{
	const struct fathom_bytes b = read_code(f, pc);

	/* mov (%esp),%reg; ret */
	if (f->arch->word == 4 && b.size >= 4 && b.data[0] == 0x8b && (b.data[1] & 0xc7) == 0x04 &&
	    b.data[2] == 0x24 && b.data[3] == 0xc3)
		return b.data[1] >> 3;
	return FATHOM_NO_REGISTER;
}

static void call(struct fathom_follower *f, const struct fathom_stack_code *c, struct state *s,
		 uint64_t next)
{
	const struct word here = { next, true };
	uint8_t thunk;

	if (c->is_direct && c->target == next) {
		push(f, s, f->arch->word, here); /* position-independent code asks where it is */
		return;
	}
	thunk = c->is_direct ? find_pc_thunk(f, c->target) : FATHOM_NO_REGISTER;
	if (thunk == FATHOM_NO_REGISTER)
		note_call(f, s);
	else if (thunk != SP)
		set(s, thunk, here);
}

/*
 * Returns whether the address by which a function returns can be where the stack pointer of @s is:
 * above its calls, and not pushed by itself. The way may have left its function by a call that does
 * not return: then what follows is another one, which returns to where that call would have.
 */
static bool is_return_place(struct fathom_follower *f, const struct state *s)
{
	const uint64_t sp = s->value[SP];
	const uint8_t word = f->arch->word;

	if (sp < f->start_sp || sp % word || (s->calls && sp < s->highest_call) ||
	    find_store(f, s->stores, sp))
		return false;
	/*
	 * A function that has no frame calls where its return address is on top. The stack is not
	 * aligned then: compilers do that for functions that they know do not need it.
	 */
	if (s->calls && sp == s->highest_call)
		return s->calls == CALL_MISALIGNED && word == 8 && sp == f->start_sp;
	/* Where it begins is above calls only if what it pushed first is gone again. */
	if (s->calls == CALL_ALIGNED)
		return (sp + word) % 16 == 0 || (sp == f->start_sp && word == 8);
	/* Some functions of i386 take arguments from the stack: the sum is wrong after one. */
	return s->calls != (CALL_ALIGNED | CALL_MISALIGNED) || word == 8;
}

static void reach_return(struct fathom_follower *f, const struct fathom_stack_code *c,
			 const struct state *s)
{
	const uint64_t taken = f->arch->word + c->value;

	if (f->depths || !is_return_place(f, s))
		return;
	if (!f->has_return) {
		f->result = *s;
		f->taken = taken;
		f->has_return = true;
		return;
	}
	if (f->result.value[SP] != s->value[SP] || f->taken != taken)
		f->has_failed = true;
	for (uint8_t i = 0; i < REGISTERS; i++)
		if (!is_same(get(&f->result, i), get(s, i)))
			f->result.known &= ~BIT(i);
}

/* Notes the depth of @s if it is at the target; returns whether it is. */
static bool reach_target(struct fathom_follower *f, const struct state *s)
{
	struct fathom_depths *d = f->depths;
	const uint8_t reg = find_register(f, d->number);
	struct fathom_depth found = { .gap = s->gap };

	if (s->pc != f->target)
		return false;
	if (reg == REGISTERS || !get(s, reg).known)
		return true;
	found.distance = wrap(f, s->value[reg] - s->value[SP]);
	for (uint8_t i = 0; i < d->n; i++)
		if (d->items[i].distance == found.distance && d->items[i].gap == found.gap)
			return true;
	if (d->n < FATHOM_MAX_DEPTHS)
		d->items[d->n++] = found;
	else
		d->is_cut = true;
	return true;
}

/*
 * Returns the size of the instruction @b if it realigns the stack, to *@ret bytes; 0: it does not.
 */
static size_t aligning_size(const struct fathom_follower *f, struct fathom_bytes b, uint32_t *ret)
{
	const size_t rex = f->arch->word == 8;
	const uint8_t *c = b.data + rex;
	int32_t mask;

	/* mov $0,%spl, as gcc aligns to 256 bytes */
	*ret = 256;
	if (b.size >= 3 && rex && b.data[0] == 0x40 && b.data[1] == 0xb4 && !b.data[2])
		return 3;
	/* and $mask,%rsp */
	if (b.size < rex + 6 || (rex && b.data[0] != 0x48) || c[1] != 0xe4 ||
	    (c[0] != 0x83 && c[0] != 0x81))
		return 0;
	mask = c[0] == 0x83 ? (int8_t)c[2] : (int32_t)load_u32(c + 2, f->memory->swap);
	*ret = 0 - (uint32_t)mask;
	if (mask >= 0 || mask < -MAX_ALIGNMENT || (*ret & (*ret - 1)))
		return 0;
	return rex + (c[0] == 0x83 ? 3 : 6);
}

/*
 * Follows an instruction that realigns the stack, and returns whether it is one. How far it goes is
 * not known: not at all, in what follows.
 */
static bool align(struct fathom_follower *f, struct fathom_bytes bytes, struct state s)
{
	uint32_t alignment;
	const size_t size = aligning_size(f, bytes, &alignment);

	if (size) {
		s.gap = alignment > s.gap ? alignment : s.gap;
		lead_to(f, wrap(f, s.pc + size), &s);
	}
	return size != 0;
}

/* Follows the one instruction that @s stands before. */
static void step(struct fathom_follower *f, struct state s)
{
	const struct fathom_bytes bytes = read_code(f, s.pc);
	const struct fathom_stack_code *decoded;
	struct fathom_stack_code c;
	uint64_t next;

	if (!bytes.size || (f->depths && (reach_target(f, &s) || align(f, bytes, s))))
		return;
	decoded = fathom_follower_decode(f, bytes, s.pc);
	if (!decoded)
		return;
	c = *decoded;
	next = wrap(f, s.pc + c.size);
	/* A function that begins after a call: the call does not return. */
	if (c.bad || (c.is_landing && s.calls && s.value[SP] <= s.highest_call && s.pc != f->start))
		return;
	if ((c.writes & BIT(SP)) || !move(f, &c, &s))
		return;
	forget(&s, c.writes);
	if (f->is_straight && c.flow != FATHOM_FLOW_RETURN && c.flow != FATHOM_FLOW_NEXT) {
		f->has_failed = true;
		return;
	}
	switch (c.flow) {
	case FATHOM_FLOW_CALL:
		call(f, &c, &s, next);
		break;
	case FATHOM_FLOW_BRANCH:
		if (c.is_direct)
			lead_to(f, c.target, &s);
		break;
	case FATHOM_FLOW_JUMP:
		/* A slot holds a function, which returns to this one's caller. */
		if (c.is_by_slot)
			reach_return(f, &c, &s);
		else if (c.is_direct)
			lead_to(f, c.target, &s);
		return;
	case FATHOM_FLOW_RETURN:
		reach_return(f, &c, &s);
		return;
	case FATHOM_FLOW_STOP:
		return;
	default:
		break;
	}
	if (!f->has_failed)
		lead_to(f, next, &s);
}

/* Makes @s the state at the start. */
static void begin_state(struct fathom_follower *f, const struct fathom_registers *r, bool is_return)
{
	const bool is_64 = f->arch->word == 8;
	struct state s = { .known = BIT(SP) };

	for (uint8_t i = 0; i < (is_64 ? REGISTERS : 8); i++) {
		const uint8_t number = is_64 ? dwarf_x86_64[i] : i;

		if (i != SP && fathom_register_known(r, number))
			set(&s, i, (struct word){ r->value[number], true });
	}
	s.value[SP] = r->sp;
	f->start = r->pc;
	f->start_sp = r->sp;
	/* Below it a function without calls may keep 128 bytes (x86-64 psABI 3.2.2). */
	f->lowest = is_64 && !is_return && r->sp >= 128 ? r->sp - 128 : r->sp;
	if (is_return)
		note_call(f, &s);
	lead_to(f, r->pc, &s);
}

static void reset(struct fathom_follower *f, const struct fathom_step_memory *m)
{
	f->memory = m;
	f->n_states = 0;
	f->n_pending = 0;
	f->n_stores = 0;
	f->steps = 0;
	f->looks = 0;
	f->has_failed = false;
	f->needs_register = false;
	f->has_return = false;
	memset(f->places, 0, sizeof f->places);
	for (size_t i = 0; i < PIECES; i++)
		f->pieces[i].size = 0;
}

/* Makes @r the caller's registers, which are those of f->result. */
static enum fathom_stop finish(struct fathom_follower *f, struct fathom_registers *r)
{
	const struct fathom_unwind_arch *arch = f->arch;
	const uint64_t sp = f->result.value[SP];
	struct fathom_registers caller = { .machine = r->machine };
	uint64_t pc;

	if (!fathom_reader_uint(f->memory->stack, sp, arch->word, f->memory->swap, &pc))
		return FATHOM_STOP_UNREADABLE;
	for (uint8_t i = 0; i < (arch->word == 8 ? REGISTERS : 8); i++) {
		const uint8_t number = arch->word == 8 ? dwarf_x86_64[i] : i;

		if ((arch->callee_saved >> number & 1) && (f->result.known & BIT(i)))
			fathom_register_set(&caller, number, f->result.value[i]);
	}
	caller.pc = pc;
	caller.sp = wrap(f, sp + f->taken);
	fathom_register_set(&caller, arch->pc, caller.pc);
	fathom_register_set(&caller, arch->sp, caller.sp);
	*r = caller;
	return FATHOM_STOP_NONE;
}

/* Takes the pending state to follow next: the last one, or the one that is next to the target. */
static struct state *take_pending(struct fathom_follower *f)
{
	size_t best = f->n_pending - 1;

	for (size_t i = 0; f->depths && i < f->n_pending; i++) {
		const uint64_t a = f->target - f->states[f->pending[i]].pc;
		const uint64_t b = f->target - f->states[f->pending[best]].pc;

		/* Code after the target leads back, if at all: its distance wraps around. */
		if (a < b)
			best = i;
	}
	f->n_pending--;
	return &f->states[remove_pending(f, best)];
}

/* Follows all ways from the pending states on. */
static void follow_pending(struct fathom_follower *f)
{
	while (f->n_pending && !f->has_failed) {
		struct state *s = take_pending(f);

		if (f->steps++ == FATHOM_MAX_FOLLOW_STEPS)
			f->has_failed = true;
		s->is_pending = false;
		step(f, *s);
	}
	f->cost += f->steps + f->looks / FATHOM_FOLLOW_LOOKS_PER_STEP;
}

static enum fathom_stop follow(struct fathom_follower *f, const struct fathom_step_memory *m,
			       bool is_return, struct fathom_registers *r)
{
	if (!fathom_register_known(r, f->arch->sp))
		return FATHOM_STOP_REGISTER;
	if (f->cost > FATHOM_MAX_FOLLOW_COST)
		return FATHOM_STOP_LIMIT;
	if (f->arch->machine == EM_AARCH64 && !f->is_straight)
		return fathom_follow_aarch64(f->arch, m, &f->cost, r);
	if (!open_decoder(f))
		return FATHOM_STOP_NO_RULE;
	reset(f, m);
	begin_state(f, r, is_return);
	follow_pending(f);
	if (f->has_failed)
		return FATHOM_STOP_NO_RULE;
	if (f->has_return)
		return finish(f, r);
	return f->needs_register ? FATHOM_STOP_REGISTER : FATHOM_STOP_NO_RULE;
}

enum fathom_stop fathom_follow_to_return(struct fathom_follower *f,
					 const struct fathom_step_memory *m, bool is_return,
					 struct fathom_registers *r)
{
	f->is_straight = false;
	f->depths = NULL;
	return follow(f, m, is_return, r);
}

enum fathom_stop fathom_follow_epilogue(struct fathom_follower *f,
					const struct fathom_step_memory *m,
					struct fathom_registers *r)
{
	f->is_straight = true;
	f->depths = NULL;
	return follow(f, m, false, r);
}

/*
 * A stack pointer at the start of a function: any that is not aligned to 16 bytes, but to a word.
 */
#define ANY_SP (UINT64_C(0x7fff0000) + 8)

void fathom_follow_depths(struct fathom_follower *f, const struct fathom_step_memory *m,
			  uint64_t start, uint64_t target, struct fathom_depths *ret)
{
	struct fathom_registers r = { .machine = f->arch->machine, .pc = start, .sp = ANY_SP };

	ret->n = 0;
	ret->is_cut = false;
	if (f->arch->machine == EM_AARCH64 || f->cost > FATHOM_MAX_FOLLOW_COST || !open_decoder(f))
		return;
	fathom_register_set(&r, f->arch->sp, r.sp);
	f->is_straight = false;
	f->depths = ret;
	f->target = target;
	reset(f, m);
	begin_state(f, &r, false);
	follow_pending(f);
	f->depths = NULL;
}
