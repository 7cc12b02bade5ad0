/* SPDX-License-Identifier: MIT */
#include "host/filter/log_heads.h"

#include "host/filter/anchors.h"

static void choose(struct fathom_log_heads *h)
{
	h->next = h->general < h->kernel ? h->general : h->kernel;
}

void fathom_log_heads_begin(struct fathom_log_heads *h, const char *text, const char *end,
			    bool has_kernel)
{
	h->general = fathom_log_find_head(text, end);
	h->kernel = has_kernel ? fathom_log_find_kernel_head(text, end) : end;
	h->end = end;
	choose(h);
}

void fathom_log_heads_pass(struct fathom_log_heads *h, const char *to)
{
	if (h->general < to)
		h->general = fathom_log_find_head(to, h->end);
	if (h->kernel < to)
		h->kernel = fathom_log_find_kernel_head(to, h->end);
	choose(h);
}
