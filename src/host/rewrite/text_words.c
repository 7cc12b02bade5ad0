/* SPDX-License-Identifier: MIT */
#include "host/rewrite/text_words.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host/base/page.h"
#include "host/code/aarch64/arm_instructions.h"
#include "host/rewrite/text_write.h"
#include "safe/base/peek.h"

/* mov w0, #1; mov w0, #2 */
enum { RETURNS_1 = 0x52800020, RETURNS_2 = 0x52800040 };

typedef int probe_fn(void);
typedef long write_fn(uint64_t page, uint64_t size, const struct fathom_text_word *words, size_t n,
		      size_t off);

/* write_words_aarch64.S */
long fathom_write_words(uint64_t page, uint64_t size, const struct fathom_text_word *words,
			size_t n, size_t off);
extern const char fathom_write_words_end[];

bool fathom_text_word_is(uint64_t avma, uint32_t op)
{
	uint32_t now;

	return fathom_peek(avma, &now, sizeof now) == sizeof now && now == op;
}

/* Maps a page that is executable, with @size bytes @code; NULL: it cannot be. */
static void *map_code(const void *code, size_t size)
{
	const size_t page = fathom_page_size();
	char *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	memcpy(p, code, size);
	if (mprotect(p, page, PROT_READ | PROT_EXEC)) {
		(void)munmap(p, page);
		return NULL;
	}
	__builtin___clear_cache(p, p + size);
	return p;
}

/* Writes @op at @avma through @memory. */
static bool put(int memory, uint64_t avma, uint32_t op)
{
	if (pwrite(memory, &op, sizeof op, (off_t)avma) != (ssize_t)sizeof op)
		return false;
	__builtin___clear_cache((char *)(uintptr_t)avma, (char *)(uintptr_t)avma + sizeof op);
	return true;
}

/* Returns whether code that was run before is run as it is after a write through @memory. */
static bool is_seen(int memory)
{
	static const uint32_t code[] = { RETURNS_1, FATHOM_ARM_RET };
	void *page = memory < 0 ? NULL : map_code(code, sizeof code);
	bool seen = false;
	probe_fn *probe;

	if (!page)
		return false;
	memcpy(&probe, &page, sizeof probe);
	if (probe() == 1 && put(memory, (uintptr_t)page, RETURNS_2))
		seen = probe() == 2;
	(void)munmap(page, fathom_page_size());
	return seen;
}

static uint32_t value_of(const struct fathom_text_word *word, bool now)
{
	return now ? word->now : word->was;
}

/* Writes @words through @memory, or those before the first one that cannot be written back. */
static fathom_err put_all(int memory, const struct fathom_text_words *words, bool now,
			  struct fathom_errinfo *reterr)
{
	size_t i = 0;

	while (i < words->n && put(memory, words->items[i].avma, value_of(&words->items[i], now)))
		i++;
	if (i == words->n)
		return fathom_text_synchronize(reterr);
	while (i-- > 0)
		(void)put(memory, words->items[i].avma, value_of(&words->items[i], !now));
	return fathom_text_fail(reterr, EIO, "the code cannot be written");
}

/* Writes the @n @words, all of one page, by @write. */
static bool put_page(write_fn *write, const struct fathom_text_word *words, size_t n, bool now)
{
	const uint64_t size = fathom_page_size();
	const uint64_t page = words->avma & ~(size - 1);
	char *at = (char *)(uintptr_t)page;
	const bool done = !write(page, size, words, n,
				 now ? offsetof(struct fathom_text_word, now)
				     : offsetof(struct fathom_text_word, was));

	__builtin___clear_cache(at, at + size);
	return done;
}

/* Writes @words, sorted, page by page; returns how many of them are written. */
static size_t put_pages(write_fn *write, const struct fathom_text_word *words, size_t n, bool now)
{
	const uint64_t size = fathom_page_size();
	size_t i = 0;

	while (i < n) {
		size_t k = i + 1;

		while (k < n && words[k].avma / size == words[i].avma / size)
			k++;
		if (!put_page(write, words + i, k - i, now))
			break;
		i = k;
	}
	return i;
}

/* Writes @words by making their pages writable, while no code of them can run. */
static fathom_err put_alone(const struct fathom_text_words *words, bool now,
			    struct fathom_errinfo *reterr)
{
	const size_t size = (size_t)(fathom_write_words_end - (const char *)fathom_write_words);
	void *page = map_code((const void *)fathom_write_words, size);
	sigset_t all, before;
	write_fn *write;
	size_t n;

	if (!page)
		return fathom_text_fail(reterr, errno, "no code can be made");
	memcpy(&write, &page, sizeof write);
	/* A handler may be in one of the pages. */
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	n = put_pages(write, words->items, words->n, now);
	if (n < words->n)
		(void)put_pages(write, words->items, n, !now);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)munmap(page, fathom_page_size());
	return n == words->n ? FATHOM_OK
			     : fathom_text_fail(reterr, EACCES, "the code cannot be written");
}

static int compare(const void *a, const void *b)
{
	return u64_compare(((const struct fathom_text_word *)a)->avma,
			   ((const struct fathom_text_word *)b)->avma);
}

/* Adds those of @words that hold what they would not be to @ret, sorted; false without memory. */
static bool choose(const struct fathom_text_words *words, bool now, struct fathom_text_words *ret)
{
	for (size_t i = 0; i < words->n; i++) {
		const struct fathom_text_word *word = &words->items[i];

		if (fathom_text_word_is(word->avma, value_of(word, !now)) &&
		    !fathom_array_push(ret, *word))
			return false;
	}
	if (ret->n)
		qsort(ret->items, ret->n, sizeof *ret->items, compare);
	return true;
}

fathom_err fathom_text_words_put(const struct fathom_text_words *words, bool now,
				 struct fathom_errinfo *reterr)
{
	struct fathom_text_words chosen = { 0 };
	const int memory = fathom_text_open();
	fathom_err err = FATHOM_OK;

	if (!choose(words, now, &chosen))
		err = fathom_fail_memory(reterr);
	else if (chosen.n && is_seen(memory))
		err = put_all(memory, &chosen, now, reterr);
	else if (chosen.n && fathom_text_is_alone())
		err = put_alone(&chosen, now, reterr);
	else if (chosen.n)
		err = fathom_fail(
			reterr, FATHOM_E_UNSUPPORTED, "", 0,
			"writes to /proc/self/mem have no effect here, so code is changed "
			"only before a second thread begins");
	if (memory >= 0)
		close(memory);
	fathom_array_free(&chosen);
	return err;
}
