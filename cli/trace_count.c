/* SPDX-License-Identifier: MIT */
#include "cli/trace_count.h"

#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/json.h"
#include "cli/trace_kept.h"

/*
 * Durations are counted by their size: SUB classes for each power of two, so a percentile is known
 * to a sixteenth.
 */
enum { SUB_LOG2 = 4, SUB = 1 << SUB_LOG2, CLASSES = (64 - SUB_LOG2 + 1) * SUB };

/* A function. */
struct counted {
	const char *name; /* NULL: not called */
	const char *module;
	uint64_t calls;
	uint64_t returns;
	uint64_t total_ns;
	uint64_t self_ns;
	uint64_t least_ns;
	uint64_t most_ns;
	uint32_t *classes; /* CLASSES of them; NULL: no return was seen */
};

/* A thread: for each depth, how long the calls there took since the one above began. */
struct thread {
	int32_t tid;
	uint64_t *callees_ns;
	size_t n;
};

struct trace_count {
	struct trace_kept kept;
	struct counted *functions; /* by number */
	size_t n_functions;
	struct thread *threads;
	size_t n_threads;
};

struct trace_count *trace_count_create(void)
{
	return must(calloc(1, sizeof(struct trace_count)));
}

void trace_count_destroy(struct trace_count *c)
{
	for (size_t i = 0; c && i < c->n_functions; i++)
		free(c->functions[i].classes);
	for (size_t i = 0; c && i < c->n_threads; i++)
		free(c->threads[i].callees_ns);
	if (c) {
		trace_kept_deinit(&c->kept);
		free(c->functions);
		free(c->threads);
	}
	free(c);
}

static struct counted *function_of(struct trace_count *c, const struct fathom_trace_function *f)
{
	struct counted *counted;

	if (f->number >= c->n_functions) {
		const size_t n = 2 * (size_t)f->number + 64;

		c->functions = must(realloc(c->functions, n * sizeof *c->functions));
		memset(c->functions + c->n_functions, 0,
		       (n - c->n_functions) * sizeof *c->functions);
		c->n_functions = n;
	}
	counted = &c->functions[f->number];
	if (!counted->name) {
		f = trace_kept_function(&c->kept, f);
		counted->name = f->name;
		counted->module = f->module;
	}
	return counted;
}

static struct thread *thread_of(struct trace_count *c, int32_t tid)
{
	for (size_t i = c->n_threads; i--;)
		if (c->threads[i].tid == tid)
			return &c->threads[i];
	c->threads = must(realloc(c->threads, (c->n_threads + 1) * sizeof *c->threads));
	c->threads[c->n_threads] = (struct thread){ .tid = tid };
	return &c->threads[c->n_threads++];
}

/* Returns how long the calls at @depth have taken since the one above began. */
static uint64_t *callees_at(struct thread *t, size_t depth)
{
	if (depth >= t->n) {
		t->callees_ns = must(realloc(t->callees_ns, (depth + 64) * sizeof *t->callees_ns));
		memset(t->callees_ns + t->n, 0, (depth + 64 - t->n) * sizeof *t->callees_ns);
		t->n = depth + 64;
	}
	return &t->callees_ns[depth];
}

/* Returns the class of @ns. */
static unsigned class_of(uint64_t ns)
{
	unsigned log2;

	if (ns < SUB)
		return (unsigned)ns;
	log2 = 63 - (unsigned)__builtin_clzll(ns);
	return (log2 - SUB_LOG2 + 1) * SUB + (unsigned)(ns >> (log2 - SUB_LOG2) & (SUB - 1));
}

/* Returns the largest number of class @i. */
static uint64_t end_of_class(unsigned i)
{
	const unsigned shift = i / SUB - 1;

	if (i < SUB)
		return i;
	return ((uint64_t)(SUB + i % SUB) << shift) + ((UINT64_C(1) << shift) - 1);
}

static void count_return(struct trace_count *c, struct counted *f,
			 const struct fathom_trace_event *e)
{
	struct thread *t = thread_of(c, e->tid);
	const uint64_t callees = *callees_at(t, (size_t)e->depth + 1);
	const uint64_t ns = e->duration_ns;

	*callees_at(t, (size_t)e->depth + 1) = 0;
	*callees_at(t, e->depth) += ns;
	if (!f->classes)
		f->classes = must(calloc(CLASSES, sizeof *f->classes));
	f->classes[class_of(ns)]++;
	if (!f->returns || ns < f->least_ns)
		f->least_ns = ns;
	if (ns > f->most_ns)
		f->most_ns = ns;
	f->returns++;
	f->total_ns += ns;
	f->self_ns += ns > callees ? ns - callees : 0;
}

void trace_count_event(struct trace_count *c, const struct fathom_trace_event *e)
{
	struct counted *f;

	if (!e->function)
		return;
	f = function_of(c, e->function);
	if (e->type == FATHOM_TRACE_CALL)
		f->calls += e->count;
	else if (e->type == FATHOM_TRACE_RETURN)
		count_return(c, f, e);
}

/* Returns a duration that 99 of 100 are not longer than. */
static uint64_t percentile_99(const struct counted *f)
{
	const uint64_t most = f->returns - f->returns / 100;
	uint64_t n = 0;

	for (unsigned i = 0; i < CLASSES; i++) {
		n += f->classes[i];
		if (n >= most)
			return end_of_class(i) < f->most_ns ? end_of_class(i) : f->most_ns;
	}
	return f->most_ns;
}

static int by_name(const void *a, const void *b)
{
	const struct counted *x = a;
	const struct counted *y = b;
	int order;

	if (!x->name || !y->name)
		return (y->name != NULL) - (x->name != NULL);
	order = strcmp(x->name, y->name);
	return order ? order : strcmp(x->module, y->module);
}

/* Adds what @from has to @to: the same function of another process, or loaded again. */
static void add(struct counted *to, struct counted *from)
{
	if (from->returns && (!to->returns || from->least_ns < to->least_ns))
		to->least_ns = from->least_ns;
	if (from->most_ns > to->most_ns)
		to->most_ns = from->most_ns;
	to->calls += from->calls;
	to->returns += from->returns;
	to->total_ns += from->total_ns;
	to->self_ns += from->self_ns;
	if (!to->classes) {
		to->classes = from->classes;
		from->classes = NULL;
	}
	for (unsigned i = 0; from->classes && i < CLASSES; i++)
		to->classes[i] += from->classes[i];
	free(from->classes);
	*from = (struct counted){ .name = NULL };
}

/* Has one row for each function. */
static void merge(struct trace_count *c)
{
	size_t last = 0;

	qsort(c->functions, c->n_functions, sizeof *c->functions, by_name);
	for (size_t i = 1; i < c->n_functions && c->functions[i].name; i++) {
		if (!by_name(&c->functions[last], &c->functions[i]))
			add(&c->functions[last], &c->functions[i]);
		else
			last = i;
	}
}

static int compare(const void *a, const void *b)
{
	const struct counted *x = a;
	const struct counted *y = b;

	if (x->self_ns != y->self_ns)
		return x->self_ns < y->self_ns ? 1 : -1;
	if (x->calls != y->calls)
		return x->calls < y->calls ? 1 : -1;
	return by_name(a, b);
}

static void json_number(struct out *o, const char *key, uint64_t value)
{
	out_char(o, ',');
	json_key(o, key);
	out_dec(o, value);
}

static void print_json(struct out *o, const struct counted *f)
{
	out_char(o, '{');
	json_string(o, "function", f->name);
	out_char(o, ',');
	json_string(o, "module", f->module);
	json_number(o, "calls", f->calls);
	if (f->returns) {
		json_number(o, "returns", f->returns);
		json_number(o, "total_ns", f->total_ns);
		json_number(o, "self_ns", f->self_ns);
		json_number(o, "min_ns", f->least_ns);
		json_number(o, "mean_ns", f->total_ns / f->returns);
		json_number(o, "p99_ns", percentile_99(f));
		json_number(o, "max_ns", f->most_ns);
	}
	out_str(o, "}\n");
}

enum { COLUMN = 13 };

static void print_text(struct out *o, const struct counted *f, bool with_times)
{
	out_grouped(o, f->calls, COLUMN);
	if (with_times) {
		const uint64_t times[] = { f->total_ns,
					   f->self_ns,
					   f->least_ns,
					   f->returns ? f->total_ns / f->returns : 0,
					   f->returns ? percentile_99(f) : 0,
					   f->most_ns };

		for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
			out_char(o, ' ');
			out_grouped(o, times[i], COLUMN);
		}
	}
	out_str(o, " &");
	out_text(o, f->name, strlen(f->name));
	out_str(o, " (");
	out_text(o, last_part(f->module), strlen(last_part(f->module)));
	out_str(o, ")\n");
}

void trace_count_print(struct trace_count *c, struct out *o, bool json)
{
	bool with_times = false;

	if (c->n_functions) {
		merge(c);
		qsort(c->functions, c->n_functions, sizeof *c->functions, compare);
	}
	for (size_t i = 0; i < c->n_functions; i++)
		with_times |= c->functions[i].returns != 0;
	if (!json)
		out_str(o,
			with_times
				? "#       calls      total ns       self ns        min ns       "
				  "mean ns        p99 ns        max ns symbol (module)\n"
				: "#       calls symbol (module)\n");
	for (size_t i = 0; i < c->n_functions && c->functions[i].name; i++)
		if (json)
			print_json(o, &c->functions[i]);
		else
			print_text(o, &c->functions[i], with_times);
}
