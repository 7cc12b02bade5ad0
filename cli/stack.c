/* SPDX-License-Identifier: MIT */
/* fathom stack: how the threads of a process or core got where they are. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/stack.h"

enum {
	OPT_TID = OPT_VERB,
	OPT_MAX_FRAMES,
	OPT_FRAMES,
	OPT_STOP,
	OPT_STOP_TIMEOUT,
	OPT_FOLD,
	OPT_KERNEL,
	OPT_SAMPLES,
	OPT_EVERY,
	OPT_REGISTERS,
	OPT_RULES,
	OPT_RANK,
	OPT_MERGE,
	OPT_NAMES_ONLY,
	OPT_NO_DEMANGLE,
};

static const struct verb_option options[] = {
	{ OPT_TID, "tid", "TID", "only this thread; may be repeated" },
	{ OPT_MAX_FRAMES, "max-frames", "N", "frames of each thread (default 10000)" },
	{ OPT_FRAMES, "frames", "KIND", "of scripts: merged, script, native or all" },
	{ OPT_STOP, "stop", "=auto|never|all", "threads to stop: those that need it, none, all" },
	{ OPT_STOP_TIMEOUT, "stop-timeout", "SECONDS",
	  "for threads without a processor; default 10" },
	{ OPT_FOLD, "fold", NULL, "print threads with equal stacks once" },
	{ OPT_KERNEL, "kernel", NULL, "print the stacks in the kernel, too, as root" },
	{ OPT_SAMPLES, "samples", "N", "read the stacks N times: for flame graphs" },
	{ OPT_EVERY, "every", "S", "seconds between samples (default 0.1)" },
	{ OPT_REGISTERS, "registers", NULL, "print each thread's registers, too" },
	{ OPT_RULES, "rules", NULL, "of a file: print how callers are found" },
	{ OPT_RANK, "rank", "N", "with --json: the number of the process, to merge" },
	{ OPT_MERGE, "merge", NULL, "print stacks of many processes as one tree" },
	{ OPT_NAMES_ONLY, "names-only", NULL, "no files, lines or inlined callers" },
	{ OPT_NO_DEMANGLE, "no-demangle", NULL, "print names as they are linked" },
	{ 0, NULL, NULL, NULL },
};

static const char usage[] =
	"Usage: fathom stack [OPTION]... TARGET\n"
	"       fathom stack --rules [--json] FILE [ADDRESS]...\n"
	"       fathom stack --merge [--json] [FILE]...\n"
	"Print the stack of each thread of TARGET, the number of a process or the path\n"
	"of a core or snapshot: what called what, the innermost function first, and\n"
	"what the thread waits for. Threads that sleep are not stopped; one that runs\n"
	"is, for some microseconds.\n";

static const struct verb_options stack_options = {
	.verb = "stack",
	.usage = usage,
	.options = options,
	.common = OPTIONS_TARGET | OPTIONS_JSON | OPTIONS_NO_CACHE | OPTIONS_CACHE_DIR |
		  OPTIONS_DEBUG | OPTIONS_EXE | OPTIONS_MEMORY | OPTIONS_THREADS | OPTIONS_COLOR |
		  OPTIONS_SOURCE,
	.end = "Exit status: 0 all stacks are whole; 1 some end before the entry of their\n"
	       "thread, each says why; 2 usage, or TARGET cannot be read.\n",
};

static void add_tid(struct stack *v, const char *text)
{
	v->tids = must(realloc(v->tids, (v->options.n_tids + 1) * sizeof *v->tids));
	v->tids[v->options.n_tids++] = (int32_t)parse_count("--tid", text, INT32_MAX);
	v->options.tids = v->tids;
}

/* Outermost frames that are printed of a stack which is too long to be printed whole. */
#define OUTER_FRAMES 50

/* Complains and exits if options contradict each other. */
static void check_options(struct stack *v)
{
	const char *other = v->common.json           ? "--json"
			    : v->fold                ? "--fold"
			    : v->registers           ? "--registers"
			    : v->common.source_lines ? "--source"
						     : NULL;
	const char *wrong = NULL;
	const char *why = "goes with --samples only";

	if (v->samples && other) {
		wrong = other;
		why = "does not go with --samples, which prints counted stacks";
	} else if (v->rank_is_given && !v->common.json) {
		wrong = "--rank";
		why = "goes with --json, whose lines --merge reads";
	} else if (v->every > 0 && !v->samples) {
		wrong = "--every";
	} else if (v->fold && v->registers) {
		wrong = "--registers";
		why = "does not go with --fold: each thread has its own";
	}
	if (wrong) {
		complain(wrong, why, "try 'fathom stack --help'");
		exit(EXIT_USAGE);
	}
	common_check_source(&v->common, v->options.flags & FATHOM_STACK_NAMES_ONLY,
			    NAMES_ONLY_HAS_NO_SOURCE);
	if (!(v->every > 0))
		v->every = 0.1;
	v->options.waiting = common_tell_waiting;
	v->options.waiting_data = &v->common;
	if (!v->options.max_frames && !v->samples)
		v->options.outer_frames = OUTER_FRAMES;
}

/* Takes the files that are merged. */
static void take_files(struct stack *v, int n, char **files)
{
	if (v->common.target || v->rules || v->samples || v->fold || v->kernel ||
	    v->rank_is_given || v->registers || v->options.n_tids || v->options.max_frames ||
	    v->stop_is_given || v->options.flags || v->common.source_lines)
		complain_lacking("stack", "--merge takes files and --json only");
	v->common.arguments = files;
	v->common.n_arguments = n;
}

static void parse_options(struct stack *v, int argc, char **argv)
{
	struct option_reader reader;
	int opt;

	option_reader_init(&reader, &stack_options);
	while ((opt = option_reader_next(&reader, &v->common, argc, argv)) != -1) {
		switch (opt) {
		case OPT_TID:
			add_tid(v, optarg);
			break;
		case OPT_MAX_FRAMES:
			v->options.max_frames = parse_count("--max-frames", optarg, 1u << 24);
			break;
		case OPT_FRAMES:
			v->frames = parse_frames(optarg);
			if (v->frames == FRAMES_NATIVE)
				v->options.flags |= FATHOM_STACK_NATIVE;
			break;
		case OPT_STOP:
			v->options.stop = parse_stop(optarg);
			v->stop_is_given = true;
			break;
		case OPT_STOP_TIMEOUT:
			v->options.deadline_ms =
				(uint32_t)(1000 * parse_seconds("--stop-timeout", optarg));
			break;
		case OPT_FOLD:
			v->fold = true;
			break;
		case OPT_KERNEL:
			v->kernel = true;
			break;
		case OPT_SAMPLES:
			v->samples = parse_count("--samples", optarg, 100000000);
			break;
		case OPT_EVERY:
			v->every = parse_seconds("--every", optarg);
			break;
		case OPT_RULES:
			v->rules = true;
			break;
		case OPT_RANK:
			v->rank = parse_between("--rank", optarg, 0, INT32_MAX);
			v->rank_is_given = true;
			break;
		case OPT_MERGE:
			v->merge = true;
			break;
		case OPT_REGISTERS:
			v->registers = true;
			break;
		case OPT_NAMES_ONLY:
			v->options.flags |= FATHOM_STACK_NAMES_ONLY;
			break;
		case OPT_NO_DEMANGLE:
			v->options.flags |= FATHOM_STACK_NO_DEMANGLE;
			break;
		}
	}
	if (v->merge) {
		take_files(v, argc - optind, argv + optind);
		return;
	}
	common_take_arguments(&v->common, "stack", argc - optind, argv + optind);
	if (v->common.n_arguments && !v->rules)
		complain_lacking("stack", "one TARGET is wanted, and nothing after it");
	check_options(v);
}

/* Complains and exits if the options want what @target is not. */
static void check_target(const struct stack *v, const struct fathom_target *target)
{
	struct fathom_target_info info;
	const char *wanted = v->samples         ? "--samples"
			     : v->kernel        ? "--kernel"
			     : v->stop_is_given ? "--stop"
						: NULL;

	fathom_target_get_info(target, &info);
	if (!wanted || info.kind == FATHOM_TARGET_PROCESS)
		return;
	complain(wanted, "only a process has that: this TARGET does not run", NULL);
	exit(EXIT_USAGE);
}

/* Complains about @info, of a target whose stacks could not be read. */
static void complain_stacks(const struct stack *v, const struct fathom_errinfo *info)
{
	char tid[16];

	if (info->err == FATHOM_E_NOT_FOUND && v->options.n_tids) {
		(void)snprintf(tid, sizeof tid, "%d", (int)info->offset);
		complain(tid, info->what, "without --tid all threads are printed");
	} else if (info->err == FATHOM_E_UNSUPPORTED) {
		complain(v->common.target, info->what, NULL);
	} else {
		complain_error(info);
	}
}

static void print_block(struct stack *v, const struct stack_block *b)
{
	if (v->common.json)
		stack_print_json(v, b);
	else
		stack_print_text(v, b);
}

/* Returns whether a thread of @stacks lacks frames that were asked for. */
static bool is_partial(const struct stack *v, const struct fathom_stacks *stacks)
{
	const struct kernel_stack *k = NULL;
	bool is_partial = false;

	for (size_t i = 0; i < fathom_stacks_count(stacks); i++) {
		const struct fathom_thread *t = fathom_stacks_get(stacks, i);

		if (v->kernel)
			k = kernel_stacks_find(&v->kernel_stacks, t->tid);
		is_partial |= (t->stop != FATHOM_STOP_ENTRY && !t->is_kernel_worker) ||
			      (v->kernel && (!k || k->failed));
	}
	return is_partial;
}

/* Reads and prints the stacks once; returns the exit status. */
static int print_once(struct stack *v, struct fathom_target *target)
{
	struct fathom_stacks *stacks;
	struct fathom_errinfo info;
	size_t next = 0;
	fathom_err err;
	bool lacks;

	if (v->kernel)
		kernel_stacks_read(&v->kernel_stacks);
	err = fathom_stacks_capture(target, &v->options, &stacks, &info);
	common_print_notes(target, &next);
	if (err) {
		complain_stacks(v, &info);
		return EXIT_USAGE;
	}
	if (v->kernel) {
		kernel_stacks_split(&v->kernel_stacks, stacks);
		kernel_stacks_name(&v->kernel_stacks, v);
	}
	common_check(target);
	common_out_init(&v->common, &v->out);
	source_init(&v->source, &v->common, target, "        ");
	stack_for_each_block(v, stacks, print_block);
	source_deinit(&v->source);
	if (!v->common.json)
		stack_print_deadlocks(v, target, stacks);
	out_flush(&v->out);
	out_deinit(&v->out);
	lacks = is_partial(v, stacks);
	fathom_stacks_free(stacks);
	return common_status(&v->out, lacks);
}

static int print_stacks(void *verb, struct fathom_target *target)
{
	struct stack *v = verb;
	int status;

	if (v->rules)
		return stack_print_rules(v, target);
	check_target(v, target);
	status = v->samples ? stack_sample(v, target) : print_once(v, target);
	if (v->kernel)
		kernel_stacks_close(&v->kernel_stacks);
	return status;
}

/* Returns the number of the process that the TARGET names; 0: it names something else. */
static int target_pid(const struct stack *v)
{
	const char *text = v->common.target;
	char *end;
	long pid;

	if (v->common.target_kind == TARGET_FILE)
		return 0;
	if (strncmp(text, "pid:", 4) == 0)
		text += 4;
	pid = *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : 0;
	return pid > 0 && pid <= INT_MAX && !*end ? (int)pid : 0;
}

/* Prints the stack of the kernel thread of @state; returns the exit status. */
static int run_kernel_thread(struct stack *v, const struct fathom_process_state *state)
{
	if (v->kernel && !v->samples)
		return stack_print_kernel_thread(v, state);
	complain(v->common.target, "is a kernel thread: it has no stack but that in the kernel",
		 v->samples ? "--samples wants a process" : "--kernel prints it, as root");
	return EXIT_USAGE;
}

/* Complains that a process has ended, but for its number; returns the exit status. */
static int complain_zombie(const struct stack *v, const struct fathom_process_state *state)
{
	char why[96];

	(void)snprintf(why, sizeof why,
		       "is a zombie: it has ended, and its parent %d does not wait for it",
		       state->parent);
	complain(v->common.target, why, NULL);
	return EXIT_USAGE;
}

int verb_stack(int argc, char **argv)
{
	struct stack v = { .options = { .size = sizeof v.options } };
	struct fathom_process_state state = { .size = sizeof state };
	int status;
	int pid;

	common_init(&v.common);
	v.common.shows_progress = true;
	parse_options(&v, argc, argv);
	if (v.merge)
		return stack_merge(&v);
	pid = target_pid(&v);
	/* A process that cannot be read is complained of when it is opened. */
	if (pid)
		(void)fathom_process_state_read(pid, &state, NULL);
	if (state.is_kernel_thread) {
		status = run_kernel_thread(&v, &state);
	} else if (state.has_ended) {
		status = complain_zombie(&v, &state);
	} else {
		if (pid && v.kernel)
			kernel_stacks_open(&v.kernel_stacks, pid);
		status = common_run(&v.common, print_stacks, &v);
	}
	free(v.tids);
	return status;
}
