/* SPDX-License-Identifier: MIT */
/*
 * What the targets of lists of made code share: all questions about one list, in memory that
 * changes while it is read.
 */
#ifndef FUZZ_MADE_LISTS_H
#define FUZZ_MADE_LISTS_H

#include "fuzz.h"

#include <elf.h>
#include <fathom/fathom.h>
#include <stdbool.h>
#include <stdlib.h>

#include "host/jit/gdb_provider.h"
#include "host/module/module.h"
#include "host/symbolize/answers.h"
#include "host/symbolize/batch.h"

/* Where the memory is, with the descriptor at its start. */
#define BASE    UINT64_C(0x10000)
#define N_ASKED 16

/* Asks for the start of each entry's code, and somewhere in it. */
static void ask(struct fathom_gdb_jit *g, const struct fathom_jit_process *p, uint64_t code)
{
	const struct fathom_batch_options options = { .flags = 0 };
	struct fathom_answers *answers = fathom_answers_create(N_ASKED, 0);
	uint64_t addresses[N_ASKED];
	uint32_t places[N_ASKED];
	struct fathom_unresolved rest = { .options = &options,
					  .addresses = addresses,
					  .places = places,
					  .n = N_ASKED,
					  .answers = answers };

	if (!answers)
		return;
	for (uint32_t i = 0; i < N_ASKED; i++) {
		addresses[i] = code + 7 * i;
		places[i] = i;
		answers->answers[i] = (struct fathom_answer){ .pc = { .address = addresses[i] } };
	}
	if (!fathom_gdb_jit_answer(g, p, &rest))
		for (uint32_t i = 0; i < N_ASKED; i++) {
			const struct fathom_answer *a = fathom_answers_get(answers, i);
			const struct fathom_frame *frame = a->frame;

			for (; frame; frame = frame->outer)
				fuzz_use(frame->line);
			if (a->symbol)
				fuzz_use(a->symbol_size);
		}
	fathom_answers_free(answers);
}

/* Makes modules of all that is there, to be searched by name. */
static void open_all(struct fathom_gdb_jit *g, const struct fathom_jit_process *p, uint64_t code)
{
	bool changed;
	uint64_t svma;
	size_t n;

	if (fathom_gdb_jit_open(g, p, &n, &changed))
		return;
	fuzz_use(fathom_gdb_jit_number(g, code));
	for (size_t i = 0; i < n; i++) {
		struct fathom_module *m = fathom_gdb_jit_module(g, i);

		fuzz_use(m && fathom_symbols_find(&m->symbols, "f", &svma));
	}
	fathom_gdb_jit_trim(g);
}

/* Asks another that begins with what @g knows. */
static void ask_again(const struct fathom_gdb_jit *g, const struct fathom_jit_process *p,
		      uint64_t code)
{
	struct fathom_gdb_jit other = { 0 };

	fathom_gdb_jit_init(&other, g->memory);
	if (fathom_array_room(&other.lists, 1)) {
		other.lists.items[other.lists.n++] = g->lists.items[0];
		(void)fathom_gdb_jit_learn(&other, g, p);
		ask(&other, p, code);
	}
	fathom_gdb_jit_deinit(&other);
}

/* Locates code as walks of stacks do: twice, and asks whether it stayed. */
static void locate(struct fathom_gdb_jit *g, const struct fathom_jit_process *p, uint64_t code)
{
	struct fathom_gdb_locator *l = NULL;
	struct fathom_place place;

	if (fathom_gdb_locator_create(g, p, &l))
		return;
	for (uint64_t i = 0; i < 2; i++) {
		place = (struct fathom_place){ .holder = NULL };
		if (!fathom_gdb_locator_find(l, code + 7 * i, &place) && place.holder)
			fuzz_use(place.source);
	}
	fuzz_use(fathom_gdb_locator_stayed(l));
	fathom_gdb_locator_destroy(l);
}

/* Asks all about @list, at BASE, and the code at @code; bits 3 to 6 of @flags say what, too. */
static void ask_all(struct fathom *session, struct fuzz *f, const struct fathom_gdb_list *list,
		    uint8_t flags, uint64_t code)
{
	static struct fuzz_changing memory;
	struct fathom_notes notes = { 0 };
	struct fathom_search_paths *paths;
	struct fathom_jit_process process = { .session = session,
					      .notes = &notes,
					      .is_live = true };
	struct fathom_gdb_jit g = { 0 };

	if (fathom_search_paths_create(session, NULL, &paths, NULL))
		return;
	process.paths = paths;
	process.memory = fuzz_changing_fill(&memory, BASE, f);
	fathom_gdb_jit_init(&g, &session->memory);
	if (fathom_array_room(&g.lists, 1)) {
		g.lists.items[g.lists.n++] = *list;
		if (flags & 8)
			open_all(&g, &process, code);
		ask(&g, &process, code);
		if (flags & 16)
			open_all(&g, &process, code);
		ask(&g, &process, code);
		if (flags & 32)
			ask_again(&g, &process, code);
		if (flags & 64)
			locate(&g, &process, code);
	}
	fathom_gdb_jit_deinit(&g);
	fathom_notes_deinit(&notes);
	fathom_search_paths_release(paths);
}

#endif
