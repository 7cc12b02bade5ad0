/* SPDX-License-Identifier: MIT */
/*
 * The text that glibc wrote before it called abort(): of assert(), malloc's checks,
 * _FORTIFY_SOURCE, the stack protector, and fatal errors of its own. glibc keeps the text for
 * debuggers (glibc, assert/assert.c and sysdeps/posix/libc_fatal.c): __abort_msg points to a struct
 * abort_msg_s of its own pages, the bytes of these pages in 4 bytes and then the text.
 *
 * The text stays when a handler of SIGABRT jumps away, and it is that of the last thread that
 * wrote one. So it is believed only if glibc itself calls abort() in the stack of this thread, and
 * in that of no other.
 */
#include "host/death/library_frames.h"
#include "host/module/module.h"
#include "safe/base/limits.h"

/* Bytes of the size that precedes the text. */
#define HEAD_SIZE 4

/* The smallest page size. */
#define PAGE 4096

/* Returns whether another thread than @t may have written the text, and why. */
static const char *find_doubt(const struct fathom_death_work *w, const struct fathom_thread *t)
{
	struct fathom_place place;

	if (!w->is_all)
		return "only some threads were read: the text may be another's";
	for (size_t i = 0; i < w->n; i++)
		if (&w->threads[i] != t && fathom_frames_abort_by_libc(w, &w->threads[i], &place))
			return "several threads abort: the text may be another's";
	return NULL;
}

/* Finds the pages of the text; returns false if @at, the address of the pointer, leads to none. */
static bool find_pages(const struct fathom_death_work *w, uint64_t at, uint64_t *ret,
		       uint64_t *ret_size)
{
	return fathom_death_word(w, at, ret) && *ret && *ret % PAGE == 0 &&
	       fathom_reader_uint(&w->view->memory, *ret, HEAD_SIZE, w->layout.swap, ret_size) &&
	       *ret_size && *ret_size % PAGE == 0 && *ret <= UINT64_MAX - *ret_size;
}

/* Takes the last newline from @text. */
static void drop_newline(char *text)
{
	const size_t n = strlen(text);

	if (n && text[n - 1] == '\n')
		text[n - 1] = '\0';
}

fathom_err fathom_death_abort_message(struct fathom_death_work *w, const struct fathom_thread *t,
				      struct fathom_death *d)
{
	fathom_err err = FATHOM_OK;
	struct fathom_place libc;
	uint64_t pages;
	uint64_t size;
	uint64_t svma;
	size_t most;
	bool is_cut;
	char *text;

	if (!fathom_frames_abort_by_libc(w, t, &libc))
		return FATHOM_OK;
	if (!fathom_symbols_find_variable(&libc.holder->module->symbols, "__abort_msg",
					  w->layout.word, w->layout.word, &svma)) {
		d->abort_failed = "the program's libc does not say where its text is";
		return FATHOM_OK;
	}
	d->abort_failed = find_doubt(w, t);
	if (d->abort_failed)
		return FATHOM_OK;
	d->abort_failed = "its memory is not there, or damaged";
	if (!find_pages(w, svma + libc.bias, &pages, &size))
		return FATHOM_OK;
	most = size - HEAD_SIZE < FATHOM_MAX_DEATH_TEXT ? (size_t)size - HEAD_SIZE
							: FATHOM_MAX_DEATH_TEXT;
	text = fathom_death_text(w, pages + HEAD_SIZE, most, &is_cut, &err);
	/* The text ends within its pages. */
	if (!text || (is_cut && most == size - HEAD_SIZE))
		return err;
	drop_newline(text);
	d->abort_message = text;
	d->abort_is_cut = is_cut;
	d->abort_failed = NULL;
	return FATHOM_OK;
}
