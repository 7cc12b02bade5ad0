/* SPDX-License-Identifier: MIT */
#include "cli/trace_diff.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/json.h"
#include "cli/launch.h"
#include "cli/trace_kept.h"

/* Calls of each run that are shown where they part. */
enum { SHOWN = 3 };

/* A call, or calls of one function that follow each other. */
struct step {
	const struct fathom_trace_function *function;
	uint64_t ns;
	uint64_t count;
	uint32_t depth;
	uint32_t parent_depth;
	uint8_t parent; /* enum fathom_trace_parent */
};

struct thread {
	int32_t pid;
	int32_t tid;
	bool has_ended;
	char name[32];
	struct step *steps;
	size_t n;
	size_t cap;
};

/* A trace file, whole. */
struct traced {
	struct trace_kept kept;
	struct thread *threads; /* in the order in which they began */
	size_t n;
	uint64_t lost; /* events */
};

struct diff {
	const struct common *common;
	struct out out;
	bool differs;
};

/* Returns the thread of @e, which may have begun just now. */
static struct thread *thread_of(struct traced *t, const struct fathom_trace_event *e)
{
	struct thread *thread;

	for (size_t i = t->n; i--;)
		if (t->threads[i].tid == e->tid && t->threads[i].pid == e->pid &&
		    !t->threads[i].has_ended)
			return &t->threads[i];
	t->threads = must(realloc(t->threads, (t->n + 1) * sizeof *t->threads));
	thread = &t->threads[t->n++];
	*thread = (struct thread){ .pid = e->pid, .tid = e->tid };
	return thread;
}

static void add(struct traced *t, const struct fathom_trace_event *e)
{
	struct thread *thread = thread_of(t, e);
	struct step *last = thread->n ? &thread->steps[thread->n - 1] : NULL;
	const size_t size = e->thread ? strnlen(e->thread, sizeof thread->name - 1) : 0;

	if (size)
		memcpy(thread->name, e->thread, size);
	thread->has_ended = e->type == FATHOM_TRACE_EXIT;
	if (e->type != FATHOM_TRACE_CALL)
		return;
	if (last && last->depth == e->depth && last->function->number == e->function->number &&
	    last->parent == e->parent && last->parent_depth == e->parent_depth) {
		last->count += e->count;
		return;
	}
	if (thread->n == thread->cap) {
		thread->cap = 2 * thread->cap + 64;
		thread->steps = must(realloc(thread->steps, thread->cap * sizeof *thread->steps));
	}
	thread->steps[thread->n++] = (struct step){ trace_kept_function(&t->kept, e->function),
						    e->ns,
						    e->count,
						    e->depth,
						    e->parent_depth,
						    e->parent };
}

static int take_events(void *data, const struct fathom_trace_event *events, size_t n)
{
	for (size_t i = 0; i < n; i++)
		add(data, &events[i]);
	return 1;
}

static void deinit(struct traced *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->threads[i].steps);
	free(t->threads);
	trace_kept_deinit(&t->kept);
}

/* Returns whether both are calls of one function, as often: of files of one name. */
static bool is_same(const struct step *a, const struct step *b)
{
	return a->depth == b->depth && a->count == b->count &&
	       !strcmp(a->function->name, b->function->name) &&
	       !strcmp(last_part(a->function->module), last_part(b->function->module));
}

static size_t common_steps(const struct thread *a, const struct thread *b)
{
	size_t i = 0;

	while (i < a->n && i < b->n && is_same(&a->steps[i], &b->steps[i]))
		i++;
	return i;
}

/*
 * Calls @print for the calls of @t before step @i that @within is known to be within, a step of a
 * thread that has made the same ones; the outermost first.
 */
static void each_caller(const struct thread *t, size_t i, const struct step *within, struct out *o,
			void (*print)(struct out *o, const struct step *s, size_t number))
{
	size_t *path = must(malloc((i + 1) * sizeof *path));
	size_t n = 0;

	while (i-- && within && within->parent != FATHOM_TRACE_PARENT_UNKNOWN)
		if (t->steps[i].depth == within->parent_depth) {
			within = &t->steps[i];
			path[n++] = i;
		}
	for (size_t k = n; k--;)
		print(o, &t->steps[path[k]], n - 1 - k);
	free(path);
}

static void print_name(struct out *o, const struct step *s)
{
	out_char(o, '&');
	out_text(o, s->function->name, s->function->name_size);
	if (s->count > 1) {
		out_str(o, " \xc3\x97"); /* × */
		out_grouped(o, s->count, 0);
	}
}

static void print_caller(struct out *o, const struct step *s, size_t number)
{
	(void)number;
	out_str(o, "  in ");
	print_name(o, s);
	out_char(o, '\n');
}

static void print_caller_json(struct out *o, const struct step *s, size_t number)
{
	if (number)
		out_char(o, ',');
	out_json(o, s->function->name, s->function->name_size);
}

/* Prints what comes in @t from step @i on. */
static void print_next(struct out *o, char which, const struct thread *t, size_t i)
{
	for (size_t k = i; k < i + SHOWN && k <= t->n; k++) {
		out_str(o, "  ");
		out_char(o, which);
		out_char(o, ' ');
		if (k == t->n) {
			out_str(o, "(nothing more)\n");
			continue;
		}
		out_grouped(o, t->steps[k].ns, 13);
		for (uint32_t d = 0; d <= t->steps[k].depth && d < 30; d++)
			out_str(o, "  ");
		print_name(o, &t->steps[k]);
		out_char(o, '\n');
	}
}

static void json_step(struct out *o, const char *key, const struct thread *t, size_t i)
{
	const struct step *s = &t->steps[i];

	out_char(o, ',');
	json_key(o, key);
	if (i == t->n) {
		out_str(o, "null");
		return;
	}
	out_char(o, '{');
	json_text(o, "function", s->function->name, s->function->name_size);
	out_char(o, ',');
	json_string(o, "module", s->function->module);
	out_str(o, ",\"depth\":");
	out_dec(o, s->depth);
	out_str(o, ",\"count\":");
	out_dec(o, s->count);
	out_str(o, ",\"ns\":");
	out_dec(o, s->ns);
	out_char(o, '}');
}

/* Returns the next step of the two that is less deep; they part at step @i. NULL: none follows. */
static const struct step *next_of(const struct thread *a, const struct thread *b, size_t i)
{
	const struct step *x = i < a->n ? &a->steps[i] : NULL;
	const struct step *y = i < b->n ? &b->steps[i] : NULL;

	return !y || (x && x->depth <= y->depth) ? x : y;
}

/* Prints that thread @number is not the same: its first @i steps are. */
static void print_parting(struct diff *d, size_t number, const struct thread *a,
			  const struct thread *b, size_t i)
{
	struct out *o = &d->out;
	const char *name = a->name[0] ? a->name : b->name;
	const struct step *next = next_of(a, b, i);

	if (d->common->json) {
		out_str(o, "{\"thread\":");
		out_dec(o, number);
		out_char(o, ',');
		json_string(o, "name", name);
		out_str(o, ",\"same\":");
		out_dec(o, i);
		out_str(o, ",\"path\":[");
		each_caller(a, i, next, o, print_caller_json);
		out_char(o, ']');
		json_step(o, "a", a, i);
		json_step(o, "b", b, i);
		out_str(o, "}\n");
		return;
	}
	out_str(o, "thread ");
	out_dec(o, number);
	out_str(o, " (");
	out_text(o, name, strlen(name));
	out_str(o, i ? "): after " : "): from the beginning on\n");
	if (i) {
		out_grouped(o, i, 0);
		out_str(o, " lines\n");
	}
	each_caller(a, i, next, o, print_caller);
	print_next(o, 'A', a, i);
	print_next(o, 'B', b, i);
}

static void compare(struct diff *d, const struct traced *a, const struct traced *b)
{
	static const struct thread nothing = { .tid = 0 };

	for (size_t i = 0; i < a->n || i < b->n; i++) {
		const struct thread *x = i < a->n ? &a->threads[i] : &nothing;
		const struct thread *y = i < b->n ? &b->threads[i] : &nothing;
		const size_t n = common_steps(x, y);

		if (n == x->n && n == y->n)
			continue;
		d->differs = true;
		print_parting(d, i + 1, x, y, n);
	}
}

/* Prints how many events the files lack: the runs may have parted elsewhere, or not at all. */
static void print_lost(struct diff *d, const struct traced *a, const struct traced *b)
{
	struct out *o = &d->out;

	if (!a->lost && !b->lost)
		return;
	out_str(o, d->common->json ? "{\"lost\":{\"a\":" : "# lost: ");
	out_dec(o, a->lost);
	out_str(o, d->common->json ? ",\"b\":" : " events of A, ");
	out_dec(o, b->lost);
	out_str(o, d->common->json ? "}}\n" : " of B: what parts may be such a gap\n");
}

static bool read_whole(struct trace_wants *wants, const char *path, struct traced *ret)
{
	struct fathom_trace_result result = { .size = sizeof result };
	struct fathom_errinfo info;

	wants->options.data = ret;
	if (!fathom_trace_read(NULL, path, &wants->options, &result, &info)) {
		ret->lost = result.lost;
		return true;
	}
	complain(path, info.what, info.os_errno ? strerror(info.os_errno) : NULL);
	return false;
}

int trace_diff(struct common *c, struct trace_wants *wants, const char *a, const char *b)
{
	struct traced x = { .n = 0 };
	struct traced y = { .n = 0 };
	struct diff d = { .common = c };
	int status = EXIT_USAGE;

	wants->options.events = take_events;
	wants->options.flags |= FATHOM_TRACE_NO_FOLD;
	out_init_kept(&d.out);
	if (read_whole(wants, a, &x) && read_whole(wants, b, &y)) {
		compare(&d, &x, &y);
		print_lost(&d, &x, &y);
		status = d.differs ? EXIT_UNANSWERED : EXIT_ANSWERED;
	}
	if (!launch_write(STDOUT_FILENO, d.out.buf, d.out.n))
		status = EXIT_USAGE;
	out_deinit(&d.out);
	deinit(&x);
	deinit(&y);
	trace_wants_deinit(wants);
	common_deinit(c);
	return status;
}
