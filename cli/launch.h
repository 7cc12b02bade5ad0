/* SPDX-License-Identifier: MIT */
/* Parts that verbs share which run a PROGRAM after "--", or look at processes. */
#ifndef FATHOM_CLI_LAUNCH_H
#define FATHOM_CLI_LAUNCH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Statuses of PROGRAMs that cannot be run, or are not there, as those of shells. */
enum { EXIT_NOT_RUN = 126, EXIT_NOT_FOUND = 127 };

/* Becomes the program @argv; returns errno if that fails. */
int launch_become(char *const *argv);

/* Returns the place of "--", which a program stands after; @argc if there is none. */
int launch_find(int argc, char **argv);

/*
 * Returns the program after argv[@end], which is "--"; its arguments follow it. @next is the first
 * argument before that is no option. Exits with status 2 if there is none, or if there is a TARGET,
 * too.
 */
char **launch_take(const char *verb, int next, int end, int argc, char **argv);

/* Makes @handler take signal @number, unless that is ignored: then the program ignores it, too. */
void launch_watch(int number, void (*handler)(int number));

/* Leaves the signals of the terminal to the program, which gets them, too. */
void launch_leave_signals(void);

/*
 * Ignores the signals that would end this process, but for SIGINT, SIGQUIT, faults and SIGKILL. The
 * program does not inherit that.
 */
void launch_outlive_signals(void);

/* Returns a descriptor of @log, emptied, or of standard error for NULL; exits with status 2. */
int launch_open_log(const char *log);

/* Writes @size bytes; returns false if they cannot be written. */
bool launch_write(int fd, const char *bytes, size_t size);

/* fathom_profile_write_fn: the same to the descriptor at @fd, an int. */
int launch_write_piece(void *fd, const void *bytes, size_t size);

/* Ends as a program has whose status waitpid(2) gave, without a core of our own. */
int launch_end_as(int status);

/* Adds process @pid to *@pids. */
void launch_add_pid(int32_t pid, int32_t **pids, size_t *n);
/* Adds the processes of @text, "PID[,PID]...", to *@pids; exits with status 2 if it is wrong. */
void launch_add_pids(const char *text, int32_t **pids, size_t *n);

/* Returns the enum fathom_profile_method of an option; exits with status 2 if there is none. */
uint32_t launch_parse_method(const char *text);
/* Returns the name of a method that has sampled. */
const char *launch_method_name(uint32_t method);

#endif
