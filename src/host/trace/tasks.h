/* SPDX-License-Identifier: MIT */
/* The threads and processes that a run follows, and what is posted of them. */
#ifndef FATHOM_TRACE_TASKS_H
#define FATHOM_TRACE_TASKS_H

#include "host/syscalls/syscall_files.h"
#include "host/syscalls/chosen_paths.h"
#include "host/trace/syscall_filter.h"
#include "host/trace/syscall_inject.h"
#include "host/trace/syscall_format_options.h"
#include "host/trace/syscall_set.h"
#include "host/trace/syscall_stacks.h"
#include "host/trace/wakeup.h"
#include "host/trace/load.h"
#include "host/trace/rings.h"

/* The longest text of an event. */
#define FATHOM_FOLLOW_TEXT 4400

/* A thread. */
struct fathom_follow_task {
	pid_t tid;
	uint32_t ring; /* FATHOM_NO_RING: none */
	uint8_t state; /* enum fathom_task_state */
	bool is_ending;
	int ending_status;
	struct fathom_traced *process;
	struct fathom_stopped_call *call; /* that it is in; NULL: none that counts */
	bool moves_code;                  /* the call that it is in, told or not, may do so */
	uint32_t *n_injected;  /* its calls in the set of each injection; NULL: none yet */
	int64_t resumes_at;    /* when it may go on, by fathom_now_ns(); 0: it runs */
	int resumes_with;      /* the signal that it gets then */
	int injected;          /* the signal that it was sent for a call; 0: none, or taken */
	bool has_no_new_privs; /* it has asked for that, or inherited it (PR_SET_NO_NEW_PRIVS) */
	bool is_strict;        /* the tracer plays strict mode for it (seccomp_turn.h) */
	bool is_killed;        /* strict mode has ended it */
};

/* The states of a thread that is to be stopped. */
enum fathom_task_state {
	FATHOM_TASK_RUNS,       /* it runs, or its event is handled later */
	FATHOM_TASK_STOPPED,    /* it goes on when it is let go */
	FATHOM_TASK_GROUP_STOP, /* it stays stopped, by a signal of its own, until SIGCONT */
	FATHOM_TASK_STUCK       /* the kernel does not stop it: it waits for a child of vfork() */
};

/* A wait status of a thread, to be handled later. */
struct fathom_follow_event {
	pid_t tid;
	int status;
};

/* System calls that are traced. */
struct fathom_follow_calls {
	struct fathom_syscall_set set;
	struct fathom_syscall_options options;
	struct fathom_syscall_format_options format_options;
	struct fathom_syscall_filter *filter; /* by which the program stops; NULL: at each call */
	bool tells_entries;
	struct fathom_syscall_files files; /* what is told of descriptors */
	struct fathom_chosen_paths
		paths; /* of which only calls count that refer to one; none: all */
	struct {
		FATHOM_ARRAY_OF(struct fathom_injection);
	} injections;
	bool is_all; /* of functions nothing is reported */
};

struct fathom_follow {
	struct fathom_loader loader;
	const struct fathom_follow_calls *calls; /* NULL: none */
	struct fathom_syscall_stacks *stacks;    /* by which calls are made; NULL: not read */
	struct fathom_rings *rings;
	struct fathom_liveness liveness;
	struct fathom_tracee waiter; /* of which only the notes of waits are used */
	/* Of processes, and of what is loaded: the reader answers what programs ask, too. */
	pthread_mutex_t lock;
	struct {
		FATHOM_ARRAY_OF(struct fathom_traced *);
	} processes;
	struct {
		FATHOM_ARRAY_OF(struct fathom_follow_task);
	} tasks;
	struct {
		FATHOM_ARRAY_OF(struct fathom_follow_event);
	} events; /* that were noted */
	uint32_t n_numbers;
	size_t n_seized; /* threads of the process that is attached to */
	uint32_t flags;  /* FATHOM_TRACE_ */
	uint64_t wait_ticks;
	bool has_run;       /* exec() has succeeded, or programs were attached to */
	size_t n_delayed;   /* tasks that are held up */
	uint64_t system_ns; /* that the kernel has worked for the process of the last event */
	pid_t held;         /* the last thread of a process, about to end; 0: none */
	_Atomic uint64_t n_rounds; /* of the reader, each of which takes all there is, unless
				      records are spooled */
	struct fathom_wakeup wakeup;
	_Atomic bool wants_to_leave; /* the programs; said before the wakeup is sent */
	uint64_t longest_stop_ns;    /* for which threads were stopped to attach or leave */
	pid_t first;
	int status;                     /* of the first process */
	const struct fathom_user *user; /* that it runs as; NULL: the calling process's */
};

/* How threads are traced. */
int fathom_follow_options(const struct fathom_follow *f);

/* Returns the task of thread @tid; NULL: it is not followed. */
struct fathom_follow_task *fathom_follow_find(const struct fathom_follow *f, pid_t tid);

/* Returns a process without a number of the system's yet; NULL without memory. */
struct fathom_traced *fathom_follow_add_process(struct fathom_follow *f);
void fathom_follow_remove_process(struct fathom_follow *f, struct fathom_traced *p);

/* Tells the runtime in @p how rings are used. */
void fathom_follow_set_up(const struct fathom_follow *f, struct fathom_traced *p);

/* Begins a post in the order of @task, whose thread is stopped. */
struct fathom_post fathom_follow_post_at(const struct fathom_follow_task *task, uint8_t type,
					 const char *text);
/* Posts that the ring of @task is not used any more, and that it has ended if there is a @text. */
void fathom_follow_release_ring(struct fathom_follow *f, struct fathom_follow_task *task,
				const char *text, int status);
/* Posts that the program of @task is not recorded, and why. */
void fathom_follow_note(struct fathom_follow *f, const struct fathom_follow_task *task,
			const char *why);
/*
 * Gives @task, whose thread is stopped before its first instruction or where it was attached to, a
 * ring, and posts its beginning, in the order of @parent, as @text. @stack is where its stack
 * begins; 0: at its stack pointer.
 */
void fathom_follow_begin_task(struct fathom_follow *f, struct fathom_follow_task *task,
			      const struct fathom_follow_task *parent, bool is_copy, uint64_t stack,
			      const char *text);
/* Forgets @task, which has ended; another one takes its place. */
void fathom_follow_forget_task(struct fathom_follow *f, struct fathom_follow_task *task);
/* Forgets the threads of @p. */
void fathom_follow_forget_tasks(struct fathom_follow *f, const struct fathom_traced *p);

/* Queues wait statuses of other threads that arrive while waiting for a thread of @t. */
void fathom_follow_listen(struct fathom_follow *f, struct fathom_tracee *t);
/* Notes what waitpid(2) has said of thread @tid. @data is the struct fathom_follow. */
void fathom_follow_note_event(void *data, pid_t tid, int status);

#endif
