/* SPDX-License-Identifier: MIT */
/*
 * Symbols as the kernel prints them (%pS and %pB: Documentation/core-api/printk-formats.rst), in
 * oopses, warnings, lockdep's and KASAN's reports, and in /proc/PID/stack:
 *
 *	RIP: 0010:do_one+0x71/0x280
 *	 ? request_wait_answer+0x151/0x210 [fuse]
 *	[<0>] proc_pid_stack+0xb1/0x150
 *
 * The number counts from the symbol, whose size stands after it. That of the program counter is
 * exact, the others are return addresses. A module's name may be followed by its build-id.
 *
 * The line of a task (sched_show_task()), as in the message about a hung one, ends with flags,
 * which are no address. Before Linux 5.10 it had no words:
 *
 *	task:cat             state:D stack:0     pid:1234  ppid:1200   flags:0x00004002
 *	cat             D    0  1234   1200 0x80004002
 */
#include "host/filter/formats.h"

static bool is_of_symbol(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '.' || c == '$' || c == '@';
}

/* Returns where the line names the program counter, whose symbol follows; else its end. */
static const char *find_counter(struct fathom_log_line line)
{
	static const char *const words[] = { "RIP: ", "EIP: ", "pc : ", "PC is at ", "pc: " };
	const char *first = line.end;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		struct fathom_log_line l = { line.at, first };

		if (fathom_line_find(&l, words[i]))
			first = l.at;
	}
	return first;
}

/* Takes " [MODULE]" or " [MODULE BUILD-ID]". */
static void take_module(struct fathom_log_line *l, struct fathom_log_number *ret)
{
	struct fathom_log_line rest = *l;
	const char *name;

	if (!fathom_line_take(&rest, " ["))
		return;
	name = rest.at;
	while (rest.at < rest.end && (is_of_symbol(*rest.at) || *rest.at == '-'))
		rest.at++;
	if (rest.at == name)
		return;
	ret->module = fathom_log_text(name, rest.at);
	if (fathom_line_take(&rest, " ")) {
		name = rest.at;
		while (rest.at < rest.end && fathom_hex_digit(*rest.at) < 16)
			rest.at++;
		if (rest.at > name && rest.at - name >= 16)
			ret->build_id = fathom_log_text(name, rest.at);
	}
	if (fathom_line_take(&rest, "]"))
		*l = rest;
	else
		ret->module = ret->build_id = (struct fathom_str){ NULL, 0 };
}

/*
 * Takes the symbol at the next "+0x" of @l, which is in @line; those after @counter are exact.
 */
static bool take_symbol(const struct fathom_log_line *line, const char *counter,
			struct fathom_log_line *l, struct fathom_log_number *ret)
{
	const char *plus;
	const char *symbol;

	if (!fathom_line_find(l, "+0x"))
		return false;
	plus = symbol = l->at++;
	while (symbol > line->at && is_of_symbol(symbol[-1]))
		symbol--;
	ret->at = l->at;
	if (!fathom_line_take_0x(l, &ret->value) || symbol == plus)
		return true;
	ret->size = (size_t)(l->at - ret->at);
	if (!fathom_line_take(l, "/") || !fathom_line_take_0x(l, &ret->symbol_size) ||
	    !ret->symbol_size)
		return true;
	ret->symbol = fathom_log_text(symbol, plus);
	ret->kind = symbol > counter ? FATHOM_LOG_EXACT : FATHOM_LOG_RETURN;
	take_module(l, ret);
	return true;
}

/* Takes the last word of @l, which blanks precede; returns an empty one if there is none. */
static struct fathom_str take_last_word(struct fathom_log_line *l)
{
	const char *end;

	while (l->end > l->at && l->end[-1] == ' ')
		l->end--;
	end = l->end;
	while (l->end > l->at && l->end[-1] != ' ')
		l->end--;
	return fathom_log_text(l->end, end);
}

static bool is_decimal(struct fathom_str word)
{
	for (uint32_t i = 0; i < word.size; i++)
		if (word.data[i] < '0' || word.data[i] > '9')
			return false;
	return word.size;
}

/* Returns whether @word is the letter of a task's state, or ends "running task". */
static bool is_state(struct fathom_str word)
{
	if (word.size == 1)
		return word.data[0] && strchr("RSDTtXZPIKWNx", word.data[0]);
	return word.size == strlen("task") && !memcmp(word.data, "task", word.size);
}

/* Returns whether @line is that of a task. Its last word alone tells most others from it. */
static bool is_task(struct fathom_log_line line)
{
	const struct fathom_str flags = take_last_word(&line);

	if (flags.size > strlen("flags:") && !memcmp(flags.data, "flags:", strlen("flags:")))
		return fathom_line_find(&line, "task:") && fathom_line_find(&line, " state:") &&
		       fathom_line_find(&line, " stack:") && fathom_line_find(&line, " pid:");
	/* 0x and eight digits, after the free stack, the task and its parent. */
	return flags.size == 10 && !memcmp(flags.data, "0x", 2) &&
	       is_decimal(take_last_word(&line)) && is_decimal(take_last_word(&line)) &&
	       is_decimal(take_last_word(&line)) && is_state(take_last_word(&line));
}

bool fathom_log_read_kernel(struct fathom_log_scan *s, struct fathom_log_line line)
{
	const char *counter = find_counter(line);
	struct fathom_log_number number = { .kind = FATHOM_LOG_RETURN };
	struct fathom_log_line l = line;
	bool is_kernel = false;

	if (is_task(line))
		return true;
	for (;;) {
		struct fathom_log_number n = { .base = FATHOM_LOG_SYMBOL };

		if (!take_symbol(&line, counter, &l, &n))
			break;
		if (!n.symbol.size)
			continue;
		fathom_log_add(s, &n);
		number = n;
		is_kernel = true;
	}
	/* One of a program, in the kernel's report, has code of its own. */
	if (counter < line.end)
		fathom_log_note_counter(s, number.kind == FATHOM_LOG_EXACT ? &number : NULL);
	return is_kernel;
}
