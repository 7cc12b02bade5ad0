/* SPDX-License-Identifier: MIT */
#include "cli/compat/strace/command_line.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common.h"

enum {
	WORD_HELP = 256,
	WORD_VERSION,
	WORD_SECCOMP,
	WORD_METHOD,
	WORD_DECODE_FDS,
	WORD_QUIET,
	WORD_TIPS,
	WORD_EXPRESSION
};

/* All that can be told of descriptors. */
#define ALL_FILES                                                                              \
	(uint32_t)(FATHOM_SYSCALLS_FILES | FATHOM_SYSCALLS_SOCKETS | FATHOM_SYSCALLS_DEVICES | \
		   FATHOM_SYSCALLS_PIDFDS)

static const char usage[] =
	"Usage: fathom strace [OPTION]... PROGRAM [ARGUMENT]...\n"
	"       fathom strace [OPTION]... -p PID...\n"
	"Print the system calls of PROGRAM as strace 6.1 does.\n"
	"\n"
	"  -f                 threads and children, too; -ff: with -o, a file each\n"
	"  -o FILE            write to FILE, not to standard error\n"
	"  -p PID             trace this process (repeatable)\n"
	"  -e trace=SET       these calls only: names, %class, /regex, ! for all others\n"
	"  -e status=SET      of these endings only: successful, failed, unfinished\n"
	"  -e signal=SET      tell of these signals only\n"
	"  -e inject=SET:...  error=, retval=, signal=, delay_enter=, delay_exit=, when=\n"
	"  --seccomp-bpf      have the program stop at the calls of -e trace= only\n"
	"  --method=WORD      capture calls by ptrace, or rewrite where it is possible\n"
	"  -P PATH            only calls that name PATH or a descriptor of it\n"
	"  -z, -Z             successful calls only, failed ones only\n"
	"  -s N               print N bytes of strings (32)\n"
	"  -x, -xx            other strings than ASCII, or all, in hexadecimal\n"
	"  -v                 print structures whole\n"
	"  -e abbrev=SET      structures of these calls short, those of others whole\n"
	"  -e verbose=SET     of these calls only, and of others addresses\n"
	"  -e raw=SET         print arguments of these calls as numbers\n"
	"  -e read=SET, -e write=SET\n"
	"                     print all bytes read from these descriptors, or written\n"
	"  -X FORMAT          constants as raw, abbrev or verbose\n"
	"  -y, -yy            paths of descriptors; also addresses of sockets, numbers\n"
	"  -e decode-fds=SET  of these alone: path, socket, dev, pidfd\n"
	"  -a COLUMN          align results in COLUMN (40)\n"
	"  -t, -tt, -ttt      print the time; with microseconds; since 1970\n"
	"  -r, -T             print the time since the last line; how long calls took\n"
	"  -k                 print the stack of each call, innermost frame first\n"
	"  -i, -n             print the instruction pointer; the number of the call\n"
	"  -c, -C             print a summary instead of lines; beside them\n"
	"  -w, -S ORDER       by the clock; sorted by a column, or by nothing\n"
	"  -U COLUMNS         time-percent, total-time, min-time, max-time, avg-time,\n"
	"                     calls, errors, name\n"
	"  -q, -qq, -qqq      less about processes; about their ends; about paths\n"
	"  -e quiet=SET       nothing about these: attach, exit, path-resolution\n"
	"  -u USER            run PROGRAM as USER; for root\n"
	"  -E VAR[=VALUE]     set or remove a variable of the environment\n"
	"  -h, -V             print this help; the version\n"
	"\n"
	"Exit status: that of PROGRAM, or its signal; 1 for a wrong command line.\n";

static _Noreturn void fail(const char *what, const char *why)
{
	complain(what, why, "see 'fathom strace -h'");
	exit(1);
}

static void take_pid(struct strace_options *o, const char *text)
{
	o->pids = must(realloc(o->pids, (o->n_pids + 1) * sizeof *o->pids));
	o->pids[o->n_pids++] = (int32_t)parse_count("-p", text, INT32_MAX);
}

static void take_path(struct strace_options *o, const char *path)
{
	o->paths = must(realloc(o->paths, (o->n_paths + 1) * sizeof *o->paths));
	o->paths[o->n_paths++] = path;
}

/* A word of a set, and its bits; the first of a table is "all". */
struct word {
	const char *word; /* NULL: the end of the table */
	uint32_t bits;
};

/* Returns the bits of the words in @text, or of all others after "!"; fails if @wrong. */
static uint32_t take_words(const char *text, const struct word *words, const char *wrong)
{
	const bool is_inverted = *text == '!';
	char *copy = must(strdup(text + is_inverted));
	char *rest = copy;
	const char *word;
	uint32_t bits = 0;

	while ((word = strsep(&rest, ","))) {
		const struct word *w = words;

		while (w->word && strcmp(word, w->word) != 0)
			w++;
		if (!w->word)
			fail(word, wrong);
		bits |= w->bits;
	}
	free(copy);
	return is_inverted ? words->bits & ~bits : bits;
}

static void take_status(struct strace_options *o, const char *text)
{
	static const struct word words[] = {
		{ "all", STRACE_ALL_STATUSES },      { "none", 0 },
		{ "successful", STRACE_SUCCESSFUL }, { "failed", STRACE_FAILED },
		{ "unfinished", STRACE_UNFINISHED }, { NULL, 0 },
	};

	o->statuses = take_words(text, words, "is no status that is known");
}

/* Returns the number of the signal @word, with or without SIG, or a number; 0: none. */
static int signal_of(const char *word)
{
	char *end;
	const long number = strtol(word, &end, 10);

	if (*word && !*end && number > 0 && number < NSIG)
		return (int)number;
	for (int i = 1; i < NSIG; i++) {
		const char *name = fathom_signal_name(i);

		if (name && (!strcasecmp(word, name) ||
			     (!strncmp(name, "SIG", 3) && !strcasecmp(word, name + 3))))
			return i;
	}
	return 0;
}

static void take_signals(struct strace_options *o, const char *text)
{
	const bool is_inverted = *text == '!';
	char *copy = must(strdup(text + is_inverted));
	char *rest = copy;
	const char *word;

	o->signals = 0;
	while ((word = strsep(&rest, ","))) {
		const int number = signal_of(word);

		if (!strcmp(word, "all"))
			o->signals = UINT64_MAX;
		else if (number)
			o->signals |= UINT64_C(1) << (number - 1);
		else if (strcmp(word, "none") != 0)
			fail(word, "is no signal");
	}
	free(copy);
	if (is_inverted)
		o->signals = ~o->signals;
}

static void add_injection(struct strace_options *o, const char *text)
{
	char *own = must(strdup(text));

	o->inject = must(realloc(o->inject, (o->n_inject + 1) * sizeof *o->inject));
	o->inject[o->n_inject++] = own;
}

/* Adds the injection of an error, which is ENOSYS unless @text says another one. */
static void add_fault(struct strace_options *o, const char *text)
{
	const size_t n = strcspn(text, ":");
	char *whole = must(malloc(strlen(text) + sizeof ":error=ENOSYS"));

	if (strstr(text, ":error="))
		(void)strcpy(whole, text);
	else
		(void)sprintf(whole, "%.*s:error=ENOSYS%s", (int)n, text, text + n);
	add_injection(o, whole);
	free(whole);
}

static void take_fds(struct strace_options *o, const char *text)
{
	static const struct word words[] = {
		{ "all", ALL_FILES },
		{ "none", 0 },
		{ "path", FATHOM_SYSCALLS_FILES },
		{ "socket", FATHOM_SYSCALLS_SOCKETS },
		{ "dev", FATHOM_SYSCALLS_DEVICES },
		{ "pidfd", FATHOM_SYSCALLS_PIDFDS },
		{ NULL, 0 },
	};

	if (!o->decodes_fds && o->calls.flags & FATHOM_SYSCALLS_FILES)
		fail("-y", "does not go together with -e decode-fds=");
	o->decodes_fds = true;
	o->calls.flags &= ~ALL_FILES;
	o->calls.flags |= take_words(text, words, "is nothing that descriptors can be");
}

static void take_quiet(struct strace_options *o, const char *text)
{
	static const struct word words[] = {
		{ "all", STRACE_QUIET_ALL },
		{ "none", 0 },
		{ "attach", STRACE_QUIET_ATTACH },
		{ "exit", STRACE_QUIET_EXIT },
		{ "path-resolution", STRACE_QUIET_PATHS },
		{ "path-resolve", STRACE_QUIET_PATHS },
		{ "personality", 0 },
		{ "thread-execve", 0 },
		{ "superseded", 0 },
		{ NULL, 0 },
	};

	if (o->n_quiet)
		fail("-q", "does not go together with -e quiet=");
	o->has_quiet = true;
	o->quiet = take_words(text, words, "is nothing that can be left unsaid");
}

/* Takes -q, of which each says less. */
static void take_q(struct strace_options *o)
{
	if (o->has_quiet)
		fail("-q", "does not go together with -e quiet=");
	o->n_quiet++;
	o->quiet = STRACE_QUIET_ATTACH;
	if (o->n_quiet > 1)
		o->quiet |= STRACE_QUIET_EXIT;
	if (o->n_quiet > 2)
		o->quiet = STRACE_QUIET_ALL;
}

static void take_set(struct strace_options *o, const char *text)
{
	o->set = text;
}

static void take_abbrev(struct strace_options *o, const char *text)
{
	o->calls.abbrev = text;
}

static void take_verbose(struct strace_options *o, const char *text)
{
	o->calls.verbose = text;
}

static void take_raw(struct strace_options *o, const char *text)
{
	o->calls.raw = text;
}

static void take_reads(struct strace_options *o, const char *text)
{
	o->calls.dump_reads = text;
}

static void take_writes(struct strace_options *o, const char *text)
{
	o->calls.dump_writes = text;
}

/* Expressions of -e by their names; most of the long ones are options, too. */
static const struct expression {
	const char *name;
	void (*take)(struct strace_options *o, const char *text); /* NULL: it is not known */
} expressions[] = {
	{ "trace", take_set },
	{ "t", take_set },
	{ "signal", take_signals },
	{ "signals", take_signals },
	{ "s", take_signals },
	{ "status", take_status },
	{ "abbrev", take_abbrev },
	{ "a", take_abbrev },
	{ "verbose", take_verbose },
	{ "v", take_verbose },
	{ "raw", take_raw },
	{ "x", take_raw },
	{ "read", take_reads },
	{ "reads", take_reads },
	{ "r", take_reads },
	{ "write", take_writes },
	{ "writes", take_writes },
	{ "w", take_writes },
	{ "quiet", take_quiet },
	{ "silent", take_quiet },
	{ "silence", take_quiet },
	{ "q", take_quiet },
	{ "decode-fds", take_fds },
	{ "decode-fd", take_fds },
	{ "inject", add_injection },
	{ "fault", add_fault },
	{ "decode-pids", NULL },
	{ "decode-pid", NULL },
	{ "kvm", NULL },
};

/* Takes the expression @name; false if there is none of that name. */
static bool take_named(struct strace_options *o, const char *name, size_t size, const char *value)
{
	for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++) {
		const struct expression *e = &expressions[i];

		if (strlen(e->name) != size || strncmp(name, e->name, size) != 0)
			continue;
		if (!e->take)
			fail(e->name, "is an expression of strace that fathom does not know yet");
		e->take(o, value);
		return true;
	}
	return false;
}

static void take_expression(struct strace_options *o, const char *text)
{
	const size_t size = strcspn(text, "=");

	if (!text[size] || !take_named(o, text, size, text + size + 1))
		o->set = text;
}

static void take_constants(struct strace_options *o, const char *word)
{
	o->calls.flags &= ~(uint32_t)(FATHOM_SYSCALLS_RAW | FATHOM_SYSCALLS_BOTH);
	if (!strcmp(word, "raw"))
		o->calls.flags |= FATHOM_SYSCALLS_RAW;
	else if (!strcmp(word, "verbose"))
		o->calls.flags |= FATHOM_SYSCALLS_BOTH;
	else if (strcmp(word, "abbrev") != 0)
		fail(word, "is not raw, abbrev or verbose");
}

/* Takes an option of what a line has; false if it is another one. */
static bool take_line_option(struct strace_options *o, int opt)
{
	switch (opt) {
	case 'a':
		o->column = parse_count("-a", optarg, 1000);
		return true;
	case 'i':
		o->has_pc = true;
		return true;
	case 'k':
		o->calls.flags |= FATHOM_SYSCALLS_STACKS;
		return true;
	case 'n':
		o->has_numbers = true;
		return true;
	case 'r':
		o->is_relative = true;
		return true;
	case 's':
		o->calls.string_limit =
			strcmp(optarg, "0") ? parse_count("-s", optarg, 1u << 20) : 0;
		return true;
	case 't':
		if (o->clock < STRACE_SINCE_1970)
			o->clock++;
		return true;
	case 'T':
		o->has_durations = true;
		return true;
	case 'v':
		o->calls.flags |= FATHOM_SYSCALLS_VERBOSE;
		o->calls.abbrev = NULL;
		return true;
	case 'x':
		o->calls.flags |= o->calls.flags & FATHOM_SYSCALLS_HEX ? FATHOM_SYSCALLS_ALL_HEX
								       : FATHOM_SYSCALLS_HEX;
		return true;
	case 'X':
		take_constants(o, optarg);
		return true;
	case 'y':
		if (o->decodes_fds)
			fail("-y", "does not go together with -e decode-fds=");
		o->calls.flags |=
			o->calls.flags & FATHOM_SYSCALLS_FILES ? ALL_FILES : FATHOM_SYSCALLS_FILES;
		return true;
	default:
		return false;
	}
}

/* Returns the capture method that is called @word. */
static uint32_t method_of(const char *word)
{
	if (!strcmp(word, "dispatch"))
		fail("--method", "is dispatch, which fathom trace has");
	if (!strcmp(word, "rewrite"))
		return FATHOM_SYSCALL_BY_REWRITING;
	if (strcmp(word, "ptrace") != 0)
		fail("--method", "is not ptrace or rewrite");
	return FATHOM_SYSCALL_BY_PTRACE;
}

static void take_option(struct strace_options *o, int opt)
{
	switch (opt) {
	case 'c':
	case 'C':
		o->counts = true;
		o->lists = opt == 'C';
		break;
	case 'e':
		take_expression(o, optarg);
		break;
	case WORD_SECCOMP:
		o->calls.flags |= FATHOM_SYSCALLS_FILTER;
		break;
	case WORD_METHOD:
		o->calls.method = method_of(optarg);
		break;
	case WORD_TIPS:
		fail("--tips", "is not supported");
	case WORD_QUIET:
		if (optarg)
			take_quiet(o, optarg);
		else
			take_q(o);
		break;
	case WORD_DECODE_FDS:
		take_fds(o, optarg ? optarg : "path");
		break;
	case 'E':
		o->environment = must(
			realloc(o->environment, (o->n_environment + 1) * sizeof *o->environment));
		o->environment[o->n_environment++] = optarg;
		break;
	case 'f':
		o->is_split = o->follows;
		o->follows = true;
		break;
	case 'o':
		if (*optarg == '|' || *optarg == '!')
			fail(optarg, "-o does not write to programs");
		o->output = optarg;
		break;
	case 'p':
		take_pid(o, optarg);
		break;
	case 'P':
		take_path(o, optarg);
		break;
	case 'q':
		take_q(o);
		break;
	case 'S':
		o->order = optarg;
		break;
	case 'u':
		o->user = optarg;
		break;
	case 'U':
		o->columns = optarg;
		break;
	case 'w':
		o->by_wall_clock = true;
		break;
	case 'z':
		o->statuses = STRACE_SUCCESSFUL;
		break;
	case 'Z':
		o->statuses = STRACE_FAILED;
		break;
	case 'V':
	case WORD_VERSION:
		(void)printf("fathom %s, as strace 6.1\n", fathom_version());
		exit(0);
	case 'h':
	case WORD_HELP:
		(void)fputs(usage, stdout);
		exit(0);
	default:
		exit(1);
	}
}

/* Says which paths of -P are others without symbolic links: calls that name these count, too. */
static void tell_resolved(const struct strace_options *o)
{
	for (size_t i = 0; !(o->quiet & STRACE_QUIET_PATHS) && i < o->n_paths; i++) {
		char *resolved = realpath(o->paths[i], NULL);

		if (resolved && strcmp(resolved, o->paths[i]) != 0)
			(void)fprintf(stderr,
				      "fathom strace: Requested path \"%s\" resolved into \"%s\"\n",
				      o->paths[i], resolved);
		free(resolved);
	}
}

void strace_options_read(struct strace_options *o, int argc, char **argv)
{
	static const struct option words[] = {
		{ "help", no_argument, NULL, WORD_HELP },
		{ "version", no_argument, NULL, WORD_VERSION },
		{ "output", required_argument, NULL, 'o' },
		{ "follow-forks", no_argument, NULL, 'f' },
		{ "attach", required_argument, NULL, 'p' },
		{ "trace", required_argument, NULL, WORD_EXPRESSION },
		{ "trace-path", required_argument, NULL, 'P' },
		{ "signal", required_argument, NULL, WORD_EXPRESSION },
		{ "status", required_argument, NULL, WORD_EXPRESSION },
		{ "inject", required_argument, NULL, WORD_EXPRESSION },
		{ "fault", required_argument, NULL, WORD_EXPRESSION },
		{ "abbrev", required_argument, NULL, WORD_EXPRESSION },
		{ "verbose", required_argument, NULL, WORD_EXPRESSION },
		{ "raw", required_argument, NULL, WORD_EXPRESSION },
		{ "read", required_argument, NULL, WORD_EXPRESSION },
		{ "write", required_argument, NULL, WORD_EXPRESSION },
		{ "seccomp-bpf", no_argument, NULL, WORD_SECCOMP },
		{ "method", required_argument, NULL, WORD_METHOD },
		/* Its older name. */
		{ "way", required_argument, NULL, WORD_METHOD },
		{ "string-limit", required_argument, NULL, 's' },
		{ "summary-only", no_argument, NULL, 'c' },
		{ "summary", no_argument, NULL, 'C' },
		{ "summary-wall-clock", no_argument, NULL, 'w' },
		{ "summary-sort-by", required_argument, NULL, 'S' },
		{ "summary-columns", required_argument, NULL, 'U' },
		{ "syscall-times", no_argument, NULL, 'T' },
		{ "relative-timestamps", no_argument, NULL, 'r' },
		{ "instruction-pointer", no_argument, NULL, 'i' },
		{ "stack-traces", no_argument, NULL, 'k' },
		{ "syscall-number", no_argument, NULL, 'n' },
		{ "no-abbrev", no_argument, NULL, 'v' },
		{ "decode-fds", optional_argument, NULL, WORD_DECODE_FDS },
		{ "columns", required_argument, NULL, 'a' },
		{ "successful-only", no_argument, NULL, 'z' },
		{ "failed-only", no_argument, NULL, 'Z' },
		{ "user", required_argument, NULL, 'u' },
		{ "tips", optional_argument, NULL, WORD_TIPS },
		{ "env", required_argument, NULL, 'E' },
		{ "quiet", optional_argument, NULL, WORD_QUIET },
		{ "silent", optional_argument, NULL, WORD_QUIET },
		{ "silence", optional_argument, NULL, WORD_QUIET },
		{ NULL, 0, NULL, 0 },
	};
	int word = 0;
	int opt;

	*o = (struct strace_options){ .calls = { .string_limit = FATHOM_SYSCALLS_STRING_LIMIT,
						 .flags = FATHOM_SYSCALLS_ONLY |
							  FATHOM_SYSCALLS_STRACE },
				      .lists = true,
				      .column = 40,
				      .statuses = STRACE_ALL_STATUSES,
				      .signals = UINT64_MAX };
	optind = 1;
	while ((opt = getopt_long(argc, argv, "+a:cCe:E:fhikno:p:P:qrs:S:tTu:U:vVwxX:yzZ", words,
				  &word)) != -1)
		if (opt == WORD_EXPRESSION)
			(void)take_named(o, words[word].name, strlen(words[word].name), optarg);
		else if (!take_line_option(o, opt))
			take_option(o, opt);
	o->program = optind < argc ? argv + optind : NULL;
	if (!o->program == !o->n_pids)
		fail("fathom strace", o->program ? "takes either a PROGRAM or -p PID"
						 : "neither a PROGRAM nor -p PID is given");
	if (o->user && (!o->program || geteuid()))
		fail("-u", o->program ? "is for root" : "is for a PROGRAM");
	if (o->columns && !o->counts)
		fail("-U", "is for summaries: -c or -C");
	if (o->is_split && !o->output)
		o->is_split = false;
	/* As strace: beside a file of its own, a program is not told of processes. */
	if (o->output && o->program && !o->has_quiet && !o->n_quiet)
		o->quiet = STRACE_QUIET_ATTACH;
	tell_resolved(o);
}

void strace_options_deinit(struct strace_options *o)
{
	free(o->pids);
	free(o->paths);
	free(o->environment);
	for (size_t i = 0; i < o->n_inject; i++)
		free((char *)(uintptr_t)o->inject[i]);
	free(o->inject);
}
