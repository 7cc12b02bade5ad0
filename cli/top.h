/* SPDX-License-Identifier: MIT */
/*
 * fathom top: the state of the verb, which three threads share. The samples are the recorder's: so
 * it never waits for others, who may have no processor for long. Between rounds it makes the
 * pictures that are asked for, and passes places on to be named.
 */
#ifndef FATHOM_CLI_TOP_H
#define FATHOM_CLI_TOP_H

#include <pthread.h>
#include <stdatomic.h>

#include "cli/common.h"
#include "cli/top_names.h"
#include "cli/top_view.h"

/*
 * Pictures are of a time that ended so long ago, in ns: waits that go on are told four times a
 * second, one that is new the next time.
 */
#define TOP_LATE_NS 600000000

/* Facts for the head of a picture. */
struct top_facts {
	uint64_t until;      /* of samples up to this, monotonic */
	uint32_t method;     /* enum fathom_profile_method */
	uint32_t n_left_out; /* threads without files for them, or that may not be observed */
	uint64_t lost;
	uint64_t throttled;
	double own; /* processors that fathom itself has used since the last picture */
	bool is_kernel_hidden;
	bool has_ended;
	const char *why; /* it has ended early, or how PROGRAM has; "": all processes have ended */
	int exit_status; /* of PROGRAM; -1: none is known */
};

/* A picture that is asked for. */
struct top_request {
	const struct top_choice *choice;
	struct top_view *view;
	struct top_facts *facts;
	/* The picture is to have names of all places that are known when it is asked for. */
	bool wants_names;
	bool is_seen;
	uint64_t due; /* no longer: monotonic */
	uint64_t generation;
	size_t n_places;
};

struct top {
	struct common common;
	struct fathom *session;
	struct fathom_record_options options;
	int32_t *pids;
	size_t n_pids;
	bool is_own;     /* they are all of the user */
	double interval; /* seconds */
	uint32_t count;  /* pictures; 0: no end */
	size_t n_rows;   /* of each list that is printed */
	struct top_choice choice;
	char target[96];    /* what is recorded, in words */
	const char *event;  /* that is sampled */
	int32_t streams[3]; /* of PROGRAM */
	bool has_told_end;  /* a picture has said that it is over */

	int signals; /* descriptor of the signals that are taken between pictures */

	pthread_t recorder;
	pthread_t namer;
	struct top_names names;
	atomic_bool is_over; /* all threads are to end */

	/* Of the recorder, and when that has ended, of the first thread. */
	struct top_samples samples;
	struct fathom_record_result result; /* of the recording that goes on */
	uint64_t lost;                      /* of recordings before that one */
	uint64_t throttled;
	int32_t program; /* PID of PROGRAM; 0: none */
	int status;      /* of PROGRAM, as waitpid(2) has it */
	bool has_status;
	char how[40];   /* how PROGRAM has ended, in words */
	bool is_new;    /* the recording has no samples yet */
	uint64_t ended; /* monotonic; 0: it has not */
	fathom_err err;
	struct fathom_errinfo info;

	pthread_mutex_t lock; /* of all that follows; it is held for moments only */
	pthread_cond_t changed;
	bool has_started;
	bool has_ended;
	struct top_request *request; /* NULL: none */
	int file;                    /* what was recorded so far, in memory; -1: none */
	uint64_t n_file;             /* bytes */

	uint64_t used;    /* processor time of this process at the last picture, ns */
	uint64_t used_at; /* monotonic */
};

/*
 * Makes the picture of now. With @wants_names, it has all names that it needs, unless they take
 * seconds.
 */
void top_take(struct top *t, bool wants_names, struct top_view *ret_view,
	      struct top_facts *ret_facts);

/* Returns the word for the method of @f. */
const char *top_method(const struct top_facts *f);

/*
 * Writes what was recorded so far to a new file of the working directory, and its name to @name.
 * Returns NULL, or why that failed.
 */
const char *top_write_profile(struct top *t, char *name, size_t size);
/* Writes it as a page for a browser likewise, with all names: that takes its time. */
const char *top_write_page(struct top *t, char *name, size_t size);

/* Prints pictures as text or JSON until it is over; returns the exit status. */
int top_text_run(struct top *t);

/*
 * Shows pictures on the terminal until somebody quits; returns false if the terminal cannot do it,
 * or this build.
 */
bool top_screen_run(struct top *t);

/* Waits until @fd of signals or @input, which may be -1, can be read, or until @due (top_now()). */
void top_wait(int fd, int input, uint64_t due, bool *ret_signal, bool *ret_input);

/*
 * Prepares the recording of a PROGRAM: its standard output and error go to @output, or nowhere for
 * NULL, but for an error that is no terminal; it does not read from a terminal. Exits with status 2
 * if @output cannot be written.
 */
void top_program_open(struct top *t, const char *output);

/* Returns whether the program has ended, and leaves its status to whoever waits for it. */
bool top_program_has_ended(const struct top *t);

/*
 * Takes the status of the program when a recording is over. If it runs on, prepares another
 * recording of it and returns true.
 */
bool top_program_follow(struct top *t);

/* Ends a program that runs on by SIGTERM; waits for some seconds until it has ended. */
void top_program_end(struct top *t);

/* Stops the process as SIGTSTP does, until it is continued. */
void top_stop(void);

#endif
