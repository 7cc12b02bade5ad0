/* SPDX-License-Identifier: MIT */
#include "safe/self/published_code.h"

#include "safe/self/registries.h"
#include "safe/unwind/row.h"

/* Copies the name to what is left of @room; false if it does not fit. */
static bool copy_name(const struct fathom_registry_code *code, struct fathom_self_room *room)
{
	struct fathom_answer *a = room->answer;
	const size_t size = (size_t)code->name.size + 1;

	if (size > room->left)
		return false;
	memcpy(room->at, code->name.data, size);
	a->symbol = a->linkage_name = room->at;
	a->symbol_size = a->linkage_size = code->name.size;
	room->at += size;
	room->left -= size;
	return true;
}

static void answer(const struct fathom_registry_code *code, void *data)
{
	struct fathom_self_room *room = data;
	struct fathom_answer *a = room->answer;

	/* A part of a name would be another name. */
	a->reason = FATHOM_REASON_LIMIT;
	if (!copy_name(code, room))
		return;
	a->source = FATHOM_SOURCE_REGISTERED;
	a->size = code->size;
	/* A return address was looked up as the byte before it: add that byte again. */
	a->offset = a->pc.address - code->low;
	a->reason = FATHOM_REASON_NOT_PREPARED;
}

bool fathom_self_answer_made(const struct fathom_self *self, uint64_t at,
			     struct fathom_self_room *room)
{
	return fathom_self_find_code(self, at, answer, room);
}

/* A step under way. */
struct made_step {
	uintptr_t avma;
	const struct fathom_unwind_arch *arch;
	const struct fathom_step_memory *memory;
	struct fathom_registers *registers;
	bool is_signal;
	enum fathom_stop stop;
};

/* Steps by the FDE of @code. */
static void step(const struct fathom_registry_code *code, void *data)
{
	struct made_step *s = data;
	const struct fathom_cfi cfi = { .section = code->frames,
					.svma = (uintptr_t)code->frames.data,
					.address_size = sizeof(uintptr_t),
					.is_eh = true };
	struct fathom_row_reader reader;
	struct fathom_cfi_entry e;
	struct fathom_cie cie;
	struct fathom_fde fde;

	if (code->fde == FATHOM_REGISTRY_NO_FDE || fathom_cfi_at(&cfi, code->fde, &e) || e.is_cie ||
	    fathom_cie_read(&cfi, e.cie_off, &cie) || fathom_fde_read(&e, &cie, &fde) ||
	    s->avma < fde.low || s->avma >= fde.high ||
	    fathom_row_reader_init(&reader, &fde, s->arch) || fathom_row_find(&reader, s->avma))
		return;
	s->is_signal = cie.is_signal_frame;
	s->stop = fathom_step_row(&reader.now, 0, s->arch, s->memory, s->registers);
}

enum fathom_stop fathom_own_step_made(const struct fathom_self *self, uintptr_t avma,
				      const struct fathom_unwind_arch *arch,
				      const struct fathom_step_memory *m,
				      struct fathom_registers *r, bool *ret_is_signal)
{
	struct made_step s = { avma, arch, m, r, false, FATHOM_STOP_NO_RULE };

	(void)fathom_self_find_code(self, avma, step, &s);
	*ret_is_signal = s.is_signal;
	return s.stop;
}
