/* SPDX-License-Identifier: MIT */
#include "cli/top_cells.h"

#include <langinfo.h>
#include <string.h>
#include <wchar.h>

#include <fathom/fathom.h>

bool top_cells_is_utf8(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* Returns the cells of @point; 0: it is to be replaced. */
static size_t cells_of(uint32_t point, bool is_utf8)
{
	int n;

	if (point < 0x80)
		return 1;
	n = is_utf8 ? wcwidth((wchar_t)point) : 0;
	return n > 0 ? (size_t)n : 0;
}

size_t top_cells_put(struct out *o, const char *text, size_t cells, bool is_utf8)
{
	struct out escaped;
	size_t last = o->n; /* where it ends if one cell more is needed for "~" */
	size_t last_cells = 0;
	size_t n = 0;
	size_t at = 0;

	out_init_kept(&escaped);
	out_text(&escaped, text, strlen(text));
	while (at < escaped.n) {
		uint32_t point;
		const size_t size = fathom_point_take(escaped.buf + at, escaped.n - at, &point);
		const size_t width = cells_of(point, is_utf8);

		if (n + (width ? width : 1) > cells) {
			o->n = last;
			n = last_cells;
			if (cells) {
				out_char(o, '~');
				n++;
			}
			break;
		}
		if (width)
			out_bytes(o, escaped.buf + at, size);
		else
			out_char(o, '?');
		n += width ? width : 1;
		at += size;
		if (n < cells) {
			last = o->n;
			last_cells = n;
		}
	}
	out_deinit(&escaped);
	return n;
}
