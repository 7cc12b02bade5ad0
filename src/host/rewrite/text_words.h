/* SPDX-License-Identifier: MIT */
/*
 * Single instructions of the calling process's text (aarch64), changed while its threads run: one
 * aligned store of four bytes, of instructions for which the architecture allows that.
 *
 * They are written through /proc/self/mem: no page becomes writable. Where such writes have no
 * effect on what runs, as below an emulator that has translated it, the page is made writable, then
 * executable again, never both; that is done only while the process has one thread.
 */
#ifndef FATHOM_REWRITE_TEXT_WORDS_H
#define FATHOM_REWRITE_TEXT_WORDS_H

#include "host/base/array.h"
#include "safe/base/error.h"

struct fathom_text_word {
	uint64_t avma;
	uint32_t was;
	uint32_t now;
};

struct fathom_text_words {
	FATHOM_ARRAY_OF(struct fathom_text_word);
};

/*
 * Makes all @words what they are now, or, unless @now, what they were. Those that hold neither are
 * left out: their module is gone. FATHOM_E_OS, FATHOM_E_UNSUPPORTED, FATHOM_E_MEMORY: nothing has
 * changed.
 */
fathom_err fathom_text_words_put(const struct fathom_text_words *words, bool now,
				 struct fathom_errinfo *reterr);

/* Returns whether code at @avma is what @op says. */
bool fathom_text_word_is(uint64_t avma, uint32_t op);

#endif
