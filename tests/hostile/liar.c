/* SPDX-License-Identifier: MIT */
/*
 * liar TARGET DAMAGED: asks TARGET, a file or the number of a process, what it was asked when
 * DAMAGED, which it reads, was whole, once for each lie that is told in DAMAGED. Reads lines:
 *
 *	ask ADDRESS		a question (hexadecimal, as all numbers here)
 *	asm SECTION OFFSET	a question, in a section of a relocatable file
 *	cache DIRECTORY		indexes are read from there; else none are
 *	alias START NAME	a symbol of the whole file
 *	write KIND AT BYTES LABEL	a lie: BYTES (two digits each) at AT
 *	fill KIND AT SIZE BYTE LABEL	SIZE times the same byte, or noise where BYTE is "noise"
 *	cut KIND SIZE LABEL		the file ends there
 *
 * KIND is "s" if the lie can be told from truth, so that all answers must be true (truth.h), else
 * "l": then nothing may crash, take long or grow. Each lie has CPU_SECONDS. In builds without
 * sanitizers the address space may grow by LIMIT bytes and four times the file's size. An error
 * that calls something damaged says of which file, and where in it.
 *
 * Prints what is wrong as comments, then one line of counts; with -v also each complaint and each
 * error of the library once. The file is whole again at the end. The status is 1 when anything was
 * wrong.
 */
#include <ctype.h>
#include <fathom/fathom.h>
#include <stdbool.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "alloc.h"
#include "truth.h"

#define MAX_QUESTIONS 64
#define MAX_ALIASES   200000
#define MAX_LIE       4096
#define CPU_SECONDS   10
#define WALL_SECONDS  600
#define BUDGET        ((uint64_t)64 << 20)
#define LIMIT         ((uint64_t)256 << 20)
#define SHOWN         6

struct alias {
	uint64_t start;
	char *name;
};

struct liar {
	const char *target;
	const char *path;
	int fd;
	uint8_t *whole; /* NULL: memory of a process, of which only what is lied about is kept */
	size_t size;
	struct fathom_options options;
	uint64_t ask[MAX_QUESTIONS];
	char *section[MAX_QUESTIONS];
	size_t n;
	struct truth truth[MAX_QUESTIONS];
	struct alias *aliases;
	size_t n_aliases;
	size_t named; /* answers of the whole file with a name */
	size_t tried;
	size_t less; /* lies by which anything was lost */
	size_t wrong;
	int learned;
	int verbose;
};

/* What a handler prints: the lie that is being told. */
static char current[512];

static void on_signal(int signo)
{
	const char *what = signo == SIGPROF || signo == SIGALRM ? "# no end of " : "# a crash by ";

	if (write(STDOUT_FILENO, what, strlen(what)) < 0 ||
	    write(STDOUT_FILENO, current, strlen(current)) < 0 || write(STDOUT_FILENO, "\n", 1) < 0)
		_exit(98);
	_exit(99);
}

static void start_clock(unsigned seconds)
{
	const struct itimerval cpu = { .it_value.tv_sec = seconds };

	(void)setitimer(ITIMER_PROF, &cpu, NULL);
	(void)alarm(seconds ? WALL_SECONDS : 0);
}

/* Whether the symbol is one of the whole file. */
static int is_alias(const void *data, uint64_t start, const char *name)
{
	const struct liar *l = data;

	for (size_t i = 0; i < l->n_aliases; i++)
		if (l->aliases[i].start == start && strcmp(l->aliases[i].name, name) == 0)
			return 1;
	return 0;
}

static void complain(struct liar *l, const char *what)
{
	if (l->wrong++ < SHOWN)
		printf("# %s, of %s: %s\n", what, l->target, current);
}

/* Checks an error or note: what is damaged is named, and the place is inside of it. */
static void check_error(struct liar *l, const struct fathom_errinfo *info)
{
	char text[1024];
	int where;

	(void)fathom_errinfo_format(info, text, sizeof text);
	if (l->verbose)
		printf("# said: %d %s\n", info->err, text);
	if (info->err == FATHOM_E_MEMORY)
		complain(l, "memory ran out");
	if (info->err != FATHOM_E_CORRUPT && info->err != FATHOM_E_LIMIT)
		return;
	where = info->section[0] || info->offset || info->cause == FATHOM_CAUSE_BUDGET ||
		strcmp(info->what, "compressed data is damaged") == 0;
	if (!info->what || !info->what[0] || !info->file[0]) {
		complain(l, "an error without a file");
		printf("# it says: %s\n", text);
	} else if (!where && l->whole && strcmp(info->file, l->path) == 0) {
		complain(l, "an error that does not say where");
		printf("# it says: %s\n", text);
	} else if (!info->section[0] && l->whole && strcmp(info->file, l->path) == 0 &&
		   info->offset > l->size) {
		complain(l, "an error at a place behind the file's end");
		printf("# it says: %s\n", text);
	}
}

static void check_notes(struct liar *l, const struct fathom_target *target)
{
	const struct fathom_errinfo *note;

	for (size_t i = 0; (note = fathom_target_note(target, i)); i++)
		check_error(l, note);
}

static void compare(struct liar *l, const struct fathom_answers *answers, int strict)
{
	int less = 0;

	for (size_t i = 0; i < l->n; i++) {
		struct truth said;
		const char *wrong;

		truth_read(&said, answers, i);
		wrong = strict ? truth_wrong(&l->truth[i], &said, is_alias, l) : NULL;
		less |= !truth_equal(&l->truth[i], &said);
		if (wrong) {
			complain(l, wrong);
			if (l->wrong <= SHOWN) {
				printf("# %#llx: ", (unsigned long long)l->ask[i]);
				truth_print(&said);
				printf("; not ");
				truth_print(&l->truth[i]);
				printf("\n");
			}
		}
		truth_deinit(&said);
	}
	l->less += less != 0;
}

static fathom_err open_target(const struct liar *l, struct fathom *session,
			      struct fathom_target **ret, struct fathom_errinfo *reterr)
{
	return isdigit((unsigned char)l->target[0])
		       ? fathom_target_open_process(session, atoi(l->target), NULL, ret, reterr)
		       : fathom_target_open_file(session, l->target, NULL, ret, reterr);
}

/* The address of each question; where its section is gone, one that nothing has. */
static void find_addresses(const struct liar *l, const struct fathom_target *target,
			   uint64_t to[MAX_QUESTIONS])
{
	for (size_t i = 0; i < l->n; i++) {
		to[i] = l->ask[i];
		if (l->section[i] &&
		    fathom_target_section_address(target, l->section[i], l->ask[i], &to[i]))
			to[i] = UINT64_MAX;
	}
}

/*
 * Asks the target as it is now, with @flags of struct fathom_compat_symbolize. Returns its answers,
 * or NULL; all errors have been checked.
 */
static struct fathom_answers *ask_once(struct liar *l, struct fathom *session, uint32_t flags)
{
	const struct fathom_compat_symbolize rules = { .size = sizeof rules, .flags = flags };
	const struct fathom_symbolize_options options = { .size = sizeof options,
							  .compat = &rules };
	struct fathom_answers *answers = NULL;
	struct fathom_target *target;
	struct fathom_errinfo info;
	uint64_t addresses[MAX_QUESTIONS];

	if (open_target(l, session, &target, &info)) {
		check_error(l, &info);
		return NULL;
	}
	find_addresses(l, target, addresses);
	if (fathom_symbolize(target, &options, addresses, NULL, l->n, &answers, &info)) {
		check_error(l, &info);
		answers = NULL;
	}
	check_notes(l, target);
	fathom_target_release(target);
	return answers;
}

static struct fathom *create(const struct liar *l)
{
	struct fathom *session;

	if (fathom_create(&l->options, &session, NULL))
		abort();
	return session;
}

static void tell_lie(struct liar *l, int strict)
{
	struct fathom *session = create(l);
	struct fathom_answers *answers;

	l->tried++;
	start_clock(CPU_SECONDS);
	answers = ask_once(l, session, 0);
	start_clock(0);
	if (answers)
		compare(l, answers, strict);
	else
		l->less++;
	fathom_answers_free(answers);
	fathom_destroy(session);
}

static void put(const struct liar *l, const uint8_t *bytes, size_t size, uint64_t at)
{
	if (pwrite(l->fd, bytes, size, (off_t)at) != (ssize_t)size)
		abort();
}

static void lie_bytes(struct liar *l, int strict, uint64_t at, const uint8_t *bytes, size_t size)
{
	uint8_t *old = malloc(size ? size : 1);

	if (!old || pread(l->fd, old, size, (off_t)at) != (ssize_t)size) {
		free(old);
		complain(l, "a lie outside of the file");
		return;
	}
	put(l, bytes, size, at);
	tell_lie(l, strict);
	put(l, old, size, at);
	free(old);
}

static void lie_cut(struct liar *l, int strict, uint64_t size)
{
	if (!l->whole || size >= l->size || ftruncate(l->fd, (off_t)size))
		abort();
	tell_lie(l, strict);
	put(l, l->whole + size, l->size - size, size);
}

static size_t parse_bytes(const char *text, uint8_t *bytes)
{
	size_t n = 0;
	unsigned byte;

	for (; n < MAX_LIE && sscanf(text + 2 * n, "%2x", &byte) == 1; n++)
		bytes[n] = (uint8_t)byte;
	return n;
}

static void lie_fill(struct liar *l, int strict, uint64_t at, uint64_t size, const char *byte)
{
	uint8_t *bytes = malloc(size ? size : 1);
	uint64_t seed = 88172645463325252u;

	if (!bytes)
		abort();
	for (uint64_t i = 0; i < size; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		bytes[i] = strcmp(byte, "noise") == 0 ? (uint8_t)seed
						      : (uint8_t)strtoul(byte, NULL, 16);
	}
	lie_bytes(l, strict, at, bytes, size);
	free(bytes);
}

/* Adds what debug information calls the functions that symbols name. */
static void learn_plain(struct liar *l, struct fathom *session)
{
	struct fathom_answers *answers = ask_once(l, session, FATHOM_DWARF_NAMES);

	for (size_t i = 0; answers && i < l->n; i++) {
		struct truth t;

		truth_read(&t, answers, i);
		truth_add_plain(&l->truth[i], &t);
		truth_deinit(&t);
	}
	fathom_answers_free(answers);
}

static void learn(struct liar *l)
{
	struct fathom *session = create(l);
	struct fathom_answers *answers;

	(void)snprintf(current, sizeof current, "nothing: the file is whole");
	l->learned = 1;
	answers = ask_once(l, session, 0);
	for (size_t i = 0; answers && i < l->n; i++) {
		truth_read(&l->truth[i], answers, i);
		l->named += l->truth[i].symbol != NULL;
	}
	fathom_answers_free(answers);
	learn_plain(l, session);
	fathom_destroy(session);
}

static void question(struct liar *l, uint64_t address, const char *section)
{
	if (l->n == MAX_QUESTIONS)
		return;
	l->section[l->n] = section ? strdup(section) : NULL;
	l->ask[l->n++] = address;
}

static void add_alias(struct liar *l, uint64_t start, const char *name)
{
	if (l->n_aliases == MAX_ALIASES)
		return;
	if (l->n_aliases % 256 == 0) {
		l->aliases = realloc(l->aliases, (l->n_aliases + 256) * sizeof *l->aliases);
		if (!l->aliases)
			abort();
	}
	l->aliases[l->n_aliases++] = (struct alias){ start, strdup(name) };
}

/* Obeys one line. */
static void obey(struct liar *l, const char *line)
{
	static char text[2 * MAX_LIE + 1];
	uint8_t bytes[MAX_LIE];
	unsigned long long a;
	unsigned long long b;
	char kind;
	int at = 0;

	if (sscanf(line, "ask %llx", &a) == 1) {
		question(l, a, NULL);
	} else if (sscanf(line, "asm %4095s %llx", text, &a) == 2) {
		question(l, a, text);
	} else if (sscanf(line, "cache %4095s", text) == 1) {
		l->options.cache_dir = strdup(text);
		l->options.flags = 0;
	} else if (sscanf(line, "alias %llx %n", &a, &at) == 1 && at) {
		add_alias(l, a, line + at);
	} else {
		if (!l->learned)
			learn(l);
		(void)snprintf(current, sizeof current, "%s", line);
		if (sscanf(line, "write %c %llx %8192s", &kind, &a, text) == 3)
			lie_bytes(l, kind == 's', a, bytes, parse_bytes(text, bytes));
		else if (sscanf(line, "fill %c %llx %llx %15s", &kind, &a, &b, text) == 4)
			lie_fill(l, kind == 's', a, b, text);
		else if (sscanf(line, "cut %c %llx", &kind, &a) == 2)
			lie_cut(l, kind == 's', a);
		else
			complain(l, "a line that says nothing");
	}
}

static void read_whole(struct liar *l)
{
	struct stat st;

	if (strncmp(l->path, "/proc/", 6) == 0)
		return;
	if (fstat(l->fd, &st))
		abort();
	l->size = (size_t)st.st_size;
	l->whole = malloc(l->size + 1);
	if (!l->whole || pread(l->fd, l->whole, l->size, 0) != (ssize_t)l->size)
		abort();
}

/* Bytes that this process has mapped. */
static uint64_t mapped_now(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	if (!file || fscanf(file, "%lu", &pages) != 1)
		abort();
	(void)fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void set_bounds(const struct liar *l)
{
	const struct sigaction act = { .sa_handler = on_signal };
	const rlim_t most = mapped_now() + 4 * (uint64_t)l->size + LIMIT;
	const struct rlimit limit = { most, most };

	(void)sigaction(SIGPROF, &act, NULL);
	(void)sigaction(SIGALRM, &act, NULL);
	if (!alloc_is_ours)
		return;
	(void)sigaction(SIGSEGV, &act, NULL);
	(void)sigaction(SIGBUS, &act, NULL);
	(void)sigaction(SIGABRT, &act, NULL);
	(void)setrlimit(RLIMIT_AS, &limit);
}

static void deinit(struct liar *l)
{
	for (size_t i = 0; i < l->n; i++) {
		truth_deinit(&l->truth[i]);
		free(l->section[i]);
	}
	for (size_t i = 0; i < l->n_aliases; i++)
		free(l->aliases[i].name);
	free(l->aliases);
	free((char *)(uintptr_t)l->options.cache_dir);
	free(l->whole);
	(void)close(l->fd);
}

int main(int argc, char **argv)
{
	struct liar l = { .options = { .size = sizeof l.options,
				       .flags = FATHOM_NO_CACHE,
				       .threads = 1,
				       .memory_budget = BUDGET } };
	char *line = NULL;
	size_t cap = 0;
	ssize_t got;

	l.verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
	if (argc - l.verbose != 3)
		return 2;
	l.target = argv[1 + l.verbose];
	l.path = argv[2 + l.verbose];
	l.fd = open(l.path, O_RDWR | O_CLOEXEC);
	if (l.fd < 0)
		return 2;
	read_whole(&l);
	set_bounds(&l);
	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((got = getline(&line, &cap, stdin)) > 0) {
		line[got - 1] = '\0';
		obey(&l, line);
	}
	printf("%zu questions, %zu with a name; %zu lies, %zu of which lose something; %zu "
	       "faults\n",
	       l.n, l.named, l.tried, l.less, l.wrong);
	free(line);
	got = l.wrong != 0;
	deinit(&l);
	return (int)got;
}
