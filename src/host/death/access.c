/* SPDX-License-Identifier: MIT */
/*
 * Cores do not say whether a fault was a read or a write, but the instruction does: the address of
 * a memory operand is computed from the registers of the thread, which are those of before the
 * instruction (Intel SDM, volume 3, 6.5: faults).
 */
#include "host/death/access.h"

#include "host/disasm/code.h"

/* DWARF numbers (x86-64 psABI, figure 3.36) of the registers, by their numbers in encodings. */
static const uint8_t dwarf[16] = { 0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15 };

/* The accesses of one instruction. */
struct accesses {
	struct fathom_code_access items[FATHOM_MAX_ACCESSES];
	uint64_t address[FATHOM_MAX_ACCESSES];
	unsigned n;
};

/* Adds @scale times register @number, of an encoding, to *@to; false if it is not known. */
static bool add_register(const struct fathom_thread_registers *r, uint8_t number, uint8_t scale,
			 uint64_t *to)
{
	if (number == FATHOM_NO_REGISTER)
		return true;
	if (number >= sizeof dwarf || dwarf[number] >= r->n || !(r->known >> dwarf[number] & 1))
		return false;
	*to += r->value[dwarf[number]] * scale;
	return true;
}

/* Computes the addresses of the accesses; returns false if one is not known. */
static bool compute(const struct fathom_thread_registers *r, struct accesses *a)
{
	for (unsigned i = 0; i < a->n; i++) {
		const struct fathom_code_access *item = &a->items[i];

		a->address[i] = item->displacement;
		if (!add_register(r, item->base, 1, &a->address[i]) ||
		    !add_register(r, item->index, item->scale, &a->address[i]))
			return false;
	}
	return true;
}

/* Finds the accesses of the instruction at @p; none if one of their addresses is not known. */
static void find_accesses(const struct fathom_death_work *w, const struct fathom_thread *t,
			  const struct fathom_death_point *p, struct accesses *ret)
{
	struct fathom_code_decoder *decoder;
	uint8_t bytes[FATHOM_MAX_INSN];
	uint64_t pc;
	size_t size;

	ret->n = 0;
	if (w->layout.machine != EM_X86_64 || p->frame >= t->n_frames ||
	    fathom_x86_open(true, false, &decoder, NULL))
		return;
	pc = t->frames[p->frame].pc.address;
	size = fathom_view_read(w->view, pc, bytes, sizeof bytes);
	if (size)
		ret->n = decoder->decode_accesses(decoder, (struct fathom_bytes){ bytes, size }, pc,
						  ret->items);
	decoder->close(decoder);
	if (!compute(&p->registers, ret))
		ret->n = 0;
}

static enum fathom_access access_of(bool reads, bool writes)
{
	if (reads == writes)
		return FATHOM_ACCESS_UNKNOWN;
	return reads ? FATHOM_ACCESS_READ : FATHOM_ACCESS_WRITE;
}

bool fathom_access_find(const struct fathom_death_work *w, const struct fathom_thread *t,
			const struct fathom_death_point *p, uint64_t address,
			enum fathom_access *ret_access)
{
	struct accesses a;
	bool writes = false;
	bool reads = false;

	find_accesses(w, t, p, &a);
	for (unsigned i = 0; i < a.n; i++) {
		const uint64_t size = a.items[i].size ? a.items[i].size : 1;

		if (address - a.address[i] >= size)
			continue;
		reads |= a.items[i].reads;
		writes |= a.items[i].writes;
	}
	*ret_access = access_of(reads, writes);
	return reads || writes;
}

/* Returns whether the upper 8 bits differ, which are equal in addresses of 57 bits and fewer. */
static bool is_wild(uint64_t address)
{
	const int64_t upper = (int64_t)address >> 56;

	return upper != 0 && upper != -1;
}

bool fathom_access_find_wild(const struct fathom_death_work *w, const struct fathom_thread *t,
			     const struct fathom_death_point *p, uint64_t *ret,
			     enum fathom_access *ret_access)
{
	struct accesses a;
	bool found = false;

	find_accesses(w, t, p, &a);
	for (unsigned i = 0; i < a.n; i++) {
		if (!is_wild(a.address[i]))
			continue;
		if (found)
			return false;
		found = true;
		*ret = a.address[i];
		*ret_access = access_of(a.items[i].reads, a.items[i].writes);
	}
	return found;
}
