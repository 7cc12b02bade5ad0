/* SPDX-License-Identifier: MIT */
/* Code that the verbs share: options, opening targets, messages. */
#ifndef FATHOM_CLI_COMMON_H
#define FATHOM_CLI_COMMON_H

#include <stdbool.h>

#include <fathom/fathom.h>

#include "cli/options.h"

/* Exit statuses of fathom's own verbs. */
enum { EXIT_ANSWERED = 0, EXIT_UNANSWERED = 1, EXIT_USAGE = 2 };

/* How the TARGET was given. */
enum target_kind {
	TARGET_ANY, /* as an argument: its text tells the kind */
	TARGET_PID, /* after -p */
	TARGET_FILE /* after -e */
};

/* When parts of text have colours. */
enum colours {
	COLOURS_AUTO, /* on a terminal, unless the environment says no */
	COLOURS_ALWAYS,
	COLOURS_NEVER
};

/* The state of every verb that opens targets. */
struct common {
	struct fathom_options options;
	struct fathom_target_options where; /* where to find its files */
	const char **debug_dirs;            /* NULL-terminated, of n_debug_dirs */
	size_t n_debug_dirs;
	const char **source_dirs; /* NULL-terminated, of n_source_dirs; NULL: none */
	size_t n_source_dirs;
	uint32_t source_lines;  /* lines of source for each place; 0: none */
	struct fathom *session; /* of common_session(); NULL: none yet */
	bool json;
	enum colours colours;
	enum target_kind target_kind;
	const char *target;
	char **arguments; /* after the TARGET */
	int n_arguments;
	bool shows_progress; /* on a terminal; the verb writes nothing else to it meanwhile */
	bool told_waiting;   /* common_tell_waiting() has been called */
};

struct out;

void common_init(struct common *c);
void common_deinit(struct common *c);

/* Takes the option @opt with its argument; returns false if it is not a common option. */
bool common_take(struct common *c, const struct verb_options *verb, int opt, const char *argument);

/*
 * Takes the @n arguments after the options: the TARGET, unless -p or -e has named it, and the
 * rest. Exits with status 2 if there is no TARGET.
 */
void common_take_arguments(struct common *c, const char *verb, int n, char **arguments);

/* Complains that @verb lacks something and exits; @what is like "no TARGET is given". */
_Noreturn void complain_lacking(const char *verb, const char *what);

/* Installs the handler of SIGBUS (fault.c). */
void fault_begin(void);

/*
 * Wrap fathom_create() and fathom_destroy() for the one session that the SIGBUS handler knows. The
 * session has a short file timeout.
 */
fathom_err fault_create(const struct fathom_options *options, struct fathom **ret_session,
			struct fathom_errinfo *reterr);
void fault_destroy(struct fathom *session);

/* Creates the session; exits with status 2 on failure. */
struct fathom *common_session(struct common *c);

/*
 * Runs a verb with one target: opens the TARGET, calls @answer with it, releases it, and returns
 * the status. Frees what common_init() made.
 */
int common_run(struct common *c, int (*answer)(void *verb, struct fathom_target *target),
	       void *verb);

/* Initializes @out, standard output, which has colours if they are wanted; JSON never has. */
void common_out_init(const struct common *c, struct out *out);

/* Returns the exit status of a verb that printed to @out; @unanswered: some query had no answer. */
int common_status(const struct out *out, bool unanswered);

/*
 * Opens the target that @text names, given as @kind. On failure prints one line and returns NULL;
 * the caller exits with status 2.
 */
struct fathom_target *common_open(const struct common *c, struct fathom *session,
				  enum target_kind kind, const char *text);

/* Complains and exits with status 2 if a file of @target was truncated or overwritten. */
void common_check(const struct fathom_target *target);

/* Prints the notes of @target from number *@next on to standard error, and moves *@next. */
void common_print_notes(const struct fathom_target *target, size_t *next);

/* Returns the remedy for @note of @target, or NULL. */
const char *common_note_remedy(const struct fathom_target *target,
			       const struct fathom_errinfo *note);

/* Returns what helps against @cause, of enum fathom_cause; NULL: nothing known. */
const char *common_cause_remedy(uint32_t cause);

/* Complains and exits with @why if lines of source are wanted and @is_refused. */
void common_check_source(const struct common *c, bool is_refused, const char *why);

/* A reason for that. */
#define NAMES_ONLY_HAS_NO_SOURCE "does not go with --names-only, which leaves lines out"

/* Adds @text to the NULL-terminated *@list of *@n texts, which is to be freed. */
void common_add_text(const char ***list, size_t *n, const char *text);

/* Returns the remedy where there is no directory for the cache. */
const char *common_cache_remedy(const struct common *c);

/* Returns the remedy for a failed write, or NULL. */
const char *common_write_remedy(int number);

/* fathom_stack_options.waiting: says once, on standard error, what is waited for. @data: common. */
int common_tell_waiting(void *data, size_t n_threads, uint32_t waited_ms);

/*
 * Runs @work on @here and on @there, in parallel if a second thread is allowed and can be created.
 */
void common_run_both(const struct common *c, void *(*work)(void *), void *here, void *there);

/* Prints "fathom: WHAT: WHY (REMEDY)"; @remedy may be NULL. */
void complain(const char *what, const char *why, const char *remedy);

/*
 * Says where the missing @name is inlined in @target, else which symbol is nearest, if one is near.
 * @count limits this to the first few names of a command line.
 */
void complain_symbol(struct fathom_target *target, const char *name, unsigned *count);

/* Most mistyped names that get suggestions, and places of copies: each costs a search. */
#define COMMON_NEAR_NAMES 4

/* Print the error with its remedy; complain_cache() for errors of the index cache. */
void complain_error(const struct fathom_errinfo *info);
void complain_store(const struct fathom_errinfo *info);

/* Returns @memory; exits with status 2 if it is NULL. */
void *must(void *memory);

/* Returns the part of @path after its last slash, or all of it. */
const char *last_part(const char *path);

/* Parses a size such as "512M" into bytes; exits with status 2 if @text is not a size. */
uint64_t parse_size(const char *option, const char *text);
/* Parses a number from 1 to @max; exits with status 2 if @text is not one. */
uint32_t parse_count(const char *option, const char *text, uint32_t max);
/* Likewise a number from @least to @max. */
uint32_t parse_between(const char *option, const char *text, uint32_t least, uint32_t max);
/* Returns the seconds, from 0.001 to 86,400, that @text states: a number, also with s or ms. */
double parse_seconds(const char *option, const char *text);

/* The verbs. Each returns the exit status. */
int verb_addr(int argc, char **argv);
int verb_addr2line(int argc, char **argv);
int verb_cache(int argc, char **argv);
int verb_disasm(int argc, char **argv);
int verb_doctor(int argc, char **argv);
int verb_jit_check(int argc, char **argv);
int verb_filter(int argc, char **argv);
int verb_find(int argc, char **argv);
int verb_llvm_symbolizer(int argc, char **argv);
int verb_record(int argc, char **argv);
int verb_report(int argc, char **argv);
int verb_resolve(int argc, char **argv);
int verb_snapshot(int argc, char **argv);
int verb_stack(int argc, char **argv);
int verb_store(int argc, char **argv);
int verb_strace(int argc, char **argv);
int verb_top(int argc, char **argv);
int verb_trace(int argc, char **argv);

/* Runs the system's tool that argv[0] names (system_tool.c); returns only on failure. */
int run_system_tool(char **argv);

/* Returns the enum fathom_stack_stop_mode of an option --stop=@text; ends the command if wrong. */
uint32_t parse_stop(const char *text);

#endif
