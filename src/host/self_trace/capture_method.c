/* SPDX-License-Identifier: MIT */
#include "host/self_trace/capture_method.h"

static uint32_t wanted_by(const struct fathom_trace_options *options)
{
	if (!options || !options->syscalls)
		return FATHOM_CAPTURED_FUNCTIONS;
	return options->syscalls->flags & FATHOM_SYSCALLS_ONLY ? FATHOM_CAPTURED_SYSCALLS
							       : FATHOM_CAPTURED_BOTH;
}

const struct fathom_capture_method *fathom_capture_method_choose(
	const struct fathom_trace_options *options, uint32_t word,
	const struct fathom_capture_method *before)
{
	const uint32_t wanted = wanted_by(options);
	const struct fathom_capture_row *row = fathom_capture_rows;

	if (before && word)
		return NULL;
	while (before && row->method && row++->method != before)
		;
	for (; row->method; row++)
		if (row->captured & wanted && (!word || row->word == word))
			return row->method;
	return NULL;
}

bool fathom_capture_method_is_here(uint32_t word)
{
	const struct fathom_capture_row *row = fathom_capture_rows;

	while (row->method && row->word != word)
		row++;
	return row->method != NULL;
}
