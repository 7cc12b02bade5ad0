/* SPDX-License-Identifier: MIT */
#include "host/events/collapsed_line.h"

#include "fathom/format.h"
#include "host/events/escape.h"

static const struct fathom_escape escape = { "\\", fathom_point_escape_collapsed };

/* The name is escaped in what the writer has collected, and taken from there. */
void fathom_collapsed_line_name(struct fathom_collapsed_line *line, uint32_t depth,
				const char *name)
{
	struct fathom_trace_writer *w = line->writer;
	const size_t begin = w->out.n;
	size_t n;

	line->text.n = depth ? line->end[depth - 1] : 0;
	fathom_writer_str(w, depth ? ";" : "");
	fathom_escape_name(w, &escape, name);
	n = w->out.n - begin;
	w->out.n = begin;
	if (w->no_memory || !fathom_array_room(&line->text, n)) {
		w->no_memory = true;
		return;
	}
	memcpy(line->text.items + line->text.n, w->out.items + begin, n);
	line->text.n += n;
	line->end[depth] = line->text.n;
}

void fathom_collapsed_line_put(struct fathom_collapsed_line *line, uint64_t weight)
{
	struct fathom_trace_writer *w = line->writer;

	fathom_writer_bytes(w, line->text.items, line->text.n);
	fathom_writer_str(w, " ");
	fathom_writer_dec(w, weight);
	fathom_writer_str(w, "\n");
	fathom_writer_pass_on(w);
}

void fathom_collapsed_line_deinit(struct fathom_collapsed_line *line)
{
	fathom_array_free(&line->text);
}
