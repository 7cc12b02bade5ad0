/* SPDX-License-Identifier: MIT */
/* What the verbs share: options, opening targets, messages. */
#ifndef FATHOM_CLI_COMMON_H
#define FATHOM_CLI_COMMON_H

#include <stdbool.h>

#include <fathom/fathom.h>

#include "cli/options.h"

/* Exit statuses of fathom's own verbs. */
enum { EXIT_ANSWERED = 0, EXIT_UNANSWERED = 1, EXIT_USAGE = 2 };

/* How the TARGET was written. */
enum target_kind {
	TARGET_ANY, /* as an argument: its text tells what it is */
	TARGET_PID, /* behind -p */
	TARGET_FILE /* behind -e */
};

/* What every verb that opens targets has. */
struct common {
	struct fathom_options options;
	struct fathom_target_options where; /* of its files */
	const char **debug_dirs;            /* NULL-terminated, of n_debug_dirs */
	size_t n_debug_dirs;
	bool json;
	enum target_kind target_kind;
	const char *target;
	char **arguments; /* behind the TARGET */
	int n_arguments;
};

struct out;

void common_init(struct common *c);
void common_deinit(struct common *c);

/* Takes the option @opt with its argument if it is a common one; false if not. */
bool common_take(struct common *c, const struct verb_options *verb, int opt, const char *argument);

/*
 * Takes the @n arguments that are left behind the options: the TARGET, unless -p or -e has named
 * it, and others. Exits with status 2 when there is no TARGET.
 */
void common_take_arguments(struct common *c, const char *verb, int n, char **arguments);

/* Exits with the complaint that @verb lacks something: @what, as in "no TARGET is given". */
_Noreturn void complain_lacking(const char *verb, const char *what);

/* Installs the handler of SIGBUS (fault.c). */
void fault_begin(void);

/*
 * As fathom_create() and fathom_destroy(), for the one session whose files the handler looks at. It
 * waits for no file system for long.
 */
fathom_err fault_create(const struct fathom_options *options, struct fathom **ret_session,
			struct fathom_errinfo *reterr);
void fault_destroy(struct fathom *session);

/* Starts the session; exits with status 2 when that fails. */
struct fathom *common_session(struct common *c);

/*
 * Runs a verb that asks one target: opens the TARGET, calls @answer with it, releases it, and
 * returns the status. Ends what common_init() began.
 */
int common_run(struct common *c, int (*answer)(void *verb, struct fathom_target *target),
	       void *verb);

/* The status of a verb that has printed to @out, and for some question that there is no answer. */
int common_status(const struct out *out, bool unanswered);

/*
 * Opens the target that @text names, written as @kind. On failure prints one line and returns NULL:
 * the caller exits with status 2.
 */
struct fathom_target *common_open(const struct common *c, struct fathom *session,
				  enum target_kind kind, const char *text);

/* Exits with status 2 and a complaint if a file of @target was truncated or overwritten. */
void common_check(const struct fathom_target *target);

/* Prints the notes of @target from number *@next on to standard error, and moves *@next. */
void common_print_notes(const struct fathom_target *target, size_t *next);

/* "fathom: WHAT: WHY (REMEDY)"; @remedy may be NULL. */
void complain(const char *what, const char *why, const char *remedy);

/*
 * Prints which symbol of @target somebody who wrote @name may have meant, if there is one like it.
 * Of a command line, only the first few names are looked for: @count counts them.
 */
void complain_symbol(struct fathom_target *target, const char *name, unsigned *count);

/* Prints the error, with the remedy that fits it; the other: of the index cache. */
void complain_error(const struct fathom_errinfo *info);
void complain_store(const struct fathom_errinfo *info);

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

/* Runs the system's tool that argv[0] names (system_tool.c); returns only if it cannot. */
int run_system_tool(char **argv);

#endif
