/* SPDX-License-Identifier: MIT */
#include "host/check/dispositions.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "host/file/process_status.h"

/* Words of an action: handler and flags. */
enum { HANDLER, FLAGS, WORDS = 4 };

/* Where the action lies for the call, below the stack pointer and what functions keep there. */
#define BELOW 512

static struct fathom_disposition *disposition_of(struct fathom_dispositions *d, uint64_t number)
{
	return number == SIGTRAP ? &d->trap : number == SIGSEGV ? &d->fault : NULL;
}

void fathom_dispositions_take(struct fathom_dispositions *d, uint64_t number,
			      const struct fathom_disposition *action)
{
	struct fathom_disposition *to = disposition_of(d, number);
	const uint64_t reset_hand = SA_RESETHAND & UINT32_MAX;

	if (!to)
		return;
	*to = *action;
	to->is_set = action->words[HANDLER] != (uint64_t)(uintptr_t)SIG_DFL &&
		     !(action->words[FLAGS] & reset_hand);
}

/* Returns the mask of signals that the line @label of @text has. */
static uint64_t mask_of(const char *text, const char *label)
{
	const char *line = fathom_status_line(text, label);

	return line ? strtoull(line, NULL, 16) : 0;
}

/* Swaps the words at @avma of thread @tid with @words. */
static void swap_words(const struct fathom_tracee *t, pid_t tid, uint64_t avma, uint64_t *words)
{
	for (size_t i = 0; i < WORDS; i++) {
		const uint64_t at = avma + i * sizeof *words;
		const uint64_t was = fathom_tracee_word(t, at);

		(void)ptrace(PTRACE_POKEDATA, tid, at, words[i]);
		words[i] = was;
	}
}

/* Sets @number to @d in thread @tid, and blocks it again: else the kernel had not reset it. */
static void set_again(const struct fathom_disposition *d, int number, const struct fathom_tracee *t,
		      pid_t tid)
{
	struct user_regs_struct regs;
	uint64_t words[WORDS];
	uint64_t at;

	if (!fathom_tracee_get(tid, &regs))
		return;
	at = (regs.rsp - BELOW) & ~UINT64_C(15);
	memcpy(words, d->words, sizeof words);
	swap_words(t, tid, at, words);
	(void)fathom_tracee_call(t, tid, SYS_rt_sigaction,
				 (uint64_t[6]){ (uint64_t)number, at, 0, sizeof(uint64_t) });
	swap_words(t, tid, at, words);
	if (d->words[HANDLER] != (uint64_t)(uintptr_t)SIG_IGN)
		fathom_tracee_block(tid, number);
}

void fathom_dispositions_repair(const struct fathom_dispositions *d, const struct fathom_tracee *t,
				pid_t tid)
{
	char path[64];
	char *text;
	uint64_t set;

	if (!d->trap.is_set && !d->fault.is_set)
		return;
	(void)snprintf(path, sizeof path, "/proc/%d/status", (int)tid);
	text = fathom_status_read(path);
	if (!text)
		return;
	set = mask_of(text, "\nSigCgt:") | mask_of(text, "\nSigIgn:");
	free(text);
	if (d->fault.is_set && !(set >> (SIGSEGV - 1) & 1))
		set_again(&d->fault, SIGSEGV, t, tid);
	if (d->trap.is_set && !(set >> (SIGTRAP - 1) & 1))
		set_again(&d->trap, SIGTRAP, t, tid);
}
