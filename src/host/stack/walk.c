/* SPDX-License-Identifier: MIT */
#include "host/stack/walk.h"

#include <stdlib.h>

#include "host/file/object.h"
#include "host/module/module.h"
#include "host/stack/callee.h"
#include "host/stack/code_pages.h"
#include "host/stack/follow_code.h"
#include "host/stack/go.h"
#include "safe/base/limits.h"
#include "safe/base/pc.h"
#include "safe/unwind/ends.h"
#include "safe/unwind/guard.h"
#include "safe/unwind/sframe.h"

/* Whether a call leads back to a return address. */
enum by_hand { BY_HAND_UNKNOWN, BY_HAND, BY_CALL };

/* The results of looking up one pc. */
struct known_pc {
	uint64_t pc;   /* as looked up */
	uint64_t bias; /* of its module */
	bool is_set;
	bool is_code;                /* in executable memory */
	bool has_row;                /* row is valid */
	bool is_signal;              /* of a signal frame: the caller's pc is exact */
	bool is_jit;                 /* of JIT code */
	uint8_t n_lost;              /* how often following the code led nowhere */
	uint8_t reason;              /* enum fathom_reason: why no module holds it */
	bool is_entry;               /* in the first instructions of a program */
	bool is_start;               /* a little after them, or there */
	bool is_first;               /* in the function that a program begins with */
	uint8_t by_hand;             /* of the return address after it: enum by_hand */
	uint8_t go;                  /* enum fathom_go_role */
	bool has_depths;             /* depths was looked for */
	struct fathom_depths depths; /* of the register that its CFA counts from */
	struct fathom_row row;
};

/* Entries of the cache of pcs; a power of two. Stacks of one program share most of their pcs. */
#define KNOWN_PCS 1024

struct fathom_walker {
	struct fathom_view *view;
	const struct fathom_unwind_arch *arch; /* &process_arch */
	/* The machine's, with the pac_mask of the process. */
	struct fathom_unwind_arch process_arch;
	struct fathom_layout layout;
	struct fathom_row_reader reader; /* scratch */
	struct fathom_follower *follower;
	struct known_pc known[KNOWN_PCS];
	struct fathom_callee_cache callees;
	/* the walk under way */
	struct fathom_walk *walk;
	struct fathom_registers registers;
	uint8_t kind;    /* of the pc */
	bool is_outside; /* something was read that is not in the copy of the stack */
	bool has_gap; /* a frame may be missing: a frame record led past what CFI could not tell */
	uint8_t reason; /* enum fathom_reason: why the code where it ended is not known */
	struct fathom_step_memory memory;
	struct fathom_reader stack;
	struct fathom_reader code; /* of the pages */
	struct fathom_code_pages pages;
	fathom_err err;
};

/*
 * Returns where the stack begins that is to be copied, too, when what is at @avma is missing: the
 * frame at hand may be read from its start on, unless it is on a stack that was copied.
 */
static uint64_t start_outside(const struct fathom_walker *w, uint64_t avma)
{
	const uint64_t sp = w->registers.sp;
	const uint64_t end = fathom_view_mapping_end(w->view, avma);

	for (uint8_t i = 0; i < w->walk->n_pieces; i++) {
		const struct fathom_stack_piece *p = &w->walk->pieces[i];

		if (sp - p->avma < p->bytes.size)
			return avma;
	}
	return sp <= avma && (!end || fathom_view_mapping_end(w->view, sp) == end) ? sp : avma;
}

/* Reads the stack from its copy, else memory as it is now. */
static size_t read_stack(void *data, uint64_t avma, void *to, size_t size)
{
	struct fathom_walker *w = data;
	struct fathom_walk *walk = w->walk;

	for (uint8_t i = 0; i < walk->n_pieces; i++) {
		const struct fathom_bytes copy = walk->pieces[i].bytes;
		const uint64_t at = avma - walk->pieces[i].avma;

		if (at < copy.size && size <= copy.size - at) {
			memcpy(to, copy.data + at, size);
			return size;
		}
	}
	if (!w->is_outside)
		walk->outside = start_outside(w, avma);
	w->is_outside = true;
	if (walk->is_past)
		return 0;
	return fathom_view_read(w->view, avma, to, size);
}

fathom_err fathom_walker_create(struct fathom_view *v, struct fathom_walker **ret,
				struct fathom_errinfo *reterr)
{
	struct fathom_walker *w = calloc(1, sizeof *w);

	if (!w)
		return fathom_fail_memory(reterr);
	w->view = v;
	w->err = v->target->ops->layout(v, &w->layout);
	w->arch = w->err ? NULL : fathom_unwind_arch(w->layout.machine);
	if (!w->arch) {
		const fathom_err err = w->err;
		const bool is_none = v->target->is_live && w->layout.machine == EM_NONE;

		free(w);
		if (err)
			return fathom_view_fail(v, err, reterr);
		return is_none ? fathom_fail(reterr, FATHOM_E_CHANGED, "", 0,
					     "it has no program: it ends, or is about to run "
					     "another one (ask again)")
			       : fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
					     "its machine is none whose stacks fathom can walk: "
					     "x86-64, i386, aarch64");
	}
	w->process_arch = *w->arch;
	w->arch = &w->process_arch;
	if (fathom_follower_create(w->arch, &w->follower, reterr)) {
		free(w);
		return FATHOM_E_MEMORY;
	}
	w->stack = (struct fathom_reader){ .read = read_stack, .data = w };
	fathom_code_pages_init(&w->pages, &v->memory);
	w->code = fathom_code_pages_reader(&w->pages);
	w->memory = (struct fathom_step_memory){ &w->stack, &w->code, w->layout.swap };
	*ret = w;
	return FATHOM_OK;
}

void fathom_walker_destroy(struct fathom_walker *w)
{
	if (w)
		fathom_follower_destroy(w->follower);
	free(w);
}

uint32_t fathom_walker_machine(const struct fathom_walker *w)
{
	return w->layout.machine;
}

/* Finds the row of @svma in the SFrame section of @module, where nothing else has one. */
static bool find_in_sframe(const struct fathom_walker *w, struct fathom_module *module,
			   uint64_t svma, struct fathom_row *ret)
{
	struct fathom_sframe s;
	uint64_t start = 0;
	const struct fathom_bytes section = fathom_module_sframe(module, &start);

	return section.size &&
	       !fathom_sframe_init(&s, section, start, module->main->image.swap, w->arch) &&
	       !fathom_sframe_find(&s, svma, w->arch, ret);
}

/*
 * Bytes of code from which a program that has no call frame information there makes its first call.
 */
#define ENTRY_CODE 32
/* The same of the dynamic linker, until it has called all constructors. */
#define START_CODE 128

/* Finds the FDE of @svma, which is in @place. */
static bool find_fde(const struct fathom_place *place, uint64_t svma, struct fathom_fde *ret)
{
	if (place->fde)
		*ret = *place->fde;
	return place->fde || (place->holder && !fathom_unwind_tables_find(
						       &place->holder->module->unwind, svma, ret));
}

/* Finds the row of @k->pc, which is in @place. */
static void find_row(struct fathom_walker *w, const struct fathom_place *place, struct known_pc *k)
{
	const uint64_t svma = k->pc - place->bias;
	struct fathom_fde fde;

	uint64_t entry = 0;

	k->bias = place->bias;
	if (place->holder && place->holder->module->main) {
		entry = place->holder->module->main->image.entry;
		k->is_entry = entry && svma - entry < ENTRY_CODE;
		k->is_start = entry && svma - entry < START_CODE;
		k->go = (uint8_t)fathom_go_role(place->holder->module, svma);
	}
	/* LuaJIT's assembler describes its interpreter without a rule for the CFA. */
	if (!find_fde(place, svma, &fde) || fathom_row_reader_init(&w->reader, &fde, w->arch) ||
	    fathom_row_find(&w->reader, svma) ||
	    w->reader.now.cfa.kind == FATHOM_RULE_UNSPECIFIED) {
		k->has_row =
			place->holder && find_in_sframe(w, place->holder->module, svma, &k->row);
		return;
	}
	k->row = w->reader.now;
	k->has_row = true;
	k->is_first = entry && fde.low == entry;
	k->is_signal = fde.cie->is_signal_frame;
	k->is_jit = place->fde || fathom_source_has_files((uint8_t)place->source);
}

/*
 * Returns whether @place, of @pc, is code. Of memory that a core does not have, only the file says
 * what it was.
 */
static bool is_code(const struct fathom_place *place, uint64_t pc)
{
	const struct fathom_object *file =
		place->holder && !place->source ? place->holder->module->main : NULL;

	return place->is_code && (!file || fathom_object_has_code(file, pc - place->bias));
}

/* Returns what is known of @pc, looked up; NULL on failure: w->err says why. */
static struct known_pc *look_up(struct fathom_walker *w, uint64_t pc)
{
	struct known_pc *k = &w->known[pc * UINT64_C(0x9e3779b97f4a7c15) >> 54 & (KNOWN_PCS - 1)];
	struct fathom_place place;

	if (k->is_set && k->pc == pc)
		return k;
	w->err = fathom_view_locate_code(w->view, pc, &place);
	if (w->err)
		return NULL;
	*k = (struct known_pc){ .pc = pc,
				.is_set = true,
				.is_code = is_code(&place, pc),
				.reason = (uint8_t)place.reason };
	if (k->is_code)
		find_row(w, &place, k);
	return k;
}

/* Returns whether at @pc the code begins by which signal handlers return. */
static bool is_signal_return(struct fathom_walker *w, uint64_t pc)
{
	return fathom_step_is_signal_return(w->arch, &w->memory, pc);
}

/* Returns whether @pc is after a call, in executable memory. */
static bool is_behind_call(struct fathom_walker *w, uint64_t pc)
{
	struct fathom_place place;

	return pc && !fathom_view_locate(w->view, pc - 1, &place) && is_code(&place, pc - 1) &&
	       fathom_step_is_behind_call(w->arch, &w->memory, pc);
}

/* Returns whether @pc can be a return address: after a call, or that of a signal handler. */
static bool is_return_address(struct fathom_walker *w, uint64_t pc)
{
	return is_behind_call(w, pc) || (pc && is_signal_return(w, pc));
}

/*
 * Returns whether a return address of 0 below @sp, the stack pointer of who would be the caller,
 * ends a stack: it is among the outermost words. Elsewhere zeros are what has overwritten one.
 */
static bool is_outermost(const struct fathom_walker *w, uint64_t sp)
{
	const uint64_t end = fathom_view_mapping_end(w->view, sp - 1);

	return end && end - sp < (uint64_t)FATHOM_OUTERMOST_WORDS * w->arch->word;
}

/*
 * Returns whether @w->registers, found by a frame pointer, can be a frame that was not called but
 * jumped to with a return address made by hand, as HotSpot's interpreter and V8's deoptimizer do:
 * in code of no file, or of a file that has no rules for it, in a chain of frame pointers that
 * goes on.
 */
static bool is_made_frame(struct fathom_walker *w)
{
	struct fathom_registers next = w->registers;
	struct fathom_place place;
	const struct known_pc *k;

	if (fathom_view_locate(w->view, next.pc, &place) || !place.is_code)
		return false;
	if (place.holder && (!(k = look_up(w, next.pc)) || k->has_row))
		return false;
	return fathom_step_frame_pointer(w->arch, &w->memory, &next) == FATHOM_STOP_NONE &&
	       !fathom_view_locate(w->view, next.pc - 1, &place) && place.is_code;
}

/* Returns the code at @pc, looked up, which something has called. */
static struct fathom_callee callee_of(struct fathom_walker *w, uint64_t pc)
{
	return (struct fathom_callee){ .view = w->view,
				       .cache = &w->callees,
				       .arch = w->arch,
				       .machine = fathom_callee_machine(w->arch->machine),
				       .memory = &w->memory,
				       .follower = w->follower,
				       .pc = pc };
}

/* Words that a scan looks at. */
#define SCAN_WORDS 512

/* Looks for a return address further up the stack, of a call that can have led to @callee. */
static enum fathom_stop scan(struct fathom_walker *w, struct fathom_callee *callee)
{
	struct fathom_registers *r = &w->registers;

	if (!fathom_register_known(r, w->arch->sp))
		return FATHOM_STOP_REGISTER;
	for (uint64_t i = 0; i < SCAN_WORDS; i++) {
		const uint64_t at = r->sp + i * w->arch->word;
		uint64_t pc;

		if (!fathom_reader_uint(&w->stack, at, w->arch->word, w->memory.swap, &pc))
			return i ? FATHOM_STOP_NO_RULE : FATHOM_STOP_UNREADABLE;
		if (!is_behind_call(w, pc) || !fathom_callee_is_called(callee, pc))
			continue;
		r->known = 0;
		r->pc = pc;
		fathom_register_set(r, w->arch->pc, r->pc);
		/* A function stores the link register anywhere in its frame. */
		if (w->arch->link != FATHOM_NO_REGISTER)
			return FATHOM_STOP_NONE;
		r->sp = at + w->arch->word;
		fathom_register_set(r, w->arch->sp, r->sp);
		return FATHOM_STOP_NONE;
	}
	return FATHOM_STOP_NO_RULE;
}

/*
 * Returns whether @at is in the stack that the frame at hand is on: in the copy that holds it, or
 * without copies near it.
 */
static bool is_in_stack(const struct fathom_walker *w, uint64_t at)
{
	const struct fathom_walk *walk = w->walk;
	const uint64_t sp = w->registers.sp;

	if (!fathom_register_known(&w->registers, w->arch->sp))
		return true;
	for (uint8_t i = 0; i < walk->n_pieces; i++) {
		const struct fathom_stack_piece *p = &walk->pieces[i];

		if (sp - p->avma < p->bytes.size)
			return at - p->avma < p->bytes.size;
	}
	return at - sp < FATHOM_MAX_FOLLOW_FRAME;
}

/* In so many stacks code is followed in vain: what it does may depend on what they hold. */
#define MAX_LOST 4

/* Steps by what the code at the pc, of which @k is known, does until it returns. */
static enum fathom_stop step_by_code(struct fathom_walker *w, bool is_return, struct known_pc *k)
{
	const struct fathom_registers before = w->registers;
	enum fathom_stop stop;

	if (k->n_lost == MAX_LOST)
		return FATHOM_STOP_NO_RULE;
	stop = fathom_follow_to_return(w->follower, &w->memory, is_return, &w->registers);
	k->n_lost = (uint8_t)(k->n_lost + (stop == FATHOM_STOP_NO_RULE));
	if (stop == FATHOM_STOP_NONE && !w->registers.pc && is_outermost(w, w->registers.sp))
		return FATHOM_STOP_ENTRY;
	if (stop == FATHOM_STOP_NONE && !is_return_address(w, w->registers.pc)) {
		w->registers = before;
		stop = FATHOM_STOP_NO_RULE;
	}
	return stop;
}

/* Returns whether at @avma the stack pointer is moved to the frame pointer, on x86. */
static bool sets_frame_pointer(const struct fathom_walker *w, uint64_t avma)
{
	const bool is_64 = w->arch->word == 8;
	uint8_t c[3] = { 0x48 };

	return fathom_reader_read(w->memory.code, avma, is_64 ? c : c + 1, is_64 ? 3 : 2) &&
	       c[0] == 0x48 && ((c[1] == 0x89 && c[2] == 0xe5) || (c[1] == 0x8b && c[2] == 0xec));
}

/* Returns whether before @avma gcc copies the return address to a stack that it has realigned. */
static bool copies_return_address(const struct fathom_walker *w, uint64_t avma)
{
	static const uint8_t push64[] = { 0x41, 0xff, 0x72, 0xf8 }; /* push -8(%r10) */
	static const uint8_t push32[] = { 0xff, 0x71, 0xfc };       /* push -4(%ecx) */
	const bool is_64 = w->arch->word == 8;
	const uint8_t *push = is_64 ? push64 : push32;
	const size_t size = is_64 ? sizeof push64 : sizeof push32;
	uint8_t code[sizeof push64];

	return fathom_reader_read(w->memory.code, avma - size, code, size) &&
	       memcmp(code, push, size) == 0;
}

/*
 * Steps from the start of a function that pushes the frame pointer and sets it, on x86, where this
 * is not done yet: the frame pointer is still that of the caller, and would lead past it.
 */
static enum fathom_stop step_prologue(struct fathom_walker *w)
{
	const struct fathom_unwind_arch *arch = w->arch;
	struct fathom_registers *r = &w->registers;
	const bool is_pushed = sets_frame_pointer(w, r->pc);
	uint64_t fp = r->value[arch->fp];
	uint64_t sp = r->sp;
	uint64_t pc;
	uint8_t push;

	if (arch->machine == EM_AARCH64 || !fathom_register_known(r, arch->sp) ||
	    copies_return_address(w, r->pc - is_pushed) ||
	    !fathom_reader_read(w->memory.code, r->pc - is_pushed, &push, 1) || push != 0x55 ||
	    (!is_pushed && !sets_frame_pointer(w, r->pc + 1)))
		return FATHOM_STOP_NO_RULE;
	if (is_pushed && !fathom_reader_uint(&w->stack, sp, arch->word, w->memory.swap, &fp))
		return FATHOM_STOP_NO_RULE;
	sp += is_pushed ? arch->word : 0;
	if (!fathom_reader_uint(&w->stack, sp, arch->word, w->memory.swap, &pc) ||
	    !is_return_address(w, pc))
		return FATHOM_STOP_NO_RULE;
	r->known &= arch->callee_saved;
	r->pc = pc;
	r->sp = sp + arch->word;
	if (is_pushed)
		fathom_register_set(r, arch->fp, fp);
	fathom_register_set(r, arch->pc, r->pc);
	fathom_register_set(r, arch->sp, r->sp);
	return FATHOM_STOP_NONE;
}

/* Where a pc comes from. */
enum origin {
	ORIGIN_EXACT, /* it was interrupted there */
	ORIGIN_CALL,  /* a call leads back to it */
	ORIGIN_HAND,  /* it stood where return addresses are, and no call is before it */
};

/*
 * Returns whether the frame at hand, to which a call returns, is the outermost one of its thread:
 * the code ends the thread, and no frame pointer leads on.
 */
static bool is_thread_end(const struct fathom_walker *w)
{
	const uint64_t pc = w->registers.pc;

	return fathom_is_thread_end(w->arch, w->memory.code, pc) &&
	       (fathom_register_known(&w->registers, w->arch->fp) ||
		fathom_clears_frame_pointer(w->arch, w->memory.code, pc));
}

/*
 * Steps where nothing describes the code: by what the code does, else by what the stack looks like.
 */
static enum fathom_stop step_by_guess(struct fathom_walker *w, enum origin origin,
				      struct known_pc *k, uint8_t *trust)
{
	const struct fathom_registers before = w->registers;
	const bool was_outside = w->is_outside;
	struct fathom_callee callee = callee_of(w, k->pc);
	const bool is_start = k->is_start;
	enum fathom_stop stop;
	uint8_t byte;

	/* musl's first function has no caller, and nothing says so. */
	if (k->is_entry)
		return FATHOM_STOP_ENTRY;
	/* A core without this code, whose file is not there: any guess may skip frames. */
	if (!fathom_reader_read(w->memory.code, k->pc, &byte, sizeof byte)) {
		w->reason = k->reason ? k->reason : (uint8_t)FATHOM_REASON_NO_FILE;
		return FATHOM_STOP_UNREADABLE;
	}
	*trust = FATHOM_TRUST_DECODED;
	stop = step_by_code(w, origin == ORIGIN_CALL, k);
	if (stop == FATHOM_STOP_ENTRY)
		return stop;
	if (stop == FATHOM_STOP_NONE || (origin == ORIGIN_EXACT && !step_prologue(w)))
		return FATHOM_STOP_NONE;
	/* These reads were in vain: they belong to no frame. */
	w->is_outside = was_outside;
	if (!fathom_register_known(&before, w->arch->fp))
		return origin == ORIGIN_CALL && is_thread_end(w) ? FATHOM_STOP_ENTRY
								 : FATHOM_STOP_REGISTER;
	*trust = FATHOM_TRUST_FRAME_POINTER;
	/* The register may hold anything else. */
	stop = is_in_stack(w, before.value[w->arch->fp])
		       ? fathom_step_frame_pointer(w->arch, &w->memory, &w->registers)
		       : FATHOM_STOP_NO_RULE;
	if (stop == FATHOM_STOP_NONE && !w->registers.pc &&
	    is_outermost(w, before.value[w->arch->fp] + 2u * w->arch->word))
		return FATHOM_STOP_ENTRY;
	if (stop == FATHOM_STOP_NONE && is_return_address(w, w->registers.pc) &&
	    fathom_callee_is_called(&callee, w->registers.pc))
		return stop;
	if (stop == FATHOM_STOP_NONE && is_made_frame(w)) {
		/* Without a call before it, it may be the first of its function. */
		w->kind = is_behind_call(w, w->registers.pc) ? FATHOM_PC_RETURN : FATHOM_PC_EXACT;
		return stop;
	}
	w->registers = before;
	w->is_outside = was_outside;
	/* The kernel clears the frame pointer when it starts a program (psABI x86-64, 3.4.1). */
	if (is_start && !before.value[w->arch->fp])
		return FATHOM_STOP_ENTRY;
	if (origin == ORIGIN_CALL && is_thread_end(w))
		return FATHOM_STOP_ENTRY;
	/* Nobody called who made it: what lies above is of others. */
	if (origin == ORIGIN_HAND)
		return FATHOM_STOP_NO_RULE;
	*trust = FATHOM_TRUST_SCAN;
	return scan(w, &callee);
}

/* Steps from a pc that is no code: something called it. */
static enum fathom_stop step_bad_call(struct fathom_walker *w, uint8_t *trust)
{
	const struct fathom_registers before = w->registers;
	enum fathom_stop stop;

	*trust = FATHOM_TRUST_DECODED;
	stop = fathom_step_bad_call(w->arch, &w->memory, &w->registers);
	if (stop == FATHOM_STOP_NONE && !is_return_address(w, w->registers.pc)) {
		w->registers = before;
		stop = FATHOM_STOP_NO_RULE;
	}
	return stop;
}

/*
 * Steps by the row in @k. In the epilogue of a function that realigns its stack, gcc's rows still
 * say that registers are saved where the frame pointer led to before it was restored: there the
 * instructions up to the return tell.
 */
static enum fathom_stop step_row(struct fathom_walker *w, const struct known_pc *k, bool is_exact)
{
	const struct fathom_row *row = &k->row;
	const bool asks = is_exact && !k->is_signal && row->cfa.kind == FATHOM_RULE_REGISTER &&
			  fathom_row_rule(row, w->arch->fp).kind == FATHOM_RULE_AT_EXPRESSION;
	struct fathom_registers r;
	enum fathom_stop stop;

	if (asks)
		r = w->registers;
	stop = fathom_step_row(row, k->bias, w->arch, &w->memory, &w->registers);
	if (asks && !stop &&
	    fathom_follow_epilogue(w->follower, &w->memory, &r) == FATHOM_STOP_NONE &&
	    r.pc == w->registers.pc && r.sp == w->registers.sp)
		w->registers = r;
	return stop;
}

/* Returns whether @row says that a register is saved below the stack pointer. */
static bool has_left_its_frame(const struct fathom_walker *w, const struct fathom_row *row)
{
	if (row->cfa.kind != FATHOM_RULE_REGISTER || row->cfa.number == w->arch->fp)
		return false;
	for (uint8_t i = 0; i < w->arch->n; i++) {
		const struct fathom_rule rule = fathom_row_rule(row, i);

		if (w->arch->callee_saved >> i & 1 && rule.kind == FATHOM_RULE_AT_OFFSET &&
		    row->cfa.offset + rule.offset < 0)
			return true;
	}
	return false;
}

/*
 * Steps after the instructions by which libgcc goes to a frame further out with an exception.
 * Their rows say where to, but of the registers they say where its own frame had saved them.
 */
static enum fathom_stop step_eh_return(struct fathom_walker *w, const struct known_pc *k,
				       bool *ret_is)
{
	*ret_is = false;
	if (k->is_signal || !has_left_its_frame(w, &k->row))
		return FATHOM_STOP_NONE;
	return fathom_step_eh_return(w->arch, &w->memory, &w->registers, ret_is);
}

/* Returns whether the pc, to which the frame before returns, has no call before it; @k is of it. */
static bool is_made_by_hand(struct fathom_walker *w, struct known_pc *k)
{
	uint8_t code[2];

	if (!k->by_hand)
		k->by_hand = fathom_reader_read(w->memory.code, w->registers.pc - 1, code,
						sizeof code) &&
					     !is_behind_call(w, w->registers.pc)
				     ? BY_HAND
				     : BY_CALL;
	return k->by_hand == BY_HAND;
}

/*
 * Steps from a return address that was made by hand, as fibers begin: to the start of a function
 * which runs when the first one is done, such as glibc's __start_context(). It is called by its own
 * name, not by that of the code before it. Of all that a damaged stack may lead to, only a caller
 * of this very function is believed.
 */
static enum fathom_stop step_made(struct fathom_walker *w, uint8_t *trust)
{
	struct known_pc *k = look_up(w, w->registers.pc);
	struct fathom_callee callee;
	enum fathom_stop stop;

	if (!k || !k->is_code)
		return FATHOM_STOP_NO_RULE;
	w->walk->frames->items[w->walk->frames->n - 1].kind = FATHOM_PC_EXACT;
	if (fathom_is_context_end(w->arch, w->memory.code, k->pc))
		return FATHOM_STOP_ENTRY;
	if (!k->has_row)
		return step_by_guess(w, ORIGIN_HAND, k, trust);
	callee = callee_of(w, k->pc);
	*trust = k->is_jit ? FATHOM_TRUST_JIT_CFI : FATHOM_TRUST_CFI;
	stop = step_row(w, k, true);
	if (stop == FATHOM_STOP_NONE && (!is_return_address(w, w->registers.pc) ||
					 !fathom_callee_is_called(&callee, w->registers.pc)))
		stop = FATHOM_STOP_NO_RULE;
	return stop;
}

/*
 * Steps by the frame record that the frame pointer leads to, on any stack, where call frame
 * information has led nowhere. It may be that of a caller further out: what is found is not whole.
 */
static enum fathom_stop step_by_record(struct fathom_walker *w, uint8_t *trust)
{
	struct fathom_registers r = w->registers;
	struct fathom_registers next;

	r.known &= ~(UINT64_C(1) << w->arch->sp);
	if (fathom_step_frame_pointer(w->arch, &w->memory, &r) != FATHOM_STOP_NONE ||
	    !is_behind_call(w, r.pc))
		return FATHOM_STOP_NO_RULE;
	/* It is one of a chain. */
	next = r;
	if (fathom_step_frame_pointer(w->arch, &w->memory, &next) != FATHOM_STOP_NONE ||
	    !is_behind_call(w, next.pc))
		return FATHOM_STOP_NO_RULE;
	w->registers = r;
	w->has_gap = true;
	*trust = FATHOM_TRUST_FRAME_POINTER;
	return FATHOM_STOP_NONE;
}

/* Returns whether @pc, a return address, leads to executable memory. */
static bool leads_to_code(struct fathom_walker *w, uint64_t pc)
{
	const struct known_pc *k = look_up(w, fathom_pc_subtract(pc, FATHOM_PC_RETURN));
	struct fathom_place place;

	/* A trampoline may be at the start of its mapping. */
	return pc && k &&
	       (k->is_code || (!fathom_view_locate(w->view, pc, &place) && is_code(&place, pc)));
}

/*
 * Steps where a row has led from @before, in code of which @k is known, to where no code is: the
 * stack ends here if that is proven, else the row is wrong, or the stack damaged. LuaJIT describes
 * the helpers of its interpreter as if they were a part of it.
 */
static enum fathom_stop step_from_last(struct fathom_walker *w,
				       const struct fathom_registers *before, struct known_pc *k,
				       bool is_exact, uint8_t *trust)
{
	struct fathom_callee callee = callee_of(w, k->pc);
	const bool is_zero = !w->registers.pc;
	enum fathom_stop stop;

	if (is_zero && is_outermost(w, w->registers.sp))
		return FATHOM_STOP_ENTRY;
	if (!is_zero && !w->walk->astray)
		w->walk->astray = w->registers.pc;
	w->registers = *before;
	if (k->is_first || k->go == FATHOM_GO_FIRST || (!is_exact && is_thread_end(w)))
		return FATHOM_STOP_ENTRY;
	*trust = FATHOM_TRUST_DECODED;
	stop = step_by_code(w, !is_exact, k);
	if (stop == FATHOM_STOP_ENTRY ||
	    (stop == FATHOM_STOP_NONE && fathom_callee_is_called(&callee, w->registers.pc)))
		return stop;
	w->registers = *before;
	return step_by_record(w, trust);
}

/* Steps from Go's asmcgocall to the stack that it has left; false if no call led to it there. */
static bool leave_c(struct fathom_walker *w, const struct known_pc *k)
{
	struct fathom_callee callee = callee_of(w, k->pc);

	for (int is_newer = 0; is_newer < 2; is_newer++) {
		const struct fathom_registers before = w->registers;
		const bool was_outside = w->is_outside;

		if (fathom_go_leave_c(w->arch, &w->memory, is_newer, &w->registers) &&
		    is_behind_call(w, w->registers.pc) &&
		    fathom_callee_is_called(&callee, w->registers.pc))
			return true;
		w->registers = before;
		w->is_outside = was_outside;
	}
	return false;
}

/* DW_OP_breg0 and the last one (DWARF 5, 2.5.1.2). */
enum { OP_BREG0 = 0x70, OP_BREG31 = 0x8f };

/* Returns the DWARF number of the register that @cfa counts from; FATHOM_NO_REGISTER if unclear. */
static uint8_t base_of(const struct fathom_rule *cfa)
{
	if (cfa->kind == FATHOM_RULE_REGISTER)
		return cfa->number;
	if (cfa->kind == FATHOM_RULE_EXPRESSION && cfa->size && cfa->expression[0] >= OP_BREG0 &&
	    cfa->expression[0] <= OP_BREG31)
		return cfa->expression[0] - OP_BREG0;
	return FATHOM_NO_REGISTER;
}

/*
 * Finds the avma at which the function of @k begins; false if it is no beginning, such as that of
 * the cold part of a function: there the return address is not on top.
 */
static bool find_start(struct fathom_walker *w, const struct known_pc *k, uint64_t *ret)
{
	struct fathom_place place;
	struct fathom_fde fde;
	const struct fathom_rule *cfa = &w->reader.now.cfa;

	if (fathom_view_locate_code(w->view, k->pc, &place) ||
	    !find_fde(&place, k->pc - place.bias, &fde) ||
	    fathom_row_reader_init(&w->reader, &fde, w->arch) ||
	    fathom_row_find(&w->reader, fde.low))
		return false;
	*ret = fde.low + place.bias;
	return cfa->kind == FATHOM_RULE_REGISTER && cfa->number == w->arch->sp &&
	       cfa->offset == w->arch->word;
}

/* Finds the depths of @k, once: the register that its CFA counts from is @number. */
static void find_depths(struct fathom_walker *w, struct known_pc *k, uint8_t number)
{
	uint64_t start;

	if (k->has_depths)
		return;
	k->has_depths = true;
	k->depths.number = number;
	if (find_start(w, k, &start))
		fathom_follow_depths(w->follower, &w->memory, start, w->registers.pc, &k->depths);
}

/* A caller that some depth leads to. */
struct proven {
	struct fathom_registers registers;
	unsigned n; /* different ones */
};

/* Tries register @number at @value: its caller must be after a call that can lead here. */
static void try_depth(struct fathom_walker *w, const struct known_pc *k,
		      struct fathom_callee *callee, uint64_t value, struct proven *p)
{
	struct fathom_registers r = w->registers;

	fathom_register_set(&r, k->depths.number, w->arch->word == 4 ? (uint32_t)value : value);
	if (fathom_step_row(&k->row, k->bias, w->arch, &w->memory, &r) != FATHOM_STOP_NONE ||
	    r.sp <= w->registers.sp || !is_behind_call(w, r.pc) ||
	    !fathom_callee_is_called(callee, r.pc) || (p->n && r.sp == p->registers.sp))
		return;
	p->registers = r;
	p->n++;
}

/*
 * Steps by the row in @k where the register is not known that its CFA counts from: the code from
 * the function's start to here says how far the stack pointer is from it. Of several depths, and of
 * all that a stack may have been realigned by, exactly one must prove.
 */
static enum fathom_stop step_by_depth(struct fathom_walker *w, struct known_pc *k, uint8_t *trust)
{
	const uint8_t number = base_of(&k->row.cfa);
	const bool was_outside = w->is_outside;
	struct fathom_callee callee = callee_of(w, k->pc);
	struct proven p = { .n = 0 };

	if (number == FATHOM_NO_REGISTER || fathom_register_known(&w->registers, number) ||
	    !fathom_register_known(&w->registers, w->arch->sp))
		return FATHOM_STOP_REGISTER;
	find_depths(w, k, number);
	for (uint8_t i = 0; i < k->depths.n && !k->depths.is_cut; i++) {
		const struct fathom_depth *d = &k->depths.items[i];
		uint32_t off = 0;

		do {
			try_depth(w, k, &callee, w->registers.sp + d->distance + off, &p);
			off += w->arch->word;
		} while (off < d->gap);
	}
	if (p.n != 1) {
		w->is_outside = was_outside;
		return FATHOM_STOP_REGISTER;
	}
	w->registers = p.registers;
	w->walk->has_depth = true;
	*trust = FATHOM_TRUST_DECODED;
	return FATHOM_STOP_NONE;
}

/* Steps by the row in @k, to a caller that is checked. */
static enum fathom_stop step_by_row(struct fathom_walker *w, struct known_pc *k, bool is_exact,
				    uint8_t *trust)
{
	const struct fathom_registers before = w->registers;
	/* The place of @k may be taken by another pc. */
	struct known_pc kept = { .pc = k->pc, .is_first = k->is_first, .go = k->go };
	const bool is_signal = k->is_signal;
	enum fathom_stop stop;

	if (k->go == FATHOM_GO_TO_C && !is_exact && leave_c(w, k)) {
		*trust = FATHOM_TRUST_DECODED;
		return FATHOM_STOP_NONE;
	}
	stop = step_row(w, k, is_exact);
	if (stop == FATHOM_STOP_REGISTER && !is_signal)
		stop = step_by_depth(w, k, trust);
	/* In a thread that clone() has made, what is said of the caller leads nowhere. */
	if (stop && stop != FATHOM_STOP_ENTRY && !is_exact && !is_signal && is_thread_end(w))
		return FATHOM_STOP_ENTRY;
	if (stop || is_signal || leads_to_code(w, w->registers.pc) || w->err)
		return stop;
	return step_from_last(w, &before, &kept, is_exact, trust);
}

/*
 * Marks the frame at hand as that of a signal trampoline. A handler returns to its first byte,
 * which no call is before: the byte before may be another function's.
 */
static void mark_signal_return(struct fathom_walker *w)
{
	struct fathom_walk_frame *f = &w->walk->frames->items[w->walk->frames->n - 1];

	f->kind = FATHOM_PC_EXACT;
	f->is_signal_return = true;
}

/* Goes on to the caller; *@trust says how. */
static enum fathom_stop step(struct fathom_walker *w, uint8_t *trust)
{
	const uint64_t pc = fathom_pc_subtract(w->registers.pc, w->kind);
	const bool is_exact = w->kind == FATHOM_PC_EXACT;
	struct known_pc *k = look_up(w, pc);
	enum fathom_stop stop = FATHOM_STOP_NONE;
	bool is_eh_return = false;
	bool is_signal;

	if (!k)
		return FATHOM_STOP_NO_RULE;
	w->kind = FATHOM_PC_RETURN;
	if (k->go == FATHOM_GO_END && !is_exact)
		return FATHOM_STOP_ENTRY;
	if (k->has_row) {
		if (!is_exact && !k->is_signal && !k->is_jit && is_made_by_hand(w, k))
			return step_made(w, trust);
		*trust = k->is_signal ? FATHOM_TRUST_SIGNAL
			 : k->is_jit  ? FATHOM_TRUST_JIT_CFI
				      : FATHOM_TRUST_CFI;
		if (is_exact)
			stop = step_eh_return(w, k, &is_eh_return);
		if (k->is_signal || is_eh_return)
			w->kind = FATHOM_PC_EXACT;
		/* Other code may have such a row, too, such as __morestack() of libgcc. */
		if (k->is_signal && is_signal_return(w, w->registers.pc))
			mark_signal_return(w);
		return is_eh_return ? stop : step_by_row(w, k, is_exact, trust);
	}
	if (!k->is_code && is_exact)
		return step_bad_call(w, trust);
	/* A trampoline may be at the start of its mapping: nothing is mapped before it. */
	stop = fathom_step_signal(w->arch, &w->memory, &w->registers, &is_signal);
	if (is_signal) {
		mark_signal_return(w);
		*trust = FATHOM_TRUST_SIGNAL;
		w->kind = FATHOM_PC_EXACT;
		return stop;
	}
	if (!k->is_code)
		return FATHOM_STOP_NO_RULE;
	if (!is_exact && is_made_by_hand(w, k))
		return step_made(w, trust);
	return step_by_guess(w, is_exact ? ORIGIN_EXACT : ORIGIN_CALL, k, trust);
}

static bool push(struct fathom_walker *w, uint8_t trust)
{
	const struct fathom_registers *r = &w->registers;
	const struct fathom_walk_frame f = {
		.pc = r->pc,
		.sp = fathom_register_known(r, w->arch->sp) ? r->sp : FATHOM_NO_ADDRESS,
		.fp = fathom_register_known(r, w->arch->fp) ? r->value[w->arch->fp]
							    : FATHOM_NO_ADDRESS,
		.kind = w->kind,
		.trust = trust
	};

	if (!fathom_array_push(w->walk->frames, f))
		w->err = FATHOM_E_MEMORY;
	return !w->err;
}

/* Most frames of one stack that are followed to reach the outermost ones. */
#define MOST_FOLLOWED ((size_t)1 << 24)

/* Outer frames that are kept before the inner ones of them are left out, at least. */
#define OUTER_ROOM 4096

/* Leaves out the frames from max_frames of the walk on that are not among the last @keep. */
static void leave_out(struct fathom_walk *walk, size_t first, size_t keep)
{
	struct fathom_walk_frame *frames = walk->frames->items + first;
	const size_t n = walk->frames->n - first;
	const size_t behind = n - walk->max_frames;
	size_t gone;

	if (n <= walk->max_frames || behind <= keep)
		return;
	gone = behind - keep;
	for (size_t i = 0; i < gone && !walk->left_out_trust; i++)
		if (frames[walk->max_frames + i].trust >= FATHOM_TRUST_DECODED)
			walk->left_out_trust = frames[walk->max_frames + i].trust;
	memmove(frames + walk->max_frames, frames + walk->max_frames + gone, keep * sizeof *frames);
	walk->frames->n -= gone;
	walk->n_left_out += gone;
	if (walk->n_inside > walk->max_frames)
		walk->n_inside -= walk->n_inside - walk->max_frames < gone
					  ? walk->n_inside - walk->max_frames
					  : gone;
}

/* Returns whether the walk, whose frames begin at @first, has as many as it may have. */
static bool has_all(struct fathom_walk *walk, size_t first)
{
	const size_t n = walk->frames->n - first;

	if (n < walk->max_frames || !walk->outer_frames)
		return n >= walk->max_frames;
	if (n - walk->max_frames >= walk->outer_frames + OUTER_ROOM)
		leave_out(walk, first, walk->outer_frames);
	return walk->n_left_out >= MOST_FOLLOWED;
}

static enum fathom_stop run(struct fathom_walker *w, struct fathom_walk *walk)
{
	const size_t first = walk->frames->n;
	struct fathom_walk_guard guard = { 0 };
	uint8_t trust = FATHOM_TRUST_REGISTERS;

	while (push(w, trust)) {
		const uint64_t sp = w->registers.sp;
		enum fathom_stop stop;

		if (!w->is_outside)
			walk->n_inside = walk->frames->n - first;
		if (has_all(walk, first))
			return FATHOM_STOP_LIMIT;
		stop = step(w, &trust);
		if (stop || w->err)
			return stop == FATHOM_STOP_ENTRY && w->has_gap ? FATHOM_STOP_NO_RULE : stop;
		if (fathom_register_known(&w->registers, w->arch->sp) &&
		    fathom_walk_guard_is_cycle(&guard, &w->registers, sp))
			return FATHOM_STOP_LOOP;
	}
	return FATHOM_STOP_NONE;
}

fathom_err fathom_walker_run(struct fathom_walker *w, struct fathom_walk *walk)
{
	const size_t first = walk->frames->n;

	w->walk = walk;
	if (!walk->keeps_code)
		fathom_code_pages_forget(&w->pages);
	w->callees.age = w->pages.age;
	if (walk->pac_mask)
		w->process_arch.pac_mask = walk->pac_mask;
	w->registers = *walk->registers;
	w->kind = FATHOM_PC_EXACT;
	w->is_outside = false;
	w->has_gap = false;
	w->reason = FATHOM_REASON_NONE;
	fathom_follower_begin(w->follower);
	w->err = FATHOM_OK;
	walk->n_inside = 0;
	walk->n_left_out = 0;
	walk->left_out_trust = FATHOM_TRUST_REGISTERS;
	walk->astray = 0;
	walk->has_depth = false;
	walk->stop = run(w, walk);
	leave_out(walk, first, walk->outer_frames);
	if (walk->n_left_out && walk->stop == FATHOM_STOP_ENTRY)
		walk->stop = FATHOM_STOP_LIMIT;
	walk->reason = (enum fathom_reason)w->reason;
	return w->err;
}

bool fathom_walker_is_outermost(struct fathom_walker *w, uint64_t pc)
{
	const struct known_pc *k = look_up(w, pc);

	return k && (k->is_first || k->go == FATHOM_GO_END || k->go == FATHOM_GO_FIRST ||
		     (k->has_row && fathom_row_rule(&k->row, k->row.return_register).kind ==
					    FATHOM_RULE_UNDEFINED));
}
