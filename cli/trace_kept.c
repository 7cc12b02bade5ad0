/* SPDX-License-Identifier: MIT */
#include "cli/trace_kept.h"

#include <stdlib.h>
#include <string.h>

#include "cli/common.h"

static struct fathom_trace_function *copy(const struct fathom_trace_function *f)
{
	struct fathom_trace_function *to = must(malloc(sizeof *to));

	*to = *f;
	to->name = must(strdup(f->name));
	to->module = must(strdup(f->module));
	to->linkage_name = f->linkage_name ? must(strdup(f->linkage_name)) : NULL;
	return to;
}

const struct fathom_trace_function *trace_kept_function(struct trace_kept *k,
							const struct fathom_trace_function *f)
{
	if (f->number >= k->n) {
		const size_t n = 2 * (size_t)f->number + 64;

		k->functions = must(realloc(k->functions, n * sizeof *k->functions));
		memset(k->functions + k->n, 0, (n - k->n) * sizeof *k->functions);
		k->n = n;
	}
	if (!k->functions[f->number])
		k->functions[f->number] = copy(f);
	return k->functions[f->number];
}

void trace_kept_deinit(struct trace_kept *k)
{
	for (size_t i = 0; i < k->n; i++) {
		struct fathom_trace_function *f = k->functions[i];

		if (!f)
			continue;
		free((char *)f->name);
		free((char *)f->module);
		free((char *)f->linkage_name);
		free(f);
	}
	free(k->functions);
}
