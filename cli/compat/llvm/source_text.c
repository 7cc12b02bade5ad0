/* SPDX-License-Identifier: MIT */
#include "cli/compat/llvm/source_text.h"

/* Returns LLVM's width of @n in digits: one too many for powers of ten. */
static unsigned width_of(uint64_t n)
{
	unsigned width = 0;

	for (uint64_t power = 1; power < n; width++)
		if (__builtin_mul_overflow(power, 10, &power))
			break;
	return width;
}

static void write_line(struct out *o, const struct fathom_source_lines *l, bool marked)
{
	const unsigned width = width_of(l->last);

	for (unsigned own = width_of(l->number + 1); own < width; own++)
		out_char(o, ' ');
	out_dec(o, l->number);
	out_str(o, marked ? " >: " : "  : ");
	out_bytes(o, l->line, l->size);
	out_char(o, '\n');
}

void llvm_source_write(struct fathom_source_files *files, struct out *o, struct llvm_text embedded,
		       const char *path, uint64_t line, uint64_t n)
{
	const struct fathom_source_text *text;
	struct fathom_source_lines lines;

	if (!n)
		return;
	if (!embedded.data && !fathom_source_files_read(files, path, &text, NULL))
		embedded = (struct llvm_text){ text->text, text->size };
	if (!embedded.data)
		return;
	fathom_source_lines_begin(embedded.data, embedded.size, line, n, &lines);
	while (fathom_source_lines_next(&lines))
		write_line(o, &lines, lines.number == line);
}
