/* SPDX-License-Identifier: MIT */
/* Stacks as text: the shape of eu-stack, and more. */
#include <signal.h>
#include <string.h>

#include "cli/print.h"
#include "cli/stack.h"

/* Writes @value with all digits of the machine's addresses, as eu-stack does. */
static void print_address(struct out *o, uint64_t value, bool is_wide)
{
	char text[18] = "0x";
	const size_t n = is_wide ? 16 : 8;

	for (size_t i = 0; i < n; i++)
		text[2 + i] = "0123456789abcdef"[value >> 4 * (n - 1 - i) & 15];
	out_bytes(o, text, 2 + n);
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
	out_text(o, t->syscall, strlen(t->syscall));
	if (!t->waits_for)
		return;
	out_str(o, ": ");
	out_text(o, t->waits_for, strlen(t->waits_for));
}

/* TIDs that the line above a block of threads lists; --json has all. */
#define MAX_TIDS 32

/* Prints "TID 12:" or "TIDs 12, 13 (2 threads):". */
static void print_tids(struct out *o, const struct stack_block *b)
{
	out_str(o, b->n > 1 ? "TIDs " : "TID ");
	for (size_t i = 0; i < b->n && i < MAX_TIDS; i++) {
		if (i)
			out_str(o, ", ");
		out_dec(o, (uint64_t)b->tids[i]);
	}
	if (b->n > 1) {
		out_str(o, b->n > MAX_TIDS ? ", ... (" : " (");
		out_dec(o, b->n);
		out_str(o, " threads)");
	}
	out_char(o, ':');
}

/* Prints the signal: its name, the reason if it came from an instruction, and the address. */
static void print_signal(struct out *o, const struct fathom_thread *t)
{
	const char *name = fathom_signal_name(t->signal);
	const char *code = fathom_signal_code_name(t->signal, t->signal_code);

	out_str(o, t->name ? ", " : " ");
	out_str(o, name ? name : "signal ");
	if (!name)
		out_dec(o, (uint64_t)t->signal);
	/* A debugger's stop is from the kernel, too. */
	if (t->signal_code > 0 && code && strcmp(code, t->signal == SIGSEGV ? "" : "SI_KERNEL")) {
		out_str(o, " (");
		out_str(o, code);
		out_char(o, ')');
	}
	if (t->fault_address != FATHOM_NO_ADDRESS) {
		out_str(o, " at ");
		out_hex(o, t->fault_address);
	}
}

/* Prints the line above the frames. */
static void print_head(struct out *o, const struct stack_block *b)
{
	const struct fathom_thread *t = &b->thread;
	const char *state = state_word(t->state);

	print_tids(o, b);
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
	if (t->signal)
		print_signal(o, t);
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

/* Returns the index of the innermost frame of a script; t->n_frames if there is none. */
static size_t first_script(const struct fathom_thread *t)
{
	size_t i = 0;

	while (i < t->n_frames && t->frames[i].kind != FATHOM_FRAME_SCRIPT)
		i++;
	return i;
}

/* Returns whether frame @i is not printed: it is of the interpreter that executes a script. */
static bool is_hidden(const struct stack *v, const struct fathom_thread *t, size_t i)
{
	const uint8_t kind = t->frames[i].kind;

	if (v->frames == FRAMES_SCRIPT)
		return kind != FATHOM_FRAME_SCRIPT;
	return v->frames == FRAMES_MERGED && kind == FATHOM_FRAME_RUNTIME && i > first_script(t);
}

/* Passes the frames from @i on, up to @end, that are not printed; returns the first that is. */
static size_t pass_hidden(struct stack *v, const struct fathom_thread *t, size_t i, size_t end)
{
	const size_t first = i;

	while (i < end && is_hidden(v, t, i) && t->frames[i].runtime == t->frames[first].runtime)
		i++;
	if (i > first && v->frames == FRAMES_MERGED) {
		out_str(&v->out, "    ... ");
		out_dec(&v->out, i - first);
		out_str(&v->out, i - first == 1 ? " frame of " : " frames of ");
		out_str(&v->out, t->frames[first].runtime);
		out_str(&v->out, " ...\n");
	}
	return i;
}

/* Prints a frame of a script. */
static void print_script(struct stack *v, const struct fathom_stack_frame *f)
{
	struct out *o = &v->out;
	struct fathom_frame of_symbol;
	const struct fathom_frame *frame = print_first_frame(f->answer, &of_symbol);

	print_script_function(o, frame);
	out_str(o, " (");
	out_str(o, f->runtime);
	out_char(o, ')');
	if (f->answer->reason)
		print_reason(o, f->answer->reason);
	out_char(o, '\n');
	source_print(o, &v->source, f->answer->pc, frame);
}

/* Prints frame @i; @guess: the trust of the first frame that is not exact, if one came. */
static void print_frame(struct stack *v, const struct fathom_thread *t, size_t i, uint8_t guess)
{
	struct source_printer *s = &v->source;
	struct out *o = &v->out;
	const struct fathom_stack_frame *f = &t->frames[i];

	const size_t number = i + (i < t->left_out_at ? 0 : t->n_left_out);

	out_char(o, '#');
	out_dec(o, number);
	out_str(o, number < 10 ? "  " : " ");
	if (f->kind == FATHOM_FRAME_SCRIPT) {
		print_script(v, f);
		return;
	}
	print_address(o, f->pc.address, is_wide(t));
	out_char(o, ' ');
	print_innermost(o, f->answer);
	if (f->is_signal_return)
		out_str(o, " <signal handler called>");
	if (guess) {
		out_str(o, f->trust >= FATHOM_TRUST_DECODED ? " [" : " [after ");
		out_str(o, fathom_trust_name((enum fathom_trust)(
				   f->trust >= FATHOM_TRUST_DECODED ? f->trust : guess)));
		out_char(o, ']');
	}
	out_char(o, '\n');
	source_print(o, s, f->answer->pc, f->answer->frame);
	print_inlined(o, f->answer, "      ", "\n", s);
}

/* The longest cycle of functions that is recognized as recursion. */
#define LONGEST_CYCLE 8

/* Returns how often the @length frames at @i stand there, one run after the other. */
static size_t count_runs(const struct fathom_thread *t, size_t i, size_t length)
{
	const size_t most = i < t->left_out_at ? t->left_out_at : t->n_frames;
	size_t end = i + length;

	while (end < most && t->frames[end].pc.address == t->frames[end - length].pc.address)
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

static const char *explain(const struct fathom_thread *t)
{
	if (t->stop != FATHOM_STOP_LIMIT)
		return fathom_stop_text((enum fathom_stop)t->stop);
	return t->n_left_out ? "frames are left out; --max-frames prints more"
			     : "more frames than --max-frames";
}

/* Begin and end a line with a reason. */
static void begin_reason(struct out *o)
{
	out_str(o, "    ");
	out_begin_part(o, OUT_REASON);
	out_char(o, '(');
}

static void end_reason(struct out *o)
{
	out_char(o, ')');
	out_end_part(o);
	out_char(o, '\n');
}

/* Says why the stack ends before the entry of its thread. */
static void print_end(struct out *o, const struct fathom_thread *t)
{
	if (t->n_frames && t->stop != FATHOM_STOP_ENTRY) {
		begin_reason(o);
		out_str(o, fathom_stop_name((enum fathom_stop)t->stop));
		out_str(o, ": ");
		out_str(o, explain(t));
		end_reason(o);
	}
	if (t->script_failed) {
		begin_reason(o);
		out_str(o, "script: ");
		out_str(o, t->script_failed);
		end_reason(o);
	}
	if (t->is_kernel_worker && t->failed) {
		begin_reason(o);
		out_str(o, t->failed);
		end_reason(o);
	} else if (t->reason) {
		begin_reason(o);
		out_str(o, fathom_reason_name((enum fathom_reason)t->reason));
		if (t->failed) {
			out_str(o, ": ");
			out_text(o, t->failed, strlen(t->failed));
		}
		end_reason(o);
	}
}

/* Prints what the kernel wrote, "SYMBOL+0x1/0x2 [MODULE]", without the symbol's size. */
static void print_kernel_text(struct out *o, const struct kernel_frame *f)
{
	const char *slash = memchr(f->text, '/', f->size);
	const char *space = memchr(f->text, ' ', f->size);
	const size_t size = slash ? (size_t)(slash - f->text) : f->size;
	const char *plus = memchr(f->text, '+', size);
	const size_t name = plus ? (size_t)(plus - f->text) : size;

	print_symbol(o, f->text, name);
	out_text(o, f->text + name, size - name);
	if (slash && space)
		out_text(o, space, (size_t)(f->text + f->size - space));
}

/* Prints the frames in the kernel, which have no numbers: #0 is the first of the program. */
static void print_kernel(struct stack *v, const struct kernel_stack *k)
{
	struct out *o = &v->out;

	for (size_t i = 0; i < k->n; i++) {
		const struct fathom_answer *a =
			kernel_frame_answer(&v->kernel_stacks, &k->frames[i]);
		/* Without lines its only news would be another name of the same code. */
		const bool has_line = a && a->frame && a->frame->file;

		out_str(o, "    kernel: ");
		if (has_line)
			print_innermost(o, a);
		else
			print_kernel_text(o, &k->frames[i]);
		out_char(o, '\n');
		if (has_line)
			print_inlined(o, a, "      ", "\n", NULL);
	}
	if (k->failed) {
		out_str(o, "    kernel: ");
		out_begin_part(o, OUT_REASON);
		out_char(o, '(');
		out_str(o, k->failed);
		end_reason(o);
	}
}

static void print_left_out(struct out *o, const struct fathom_thread *t)
{
	out_str(o, "    ... ");
	out_dec(o, t->n_left_out);
	out_str(o, t->n_left_out == 1 ? " frame is left out ...\n" : " frames are left out ...\n");
}

/* Prints the frames from @i to @end; returns the trust of the first one that is not exact, or 0. */
static uint8_t print_frames(struct stack *v, const struct fathom_thread *t, size_t i, size_t end,
			    uint8_t guess)
{
	while (i < end) {
		const size_t shown = pass_hidden(v, t, i, end);

		if (shown > i) {
			i = shown;
			continue;
		}
		if (!guess && t->frames[i].trust >= FATHOM_TRUST_DECODED)
			guess = t->frames[i].trust;
		print_frame(v, t, i++, guess);
	}
	return guess;
}

void stack_print_text(struct stack *v, const struct stack_block *b)
{
	const struct fathom_thread *t = &b->thread;
	struct out *o = &v->out;
	uint8_t guess = 0;
	size_t length;

	print_head(o, b);
	if (t->died)
		stack_print_death(o, t->died);
	if (v->registers)
		print_registers(o, t);
	if (b->kernel)
		print_kernel(v, b->kernel);
	for (size_t i = 0; i < t->n_frames;) {
		const size_t end = i < t->left_out_at ? t->left_out_at : t->n_frames;
		const size_t shown = pass_hidden(v, t, i, end);
		const size_t runs = shown == i ? find_recursion(t, i, &length) : 0;

		if (t->n_left_out && i == t->left_out_at) {
			print_left_out(o, t);
			guess = guess ? guess : t->left_out_trust;
		}
		if (!runs) {
			i = shown;
			continue;
		}
		guess = print_frames(v, t, i, i + length, guess);
		if (runs > 1)
			print_recursion(o, length, runs - 1);
		i += runs * length;
	}
	print_end(o, t);
}
