/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "fathom/jit_check.h"
#include "host/base/context.h"
#include "host/base/option_struct.h"

/* Instructions looked at at a time. */
#define AT_A_TIME 65536
/* General registers of a machine. */
#define REGISTERS 32

struct scan {
	struct fathom_jit_scan_options options;
	struct fathom_jit_scan_result result;
	/* the function whose first instruction was reported */
	char *function; /* NULL: none */
	uint64_t start;
	bool is_stopped; /* by the caller */
};

/* Returns whether @i is of the function that was told of last, and makes it that. */
static bool is_told(struct scan *s, const struct fathom_instruction *i)
{
	const char *name = i->frame ? i->frame->function : NULL;
	const uint64_t start = i->address - i->function_offset;
	const bool same = name && s->function && s->start == start && !strcmp(s->function, name);

	if (same)
		return true;
	free(s->function);
	s->function = name ? strdup(name) : NULL;
	s->start = start;
	return false;
}

static void look_at(struct scan *s, const struct fathom_instruction *i)
{
	if (!(i->writes >> s->options.reg & 1) && !(i->flags & FATHOM_INSTRUCTION_BAD))
		return;
	s->result.found++;
	if (!is_told(s, i) && s->options.found)
		s->is_stopped = s->options.found(s->options.data, i) != 0;
}

/* Looks at one batch from s->result.next on. */
static fathom_err look_at_batch(struct scan *s, struct fathom_target *target, uint64_t end,
				struct fathom_errinfo *reterr)
{
	const uint64_t most = s->options.max_instructions;
	const uint64_t left = most ? most - s->result.instructions : AT_A_TIME;
	const struct fathom_disasm_options o = {
		.size = sizeof o,
		.flags = FATHOM_DISASM_NO_LINES,
		.max_instructions = (uint32_t)(left < AT_A_TIME ? left : AT_A_TIME)
	};
	struct fathom_disasm *d;
	size_t n;

	FATHOM_TRY(fathom_disassemble(target, &o, s->result.next, end, &d, reterr));
	n = fathom_disasm_count(d);
	s->result.instructions += n;
	for (size_t i = 0; i < n && !s->is_stopped; i++)
		look_at(s, fathom_disasm_get(d, i));
	s->result.next = fathom_disasm_next(d);
	s->is_stopped |= !n || (most && s->result.instructions >= most);
	fathom_disasm_free(d);
	return FATHOM_OK;
}

fathom_err fathom_jit_check_scan(struct fathom_target *target,
				 const struct fathom_jit_scan_options *options, uint64_t start,
				 uint64_t end, struct fathom_jit_scan_result *ret_result,
				 struct fathom_errinfo *reterr)
{
	struct scan s = { .options = { .size = sizeof s.options }, .result = { .next = start } };
	fathom_err err = FATHOM_OK;
	size_t size;

	if (!options || !FATHOM_OPTIONS_READ(options, &s.options, 0) || s.options.reserved1 ||
	    s.options.reg >= REGISTERS || start > end)
		return fathom_fail_options(reterr);
	while (!err && !s.is_stopped && s.result.next < end)
		err = look_at_batch(&s, target, end, reterr);
	free(s.function);
	/* Memory that ends is no error where there was some. */
	if (err && (err != FATHOM_E_NOT_FOUND || s.result.next == start))
		return err;
	size = ret_result->size < sizeof s.result ? ret_result->size : sizeof s.result;
	s.result.size = size;
	memcpy(ret_result, &s.result, size);
	return FATHOM_OK;
}
