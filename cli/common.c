/* SPDX-License-Identifier: MIT */
#include "cli/common.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/inlined.h"
#include "cli/out.h"
#include "cli/progress_line.h"
#include "fathom/trace.h"

/* Prints "fathom: TEXT (REMEDY)", escaped, because names may be hostile; @remedy may be NULL. */
static void complain_text(const char *text, const char *remedy)
{
	struct out o;

	out_init_kept(&o);
	out_str(&o, "fathom: ");
	out_text(&o, text, strlen(text));
	if (remedy) {
		out_str(&o, " (");
		out_text(&o, remedy, strlen(remedy));
		out_char(&o, ')');
	}
	out_char(&o, '\n');
	progress_clear();
	(void)fwrite(o.buf, 1, o.n, stderr);
	out_deinit(&o);
}

void complain(const char *what, const char *why, const char *remedy)
{
	char *text = NULL;

	if (asprintf(&text, "%s: %s", what, why) >= 0)
		complain_text(text, remedy);
	free(text);
}

/* Returns the remedy for the cause of an error, or NULL. */
const char *common_cause_remedy(uint32_t cause)
{
	switch (cause) {
	case FATHOM_CAUSE_BUDGET:
		return "raise the limit with --memory";
	case FATHOM_CAUSE_OTHER_USER:
		return "run as that user or as root";
	case FATHOM_CAUSE_NOT_DUMPABLE:
	case FATHOM_CAUSE_MORE_RIGHTS:
		return "run as root";
	case FATHOM_CAUSE_HIDDEN:
		return "run as root, or mount /proc without hidepid";
	case FATHOM_CAUSE_NO_PROC:
		return "mount -t proc proc /proc";
	case FATHOM_CAUSE_DEBUG_FILE:
		return "install the debug package of exactly this version";
	case FATHOM_CAUSE_DEBUGINFOD:
		return "allow more with --debuginfod-timeout";
	case FATHOM_CAUSE_SILENT:
		return "its server is gone or slow: allow more with --file-timeout";
	case FATHOM_CAUSE_UNVERIFIED:
		return "--unverified-files takes it all the same";
	case FATHOM_CAUSE_UNNAMED:
		return "the core does not tell which program it is of: name it with --exe";
	case FATHOM_CAUSE_NOT_INSTALLED:
		return "install the package that has it";
	case FATHOM_CAUSE_NOT_TRUSTED:
		return "if you trust it: chown it to the user of the process, and chmod go-w";
	default:
		return NULL;
	}
}

const char *common_write_remedy(int number)
{
	switch (number) {
	case ENOENT:
	case ENOTDIR:
		return "make the directory first, or check the path";
	case EACCES:
	case EPERM:
	case EROFS:
		return "name a place that this user may write to";
	case EISDIR:
		return "name a file in it";
	case ENOSPC:
	case EDQUOT:
		return "make room there, or name another place";
	default:
		return NULL;
	}
}

/* Returns the remedy for @info, or NULL. */
static const char *remedy_for(const struct fathom_errinfo *info)
{
	if (info->cause == FATHOM_CAUSE_WRITE)
		return common_write_remedy(info->os_errno);
	if (info->cause)
		return common_cause_remedy(info->cause);
	switch (info->err) {
	case FATHOM_E_OS:
		return info->os_errno == ENOENT   ? "check the path"
		       : info->os_errno == EACCES ? "run as a user who may read it"
						  : NULL;
	case FATHOM_E_FORMAT:
		return "an executable, library, object or debug file is wanted";
	case FATHOM_E_CHANGED:
		return "run again";
	default:
		return NULL;
	}
}

static void complain_info(const struct fathom_errinfo *info, const char *remedy)
{
	char text[512];

	(void)fathom_errinfo_format(info, text, sizeof text);
	complain_text(text, remedy);
}

void complain_store(const struct fathom_errinfo *info)
{
	const char *remedy = remedy_for(info);

	complain_info(info, info->cause == FATHOM_CAUSE_WRITE
				    ? "name another directory with --cache-dir"
			    : remedy ? remedy
				     : "check --cache-dir");
}

void complain_error(const struct fathom_errinfo *info)
{
	complain_info(info, remedy_for(info));
}

const char *common_note_remedy(const struct fathom_target *target,
			       const struct fathom_errinfo *note)
{
	struct fathom_target_info info;
	/* The user has not named the files in it. */
	const char *remedy = note->err == FATHOM_E_FORMAT ? NULL : remedy_for(note);

	fathom_target_get_info(target, &info);
	if (note->cause == FATHOM_CAUSE_MAPPED_FILE &&
	    (info.kind == FATHOM_TARGET_CORE || info.kind == FATHOM_TARGET_SNAPSHOT))
		remedy = "if it is elsewhere, name the directory above it with --sysroot";
	else if (note->cause == FATHOM_CAUSE_MAPPED_FILE && geteuid())
		remedy = "run as root, who may still read what is mapped";
	return remedy;
}

/* Prints why a process could not be opened; names it by its number. */
static void complain_process(const char *what, const struct fathom_errinfo *info,
			     const char *remedy)
{
	if (info->err == FATHOM_E_OS && !info->cause &&
	    (info->os_errno == ENOENT || info->os_errno == ESRCH))
		complain(what, "there is no such process", remedy);
	else
		complain(what, info->what, remedy_for(info));
}

void complain_symbol(struct fathom_target *target, const char *name, unsigned *count)
{
	char near[FATHOM_NEAR_SIZE];
	char remedy[FATHOM_NEAR_SIZE + 32];

	if (++*count > COMMON_NEAR_NAMES || inlined_complain(target, name) ||
	    fathom_near_symbol(target, name, near, NULL))
		return;
	(void)snprintf(remedy, sizeof remedy, "did you mean %s?", near);
	complain(name, "no such symbol", remedy);
}

void common_add_text(const char ***list, size_t *n, const char *text)
{
	*list = must(realloc(*list, (*n + 2) * sizeof **list));
	(*list)[(*n)++] = text;
	(*list)[*n] = NULL;
}

const char *common_cache_remedy(const struct common *c)
{
	if (c->options.flags & FATHOM_NO_CACHE)
		return "leave out --no-cache";
	if (fathom_is_secure())
		return "give --cache-dir: a program with more rights than its user heeds no "
		       "variable";
	if (fathom_secure_getenv("XDG_CACHE_HOME") || fathom_secure_getenv("HOME"))
		return "give --cache-dir: the usual folder is another user's, or no absolute path";
	return "set HOME or XDG_CACHE_HOME, or give --cache-dir";
}

void common_init(struct common *c)
{
	*c = (struct common){ .options = { .size = sizeof c->options },
			      .where = { .size = sizeof c->where } };
}

void common_deinit(struct common *c)
{
	free(c->debug_dirs);
	free(c->source_dirs);
}

/* Complains that the argument @text of @option is wrong, and exits. */
static _Noreturn void complain_value(const char *option, const char *text, const char *why,
				     const char *remedy)
{
	char *sentence = NULL;

	if (asprintf(&sentence, "'%s' %s", text, why) >= 0)
		complain(option, sentence, remedy);
	exit(EXIT_USAGE);
}

uint64_t parse_size(const char *option, const char *text)
{
	static const char units[] = "KMGT";
	char *end;
	unsigned long long value;
	const char *unit;

	errno = 0;
	value = strtoull(text, &end, 10);
	unit = *end ? strchr(units, *end >= 'a' ? *end - 'a' + 'A' : *end) : NULL;
	if (errno || end == text || text[0] == '-' || (*end && (!unit || end[1])) || !value)
		complain_value(option, text, "is not a size", "write it as 512M or 2G");
	for (ptrdiff_t i = 0; unit && i <= unit - units; i++)
		if (__builtin_mul_overflow(value, 1024, &value))
			value = UINT64_MAX;
	return value;
}

double parse_seconds(const char *option, const char *text)
{
	char *end;
	double value = strtod(text, &end);
	const bool is_ms = end != text && !strcmp(end, "ms");

	value = is_ms ? value / 1000 : value;
	if (end == text || (*end && !is_ms && strcmp(end, "s") != 0) ||
	    !(value >= 0.001 && value <= 86400)) {
		complain(option, "is a number of seconds from 0.001 to 86400", NULL);
		exit(EXIT_USAGE);
	}
	return value;
}

uint32_t parse_between(const char *option, const char *text, uint32_t least, uint32_t max)
{
	char *end;
	char why[64];
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-' || value < least || value > max) {
		(void)snprintf(why, sizeof why, "is not a number from %u to %u", least, max);
		complain_value(option, text, why, NULL);
	}
	return (uint32_t)value;
}

uint32_t parse_count(const char *option, const char *text, uint32_t max)
{
	return parse_between(option, text, 1, max);
}

/* Adds the directory of --debug-dir after the default one, which stays first. */
static void add_debug_dir(struct common *c, const char *dir)
{
	const char **dirs = realloc(c->debug_dirs, (c->n_debug_dirs + 3) * sizeof *dirs);

	if (!dirs) {
		complain("--debug-dir", "out of memory", NULL);
		exit(EXIT_USAGE);
	}
	if (!c->n_debug_dirs)
		dirs[c->n_debug_dirs++] = "/usr/lib/debug";
	dirs[c->n_debug_dirs++] = dir;
	dirs[c->n_debug_dirs] = NULL;
	c->debug_dirs = dirs;
}

static void take_target(struct common *c, const char *verb, enum target_kind kind, const char *text)
{
	if (c->target)
		complain_lacking(verb, "-p and -e name more than one TARGET");
	c->target = text;
	c->target_kind = kind;
}

/* Returns the argument @text of --color, NULL for none. Exits with status 2 if it is wrong. */
static enum colours parse_colours(const char *text)
{
	static const char *const words[] = {
		[COLOURS_AUTO] = "auto", [COLOURS_ALWAYS] = "always", [COLOURS_NEVER] = "never"
	};

	for (unsigned i = 0; text && i < sizeof words / sizeof *words; i++)
		if (strcmp(text, words[i]) == 0)
			return (enum colours)i;
	if (text)
		complain_value("--color", text, "is not always, never or auto", NULL);
	return COLOURS_ALWAYS;
}

/*
 * Lines for each place unless --source says how many: the line, with two before and after it. Verbs
 * with OPTIONS_SOURCE_LINE print the line alone.
 */
#define SOURCE_LINES 5

static uint32_t default_lines(const struct verb_options *verb)
{
	return verb->common & OPTIONS_SOURCE_LINE ? 1 : SOURCE_LINES;
}

static void add_source_dir(struct common *c, const struct verb_options *verb, const char *dir)
{
	common_add_text(&c->source_dirs, &c->n_source_dirs, dir);
	if (!c->source_lines)
		c->source_lines = default_lines(verb);
}

void common_check_source(const struct common *c, bool is_refused, const char *why)
{
	if (!c->source_lines || !is_refused)
		return;
	complain("--source", why, NULL);
	exit(EXIT_USAGE);
}

bool common_take(struct common *c, const struct verb_options *verb, int opt, const char *argument)
{
	switch (opt) {
	case 'p':
	case 'e':
		if (!(verb->common & OPTIONS_TARGET))
			return false;
		take_target(c, verb->verb, opt == 'p' ? TARGET_PID : TARGET_FILE, argument);
		return true;
	case OPT_JSON:
		c->json = true;
		return true;
	case OPT_NO_CACHE:
		c->options.flags |= FATHOM_NO_CACHE;
		return true;
	case OPT_SYSROOT:
		c->where.sysroot = argument;
		return true;
	case OPT_EXE:
		c->where.exe = argument;
		return true;
	case OPT_UNVERIFIED:
		c->where.flags |= FATHOM_TARGET_UNVERIFIED_FILES;
		return true;
	case OPT_DEBUG_DIR:
		add_debug_dir(c, argument);
		return true;
	case OPT_DEBUGINFOD:
		/* libdebuginfod takes its servers only from the environment. */
		if (argument)
			(void)setenv("DEBUGINFOD_URLS", argument, 1);
		c->options.flags |= FATHOM_DEBUGINFOD;
		return true;
	case OPT_DEBUGINFOD_TIMEOUT:
		c->options.debuginfod_timeout_ms =
			1000 * parse_count("--debuginfod-timeout", argument, 86400);
		return true;
	case OPT_FILE_TIMEOUT:
		c->options.file_timeout_ms = 1000 * parse_count("--file-timeout", argument, 86400);
		return true;
	case OPT_MEMORY:
		c->options.memory_budget = parse_size("--memory", argument);
		return true;
	case OPT_THREADS:
		c->options.threads = parse_count("--threads", argument, 64);
		return true;
	case OPT_CACHE_DIR:
		c->options.cache_dir = argument;
		return true;
	case OPT_SOURCE:
		c->source_lines =
			argument ? parse_count("--source", argument, 1000000) : default_lines(verb);
		return true;
	case OPT_SOURCE_DIR:
		add_source_dir(c, verb, argument);
		return true;
	case OPT_COLOR:
		c->colours = parse_colours(argument);
		return true;
	default:
		return false;
	}
}

_Noreturn void complain_lacking(const char *verb, const char *what)
{
	char remedy[64];

	(void)snprintf(remedy, sizeof remedy, "try 'fathom %s --help'", verb);
	complain(verb, what, remedy);
	exit(EXIT_USAGE);
}

void common_take_arguments(struct common *c, const char *verb, int n, char **arguments)
{
	const int own = c->target ? 0 : 1;

	if (n < own)
		complain_lacking(verb, "no TARGET is given");
	if (own)
		c->target = arguments[0];
	c->arguments = arguments + own;
	c->n_arguments = n - own;
}

/*
 * Complains if @path, the argument of @option, does not exist, or is a directory but @is_dir is
 * false.
 */
static void check_path(const char *option, const char *path, bool is_dir)
{
	char *what = NULL;
	struct stat st;
	int number = 0;

	if (stat(path, &st))
		number = errno;
	else if (is_dir && !S_ISDIR(st.st_mode))
		number = ENOTDIR;
	else if (access(path, is_dir ? X_OK : R_OK))
		number = errno;
	if (number && asprintf(&what, "%s: %s", option, path) >= 0)
		complain(what, strerror(number),
			 number == EACCES ? "run as a user who may read it" : "check the path");
	free(what);
}

/* Complains about paths among the options that do not exist. */
static void check_paths(const struct common *c)
{
	/* The first is the default directory, which may be missing. */
	for (size_t i = 1; i < c->n_debug_dirs; i++)
		check_path("--debug-dir", c->debug_dirs[i], true);
	for (size_t i = 0; i < c->n_source_dirs; i++)
		check_path("--source-dir", c->source_dirs[i], true);
	if (c->where.sysroot)
		check_path("--sysroot", c->where.sysroot, true);
	if (c->where.exe)
		check_path("--exe", c->where.exe, false);
}

int common_tell_waiting(void *data, size_t n_threads, uint32_t waited_ms)
{
	struct common *c = data;
	char why[128];

	(void)waited_ms;
	if (c->told_waiting || !n_threads)
		return 0;
	c->told_waiting = true;
	(void)snprintf(why, sizeof why,
		       "%zu thread%s no processor to stop on: the machine is busy; waiting",
		       n_threads, n_threads == 1 ? " has" : "s have");
	complain(c->target, why, "--stop-timeout sets for how long");
	return 0;
}

struct fathom *common_session(struct common *c)
{
	struct fathom_errinfo info;
	struct fathom *session;

	c->where.debug_dirs = c->debug_dirs;
	check_paths(c);
	/* A verb with a progress of its own ends by that. */
	if ((c->options.flags & FATHOM_DEBUGINFOD) && !c->options.progress)
		progress_catch_interrupt(&c->options);
	if (c->shows_progress)
		progress_show(&c->options);
	if (fault_create(&c->options, &session, &info)) {
		complain_error(&info);
		exit(EXIT_USAGE);
	}
	c->session = session;
	return session;
}

static bool is_digits(const char *text)
{
	return *text && text[strspn(text, "0123456789")] == '\0';
}

static struct fathom_target *open_process(const struct common *c, struct fathom *session,
					  enum target_kind kind, const char *text)
{
	const char *digits = strncmp(text, "pid:", 4) == 0 ? text + 4 : text;
	/* Only if the text alone said "process" may the user have meant a file. */
	const char *remedy =
		kind == TARGET_ANY ? "write file:PATH or ./PATH for a file of that name" : NULL;
	struct fathom_target *target;
	struct fathom_errinfo info;
	long pid;

	errno = 0;
	pid = is_digits(digits) ? strtol(digits, NULL, 10) : 0;
	if (errno || pid < 1 || pid > INT_MAX) {
		complain(text, "is not the number of a process", remedy);
		return NULL;
	}
	if (fathom_target_open_process(session, (int)pid, &c->where, &target, &info)) {
		complain_process(text, &info, remedy);
		return NULL;
	}
	return target;
}

/* Opens the kernel. Its files, /proc and /sys are looked for below --sysroot. */
static struct fathom_target *open_kernel(const struct common *c, struct fathom *session)
{
	struct fathom_target_options where = c->where;
	struct fathom_target *target;
	struct fathom_errinfo info;

	where.root = where.sysroot;
	if (fathom_target_open_kernel(session, &where, &target, &info)) {
		complain_error(&info);
		return NULL;
	}
	return target;
}

/* Complains that the TARGET could not be opened. */
static void complain_target(enum target_kind kind, const char *text,
			    const struct fathom_errinfo *info)
{
	const bool is_address = strncmp(text, "0x", 2) == 0;

	if (kind == TARGET_ANY && is_address && info->os_errno == ENOENT)
		complain_info(info, "the TARGET is named before addresses, or by -p or -e");
	else
		complain_error(info);
}

struct fathom_target *common_open(const struct common *c, struct fathom *session,
				  enum target_kind kind, const char *text)
{
	struct fathom_target *target;
	struct fathom_errinfo info;

	if (kind == TARGET_PID ||
	    (kind == TARGET_ANY && (is_digits(text) || strncmp(text, "pid:", 4) == 0)))
		return open_process(c, session, kind, text);
	if (kind == TARGET_ANY && (strcmp(text, "kernel") == 0 || strcmp(text, "/proc/kcore") == 0))
		return open_kernel(c, session);
	if (kind == TARGET_ANY && strncmp(text, "file:", 5) == 0)
		text += 5;
	if (fathom_target_open_file(session, text, &c->where, &target, &info)) {
		complain_target(kind, text, &info);
		return NULL;
	}
	return target;
}

void common_check(const struct fathom_target *target)
{
	struct fathom_errinfo info;

	if (!fathom_target_check(target, &info))
		return;
	complain_error(&info);
	exit(EXIT_USAGE);
}

int common_run(struct common *c, int (*answer)(void *verb, struct fathom_target *target),
	       void *verb)
{
	struct fathom *session = common_session(c);
	struct fathom_target *target = common_open(c, session, c->target_kind, c->target);
	int status = EXIT_USAGE;

	if (target) {
		status = answer(verb, target);
		common_check(target);
	}
	fathom_target_release(target);
	fault_destroy(session);
	common_deinit(c);
	return status;
}

/* Returns whether standard output is a terminal that shows colours to somebody who wants them. */
static bool shows_colours(void)
{
	const char *no_colour = fathom_secure_getenv("NO_COLOR"); /* no-color.org */
	const char *terminal = fathom_secure_getenv("TERM");

	return isatty(STDOUT_FILENO) && !(no_colour && *no_colour) && terminal && *terminal &&
	       strcmp(terminal, "dumb") != 0;
}

void common_out_init(const struct common *c, struct out *out)
{
	out_init(out);
	out->is_coloured = !c->json && c->colours != COLOURS_NEVER &&
			   (c->colours == COLOURS_ALWAYS || shows_colours());
}

int common_status(const struct out *out, bool unanswered)
{
	if (out->error)
		return EXIT_USAGE;
	return unanswered ? EXIT_UNANSWERED : EXIT_ANSWERED;
}

void common_run_both(const struct common *c, void *(*work)(void *), void *here, void *there)
{
	pthread_t thread;
	const bool helped =
		c->options.threads != 1 && pthread_create(&thread, NULL, work, there) == 0;

	(void)work(here);
	if (helped)
		(void)pthread_join(thread, NULL);
	else
		(void)work(there);
}

void *must(void *memory)
{
	if (!memory) {
		complain("the command", "out of memory", NULL);
		exit(EXIT_USAGE);
	}
	return memory;
}

const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

void common_print_notes(const struct fathom_target *target, size_t *next)
{
	const struct fathom_errinfo *note;

	progress_clear();
	while ((note = fathom_target_note(target, *next)) != NULL) {
		complain_info(note, common_note_remedy(target, note));
		++*next;
	}
}

uint32_t parse_stop(const char *text)
{
	static const char *const words[] = { "auto", "never", "all" };

	for (uint32_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcmp(text, words[i]) == 0)
			return i;
	complain("--stop", "is auto, never or all", NULL);
	exit(EXIT_USAGE);
}
