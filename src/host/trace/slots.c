/* SPDX-License-Identifier: MIT */
#include "host/trace/slots.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* x86-64: call rel32; jmp *rel32(%rip) */
enum { CALL = 0xe8, CALL_SIZE = 5, BY_WORD = 0xff, JUMPS = 0x25, JUMP_SIZE = 6, OPERAND_SIZE = 4 };

/* Has the operand of @slot lead to @avma. */
static bool lead_operand(const struct fathom_tracee *t, const struct fathom_hooked_slot *slot,
			 uint64_t avma)
{
	const int64_t distance = (int64_t)(avma - (slot->operand + OPERAND_SIZE));

	return distance == (int32_t)distance &&
	       fathom_tracee_write(t, slot->operand, &distance, OPERAND_SIZE);
}

/* Returns the avma that the operand of @slot leads to; 0 if it is no such operand. */
static uint64_t operand_of(const struct fathom_traced *p, const struct fathom_hooked_slot *slot)
{
	uint8_t code[2 + OPERAND_SIZE];
	int32_t distance;

	if (!fathom_tracee_read(&p->tracee, slot->operand - 2, code, sizeof code) ||
	    code[0] != BY_WORD || code[1] != JUMPS)
		return 0;
	memcpy(&distance, code + 2, sizeof distance);
	return slot->operand + OPERAND_SIZE + (uint64_t)(int64_t)distance;
}

/* Returns the avma of the word that stub @stub jumps by; 0: it is no stub. */
static uint64_t word_of(const struct fathom_traced *p, uint64_t stub)
{
	uint8_t code[CALL_SIZE + JUMP_SIZE];
	int32_t distance;

	if (!fathom_program_is_inside(p, stub) ||
	    !fathom_tracee_read(&p->tracee, stub, code, sizeof code) || code[0] != CALL ||
	    code[CALL_SIZE] != BY_WORD || code[CALL_SIZE + 1] != JUMPS)
		return 0;
	memcpy(&distance, code + CALL_SIZE + 2, sizeof distance);
	return stub + sizeof code + (uint64_t)(int64_t)distance;
}

bool fathom_slots_heal(const struct fathom_traced *p, const struct fathom_call_slot *slot,
		       uint64_t bias)
{
	struct fathom_hooked_slot was = { .avma = slot->address,
					  .relocation = slot->relocation,
					  .operand = slot->operand,
					  .bias = bias };
	Elf64_Rela r;

	if (slot->refusal || !fathom_tracee_read(&p->tracee, slot->relocation, &r, sizeof r))
		return false;
	if (slot->operand) {
		const uint64_t to = operand_of(p, &was);

		return to && to != was.avma && lead_operand(&p->tracee, &was, was.avma);
	}
	/* He may have been killed between changing the relocation and the slot, or back. */
	was.word = r.r_offset + bias != slot->address
			   ? r.r_offset + bias
			   : word_of(p, fathom_tracee_word(&p->tracee, slot->address));
	return was.word && fathom_slots_undo(&p->tracee, &was);
}

bool fathom_slots_take(const struct fathom_traced *p, const struct fathom_call_slot *slot,
		       uint64_t bias, struct fathom_hooked_slot *ret)
{
	Elf64_Rela r;
	uint64_t content;

	*ret = (struct fathom_hooked_slot){ .avma = slot->address,
					    .relocation = slot->relocation,
					    .operand = slot->operand,
					    .bias = bias };
	if (slot->refusal || !fathom_tracee_read(&p->tracee, slot->relocation, &r, sizeof r))
		return false;
	if (r.r_offset + bias != slot->address ||
	    !fathom_tracee_read(&p->tracee, slot->address, &content, sizeof content))
		return false;
	if (slot->operand)
		return operand_of(p, ret) == ret->avma;
	/*
	 * A function that is nowhere, because it need not be, stays so. What code calls through
	 * itself is nowhere, too, until the dynamic linker has relocated the module.
	 */
	return content || (slot->flags & FATHOM_SLOT_DIRECT);
}

bool fathom_slots_hook(const struct fathom_traced *p, const struct fathom_hooked_slot *slot,
		       uint64_t hook)
{
	const uint64_t target = slot->operand ? slot->avma : slot->word;
	const int64_t call = (int64_t)(hook - (slot->stub + CALL_SIZE));
	const int64_t jump = (int64_t)(target - (slot->stub + CALL_SIZE + JUMP_SIZE));
	const uint64_t at = slot->word - slot->bias;
	const uint64_t content =
		slot->operand ? slot->stub : fathom_tracee_word(&p->tracee, slot->avma);
	uint8_t stub[CALL_SIZE + JUMP_SIZE] = { CALL, 0, 0, 0, 0, BY_WORD, JUMPS };

	memcpy(stub + 1, &call, 4);
	memcpy(stub + CALL_SIZE + 2, &jump, 4);
	if (call != (int32_t)call || jump != (int32_t)jump ||
	    !fathom_tracee_write(&p->tracee, slot->stub, stub, sizeof stub) ||
	    !fathom_tracee_write(&p->tracee, slot->word, &content, sizeof content))
		return false;
	if (slot->operand)
		return lead_operand(&p->tracee, slot, slot->word);
	return fathom_tracee_write(&p->tracee, slot->relocation, &at, sizeof at) &&
	       fathom_tracee_write(&p->tracee, slot->avma, &slot->stub, sizeof slot->stub);
}

bool fathom_slots_undo(const struct fathom_tracee *t, const struct fathom_hooked_slot *slot)
{
	const uint64_t content = fathom_tracee_word(t, slot->word);
	const uint64_t at = slot->avma - slot->bias;

	if (slot->operand)
		return lead_operand(t, slot, slot->avma);
	return content && fathom_tracee_write(t, slot->relocation, &at, sizeof at) &&
	       fathom_tracee_write(t, slot->avma, &content, sizeof content);
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
