/* SPDX-License-Identifier: MIT */
/*
 * Follows its arguments, one after the other:
 *	names FILE SYMBOL	prints the name at the symbol's address alone
 *	lines FILE SYMBOL	prints its name, file and line, or the reason, and all notes
 *	codecs			prints which codecs the loader has here
 *	ready			tries all optional libraries, and prints those that are not
 *	root FOLDER		goes into another root directory
 *	threads FILE SYMBOL	does "lines" on many threads at once, half of them in one session
 *	load FILE		loads the library FILE
 *	pprof FILE		prints the profile FILE in pprof's format, in hexadecimal
 * It needs no /proc: the loader itself says what it has loaded.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fathom/fathom.h>

#define THREADS 16

static const char *last_part(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path ? path : "??";
}

static void print_info(const struct fathom_errinfo *info)
{
	printf("%s: %s: %s (%s)\n", last_part(info->file), info->section, info->what,
	       info->cause == FATHOM_CAUSE_NOT_INSTALLED ? "not installed" : "-");
}

static struct fathom *session_new(void)
{
	static const struct fathom_options options = { .size = sizeof options,
						       .flags = FATHOM_NO_CACHE,
						       .threads = 4 };
	struct fathom *session;

	if (fathom_create(&options, &session, NULL))
		abort();
	return session;
}

/* Writes the answer for @symbol of @file to @to, as one line. */
static void ask(struct fathom *session, const char *file, const char *symbol, uint32_t flags,
		int with_notes, char *to, size_t cap)
{
	const struct fathom_symbolize_options options = { .size = sizeof options, .flags = flags };
	struct fathom_errinfo info = { 0 };
	struct fathom_target *target;
	const struct fathom_answer *a;
	struct fathom_pc pc = { 0 };

	(void)snprintf(to, cap, "no answer");
	if (fathom_target_open_file(session, file, NULL, &target, &info)) {
		print_info(&info);
		return;
	}
	if (fathom_target_find_symbol(target, symbol, &pc.address) == FATHOM_OK &&
	    fathom_lookup(target, pc, &options, &a, NULL) == FATHOM_OK) {
		(void)snprintf(to, cap, "%s %s:%u reason %d", a->symbol ? a->symbol : "??",
			       a->frame ? last_part(a->frame->file) : "??",
			       a->frame ? a->frame->line : 0, a->reason);
		fathom_answer_free(a);
	}
	for (size_t i = 0; with_notes && fathom_target_note(target, i); i++)
		print_info(fathom_target_note(target, i));
	fathom_target_release(target);
}

static void print_one(const char *file, const char *symbol, uint32_t flags)
{
	struct fathom *session = session_new();
	char text[256];

	ask(session, file, symbol, flags, 1, text, sizeof text);
	puts(text);
	fathom_destroy(session);
}

static int print_codec(struct dl_phdr_info *info, size_t size, void *data)
{
	static const char *const codecs[] = { "libdeflate.", "libz.", "libzstd.", "liblzma.",
					      "liblz4." };
	const char *name = last_part(info->dlpi_name);

	(void)size;
	(void)data;
	for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++)
		if (strncmp(name, codecs[i], strlen(codecs[i])) == 0)
			printf(" %.*s", (int)strlen(codecs[i]) - 1, name);
	return 0;
}

static void print_codecs(void)
{
	printf("codecs:");
	(void)dl_iterate_phdr(print_codec, NULL);
	puts("");
}

static void make_ready(void)
{
	struct fathom_feature f = { .size = sizeof f };

	printf("missing:");
	for (size_t i = 0; fathom_feature_get(i, &f); i++)
		if (f.state != FATHOM_FEATURE_READY)
			printf(" %s=%s", f.name, f.library);
	puts("");
}

/* A thread with its question and the answer. */
struct asker {
	pthread_t thread;
	pthread_barrier_t *start;
	struct fathom *session;
	const char *file;
	const char *symbol;
	char text[256];
};

static void *ask_when_all_do(void *data)
{
	struct asker *a = data;

	(void)pthread_barrier_wait(a->start);
	ask(a->session, a->file, a->symbol, 0, 0, a->text, sizeof a->text);
	return NULL;
}

static void ask_on_threads(const char *file, const char *symbol)
{
	struct fathom *shared = session_new();
	struct asker askers[THREADS];
	pthread_barrier_t start;

	pthread_barrier_init(&start, NULL, THREADS);
	for (int i = 0; i < THREADS; i++) {
		askers[i] = (struct asker){ .start = &start,
					    .session = i % 2 ? session_new() : shared,
					    .file = file,
					    .symbol = symbol };
		if (pthread_create(&askers[i].thread, NULL, ask_when_all_do, &askers[i]))
			abort();
	}
	for (int i = 0; i < THREADS; i++) {
		(void)pthread_join(askers[i].thread, NULL);
		puts(askers[i].text);
		if (i % 2)
			fathom_destroy(askers[i].session);
	}
	fathom_destroy(shared);
	pthread_barrier_destroy(&start);
}

static int print_hex(void *data, const void *bytes, size_t n)
{
	(void)data;
	for (size_t i = 0; i < n; i++)
		printf("%02x", ((const unsigned char *)bytes)[i]);
	return 1;
}

static void print_pprof(const char *file)
{
	struct fathom *session = session_new();
	struct fathom_profile *profile;

	if (fathom_profile_open(session, file, &profile, NULL) ||
	    fathom_profile_export(profile, FATHOM_PROFILE_PPROF, NULL, print_hex, NULL, NULL))
		abort();
	puts("");
	fathom_profile_free(profile);
	fathom_destroy(session);
}

static int failed(const char *what)
{
	perror(what);
	return 1;
}

int main(int argc, char **argv)
{
	/* Whatever waits for itself is ended, which is no answer. */
	alarm(60);
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];

		if (!strcmp(word, "codecs")) {
			print_codecs();
		} else if (!strcmp(word, "ready")) {
			make_ready();
		} else if (!strcmp(word, "root") && i + 1 < argc) {
			if (chroot(argv[++i]) || chdir("/"))
				return failed("root");
		} else if (!strcmp(word, "load") && i + 1 < argc) {
			if (!dlopen(argv[++i], RTLD_NOW))
				return failed(dlerror());
		} else if (!strcmp(word, "pprof") && i + 1 < argc) {
			print_pprof(argv[++i]);
		} else if (i + 2 < argc) {
			if (!strcmp(word, "threads"))
				ask_on_threads(argv[i + 1], argv[i + 2]);
			else
				print_one(argv[i + 1], argv[i + 2],
					  strcmp(word, "names") ? 0 : FATHOM_NAMES_ONLY);
			i += 2;
		} else {
			return 2;
		}
	}
	return 0;
}
