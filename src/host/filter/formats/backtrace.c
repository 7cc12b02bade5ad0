/* SPDX-License-Identifier: MIT */
/*
 * Frames of backtrace_symbols(3) and backtrace_symbols_fd(3), of glibc and musl's libexecinfo:
 *
 *	./prog(+0x116f) [0x55f793eaa16f]
 *	/usr/lib/libfoo.so(foo_run+0x9)[0x7fab969421af]
 *	./prog() [0x40115c]
 *	./prog[0x401211]
 *
 * The numbers are return addresses. The one in parentheses is stated, or counts from the symbol;
 * without it, only that of a program at fixed addresses is known.
 */
#include "host/filter/formats.h"

/* Returns the path before @end: from the last word with / or . in front, else the last word. */
static struct fathom_str path_before(const char *start, const char *end)
{
	const char *word = start;

	for (const char *at = end; at > start; at--) {
		if (at[-1] != ' ' && at[-1] != '\t')
			continue;
		if (word == start)
			word = at;
		if (at < end && (*at == '/' || *at == '.')) {
			word = at;
			break;
		}
	}
	if (start < end && (*start == '/' || *start == '.') && *word != '/' && *word != '.')
		word = start;
	return fathom_log_text(word, end);
}

/* Reads what stands between the parentheses, "", "+0xOFFSET" or "SYMBOL+0xOFFSET", into @ret. */
static bool read_inside(const char *start, const char *end, struct fathom_log_number *ret)
{
	struct fathom_log_line l = { start, end };

	if (start == end)
		return true;
	if (!fathom_line_find_last(&l, "+0"))
		return false;
	if (l.at > start) {
		ret->symbol = fathom_log_text(start, l.at);
		ret->base = FATHOM_LOG_SYMBOL;
	} else {
		ret->base = FATHOM_LOG_STATED;
	}
	ret->at = ++l.at;
	ret->value = 0;
	/* Zero has no 0x. */
	if (!fathom_line_take_0x(&l, &ret->value) && !fathom_line_take(&l, "0"))
		return false;
	if (l.at != end)
		return false;
	ret->size = (size_t)(l.at - ret->at);
	return true;
}

bool fathom_log_read_backtrace(struct fathom_log_scan *s, struct fathom_log_line line)
{
	struct fathom_log_number n = { .kind = FATHOM_LOG_RETURN, .base = FATHOM_LOG_LIVE };
	struct fathom_log_line l = line;
	const char *end;
	const char *open;

	if (!fathom_line_find_last(&l, "[0x"))
		return false;
	end = l.at;
	n.at = ++l.at;
	if (!fathom_line_take_0x(&l, &n.value) || !fathom_line_take(&l, "]"))
		return false;
	n.live = n.value;
	n.size = (size_t)(l.at - 1 - n.at);
	if (end > line.at && end[-1] == ' ')
		end--;
	if (end > line.at && end[-1] == ')') {
		open = memrchr(line.at, '(', (size_t)(end - line.at));
		if (!open || !read_inside(open + 1, end - 1, &n))
			return false;
		end = open;
	}
	n.module = path_before(line.at, end);
	if (!n.module.size)
		return false;
	if (n.base != FATHOM_LOG_STATED)
		n.live = 0;
	fathom_log_add(s, &n);
	return true;
}
