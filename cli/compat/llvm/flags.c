/* SPDX-License-Identifier: MIT */
#include "cli/compat/llvm/flags.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/compat/llvm/request.h"

static const char symbolizer_usage[] =
	"Usage: fathom llvm-symbolizer [OPTION]... [REQUEST]...\n"
	"Answer each REQUEST, or each line of standard input, as llvm-symbolizer 19 does.\n"
	"Default: --functions=linkage --inlines --demangle --output-style=LLVM.\n"
	"\n"
	"A REQUEST is [CODE|DATA|FRAME] [FILE:|BUILDID:]MODULE ADDRESS; without MODULE when\n"
	"--obj or --build-id names it. An ADDRESS is a number, SYMBOL or SYMBOL+OFFSET.\n";

static const char addr2line_usage[] =
	"Usage: fathom llvm-addr2line [OPTION]... [REQUEST]...\n"
	"Answer each REQUEST, or each line of standard input, as llvm-addr2line 19 does.\n"
	"Default: --functions=none --no-inlines --no-demangle --output-style=GNU.\n"
	"\n"
	"A REQUEST is [CODE|DATA|FRAME] [FILE:|BUILDID:]MODULE ADDRESS; without MODULE when\n"
	"--obj or --build-id names it. An ADDRESS is a hexadecimal number, SYMBOL or\n"
	"SYMBOL+OFFSET.\n";

static const char options_usage[] =
	"\n"
	"  -e, --exe, --obj=FILE            the file that all addresses are of\n"
	"      --build-id=ID                the file with this build-id\n"
	"  -i, --inlines, --inlining        print inlined callers\n"
	"      --no-inlines\n"
	"  -f, --functions[=linkage|short|none]\n"
	"                                   names: as linked, short, or none\n"
	"  -C, --demangle, --no-demangle    demangle names, or not\n"
	"  -s, --basenames                  print files without directories\n"
	"      --relativenames              print files without the compilation directory\n"
	"  -a, --addresses, --print-address print the address before each answer\n"
	"  -p, --pretty-print               print an answer on one line; JSON indented\n"
	"      --verbose                    print what is known, one item a line\n"
	"      --output-style=LLVM|GNU|JSON\n"
	"      --print-source-context-lines=N\n"
	"                                   print N lines of source around each place\n"
	"      --adjust-vma=OFFSET          subtract OFFSET from addresses\n"
	"      --debug-file-directory=DIR   look for debug files in DIR (repeatable)\n"
	"      --fallback-debug-path=DIR    look for debug files in DIR, too\n"
	"      --dwp=FILE                   split debug files are in the package FILE\n"
	"      --cache-size=BYTES           close files that are not used beyond so much memory\n"
	"      --debuginfod, --no-debuginfod\n"
	"                                   ask the servers of $DEBUGINFOD_URLS, or do not\n"
	"  -h, --help\n"
	"  -v, --version\n"
	"\n"
	"Accepted without effect: --color, --default-arch, --dia, --dsym-hint,\n"
	"--relative-address, --[no-]untag-addresses, --use-symbol-table. Options stand also in\n"
	"$LLVM_SYMBOLIZER_OPTS, of llvm-addr2line in $LLVM_ADDR2LINE_OPTS, and in files given\n"
	"as @FILE.\n";

enum llvm_option {
	OPTION_NONE,
	OPTION_ADDRESSES,
	OPTION_ADJUST_VMA,
	OPTION_BASENAMES,
	OPTION_BUILD_ID,
	OPTION_CACHE_SIZE,
	OPTION_DEBUG_DIR,
	OPTION_DEBUGINFOD,
	OPTION_DEMANGLE,
	OPTION_DSYM_HINT,
	OPTION_DWP,
	OPTION_FALLBACK,
	OPTION_FILE,
	OPTION_FUNCTIONS,
	OPTION_FUNCTIONS_IS,
	OPTION_HELP,
	OPTION_IGNORED,
	OPTION_INLINES,
	OPTION_MARKUP,
	OPTION_NO_DEBUGINFOD,
	OPTION_NO_DEMANGLE,
	OPTION_NO_INLINES,
	OPTION_PRETTY,
	OPTION_RELATIVENAMES,
	OPTION_SOURCE,
	OPTION_STYLE,
	OPTION_VERBOSE,
	OPTION_VERSION,
};

enum value { VALUE_NONE, VALUE_EQUALS, VALUE_ANY };

struct spelling {
	const char *name;
	enum llvm_option option;
	enum value value; /* VALUE_EQUALS: after '=' only */
};

static const struct spelling spellings[] = {
	{ "--addresses", OPTION_ADDRESSES, VALUE_NONE },
	{ "--adjust-vma", OPTION_ADJUST_VMA, VALUE_ANY },
	{ "--basenames", OPTION_BASENAMES, VALUE_NONE },
	{ "--build-id", OPTION_BUILD_ID, VALUE_ANY },
	{ "--cache-size", OPTION_CACHE_SIZE, VALUE_ANY },
	{ "--color", OPTION_IGNORED, VALUE_NONE },
	{ "--color", OPTION_IGNORED, VALUE_EQUALS },
	{ "--debug-file-directory", OPTION_DEBUG_DIR, VALUE_ANY },
	{ "--debuginfod", OPTION_DEBUGINFOD, VALUE_NONE },
	{ "--default-arch", OPTION_IGNORED, VALUE_ANY },
	{ "--demangle", OPTION_DEMANGLE, VALUE_NONE },
	{ "-demangle=false", OPTION_NO_DEMANGLE, VALUE_NONE },
	{ "-demangle=true", OPTION_DEMANGLE, VALUE_NONE },
	{ "--dia", OPTION_IGNORED, VALUE_NONE },
	{ "--dsym-hint", OPTION_DSYM_HINT, VALUE_ANY },
	{ "--dwp", OPTION_DWP, VALUE_ANY },
	{ "--exe", OPTION_FILE, VALUE_ANY },
	{ "--fallback-debug-path", OPTION_FALLBACK, VALUE_ANY },
	{ "--filter-markup", OPTION_MARKUP, VALUE_NONE },
	{ "--functions", OPTION_FUNCTIONS, VALUE_NONE },
	{ "--functions", OPTION_FUNCTIONS_IS, VALUE_EQUALS },
	{ "--help", OPTION_HELP, VALUE_NONE },
	{ "--inlines", OPTION_INLINES, VALUE_NONE },
	{ "--inlining", OPTION_INLINES, VALUE_NONE },
	{ "--inlining=false", OPTION_NO_INLINES, VALUE_NONE },
	{ "--inlining=true", OPTION_INLINES, VALUE_NONE },
	{ "--no-debuginfod", OPTION_NO_DEBUGINFOD, VALUE_NONE },
	{ "--no-demangle", OPTION_NO_DEMANGLE, VALUE_NONE },
	{ "--no-inlines", OPTION_NO_INLINES, VALUE_NONE },
	{ "--no-untag-addresses", OPTION_IGNORED, VALUE_NONE },
	{ "--obj", OPTION_FILE, VALUE_ANY },
	{ "--output-style", OPTION_STYLE, VALUE_ANY },
	{ "--pretty-print", OPTION_PRETTY, VALUE_NONE },
	{ "--print-address", OPTION_ADDRESSES, VALUE_NONE },
	{ "--print-source-context-lines", OPTION_SOURCE, VALUE_ANY },
	{ "--relative-address", OPTION_IGNORED, VALUE_NONE },
	{ "--relativenames", OPTION_RELATIVENAMES, VALUE_NONE },
	{ "--untag-addresses", OPTION_IGNORED, VALUE_NONE },
	{ "--use-symbol-table", OPTION_IGNORED, VALUE_NONE },
	{ "--use-symbol-table", OPTION_IGNORED, VALUE_EQUALS },
	{ "--verbose", OPTION_VERBOSE, VALUE_NONE },
	{ "--version", OPTION_VERSION, VALUE_NONE },
};

/*
 * Parser state, with values that are checked only at the end: unknown options are reported first,
 * and only an option's last value counts.
 */
struct parse {
	struct llvm_options *o;
	size_t next; /* the first is argv[0] */
	bool wrong;
	bool plain_functions; /* --functions wins over --functions=..., wherever it stands */
	bool help;
	bool version;
	bool markup;
	const char *adjust_vma; /* raw values; NULL: not given */
	const char *build_id;
	const char *cache_size;
	const char *context_lines;
	const char **dsym_hints;
	size_t n_dsym_hints;
};

static void add(const char ***list, size_t *n, const char *word)
{
	*list = realloc(*list, (*n + 2) * sizeof **list);
	if (!*list) {
		fputs("error: out of memory\n", stderr);
		exit(1);
	}
	(*list)[(*n)++] = word;
	(*list)[*n] = NULL;
}

/* Parses @text as a number of at most @most; returns 0 for NULL. */
static uint64_t parse_number(const char *option, const char *text, bool is_negative, uint64_t most)
{
	const char *digits = is_negative ? text + 1 : text;
	uint64_t value = 0;

	if (digits && (!llvm_parse_number((struct llvm_text){ digits, strlen(digits) }, &value) ||
		       value > most)) {
		/* Without a newline, as in LLVM. */
		fprintf(stderr, "%s=: expected a non-negative integer, but got '%s'", option, text);
		exit(1);
	}
	return value;
}

/* Parses a 32-bit number of lines; a negative number means none. */
static uint64_t parse_lines(const char *option, const char *text)
{
	const bool is_negative = text && text[0] == '-';
	const uint64_t n =
		parse_number(option, text, is_negative, (uint64_t)INT32_MAX + is_negative);

	return is_negative ? 0 : n;
}

static const char *parse_build_id(const char *option, const char *text)
{
	if (text && !llvm_is_hex((struct llvm_text){ text, strlen(text) })) {
		fprintf(stderr, "%s=: expected a build ID, but got '%s'\n", option, text);
		exit(1);
	}
	return text;
}

static enum llvm_style parse_style(const char *text)
{
	if (strcmp(text, "JSON") == 0)
		return LLVM_STYLE_JSON;
	return strcmp(text, "GNU") == 0 ? LLVM_STYLE_GNU : LLVM_STYLE_LLVM;
}

static enum llvm_functions parse_functions(const char *text)
{
	if (strcmp(text, "none") == 0)
		return LLVM_FUNCTIONS_NONE;
	return strcmp(text, "short") == 0 ? LLVM_FUNCTIONS_SHORT : LLVM_FUNCTIONS_LINKAGE;
}

/* Takes an option without a value; returns false for other options. */
static bool take_flag(struct parse *p, enum llvm_option option)
{
	struct llvm_options *o = p->o;

	switch (option) {
	case OPTION_ADDRESSES:
		o->addresses = true;
		return true;
	case OPTION_BASENAMES:
		o->paths = LLVM_PATHS_BASENAME;
		return true;
	case OPTION_RELATIVENAMES:
		o->paths = LLVM_PATHS_RELATIVE;
		return true;
	case OPTION_DEBUGINFOD:
	case OPTION_NO_DEBUGINFOD:
		o->debuginfod = option == OPTION_DEBUGINFOD;
		return true;
	case OPTION_DEMANGLE:
	case OPTION_NO_DEMANGLE:
		o->demangle = option == OPTION_DEMANGLE;
		return true;
	case OPTION_INLINES:
	case OPTION_NO_INLINES:
		o->inlines = option == OPTION_INLINES;
		return true;
	case OPTION_FUNCTIONS:
		p->plain_functions = true;
		return true;
	case OPTION_PRETTY:
		o->pretty = true;
		return true;
	case OPTION_VERBOSE:
		o->verbose = true;
		return true;
	case OPTION_HELP:
		p->help = true;
		return true;
	case OPTION_VERSION:
		p->version = true;
		return true;
	case OPTION_MARKUP:
		p->markup = true;
		return true;
	default:
		return option == OPTION_IGNORED;
	}
}

static void take_spelling(struct parse *p, const struct spelling *s, const char *value)
{
	struct llvm_options *o = p->o;

	switch (s->option) {
	case OPTION_ADJUST_VMA:
		p->adjust_vma = value;
		break;
	case OPTION_BUILD_ID:
		p->build_id = value;
		break;
	case OPTION_CACHE_SIZE:
		p->cache_size = value;
		break;
	case OPTION_DEBUG_DIR:
		add(&o->debug_dirs, &o->n_debug_dirs, value);
		break;
	case OPTION_DWP:
		o->dwp = value;
		break;
	case OPTION_FALLBACK:
		o->fallback_dir = value;
		break;
	case OPTION_FILE:
		o->file = value;
		break;
	case OPTION_FUNCTIONS_IS:
		o->functions = parse_functions(value);
		break;
	case OPTION_SOURCE:
		p->context_lines = value;
		break;
	case OPTION_STYLE:
		o->style = parse_style(value);
		break;
	case OPTION_DSYM_HINT:
		add(&p->dsym_hints, &p->n_dsym_hints, value);
		break;
	default:
		(void)take_flag(p, s->option);
		break;
	}
}

/*
 * Returns the next word as the value of @option; prints an error and returns NULL if there is none.
 */
static const char *next_value(struct parse *p, const char *option)
{
	if (p->next < p->o->words.n)
		return p->o->words.word[p->next++];
	fprintf(stderr, "error: %s: missing argument\n", option);
	p->wrong = true;
	return NULL;
}

static void complain_unknown(struct parse *p, const char *dashes, const char *word, int size)
{
	fprintf(stderr, "error: unknown argument '%s%.*s'\n", dashes, size, word);
	p->wrong = true;
}

/* Takes @word if it is a full option name; returns false if not. */
static bool take_long(struct parse *p, const char *word)
{
	for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
		const struct spelling *s = &spellings[i];
		const size_t n = strlen(s->name);
		const char *value = NULL;

		if (strncmp(word, s->name, n) != 0)
			continue;
		if (s->value != VALUE_NONE && word[n] == '=')
			value = word + n + 1;
		else if (word[n] != '\0' || s->value == VALUE_EQUALS)
			continue;
		else if (s->value == VALUE_ANY)
			value = next_value(p, s->name);
		if (value || s->value == VALUE_NONE)
			take_spelling(p, s, value);
		return true;
	}
	return false;
}

static enum llvm_option short_option(char c)
{
	switch (c) {
	case 'a':
		return OPTION_ADDRESSES;
	case 'C':
		return OPTION_DEMANGLE;
	case 'e':
		return OPTION_FILE;
	case 'f':
		return OPTION_FUNCTIONS;
	case 'h':
		return OPTION_HELP;
	case 'i':
		return OPTION_INLINES;
	case 'p':
		return OPTION_PRETTY;
	case 's':
		return OPTION_BASENAMES;
	case 'v':
		return OPTION_VERSION;
	default:
		return OPTION_NONE;
	}
}

/* Takes grouped letters: "-afe FILE", "-eFILE", "-e=FILE", "-f=short". */
static void take_group(struct parse *p, const char *word)
{
	for (const char *c = word + 1; *c; c++) {
		struct spelling s = { "-e", short_option(*c), VALUE_ANY };

		if (s.option == OPTION_FILE) {
			const char *value = c[1] == '=' ? c + 2
					    : c[1]      ? c + 1
							: next_value(p, "-e");

			if (value)
				take_spelling(p, &s, value);
			return;
		}
		if (c[1] == '=' && s.option == OPTION_FUNCTIONS) {
			p->o->functions = parse_functions(c + 2);
			return;
		}
		if (s.option == OPTION_NONE) {
			complain_unknown(p, "-", c, 1);
		} else if (c[1] == '=') {
			complain_unknown(p, "-", c, (int)strlen(c));
			return;
		} else {
			take_spelling(p, &s, NULL);
		}
	}
}

static void take_words(struct parse *p)
{
	while (p->next < p->o->words.n) {
		const char *word = p->o->words.word[p->next++];

		if (word[0] != '-' || !word[1]) {
			if (word[0])
				add(&p->o->inputs, &p->o->n_inputs, word);
		} else if (!take_long(p, word)) {
			if (word[1] == '-')
				complain_unknown(p, "", word, (int)strlen(word));
			else
				take_group(p, word);
		}
	}
}

/* Collects the words of the tool's environment variable, then those of the command line. */
static void collect_words(struct words *ret, bool is_addr2line, int argc, char **argv)
{
	const char *environment =
		fathom_secure_getenv(is_addr2line ? "LLVM_ADDR2LINE_OPTS" : "LLVM_SYMBOLIZER_OPTS");
	struct words all = { 0 };

	words_add(&all, argv[0], strlen(argv[0]));
	if (environment)
		words_split(&all, environment);
	for (int i = 1; i < argc; i++)
		words_add(&all, argv[i], strlen(argv[i]));
	words_expand(ret, (int)all.n, all.word);
	words_deinit(&all);
}

static void print_usage(const struct llvm_options *o)
{
	fputs(o->is_addr2line ? addr2line_usage : symbolizer_usage, stdout);
	fputs(options_usage, stdout);
}

static void print_version(const struct llvm_options *o)
{
	printf("%s\nfathom %s, compatible with LLVM version 19.1\n",
	       o->is_addr2line ? "llvm-addr2line" : "llvm-symbolizer", fathom_version());
}

/* Warns about a malformed --dsym-hint for Mach-O debug files; it is not used otherwise. */
static void check_dsym_hint(const char *hint)
{
	const char *dot = strrchr(last_part(hint), '.');

	if (!dot || strcmp(dot, ".dSYM") != 0)
		fprintf(stderr,
			"Warning: invalid dSYM hint: \"%s\" (must have the '.dSYM' extension).\n",
			hint);
}

/* Checks the remaining values, in LLVM's order of errors. */
static void take_values(struct parse *p)
{
	struct llvm_options *o = p->o;

	if (p->wrong)
		exit(1);
	if (p->help || p->version) {
		(p->help ? print_usage : print_version)(o);
		exit(0);
	}
	if (p->plain_functions)
		o->functions = LLVM_FUNCTIONS_LINKAGE;
	o->adjust_vma = parse_number("--adjust-vma", p->adjust_vma, false, UINT64_MAX);
	o->context_lines = parse_lines("--print-source-context-lines", p->context_lines);
	o->cache_size = parse_number("--cache-size", p->cache_size, false, UINT64_MAX);
	if (!p->cache_size)
		o->cache_size = UINT64_MAX;
	for (size_t i = 0; i < p->n_dsym_hints; i++)
		check_dsym_hint(p->dsym_hints[i]);
	free(p->dsym_hints);
	if (p->markup) {
		fputs("error: --filter-markup: not supported by this llvm-symbolizer\n", stderr);
		exit(1);
	}
	if (o->file && p->build_id) {
		fputs("error: cannot specify both --build-id and --obj\n", stderr);
		exit(1);
	}
	o->build_id = parse_build_id("--build-id", p->build_id);
}

void llvm_options_parse(int argc, char **argv, struct llvm_options *ret)
{
	struct parse p = { .o = ret, .next = 1 };

	*ret = (struct llvm_options){ .inlines = true, .demangle = true };
	if (strstr(last_part(argv[0]), "addr2line"))
		*ret = (struct llvm_options){ .is_addr2line = true,
					      .functions = LLVM_FUNCTIONS_NONE,
					      .style = LLVM_STYLE_GNU };
	collect_words(&ret->words, ret->is_addr2line, argc, argv);
	take_words(&p);
	take_values(&p);
	if (ret->fallback_dir && !ret->n_debug_dirs)
		add(&ret->debug_dirs, &ret->n_debug_dirs, "/usr/lib/debug");
	if (ret->fallback_dir)
		add(&ret->debug_dirs, &ret->n_debug_dirs, ret->fallback_dir);
}

void llvm_options_deinit(struct llvm_options *o)
{
	words_deinit(&o->words);
	free(o->debug_dirs);
	free(o->inputs);
}
