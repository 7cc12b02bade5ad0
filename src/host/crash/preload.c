/* SPDX-License-Identifier: MIT */
/*
 * libfathom-crash.so: installs the crash handler in programs that do not know of it, by LD_PRELOAD.
 * The environment variable FATHOM_CRASH has words, separated by commas:
 *
 * - off: install nothing
 * - names: no files, lines and inlined calls
 * - fd=N: write reports to this descriptor
 * - signals=SEGV+ABRT: report these signals only
 * - file=PATTERN: append reports to this file; the last word, as the pattern may have commas
 *
 * In a program that has more rights than its user nothing is installed.
 *
 * Every thread that the program makes by pthread_create() is given a stack for the handler.
 *
 * Go's runtime makes its system calls by itself. It would take the crash handler for one that the
 * program has installed, and hand faults of C code on to it, not to its own report. So Go programs
 * run as without this library.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fathom/crash.h"
#include "fathom/session.h"
#include "fathom/stack.h"
#include "host/crash/preload_signals.h"

#define MAX_SIGNALS 31

/* The words of FATHOM_CRASH, read. */
struct words {
	struct fathom_crash_options options;
	int signals[MAX_SIGNALS];
	bool is_off;
};

/* Returns whether the @n bytes of @text are the name of signal @number, without its SIG. */
static bool is_signal(int number, const char *text, size_t n)
{
	const char *name = fathom_signal_name(number);

	return name && strlen(name) == 3 + n && memcmp(name + 3, text, n) == 0;
}

static bool read_signals(struct words *w, const char *text, const char *end)
{
	w->options.signals = w->signals;
	while (text < end) {
		size_t n = strcspn(text, "+,");
		int i = 1;

		while (i <= MAX_SIGNALS && !is_signal(i, text, n))
			i++;
		if (i > MAX_SIGNALS || w->options.n_signals == MAX_SIGNALS)
			return false;
		w->signals[w->options.n_signals++] = i;
		text += n;
		if (text == end)
			return true;
		text++;
	}
	return false;
}

static bool read_number(const char *text, const char *end, int32_t *ret)
{
	char *behind;
	const long n = strtol(text, &behind, 10);

	*ret = (int32_t)n;
	return behind == end && behind > text && n > 0 && n <= INT32_MAX;
}

static bool is_word(const char *text, size_t n, const char *word)
{
	return n == strlen(word) && memcmp(text, word, n) == 0;
}

static bool starts(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static bool read_word(struct words *w, const char *text, size_t n)
{
	if (is_word(text, n, "off"))
		w->is_off = true;
	else if (is_word(text, n, "names"))
		w->options.flags |= FATHOM_CRASH_NAMES_ONLY;
	else if (starts(text, "fd="))
		return read_number(text + 3, text + n, &w->options.fd);
	else if (starts(text, "signals="))
		return read_signals(w, text + 8, text + n);
	else
		return n == 0;
	return true;
}

/* Reads all words; returns false if one is unknown. */
static bool read_words(struct words *w, const char *text)
{
	while (text && *text) {
		const size_t n = strcspn(text, ",");

		if (starts(text, "file=")) {
			w->options.path = text + 5;
			return text[5];
		}
		if (!read_word(w, text, n))
			return false;
		text += n + (text[n] == ',');
	}
	return true;
}

/* Threads are given stacks from now on. (Constructors have no context.) */
static _Atomic bool is_installed;

/* The note of Go's linker: owner and type. */
#define GO_OWNER    "Go\0"
#define GO_BUILD_ID 4

/* Returns 1 if the program, the first object of the list, is one of Go's linker, else -1. */
static int is_go(struct dl_phdr_info *program, size_t size, void *data)
{
	(void)size;
	(void)data;
	for (int i = 0; i < program->dlpi_phnum; i++) {
		const ElfW(Phdr) *s = &program->dlpi_phdr[i];
		const ElfW(Nhdr) *note = (const void *)(program->dlpi_addr + s->p_vaddr);

		if (s->p_type == PT_NOTE && s->p_memsz >= sizeof *note + sizeof GO_OWNER &&
		    note->n_type == GO_BUILD_ID && note->n_namesz == sizeof GO_OWNER &&
		    memcmp(note + 1, GO_OWNER, sizeof GO_OWNER) == 0)
			return 1;
	}
	return -1;
}

/* Installs the handler where the program's action is the default. */
static fathom_err install_below(const struct fathom_crash_options *options,
				struct fathom_errinfo *reterr)
{
	fathom_err err;

	fathom_preload_signals_begin();
	err = fathom_crash_install(NULL, options, reterr);
	fathom_preload_signals_end();
	return err;
}

__attribute__((constructor)) static void install(void)
{
	struct words w = { .options = { .size = sizeof w.options } };
	const char *text = fathom_secure_getenv("FATHOM_CRASH");
	struct fathom_errinfo info;
	char line[512];

	/* A report would show its user what only the program may read. */
	if (fathom_is_secure())
		return;
	if (!read_words(&w, text)) {
		(void)fprintf(stderr, "fathom: FATHOM_CRASH=%s: no such words (fathom_crash(3))\n",
			      text);
		return;
	}
	if (w.is_off || dl_iterate_phdr(is_go, NULL) == 1)
		return;
	if (!install_below(&w.options, &info)) {
		atomic_store(&is_installed, true);
		return;
	}
	(void)fathom_errinfo_format(&info, line, sizeof line);
	(void)fprintf(stderr, "fathom: no crash handler: %s\n", line);
}

typedef int create_fn(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
		      void *data);

struct start {
	void *(*start)(void *data);
	void *data;
};

/* Runs in the new thread. The compiler makes the last call a jump: no frame of ours stays. */
static void *give_stack(void *data)
{
	const struct start s = *(struct start *)data;

	free(data);
	(void)fathom_crash_thread_stack(NULL);
	return s.start(s.data);
}

/* Takes the place of the C library's function, and calls it. */
__attribute__((visibility("default"))) int pthread_create(pthread_t *restrict thread,
							  const pthread_attr_t *restrict attributes,
							  void *(*start)(void *),
							  void *restrict data)
{
	create_fn *const create = (create_fn *)(uintptr_t)dlsym(RTLD_NEXT, "pthread_create");
	struct start *s;
	int err;

	if (create && !atomic_load(&is_installed))
		return create(thread, attributes, start, data);
	s = create ? malloc(sizeof *s) : NULL;
	if (!s)
		return EAGAIN;
	*s = (struct start){ start, data };
	err = create(thread, attributes, give_stack, s);
	if (err)
		free(s);
	return err;
}
