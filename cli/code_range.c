/* SPDX-License-Identifier: MIT */
#include "cli/code_range.h"

#include <stdlib.h>
#include <string.h>

#include "cli/common.h"

/* Finds the bounds of the function around @address; returns false if none is known. */
static bool find_function(const struct range_reader *r, uint64_t address, struct out *out,
			  struct range *ret)
{
	const struct fathom_symbolize_options o = { .size = sizeof o, .flags = FATHOM_NAMES_ONLY };
	const struct fathom_pc pc = { .address = address };
	const struct fathom_answer *a;
	struct fathom_errinfo info;
	bool found;

	if (fathom_lookup(r->rules->target, pc, &o, &a, &info)) {
		out_flush(out);
		complain_error(&info);
		exit(EXIT_USAGE);
	}
	found = a->symbol && a->size;
	if (found) {
		ret->start = address - a->offset;
		ret->end = ret->start + a->size;
	}
	fathom_answer_free(a);
	return found && ret->end > ret->start;
}

static void add_input(struct range_reader *r, const char *text, size_t size)
{
	if (r->n == r->cap) {
		r->cap = 2 * r->cap + 16;
		r->inputs = must(realloc(r->inputs, r->cap * sizeof *r->inputs));
	}
	input_parse(r->rules, text, size, &r->inputs[r->n++]);
}

/* Most ".." of an argument that are tried. */
#define MAX_DOTS 64

/* Returns the next ".." from @from on; NULL if there is none or @count reached the limit. */
static const char *next_dots(const char *from, unsigned *count)
{
	return ++*count <= MAX_DOTS ? strstr(from, "..") : NULL;
}

/*
 * Parses all arguments to look up their names at once: each argument as a whole, then the bounds on
 * both sides of each "..", because names may contain dots.
 */
void range_reader_init(struct range_reader *r, const struct input_rules *rules, int n,
		       char *const *arguments)
{
	*r = (struct range_reader){ .rules = rules };
	fathom_target_get_info(rules->target, &r->info);
	for (int i = 0; i < n; i++) {
		const char *text = arguments[i];
		const size_t size = strlen(text);
		unsigned count = 0;

		add_input(r, text, size);
		for (const char *dots = next_dots(text, &count); dots;
		     dots = next_dots(dots + 1, &count)) {
			const size_t before = (size_t)(dots - text);

			add_input(r, text, before);
			add_input(r, dots + 2, size - before - 2);
		}
	}
	input_resolve(rules, r->inputs, r->n);
}

void range_reader_deinit(struct range_reader *r)
{
	free(r->inputs);
}

uint8_t range_take(struct range_reader *r, const char *text, struct out *out, struct range *ret)
{
	const struct input *whole = &r->inputs[r->next];
	uint8_t reason = whole->reason;
	unsigned count = 0;

	r->whole = r->next++;
	*ret = (struct range){ whole->address, UINT64_MAX, RANGE_WITHOUT_FUNCTION };
	for (const char *dots = next_dots(text, &count); dots; dots = next_dots(dots + 1, &count)) {
		const struct input *start = &r->inputs[r->next++];
		const struct input *end = &r->inputs[r->next++];

		if (!reason || start->reason || end->reason)
			continue;
		*ret = (struct range){ start->address, end->address, 0 };
		reason = FATHOM_REASON_NONE;
	}
	if (!whole->reason && find_function(r, whole->address, out, ret))
		ret->most = 0;
	return !reason && ret->start >= ret->end ? FATHOM_REASON_BAD_ADDRESS : reason;
}

void range_copies_json(struct range_reader *r, struct out *o)
{
	input_copies_json(r->rules, &r->inputs[r->whole], o, &r->copied);
}

void range_complain(struct range_reader *r)
{
	input_complain(r->rules, &r->inputs[r->whole], &r->complaints);
}

uint64_t range_shown(const struct range_reader *r, uint64_t address)
{
	struct fathom_section_info s;

	for (size_t i = 1;
	     r->info.is_relocatable && !fathom_target_section(r->rules->target, i, &s); i++)
		if ((s.flags & 2 /* SHF_ALLOC */) && address >= s.address &&
		    address - s.address < s.size)
			return address - s.address;
	return address;
}
