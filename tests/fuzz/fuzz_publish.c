/* SPDX-License-Identifier: MIT */
/*
 * Rules of functions as programs publish them: lists of events, numbers of bytes, and the .eh_frame
 * of others. What is accepted becomes a CIE and an FDE; reading these back must give rows, in
 * order, to the end of the code.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "host/publish/frame.h"
#include "safe/unwind/row.h"

#define CODE        UINT64_C(0x10000)
#define MOST_EVENTS 64

static void must(bool holds)
{
	if (!holds)
		abort();
}

/*
 * Returns whether @err is of the limits of the reader: more states, or rules in them, than it
 * keeps.
 */
static bool is_limit(fathom_err err)
{
	return err == FATHOM_E_LIMIT || err == FATHOM_E_UNSUPPORTED;
}

static void check_rows(const struct fathom_jit_machine *m, struct fathom_bytes section,
		       uint64_t size)
{
	const struct fathom_cfi cfi = {
		.section = section, .address_size = 8, .is_eh = true, .is_open = true
	};
	struct fathom_row_reader reader;
	struct fathom_cfi_reader entries;
	struct fathom_cfi_entry e;
	struct fathom_cie cie;
	struct fathom_fde fde;
	uint64_t at = CODE;
	fathom_err err;

	fathom_cfi_reader_init(&entries, &cfi);
	must(fathom_cfi_next(&entries, &e, NULL) == FATHOM_OK && e.is_cie);
	must(fathom_cfi_next(&entries, &e, NULL) == FATHOM_OK && !e.is_cie);
	must(!fathom_cie_read(&cfi, e.cie_off, &cie) && !fathom_fde_read(&e, &cie, &fde));
	must(fde.low == CODE && fde.high == CODE + size);
	err = fathom_row_reader_init(&reader, &fde, m->arch);
	while (!err) {
		err = fathom_row_next(&reader);
		if (err)
			break;
		must(reader.now.low == at && reader.now.high > at);
		at = reader.now.high;
	}
	must(is_limit(err) || (err == FATHOM_END && at == fde.high));
}

static void check(const struct fathom_jit_unwind *u, const struct fathom_jit_machine *m,
		  uint64_t size)
{
	struct fathom_jit_frame f;
	struct fathom_jit_blame blame = { 0 };
	struct fathom_out o = { 0 };

	if (fathom_jit_frame_read(u, m, CODE, size, &f, &blame)) {
		must(blame.what && *blame.what);
		return;
	}
	if (f.size < size)
		size = f.size;
	for (int pass = 0; pass < 2; pass++) {
		const size_t cie = fathom_cie_write(&o, &f.cie);

		(void)fathom_fde_write(&o, &f.cie, cie, CODE, size, f.lsda, f.instructions);
		fathom_out_u32(&o, 0);
		if (!pass) {
			o = (struct fathom_out){ .at = malloc(o.n), .cap = o.n };
			must(o.at != NULL);
		}
	}
	must(o.n == o.cap);
	check_rows(m, (struct fathom_bytes){ o.at, o.n }, size);
	free(o.at);
	fathom_jit_frame_deinit(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = fuzz_init(data, size);
	const struct fathom_jit_machine *m =
		fuzz_byte(&f) & 1 ? &fathom_jit_aarch64 : &fathom_jit_x86_64;
	struct fathom_jit_event events[MOST_EVENTS];
	struct fathom_jit_unwind u = { .size = sizeof u, .kind = fuzz_byte(&f) % 7u };
	struct fathom_bytes section;
	uint32_t offset = 0;

	u.flags = fuzz_byte(&f) & 15u;
	u.from = fuzz_byte(&f);
	u.until = fuzz_byte(&f);
	u.frame = fuzz_byte(&f) * 4u;
	u.record = fuzz_byte(&f);
	if (u.kind == FATHOM_JIT_EH_FRAME) {
		section = fuzz_rest(&f);
		u.eh_frame = section.data;
		u.eh_frame_size = section.size;
		/*
		 * An indirect pointer would be read, so the section is not where it was linked for.
		 */
		u.eh_frame_address = CODE / 2;
	}
	for (u.events = events; f.p < f.end && u.n_events < MOST_EVENTS; u.n_events++) {
		offset += fuzz_byte(&f);
		events[u.n_events] =
			(struct fathom_jit_event){ .offset = offset,
						   .kind = fuzz_byte(&f) % 14u,
						   .reg = fuzz_byte(&f),
						   .value = (int8_t)fuzz_byte(&f) * 8 };
	}
	check(&u, m, 1 + (uint64_t)offset + fuzz_byte(&f));
	return 0;
}
