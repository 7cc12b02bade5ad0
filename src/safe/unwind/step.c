/* SPDX-License-Identifier: MIT */
#include "safe/unwind/step.h"

#include <elf.h>

#include "safe/base/cursor.h"

const struct fathom_unwind_arch *fathom_unwind_arch(uint32_t machine)
{
	switch (machine) {
	case EM_X86_64:
		return &fathom_unwind_x86_64;
	case EM_386:
		return &fathom_unwind_i386;
	case EM_AARCH64:
		return &fathom_unwind_aarch64;
	default:
		return NULL;
	}
}

/* Returns the bits that a register of @arch has. */
static uint64_t word_mask(const struct fathom_unwind_arch *arch)
{
	return arch->word == 8 ? UINT64_MAX : UINT32_MAX;
}

/* Reads the word at @avma. */
static bool read_word(const struct fathom_unwind_arch *arch, const struct fathom_step_memory *m,
		      uint64_t avma, uint64_t *ret)
{
	return fathom_reader_uint(m->stack, avma & word_mask(arch), arch->word, m->swap, ret);
}

static void set_pc(const struct fathom_unwind_arch *arch, struct fathom_registers *r, uint64_t pc)
{
	r->pc = pc;
	fathom_register_set(r, arch->pc, pc);
}

static void set_sp(const struct fathom_unwind_arch *arch, struct fathom_registers *r, uint64_t sp)
{
	r->sp = sp;
	fathom_register_set(r, arch->sp, sp);
}

static void forget(struct fathom_registers *r, uint8_t number)
{
	r->known &= ~(UINT64_C(1) << number);
	r->value[number] = 0;
}

/* Frame to which the rules of one row are applied. */
struct step {
	const struct fathom_row *row;
	const struct fathom_unwind_arch *arch;
	const struct fathom_step_memory *m;
	const struct fathom_registers *callee;
	uint64_t bias;
	uint64_t cfa;
};

static enum fathom_stop run_expression(const struct step *s, const struct fathom_rule *rule,
				       bool has_cfa, uint64_t *ret)
{
	const struct fathom_expression_frame frame = { .registers = s->callee,
						       .arch = s->arch,
						       .memory = s->m->stack,
						       .bias = s->bias,
						       .swap = s->m->swap,
						       .has_initial = has_cfa,
						       .initial = s->cfa };

	return fathom_expression_run(&frame, (struct fathom_bytes){ rule->expression, rule->size },
				     ret);
}

static enum fathom_stop find_cfa(struct step *s)
{
	const struct fathom_rule *rule = &s->row->cfa;

	if (rule->kind == FATHOM_RULE_EXPRESSION)
		return run_expression(s, rule, false, &s->cfa);
	if (rule->kind != FATHOM_RULE_REGISTER)
		return FATHOM_STOP_NO_RULE;
	if (!fathom_register_known(s->callee, rule->number))
		return FATHOM_STOP_REGISTER;
	s->cfa = (s->callee->value[rule->number] + (uint64_t)rule->offset) & word_mask(s->arch);
	return FATHOM_STOP_NONE;
}

/* Finds the caller's value of a register by @rule, which is not UNSPECIFIED or SAME. */
static enum fathom_stop apply(const struct step *s, const struct fathom_rule *rule, uint64_t *ret)
{
	enum fathom_stop stop;
	uint64_t at;

	switch (rule->kind) {
	case FATHOM_RULE_AT_OFFSET:
		at = s->cfa + (uint64_t)rule->offset;
		return read_word(s->arch, s->m, at, ret) ? FATHOM_STOP_NONE
							 : FATHOM_STOP_UNREADABLE;
	case FATHOM_RULE_OFFSET:
		*ret = (s->cfa + (uint64_t)rule->offset) & word_mask(s->arch);
		return FATHOM_STOP_NONE;
	case FATHOM_RULE_REGISTER:
		if (!fathom_register_known(s->callee, rule->number))
			return FATHOM_STOP_REGISTER;
		*ret = s->callee->value[rule->number];
		return FATHOM_STOP_NONE;
	case FATHOM_RULE_AT_EXPRESSION:
		stop = run_expression(s, rule, true, &at);
		if (stop)
			return stop;
		return read_word(s->arch, s->m, at, ret) ? FATHOM_STOP_NONE
							 : FATHOM_STOP_UNREADABLE;
	case FATHOM_RULE_EXPRESSION:
		return run_expression(s, rule, true, ret);
	default:
		return FATHOM_STOP_NO_RULE;
	}
}

/* Finds the return address. */
static enum fathom_stop find_return(const struct step *s, uint64_t *ret)
{
	const uint8_t number = s->row->return_register;
	struct fathom_rule rule = fathom_row_rule(s->row, number);
	enum fathom_stop stop;
	uint64_t pc;

	if (rule.kind == FATHOM_RULE_UNDEFINED)
		return FATHOM_STOP_ENTRY;
	if (rule.kind == FATHOM_RULE_UNSPECIFIED || rule.kind == FATHOM_RULE_SAME) {
		if (number == s->arch->pc) /* a frame does not return to where it is */
			return FATHOM_STOP_NO_RULE;
		rule = (struct fathom_rule){ .kind = FATHOM_RULE_REGISTER, .number = number };
	}
	stop = apply(s, &rule, &pc);
	if (stop)
		return stop;
	if (s->row->is_ra_signed)
		pc = fathom_unwind_unsigned(s->arch, pc);
	*ret = pc;
	return FATHOM_STOP_NONE;
}

/* Finds register @number of the caller; false if it is not recovered. */
static bool recover(const struct step *s, uint8_t number, uint64_t *ret)
{
	const struct fathom_rule rule = fathom_row_rule(s->row, number);

	if (rule.kind == FATHOM_RULE_UNSPECIFIED && number == s->arch->sp) {
		*ret = s->cfa;
		return true;
	}
	if (rule.kind == FATHOM_RULE_SAME ||
	    (rule.kind == FATHOM_RULE_UNSPECIFIED && s->arch->callee_saved >> number & 1)) {
		*ret = s->callee->value[number];
		return fathom_register_known(s->callee, number);
	}
	return !apply(s, &rule, ret);
}

enum fathom_stop fathom_step_row(const struct fathom_row *row, uint64_t bias,
				 const struct fathom_unwind_arch *arch,
				 const struct fathom_step_memory *m, struct fathom_registers *r)
{
	struct step s = { row, arch, m, r, bias, 0 };
	struct fathom_registers caller;
	uint64_t pc = 0;
	uint64_t value = 0;
	enum fathom_stop stop = find_cfa(&s);

	stop = stop ? stop : find_return(&s, &pc);
	if (stop)
		return stop;
	caller.machine = r->machine;
	caller.known = 0;
	caller.sp = 0;
	for (uint8_t i = 0; i < arch->n; i++) {
		/*
		 * A call leaves its return address in the link register, not what the caller had.
		 */
		if (i == arch->pc || i == row->return_register || !recover(&s, i, &value))
			caller.value[i] = 0;
		else if (i == arch->sp)
			set_sp(arch, &caller, value);
		else
			fathom_register_set(&caller, i, value);
	}
	for (uint8_t i = arch->n; i < FATHOM_REGISTERS; i++)
		caller.value[i] = 0;
	set_pc(arch, &caller, pc);
	*r = caller;
	return FATHOM_STOP_NONE;
}

/* Returns the place of @t that r->pc is at; NULL if it is not in this code. */
static const struct fathom_signal_place *find_place(const struct fathom_signal_return *t,
						    const struct fathom_step_memory *m, uint64_t pc)
{
	uint8_t code[sizeof t->code];

	for (uint8_t i = 0; i < t->n_places; i++)
		if (fathom_reader_read(m->code, pc - t->places[i].at, code, t->size) &&
		    memcmp(code, t->code, t->size) == 0)
			return &t->places[i];
	return NULL;
}

/* Reads the registers that the kernel has saved at @avma. */
static enum fathom_stop read_saved(const struct fathom_unwind_arch *arch,
				   const struct fathom_step_memory *m, uint64_t avma,
				   struct fathom_registers *r)
{
	uint8_t bytes[FATHOM_SIGNAL_SLOTS * 8];
	const size_t size = (size_t)arch->n_signal_slots * arch->word;
	struct fathom_cursor c = cur_init((struct fathom_bytes){ bytes, size }, m->swap);
	struct fathom_registers saved = { .machine = r->machine };

	if (!fathom_reader_read(m->stack, avma & word_mask(arch), bytes, size))
		return FATHOM_STOP_UNREADABLE;
	for (uint8_t i = 0; i < arch->n_signal_slots; i++) {
		const uint64_t value = cur_uint(&c, arch->word);

		if (arch->signal_slots[i] != FATHOM_NO_REGISTER)
			fathom_register_set(&saved, arch->signal_slots[i], value);
	}
	saved.pc = saved.value[arch->pc];
	saved.sp = saved.value[arch->sp];
	*r = saved;
	return FATHOM_STOP_NONE;
}

bool fathom_step_is_signal_return(const struct fathom_unwind_arch *arch,
				  const struct fathom_step_memory *m, uint64_t pc)
{
	for (uint8_t i = 0; i < arch->n_signal_returns; i++)
		if (find_place(&arch->signal_returns[i], m, pc))
			return true;
	return false;
}

enum fathom_stop fathom_step_signal(const struct fathom_unwind_arch *arch,
				    const struct fathom_step_memory *m, struct fathom_registers *r,
				    bool *ret_is)
{
	const struct fathom_signal_place *place = NULL;

	for (uint8_t i = 0; i < arch->n_signal_returns && !place; i++)
		place = find_place(&arch->signal_returns[i], m, r->pc);
	*ret_is = place != NULL;
	if (!place)
		return FATHOM_STOP_NONE;
	if (!fathom_register_known(r, arch->sp))
		return FATHOM_STOP_REGISTER;
	return read_saved(arch, m, r->sp + place->registers, r);
}

bool fathom_step_siginfo(const struct fathom_unwind_arch *arch, const struct fathom_step_memory *m,
			 const struct fathom_registers *r, uint64_t *ret)
{
	for (uint8_t i = 0; i < arch->n_signal_returns; i++) {
		const struct fathom_signal_return *t = &arch->signal_returns[i];

		if (!t->has_siginfo || !find_place(t, m, r->pc))
			continue;
		*ret = (r->sp + t->siginfo) & word_mask(arch);
		return true;
	}
	return false;
}

enum fathom_stop fathom_step_eh_return(const struct fathom_unwind_arch *arch,
				       const struct fathom_step_memory *m,
				       struct fathom_registers *r, bool *ret_is)
{
	/* mov %rcx,%rsp; then pop %rcx; jmp *%rcx, with shadow stacks, or ret. */
	static const uint8_t jumps[] = { 0x48, 0x89, 0xcc, 0x59, 0xff, 0xe1 };
	static const uint8_t returns[] = { 0x48, 0x89, 0xcc, 0xc3 };
	enum { MOVE = 0, TAKE = 3, JUMP = 4, COUNTER = 2 /* rcx */ };
	uint8_t code[JUMP + sizeof jumps]; /* from JUMP bytes before pc on */
	uint64_t sp = r->sp;
	uint64_t pc;
	size_t size;
	uint8_t at;

	*ret_is = false;
	if (arch->machine != EM_X86_64)
		return FATHOM_STOP_NONE;
	size = m->code->read(m->code->data, r->pc - JUMP, code, sizeof code);
	for (at = MOVE; at <= JUMP && !*ret_is; at++) {
		const uint8_t *start = code + JUMP - at;
		const size_t left = size > (size_t)(JUMP - at) ? size - (JUMP - at) : 0;

		*ret_is = (at == MOVE || at >= TAKE) &&
			  ((left >= sizeof jumps && memcmp(start, jumps, sizeof jumps) == 0) ||
			   (at < JUMP && left >= sizeof returns &&
			    memcmp(start, returns, sizeof returns) == 0));
	}
	if (!*ret_is)
		return FATHOM_STOP_NONE;
	at--;
	if (at != TAKE && !fathom_register_known(r, COUNTER))
		return FATHOM_STOP_REGISTER;
	if (at == MOVE)
		sp = r->value[COUNTER];
	if (at == JUMP)
		pc = r->value[COUNTER];
	else if (!read_word(arch, m, sp, &pc))
		return FATHOM_STOP_UNREADABLE;
	set_sp(arch, r, at == JUMP ? sp : sp + arch->word);
	set_pc(arch, r, pc);
	return pc ? FATHOM_STOP_NONE : FATHOM_STOP_NO_RULE;
}

enum fathom_stop fathom_step_bad_call(const struct fathom_unwind_arch *arch,
				      const struct fathom_step_memory *m,
				      struct fathom_registers *r)
{
	const bool has_link = arch->link != FATHOM_NO_REGISTER;
	uint64_t pc;

	if (!fathom_register_known(r, has_link ? arch->link : arch->sp))
		return FATHOM_STOP_REGISTER;
	if (has_link)
		pc = r->value[arch->link];
	else if (!read_word(arch, m, r->sp, &pc))
		return FATHOM_STOP_UNREADABLE;
	if (!pc)
		return FATHOM_STOP_NO_RULE;
	if (has_link)
		forget(r, arch->link);
	else
		set_sp(arch, r, (r->sp + arch->word) & word_mask(arch));
	set_pc(arch, r, pc);
	return FATHOM_STOP_NONE;
}

enum fathom_stop fathom_step_frame_pointer(const struct fathom_unwind_arch *arch,
					   const struct fathom_step_memory *m,
					   struct fathom_registers *r)
{
	const uint64_t fp = r->value[arch->fp];
	struct fathom_registers caller = { .machine = r->machine };
	uint64_t saved;
	uint64_t pc;

	if (!fathom_register_known(r, arch->fp))
		return FATHOM_STOP_REGISTER;
	if (!fp || fp % arch->word || fp > word_mask(arch) - 2u * arch->word ||
	    (fathom_register_known(r, arch->sp) && fp < r->sp))
		return FATHOM_STOP_NO_RULE;
	if (!read_word(arch, m, fp, &saved) || !read_word(arch, m, fp + arch->word, &pc))
		return FATHOM_STOP_UNREADABLE;
	pc = fathom_unwind_unsigned(arch, pc);
	if ((saved && saved <= fp) || saved % arch->word || (saved && !pc))
		return FATHOM_STOP_NO_RULE;
	fathom_register_set(&caller, arch->fp, saved);
	set_pc(arch, &caller, pc);
	/* On aarch64 the record stands anywhere in its frame. */
	if (arch->link == FATHOM_NO_REGISTER)
		set_sp(arch, &caller, fp + 2u * arch->word);
	*r = caller;
	return FATHOM_STOP_NONE;
}

/* Reads the code before @pc into @code; returns how much of it there is. */
static uint8_t read_before(const struct fathom_unwind_arch *arch,
			   const struct fathom_step_memory *m, uint64_t pc, uint8_t *code)
{
	if (pc % arch->code_alignment)
		return 0;
	/* At the start of a mapping less than the longest call can be read. */
	for (uint8_t n = arch->max_call; n > 1; n--)
		if (pc >= n && fathom_reader_read(m->code, pc - n, code, n))
			return n;
	return 0;
}

bool fathom_step_is_behind_call(const struct fathom_unwind_arch *arch,
				const struct fathom_step_memory *m, uint64_t pc)
{
	uint8_t code[FATHOM_MAX_CALL];
	const uint8_t n = read_before(arch, m, pc, code);

	return n && arch->ends_with_call(code, n);
}

bool fathom_step_call_target(const struct fathom_unwind_arch *arch,
			     const struct fathom_step_memory *m, uint64_t pc, uint64_t *ret)
{
	uint8_t code[FATHOM_MAX_CALL];
	const uint8_t n = read_before(arch, m, pc, code);
	uint64_t distance;

	if (!n || !arch->ends_with_direct_call(code, n, &distance))
		return false;
	*ret = arch->word == 8 ? pc + distance : (uint32_t)(pc + distance);
	return true;
}
