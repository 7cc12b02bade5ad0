/* SPDX-License-Identifier: MIT */
/* Writes to text as single instructions (aarch64): nobody is stopped. */
#include <string.h>

#include "host/code/aarch64/arm_instructions.h"
#include "host/hook/stop_others.h"
#include "host/rewrite/text_words.h"

/* Adds the words of @write that change; false without memory. */
static bool add_words(const struct fathom_text_write *write, struct fathom_text_words *to)
{
	const uint8_t *from = write->from ? write->from : write->bytes;
	const uint64_t end = write->avma + write->size;

	for (uint64_t at = write->avma & ~UINT64_C(3); at < end; at += FATHOM_ARM_SIZE) {
		const uint64_t low = at > write->avma ? at : write->avma;
		const uint64_t high = at + FATHOM_ARM_SIZE < end ? at + FATHOM_ARM_SIZE : end;
		struct fathom_text_word word = { .avma = at };

		memcpy(&word.was, (const void *)(uintptr_t)at, sizeof word.was);
		word.now = word.was;
		memcpy((uint8_t *)&word.now + (low - at), from + (low - write->avma), high - low);
		if (word.was != word.now && !fathom_array_push(to, word))
			return false;
	}
	return true;
}

/* Returns whether all @words may change while other threads run them. */
static bool may_change(const struct fathom_text_words *words)
{
	for (size_t i = 0; i < words->n; i++)
		if (!fathom_arm_may_change(words->items[i].was) ||
		    !fathom_arm_may_change(words->items[i].now))
			return false;
	return true;
}

fathom_err fathom_text_write_running(const struct fathom_text_writes *writes,
				     struct fathom_errinfo *reterr)
{
	struct fathom_text_words words = { 0 };
	fathom_err err = FATHOM_OK;

	for (size_t i = 0; i < writes->n && !err; i++)
		if (!add_words(&writes->items[i], &words))
			err = fathom_fail_memory(reterr);
	if (!err && !may_change(&words) && !fathom_text_is_alone())
		err = fathom_fail(
			reterr, FATHOM_E_UNSUPPORTED, "", 0,
			"while other threads run, only NOPs, branches and breakpoints can change");
	if (!err)
		err = fathom_text_words_put(&words, true, reterr);
	fathom_array_free(&words);
	return err;
}

fathom_err fathom_text_write_stopped(const struct fathom_text_writes *writes,
				     struct fathom_errinfo *reterr)
{
	return fathom_text_write_running(writes, reterr);
}
