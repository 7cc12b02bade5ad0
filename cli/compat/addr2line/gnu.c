/* SPDX-License-Identifier: MIT */
/*
 * fathom addr2line: the options, the output and the exit codes of GNU addr2line 2.40, byte for
 * byte. Where GNU's answers are wrong this one gives the right ones:
 * docs/reports/oracle-addr2line.md lists the classes. Unlike GNU, all addresses that are there are
 * answered together.
 *
 * Not handled: GNU's translations; -b makes no difference, as ELF files are read as what they are.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fathom/compat.h>

#include "cli/characters.h"
#include "cli/common.h"
#include "cli/compat/addr2line/gnu_names.h"
#include "cli/compat/words.h"
#include "cli/out.h"
#include "cli/stream.h"

#define EXIT_FAILED 1

/* A loaded section, whose addresses can be looked up. */
struct section {
	uint64_t start; /* GNU's address: in relocatable files every section starts at 0 */
	uint64_t size;
	uint64_t address; /* of its first byte, for fathom_symbolize() */
};

/* One requested address. */
struct item {
	uint64_t pc;
	size_t section;                       /* index of the section to try next */
	const struct fathom_answers *answers; /* NULL: not answered yet */
	size_t index;                         /* of the answer in answers */
};

struct addr2line {
	const char *program;
	const char *file;
	const char *format; /* -b; NULL: not given */
	const char *section_name;
	bool addresses; /* -a */
	bool functions; /* -f */
	bool inlines;   /* -i */
	bool demangle;  /* -C */
	bool pretty;    /* -p */
	bool basenames; /* -s */
	struct fathom_compat_symbolize rules;
	struct fathom_symbolize_options symbolize;
	struct fathom_target *target;
	struct fathom_target_info info;
	size_t next_note;
	struct gnu_names names;
	struct gnu_symbols symbols;
	struct section *sections;
	size_t n_sections;
	bool has_sections;
	struct item *items;
	size_t n;
	size_t cap;
	struct fathom_answers **rounds; /* of the batch; items point into them */
	size_t n_rounds;
	struct out out;
};

static _Noreturn void fail(const struct addr2line *a, const char *what, const char *why)
{
	fprintf(stderr, "%s: %s: %s\n", a->program, what, why);
	exit(EXIT_FAILED);
}

static const char usage[] =
	" [OPTION]... [ADDRESS]...\n"
	"Print the file and line of each ADDRESS, as GNU addr2line does.\n"
	"Without ADDRESS, read them from standard input, one a line.\n"
	"\n"
	"An ADDRESS is hexadecimal, or SYMBOL or SYMBOL+OFFSET.\n"
	"\n"
	"  -e, --exe=FILE             the ELF file (default a.out)\n"
	"  -j, --section=NAME         addresses are offsets in this section\n"
	"  -a, --addresses            print the address before each answer\n"
	"  -f, --functions            print the function, too\n"
	"  -i, --inlines              print the callers of inlined functions, too\n"
	"  -C, --demangle[=STYLE]     demangle (auto, gnu-v3, rust, dlang, java, gnat, none)\n"
	"  -p, --pretty-print         print each answer on one line\n"
	"  -s, --basenames            print files without their directories\n"
	"  -r, --no-recurse-limit     demangle what is nested too deeply, too\n"
	"  -R, --recurse-limit        do not (default)\n"
	"  -b, --target=FORMAT        makes no difference: every ELF format is known\n"
	"  -h, --help                 print this help\n"
	"  -v, --version              print the version\n"
	"  @FILE                      read more options and addresses from FILE\n";

static const struct option options[] = {
	{ "addresses", no_argument, NULL, 'a' },
	{ "basenames", no_argument, NULL, 's' },
	{ "demangle", optional_argument, NULL, 'C' },
	{ "exe", required_argument, NULL, 'e' },
	{ "functions", no_argument, NULL, 'f' },
	{ "inlines", no_argument, NULL, 'i' },
	{ "pretty-print", no_argument, NULL, 'p' },
	{ "recurse-limit", no_argument, NULL, 'R' },
	{ "recursion-limit", no_argument, NULL, 'R' },
	{ "no-recurse-limit", no_argument, NULL, 'r' },
	{ "no-recursion-limit", no_argument, NULL, 'r' },
	{ "section", required_argument, NULL, 'j' },
	{ "target", required_argument, NULL, 'b' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'v' },
	{ NULL, 0, NULL, 0 },
};

static void parse_style(struct addr2line *a, const char *style)
{
	static const struct {
		const char *name;
		uint32_t mangling;
	} styles[] = {
		{ "auto", FATHOM_MANGLING_AUTO }, { "gnu-v3", FATHOM_MANGLING_CXX },
		{ "java", FATHOM_MANGLING_JAVA }, { "gnat", FATHOM_MANGLING_ADA },
		{ "dlang", FATHOM_MANGLING_D },   { "rust", FATHOM_MANGLING_RUST },
	};

	a->demangle = true;
	if (!style)
		return;
	for (size_t i = 0; i < sizeof styles / sizeof *styles; i++) {
		if (strcmp(style, styles[i].name) == 0) {
			a->names.mangling = styles[i].mangling;
			return;
		}
	}
	a->demangle = false;
	if (strcmp(style, "none") != 0) {
		fprintf(stderr, "%s: unknown demangling style `%s'\n", a->program, style);
		exit(EXIT_FAILED);
	}
}

/* Returns the switch that option @opt sets; NULL if it is not a switch. */
static bool *switch_of(struct addr2line *a, int opt)
{
	switch (opt) {
	case 'a':
		return &a->addresses;
	case 'f':
		return &a->functions;
	case 'i':
		return &a->inlines;
	case 'p':
		return &a->pretty;
	case 's':
		return &a->basenames;
	default:
		return NULL;
	}
}

static void take_option(struct addr2line *a, int opt)
{
	switch (opt) {
	case 'b':
		a->format = optarg;
		break;
	case 'C':
		parse_style(a, optarg);
		break;
	case 'e':
		a->file = optarg;
		break;
	case 'j':
		a->section_name = optarg;
		break;
	case 'r':
		a->names.flags |= FATHOM_DEMANGLE_DEEP;
		break;
	case 'R':
		a->names.flags &= ~(uint32_t)FATHOM_DEMANGLE_DEEP;
		break;
	case 'v':
	case 'V':
		printf("fathom addr2line %s, compatible with GNU addr2line 2.40\n",
		       fathom_version());
		exit(EXIT_SUCCESS);
	case 'h':
	case 'H':
		printf("Usage: %s%s", a->program, usage);
		exit(EXIT_SUCCESS);
	default:
		fprintf(stderr, "Usage: %s%s", a->program, usage);
		exit(EXIT_FAILED);
	}
}

/* Parses the options; the arguments from optind on are addresses. */
static void parse_options(struct addr2line *a, int argc, char **argv)
{
	int opt;

	while ((opt = getopt_long(argc, argv, "ab:Ce:rRsfHhij:pVv", options, NULL)) != -1) {
		bool *on = switch_of(a, opt);

		if (on)
			*on = true;
		else
			take_option(a, opt);
	}
}

/* Makes GNU's checks before opening a file; an empty file ends the run silently. */
static void check_file(const struct addr2line *a)
{
	struct stat st;

	if (stat(a->file, &st) != 0) {
		if (errno == ENOENT)
			fprintf(stderr, "%s: '%s': No such file\n", a->program, a->file);
		else
			fprintf(stderr, "%s: Warning: could not locate '%s'.  reason: %s\n",
				a->program, a->file, strerror(errno));
		exit(EXIT_FAILED);
	}
	if (!S_ISREG(st.st_mode)) {
		fprintf(stderr, "%s: Warning: '%s' is %s\n", a->program, a->file,
			S_ISDIR(st.st_mode) ? "a directory" : "not an ordinary file");
		exit(EXIT_FAILED);
	}
	if (st.st_size == 0)
		exit(EXIT_FAILED);
}

/* Returns whether @path is an archive, which has its own message. */
static bool is_archive(const char *path)
{
	char magic[8] = { 0 };
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	(void)!read(fd, magic, sizeof magic);
	(void)close(fd);
	return memcmp(magic, "!<arch>\n", sizeof magic) == 0 ||
	       memcmp(magic, "!<thin>\n", sizeof magic) == 0;
}

/*
 * Returns whether binutils may know a format of this name: the ELF and PE formats by their first
 * letters, the few others, and system names of configure scripts, such as x86_64-linux-gnu.
 */
static bool is_format(const char *name)
{
	static const char *const prefixes[] = { "elf32-", "elf64-", "pe-", "pei-" };
	static const char *const others[] = { "default", "binary",     "ihex",   "plugin",
					      "srec",    "symbolsrec", "tekhex", "verilog" };

	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (strcmp(name, others[i]) == 0)
			return true;
	return strstr(name, "-linux") != NULL;
}

/* Prints GNU's message for a file that was not opened, and exits. */
static _Noreturn void fail_open(const struct addr2line *a, const struct fathom_errinfo *info)
{
	/* Do not touch a file that is being written, or whose file system does not answer. */
	if (info->err == FATHOM_E_CHANGED || info->err == FATHOM_E_TIMEOUT)
		fail(a, a->file, info->what);
	check_file(a);
	if (a->format && !is_format(a->format))
		fail(a, a->file, "invalid bfd target");
	if (is_archive(a->file))
		fail(a, a->file, "cannot get addresses from archive");
	fail(a, a->file,
	     info->err == FATHOM_E_OS       ? strerror(info->os_errno)
	     : info->err == FATHOM_E_FORMAT ? "file format not recognized"
					    : info->what);
}

static void open_target(struct addr2line *a, struct fathom *session)
{
	struct fathom_errinfo info;

	if (fathom_target_open_file(session, a->file, NULL, &a->target, &info))
		fail_open(a, &info);
	if (a->format && !is_format(a->format))
		fail(a, a->file, "invalid bfd target");
	fathom_target_get_info(a->target, &a->info);
	if (a->info.elf_type == ET_CORE)
		fail(a, a->file, "file format not recognized");
	a->symbols.target = a->target;
}

/* Lists the loaded sections, or only the one that -j names. */
static void list_sections(struct addr2line *a)
{
	struct fathom_section_info s;
	size_t n = 0;
	bool named = false;

	while (!fathom_target_section(a->target, n, &s))
		n++;
	a->has_sections = n > 1;
	a->sections = must(calloc(n + 1, sizeof *a->sections));
	for (size_t i = 1; !named && !fathom_target_section(a->target, i, &s); i++) {
		named = a->section_name && strcmp(s.name, a->section_name) == 0;
		if ((s.flags & SHF_ALLOC) && (named || !a->section_name))
			a->sections[a->n_sections++] = (struct section){
				.start = named || a->info.is_relocatable ? 0 : s.address,
				.size = s.size,
				.address = s.address,
			};
	}
	if (a->section_name && !named) {
		fprintf(stderr, "%s: %s: cannot find section %s\n", a->program, a->file,
			a->section_name);
		exit(EXIT_FAILED);
	}
}

/*
 * Returns whether GNU takes @text as a symbol: it starts with no decimal digit and, without "+",
 * with no hex digit.
 */
static bool is_symbol(const char *text)
{
	const int upper = (unsigned char)*text & ~0x20;

	return *text && !is_digit(*text) && !(upper >= 'A' && upper <= 'F' && !strchr(text, '+'));
}

/* Parses "symbol" or "symbol+offset"; returns 0 if there is no such symbol. */
static uint64_t parse_symbol(struct addr2line *a, char *text)
{
	uint64_t offset = 0;
	uint64_t value;
	char *end = text;
	char *plus;

	while (*end && !is_space(*end) && *end != '+')
		end++;
	for (plus = end; is_space(*plus); plus++)
		;
	if (*plus == '+')
		offset = strtoull(plus + 1, NULL, 0);
	*end = '\0';
	return gnu_symbols_find(&a->symbols, &a->names, text, &value) ? value + offset : 0;
}

/* Adds one address; invalid text counts as 0. */
static void add_item(struct addr2line *a, char *text)
{
	uint64_t pc;

	while (is_space(*text))
		text++;
	pc = is_symbol(text) ? parse_symbol(a, text) : strtoull(text, NULL, 16);
	if (!a->info.is_64bit)
		pc = (uint32_t)pc;
	if (a->n == a->cap) {
		a->cap = a->cap ? 2 * a->cap : 64;
		a->items = must(realloc(a->items, a->cap * sizeof *a->items));
	}
	a->items[a->n++] = (struct item){ .pc = pc };
}

/* Finds the next address to look up for @item; returns false if no further section holds it. */
static bool next_address(const struct addr2line *a, struct item *item, uint64_t *ret)
{
	if (!a->has_sections) {
		*ret = item->pc;
		return item->section++ == 0;
	}
	while (item->section < a->n_sections) {
		const struct section *s = &a->sections[item->section++];

		if (item->pc < s->start || item->pc - s->start >= s->size)
			continue;
		*ret = s->address + (item->pc - s->start);
		return true;
	}
	return false;
}

/* Looks up all open items in the next section that holds them; returns false if there are none. */
static bool answer_round(struct addr2line *a, uint64_t *addresses, size_t *numbers)
{
	struct fathom_answers *answers;
	struct fathom_errinfo info;
	size_t n = 0;

	for (size_t i = 0; i < a->n; i++) {
		if (!a->items[i].answers && next_address(a, &a->items[i], &addresses[n]))
			numbers[n++] = i;
	}
	if (!n)
		return false;
	if (fathom_symbolize(a->target, &a->symbolize, addresses, NULL, n, &answers, &info))
		fail(a, a->file, info.what);
	a->rounds = must(realloc(a->rounds, (a->n_rounds + 1) * sizeof *a->rounds));
	a->rounds[a->n_rounds++] = answers;
	for (size_t i = 0; i < n; i++) {
		const struct fathom_answer *answer = fathom_answers_get(answers, i);

		if (!answer->frame && !answer->symbol)
			continue;
		a->items[numbers[i]].answers = answers;
		a->items[numbers[i]].index = i;
	}
	return true;
}

static void print_address(struct addr2line *a, uint64_t pc)
{
	const int digits = a->info.is_64bit ? 16 : 8;

	out_str(&a->out, "0x");
	for (int i = digits - 1; i >= 0; i--)
		out_char(&a->out, "0123456789abcdef"[pc >> 4 * i & 15]);
	out_str(&a->out, a->pretty ? ": " : "\n");
}

/* Returns the linkage name in the debug information, or NULL. */
static const char *linked_name(const struct fathom_compat_name *f)
{
	if (f->linkage_name)
		return f->linkage_name;
	return f->flags & FATHOM_NAME_UNMANGLED ? f->plain_name : NULL;
}

/* Returns any name. GNU never looks up callers and inlined functions in the symbol table. */
static const char *any_name(const struct fathom_compat_name *f)
{
	return f->linkage_name ? f->linkage_name : f->plain_name;
}

/* Returns the name to show for @frame, which is NULL if only the symbol table knows the address. */
static const char *name_of(const struct item *item, const struct fathom_frame *frame,
			   bool innermost)
{
	struct fathom_compat_name f = { .name = NULL };
	struct fathom_compat_name symbol;
	const char *name;

	if (frame)
		(void)fathom_compat_frame_name(frame, &f);
	name = linked_name(&f);
	if (name)
		return name;
	if (!innermost || (f.name && frame->outer))
		return any_name(&f);
	return any_name(fathom_compat_symbol_name(item->answers, item->index, &symbol) ? &symbol
										       : &f);
}

static void print_function(struct addr2line *a, const char *name)
{
	if (!name || !*name)
		name = "??";
	else if (a->demangle)
		name = gnu_names_get(&a->names, name);
	out_str(&a->out, name);
	out_str(&a->out, a->pretty ? " at " : "\n");
}

static void print_place(struct addr2line *a, const char *path, uint32_t line,
			uint32_t discriminator)
{
	path = path ? path : "??";

	out_str(&a->out, a->basenames ? last_part(path) : path);
	if (!line) {
		out_str(&a->out, ":?\n");
		return;
	}
	out_char(&a->out, ':');
	out_dec(&a->out, line);
	if (discriminator) {
		out_str(&a->out, " (discriminator ");
		out_dec(&a->out, discriminator);
		out_char(&a->out, ')');
	}
	out_char(&a->out, '\n');
}

static void print_unknown(struct addr2line *a)
{
	if (a->functions)
		out_str(&a->out, a->pretty ? "?? " : "??\n");
	out_str(&a->out, "??:0\n");
}

static void print_item(struct addr2line *a, const struct item *item)
{
	const struct fathom_frame *innermost;
	const struct fathom_frame *frame;
	const char *file;

	if (a->addresses)
		print_address(a, item->pc);
	if (!item->answers) {
		print_unknown(a);
		return;
	}
	innermost = fathom_answers_get(item->answers, item->index)->frame;
	frame = innermost;
	do {
		if (a->functions)
			print_function(a, name_of(item, frame, frame == innermost));
		file = frame ? frame->file : NULL;
		if (!file && frame == innermost)
			file = fathom_compat_symbol_file(item->answers, item->index);
		/* GNU shows the innermost discriminator beside the callers' lines, too. */
		print_place(a, file, frame ? frame->line : 0,
			    innermost ? innermost->discriminator : 0);
		frame = frame && a->inlines ? frame->outer : NULL;
		if (frame && a->pretty)
			out_str(&a->out, " (inlined by) ");
	} while (frame);
}

/* Answers all items in their order and flushes. */
static void answer_items(struct addr2line *a)
{
	uint64_t *addresses = must(malloc((a->n + 1) * sizeof *addresses));
	size_t *numbers = must(malloc((a->n + 1) * sizeof *numbers));
	struct fathom_errinfo info;

	while (answer_round(a, addresses, numbers))
		;
	if (fathom_target_check(a->target, &info))
		fail(a, a->file, info.what);
	for (size_t i = 0; i < a->n && !a->out.failed; i++)
		print_item(a, &a->items[i]);
	out_flush(&a->out);
	common_print_notes(a->target, &a->next_note);
	for (size_t i = 0; i < a->n_rounds; i++)
		fathom_answers_free(a->rounds[i]);
	free(addresses);
	free(numbers);
	a->n_rounds = 0;
	a->n = 0;
}

/* GNU's line buffer, including the end: a longer line counts as several. */
#define LINE_SIZE 100

static void add_line(struct addr2line *a, const char *line, size_t size)
{
	char piece[LINE_SIZE];

	while (size) {
		const size_t n = size < LINE_SIZE - 1 ? size : LINE_SIZE - 1;

		memcpy(piece, line, n);
		piece[n] = '\0';
		add_item(a, piece);
		line += n;
		size -= n;
	}
}

static void answer_stream(struct addr2line *a)
{
	struct input_stream stream;
	const char *line;
	size_t size;

	input_stream_init(&stream, STDIN_FILENO, input_stream_share(0));
	while (!a->out.failed && input_stream_fill(&stream)) {
		if (input_stream_is_whole_file(&stream))
			a->symbolize.flags |= FATHOM_ONE_SHOT;
		while (input_stream_line(&stream, &line, &size)) {
			/* The last line may lack a newline. */
			const bool has_end = line + size < stream.buf + stream.n;

			add_line(a, line, size + has_end);
		}
		answer_items(a);
	}
	input_stream_deinit(&stream);
}

static void open_session(struct addr2line *a, struct fathom **ret)
{
	const struct fathom_compat_options rules = { .size = sizeof rules,
						     .flags = FATHOM_GNU_PATHS };
	const struct fathom_options wanted = { .size = sizeof wanted, .compat = &rules };
	struct fathom_errinfo info;

	if (fault_create(&wanted, ret, &info))
		fail(a, a->file, info.what);
	open_target(a, *ret);
	list_sections(a);
}

int verb_addr2line(int argc, char **argv)
{
	struct addr2line a = {
		.program = argv[0],
		.file = "a.out",
		.rules = { .size = sizeof a.rules,
			   .flags = FATHOM_DWARF_NAMES | FATHOM_VARIABLES,
			   .alias = FATHOM_ALIAS_GNU },
		.symbolize = { .size = sizeof a.symbolize,
			       .flags = FATHOM_NO_DEMANGLE,
			       .compat = &a.rules },
	};
	struct words words = { 0 };
	struct fathom *session;

	words_expand(&words, argc, argv);
	argc = (int)words.n;
	argv = words.word;
	parse_options(&a, argc, argv);
	open_session(&a, &session);
	out_init(&a.out);
	for (int i = optind; i < argc; i++)
		add_item(&a, argv[i]);
	if (optind < argc) {
		a.symbolize.flags |= FATHOM_ONE_SHOT;
		answer_items(&a);
	} else {
		answer_stream(&a);
	}
	out_deinit(&a.out);
	gnu_names_deinit(&a.names);
	gnu_symbols_deinit(&a.symbols);
	free(a.sections);
	free(a.items);
	free(a.rounds);
	fathom_target_release(a.target);
	fault_destroy(session);
	words_deinit(&words);
	return a.out.failed ? EXIT_FAILED : EXIT_SUCCESS;
}
