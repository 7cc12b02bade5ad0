/* SPDX-License-Identifier: MIT */
/*
 * Types that the parts of the verb stack share: a run of it, blocks of threads, and how they are
 * printed.
 */
#ifndef FATHOM_CLI_STACK_H
#define FATHOM_CLI_STACK_H

#include "cli/common.h"
#include "cli/frames_option.h"
#include "cli/out.h"
#include "cli/source_printer.h"

/* A frame of a thread in the kernel. */
struct kernel_frame {
	const char *text; /* as the kernel wrote it: "SYMBOL+0xOFFSET/0xSIZE [MODULE]" */
	size_t size;      /* bytes of text */
	size_t answer;    /* number of its answer, NO_ANSWER without one */
};

#define NO_ANSWER SIZE_MAX

/* The stack of one thread in the kernel. */
struct kernel_stack {
	int32_t tid;
	char *text; /* of /proc/PID/task/TID/stack; NULL: not read */
	struct kernel_frame *frames;
	size_t n;
	const char *failed; /* why there are no frames; NULL: they are there */
};

/* The kernel's stacks of a process. */
struct kernel_stacks {
	int proc; /* descriptor of /proc/PID, -1: none */
	struct kernel_stack *items;
	size_t n;
	struct fathom_target *kernel; /* NULL: there are no answers */
	struct fathom_answers *answers;
};

/* One run of the verb. */
struct stack {
	struct common common;
	struct fathom_stack_options options;
	struct out out;
	struct source_printer source;
	int32_t *tids;
	uint32_t samples;
	double every; /* seconds between samples */
	bool registers;
	bool kernel;
	bool fold;
	bool rules;
	bool merge;
	bool stop_is_given;
	bool rank_is_given;
	uint32_t rank; /* that threads are said to be of */
	enum frames_option frames;
	struct kernel_stacks kernel_stacks;
};

/* Threads that are printed as one. */
struct stack_block {
	/* Facts that all of them share; frames are those of the first. */
	struct fathom_thread thread;
	const int32_t *tids;
	size_t n;
	const struct kernel_stack *kernel; /* NULL: not asked for */
};

/* Print one block. */
void stack_print_text(struct stack *v, const struct stack_block *b);
void stack_print_json(struct stack *v, const struct stack_block *b);

/* Print why a thread died; the second one writes null if @d is NULL. */
void stack_print_death(struct out *o, const struct fathom_death *d);
void stack_json_death(struct out *o, const struct fathom_death *d);

/*
 * Calls @print for each thread of @stacks, or with --fold for each set of threads whose frames have
 * the same pcs, in the order of their first threads.
 */
void stack_for_each_block(struct stack *v, const struct fathom_stacks *stacks,
			  void (*print)(struct stack *v, const struct stack_block *b));

/* Samples @target and prints its stacks as flame graphs are made of; returns the exit status. */
int stack_sample(struct stack *v, struct fathom_target *target);

/* Prints the unwind rules of @target, a file; returns the exit status. */
int stack_print_rules(struct stack *v, struct fathom_target *target);

/* Opens /proc/@pid, before the process is opened as a target. */
void kernel_stacks_open(struct kernel_stacks *k, int pid);
void kernel_stacks_close(struct kernel_stacks *k);

/* Reads the stacks of all threads in the kernel, before those of the program are read. */
void kernel_stacks_read(struct kernel_stacks *k);

/*
 * Reads those of the threads of @stacks again, and drops what is not as it was before; @stacks may
 * be NULL. Splits the others into frames.
 */
void kernel_stacks_split(struct kernel_stacks *k, const struct fathom_stacks *stacks);

/*
 * Asks the kernel for what stands at the frames. A frame whose symbol names
 * several functions, or is of a module, keeps the kernel's text.
 */
void kernel_stacks_name(struct kernel_stacks *k, const struct stack *v);

/* Returns the stack of thread @tid, NULL if it is not known. */
const struct kernel_stack *kernel_stacks_find(const struct kernel_stacks *k, int32_t tid);

/* Returns the answer for @f, or NULL. */
const struct fathom_answer *kernel_frame_answer(const struct kernel_stacks *k,
						const struct kernel_frame *f);

/* Prints the stack of the kernel thread of @state; returns the exit status. */
int stack_print_kernel_thread(struct stack *v, const struct fathom_process_state *state);

/*
 * Says which threads of @stacks wait for each other in a circle, if they still do: it reads the
 * threads of the circle once more.
 */
void stack_print_deadlocks(struct stack *v, struct fathom_target *target,
			   const struct fathom_stacks *stacks);

/* Merges the files of the arguments, and prints the tree; returns the exit status. */
int stack_merge(struct stack *v);

#endif
