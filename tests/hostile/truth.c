/* SPDX-License-Identifier: MIT */
#include "truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *copy(const char *text)
{
	return text && text[0] ? strdup(text) : NULL;
}

static int same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static char *place_of(const struct fathom_frame *frame)
{
	char text[4096];

	if (!frame->file || !frame->line)
		return NULL;
	(void)snprintf(text, sizeof text, "%s:%u:%u", frame->file, frame->line, frame->column);
	return strdup(text);
}

void truth_read(struct truth *t, const struct fathom_answers *answers, size_t i)
{
	const struct fathom_answer *a = fathom_answers_get(answers, i);
	const struct fathom_frame *frame = a->frame;

	memset(t, 0, sizeof *t);
	t->symbol = copy(a->linkage_name ? a->linkage_name : a->symbol);
	t->start = t->symbol ? a->module_address - a->offset : 0;
	for (; frame && t->n < TRUTH_FRAMES; frame = frame->outer) {
		struct truth_frame *to = &t->frames[t->n++];
		struct fathom_compat_name name = { 0 };

		(void)fathom_compat_frame_name(frame, &name);
		to->name = copy(name.linkage_name ? name.linkage_name : name.name);
		to->plain = copy(name.plain_name);
		to->place = place_of(frame);
	}
}

void truth_deinit(struct truth *t)
{
	free(t->symbol);
	for (size_t i = 0; i < t->n; i++) {
		free(t->frames[i].name);
		free(t->frames[i].plain);
		free(t->frames[i].place);
	}
}

/* Returns the name of the physical function; with @plain as in the source. */
static const char *physical(const struct truth *t, int plain)
{
	if (plain)
		return t->n ? t->frames[t->n - 1].plain : NULL;
	return t->n && t->frames[t->n - 1].name ? t->frames[t->n - 1].name : t->symbol;
}

void truth_add_plain(struct truth *t, const struct truth *dwarf)
{
	if (!t->n || !dwarf->n || t->frames[t->n - 1].plain)
		return;
	t->frames[t->n - 1].plain = copy(physical(dwarf, 0));
}

/* Whether the names differ by what compilers put behind the names of clones only. */
static int same_clone(const char *a, const char *b)
{
	const size_t n = strcspn(a, ".");

	return n && n == strcspn(b, ".") && strncmp(a, b, n) == 0;
}

static int is_bounds(const char *name)
{
	return strncmp(name, "func@[", 6) == 0;
}

static int names_fit(const char *whole, const char *said)
{
	return !said || is_bounds(said) || (whole && same_clone(whole, said)) || same(whole, said);
}

static int frames_fit(const struct truth_frame *whole, const char *said)
{
	return names_fit(whole->name, said) || (whole->plain && names_fit(whole->plain, said));
}

/* Whether @said is @whole, or what is left of it without directories at its front. */
static int places_fit(const char *whole, const char *said)
{
	const size_t w = whole ? strlen(whole) : 0;
	const size_t s = strlen(said);

	return w >= s && strcmp(whole + w - s, said) == 0 && (w == s || whole[w - s - 1] == '/');
}

/* The frames but the outermost, which match those of the whole file in their order. */
static const char *wrong_frames(const struct truth *whole, const struct truth *said)
{
	size_t at = 0;

	for (size_t i = 0; i < said->n; i++) {
		const struct truth_frame *f = &said->frames[i];
		const int outermost = i + 1 == said->n;

		if (outermost)
			at = whole->n ? whole->n - 1 : 0;
		while (!outermost && at + 1 < whole->n && f->name &&
		       !frames_fit(&whole->frames[at], f->name))
			at++;
		if (!outermost && (at + 1 >= whole->n || !frames_fit(&whole->frames[at], f->name)))
			return "an inlined call that is none";
		if (f->place &&
		    (at >= whole->n || !places_fit(whole->frames[i ? at : 0].place, f->place)))
			return i ? "a place of a call that is wrong" : "a place that is wrong";
		at++;
	}
	return NULL;
}

const char *truth_wrong(const struct truth *whole, const struct truth *said, truth_alias_fn alias,
			const void *data)
{
	const char *w = physical(whole, 0);
	const char *plain = physical(whole, 1);
	const char *names[2] = { physical(said, 0), said->symbol };

	for (int i = 0; i < 2; i++)
		if (!names_fit(w, names[i]) && !names_fit(whole->symbol, names[i]) &&
		    !(plain && names_fit(plain, names[i])) &&
		    !(whole->symbol && said->start == whole->start &&
		      alias(data, said->start, names[i])))
			return "a wrong name";
	return wrong_frames(whole, said);
}

int truth_equal(const struct truth *a, const struct truth *b)
{
	if (a->n != b->n || !same(a->symbol, b->symbol) || a->start != b->start)
		return 0;
	for (size_t i = 0; i < a->n; i++)
		if (!same(a->frames[i].name, b->frames[i].name) ||
		    !same(a->frames[i].place, b->frames[i].place))
			return 0;
	return 1;
}

void truth_print(const struct truth *t)
{
	printf("%s", t->symbol ? t->symbol : "??");
	if (t->symbol)
		printf("(0x%llx)", (unsigned long long)t->start);
	for (size_t i = 0; i < t->n; i++)
		printf(" %s%s %s", i ? "< " : "", t->frames[i].name ? t->frames[i].name : "??",
		       t->frames[i].place ? t->frames[i].place : "-");
}
