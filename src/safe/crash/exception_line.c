/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "safe/crash/exception_line.h"

#include "fathom/self.h"
#include "fathom/trust.h"
#include "safe/base/peek.h"
#include "safe/crash/abort_text.h"
#include "safe/cxx/type_name.h"
#include "safe/cxx/uncaught.h"

/* The stack of the thread, for safe/cxx. */
struct stack {
	const struct fathom_crash *crash;
	const struct fathom_own_exception *exception;
	void *buffer; /* for an answer */
	size_t size;
};

static const struct fathom_answer *look_up(const struct stack *s, size_t i)
{
	const struct fathom_crash *c = s->crash;
	const struct fathom_pc pc = { .address = c->pcs[i], .kind = c->kinds[i] };

	return fathom_self_lookup(c->self, pc, 0, s->buffer, s->size);
}

static bool stack_is(const struct fathom_cxx_frames *f, size_t i, const char *name)
{
	const struct fathom_answer *a = look_up(f->data, i);
	const struct fathom_str linkage = { a->linkage_name ? a->linkage_name : a->symbol,
					    a->linkage_name ? a->linkage_size : a->symbol_size };

	return linkage.data && str_is(linkage, name);
}

/* Returns whether frame @i is of the file that is mapped at @base. */
static bool is_mapped_at(const struct stack *s, size_t i, uint64_t base)
{
	const struct fathom_answer *a = look_up(s, i);

	return base && a->module && s->crash->pcs[i] - a->module_address == base;
}

static bool stack_is_of_unwinder(const struct fathom_cxx_frames *f, size_t i)
{
	const struct stack *s = f->data;

	return is_mapped_at(s, i, s->exception->unwinder);
}

static bool stack_is_of_library(const struct fathom_cxx_frames *f, size_t i, size_t thrower)
{
	const struct stack *s = f->data;

	(void)thrower;
	return is_mapped_at(s, i, s->exception->library);
}

static bool stack_has_gap(const struct fathom_cxx_frames *f, size_t from, size_t to)
{
	const struct stack *s = f->data;

	/* A frame that is guessed may have others before it. */
	for (size_t i = from; i <= to; i++)
		if (s->crash->trusts[i] >= FATHOM_TRUST_DECODED)
			return true;
	return false;
}

void fathom_crash_add_text(struct fathom_report_sink *s, const char *text, uint32_t size)
{
	for (uint32_t i = 0; i < size;) {
		uint32_t end = i;

		while (end < size && text[end] != '\n')
			end++;
		fathom_sink_add(s, "%.*s", (int)(end - i), text + i);
		if (end < size)
			fathom_sink_add(s, "\xe2\x90\xa4");
		i = end + 1;
	}
}

/* Adds the text of what(), in quotes. */
static void add_what(struct fathom_report_sink *s, const struct fathom_own_exception *e)
{
	char text[FATHOM_CRASH_TEXT];
	const bool is_cut = e->what_size > sizeof text;
	const size_t size = is_cut ? sizeof text : (size_t)e->what_size;

	if (!e->what || fathom_peek(e->what, text, size) != size)
		return;
	fathom_sink_add(s, ": \"");
	fathom_crash_add_text(s, text, (uint32_t)size);
	fathom_sink_add(s, is_cut ? "\"..." : "\"");
}

void fathom_crash_add_exception(struct fathom_report_sink *s, const struct fathom_crash *c,
				size_t n, bool is_whole, void *buffer, size_t size)
{
	struct fathom_own_exception e;
	struct stack stack = { c, &e, buffer, size };
	const struct fathom_cxx_frames f = { .n = n,
					     .is = stack_is,
					     .is_of_unwinder = stack_is_of_unwinder,
					     .is_of_library = stack_is_of_library,
					     .has_gap = stack_has_gap,
					     .data = &stack };
	char mangled[FATHOM_TYPE_NAME];
	char name[FATHOM_TYPE_NAME];
	struct fathom_str type;

	if (!fathom_own_exception_find(&c->cxx, &e) ||
	    !fathom_peek_str(e.type, mangled, sizeof mangled, &type))
		return;
	if (fathom_cxx_is_uncaught(&f))
		fathom_sink_add(s, "    uncaught C++ exception: ");
	else if (is_whole && fathom_cxx_is_calm(&f))
		fathom_sink_add(s, "    C++ exception being handled: ");
	else
		fathom_sink_add(s, "    C++ exception: ");
	fathom_sink_add(s, "%s", fathom_type_name(type, name) ? name : mangled);
	add_what(s, &e);
	fathom_sink_add(s, "\n");
}
