/* SPDX-License-Identifier: MIT */
/* Sampled stacks, collapsed as programs that draw flame graphs read them: "thread;main;f COUNT". */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/stack.h"

/* A stack and how often it was seen. */
struct sample {
	char *text;
	size_t size;
	uint64_t hash;
	uint64_t count;
};

/* All stacks that were seen: a hash table whose size is a power of 2. */
struct samples {
	struct sample *items;
	size_t n;
	size_t cap;
	struct out text; /* of the stack that is counted */
};

/* Returns the place of the text, or that where it belongs. */
static struct sample *find_place(struct sample *items, size_t cap, const char *text, size_t size,
				 uint64_t hash)
{
	size_t i = (size_t)hash & (cap - 1);

	while (items[i].text && (items[i].hash != hash || items[i].size != size ||
				 memcmp(items[i].text, text, size) != 0))
		i = (i + 1) & (cap - 1);
	return &items[i];
}

static void grow(struct samples *s)
{
	const size_t cap = s->cap ? 2 * s->cap : 256;
	struct sample *items = must(calloc(cap, sizeof *items));

	for (size_t i = 0; i < s->cap; i++)
		if (s->items[i].text)
			*find_place(items, cap, s->items[i].text, s->items[i].size,
				    s->items[i].hash) = s->items[i];
	free(s->items);
	s->items = items;
	s->cap = cap;
}

/* Counts the stack in s->text. */
static void count_text(struct samples *s)
{
	uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
	struct sample *place;

	for (size_t i = 0; i < s->text.n; i++)
		hash = (hash ^ (unsigned char)s->text.buf[i]) * 0x100000001b3u;
	if (2 * s->n >= s->cap)
		grow(s);
	place = find_place(s->items, s->cap, s->text.buf, s->text.n, hash);
	if (!place->text) {
		*place = (struct sample){ .size = s->text.n, .hash = hash };
		place->text = must(malloc(s->text.n + 1));
		memcpy(place->text, s->text.buf, s->text.n);
		s->n++;
	}
	place->count++;
}

/* Writes a name of one frame or thread. */
static void out_name(struct out *o, const char *s, size_t n)
{
	size_t done = 0;

	for (size_t i = 0; i < n; i++) {
		const char *escape = fathom_point_escape_collapsed(s + i, n - i);

		if (!escape)
			continue;
		out_text(o, s + done, i - done);
		out_str(o, escape);
		done = i + 1;
	}
	out_text(o, s + done, n - done);
}

/* Writes a word in brackets: it stands where a name would. */
static void out_word(struct out *o, const char *word)
{
	out_char(o, ';');
	out_char(o, '[');
	out_name(o, word, strlen(word));
	out_char(o, ']');
}

static void out_function(struct out *o, const char *name, size_t size)
{
	out_char(o, ';');
	out_name(o, name, size);
}

/* The deepest chain of inlined calls that is written. */
#define MAX_INLINED 256

/* Writes the functions at one address, the outermost first. */
static void out_answer(struct out *o, const struct fathom_answer *a)
{
	const struct fathom_frame *chain[MAX_INLINED];
	size_t n = 0;

	for (const struct fathom_frame *f = a->frame; f && n < MAX_INLINED; f = f->outer)
		chain[n++] = f;
	if (!n && a->symbol)
		out_function(o, a->symbol, a->symbol_size);
	else if (!n)
		out_word(o, a->module ? last_part(a->module->path) : "unknown");
	while (n--) {
		if (chain[n]->function)
			out_function(o, chain[n]->function, chain[n]->function_size);
		else
			out_word(o, "unknown");
	}
}

/* Writes the functions in the kernel, which end in _[k], as perf's scripts write them. */
static void out_kernel(struct out *o, const struct kernel_stack *k)
{
	for (size_t i = k->n; i-- > 0;) {
		const struct kernel_frame *f = &k->frames[i];
		const char *plus = memchr(f->text, '+', f->size);

		out_function(o, f->text, plus ? (size_t)(plus - f->text) : f->size);
		out_str(o, "_[k]");
	}
	if (k->failed)
		out_word(o, k->failed);
}

/* Writes the stack of @t on one line, the outermost function first. */
static void out_stack(struct out *o, const struct fathom_thread *t, const struct kernel_stack *k)
{
	if (t->name && *t->name) {
		out_name(o, t->name, strlen(t->name));
	} else {
		out_str(o, "TID:");
		out_dec(o, (uint64_t)t->tid);
	}
	if (t->is_kernel_worker)
		out_word(o, "kernel-worker");
	else if (!t->n_frames)
		out_word(o, fathom_reason_name((enum fathom_reason)t->reason));
	else if (t->stop != FATHOM_STOP_ENTRY)
		out_word(o, fathom_stop_name((enum fathom_stop)t->stop));
	for (size_t i = t->n_frames; i-- > 0;)
		out_answer(o, t->frames[i].answer);
	if (k)
		out_kernel(o, k);
}

/* Takes one sample of all threads. */
static fathom_err take_sample(struct stack *v, struct fathom_target *target, struct samples *s,
			      struct fathom_errinfo *reterr)
{
	struct fathom_stacks *stacks;
	fathom_err err;

	if (v->kernel)
		kernel_stacks_read(&v->kernel_stacks);
	err = fathom_stacks_capture(target, &v->options, &stacks, reterr);
	if (err)
		return err;
	if (v->kernel)
		kernel_stacks_split(&v->kernel_stacks, stacks);
	for (size_t i = 0; i < fathom_stacks_count(stacks); i++) {
		const struct fathom_thread *t = fathom_stacks_get(stacks, i);

		s->text.n = 0;
		out_stack(&s->text, t,
			  v->kernel ? kernel_stacks_find(&v->kernel_stacks, t->tid) : NULL);
		count_text(s);
	}
	fathom_stacks_free(stacks);
	return FATHOM_OK;
}

static double now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Returns the signals by which the user ends the sampling. */
static sigset_t end_signals(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	return set;
}

/*
 * Waits until @when; returns false if the user ends the sampling meanwhile, by a signal that is
 * blocked.
 */
static bool wait_until(double when)
{
	const sigset_t set = end_signals();
	double left = when - now();
	struct timespec t;

	left = left > 0 ? left : 0;
	t.tv_sec = (time_t)left;
	t.tv_nsec = (long)((left - (double)t.tv_sec) * 1e9);
	return sigtimedwait(&set, NULL, &t) < 0;
}

/* From the first sample on, signals that end the sampling wait, so that it is not lost. */
static void hold_signals(void)
{
	const sigset_t set = end_signals();

	(void)sigprocmask(SIG_BLOCK, &set, NULL);
}

/*
 * The next signal ends the command, even while it prints; one that has come has ended the sampling.
 */
static void let_signals(void)
{
	const sigset_t set = end_signals();
	const struct timespec none = { 0 };

	while (sigtimedwait(&set, NULL, &none) > 0)
		;
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static int compare_samples(const void *a, const void *b)
{
	const struct sample *s = a;
	const struct sample *t = b;
	const size_t size = s->size < t->size ? s->size : t->size;
	const int order = memcmp(s->text, t->text, size);

	return order ? order : s->size < t->size ? -1 : s->size > t->size;
}

/* Prints the stacks in the order of their texts, and frees them. */
static void print_samples(struct stack *v, struct samples *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->cap; i++)
		if (s->items[i].text)
			s->items[n++] = s->items[i];
	if (n)
		qsort(s->items, n, sizeof *s->items, compare_samples);
	out_init(&v->out);
	for (size_t i = 0; i < n; i++) {
		out_bytes(&v->out, s->items[i].text, s->items[i].size);
		out_char(&v->out, ' ');
		out_dec(&v->out, s->items[i].count);
		out_char(&v->out, '\n');
		free(s->items[i].text);
	}
	out_flush(&v->out);
	free(s->items);
	out_deinit(&v->out);
}

/* Says that fewer samples were taken than were asked for. */
static void complain_fewer(const struct stack *v, uint32_t taken)
{
	char why[64];

	(void)snprintf(why, sizeof why, "%" PRIu32 " of %" PRIu32 " samples were taken", taken,
		       v->samples);
	complain("--samples", why, NULL);
}

int stack_sample(struct stack *v, struct fathom_target *target)
{
	struct samples s = { 0 };
	struct fathom_errinfo info;
	fathom_err err = FATHOM_OK;
	uint32_t taken = 0;
	double when = now();
	size_t next = 0;

	out_init_kept(&s.text);
	while (taken < v->samples && wait_until(when)) {
		err = take_sample(v, target, &s, &info);
		if (err)
			break;
		if (!taken++)
			hold_signals();
		when = now() > when + v->every ? now() : when + v->every;
	}
	let_signals();
	common_print_notes(target, &next);
	if (err)
		complain_error(&info);
	if (taken && taken < v->samples)
		complain_fewer(v, taken);
	out_deinit(&s.text);
	print_samples(v, &s);
	if (err && !taken)
		return EXIT_USAGE;
	return common_status(&v->out, taken < v->samples);
}
