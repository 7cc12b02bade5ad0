/* SPDX-License-Identifier: MIT */
#include "host/trace/got_slots.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "host/code/x86_64/x86_instructions.h"

/* A stub: call rel32; jmp *rel32(%rip) */
enum {
	CALL_SIZE = FATHOM_X86_BRANCH_SIZE,
	JUMP_SIZE = FATHOM_X86_BY_WORD_SIZE,
	OPERAND_SIZE = FATHOM_X86_REL32_SIZE
};

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
	uint8_t code[CALL_SIZE + JUMP_SIZE];

	return fathom_program_is_inside(p, stub) &&
			       fathom_tracee_read(&p->tracee, stub, code, sizeof code) &&
			       code[0] == FATHOM_X86_CALL &&
			       fathom_x86_is_jump_by_word(code + CALL_SIZE)
		       ? fathom_x86_target(stub, code, sizeof code)
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

/* Copies @size bytes at @avma through window @w. */
static bool read_through(struct fathom_text_window *w, uint64_t avma, void *to, size_t size)
{
	const uint8_t *bytes = fathom_text_at(w, avma, avma + size);

	if (bytes)
		memcpy(to, bytes, size);
	return bytes != NULL;
}

/* Writes @size bytes to @avma through window @w. */
static bool write_through(struct fathom_text_window *w, uint64_t avma, const void *from,
			  size_t size)
{
	uint8_t *bytes = fathom_text_at(w, avma, avma + size);

	if (bytes)
		memcpy(bytes, from, size);
	return bytes != NULL;
}

bool fathom_got_slots_take(const struct fathom_traced *p, struct fathom_text_window *relocations,
			   struct fathom_text_window *slots, const struct fathom_call_slot *slot,
			   uint64_t bias, struct fathom_hooked_got_slot *ret)
{
	Elf64_Rela r;

	*ret = (struct fathom_hooked_got_slot){ .avma = slot->address,
						.relocation = slot->relocation,
						.operand = slot->operand,
						.bias = bias };
	if (slot->refusal || !read_through(relocations, slot->relocation, &r, sizeof r) ||
	    r.r_offset + bias != slot->address ||
	    !read_through(slots, slot->address, &ret->content, sizeof ret->content))
		return false;
	if (slot->operand)
		return operand_of(p, ret) == ret->avma;
	/*
	 * A function that is nowhere, because it need not be, stays so. What code calls through
	 * itself is nowhere, too, until the dynamic linker has relocated the module.
	 */
	return ret->content || (slot->flags & FATHOM_SLOT_DIRECT);
}

/* Makes the stub of @slot; false if something is too far from it. */
static bool put_stub(struct fathom_text_window *w, const struct fathom_hooked_got_slot *slot,
		     uint64_t hook)
{
	const uint64_t target = slot->operand ? slot->avma : slot->word;
	uint8_t stub[CALL_SIZE + JUMP_SIZE];
	uint8_t operand[OPERAND_SIZE];

	return fathom_x86_put_call(slot->stub, hook, stub) &&
	       fathom_x86_put_jump_by_word(slot->stub + CALL_SIZE, target, stub + CALL_SIZE) &&
	       (!slot->operand || put_operand(slot, slot->word, operand)) &&
	       write_through(w, slot->stub, stub, sizeof stub);
}

bool fathom_got_slots_hook(struct fathom_text_window *w, const struct fathom_hooked_got_slot *slot,
			   uint64_t hook, enum fathom_got_slots_pass pass)
{
	const uint64_t content = slot->operand ? slot->stub : slot->content;
	const uint64_t at = slot->word - slot->bias;
	uint8_t operand[OPERAND_SIZE];

	switch (pass) {
	case FATHOM_GOT_SLOTS_STUBS:
		return put_stub(w, slot, hook);
	case FATHOM_GOT_SLOTS_WORDS:
		return write_through(w, slot->word, &content, sizeof content);
	case FATHOM_GOT_SLOTS_RELOCATIONS:
		return slot->operand || write_through(w, slot->relocation, &at, sizeof at);
	default:
		if (slot->operand)
			return put_operand(slot, slot->word, operand) &&
			       write_through(w, slot->operand, operand, sizeof operand);
		return write_through(w, slot->avma, &slot->stub, sizeof slot->stub);
	}
}

/* Reads what the words of @hooked hold, which the dynamic linker may have written. */
static void read_words(struct fathom_text_window *w, const struct fathom_hooked *hooked,
		       uint64_t *contents)
{
	for (size_t i = 0; i < hooked->n; i++)
		if (!read_through(w, hooked->items[i].word, &contents[i], sizeof *contents))
			contents[i] = 0;
	(void)fathom_text_put_back(w);
}

/* Writes the relocations of @hooked as they were, or, if it @is_last, what leads to stubs. */
static void put_back(struct fathom_text_window *w, const struct fathom_hooked *hooked,
		     const uint64_t *contents, bool is_last)
{
	uint8_t operand[OPERAND_SIZE];

	for (size_t i = 0; i < hooked->n; i++) {
		const struct fathom_hooked_got_slot *slot = &hooked->items[i];
		const uint64_t at = slot->avma - slot->bias;

		if (slot->operand && is_last && put_operand(slot, slot->avma, operand))
			(void)write_through(w, slot->operand, operand, sizeof operand);
		if (slot->operand || !contents[i])
			continue;
		if (is_last)
			(void)write_through(w, slot->avma, &contents[i], sizeof *contents);
		else
			(void)write_through(w, slot->relocation, &at, sizeof at);
	}
	(void)fathom_text_put_back(w);
}

void fathom_got_slots_undo(const struct fathom_tracee *t, const struct fathom_hooked *hooked,
			   bool stands)
{
	struct fathom_text_window *w = stands ? calloc(1, sizeof *w) : NULL;
	uint64_t *contents = calloc(hooked->n + 1, sizeof *contents);

	if (w && contents) {
		w->tracee = t;
		read_words(w, hooked, contents);
		put_back(w, hooked, contents, false);
		put_back(w, hooked, contents, true);
	} else {
		/* One by one, also without memory of our own. */
		for (size_t i = 0; i < hooked->n; i++)
			(void)(hooked->items[i].operand ? heal_operand(t, &hooked->items[i])
							: undo_one(t, &hooked->items[i]));
	}
	free(contents);
	free(w);
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
