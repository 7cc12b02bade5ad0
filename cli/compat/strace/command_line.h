/* SPDX-License-Identifier: MIT */
/* The options of strace(1) that fathom strace knows. */
#ifndef FATHOM_CLI_COMPAT_STRACE_COMMAND_LINE_H
#define FATHOM_CLI_COMPAT_STRACE_COMMAND_LINE_H

#include <fathom/fathom.h>
#include <stdbool.h>

/* How a call has ended: bits of strace_options.statuses. */
enum strace_status {
	STRACE_SUCCESSFUL = 1 << 0,
	STRACE_FAILED = 1 << 1,
	STRACE_UNFINISHED = 1 << 2,
	STRACE_ALL_STATUSES = 7
};

/* Kinds of lines that are left out: bits of strace_options.quiet. */
enum strace_quiet {
	STRACE_QUIET_ATTACH = 1 << 0,
	STRACE_QUIET_EXIT = 1 << 1,
	STRACE_QUIET_PATHS = 1 << 2,
	STRACE_QUIET_ALL = 7
};

enum strace_clock { STRACE_NO_CLOCK, STRACE_SECONDS, STRACE_MICROSECONDS, STRACE_SINCE_1970 };

struct strace_options {
	struct fathom_trace_syscalls calls;
	const char *set;     /* of -e trace= */
	const char *output;  /* NULL: standard error */
	char **program;      /* and its arguments; NULL: none */
	const char **inject; /* of -e inject=; each from malloc() */
	size_t n_inject;
	const char *user;   /* of -u; NULL: whose the command is */
	const char **paths; /* of -P */
	size_t n_paths;
	char **environment; /* words of -E */
	size_t n_environment;
	int32_t *pids;
	size_t n_pids;
	bool decodes_fds;    /* -e decode-fds= */
	bool follows;        /* -f */
	bool is_split;       /* -ff: a file for each thread */
	bool counts;         /* -c, -C */
	bool lists;          /* unless -c */
	bool by_wall_clock;  /* -w */
	const char *order;   /* -S */
	const char *columns; /* -U; NULL: the usual ones */
	uint8_t clock;       /* enum strace_clock */
	bool is_relative;    /* -r */
	bool has_durations;  /* -T */
	bool has_pc;         /* -i */
	bool has_numbers;    /* -n */
	uint32_t quiet;      /* enum strace_quiet */
	uint8_t n_quiet;     /* -q */
	bool has_quiet;      /* -e quiet= */
	uint32_t column;     /* -a */
	uint32_t statuses;   /* enum strace_status */
	uint64_t signals;    /* that are reported, bit number - 1 */
};

/* Reads the command line; exits with status 1 as strace does if it cannot be read. */
void strace_options_read(struct strace_options *o, int argc, char **argv);
void strace_options_deinit(struct strace_options *o);

#endif
