/* SPDX-License-Identifier: MIT */
#include "host/trace/got_slots.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "host/code/x86_64/x86_instructions.h"

/* jmp *rel32(%rip) */
enum { JUMP_SIZE = FATHOM_X86_BY_WORD_SIZE, OPERAND_SIZE = FATHOM_X86_REL32_SIZE };

/* Puts where the operand of @slot is to lead, to @avma, into @bytes; false if that is too far. */
static bool put_operand(const struct fathom_hooked_got_slot *slot, uint64_t avma,
			uint8_t bytes[OPERAND_SIZE])
{
	return fathom_x86_put_rel32(slot->operand + OPERAND_SIZE, avma, bytes);
}

/* Leads the operand of @slot to the slot. */
static bool heal_operand(const struct fathom_tracee *t, const struct fathom_hooked_got_slot *slot)
{
	uint8_t bytes[OPERAND_SIZE];

	return put_operand(slot, slot->avma, bytes) &&
	       fathom_tracee_write(t, slot->operand, bytes, sizeof bytes);
}

/* Leads @slot to where its word leads; the operand stays. */
static bool undo_one(const struct fathom_tracee *t, const struct fathom_hooked_got_slot *slot)
{
	const uint64_t content = fathom_tracee_word(t, slot->word);
	const uint64_t at = slot->avma - slot->bias;

	return content && fathom_tracee_write(t, slot->relocation, &at, sizeof at) &&
	       fathom_tracee_write(t, slot->avma, &content, sizeof content);
}

/* Returns the avma that the operand of @slot leads to; 0 if it is no such operand. */
static uint64_t operand_of(const struct fathom_traced *p, const struct fathom_hooked_got_slot *slot)
{
	const uint64_t jump = slot->operand + OPERAND_SIZE - JUMP_SIZE;
	uint8_t code[JUMP_SIZE];

	return fathom_tracee_read(&p->tracee, jump, code, sizeof code) &&
			       fathom_x86_is_jump_by_word(code)
		       ? fathom_x86_target(jump, code, sizeof code)
		       : 0;
}

/* Returns the avma of the word that stub @stub jumps by; 0: it is no stub. */
static uint64_t word_of(const struct fathom_traced *p, uint64_t stub)
{
	uint8_t code[FATHOM_X86_CALL_STUB_SIZE];

	return fathom_program_is_inside(p, stub) &&
			       fathom_tracee_read(&p->tracee, stub, code, sizeof code)
		       ? fathom_x86_word_of_stub(stub, code)
		       : 0;
}

bool fathom_got_slots_heal(const struct fathom_traced *p, const struct fathom_call_slot *slot,
			   uint64_t bias)
{
	struct fathom_hooked_got_slot was = { .avma = slot->address,
					      .relocation = slot->relocation,
					      .operand = slot->operand,
					      .bias = bias };
	Elf64_Rela r;

	if (slot->refusal || !fathom_tracee_read(&p->tracee, slot->relocation, &r, sizeof r))
		return false;
	if (slot->operand) {
		const uint64_t to = operand_of(p, &was);

		return to && to != was.avma && heal_operand(&p->tracee, &was);
	}
	/* He may have been killed between changing the relocation and the slot, or back. */
	was.word = r.r_offset + bias != slot->address
			   ? r.r_offset + bias
			   : word_of(p, fathom_tracee_word(&p->tracee, slot->address));
	return was.word && undo_one(&p->tracee, &was);
}

bool fathom_got_slots_take(const struct fathom_traced *p, struct fathom_text_memory *relocations,
			   struct fathom_text_memory *slots, const struct fathom_call_slot *slot,
			   uint64_t bias, struct fathom_hooked_got_slot *ret)
{
	Elf64_Rela r;

	*ret = (struct fathom_hooked_got_slot){ .avma = slot->address,
						.relocation = slot->relocation,
						.operand = slot->operand,
						.bias = bias };
	if (slot->refusal || !relocations->read(relocations, slot->relocation, &r, sizeof r) ||
	    r.r_offset + bias != slot->address ||
	    !slots->read(slots, slot->address, &ret->content, sizeof ret->content))
		return false;
	if (slot->operand)
		return operand_of(p, ret) == ret->avma;
	/*
	 * A function that is nowhere, because it need not be, stays so. What code calls through
	 * itself is nowhere, too, until the dynamic linker has relocated the module.
	 */
	return ret->content || (slot->flags & FATHOM_SLOT_DIRECT);
}

/* Adds the changes by which @slot, which holds @content, leads to its stub. */
static bool plan_slot(const struct fathom_hooked_got_slot *slot, uint64_t content,
		      struct fathom_text_plan *plan)
{
	const uint64_t at = slot->avma - slot->bias;
	const uint64_t word_at = slot->word - slot->bias;
	uint8_t to_slot[OPERAND_SIZE], to_word[OPERAND_SIZE];

	if (slot->operand) {
		(void)put_operand(slot, slot->avma, to_slot);
		(void)put_operand(slot, slot->word, to_word);
		return fathom_text_plan_add(plan, slot->operand, to_slot, to_word, OPERAND_SIZE, 0);
	}
	return fathom_text_plan_add(plan, slot->relocation, &at, &word_at, sizeof at, 0) &&
	       fathom_text_plan_add(plan, slot->avma, &content, &slot->stub, sizeof content, 0);
}

bool fathom_got_slots_plan(const struct fathom_hooked_got_slot *slot, uint64_t hook,
			   struct fathom_text_plan *stubs, struct fathom_text_plan *slots,
			   bool *ret_fits)
{
	const uint64_t target = slot->operand ? slot->avma : slot->word;
	const uint64_t content = slot->operand ? slot->stub : slot->content;
	uint8_t stub[FATHOM_X86_CALL_STUB_SIZE];
	uint8_t operand[OPERAND_SIZE];

	*ret_fits = fathom_x86_put_word_stub(slot->stub, hook, target, stub) &&
		    (!slot->operand || put_operand(slot, slot->word, operand));
	return !*ret_fits ||
	       (fathom_text_plan_add(stubs, slot->stub, NULL, stub, sizeof stub, 0) &&
		fathom_text_plan_add(stubs, slot->word, NULL, &content, sizeof content, 0) &&
		plan_slot(slot, slot->content, slots));
}

/* Undoes @plan, and empties it. */
static void undo(struct fathom_text_plan *plan, struct fathom_tracee_text *text)
{
	fathom_text_plan_sort(plan);
	(void)fathom_text_plan_put(plan, 0, false, &text->memory);
	(void)fathom_tracee_text_flush(text);
	fathom_text_plan_cut(plan, 0);
}

void fathom_got_slots_undo(const struct fathom_tracee *t, const struct fathom_hooked *hooked,
			   bool stands)
{
	struct fathom_text_plan plan = { 0 };
	struct fathom_tracee_text words, text;

	fathom_tracee_text_init(&words, t);
	fathom_tracee_text_init(&text, t);
	words.runs = text.runs = !stands;
	for (size_t i = 0; i < hooked->n; i++) {
		const struct fathom_hooked_got_slot *slot = &hooked->items[i];
		const size_t n = plan.n;
		uint64_t content = 0;

		/* The dynamic linker may have written it. */
		(void)words.memory.read(&words.memory, slot->word, &content, sizeof content);
		if (!slot->operand && !content)
			continue;
		if (!plan_slot(slot, content, &plan)) {
			/* Without more memory, in parts. */
			fathom_text_plan_cut(&plan, n);
			undo(&plan, &text);
			(void)plan_slot(slot, content, &plan);
		}
		if (!stands)
			undo(&plan, &text);
	}
	undo(&plan, &text);
	fathom_text_plan_clear(&plan);
}

void fathom_hooked_acquire(struct fathom_hooked *hooked)
{
	if (hooked)
		hooked->references++;
}

void fathom_hooked_release(struct fathom_hooked *hooked)
{
	if (!hooked || --hooked->references)
		return;
	fathom_array_free(hooked);
	free(hooked);
}
