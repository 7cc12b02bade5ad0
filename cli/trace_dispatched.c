/* SPDX-License-Identifier: MIT */
#include "cli/trace_dispatched.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/launch.h"

/* The name without a number is there only for compilers. */
#define LIBRARY "libfathom-trace.so.0"

/* Bytes of the longest options, as a program that traces itself reads them. */
#define LONGEST 8192

/* Puts @word before the words of environment variable @name, which colons separate. */
static void prepend(const char *name, const char *word)
{
	const char *others = fathom_secure_getenv(name);
	char *words;

	if (asprintf(&words, "%s%s%s", word, others && *others ? ":" : "", others ? others : "") <
	    0)
		return;
	(void)setenv(name, words, 1);
	free(words);
}

/*
 * Preloads the library at @path. LD_PRELOAD separates its words by blanks, too (ld.so(8)): a path
 * with one is found by its last component, in a folder that LD_LIBRARY_PATH names.
 */
static void preload(const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	char folder[LONGEST];

	if (!strpbrk(path, " \t\n")) {
		prepend("LD_PRELOAD", path);
		return;
	}
	(void)snprintf(folder, sizeof folder, "%.*s", (int)(name - 1 - path), path);
	prepend("LD_LIBRARY_PATH", folder);
	prepend("LD_PRELOAD", name);
}

/* Finds the library beside the command as it was built, or as it was installed. */
static void find_library(char path[LONGEST])
{
	static const char *const places[] = { "src/" LIBRARY, "../" FATHOM_LIBDIR "/" LIBRARY,
					      FATHOM_LIBDIR "/" LIBRARY };
	char self[4096];
	const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	char *slash;

	self[n < 0 ? 0 : n] = '\0';
	slash = strrchr(self, '/');
	for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
		slash[1] = '\0';
		(void)snprintf(path, LONGEST, "%s%s", *places[i] == '/' ? "" : self, places[i]);
		if (access(path, R_OK))
			continue;
		if (!strpbrk(path, ":;"))
			return;
		complain("--method=dispatch",
			 "cannot load a library from a path with a colon or a semicolon",
			 "install fathom elsewhere");
		exit(EXIT_USAGE);
	}
	complain("--method=dispatch", "needs " LIBRARY ", which is not there",
		 "install fathom whole");
	exit(EXIT_USAGE);
}

/* Returns why the ELF file in @fd takes no library, or NULL. */
static const char *refusal(int fd)
{
	struct stat st;
	Elf64_Ehdr header;

	if (!fstat(fd, &st) && st.st_mode & (S_ISUID | S_ISGID))
		return "cannot trace a set-user-ID program";
	if (pread(fd, &header, sizeof header, 0) != sizeof header ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
		return NULL;
	if (header.e_machine != EM_X86_64)
		return "traces programs of x86-64 only";
	/* 65,535 at the most. */
	for (unsigned i = 0; i < header.e_phnum; i++) {
		Elf64_Phdr segment;

		if (pread(fd, &segment, sizeof segment,
			  (off_t)(header.e_phoff + i * sizeof segment)) == sizeof segment &&
		    segment.p_type == PT_INTERP)
			return NULL;
	}
	return "loads a library into the program, and a static one takes none";
}

static void refuse(const char *why)
{
	complain("--method=dispatch", why, "--method=rewrite and --method=ptrace can do it");
	exit(EXIT_USAGE);
}

/* Refuses what a program that traces itself without ptrace(2) cannot do. */
static void check(const struct trace_wants *w, const char *name)
{
	char path[PATH_MAX];
	const uint32_t others =
		FATHOM_TRACE_LOSSY | FATHOM_TRACE_NO_FOLD | FATHOM_TRACE_NO_CHILDREN;
	const int fd = fathom_find_program(name, NULL, path, sizeof path)
			       ? open(path, O_RDONLY | O_CLOEXEC)
			       : -1;
	const char *why = fd < 0 ? NULL : refusal(fd);

	if (fd >= 0)
		(void)close(fd);
	if (why)
		refuse(why);
	if (!(w->syscalls.flags & FATHOM_SYSCALLS_ONLY)) {
		complain("--method=dispatch", "sees system calls alone", "add --no-functions");
		exit(EXIT_USAGE);
	}
	if (w->syscalls.flags & FATHOM_SYSCALLS_STACKS || w->syscalls.n_inject ||
	    w->syscalls.n_paths)
		refuse("lacks --stacks, --inject and --path");
	if (w->settings.n_threads || w->options.n_at || w->seconds > 0 || w->options.user ||
	    w->settings.flags & FATHOM_TRACE_SETTINGS_DURATIONS)
		refuse("lacks --thread, --at, --for, --user and --durations");
	if (w->options.n_only || w->options.n_under || w->options.n_except || w->options.depth ||
	    w->options.max_rate || w->options.clock || (w->options.flags & ~others)) {
		complain("--method=dispatch", "has no functions, which another option is about",
			 NULL);
		exit(EXIT_USAGE);
	}
}

/* Appends to @options; words may have spaces in them. */
static void add(char options[LONGEST], const char *format, const char *word)
{
	const size_t n = strlen(options);

	if (strchr(word, '\'') || n + strlen(format) + strlen(word) >= LONGEST)
		refuse("takes no such long words, and none with '");
	(void)snprintf(options + n, LONGEST - n, format, word);
}

/* Writes the options that were given for a program that traces itself (fathom_trace(3)). */
static void write_options(const struct trace_wants *w, char options[LONGEST])
{
	for (size_t i = 0; i < w->n_given; i++) {
		const struct fathom_trace_option *o = w->given[i].option;
		const char *argument = w->given[i].argument;

		if (o->name)
			add(options, " '--%s", o->name);
		if (o->name && argument)
			add(options, "=%s", argument);
		if (o->name)
			add(options, "'%s", "");
		else
			add(options, " -%s", (const char[]){ (char)o->letter, '\0' });
		if (!o->name && argument)
			add(options, " '%s'", argument);
	}
	if (w->settings.flags & FATHOM_TRACE_SETTINGS_JSON)
		add(options, "%s", " --json");
}

int trace_run_dispatched(const struct trace_wants *w, char **argv)
{
	char options[LONGEST] = "";
	char path[LONGEST];
	char why[256];
	int number;

	check(w, argv[0]);
	find_library(path);
	write_options(w, options);
	preload(path);
	(void)setenv("STRACE", options, 1);
	number = launch_become(argv);
	(void)snprintf(why, sizeof why, "cannot be run: %s", strerror(number));
	complain(argv[0], why, NULL);
	return number == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN;
}
