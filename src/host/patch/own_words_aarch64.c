/* SPDX-License-Identifier: MIT */
/*
 * Changes of single instructions (aarch64): one aligned store of four bytes each, of instructions
 * for which the architecture allows that.
 *
 * Where writes through /proc/self/mem have no effect on what runs, as below an emulator that has
 * translated it, the page is made writable, then executable again, never both; that is done only
 * while the process has one thread.
 */
#include "host/patch/own_text.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host/base/page.h"
#include "host/code/aarch64/arm_instructions.h"
#include "safe/base/peek.h"

/* mov w0, #1; ret, and mov w0, #2; ret */
const uint32_t fathom_text_probes[2][2] = { { 0x52800020, FATHOM_ARM_RET },
					    { 0x52800040, FATHOM_ARM_RET } };

typedef long write_fn(uint64_t page, uint64_t size, uint64_t avma, uint32_t op);

/* write_word_aarch64.S */
long fathom_write_word(uint64_t page, uint64_t size, uint64_t avma, uint32_t op);
extern const char fathom_write_word_end[];

struct words {
	struct fathom_text_memory memory;
	int fd;            /* of /proc/self/mem; -1: none */
	write_fn *rewrite; /* that makes the page writable; NULL: it is written through fd */
	bool checks; /* nothing is written: may other threads run the words while they change? */
};

/* Writes @op at @avma. */
static bool put(const struct words *w, uint64_t avma, uint32_t op)
{
	const uint64_t size = fathom_page_size();

	if (w->rewrite ? w->rewrite(avma & ~(size - 1), size, avma, op) != 0
		       : pwrite(w->fd, &op, sizeof op, (off_t)avma) != (ssize_t)sizeof op)
		return false;
	__builtin___clear_cache((char *)(uintptr_t)avma, (char *)(uintptr_t)avma + sizeof op);
	return true;
}

static bool read_words(struct fathom_text_memory *m, uint64_t avma, void *to, size_t size)
{
	(void)m;
	return fathom_peek(avma, to, size) == size;
}

static bool write_words(struct fathom_text_memory *m, uint64_t avma, const void *from, size_t size)
{
	const struct words *w = (const struct words *)m;
	const uint8_t *bytes = from;
	const uint64_t end = avma + size;

	for (uint64_t at = avma & ~UINT64_C(3); at < end; at += FATHOM_ARM_SIZE) {
		const uint64_t low = at > avma ? at : avma;
		const uint64_t high = at + FATHOM_ARM_SIZE < end ? at + FATHOM_ARM_SIZE : end;
		uint32_t was, op;

		if (!read_words(m, at, &was, sizeof was))
			return false;
		op = was;
		memcpy((uint8_t *)&op + (low - at), bytes + (low - avma), high - low);
		if (op != was &&
		    !(w->checks ? fathom_arm_may_change(was) && fathom_arm_may_change(op)
				: put(w, at, op)))
			return false;
	}
	return true;
}

/* Returns whether other threads may run all that changes while it does. */
static bool may_change(const struct fathom_text_plan *plan, bool now)
{
	struct words w = { .memory = { .read = read_words, .write = write_words }, .checks = true };

	return fathom_text_plan_put(plan, 0, now, &w.memory);
}

/* Changes @plan by making its pages writable, while no code of them can run. */
static fathom_err put_alone(const struct fathom_text_plan *plan, bool now, struct words *w,
			    struct fathom_errinfo *reterr)
{
	const size_t size = (size_t)(fathom_write_word_end - (const char *)fathom_write_word);
	void *page = fathom_text_map_code((const void *)fathom_write_word, size);
	sigset_t all, before;
	bool is_done;

	if (!page)
		return fathom_text_fail(reterr, errno, "no code can be made");
	memcpy(&w->rewrite, &page, sizeof w->rewrite);
	/* A handler may be in one of the pages. */
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	is_done = fathom_text_plan_put(plan, 0, now, &w->memory);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)munmap(page, fathom_page_size());
	return is_done ? FATHOM_OK : fathom_text_fail(reterr, EACCES, "the code cannot be written");
}

static fathom_err put_plan(const struct fathom_text_plan *plan, bool now, struct words *w,
			   struct fathom_errinfo *reterr)
{
	const bool is_alone = fathom_text_is_alone();
	bool seen;

	if (!fathom_text_plan_count(plan, 0, now, &w->memory))
		return FATHOM_OK;
	if (!is_alone && !may_change(plan, now))
		return fathom_fail(
			reterr, FATHOM_E_UNSUPPORTED, "", 0,
			"while other threads run, only NOPs, branches and breakpoints can change");
	seen = w->fd >= 0 && fathom_text_is_seen(&w->memory);
	if (!seen && !is_alone)
		return fathom_fail(
			reterr, FATHOM_E_UNSUPPORTED, "", 0,
			"writes to /proc/self/mem have no effect here, so code is changed "
			"only before a second thread begins");
	if (!seen)
		return put_alone(plan, now, w, reterr);
	w->memory.synchronize = fathom_text_synchronize;
	return fathom_text_put(plan, now, &w->memory, reterr);
}

fathom_err fathom_text_put_running(const struct fathom_text_plan *plan, bool now,
				   struct fathom_errinfo *reterr)
{
	struct words w = { .memory = { .read = read_words, .write = write_words } };
	struct fathom_own_text text;
	fathom_err err;

	(void)fathom_own_text_open(&text);
	w.fd = text.fd;
	err = put_plan(plan, now, &w, reterr);
	fathom_own_text_close(&text);
	return err;
}

fathom_err fathom_text_put_stopped(struct fathom_text_plan *plan, bool now,
				   struct fathom_errinfo *reterr)
{
	fathom_text_plan_sort(plan);
	return fathom_text_put_running(plan, now, reterr);
}
