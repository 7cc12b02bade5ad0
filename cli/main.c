/* SPDX-License-Identifier: MIT */
/* The fathom command: finds the verb and runs it. */
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/common.h"

struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary;
};

static const struct verb verbs[] = {
	{ "addr", verb_addr, "who is at this address: function, line, inlined callers" },
	{ "addr2line", verb_addr2line, "answer as GNU addr2line does, byte for byte" },
	{ "cache", verb_cache, "store the index of a file for every later run" },
	{ "disasm", verb_disasm, "what does this code say: instructions, every address named" },
	{ "doctor", verb_doctor, "what limits answers here, and what helps" },
	{ "filter", verb_filter, "what do the addresses in this log mean" },
	{ "find", verb_find, "where is this name: symbols, lines, inlined copies" },
	{ "jit-check", verb_jit_check, "does made code keep its promises" },
	{ "llvm-addr2line", verb_llvm_symbolizer, "answer as llvm-addr2line does" },
	{ "llvm-symbolizer", verb_llvm_symbolizer,
	  "answer as llvm-symbolizer does, for sanitizers, perf, pprof" },
	{ "record", verb_record, "where does the time go: samples of a program" },
	{ "report", verb_report, "where does the time go: functions and calls of a profile" },
	{ "resolve", verb_resolve, "a million rows of build-ids and addresses, from any machines" },
	{ "snapshot", verb_snapshot, "keep what names the addresses of a process when it is gone" },
	{ "stack", verb_stack, "how did it get here: the stacks of a process or core" },
	{ "store", verb_store, "keep indexes of builds where all machines find them" },
	{ "strace", verb_strace, "print system calls in the form of strace" },
	{ "top", verb_top, "where does the time go now: functions, threads, waits, live" },
	{ "trace", verb_trace, "what is it calling: each function of a program" },
};

#define N_VERBS (sizeof verbs / sizeof *verbs)

/* Program names that make the command another tool; the first that fits counts. */
struct personality {
	const char *pattern;
	int (*run)(int argc, char **argv);
};

static const struct personality personalities[] = {
	{ "llvm-addr2line*", verb_llvm_symbolizer },
	{ "*addr2line", verb_addr2line },
	{ "llvm-symbolizer*", verb_llvm_symbolizer },
	{ "*strace", verb_strace },
};

/* Returns whether @path names a tool for which the command runs the system's. */
static bool is_system_tool(const char *path)
{
	static const char *const names[] = { "nm", "objdump", "c++filt" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(last_part(path), names[i]) == 0)
			return true;
	return false;
}

static void print_usage(FILE *to)
{
	fputs("Usage: fathom VERB [OPTION]... TARGET [ARGUMENT]...\n\n", to);
	for (size_t i = 0; i < N_VERBS; i++)
		fprintf(to, "  %-16s %s\n", verbs[i].name, verbs[i].summary);
	fputs("\nTry 'fathom help VERB', or the manual page fathom(1).\n", to);
}

/* Returns the tool that the command is called as, or NULL. */
static const struct personality *find_personality(const char *path)
{
	const char *name = last_part(path);

	for (size_t i = 0; i < sizeof personalities / sizeof *personalities; i++)
		if (fnmatch(personalities[i].pattern, name, 0) == 0)
			return &personalities[i];
	return NULL;
}

/* Runs the verb in argv[0]. */
static int run_verb(int argc, char **argv)
{
	const char *names[N_VERBS + 1];
	const char *near;
	char remedy[64];

	for (size_t i = 0; i < N_VERBS; i++) {
		if (strcmp(argv[0], verbs[i].name) == 0)
			return verbs[i].run(argc, argv);
		names[i] = verbs[i].name;
	}
	names[N_VERBS] = "help";
	near = fathom_near_text(argv[0], names, N_VERBS + 1);
	(void)snprintf(remedy, sizeof remedy, "did you mean %s?", near ? near : "");
	complain(argv[0], "is not a verb of fathom", near ? remedy : "see 'fathom --help'");
	return EXIT_USAGE;
}

/* Runs "fathom help [VERB]": prints what "fathom VERB --help" prints, or the list of verbs. */
static int help(int n, char **arguments)
{
	char word[] = "--help";
	char *argv[] = { n ? arguments[0] : NULL, word, NULL };

	if (n && strcmp(arguments[0], "help") != 0)
		return run_verb(2, argv);
	print_usage(stdout);
	return 0;
}

static void pass(int number)
{
	(void)number;
}

int main(int argc, char **argv)
{
	const struct personality *personality = argc ? find_personality(argv[0]) : NULL;

	/* First, before the tool could inherit changed signal dispositions. */
	if (argc && is_system_tool(argv[0]))
		return run_system_tool(argv);
	/* A handler, not SIG_IGN, which a program that is run here would inherit. */
	if (signal(SIGPIPE, pass) == SIG_IGN)
		(void)signal(SIGPIPE, SIG_IGN);
	fault_begin();
	if (personality)
		return personality->run(argc, argv);
	if (argc < 2) {
		print_usage(stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0)
		return help(argc - 2, argv + 2);
	if (strcmp(argv[1], "--version") == 0) {
		printf("fathom %s\n", fathom_version());
		return 0;
	}
	return run_verb(argc - 1, argv + 1);
}
