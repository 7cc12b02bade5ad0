/* SPDX-License-Identifier: MIT */
/* What the verbs share: options, opening targets, messages. */
#ifndef FATHOM_COMMON_H
#define FATHOM_COMMON_H

#include <fathom/fathom.h>
#include <getopt.h>

/* Exit statuses of fathom's own verbs. */
enum { EXIT_ANSWERED = 0, EXIT_UNANSWERED = 1, EXIT_USAGE = 2 };

/* Options of every verb that opens targets. */
struct common {
	struct fathom_options options;
	const char **debug_dirs; /* NULL-terminated, of n_debug_dirs */
	size_t n_debug_dirs;
	bool json;
	char **arguments; /* behind the TARGET, once the verb runs */
	int n_arguments;
};

struct out;

/* Long options of struct common, for the tables of the verbs; their values start here. */
enum {
	OPT_COMMON = 256,
	OPT_JSON = OPT_COMMON,
	OPT_NO_CACHE,
	OPT_SYSROOT,
	OPT_EXE,
	OPT_DEBUG_DIR,
	OPT_DEBUGINFOD,
	OPT_DEBUGINFOD_TIMEOUT,
	OPT_MEMORY,
	OPT_THREADS,
	OPT_CACHE_DIR,
	OPT_HELP,
	OPT_VERB, /* a verb's own options start here */
};

/* clang-format off */
#define COMMON_OPTIONS \
	{ "json", no_argument, NULL, OPT_JSON }, \
	{ "no-cache", no_argument, NULL, OPT_NO_CACHE }, \
	{ "sysroot", required_argument, NULL, OPT_SYSROOT }, \
	{ "exe", required_argument, NULL, OPT_EXE }, \
	{ "debug-dir", required_argument, NULL, OPT_DEBUG_DIR }, \
	{ "debuginfod", optional_argument, NULL, OPT_DEBUGINFOD }, \
	{ "debuginfod-timeout", required_argument, NULL, OPT_DEBUGINFOD_TIMEOUT }, \
	{ "memory", required_argument, NULL, OPT_MEMORY }, \
	{ "threads", required_argument, NULL, OPT_THREADS }, \
	{ "cache-dir", required_argument, NULL, OPT_CACHE_DIR }, \
	{ "help", no_argument, NULL, OPT_HELP }
/* clang-format on */

#define COMMON_HELP                                                                            \
	"      --json                   print JSON Lines\n"                                    \
	"      --no-cache               neither read nor write the index cache\n"              \
	"      --cache-dir DIR          the index cache is in DIR\n"                           \
	"      --debug-dir DIR          look for debug files in DIR, too (repeatable)\n"       \
	"      --sysroot DIR            look for files of cores and debug files below DIR\n"   \
	"      --exe PATH               the program that a core or snapshot is of\n"           \
	"      --debuginfod[=URLS]      ask debuginfod servers (default: $DEBUGINFOD_URLS)\n"  \
	"      --debuginfod-timeout S   seconds for all questions together (default 10)\n"     \
	"      --memory SIZE            what may be kept in memory, as in 512M (default 1G)\n" \
	"      --threads N              threads to use (default: one for each processor)\n"    \
	"      --help                   print this help\n"

void common_init(struct common *c);
void common_deinit(struct common *c);

/*
 * Takes option @opt of @verb with its argument: a common one, or a wish for help, after which it
 * exits with @usage printed, as it does, with a complaint, when the option is unknown.
 */
void common_take(struct common *c, int opt, const char *argument, const char *verb,
		 const char *usage);

/* Exits with the complaint that @verb lacks something: @what, as in "no TARGET is given". */
_Noreturn void complain_lacking(const char *verb, const char *what);

/* Starts the session; exits with status 2 when that fails. */
struct fathom *common_session(struct common *c);

/*
 * The whole of a verb that asks one target, the first of the @n arguments: opens it, calls @answer
 * with the target, which is released afterwards, and returns its status; ends what common_init()
 * began.
 */
int common_run(struct common *c, int n, char **arguments,
	       int (*answer)(void *verb, struct fathom_target *target), void *verb);

/* The status of a verb that has printed to @out, and for some question that there is no answer. */
int common_status(const struct out *out, bool unanswered);

/*
 * Opens @text, the TARGET of the command line. On failure prints one line and returns NULL: the
 * caller exits with status 2.
 */
struct fathom_target *common_open(const struct common *c, struct fathom *session, const char *text);

/* Prints the notes of @target from number *@next on to standard error, and moves *@next. */
void common_print_notes(const struct fathom_target *target, size_t *next);

/* "fathom: WHAT: WHY (REMEDY)"; @remedy may be NULL. */
void complain(const char *what, const char *why, const char *remedy);

/* Prints the error, with the remedy that fits it. */
void complain_error(const struct fathom_errinfo *info);

/* @memory; exits with status 2 when it is NULL. */
void *must(void *memory);

/* What follows the last slash of @path, or all of it. */
const char *last_part(const char *path);

/* "512M" in bytes; exits with status 2 when @text is no size. */
uint64_t parse_size(const char *option, const char *text);
/* A number from 1 to @max; exits with status 2 when @text is none. */
uint32_t parse_count(const char *option, const char *text, uint32_t max);

/* The verbs. Each returns the exit status. */
int verb_addr(int argc, char **argv);
int verb_addr2line(int argc, char **argv);
int verb_cache(int argc, char **argv);
int verb_disasm(int argc, char **argv);
int verb_find(int argc, char **argv);
int verb_llvm_symbolizer(int argc, char **argv);
int verb_snapshot(int argc, char **argv);

#endif
