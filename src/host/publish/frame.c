/* SPDX-License-Identifier: MIT */
#include "host/publish/frame.h"

#include <elf.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "host/base/option_struct.h"
#include "safe/dwarf/cfi.h"
#include "safe/unwind/row.h"

enum { WORD = 8 };

const struct fathom_jit_machine fathom_jit_x86_64 = {
	.arch = &fathom_unwind_x86_64,
	.elf = EM_X86_64,
	.code_alignment = 1,
	.sp = 7,
	.fp = 6,
	.return_register = 16,
	.entry = WORD,
	.set_frame = 3,
	.initial = { DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1 },
	.n_initial = 5,
};

const struct fathom_jit_machine fathom_jit_aarch64 = {
	.arch = &fathom_unwind_aarch64,
	.elf = EM_AARCH64,
	.code_alignment = 1,
	.sp = 31,
	.fp = 29,
	.return_register = 30,
	.entry = 0,
	.set_frame = 4,
	.initial = { DW_CFA_def_cfa, 31, 0 },
	.n_initial = 3,
};

const struct fathom_jit_machine *fathom_jit_own_machine(void)
{
#if defined(__x86_64__)
	return &fathom_jit_x86_64;
#elif defined(__aarch64__)
	return &fathom_jit_aarch64;
#else
	return NULL;
#endif
}

/* Registers of which it is known where they are saved. */
#define MOST_REGISTERS  128
#define MOST_REMEMBERED 8
/* Bytes of the largest frame that events describe. */
#define MOST_BYTES (1 << 30)

/* State of a frame at an instruction. */
struct frame_state {
	int64_t depth;                 /* of the stack pointer below the CFA, bytes */
	int64_t frame_depth;           /* of the frame pointer, likewise */
	int64_t saved[MOST_REGISTERS]; /* where below the CFA; 0: not saved */
	bool by_frame;                 /* the CFA is told by the frame pointer */
	bool is_signed;
	bool is_popped; /* the return address is in a register */
};

/* The writing of a rule. */
struct frame_writer {
	const struct fathom_jit_machine *m;
	const struct fathom_jit_unwind *u;
	struct fathom_out *o;
	uint32_t at; /* offset of the instruction that was described last */
	struct fathom_jit_blame blame;
	struct frame_state now;
	struct frame_state remembered[MOST_REMEMBERED];
	size_t n_remembered;
};

static bool refuse(struct frame_writer *w, const char *what)
{
	w->blame.what = what;
	return false;
}

static void go_to(struct frame_writer *w, uint32_t offset)
{
	fathom_cfa_advance(w->o, offset - w->at);
	w->at = offset;
}

/* Says that the CFA is @bytes above @reg; less than 0: below it. */
static void put_cfa(struct frame_writer *w, uint16_t reg, int64_t bytes)
{
	fathom_out_u8(w->o, bytes < 0 ? DW_CFA_def_cfa_sf : DW_CFA_def_cfa);
	fathom_out_uleb(w->o, reg);
	if (bytes < 0)
		fathom_out_sleb(w->o, bytes / -WORD);
	else
		fathom_out_uleb(w->o, (uint64_t)bytes);
}

static void put_depth(struct frame_writer *w)
{
	fathom_out_u8(w->o, w->now.depth < 0 ? DW_CFA_def_cfa_offset_sf : DW_CFA_def_cfa_offset);
	if (w->now.depth < 0)
		fathom_out_sleb(w->o, w->now.depth / -WORD);
	else
		fathom_out_uleb(w->o, (uint64_t)w->now.depth);
}

/* The frame record: the frame pointer and, on machines with a link register, that above it. */
static void put_record(struct frame_writer *w, uint32_t below)
{
	fathom_cfa_saved(w->o, w->m->fp, below / WORD);
	if (!w->m->entry)
		fathom_cfa_saved(w->o, w->m->return_register, below / WORD - 1);
}

static void put_negated(struct frame_writer *w)
{
	fathom_out_u8(w->o, DW_CFA_AARCH64_negate_ra_state);
}

/* Returns the bytes between the frame pointer and the CFA. */
static uint32_t frame_size(const struct fathom_jit_unwind *u)
{
	return u->frame ? u->frame : 2 * WORD;
}

/* Checks what the frame's size can be, where the frame pointer is saved at its end. */
static bool check_frame(struct frame_writer *w)
{
	const uint32_t frame = frame_size(w->u);

	if (frame % WORD || frame < 2 * WORD || frame > MOST_BYTES)
		return refuse(w, "frame: not a multiple of 8, less than 16, or too large");
	if (w->m->entry && frame != 2 * WORD)
		return refuse(w, "frame: the frame pointer is 16 bytes below the CFA");
	if (w->u->record % WORD || w->u->record > frame - 2 * WORD || (w->m->entry && w->u->record))
		return refuse(w, "record: does not lie in the frame");
	return true;
}

static bool write_reserved(struct frame_writer *w)
{
	if (!check_frame(w))
		return false;
	if (w->u->flags & FATHOM_JIT_SIGNED)
		put_negated(w);
	put_cfa(w, w->m->fp, frame_size(w->u));
	put_record(w, frame_size(w->u) - w->u->record);
	return true;
}

static bool write_pushed(struct frame_writer *w)
{
	if (w->u->frame % WORD || w->u->frame > MOST_BYTES)
		return refuse(w, "frame: not a multiple of 8, or too large");
	w->now.depth += w->u->frame;
	put_depth(w);
	return true;
}

/* The return: the frame pointer is the caller's. */
static void write_popped(struct frame_writer *w, bool is_signed)
{
	if (is_signed && !(w->u->flags & FATHOM_JIT_SIGNED_RETURN)) {
		/* The instruction before the return authenticates. */
		go_to(w, w->u->until - WORD / 2);
		put_cfa(w, w->m->sp, w->m->entry);
		fathom_cfa_restore(w->o, w->m->fp);
		fathom_cfa_restore(w->o, w->m->return_register);
		go_to(w, w->u->until);
		put_negated(w);
		return;
	}
	go_to(w, w->u->until);
	put_cfa(w, w->m->sp, w->m->entry);
	fathom_cfa_restore(w->o, w->m->fp);
	if (!w->m->entry)
		fathom_cfa_restore(w->o, w->m->return_register);
}

static bool write_frame_pointer(struct frame_writer *w, uint64_t size)
{
	const bool is_signed = w->u->flags & FATHOM_JIT_SIGNED;
	const uint32_t pushed = w->u->from - w->m->set_frame;
	const uint32_t before_set = w->m->entry ? 1 : is_signed ? WORD : WORD / 2;
	const uint32_t prologue = w->m->set_frame + before_set;
	const uint32_t epilogue = is_signed ? WORD / 2 : 1;

	if (!check_frame(w))
		return false;
	if (w->u->record)
		return refuse(w, "record: this kind of frame has it at the frame pointer");
	if (w->u->from < prologue || w->u->from > size)
		return refuse(w, "from: not after a prologue in the function");
	if (w->u->until && (w->u->until < w->u->from + epilogue || w->u->until > size))
		return refuse(w, "until: not after the prologue in the function");
	if (is_signed) {
		go_to(w, pushed - WORD / 2);
		put_negated(w);
	}
	go_to(w, pushed);
	fathom_out_u8(w->o, DW_CFA_def_cfa_offset);
	fathom_out_uleb(w->o, frame_size(w->u));
	put_record(w, frame_size(w->u));
	go_to(w, w->u->from);
	fathom_out_u8(w->o, DW_CFA_def_cfa_register);
	fathom_out_uleb(w->o, w->m->fp);
	if (w->u->until)
		write_popped(w, is_signed);
	return true;
}

/* Says that @reg is saved @below bytes below the CFA, unless it is known to be saved already. */
static bool save(struct frame_writer *w, uint16_t reg, int64_t below)
{
	if (reg >= MOST_REGISTERS || below <= 0 || below % WORD)
		return refuse(w, "events: no such register, or no such place for it");
	if (!w->now.saved[reg]) {
		w->now.saved[reg] = below;
		fathom_cfa_saved(w->o, reg, (uint32_t)(below / WORD));
	}
	return true;
}

static bool restore(struct frame_writer *w, uint16_t reg)
{
	if (reg >= MOST_REGISTERS)
		return refuse(w, "events: no such register");
	if (w->now.saved[reg]) {
		w->now.saved[reg] = 0;
		fathom_cfa_restore(w->o, reg);
	}
	/* It is the caller's: from now on the stack pointer alone tells the CFA. */
	if (reg == w->m->fp && w->now.by_frame) {
		w->now.by_frame = false;
		put_cfa(w, w->m->sp, w->now.depth);
	}
	return true;
}

/* Returns whether the stack pointer can be where it is: what is above the CFA is the caller's. */
static bool is_in_frame(const struct frame_writer *w)
{
	if (w->now.is_popped)
		return w->now.depth >= -MOST_BYTES &&
		       (w->now.depth > 0 || w->now.depth % WORD == 0);
	return w->now.depth >= w->m->entry && w->now.depth <= MOST_BYTES;
}

/* Moves the stack pointer @bytes down. */
static bool lower(struct frame_writer *w, int64_t bytes)
{
	w->now.depth += bytes;
	if (!is_in_frame(w))
		return refuse(w, "events: the stack pointer leaves the frame");
	if (!w->now.by_frame)
		put_depth(w);
	return true;
}

static bool pop(struct frame_writer *w, uint16_t reg)
{
	const int64_t top = w->now.depth;

	if (!lower(w, -WORD))
		return false;
	return reg >= MOST_REGISTERS || w->now.saved[reg] != top || restore(w, reg);
}

static bool push(struct frame_writer *w, uint16_t reg)
{
	return lower(w, WORD) && (reg == FATHOM_JIT_NO_REGISTER || save(w, reg, w->now.depth));
}

static bool set_frame(struct frame_writer *w, int32_t value)
{
	w->now.frame_depth = w->now.depth - value;
	if (w->now.frame_depth < 0)
		return refuse(w, "events: the frame pointer is above the frame");
	w->now.by_frame = true;
	put_cfa(w, w->m->fp, w->now.frame_depth);
	return true;
}

static bool end_frame(struct frame_writer *w, int32_t value)
{
	if (!w->now.by_frame)
		return refuse(w, "events: the frame pointer was not set");
	w->now.by_frame = false;
	w->now.depth = w->now.frame_depth + value;
	if (!is_in_frame(w))
		return refuse(w, "events: the stack pointer leaves the frame");
	put_cfa(w, w->m->sp, w->now.depth);
	return true;
}

static bool remember(struct frame_writer *w)
{
	if (w->n_remembered == MOST_REMEMBERED)
		return refuse(w, "events: too much is remembered");
	w->remembered[w->n_remembered++] = w->now;
	fathom_out_u8(w->o, DW_CFA_remember_state);
	return true;
}

static bool recall(struct frame_writer *w)
{
	if (!w->n_remembered)
		return refuse(w, "events: nothing was remembered");
	w->now = w->remembered[--w->n_remembered];
	fathom_out_u8(w->o, DW_CFA_restore_state);
	return true;
}

static bool change_signed(struct frame_writer *w, bool is_signed)
{
	if (w->m->entry || w->now.is_signed == is_signed)
		return refuse(w, "events: the return address cannot be signed here");
	w->now.is_signed = is_signed;
	put_negated(w);
	return true;
}

static bool pop_return(struct frame_writer *w, uint16_t reg)
{
	if (!w->m->entry || w->now.is_popped || w->now.depth != w->m->entry)
		return refuse(w, "events: the return address is not on the top of the stack");
	if (reg >= MOST_REGISTERS || reg == w->m->sp)
		return refuse(w, "events: no such register");
	w->now.is_popped = true;
	if (!lower(w, -WORD))
		return false;
	fathom_out_u8(w->o, DW_CFA_register);
	fathom_out_uleb(w->o, w->m->return_register);
	fathom_out_uleb(w->o, reg);
	return true;
}

static bool push_return(struct frame_writer *w)
{
	if (!w->now.is_popped)
		return refuse(w, "events: the return address was not popped");
	w->now.is_popped = false;
	if (!lower(w, WORD))
		return false;
	if (w->now.depth % WORD)
		return refuse(w, "events: no such place for the return address");
	fathom_cfa_saved(w->o, w->m->return_register, (uint32_t)(w->now.depth / WORD));
	return true;
}

static bool write_event(struct frame_writer *w, const struct fathom_jit_event *e)
{
	if (e->value > MOST_BYTES || e->value < -MOST_BYTES)
		return refuse(w, "events: a value is too large");
	switch (e->kind) {
	case FATHOM_JIT_PUSH:
		return push(w, e->reg);
	case FATHOM_JIT_POP:
		return pop(w, e->reg);
	case FATHOM_JIT_SUB:
		return lower(w, e->value);
	case FATHOM_JIT_ADD:
		return lower(w, -(int64_t)e->value);
	case FATHOM_JIT_SAVE:
		return save(w, e->reg, w->now.depth - e->value);
	case FATHOM_JIT_RESTORE:
		return restore(w, e->reg);
	case FATHOM_JIT_SET_FRAME:
		return set_frame(w, e->value);
	case FATHOM_JIT_END_FRAME:
		return end_frame(w, e->value);
	case FATHOM_JIT_REMEMBER:
		return remember(w);
	case FATHOM_JIT_RECALL:
		return recall(w);
	case FATHOM_JIT_SIGN:
		return change_signed(w, true);
	case FATHOM_JIT_AUTHENTICATE:
		return change_signed(w, false);
	case FATHOM_JIT_POP_RETURN:
		return pop_return(w, e->reg);
	case FATHOM_JIT_PUSH_RETURN:
		return push_return(w);
	default:
		return refuse(w, "events: one of an unknown kind");
	}
}

static bool write_events(struct frame_writer *w, uint64_t size)
{
	for (size_t i = 0; i < w->u->n_events; i++) {
		const struct fathom_jit_event *e = &w->u->events[i];

		w->blame.part = i;
		w->blame.cause = FATHOM_CAUSE_EVENT;
		if (e->reserved)
			return refuse(w, "events: reserved is not 0");
		if (e->offset < w->at || e->offset > size)
			return refuse(w, "events: not in order, or after the end of the code");
		go_to(w, e->offset);
		if (!write_event(w, e))
			return false;
	}
	return true;
}

/* Writes the rule to @o, or measures it. Returns false if it is wrong. */
static bool write_rule(struct fathom_out *o, const struct fathom_jit_unwind *u,
		       const struct fathom_jit_machine *m, uint64_t size,
		       struct fathom_jit_blame *ret_blame)
{
	struct frame_writer w = { .m = m,
				  .u = u,
				  .o = o,
				  .now.depth = m->entry,
				  .blame = { .cause = FATHOM_CAUSE_CHANGE } };
	bool ok = false;

	if (u->kind == FATHOM_JIT_RESERVED)
		ok = write_reserved(&w);
	else if (u->kind == FATHOM_JIT_PUSHED)
		ok = write_pushed(&w);
	else if (u->kind == FATHOM_JIT_FRAME_POINTER)
		ok = write_frame_pointer(&w, size);
	else if (u->kind == FATHOM_JIT_EVENTS)
		ok = write_events(&w, size);
	else
		(void)refuse(&w, "unwind: of an unknown kind");
	if (!ok)
		*ret_blame = w.blame;
	return ok;
}

/* Makes the instructions of a rule that is not an eh_frame's. */
static fathom_err describe(const struct fathom_jit_unwind *u, const struct fathom_jit_machine *m,
			   uint64_t size, struct fathom_jit_frame *f,
			   struct fathom_jit_blame *ret_blame)
{
	struct fathom_out o = { 0 };

	if (!write_rule(&o, u, m, size, ret_blame))
		return FATHOM_E_ARGUMENT;
	o = (struct fathom_out){ .at = malloc(o.n + 1), .cap = o.n };
	if (!o.at)
		return FATHOM_E_MEMORY;
	(void)write_rule(&o, u, m, size, ret_blame);
	f->owned = o.at;
	f->instructions = (struct fathom_bytes){ o.at, o.n };
	f->cie.instructions = (struct fathom_bytes){ m->initial, m->n_initial };
	f->cie.code_alignment = m->code_alignment;
	f->cie.data_alignment = -WORD;
	f->cie.return_register = m->return_register;
	f->cie.is_signal_frame = (u->flags & FATHOM_JIT_SIGNAL_FRAME) != 0;
	f->cie.uses_b_key = (u->flags & FATHOM_JIT_B_KEY) != 0;
	return FATHOM_OK;
}

/*
 * Returns the address of @value, encoded as @encoding, in an eh_frame that was linked for @linked.
 */
static fathom_err pointed_to(uint8_t encoding, uint64_t value, uint64_t linked, uint64_t *ret)
{
	if (encoding != DW_EH_PE_omit && encoding & DW_EH_PE_indirect) {
		const struct iovec from = { (void *)(uintptr_t)value, sizeof value };
		const struct iovec to = { &value, sizeof value };

		/*
		 * The pointer may lead anywhere: the kernel reads it. Where the bytes are a copy
		 * of others, it is not where they say.
		 */
		if (linked ||
		    process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)sizeof value)
			return FATHOM_E_UNSUPPORTED;
	}
	*ret = value;
	return FATHOM_OK;
}

/*
 * Reads all rows of @fde as if it were of @code. Instructions that name addresses, which a copy
 * does not have, lead out of it.
 */
static bool has_rows(const struct fathom_fde *fde, const struct fathom_jit_machine *m,
		     uint64_t code)
{
	struct fathom_fde moved = *fde;
	struct fathom_row_reader reader;
	fathom_err err;

	moved.low = code;
	moved.high = code + (fde->high - fde->low);
	err = fathom_row_reader_init(&reader, &moved, m->arch);
	while (!err)
		err = fathom_row_next(&reader);
	return err == FATHOM_END;
}

/* Takes what @fde says. */
static fathom_err adopt(const struct fathom_jit_unwind *u, const struct fathom_jit_machine *m,
			uint64_t code, const struct fathom_fde *fde, struct fathom_jit_frame *f,
			struct fathom_jit_blame *ret_blame)
{
	const struct fathom_cie *cie = fde->cie;

	ret_blame->what = "eh_frame: what its entry says is unknown";
	if (cie->is_unknown || fde->is_damaged || cie->has_tagged_stack)
		return FATHOM_E_UNSUPPORTED;
	ret_blame->what = "eh_frame: its instructions cannot be read";
	if (!has_rows(fde, m, code))
		return FATHOM_E_CORRUPT;
	ret_blame->what =
		"eh_frame: a pointer that cannot be read here; personality and lsda say it";
	f->cie.personality = u->personality;
	f->lsda = u->lsda;
	if (!f->cie.personality && cie->personality_encoding != DW_EH_PE_omit)
		FATHOM_TRY(pointed_to(cie->personality_encoding, cie->personality,
				      u->eh_frame_address, &f->cie.personality));
	if (!f->lsda && fde->has_lsda)
		FATHOM_TRY(
			pointed_to(cie->lsda_encoding, fde->lsda, u->eh_frame_address, &f->lsda));
	f->cie.instructions = cie->instructions;
	f->cie.code_alignment = cie->code_alignment;
	f->cie.data_alignment = cie->data_alignment;
	f->cie.return_register = cie->return_register;
	f->cie.is_signal_frame = cie->is_signal_frame;
	f->cie.uses_b_key = cie->uses_b_key;
	f->instructions = fde->instructions;
	f->size = fde->high - fde->low;
	return FATHOM_OK;
}

/* Finds the FDE of the code in the bytes of a compiler. */
static fathom_err find_foreign(const struct fathom_jit_unwind *u,
			       const struct fathom_jit_machine *m, uint64_t code,
			       struct fathom_jit_frame *f, struct fathom_jit_blame *ret_blame)
{
	const uint64_t wanted = u->eh_frame_code ? u->eh_frame_code : code;
	const struct fathom_cfi cfi = {
		.section = { u->eh_frame, u->eh_frame_size },
		.svma = u->eh_frame_address ? u->eh_frame_address : (uintptr_t)u->eh_frame,
		.address_size = WORD,
		.is_eh = true,
		.is_open = true,
	};
	struct fathom_cfi_reader reader;
	struct fathom_cfi_entry e;
	struct fathom_cie cie;
	struct fathom_fde fde;
	fathom_err err;

	fathom_cfi_reader_init(&reader, &cfi);
	while ((err = fathom_cfi_next(&reader, &e, NULL)) == FATHOM_OK) {
		if (e.is_cie)
			continue;
		ret_blame->what = "eh_frame: its entries cannot be read";
		FATHOM_TRY(fathom_cie_read(&cfi, e.cie_off, &cie));
		FATHOM_TRY(fathom_fde_read(&e, &cie, &fde));
		if (fde.low == wanted && fde.high > fde.low)
			return adopt(u, m, code, &fde, f, ret_blame);
	}
	ret_blame->what = err == FATHOM_END ? "eh_frame: no entry is of the code"
					    : "eh_frame: its entries cannot be read";
	return err == FATHOM_END ? FATHOM_E_ARGUMENT : err;
}

#define ALL_FLAGS \
	(FATHOM_JIT_SIGNED | FATHOM_JIT_B_KEY | FATHOM_JIT_SIGNAL_FRAME | FATHOM_JIT_SIGNED_RETURN)

fathom_err fathom_jit_frame_read(const struct fathom_jit_unwind *from,
				 const struct fathom_jit_machine *m, uint64_t code, uint64_t size,
				 struct fathom_jit_frame *ret, struct fathom_jit_blame *ret_blame)
{
	struct fathom_jit_frame f = { .size = UINT64_MAX };
	struct fathom_jit_unwind known = { .size = 0 };
	const struct fathom_jit_unwind *u = &known;
	fathom_err err;

	*ret_blame = (struct fathom_jit_blame){
		.what = fathom_size_is_set(from)
				? "unwind: this version does not know it"
				: "unwind: .size is not sizeof(struct fathom_jit_unwind)",
		.cause = FATHOM_CAUSE_CHANGE,
	};
	if (!FATHOM_OPTIONS_READ(from, &known, ALL_FLAGS))
		return FATHOM_E_ARGUMENT;
	if (u->kind == FATHOM_JIT_NONE)
		return FATHOM_END;
	ret_blame->what = "unwind: return addresses are not signed on this machine";
	if (m->entry && u->flags & (FATHOM_JIT_SIGNED | FATHOM_JIT_B_KEY))
		return FATHOM_E_ARGUMENT;
	ret_blame->what = "out of memory";
	if (u->kind == FATHOM_JIT_EH_FRAME) {
		err = find_foreign(u, m, code, &f, ret_blame);
	} else {
		f.cie.personality = u->personality;
		f.lsda = u->lsda;
		err = describe(u, m, size, &f, ret_blame);
	}
	if (err)
		return err;
	f.cie.has_lsda = f.lsda != 0;
	*ret = f;
	return FATHOM_OK;
}

void fathom_jit_frame_deinit(struct fathom_jit_frame *f)
{
	free(f->owned);
}
