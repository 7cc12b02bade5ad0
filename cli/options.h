/* SPDX-License-Identifier: MIT */
/*
 * The options of fathom's own verbs. One table per verb feeds getopt_long(), --help and "did you
 * mean". The personalities have their tools' options instead.
 */
#ifndef FATHOM_CLI_OPTIONS_H
#define FATHOM_CLI_OPTIONS_H

#include <getopt.h>
#include <stdint.h>

struct common;

/* One option. */
struct verb_option {
	int value; /* a letter, or a number of the enum below or of the verb; 0 ends a table */
	const char *name; /* long form, "limit"; NULL: only the letter */
	/*
	 * As printed by help: "N"; "[=URLS]" for an optional argument; "=WORD" to print the "=".
	 * NULL: no argument.
	 */
	const char *argument;
	const char *help; /* NULL: it is an older name, which help does not print */
};

/* Values of the common options, which every verb of fathom's own accepts. */
enum {
	OPT_COMMON = 256,
	OPT_JSON = OPT_COMMON,
	OPT_NO_CACHE,
	OPT_CACHE_DIR,
	OPT_DEBUG_DIR,
	OPT_SYSROOT,
	OPT_EXE,
	OPT_UNVERIFIED,
	OPT_DEBUGINFOD,
	OPT_DEBUGINFOD_TIMEOUT,
	OPT_FILE_TIMEOUT,
	OPT_MEMORY,
	OPT_THREADS,
	OPT_COLOR,
	OPT_SOURCE,
	OPT_SOURCE_DIR,
	OPT_HELP,
	OPT_VERB, /* a verb's own options start here */
};

/* Bits of verb_options.common: groups of common options. */
enum {
	OPTIONS_TARGET = 1u << 0, /* -p, -e */
	OPTIONS_JSON = 1u << 1,
	OPTIONS_NO_CACHE = 1u << 2,
	OPTIONS_CACHE_DIR = 1u << 3,
	OPTIONS_DEBUG = 1u << 4, /* --debug-dir, --sysroot, --debuginfod, and the timeouts */
	OPTIONS_EXE = 1u << 5,
	OPTIONS_MEMORY = 1u << 6,
	OPTIONS_THREADS = 1u << 7,
	OPTIONS_COLOR = 1u << 8,
	OPTIONS_SOURCE = 1u << 9,       /* --source, --source-dir */
	OPTIONS_SOURCE_LINE = 1u << 10, /* the same, of one line unless --source says more */
	OPTIONS_SOURCE_DIR = 1u << 11,  /* --source-dir alone */
};

/* A verb's options and its help. */
struct verb_options {
	const char *verb;
	const char *usage;                 /* help text above the options */
	const struct verb_option *options; /* the verb's own */
	/*
	 * The groups of common options that affect this verb. Help lists only these; the others are
	 * accepted, so that one set of options fits every verb.
	 */
	uint32_t common;
	const char *end; /* help text below the options */
};

/* More than any verb has. */
#define MAX_OPTIONS 64

/* The state of reading one command line. */
struct option_reader {
	const struct verb_options *verb;
	struct option table[MAX_OPTIONS + 1];
	char letters[2 * MAX_OPTIONS + 2];
};

void option_reader_init(struct option_reader *r, const struct verb_options *verb);

/*
 * Returns the value of the verb's next own option, with its argument in optarg, or -1 at the end.
 * Puts common options into @c. Exits after --help. Complains and exits with status 2 if an option
 * is unknown or its argument is wrong.
 */
int option_reader_next(struct option_reader *r, struct common *c, int argc, char **argv);

/*
 * Returns the index of the first of @argv that is neither an option nor the argument of one; @argc
 * if there is none.
 */
int option_reader_first(const struct option_reader *r, int argc, char **argv);

#endif
