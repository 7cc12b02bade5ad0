/* SPDX-License-Identifier: MIT */
/*
 * Callchains of perf script (linux/tools/perf/util/evsel_fprintf.c: sample__fprintf_callchain()),
 * below the line of their sample:
 *
 *	            7ee [unknown] (/usr/lib/libfoo.so)
 *	           11e7 main (/usr/bin/prog)
 *
 * In files of programs the number is the offset in the file. The first one is exact, the others are
 * return addresses. A sample without a callchain has its exact number in its line, which is live:
 *
 *	prog 31011  5212.104321:     250000 cpu-clock:u:      7f46db2407ee [unknown] (/libfoo.so)
 *
 * Not handled: the kernel's, which are live, and callchains of older versions of perf, whose
 * numbers are live, too: they are in no file.
 */
#include "host/filter/formats.h"

/* Takes the blanks, the number and the blank that each frame begins with, inlined ones, too. */
static bool take_head(struct fathom_log_line *l, struct fathom_log_number *ret)
{
	const char *start = l->at;

	fathom_line_skip_blanks(l);
	ret->at = l->at;
	if (l->at == start || !fathom_line_take_hex(l, &ret->value))
		return false;
	ret->size = (size_t)(l->at - ret->at);
	return fathom_line_take(l, " ");
}

/* Returns whether the line before, which may be of an earlier call, is a frame. */
static bool is_after_frame(const struct fathom_log_scan *s)
{
	struct fathom_log_number n;
	struct fathom_log_line before;

	if (s->line_start == s->text)
		return s->perf_line == s->line;
	before.end = s->line_start - 1;
	before.at = memrchr(s->text, '\n', (size_t)(before.end - s->text));
	before.at = before.at ? before.at + 1 : s->text;
	return take_head(&before, &n);
}

/* Goes to after the time of a sample, "5212.104321:"; returns false if there is none. */
static bool take_time(struct fathom_log_line *l)
{
	const char *const start = l->at;
	uint32_t part;

	while (fathom_line_find(l, ".")) {
		const bool is_after_digit = l->at > start && fathom_hex_digit(l->at[-1]) < 10;
		const char *const digits = ++l->at;

		if (is_after_digit && fathom_line_take_decimal(l, &part) &&
		    (l->at - digits == 6 || l->at - digits == 9) && fathom_line_take(l, ":"))
			return true;
	}
	return false;
}

/* Reads the line of a sample without a callchain: the number after the event, before the symbol. */
static bool read_sample(struct fathom_log_scan *s, struct fathom_log_line line)
{
	struct fathom_log_number n = { .base = FATHOM_LOG_LIVE };
	struct fathom_log_line end = line;

	if (line.at == line.end || line.end[-1] != ')' || !fathom_line_find_last(&end, " (/"))
		return false;
	n.module = fathom_log_text(end.at + strlen(" ("), line.end - 1);
	line.end = end.at;
	if (!take_time(&line))
		return false;
	/* Before the event may be a period. */
	for (; fathom_line_find(&line, ": "); line.at++) {
		struct fathom_log_line l = line;
		uint64_t value;
		const char *at;

		l.at++;
		fathom_line_skip_blanks(&l);
		at = l.at;
		if (!fathom_line_take_hex(&l, &value) || !fathom_line_take(&l, " ") ||
		    l.at == l.end)
			continue;
		n.value = value;
		n.at = at;
		n.size = (size_t)(l.at - 1 - at);
	}
	if (!n.at)
		return false;
	fathom_log_add(s, &n);
	return true;
}

bool fathom_log_read_perf(struct fathom_log_scan *s, struct fathom_log_line line)
{
	struct fathom_log_number n = { .base = FATHOM_LOG_FILE_OFFSET };
	const char *module;

	if (read_sample(s, line))
		return true;
	if (!take_head(&line, &n) || line.at == line.end || line.end[-1] != ')' ||
	    !fathom_line_find_last(&line, " (/"))
		return false;
	module = line.at + strlen(" (");
	n.module = fathom_log_text(module, line.end - 1);
	n.kind = is_after_frame(s) ? FATHOM_LOG_RETURN : FATHOM_LOG_EXACT;
	s->perf_line = s->line + 1;
	fathom_log_add(s, &n);
	return true;
}
