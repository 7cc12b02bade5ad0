/* SPDX-License-Identifier: MIT */
#include "cli/options.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fathom/near.h>

#include "cli/common.h"

/* A common option and its group; group 0 is always listed. */
struct common_option {
	uint32_t group;
	struct verb_option option;
};

static const struct common_option common_options[] = {
	{ OPTIONS_TARGET, { 'p', NULL, "PID", "TARGET is this process" } },
	{ OPTIONS_TARGET, { 'e', NULL, "FILE", "TARGET is this file" } },
	{ OPTIONS_JSON, { OPT_JSON, "json", NULL, "print JSON Lines" } },
	{ OPTIONS_NO_CACHE,
	  { OPT_NO_CACHE, "no-cache", NULL, "neither read nor write the index cache" } },
	{ OPTIONS_CACHE_DIR, { OPT_CACHE_DIR, "cache-dir", "DIR", "the index cache is in DIR" } },
	{ OPTIONS_DEBUG,
	  { OPT_DEBUG_DIR, "debug-dir", "DIR", "look for debug files in DIR, too (repeatable)" } },
	{ OPTIONS_DEBUG,
	  { OPT_SYSROOT, "sysroot", "DIR", "look for files of cores and debug files below DIR" } },
	{ OPTIONS_EXE, { OPT_EXE, "exe", "PATH", "the program that a core or snapshot is of" } },
	{ OPTIONS_EXE,
	  { OPT_UNVERIFIED, "unverified-files", NULL, "use files of a core that nothing proves" } },
	{ OPTIONS_DEBUG,
	  { OPT_DEBUGINFOD, "debuginfod", "[=URLS]",
	    "ask debuginfod servers ($DEBUGINFOD_URLS)" } },
	{ OPTIONS_DEBUG,
	  { OPT_DEBUGINFOD_TIMEOUT, "debuginfod-timeout", "S",
	    "seconds for all questions together (default 10)" } },
	{ OPTIONS_DEBUG,
	  { OPT_FILE_TIMEOUT, "file-timeout", "S",
	    "seconds for silent file systems (default 1.5)" } },
	{ OPTIONS_MEMORY,
	  { OPT_MEMORY, "memory", "SIZE", "memory to use at most, as in 512M (default 1G)" } },
	{ OPTIONS_THREADS,
	  { OPT_THREADS, "threads", "N", "threads to use (default: one for each processor)" } },
	{ OPTIONS_SOURCE,
	  { OPT_SOURCE, "source", "[=N]", "print N lines of source for each (default 5)" } },
	{ OPTIONS_SOURCE_LINE,
	  { OPT_SOURCE, "source", "[=N]", "print N lines of source for each line (default 1)" } },
	{ OPTIONS_SOURCE | OPTIONS_SOURCE_LINE | OPTIONS_SOURCE_DIR,
	  { OPT_SOURCE_DIR, "source-dir", "DIR", "look for sources in DIR first (repeatable)" } },
	{ OPTIONS_COLOR,
	  { OPT_COLOR, "color", "[=WHEN]", "colours: always, never or auto (on a terminal)" } },
	{ 0, { OPT_HELP, "help", NULL, "print this help" } },
};

#define N_COMMON (sizeof common_options / sizeof *common_options)

static bool is_letter(const struct verb_option *o)
{
	return o->value < OPT_COMMON;
}

static int kind_of_argument(const struct verb_option *o)
{
	return !o->argument          ? no_argument
	       : *o->argument == '[' ? optional_argument
				     : required_argument;
}

/* Adds @o to the tables of getopt_long(). */
static void add_option(struct option_reader *r, size_t *n, char **letter,
		       const struct verb_option *o)
{
	if (is_letter(o)) {
		*(*letter)++ = (char)o->value;
		if (o->argument)
			*(*letter)++ = ':';
	}
	if (o->name && *n < MAX_OPTIONS)
		r->table[(*n)++] = (struct option){ o->name, kind_of_argument(o), NULL, o->value };
}

/*
 * Returns whether @v accepts @o: without a TARGET, -p and -e are the verb's own letters, and it has
 * one of the rows of --source.
 */
static bool is_accepted(const struct verb_options *v, const struct common_option *o)
{
	if (o->option.value == OPT_SOURCE)
		return (o->group == OPTIONS_SOURCE_LINE) == !!(v->common & OPTIONS_SOURCE_LINE);
	return o->group != OPTIONS_TARGET || (v->common & OPTIONS_TARGET);
}

static bool is_listed(const struct verb_options *v, const struct common_option *o)
{
	return !o->group || (v->common & o->group);
}

void option_reader_init(struct option_reader *r, const struct verb_options *verb)
{
	char *letter = r->letters;
	size_t n = 0;

	memset(r, 0, sizeof *r);
	r->verb = verb;
	/* getopt_long() prints nothing itself and reports a missing argument separately. */
	opterr = 0;
	*letter++ = ':';
	*letter++ = 'h';
	for (const struct verb_option *o = verb->options; o->value; o++)
		add_option(r, &n, &letter, o);
	for (size_t i = 0; i < N_COMMON; i++)
		if (is_accepted(verb, &common_options[i]))
			add_option(r, &n, &letter, &common_options[i].option);
}

/* Column of help's descriptions. */
#define HELP_COLUMN 30

static void print_option(const struct verb_option *o)
{
	const bool apart = o->argument && *o->argument != '[' && *o->argument != '=';
	const char *argument = o->argument ? o->argument : "";
	char left[64];
	int n;

	if (!o->name)
		n = snprintf(left, sizeof left, "  -%c %s", o->value, argument);
	else if (is_letter(o))
		n = snprintf(left, sizeof left, "  -%c, --%s%s%s", o->value, o->name,
			     apart ? " " : "", argument);
	else
		n = snprintf(left, sizeof left, "      --%s%s%s", o->name, apart ? " " : "",
			     argument);
	printf("%s%*s%s\n", left, n < HELP_COLUMN ? HELP_COLUMN - n : 1, "", o->help);
}

static void print_help(const struct verb_options *v)
{
	fputs(v->usage, stdout);
	putchar('\n');
	for (const struct verb_option *o = v->options; o->value; o++)
		if (o->help)
			print_option(o);
	for (size_t i = 0; i < N_COMMON; i++)
		if (is_listed(v, &common_options[i]))
			print_option(&common_options[i].option);
	printf("\n%s", v->end);
}

/* Complains about option @what of the verb and exits. */
static _Noreturn void complain_option(const struct option_reader *r, const char *what,
				      const char *why, const char *remedy)
{
	char help[64];

	(void)snprintf(help, sizeof help, "try 'fathom %s --help'", r->verb->verb);
	complain(what, why, remedy ? remedy : help);
	exit(EXIT_USAGE);
}

/* Complains that @word is not an option and exits. @name is its presumed long name. */
static _Noreturn void complain_unknown(const struct option_reader *r, const char *word,
				       const char *name)
{
	const char *names[MAX_OPTIONS];
	char copy[64];
	char why[96];
	char remedy[96];
	const char *near;
	size_t n = 0;

	for (const struct verb_option *o = r->verb->options; o->value; o++)
		if (o->name)
			names[n++] = o->name;
	for (size_t i = 0; i < N_COMMON; i++)
		if (common_options[i].option.name && is_listed(r->verb, &common_options[i]))
			names[n++] = common_options[i].option.name;
	(void)snprintf(copy, sizeof copy, "%.*s", (int)strcspn(name, "="), name);
	(void)snprintf(why, sizeof why, "is not an option of 'fathom %s'", r->verb->verb);
	near = fathom_near_text(copy, names, n);
	(void)snprintf(remedy, sizeof remedy, "did you mean --%s?", near ? near : "");
	complain_option(r, word, why, near ? remedy : NULL);
}

/* Lists the options that start with @word, such as "--debug", in @text; returns their number. */
static size_t list_starts(const struct option_reader *r, const char *word, char *text, size_t cap)
{
	const size_t size = strcspn(word + 2, "=");
	size_t count = 0;
	size_t at = 0;

	for (const struct option *o = r->table; o->name; o++) {
		if (strncmp(o->name, word + 2, size) != 0)
			continue;
		at += (size_t)snprintf(text + at, cap - at, "%s--%s", count++ ? ", " : "", o->name);
		if (at >= cap)
			break;
	}
	return count;
}

/* Returns the name of the option with @value: long if @word, its spelling, is long. */
static const char *option_name(const struct option_reader *r, int value, const char *word,
			       char text[64])
{
	(void)snprintf(text, 64, "-%c", value);
	for (const struct option *o = r->table; o->name; o++)
		if (o->val == value && (value >= OPT_COMMON || word[1] == '-'))
			(void)snprintf(text, 64, "--%s", o->name);
	return text;
}

/*
 * Complains about an option that getopt_long() refused ('?', or ':' for a missing argument) and
 * exits.
 */
static _Noreturn void complain_refused(const struct option_reader *r, int opt, int argc,
				       char **argv)
{
	/* musl takes the NULL after the last argument for one that a letter lacks. */
	const char *word = argv[optind - 1] ? argv[optind - 1] : argv[optind - 2];
	const char letter[] = { '-', (char)optopt, '\0' };
	char name[64];
	char list[256];

	if (opt == ':')
		complain_option(r, option_name(r, optopt, word, name), "lacks its argument", NULL);
	if (!optopt) {
		if (list_starts(r, word, list, sizeof list) > 1)
			complain_option(r, word, "is the start of several options", list);
		complain_unknown(r, word, word + 2);
	}
	if (optopt >= OPT_COMMON || (optopt != ':' && strchr(r->letters, optopt)))
		complain_option(r, option_name(r, optopt, word, name), "takes no argument", NULL);
	/* "-limit" is meant as "--limit". */
	if (strncmp(word, letter, 2) != 0 && optind < argc)
		word = argv[optind];
	if (strncmp(word, letter, 2) == 0 && word[2])
		complain_unknown(r, word, word + 1);
	complain_unknown(r, letter, "");
}

int option_reader_next(struct option_reader *r, struct common *c, int argc, char **argv)
{
	int opt;

	while ((opt = getopt_long(argc, argv, r->letters, r->table, NULL)) != -1) {
		if (opt == 'h' || opt == OPT_HELP) {
			print_help(r->verb);
			exit(EXIT_ANSWERED);
		}
		if (opt == '?' || opt == ':')
			complain_refused(r, opt, argc, argv);
		if (!common_take(c, r->verb, opt, optarg))
			break;
	}
	return opt;
}

/* Returns whether long option @text, after its dashes, takes its argument from the next word. */
static bool long_takes_next(const struct option_reader *r, const char *text)
{
	const size_t size = strlen(text);
	bool takes = false;

	for (const struct option *o = r->table; o->name && !strchr(text, '='); o++) {
		if (strncmp(o->name, text, size) != 0)
			continue;
		takes = o->has_arg == required_argument;
		if (o->name[size] == '\0')
			break;
	}
	return takes;
}

/* Likewise the letters of @text, after their dash. */
static bool letters_take_next(const struct option_reader *r, const char *text)
{
	for (; *text; text++) {
		const char *letter = strchr(r->letters + 1, *text);

		if (letter && letter[1] == ':')
			return letter[2] != ':' && !text[1];
	}
	return false;
}

int option_reader_first(const struct option_reader *r, int argc, char **argv)
{
	int i = 1;

	for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
		const bool is_long = argv[i][1] == '-';

		if (is_long ? long_takes_next(r, argv[i] + 2) : letters_take_next(r, argv[i] + 1))
			i++;
	}
	return i < argc ? i : argc;
}
