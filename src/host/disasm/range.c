/* SPDX-License-Identifier: MIT */
/* Disassembly: from bytes to instructions. The files beside find what they refer to. */
#include <stdlib.h>

#include "fathom/disasm.h"
#include "host/base/context.h"
#include "host/base/option_struct.h"
#include "host/base/progress.h"
#include "host/disasm/work.h"
#include "host/module/module.h"
#include "host/space/target.h"

static fathom_err read_options(const struct fathom_disasm_options *options,
			       struct fathom_disasm_options *ret)
{
	const uint32_t known = FATHOM_DISASM_INTEL | FATHOM_DISASM_NO_LINES |
			       FATHOM_DISASM_NO_DEMANGLE | FATHOM_DISASM_ONE_SHOT;

	*ret = (struct fathom_disasm_options){ .size = sizeof *ret };
	if (options && (!FATHOM_OPTIONS_READ(options, ret, known) || ret->reserved1))
		return FATHOM_E_ARGUMENT;
	if (!ret->max_instructions || ret->max_instructions > FATHOM_DISASM_MAX)
		ret->max_instructions = FATHOM_DISASM_MAX;
	return FATHOM_OK;
}

/* Returns the machine of the code in @target. */
static uint32_t machine_of(struct fathom_target *target)
{
	return target ? fathom_target_layout(target).machine : fathom_own_machine();
}

static fathom_err open_decoder(struct fathom_disasm_work *w, struct fathom_errinfo *reterr)
{
	const bool intel = w->options.flags & FATHOM_DISASM_INTEL;
	const uint32_t machine = w->options.machine ? w->options.machine : machine_of(w->target);

	switch (machine) {
	case EM_X86_64:
		return fathom_x86_open(true, intel, &w->decoder, reterr);
	case EM_386:
		return fathom_x86_open(false, intel, &w->decoder, reterr);
	case EM_AARCH64:
		return fathom_aarch64_open(&w->decoder, reterr);
	default:
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
				   "only code for x86 and aarch64 can be disassembled");
	}
}

/* Decodes the instruction at @off; returns its size. */
static fathom_err decode_one(struct fathom_disasm_work *w, uint64_t off, uint8_t *ret_size)
{
	char buf[FATHOM_INSN_TEXT];
	struct fathom_text text = text_init(buf, sizeof buf);
	const uint64_t left = w->bytes.size - off;
	const uint64_t room = left < FATHOM_MAX_INSN ? left : FATHOM_MAX_INSN;
	struct fathom_code *c;

	if (!fathom_array_room(&w->codes, 1))
		return FATHOM_E_MEMORY;
	c = fathom_work_code(w, w->codes.n);
	w->decoder->decode(w->decoder, bytes_slice(w->bytes, off, room), w->start + off, c, &text);
	if (text.len >= sizeof buf)
		text.len = sizeof buf - 1;
	if (!fathom_array_room(&w->text, text.len))
		return FATHOM_E_MEMORY;
	c->text = (uint32_t)w->text.n;
	c->text_size = (uint16_t)text.len;
	memcpy(w->text.items + w->text.n, buf, text.len);
	w->text.n += text.len;
	w->codes.n++;
	*ret_size = c->size;
	return FATHOM_OK;
}

/* After so many instructions the caller is asked. */
#define ASK_EVERY 16384

static fathom_err decode_all(struct fathom_disasm_work *w)
{
	struct fathom *session = w->target ? w->target->session : NULL;
	uint64_t off = 0;

	while (off < w->bytes.size && w->codes.n < w->options.max_instructions) {
		uint8_t size;

		if (session && w->codes.n % ASK_EVERY == 0 &&
		    !fathom_goes_on(session, FATHOM_PHASE_DISASM, off, w->bytes.size))
			return FATHOM_E_CANCELLED;
		FATHOM_TRY(decode_one(w, off, &size));
		off += size;
	}
	w->to->next = w->start + off;
	return FATHOM_OK;
}

/* Opens the relocations of a file, which say more than its bytes. */
static fathom_err open_fixups(struct fathom_disasm_work *w)
{
	if (!w->target || !w->target->stated)
		return FATHOM_OK;
	w->object = w->target->stated->main;
	w->movable = w->object->image.type == ET_DYN;
	w->fixups = fathom_fixups_create(w->object);
	return w->fixups ? FATHOM_OK : FATHOM_E_MEMORY;
}

static fathom_err run(struct fathom_disasm_work *w, struct fathom_errinfo *reterr)
{
	fathom_err err = open_decoder(w, reterr);

	if (err)
		return err;
	err = open_fixups(w);
	if (!err)
		err = decode_all(w);
	if (!err)
		err = fathom_disasm_relocate(w);
	if (!err)
		err = fathom_disasm_follow(w);
	if (err)
		return fathom_fail(reterr, err, "", 0, fathom_err_name(err));
	return fathom_disasm_name(w, reterr);
}

/* Disassembles the @size bytes in w->to, which it frees on failure. */
static fathom_err disassemble(struct fathom_disasm_work *w, uint64_t size, uint64_t address,
			      struct fathom_disasm **ret, struct fathom_errinfo *reterr)
{
	struct fathom_call call;
	fathom_err err;

	w->start = address;
	w->bytes = (struct fathom_bytes){ w->to->bytes, size };
	if (w->target)
		fathom_call_begin(&call, w->target->session);
	err = run(w, reterr);
	if (w->target)
		err = fathom_call_end(&call, fathom_target_end_call(w->target, err, reterr),
				      reterr);
	if (w->decoder)
		w->decoder->close(w->decoder);
	fathom_fixups_destroy(w->fixups);
	fathom_array_free(&w->codes);
	fathom_array_free(&w->external);
	fathom_array_free(&w->text);
	if (err)
		fathom_disasm_free(w->to);
	else
		*ret = w->to;
	return err;
}

/* Begins an empty disassembly with room for @size bytes. */
static fathom_err begin_disassembly(struct fathom_disasm_work *w, uint64_t size,
				    struct fathom_errinfo *reterr)
{
	w->to = calloc(1, sizeof *w->to);
	if (w->to)
		w->to->bytes = malloc((size_t)size + 1);
	if (w->to && w->to->bytes)
		return FATHOM_OK;
	fathom_disasm_free(w->to);
	return fathom_fail_memory(reterr);
}

/* Returns how many bytes to read for the wanted instructions: at most those up to @end. */
static uint64_t bytes_wanted(const struct fathom_disasm_work *w, uint64_t start, uint64_t end)
{
	const uint64_t most = (uint64_t)w->options.max_instructions * FATHOM_MAX_INSN;

	return end - start < most ? end - start : most;
}

fathom_err fathom_disassemble(struct fathom_target *target,
			      const struct fathom_disasm_options *options, uint64_t start,
			      uint64_t end, struct fathom_disasm **ret_disasm,
			      struct fathom_errinfo *reterr)
{
	struct fathom_disasm_work w = { .target = target };
	size_t got = 0;
	fathom_err err;

	if (read_options(options, &w.options))
		return fathom_fail_options(reterr);
	if (end < start)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0, "the end is before the start");
	FATHOM_TRY(begin_disassembly(&w, bytes_wanted(&w, start, end), reterr));
	err = fathom_target_read_code(target, start, w.to->bytes,
				      (size_t)bytes_wanted(&w, start, end), &got, &w.movable,
				      reterr);
	if (err) {
		fathom_disasm_free(w.to);
		return err;
	}
	w.relocatable = target->stated && target->stated->main->image.type == ET_REL;
	return disassemble(&w, got, start, ret_disasm, reterr);
}

fathom_err fathom_disassemble_bytes(struct fathom_target *target,
				    const struct fathom_disasm_options *options, const void *bytes,
				    size_t size, uint64_t address,
				    struct fathom_disasm **ret_disasm,
				    struct fathom_errinfo *reterr)
{
	struct fathom_disasm_work w = { .target = target };

	if (read_options(options, &w.options))
		return fathom_fail_options(reterr);
	FATHOM_TRY(begin_disassembly(&w, size, reterr));
	if (size)
		memcpy(w.to->bytes, bytes, size);
	return disassemble(&w, size, address, ret_disasm, reterr);
}

void fathom_disasm_free(struct fathom_disasm *disasm)
{
	if (!disasm)
		return;
	free(disasm->instructions);
	free(disasm->bytes);
	free(disasm->texts);
	fathom_arena_deinit(&disasm->arena);
	fathom_answers_free(disasm->names);
	fathom_answers_free(disasm->places);
	free(disasm);
}

size_t fathom_disasm_count(const struct fathom_disasm *disasm)
{
	return disasm->n;
}

const struct fathom_instruction *fathom_disasm_get(const struct fathom_disasm *disasm, size_t i)
{
	return &disasm->instructions[i];
}

uint64_t fathom_disasm_next(const struct fathom_disasm *disasm)
{
	return disasm->next;
}
