/* SPDX-License-Identifier: MIT */
/* Parts that the frames of several formats have. */
#include "host/filter/formats.h"

bool fathom_log_take_frame(struct fathom_log_line *line, struct fathom_log_frame *ret)
{
	struct fathom_log_line l = *line;

	while (fathom_line_find(&l, "#")) {
		ret->start = l.at++;
		if (!fathom_line_take_decimal(&l, &ret->number))
			continue;
		fathom_line_skip_blanks(&l);
		ret->pc_at = l.at;
		if (!fathom_line_take_0x(&l, &ret->pc))
			continue;
		*line = l;
		return true;
	}
	return false;
}

/* Returns whether @at, before @end, begins a path. */
static bool is_path(const char *at, const char *end)
{
	struct fathom_log_line l = { at, end };

	return fathom_line_take(&l, "/") || fathom_line_take(&l, "./") ||
	       fathom_line_take(&l, "../");
}

/* Returns the parenthesis in [@l->at, @end) after which the module begins; NULL: there is none. */
static const char *find_parenthesis(const struct fathom_log_line *l, const char *end)
{
	const char *last = NULL;

	for (const char *at = l->at; at < end; at++) {
		if (*at != '(' || (at > l->at && at[-1] != ' '))
			continue;
		last = at;
		if (is_path(at + 1, end))
			break;
	}
	return last;
}

bool fathom_log_take_place(struct fathom_log_line *line, const char *plus,
			   struct fathom_log_number *ret)
{
	struct fathom_log_line l = *line;
	const char *open;
	const char *end;

	if (!fathom_line_find_last(&l, plus))
		return false;
	end = l.at;
	l.at += strlen(plus) - 2;
	ret->at = l.at;
	if (!fathom_line_take_0x(&l, &ret->value))
		return false;
	ret->size = (size_t)(l.at - ret->at);
	open = find_parenthesis(line, end);
	if (!open || open + 1 == end || !fathom_line_take(&l, ")"))
		return false;
	ret->module = fathom_log_text(open + 1, end);
	*line = l;
	return true;
}

void fathom_log_take_build_id(struct fathom_log_line line, struct fathom_log_number *ret)
{
	const char *start;

	if (!fathom_line_find(&line, "(BuildId: "))
		return;
	line.at += strlen("(BuildId: ");
	start = line.at;
	while (line.at < line.end && fathom_hex_digit(*line.at) < 16)
		line.at++;
	if (line.at > start)
		ret->build_id = fathom_log_text(start, line.at);
}
