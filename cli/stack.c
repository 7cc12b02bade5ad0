/* SPDX-License-Identifier: MIT */
/* fathom stack: how the threads of a process or core got where they are. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/json.h"
#include "cli/out.h"
#include "cli/print.h"

enum {
	OPT_TID = OPT_VERB,
	OPT_MAX_FRAMES,
	OPT_STOP,
	OPT_REGISTERS,
	OPT_NAMES_ONLY,
	OPT_NO_DEMANGLE,
};

static const struct verb_option options[] = {
	{ OPT_TID, "tid", "TID", "only this thread; may be repeated" },
	{ OPT_MAX_FRAMES, "max-frames", "N", "frames of each thread (default 10000)" },
	{ OPT_STOP, "stop", "=auto|never|all",
	  "which threads may be stopped, for microseconds: those that need it (default), none, or "
	  "all of them at one moment" },
	{ OPT_REGISTERS, "registers", NULL, "print each thread's registers, too" },
	{ OPT_NAMES_ONLY, "names-only", NULL, "no files, lines or inlined callers" },
	{ OPT_NO_DEMANGLE, "no-demangle", NULL, "print names as they are linked" },
	{ 0, NULL, NULL, NULL },
};

static const char usage[] =
	"Usage: fathom stack [OPTION]... TARGET\n"
	"Print the stack of each thread of TARGET, the number of a process or the path of\n"
	"a core: what called what, the innermost function first, and what the thread\n"
	"waits for. A process is not stopped if its threads sleep; a thread that runs is,\n"
	"for some microseconds.\n";

static const struct verb_options stack_options = {
	.verb = "stack",
	.usage = usage,
	.options = options,
	.common = OPTIONS_TARGET | OPTIONS_JSON | OPTIONS_NO_CACHE | OPTIONS_CACHE_DIR |
		  OPTIONS_DEBUG | OPTIONS_EXE | OPTIONS_MEMORY | OPTIONS_THREADS,
	.end = "Exit status: 0 all stacks are whole; 1 some end before the entry of their\n"
	       "thread, each says why; 2 usage, or TARGET cannot be read.\n",
};

struct stack {
	struct common common;
	struct fathom_stack_options options;
	struct out out;
	int32_t *tids;
	bool registers;
};

static uint32_t parse_stop(const char *text)
{
	static const char *const words[] = { "auto", "never", "all" };

	for (uint32_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcmp(text, words[i]) == 0)
			return i;
	complain("--stop", "is auto, never or all", NULL);
	exit(EXIT_USAGE);
}

static void add_tid(struct stack *v, const char *text)
{
	v->tids = must(realloc(v->tids, (v->options.n_tids + 1) * sizeof *v->tids));
	v->tids[v->options.n_tids++] = (int32_t)parse_count("--tid", text, INT32_MAX);
	v->options.tids = v->tids;
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
		case OPT_STOP:
			v->options.stop = parse_stop(optarg);
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
	common_take_arguments(&v->common, "stack", argc - optind, argv + optind);
	if (v->common.n_arguments)
		complain_lacking("stack", "one TARGET is wanted, and nothing behind it");
}

/* Writes @value with all digits of the machine's addresses, as eu-stack does. */
static void print_address(struct out *o, uint64_t value, bool is_wide)
{
	char text[24];

	(void)snprintf(text, sizeof text, is_wide ? "0x%016llx" : "0x%08llx",
		       (unsigned long long)value);
	out_str(o, text);
}

static bool is_wide(const struct fathom_thread *t)
{
	return t->registers.machine != 3; /* EM_386 */
}

/* Returns the word for a state of proc_pid_stat(5). */
static const char *state_word(char state)
{
	switch (state) {
	case 'R':
		return "running";
	case 'S':
		return "sleeping";
	case 'D':
		return "in uninterruptible sleep";
	case 'T':
		return "stopped";
	case 't':
		return "stopped by a debugger";
	case 'Z':
		return "a zombie";
	case 'X':
		return "dead";
	case 'I':
		return "idle";
	default:
		return NULL;
	}
}

/* Prints ", in CALL: WHAT FOR" of a thread in a system call. */
static void print_call(struct out *o, const struct fathom_thread *t)
{
	if (!t->syscall)
		return;
	out_str(o, " in ");
	out_str(o, t->syscall);
	if (!t->waits_for)
		return;
	out_str(o, ": ");
	out_text(o, t->waits_for, strlen(t->waits_for));
}

/* Prints the line above the frames. */
static void print_head(struct out *o, const struct fathom_thread *t)
{
	const char *state = state_word(t->state);

	out_str(o, "TID ");
	out_dec(o, (uint64_t)t->tid);
	out_char(o, ':');
	if (t->name) {
		out_str(o, " \"");
		out_text(o, t->name, strlen(t->name));
		out_char(o, '"');
	}
	if (state) {
		out_str(o, t->name ? ", " : " ");
		out_str(o, state);
		print_call(o, t);
	}
	if (t->signal) {
		out_str(o, " ended by SIG");
		out_str(o, sigabbrev_np(t->signal) ? sigabbrev_np(t->signal) : "?");
		if (t->fault_address) {
			out_str(o, " at ");
			out_hex(o, t->fault_address);
		}
	}
	out_char(o, '\n');
}

static void print_registers(struct out *o, const struct fathom_thread *t)
{
	const struct fathom_thread_registers *r = &t->registers;
	unsigned column = 0;

	for (uint32_t i = 0; i < r->n; i++) {
		const char *name = fathom_register_name(r->machine, i);

		if (!(r->known >> i & 1) || !name)
			continue;
		out_str(o, column % 3 ? "  " : "    ");
		for (size_t k = strlen(name); k < 3; k++)
			out_char(o, ' ');
		out_str(o, name);
		out_char(o, ' ');
		print_address(o, r->value[i], is_wide(t));
		if (++column % 3 == 0)
			out_char(o, '\n');
	}
	if (column % 3)
		out_char(o, '\n');
}

/* Prints frame @i; @guess: the trust of the first frame that is not exact, if one came. */
static void print_frame(struct out *o, const struct fathom_thread *t, size_t i, uint8_t guess)
{
	const struct fathom_stack_frame *f = &t->frames[i];

	out_char(o, '#');
	out_dec(o, i);
	out_str(o, i < 10 ? "  " : " ");
	print_address(o, f->pc.address, is_wide(t));
	out_char(o, ' ');
	print_innermost(o, f->answer);
	if (guess) {
		out_str(o, f->trust >= FATHOM_TRUST_DECODED ? " [" : " [after ");
		out_str(o, fathom_trust_name((enum fathom_trust)(
				   f->trust >= FATHOM_TRUST_DECODED ? f->trust : guess)));
		out_char(o, ']');
	}
	out_char(o, '\n');
	print_inlined(o, f->answer, "      ");
}

/* The longest cycle of functions that is recognized as recursion. */
#define LONGEST_CYCLE 8

/* Returns how often the @length frames at @i stand there, one run behind the other. */
static size_t count_runs(const struct fathom_thread *t, size_t i, size_t length)
{
	size_t end = i + length;

	while (end < t->n_frames && t->frames[end].pc.address == t->frames[end - length].pc.address)
		end++;
	return (end - i) / length;
}

/* Finds recursion that begins at frame @i: returns its runs and their length; 1 run: none. */
static size_t find_recursion(const struct fathom_thread *t, size_t i, size_t *ret_length)
{
	for (size_t length = 1; length <= LONGEST_CYCLE; length++) {
		const size_t runs = count_runs(t, i, length);

		if (runs > 2) {
			*ret_length = length;
			return runs;
		}
	}
	*ret_length = 1;
	return 1;
}

/* Says that the @length frames before frame @i stand there @more times more. */
static void print_recursion(struct out *o, size_t length, size_t more)
{
	out_str(o, "    ... ");
	if (length > 1) {
		out_str(o, "these ");
		out_dec(o, length);
		out_str(o, " frames ");
	} else {
		out_str(o, "this frame ");
	}
	out_dec(o, more);
	out_str(o, " times more ...\n");
}

static const char *explain(uint8_t stop)
{
	switch (stop) {
	case FATHOM_STOP_NO_RULE:
		return "nothing says how to go on from here";
	case FATHOM_STOP_REGISTER:
		return "the caller's frame is found by a register that is not known";
	case FATHOM_STOP_UNREADABLE:
		return "the stack cannot be read here";
	case FATHOM_STOP_CHANGED:
		return "the thread ran on meanwhile";
	case FATHOM_STOP_LOOP:
		return "the next frame would not be further out";
	default:
		return "more frames than --max-frames";
	}
}

/* Says why the stack ends before the entry of its thread. */
static void print_end(struct out *o, const struct fathom_thread *t)
{
	if (t->n_frames && t->stop != FATHOM_STOP_ENTRY) {
		out_str(o, "    (");
		out_str(o, fathom_stop_name((enum fathom_stop)t->stop));
		out_str(o, ": ");
		out_str(o, explain(t->stop));
		out_str(o, ")\n");
	}
	if (!t->n_frames || t->reason) {
		out_str(o, "    (");
		out_str(o, fathom_reason_name((enum fathom_reason)t->reason));
		if (t->failed) {
			out_str(o, ": ");
			out_text(o, t->failed, strlen(t->failed));
		}
		out_str(o, ")\n");
	}
}

static void print_thread(struct stack *v, const struct fathom_thread *t)
{
	struct out *o = &v->out;
	uint8_t guess = 0;
	size_t length;

	print_head(o, t);
	if (v->registers)
		print_registers(o, t);
	for (size_t i = 0; i < t->n_frames;) {
		const size_t runs = find_recursion(t, i, &length);

		for (size_t k = 0; k < length; k++) {
			if (!guess && t->frames[i + k].trust >= FATHOM_TRUST_DECODED)
				guess = t->frames[i + k].trust;
			print_frame(o, t, i + k, guess);
		}
		if (runs > 1)
			print_recursion(o, length, runs - 1);
		i += runs * length;
	}
	print_end(o, t);
}

static void json_registers(struct out *o, const struct fathom_thread *t)
{
	const struct fathom_thread_registers *r = &t->registers;
	bool any = false;

	json_key(o, "registers");
	out_char(o, '{');
	for (uint32_t i = 0; i < r->n; i++) {
		const char *name = fathom_register_name(r->machine, i);

		if (!(r->known >> i & 1) || !name)
			continue;
		if (any)
			out_char(o, ',');
		json_address(o, name, r->value[i]);
		any = true;
	}
	out_char(o, '}');
}

static void json_stack_frame(struct out *o, const struct fathom_stack_frame *f)
{
	out_char(o, '{');
	json_address(o, "pc", f->pc.address);
	out_char(o, ',');
	if (f->sp == FATHOM_NO_ADDRESS)
		out_str(o, "\"sp\":null");
	else
		json_address(o, "sp", f->sp);
	out_char(o, ',');
	json_string(o, "trust", fathom_trust_name((enum fathom_trust)f->trust));
	out_char(o, ',');
	print_members(o, f->answer);
	out_char(o, '}');
}

/* Writes the system call: its name, else its number. */
static void json_call(struct out *o, const struct fathom_thread *t)
{
	json_string(o, "syscall", t->syscall);
	out_char(o, ',');
	json_string(o, "waits_for", t->waits_for);
	out_char(o, ',');
	json_count(o, "owner", (uint64_t)t->owner);
}

static void json_thread(struct out *o, const struct fathom_thread *t)
{
	const char state[2] = { t->state, '\0' };

	out_char(o, '{');
	json_count(o, "pid", (uint64_t)t->pid);
	out_char(o, ',');
	json_count(o, "tid", (uint64_t)t->tid);
	out_char(o, ',');
	json_string(o, "name", t->name);
	out_char(o, ',');
	json_string(o, "state", state);
	out_char(o, ',');
	json_call(o, t);
	out_char(o, ',');
	json_count(o, "signal", (uint64_t)t->signal);
	out_char(o, ',');
	if (t->fault_address)
		json_address(o, "fault_address", t->fault_address);
	else
		out_str(o, "\"fault_address\":null");
	out_char(o, ',');
	json_registers(o, t);
	out_str(o, ",\"frames\":[");
	for (size_t i = 0; i < t->n_frames; i++) {
		if (i)
			out_char(o, ',');
		json_stack_frame(o, &t->frames[i]);
	}
	out_str(o, "],");
	json_string(o, "stop", fathom_stop_name((enum fathom_stop)t->stop));
	out_char(o, ',');
	json_string(o, "reason", fathom_reason_name((enum fathom_reason)t->reason));
	out_char(o, ',');
	json_string(o, "why", t->failed);
	out_str(o, ",\"restarted\":");
	out_str(o, t->was_restarted ? "true" : "false");
	out_str(o, ",\"pause_us\":");
	out_dec(o, (t->pause_ns + 999) / 1000);
	out_str(o, "}\n");
}

static int print_stacks(void *verb, struct fathom_target *target)
{
	struct stack *v = verb;
	struct fathom_stacks *stacks;
	struct fathom_errinfo info;
	bool is_partial = false;
	size_t next = 0;

	if (fathom_stacks_capture(target, &v->options, &stacks, &info)) {
		common_print_notes(target, &next);
		complain_error(&info);
		return EXIT_USAGE;
	}
	common_check(target);
	common_print_notes(target, &next);
	out_init(&v->out);
	for (size_t i = 0; i < fathom_stacks_count(stacks); i++) {
		const struct fathom_thread *t = fathom_stacks_get(stacks, i);

		is_partial |= t->stop != FATHOM_STOP_ENTRY;
		if (v->common.json)
			json_thread(&v->out, t);
		else
			print_thread(v, t);
	}
	out_flush(&v->out);
	out_deinit(&v->out);
	fathom_stacks_free(stacks);
	free(v->tids);
	return common_status(&v->out, is_partial);
}

int verb_stack(int argc, char **argv)
{
	struct stack v = { .options = { .size = sizeof v.options } };

	common_init(&v.common);
	parse_options(&v, argc, argv);
	return common_run(&v.common, print_stacks, &v);
}
