/* SPDX-License-Identifier: MIT */
#include "host/stack/walk.h"

#include <stdlib.h>

#include "host/module/module.h"
#include "host/stack/follow_code.h"
#include "safe/base/limits.h"
#include "safe/base/pc.h"
#include "safe/unwind/guard.h"
#include "safe/unwind/sframe.h"

/* What is known of one looked-up pc. */
struct known_pc {
	uint64_t pc;   /* as looked up */
	uint64_t bias; /* of its module */
	bool is_set;
	bool is_code;   /* in executable memory */
	bool has_row;   /* row is valid */
	bool is_signal; /* of a signal frame: the caller's pc is exact */
	bool is_jit;    /* of JIT code */
	bool is_lost;   /* following the code led nowhere */
	uint8_t reason; /* enum fathom_reason: why no module holds it */
	bool is_entry;  /* in the first instructions of a program */
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
	/* the walk under way */
	struct fathom_walk *walk;
	struct fathom_registers registers;
	uint8_t kind;    /* of the pc */
	bool is_outside; /* something was read that is not in the copy of the stack */
	uint8_t reason;  /* enum fathom_reason: why the code where it ended is not known */
	struct fathom_step_memory memory;
	struct fathom_reader stack;
	fathom_err err;
};

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
	/* The frame at hand may be read from its start on. */
	if (!w->is_outside)
		walk->outside = w->registers.sp <= avma ? w->registers.sp : avma;
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

		free(w);
		return err ? fathom_view_fail(v, err, reterr)
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
	w->memory = (struct fathom_step_memory){ &w->stack, &v->memory, w->layout.swap };
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

/* Bytes of code from which a program that has no call frame information there makes its first call.
 */
#define ENTRY_CODE 32

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

	k->bias = place->bias;
	if (place->holder && place->holder->module->main)
		k->is_entry = svma - place->holder->module->main->image.entry < ENTRY_CODE;
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
	k->is_signal = fde.cie->is_signal_frame;
	k->is_jit = place->fde || place->source == FATHOM_SOURCE_GDB_JIT;
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
	*k = (struct known_pc){
		.pc = pc, .is_set = true, .is_code = place.is_code, .reason = (uint8_t)place.reason
	};
	if (place.is_code)
		find_row(w, &place, k);
	return k;
}

/* Returns whether at @pc the code begins by which signal handlers return. */
static bool is_signal_return(struct fathom_walker *w, uint64_t pc)
{
	struct fathom_registers r = w->registers;
	bool is_signal;

	r.pc = pc;
	(void)fathom_step_signal(w->arch, &w->memory, &r, &is_signal);
	return is_signal;
}

/* Returns whether @pc is behind a call, in executable memory. */
static bool is_behind_call(struct fathom_walker *w, uint64_t pc)
{
	struct fathom_place place;

	return pc && !fathom_view_locate(w->view, pc - 1, &place) && place.is_code &&
	       fathom_step_is_behind_call(w->arch, &w->memory, pc);
}

/* Returns whether @pc can be a return address: behind a call, or that of a signal handler. */
static bool is_return_address(struct fathom_walker *w, uint64_t pc)
{
	return is_behind_call(w, pc) || (pc && is_signal_return(w, pc));
}

/*
 * Returns whether @w->registers, found by a frame pointer, can be a frame of JIT code that was not
 * called but jumped to with a return address made by hand, as HotSpot's interpreter does: in code
 * of no file, in a chain of frame pointers that goes on.
 */
static bool is_made_frame(struct fathom_walker *w)
{
	struct fathom_registers next = w->registers;
	struct fathom_place place;

	return !fathom_view_locate(w->view, next.pc - 1, &place) && place.is_code &&
	       !place.holder &&
	       fathom_step_frame_pointer(w->arch, &w->memory, &next) == FATHOM_STOP_NONE &&
	       !fathom_view_locate(w->view, next.pc - 1, &place) && place.is_code;
}

/* How far behind its start a function may be executed: a scan believes no longer ones. */
#define LONGEST_FUNCTION 65536

/*
 * Returns whether the call before @pc, a return address found by a scan, can have led to the code
 * at the walk's pc. Of an indirect call nobody knows. A direct one in the same module leads to a
 * function that starts a little before it, or to a stub that jumps on; what it leads to in another
 * module may jump here.
 */
static bool can_lead_here(struct fathom_walker *w, uint64_t pc)
{
	const struct fathom_reader *code = w->memory.code;
	struct fathom_place here;
	struct fathom_place there;
	uint8_t call[5];
	uint8_t stub[6];
	uint64_t target;

	if (w->arch->machine == EM_AARCH64 ||
	    !fathom_reader_read(code, pc - 5, call, sizeof call) || call[0] != 0xe8)
		return true;
	target = pc + (uint64_t)(int64_t)(int32_t)load_u32(call + 1, w->memory.swap);
	if (w->arch->word == 4)
		target = (uint32_t)target;
	if (target <= w->registers.pc && w->registers.pc - target < LONGEST_FUNCTION)
		return true;
	if (fathom_view_locate(w->view, w->registers.pc, &here) ||
	    fathom_view_locate(w->view, target, &there) || here.holder != there.holder)
		return true;
	/* endbr64, as PLTs with it have */
	if (fathom_reader_read(code, target, stub, 4) &&
	    load_u32(stub, w->memory.swap) == 0xfa1e0ff3)
		target += 4;
	return fathom_reader_read(code, target, stub, sizeof stub) &&
	       ((stub[0] == 0xff && stub[1] == 0x25) || (stub[0] == 0xf2 && stub[1] == 0xff));
}

/* Words that a scan looks at. */
#define SCAN_WORDS 512

/* Looks for a return address further up the stack. */
static enum fathom_stop scan(struct fathom_walker *w)
{
	struct fathom_registers *r = &w->registers;

	if (!fathom_register_known(r, w->arch->sp))
		return FATHOM_STOP_REGISTER;
	for (uint64_t i = 0; i < SCAN_WORDS; i++) {
		const uint64_t at = r->sp + i * w->arch->word;
		uint64_t pc;

		if (!fathom_reader_uint(&w->stack, at, w->arch->word, w->memory.swap, &pc))
			return i ? FATHOM_STOP_NO_RULE : FATHOM_STOP_UNREADABLE;
		if (!is_behind_call(w, pc) || !can_lead_here(w, pc))
			continue;
		r->known = 0;
		r->pc = pc;
		r->sp = at + w->arch->word;
		fathom_register_set(r, w->arch->pc, r->pc);
		fathom_register_set(r, w->arch->sp, r->sp);
		return FATHOM_STOP_NONE;
	}
	return FATHOM_STOP_NO_RULE;
}

/* Steps by what the code at the pc, of which @k is known, does until it returns. */
static enum fathom_stop step_by_code(struct fathom_walker *w, bool is_return, struct known_pc *k)
{
	const struct fathom_registers before = w->registers;
	enum fathom_stop stop;

	if (k->is_lost)
		return FATHOM_STOP_NO_RULE;
	stop = fathom_follow_to_return(w->follower, &w->memory, is_return, &w->registers);
	k->is_lost = stop == FATHOM_STOP_NO_RULE;
	if (stop == FATHOM_STOP_NONE && !is_return_address(w, w->registers.pc)) {
		w->registers = before;
		stop = FATHOM_STOP_NO_RULE;
	}
	return stop;
}

/*
 * Steps where nothing describes the code: by what the code does, else by what the stack looks like.
 * @is_return says that the pc is a return address.
 */
static enum fathom_stop step_by_guess(struct fathom_walker *w, bool is_return, struct known_pc *k,
				      uint8_t *trust)
{
	const struct fathom_registers before = w->registers;
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
	stop = step_by_code(w, is_return, k);
	if (stop == FATHOM_STOP_NONE)
		return stop;
	if (!fathom_register_known(&before, w->arch->fp))
		return FATHOM_STOP_REGISTER;
	*trust = FATHOM_TRUST_FRAME_POINTER;
	stop = fathom_step_frame_pointer(w->arch, &w->memory, &w->registers);
	if (stop == FATHOM_STOP_ENTRY)
		return stop;
	if (stop == FATHOM_STOP_NONE && (is_return_address(w, w->registers.pc) || is_made_frame(w)))
		return stop;
	w->registers = before;
	*trust = FATHOM_TRUST_SCAN;
	return scan(w);
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
 * Steps behind the instructions by which libgcc goes to a frame further out with an exception.
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
	if (k->has_row) {
		*trust = k->is_signal ? FATHOM_TRUST_SIGNAL
			 : k->is_jit  ? FATHOM_TRUST_JIT_CFI
				      : FATHOM_TRUST_CFI;
		if (is_exact)
			stop = step_eh_return(w, k, &is_eh_return);
		if (k->is_signal || is_eh_return)
			w->kind = FATHOM_PC_EXACT;
		return is_eh_return ? stop : step_row(w, k, is_exact);
	}
	if (!k->is_code && is_exact)
		return step_bad_call(w, trust);
	/* A trampoline may be at the start of its mapping: nothing is mapped before it. */
	stop = fathom_step_signal(w->arch, &w->memory, &w->registers, &is_signal);
	if (is_signal) {
		*trust = FATHOM_TRUST_SIGNAL;
		w->kind = FATHOM_PC_EXACT;
		return stop;
	}
	if (!k->is_code)
		return FATHOM_STOP_NO_RULE;
	return step_by_guess(w, !is_exact, k, trust);
}

static bool push(struct fathom_walker *w, uint8_t trust)
{
	const struct fathom_registers *r = &w->registers;
	const struct fathom_walk_frame f = { .pc = r->pc,
					     .sp = fathom_register_known(r, w->arch->sp)
							   ? r->sp
							   : FATHOM_NO_ADDRESS,
					     .kind = w->kind,
					     .trust = trust };

	if (!fathom_array_push(w->walk->frames, f))
		w->err = FATHOM_E_MEMORY;
	return !w->err;
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
		if (walk->frames->n - first >= walk->max_frames)
			return FATHOM_STOP_LIMIT;
		stop = step(w, &trust);
		if (stop || w->err)
			return stop;
		if (fathom_register_known(&w->registers, w->arch->sp) &&
		    fathom_walk_guard_is_cycle(&guard, &w->registers, sp))
			return FATHOM_STOP_LOOP;
	}
	return FATHOM_STOP_NONE;
}

fathom_err fathom_walker_run(struct fathom_walker *w, struct fathom_walk *walk)
{
	w->walk = walk;
	if (walk->pac_mask)
		w->process_arch.pac_mask = walk->pac_mask;
	w->registers = *walk->registers;
	w->kind = FATHOM_PC_EXACT;
	w->is_outside = false;
	w->reason = FATHOM_REASON_NONE;
	fathom_follower_begin(w->follower);
	w->err = FATHOM_OK;
	walk->n_inside = 0;
	walk->stop = run(w, walk);
	walk->reason = (enum fathom_reason)w->reason;
	return w->err;
}
