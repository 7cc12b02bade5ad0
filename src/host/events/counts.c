/* SPDX-License-Identifier: MIT */
/*
 * How often each function was called, and how long its calls took.
 *
 * For people, a line for each function, below a head that names the columns: its calls, and, if
 * returns were recorded, the nanoseconds of all of them, those that were not spent in recorded
 * callees, the least, the mean, the 99th percentile, and the most. What took longest itself comes
 * first; else, what was called most.
 *
 * As JSON Lines, an object for each function in the same order, without times if no return of it
 * was recorded:
 *
 *	{"function":"parse","module":"/bin/demo","calls":2,"returns":2,"total_ns":500,
 *	 "self_ns":200,"min_ns":100,"mean_ns":250,"p99_ns":400,"max_ns":400}
 *
 * Of system calls also how many were captured by each method: "methods":{"rewrite":2}, and by its
 * older name, "ways"; for people, if some were seen otherwise than by ptrace(2). Last, if events
 * were lost, how many: {"lost":N}.
 *
 * Functions of one name and module are one: of another process, or loaded again.
 */
#include <stdlib.h>

#include "host/events/escape.h"
#include "host/base/key_map.h"
#include "host/base/path.h"

/*
 * Durations are counted by their size: SUB classes for each power of two, so a percentile is known
 * to a sixteenth.
 */
enum { SUB_LOG2 = 4, SUB = 1 << SUB_LOG2, CLASSES = (64 - SUB_LOG2 + 1) * SUB };

enum { COLUMN = 13 };

/* enum fathom_syscall_method */
enum { METHODS = FATHOM_SYSCALL_BY_DISPATCH + 1 };

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
	uint64_t by_method[METHODS]; /* system calls by how they were seen */
	uint32_t *classes;           /* CLASSES of them; NULL: no return was seen */
};

struct counts {
	struct {
		FATHOM_ARRAY_OF(struct counted);
	} functions; /* by number */
	struct {
		/* By depth: how long the calls there took since the one above began. */
		FATHOM_ARRAY_OF(struct fathom_u64_array);
	} threads;
	struct fathom_key_map by_tid; /* indexes of threads */
};

static const struct fathom_escape escape = { "\\", NULL };

static void begin_counts(struct fathom_trace_writer *w)
{
	w->state = calloc(1, sizeof(struct counts));
	w->no_memory |= !w->state;
}

static void free_counts(struct fathom_trace_writer *w)
{
	struct counts *c = w->state;

	if (!c)
		return;
	for (size_t i = 0; i < c->functions.n; i++)
		free(c->functions.items[i].classes);
	for (size_t i = 0; i < c->threads.n; i++)
		fathom_array_free(&c->threads.items[i]);
	fathom_array_free(&c->functions);
	fathom_array_free(&c->threads);
	fathom_key_map_deinit(&c->by_tid);
	free(c);
}

/* Returns NULL without memory. */
static struct counted *function_of(struct fathom_trace_writer *w,
				   const struct fathom_trace_function *f)
{
	struct counts *c = w->state;
	const size_t more = f->number < c->functions.n ? 0 : f->number + 1 - c->functions.n;
	struct counted *counted;

	if (more) {
		if (!fathom_array_room(&c->functions, more))
			return NULL;
		memset(c->functions.items + c->functions.n, 0, more * sizeof *c->functions.items);
		c->functions.n += more;
	}
	counted = &c->functions.items[f->number];
	if (!counted->name) {
		(void)fathom_writer_name(w, f);
		if (w->no_memory)
			return NULL;
		counted->name = w->functions.items[f->number].name;
		counted->module = w->functions.items[f->number].module;
	}
	return counted;
}

/* Returns what the calls of thread @tid took, by depth; NULL without memory. */
static struct fathom_u64_array *thread_of(struct counts *c, int32_t tid)
{
	uint32_t *number = fathom_key_map_at(&c->by_tid, (uint32_t)tid);

	if (!number)
		return NULL;
	if (*number == FATHOM_KEY_NEW) {
		if (!fathom_array_push(&c->threads, (struct fathom_u64_array){ .n = 0 }))
			return NULL;
		*number = (uint32_t)c->threads.n - 1;
	}
	return &c->threads.items[*number];
}

/* Extends @callees to @depth; returns false without memory. */
static bool make_deep(struct fathom_u64_array *callees, size_t depth)
{
	const size_t more = depth < callees->n ? 0 : depth + 1 - callees->n;

	if (!more)
		return true;
	if (!fathom_array_room(callees, more))
		return false;
	memset(callees->items + callees->n, 0, more * sizeof *callees->items);
	callees->n += more;
	return true;
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

/* Returns false without memory. */
static bool count_return(struct counts *c, struct counted *f, const struct fathom_trace_event *e)
{
	struct fathom_u64_array *callees_ns = thread_of(c, e->tid);
	const uint64_t ns = e->duration_ns;
	uint64_t callees;

	if (!callees_ns || !make_deep(callees_ns, (size_t)e->depth + 1))
		return false;
	if (!f->classes)
		f->classes = calloc(CLASSES, sizeof *f->classes);
	if (!f->classes)
		return false;
	callees = callees_ns->items[(size_t)e->depth + 1];
	callees_ns->items[(size_t)e->depth + 1] = 0;
	callees_ns->items[e->depth] += ns;
	f->classes[class_of(ns)]++;
	if (!f->returns || ns < f->least_ns)
		f->least_ns = ns;
	if (ns > f->most_ns)
		f->most_ns = ns;
	f->returns++;
	f->total_ns += ns;
	f->self_ns += ns > callees ? ns - callees : 0;
	return true;
}

static void count(struct fathom_trace_writer *w, const struct fathom_trace_event *e)
{
	struct counted *f;

	if (!e->function)
		return;
	f = function_of(w, e->function);
	if (!f)
		w->no_memory = true;
	else if (e->type == FATHOM_TRACE_CALL) {
		f->calls += e->count;
		if (e->syscall && e->syscall->method < METHODS)
			f->by_method[e->syscall->method]++;
	} else if (e->type == FATHOM_TRACE_RETURN)
		w->no_memory |= !count_return(w->state, f, e);
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

static int by_weight(const void *a, const void *b)
{
	const struct counted *x = a;
	const struct counted *y = b;

	if (x->self_ns != y->self_ns)
		return x->self_ns < y->self_ns ? 1 : -1;
	if (x->calls != y->calls)
		return x->calls < y->calls ? 1 : -1;
	return by_name(a, b);
}

/* Adds what @from has to @to, the same function. */
static void add(struct counted *to, struct counted *from)
{
	if (from->returns && (!to->returns || from->least_ns < to->least_ns))
		to->least_ns = from->least_ns;
	if (from->most_ns > to->most_ns)
		to->most_ns = from->most_ns;
	to->calls += from->calls;
	for (unsigned i = 0; i < METHODS; i++)
		to->by_method[i] += from->by_method[i];
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

/* Sorts the functions, one for each name and module; returns how many there are. */
static size_t finish(struct counts *c)
{
	struct counted *f = c->functions.items;
	size_t last = 0;
	size_t n = 0;

	if (!c->functions.n)
		return 0;
	qsort(f, c->functions.n, sizeof *f, by_name);
	for (size_t i = 1; i < c->functions.n && f[i].name; i++) {
		if (!by_name(&f[last], &f[i]))
			add(&f[last], &f[i]);
		else
			last = i;
	}
	qsort(f, c->functions.n, sizeof *f, by_weight);
	/* Those that are not there weigh nothing, and have no name: they stand last. */
	while (n < c->functions.n && f[n].name)
		n++;
	return n;
}

/* Puts how many calls of @f were captured by each method. */
static void put_methods(struct fathom_trace_writer *w, const struct counted *f)
{
	for (uint32_t i = 1; i < METHODS; i++) {
		if (!f->by_method[i])
			continue;
		fathom_writer_str(w, ", ");
		fathom_writer_str(w, fathom_syscall_method_name((enum fathom_syscall_method)i));
		fathom_writer_str(w, " ");
		fathom_escape_number(w, f->by_method[i], 0);
	}
}

static void put_line(struct fathom_trace_writer *w, const struct counted *f, bool with_times)
{
	const char *module = fathom_path_last_part(f->module);

	fathom_escape_number(w, f->calls, COLUMN);
	if (with_times) {
		const uint64_t times[] = { f->total_ns,
					   f->self_ns,
					   f->least_ns,
					   f->returns ? f->total_ns / f->returns : 0,
					   f->returns ? percentile_99(f) : 0,
					   f->most_ns };

		for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
			fathom_writer_str(w, " ");
			fathom_escape_number(w, times[i], COLUMN);
		}
	}
	fathom_writer_str(w, " &");
	fathom_escape_name(w, &escape, f->name);
	fathom_writer_str(w, " (");
	fathom_escape_name(w, &escape, module);
	if (f->by_method[FATHOM_SYSCALL_BY_REWRITING] || f->by_method[FATHOM_SYSCALL_BY_DISPATCH])
		put_methods(w, f);
	fathom_writer_str(w, ")\n");
}

static void end(struct fathom_trace_writer *w, const struct fathom_trace_result *result)
{
	const struct counts *c = w->state;
	const size_t n = finish(w->state);
	bool with_times = false;

	(void)result;
	for (size_t i = 0; i < n; i++)
		with_times |= c->functions.items[i].returns != 0;
	fathom_writer_str(w, with_times
				     ? "#       calls      total ns       self ns        min ns "
				       "      mean ns        p99 ns        max ns symbol (module)\n"
				     : "#       calls symbol (module)\n");
	for (size_t i = 0; i < n && !w->no_memory; i++) {
		put_line(w, &c->functions.items[i], with_times);
		fathom_writer_pass_on(w);
	}
	fathom_writer_lost(w);
}

static void put_member(struct fathom_trace_writer *w, const char *key, uint64_t value)
{
	fathom_writer_str(w, key);
	fathom_writer_dec(w, value);
}

static void put_name(struct fathom_trace_writer *w, const char *key, const char *name)
{
	fathom_writer_str(w, key);
	if (*name)
		fathom_writer_json(w, name);
	else
		fathom_writer_str(w, "null");
}

/* Puts how many calls of @f were captured by each method, as the member that @key begins. */
static void put_json_methods(struct fathom_trace_writer *w, const char *key,
			     const struct counted *f)
{
	uint32_t n = 0;

	for (uint32_t i = 1; i < METHODS; i++) {
		if (!f->by_method[i])
			continue;
		fathom_writer_str(w, n++ ? "," : key);
		fathom_writer_json(w, fathom_syscall_method_name((enum fathom_syscall_method)i));
		put_member(w, ":", f->by_method[i]);
	}
	if (n)
		fathom_writer_str(w, "}");
}

static void put_object(struct fathom_trace_writer *w, const struct counted *f)
{
	put_name(w, "{\"function\":", f->name);
	put_name(w, ",\"module\":", f->module);
	put_member(w, ",\"calls\":", f->calls);
	if (f->returns) {
		put_member(w, ",\"returns\":", f->returns);
		put_member(w, ",\"total_ns\":", f->total_ns);
		put_member(w, ",\"self_ns\":", f->self_ns);
		put_member(w, ",\"min_ns\":", f->least_ns);
		put_member(w, ",\"mean_ns\":", f->total_ns / f->returns);
		put_member(w, ",\"p99_ns\":", percentile_99(f));
		put_member(w, ",\"max_ns\":", f->most_ns);
	}
	put_json_methods(w, ",\"methods\":{", f);
	put_json_methods(w, ",\"ways\":{", f);
	fathom_writer_str(w, "}\n");
}

static void end_json(struct fathom_trace_writer *w, const struct fathom_trace_result *result)
{
	const struct counts *c = w->state;
	const size_t n = finish(w->state);

	(void)result;
	for (size_t i = 0; i < n && !w->no_memory; i++) {
		put_object(w, &c->functions.items[i]);
		fathom_writer_pass_on(w);
	}
	fathom_writer_lost_json(w);
}

const struct fathom_writer_format fathom_writer_counts = { begin_counts, count, end, free_counts,
							   false };
const struct fathom_writer_format fathom_writer_counts_json = { begin_counts, count, end_json,
								free_counts, false };
