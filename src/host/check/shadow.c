/* SPDX-License-Identifier: MIT */
#include "host/check/shadow.h"

#include "safe/unwind/step.h"

#define ARCH (&fathom_unwind_x86_64)

enum { RSP = 7, WORD = 8, LONGEST_INSTRUCTION = 15 };

/* DWARF numbers of what a function keeps for its caller. */
static const uint8_t kept_registers[FATHOM_SHADOW_KEPT] = { 3, 6, 12, 13, 14, 15 };

/* Frames further apart are of different stacks, as far as it matters here. */
#define NEAR (UINT64_C(1) << 20)
/* An instruction that moves the stack pointer further may have changed the stack. */
#define FAR 4096
/* Most frames that are searched, and that are kept. */
#define MOST_SEARCHED 4096
#define MOST_FRAMES   (1u << 20)

static struct fathom_step_memory memory_of(const struct fathom_shadow_work *w)
{
	return (struct fathom_step_memory){ .stack = &w->tracee->reader,
					    .code = &w->tracee->reader };
}

static bool is_behind_call(const struct fathom_shadow_work *w, uint64_t pc)
{
	const struct fathom_step_memory m = memory_of(w);

	return fathom_step_is_behind_call(ARCH, &m, pc);
}

/* Finds what the description at @r says of the caller. */
static enum fathom_stop describe(const struct fathom_shadow_work *w,
				 const struct fathom_jit_code_pc *made,
				 const struct fathom_registers *r, struct fathom_registers *ret)
{
	const struct fathom_step_memory m = memory_of(w);
	enum fathom_stop stop;

	*ret = *r;
	stop = fathom_step_row(&made->row, 0, ARCH, &m, ret);
	return !stop && !ret->pc ? FATHOM_STOP_ENTRY : stop;
}

/* Returns whether @caller, which a description leads to, may be the caller of code at @sp. */
static bool is_plausible(const struct fathom_shadow_work *w, uint64_t sp,
			 const struct fathom_registers *caller)
{
	return caller->sp > sp && is_behind_call(w, caller->pc);
}

static struct fathom_shadow_frame *top_of(const struct fathom_shadow *s)
{
	return &s->items[s->n - 1];
}

/* Appends a frame of the function at @made whose caller is @caller. */
static void push(struct fathom_shadow *s, struct fathom_shadow_work *w,
		 const struct fathom_jit_code_pc *made, const struct fathom_registers *caller)
{
	struct fathom_shadow_frame f = { .cfa = caller->sp,
					 .return_address = caller->pc,
					 .low = made->function->low,
					 .high = made->function->high };

	for (uint8_t i = 0; i < FATHOM_SHADOW_KEPT; i++) {
		f.kept[i] = caller->value[kept_registers[i]];
		f.known |= (uint32_t)fathom_register_known(caller, kept_registers[i]) << i;
	}
	if (fathom_tracee_word(w->tracee, f.cfa - WORD) == f.return_address)
		f.slot = f.cfa - WORD;
	/* Older frames on this stack are gone. */
	while (s->n && top_of(s)->cfa <= f.cfa && f.cfa - top_of(s)->cfa < NEAR)
		s->n--;
	s->is_in = s->n < MOST_FRAMES && fathom_array_push(s, f);
	w->count.frames += s->is_in;
	w->count.unjudged += !s->is_in;
}

/* Reports what differs, once for each function. */
static void report(struct fathom_shadow_work *w, struct fathom_shadow_break *b)
{
	uint8_t byte;

	/* Without the memory there is nothing to say: the program has just ended. */
	if (b->function->was_found || !fathom_tracee_read(w->tracee, b->address, &byte, 1))
		return;
	b->function->was_found = true;
	w->count.found++;
	w->found(w, b);
}

/*
 * Reports what differs at @pc: after the instruction that ran last in the frame, if that is of the
 * same function, else before the one at @pc.
 */
static void report_at(struct fathom_shadow_work *w, const struct fathom_jit_code_pc *made,
		      const struct fathom_shadow_frame *f, struct fathom_shadow_break b)
{
	b.function = made->function;
	b.pc = made->pc;
	b.address = f->last >= b.function->low && f->last < b.function->high ? f->last : b.pc;
	report(w, &b);
}

static void report_no_row(struct fathom_shadow_work *w, const struct fathom_jit_code_pc *made)
{
	const struct fathom_shadow_break b = { .function = made->function,
					       .address = made->pc,
					       .pc = made->pc,
					       .kind = FATHOM_JIT_FINDING_NO_RULE };

	if (made->function->lacks_row)
		return;
	made->function->lacks_row = true;
	w->count.undescribed++;
	w->found(w, &b);
}

/* Compares what the caller is with what is described. */
static void compare(struct fathom_shadow_work *w, const struct fathom_jit_code_pc *made,
		    const struct fathom_shadow_frame *f, const struct fathom_registers *described)
{
	struct fathom_shadow_break b = { .kind = FATHOM_JIT_FINDING_CFA,
					 .actual = f->cfa,
					 .described = described->sp };

	if (b.actual == b.described) {
		b.kind = FATHOM_JIT_FINDING_RETURN_ADDRESS;
		b.actual = f->return_address;
		b.described = described->pc;
	}
	for (uint8_t i = 0; i < FATHOM_SHADOW_KEPT && b.actual == b.described; i++) {
		const uint8_t number = kept_registers[i];

		if (w->flags & FATHOM_JIT_CHECK_FRAMES_ONLY || !(f->known >> i & 1) ||
		    !fathom_register_known(described, number))
			continue;
		b.kind = FATHOM_JIT_FINDING_REGISTER;
		b.reg = number;
		b.actual = f->kept[i];
		b.described = described->value[number];
	}
	if (b.actual != b.described)
		report_at(w, made, f, b);
}

/* Returns whether the description of @made says that there is no caller. */
static bool has_no_caller(const struct fathom_jit_code_pc *made)
{
	return fathom_row_rule(&made->row, made->row.return_register).kind == FATHOM_RULE_UNDEFINED;
}

/*
 * Finds what the description at @r says of the caller of @f. A wrong CFA mostly leads to memory
 * that cannot be read, or to a return address of 0, and is told all the same.
 */
static enum fathom_stop describe_wrong(const struct fathom_shadow_work *w,
				       const struct fathom_jit_code_pc *made,
				       const struct fathom_shadow_frame *f,
				       const struct fathom_registers *r,
				       struct fathom_registers *ret)
{
	const enum fathom_stop stop = describe(w, made, r, ret);

	if (stop == FATHOM_STOP_NONE || made->row.cfa.kind != FATHOM_RULE_REGISTER)
		return stop;
	ret->sp = r->value[made->row.cfa.number] + (uint64_t)made->row.cfa.offset;
	ret->pc = 0;
	return ret->sp != f->cfa || stop == FATHOM_STOP_ENTRY ? FATHOM_STOP_NONE : stop;
}

/* Compares the frame that runs with the description of the instruction at @r. */
static void judge(struct fathom_shadow *s, struct fathom_shadow_work *w,
		  const struct fathom_jit_code_pc *made, const struct fathom_registers *r)
{
	const struct fathom_shadow_frame *f = top_of(s);
	struct fathom_registers described;

	if (!made->has_row) {
		report_no_row(w, made);
		return;
	}
	w->count.instructions++;
	if (has_no_caller(made))
		return;
	if (describe_wrong(w, made, f, r, &described) == FATHOM_STOP_NONE)
		compare(w, made, f, &described);
	else
		report_at(w, made, f,
			  (struct fathom_shadow_break){ .kind = FATHOM_JIT_FINDING_UNREADABLE });
}

/* Returns whether the description of @made counts from the stack pointer. */
static bool is_from_sp(const struct fathom_jit_code_pc *made)
{
	return made->row.cfa.kind == FATHOM_RULE_REGISTER && made->row.cfa.number == RSP;
}

/*
 * Begins a frame at @r that is no known one: by a call if it is at the start of a function with a
 * return address on top of the stack. A description that counts from elsewhere may be of a function
 * that is one frame with its shim; @is_called: with the last frame, which has called it.
 */
static void begin_frame(struct fathom_shadow *s, struct fathom_shadow_work *w,
			const struct fathom_jit_code_pc *made, const struct fathom_registers *r,
			bool is_called)
{
	const uint64_t top = fathom_tracee_word(w->tracee, r->sp);
	const bool is_call = r->pc == made->function->low && is_behind_call(w, top);
	struct fathom_registers caller;

	s->is_in = false;
	if (made->has_row && !(is_call && is_from_sp(made)) &&
	    describe(w, made, r, &caller) == FATHOM_STOP_NONE && is_plausible(w, r->sp, &caller)) {
		s->is_in = is_called && top_of(s)->cfa == caller.sp;
		if (!s->is_in)
			push(s, w, made, &caller);
	} else if (is_call) {
		caller = *r;
		caller.pc = top;
		caller.sp = r->sp + WORD;
		push(s, w, made, &caller);
	} else {
		w->count.unjudged++;
	}
}

/*
 * Returns whether @f goes on at @r: where a call or a signal returns or, with @anywhere, elsewhere
 * in its function, at a landing pad. At the start of a function it is called anew, unless a signal
 * has come there.
 */
static bool goes_on(const struct fathom_shadow_frame *f, const struct fathom_jit_code_pc *made,
		    const struct fathom_registers *r, bool from_signal, bool anywhere)
{
	if (f->wait_sp != r->sp)
		return false;
	if (r->pc == made->function->low && r->sp == f->cfa - WORD &&
	    !(from_signal && f->is_interrupted))
		return false;
	return anywhere ? r->pc >= f->low && r->pc < f->high : r->pc == f->wait_pc;
}

/* Counts the function of @made, once. */
static void note_run(struct fathom_shadow_work *w, const struct fathom_jit_code_pc *made)
{
	w->count.functions += !made->function->was_run;
	made->function->was_run = true;
}

/* Returns the number after the frame that goes on at @r; 0 if none does. */
static size_t find_waiting(const struct fathom_shadow *s, const struct fathom_jit_code_pc *made,
			   const struct fathom_registers *r, bool from_signal, bool anywhere)
{
	const size_t end = s->n < MOST_SEARCHED ? 0 : s->n - MOST_SEARCHED;

	for (size_t i = s->n; i > end; i--) {
		const struct fathom_shadow_frame *f = &s->items[i - 1];

		if (goes_on(f, made, r, from_signal, anywhere))
			return i;
		/* Those before it are further up the same stack. */
		if (f->wait_sp > r->sp && f->wait_sp - r->sp < NEAR)
			break;
	}
	return 0;
}

/*
 * The frame @f goes on at @r. Others may have changed what it keeps on the stack, on purpose:
 * return addresses, and pointers that a collector has moved.
 */
static void learn_again(struct fathom_shadow_frame *f, const struct fathom_shadow_work *w,
			const struct fathom_jit_code_pc *made, const struct fathom_registers *r)
{
	struct fathom_registers caller;

	if (f->slot)
		f->return_address = fathom_tracee_word(w->tracee, f->slot);
	if (f->is_interrupted || !made->has_row ||
	    describe(w, made, r, &caller) != FATHOM_STOP_NONE)
		return;
	for (uint8_t i = 0; i < FATHOM_SHADOW_KEPT; i++)
		if (fathom_row_rule(&made->row, kept_registers[i]).kind == FATHOM_RULE_AT_OFFSET &&
		    fathom_register_known(&caller, kept_registers[i]))
			f->kept[i] = caller.value[kept_registers[i]];
}

void fathom_shadow_enter(struct fathom_shadow *s, struct fathom_shadow_work *w,
			 const struct fathom_registers *r, bool from_signal)
{
	const struct fathom_jit_code_pc *made = fathom_published_at(w->published, r->pc);
	size_t found;

	s->is_in = false;
	if (!made)
		return;
	note_run(w, made);
	found = find_waiting(s, made, r, from_signal, false);
	if (!found)
		found = find_waiting(s, made, r, from_signal, true);
	if (found) {
		struct fathom_shadow_frame *f = &s->items[found - 1];

		s->n = found;
		s->is_in = true;
		learn_again(f, w, made, r);
		w->count.instructions -= f->is_interrupted && made->has_row;
		f->is_interrupted = false;
	} else {
		begin_frame(s, w, made, r, false);
	}
	if (s->is_in)
		judge(s, w, made, r);
}

/* The frame that runs is left: it goes on at @pc, 0: not known, with the stack pointer at @sp. */
static void leave(struct fathom_shadow *s, uint64_t pc, uint64_t sp)
{
	if (s->is_in) {
		top_of(s)->wait_pc = pc;
		top_of(s)->wait_sp = sp;
	}
	s->is_in = false;
}

void fathom_shadow_wait(struct fathom_shadow *s, uint64_t pc, uint64_t sp)
{
	leave(s, pc, sp);
}

void fathom_shadow_pause(struct fathom_shadow *s, uint64_t pc, uint64_t sp)
{
	if (s->is_in)
		top_of(s)->is_interrupted = true;
	leave(s, pc, sp);
}

/* Ends the frame that runs: a return from @pc, with the stack pointer at @sp, has led to @r. */
static void end(struct fathom_shadow *s, struct fathom_shadow_work *w, uint64_t pc, uint64_t sp,
		const struct fathom_registers *r)
{
	const struct fathom_shadow_frame *f = top_of(s);
	const struct fathom_jit_code_pc *made = fathom_published_at(w->published, pc);
	struct fathom_shadow_break b = { .address = pc,
					 .pc = r->pc,
					 .kind = FATHOM_JIT_FINDING_RETURN_PC,
					 .actual = r->pc,
					 .described = f->return_address };

	if (b.actual == b.described) {
		/* A return can take arguments from the stack; a jump takes nothing. */
		b.kind = FATHOM_JIT_FINDING_RETURN_SP;
		b.actual = r->sp;
		b.described = f->cfa + (r->sp == sp ? 0 : r->sp - sp - WORD);
	}
	if (b.actual != b.described && made) {
		b.function = made->function;
		report(w, &b);
	}
	s->n--;
	s->is_in = false;
}

/* Returns whether the instruction at @pc has called: it left its end on the stack. */
static bool was_call(const struct fathom_shadow_work *w, uint64_t pc, uint64_t sp,
		     const struct fathom_registers *r)
{
	uint64_t next;

	if (r->sp != sp - WORD)
		return false;
	next = fathom_tracee_word(w->tracee, r->sp);
	return next > pc && next - pc <= LONGEST_INSTRUCTION && is_behind_call(w, next);
}

/* Returns whether the instruction at @pc has returned: it went where the stack says. */
static bool was_return(const struct fathom_shadow_work *w, uint64_t pc, uint64_t sp,
		       const struct fathom_registers *r)
{
	return r->sp >= sp + WORD && r->sp - sp <= WORD + UINT16_MAX &&
	       r->pc - pc > LONGEST_INSTRUCTION && fathom_tracee_word(w->tracee, sp) == r->pc;
}

/*
 * Returns whether the instruction at @pc moves the stack pointer by a distance: sub, add or lea,
 * with a prefix for 64 bits.
 */
static bool is_relative(const struct fathom_shadow_work *w, uint64_t pc)
{
	static const uint8_t opcodes[] = { 0x01, 0x03, 0x29, 0x2b, 0x81, 0x83, 0x8d };
	uint8_t code[2];

	return fathom_tracee_read(w->tracee, pc, code, sizeof code) && (code[0] & 0xf0) == 0x40 &&
	       memchr(opcodes, code[1], sizeof opcodes);
}

/* Returns whether the instruction at @pc has led to another stack, as switches of coroutines do. */
static bool has_switched(const struct fathom_shadow *s, const struct fathom_shadow_work *w,
			 uint64_t pc, uint64_t sp, const struct fathom_jit_code_pc *made,
			 const struct fathom_registers *r)
{
	struct fathom_registers caller;

	return r->sp - sp + FAR > 2 * FAR && !is_relative(w, pc) &&
	       !(made->has_row && describe(w, made, r, &caller) == FATHOM_STOP_NONE &&
		 caller.sp == top_of(s)->cfa);
}

/* The thread goes on in published code, maybe in another function that it has jumped to. */
static void step_on(struct fathom_shadow *s, struct fathom_shadow_work *w, uint64_t pc, uint64_t sp,
		    const struct fathom_jit_code_pc *made, const struct fathom_registers *r)
{
	note_run(w, made);
	if (!s->is_in)
		return;
	if (has_switched(s, w, pc, sp, made, r)) {
		leave(s, 0, sp);
		begin_frame(s, w, made, r, false);
	}
	if (!s->is_in)
		return;
	top_of(s)->low = made->function->low;
	top_of(s)->high = made->function->high;
	judge(s, w, made, r);
}

/* The instruction at @pc has called @r, which may be in published code. */
static void step_call(struct fathom_shadow *s, struct fathom_shadow_work *w, uint64_t sp,
		      const struct fathom_jit_code_pc *made, const struct fathom_registers *r)
{
	const uint64_t next = fathom_tracee_word(w->tracee, r->sp);
	const bool was_in = s->is_in;

	/* It pushes its own address so. */
	if (r->pc == next && made) {
		if (s->is_in)
			judge(s, w, made, r);
		return;
	}
	leave(s, next, sp);
	if (!made)
		return;
	note_run(w, made);
	begin_frame(s, w, made, r, was_in);
	if (s->is_in)
		step_on(s, w, r->pc, r->sp, made, r);
}

/* The instruction has returned to @r. */
static void step_return(struct fathom_shadow *s, struct fathom_shadow_work *w, uint64_t pc,
			uint64_t sp, const struct fathom_jit_code_pc *made,
			const struct fathom_registers *r)
{
	/* Back to the shim, or a jump by a return: the frame goes on. */
	if (s->is_in && r->sp < top_of(s)->cfa && made) {
		step_on(s, w, pc, sp, made, r);
		return;
	}
	if (s->is_in && r->sp >= top_of(s)->cfa)
		end(s, w, pc, sp, r);
	else
		leave(s, 0, r->sp);
	if (made)
		fathom_shadow_enter(s, w, r, false);
}

/* Returns whether the frame that runs has ended by a jump to its return address. */
static bool has_returned(const struct fathom_shadow *s, uint64_t pc,
			 const struct fathom_registers *r)
{
	return s->is_in && r->pc == top_of(s)->return_address && r->sp == top_of(s)->cfa &&
	       r->pc - pc > LONGEST_INSTRUCTION;
}

void fathom_shadow_step(struct fathom_shadow *s, struct fathom_shadow_work *w, uint64_t pc,
			uint64_t sp, const struct fathom_registers *r, bool has_signal)
{
	const struct fathom_jit_code_pc *made = fathom_published_at(w->published, r->pc);

	if (has_signal && r->sp != sp && r->pc - pc > LONGEST_INSTRUCTION) {
		fathom_shadow_pause(s, pc, sp);
		if (made)
			fathom_shadow_enter(s, w, r, false);
		return;
	}
	if (s->is_in)
		top_of(s)->last = pc;
	if (was_call(w, pc, sp, r))
		step_call(s, w, sp, made, r);
	else if (was_return(w, pc, sp, r) || has_returned(s, pc, r))
		step_return(s, w, pc, sp, made, r);
	else if (made)
		step_on(s, w, pc, sp, made, r);
	else
		leave(s, 0, r->sp);
}
